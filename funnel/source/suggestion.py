"""What to write into the spec about a column with too many different values."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate

from funnel.errors import DataError
from funnel.readers.cells import NUMBER
from funnel.settings.recode import Recode
from funnel.spec import ReleaseSpec
from funnel.wording import plain_number, toml_key


def too_many(spec: ReleaseSpec, column: str, counts: Mapping[str, int], counted_all: bool = True) -> DataError:
    """The error for a column with more categories than the spec allows, with the lines that would mend it.

    Parameters
    ----------
    counts : mapping of str to int
        Records per category, as far as counted.
    counted_all : bool
        False if counting was given up, so that there are more.
    """
    recode, limit = spec.recode.get(column), spec.limits.max_symbols
    found = f"{len(counts):,}" if counted_all else f"more than {len(counts):,}"
    problem = f"column {column!r} has {found} distinct values, and max_symbols in [limits] allows {limit:,}"
    if recode is not None and recode.bins is not None:
        return DataError(f"{problem}; give fewer bins in [recode.{toml_key(column)}]")
    setting, purpose = _setting(recode, counts, limit)
    return DataError(
        f'{problem}; recode it: put the lines "[recode.{toml_key(column)}]" and "{setting}" into the spec to {purpose}'
    )


def _setting(recode: Recode | None, counts: Mapping[str, int], limit: int) -> tuple[str, str]:
    if recode is None and (edges := round_edges(counts)):
        return f"bins = [{', '.join(map(plain_number, edges))}]", "make ranges of its numbers"
    sizes = sorted(counts.values(), reverse=True)
    # Room is needed for the category of the rare values and for that of the missing ones.
    least = _round_up(sizes[limit - 2] + 1)
    if sizes[0] < least:
        return f"minimum_count = {least}", "group its rarer values, or leave the column out if it identifies people"
    return f"minimum_count = {least}", "group its rarer values"


def round_edges(counts: Mapping[str, int], parts: int = 5) -> list[float]:
    """Round numbers near the quintiles, so that no value of a record is told; none if the categories are no numbers.

    With ``parts`` near the limits of as many equal parts.
    """
    if not all(re.fullmatch(NUMBER, category) for category in counts):
        return []
    # Counts are zero where counting was given up in the first batch.
    values = sorted((float(category), max(count, 1)) for category, count in counts.items())
    low, high = values[0][0], values[-1][0]
    half = high / 2 - low / 2  # the whole may be more than a float holds
    if not 0 < half < math.inf:
        return []
    digits = 1 - math.floor(math.log10(half))
    sums = list(accumulate(count for _, count in values))
    quintiles = [values[bisect_left(sums, k * sums[-1] / parts)][0] for k in range(1, parts)]
    # An edge at or below the lowest value would leave a bin empty; the middle does where most values are alike.
    edges = {round(value, digits) for value in quintiles}
    return sorted(edge for edge in edges if low < edge <= high) or [round(low + half, digits)]


def _round_up(count: int) -> int:
    """The next of 2, 5, 10, 20, 50, 100, …"""
    scale = 1
    while True:
        for step in (2, 5, 10):
            if step * scale >= count:
                return step * scale
        scale *= 10
