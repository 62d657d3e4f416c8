"""Learning the categories of the columns of a release in one pass, and what to write of one with too many values."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np

from funnel.errors import DataError
from funnel.frequencies.noise import NoiseSecret
from funnel.frequencies.selection import Looks, Share
from funnel.progress import Progress, quiet
from funnel.readers.cells import MISSING, NUMBER, CodeArray, Mask
from funnel.readers.formats import BATCH_ROWS, Source
from funnel.settings.fields import MAX_LABEL
from funnel.settings.recode import Recode
from funnel.source.coding import Coding, Codings, cells_of, coded_batches, complete
from funnel.source.fitting import (
    require_complete,
    require_numbers,
    require_spelt,
    unmet_values,
)
from funnel.source.naming import is_selected, named_again, occurring_names, public_names, shares_of
from funnel.spec import ReleaseSpec
from funnel.tables import positions_of
from funnel.wording import listed, plain_number, toml_key

# Distinct values to keep count of before giving up: enough to say how many there are, or to group rare ones.
COUNTED = 100_000
COUNTED_FOR_GROUPING = 500_000


def learn_codings(
    spec: ReleaseSpec,
    source: Source,
    progress: Progress = quiet,
    batch_rows: int = BATCH_ROWS,
    known: Mapping[str, Sequence[str]] | None = None,
    naming: Mask | None = None,
    secret: NoiseSecret | None = None,
) -> Codings:
    """Read the columns of the spec once and learn the categories of each, with their counts.

    Values are compared as text, code point by code point: what only looks alike stays apart. Records that the spec
    drops do not count. Memory is O(batch + distinct values).

    Parameters
    ----------
    progress : callable
        Told after each batch of the rows read and, if known, the rows there are.
    known : mapping of column to sequence of str, optional
        The labels of every column, where they were learned from this source under noise before: they are not learned
        again, which would cost again.
    naming : ndarray of bool, shape (rows,), optional
        Which rows of the source count where categories are learned: one of every unit, where units have several. By
        default all do.
    secret : NoiseSecret, optional
        What the noise that names values is derived from; by default it is fresh.

    Raises
    ------
    DataError
        If the source has fewer than two records, a column cannot be read as asked, has more categories than the spec
        allows, or does not vary; one sentence that names the column and the setting to change.
    """
    readers = cells_of(spec, source)
    tallies = {column: _Tally(spec, column) for column in spec.columns}
    n_read = n_kept = 0
    for batch in source.batches(spec.columns, batch_rows):
        codes = {
            column: readers[column].codes(batch.column(column), tallies[column].code, tallies[column].met)
            for column in spec.columns
        }
        keep = complete(codes) if spec.source.on_missing == "drop" else np.ones(batch.num_rows, dtype=np.bool_)
        named = None if naming is None else naming[n_read : n_read + batch.num_rows]
        for column, values in codes.items():
            tallies[column].add(values, keep, named)
        n_read += batch.num_rows
        n_kept += int(keep.sum())
        progress("learning the categories", n_read, source.n_rows)
    _require_rows(spec, source, n_read, n_kept)
    learned = shares_of(spec)
    codings = Codings(
        tuple(
            _coding(spec, tally, learned.get(column), known, Looks(column, secret)) for column, tally in tallies.items()
        ),
        n_kept,
        n_read - n_kept,
        learned_epsilon=math.fsum(share.epsilon for share in learned.values()),
        learned_delta=math.fsum(share.delta for column, share in learned.items() if is_selected(spec, column)),
    )
    _require_names(spec, codings, learned)
    if any(coding.leaves_out for coding in codings.columns):
        codings = _counted_again(spec, source, codings, batch_rows)
        if codings.n_rows < 2:
            raise DataError(
                f"hardly any record has a value of {listed(spec.secret)} that has a category; list the values that may "
                "occur in [categories]"
            )
    _require_variation(spec, codings)
    return codings


@dataclass
class _Tally:
    """Categories of one column seen so far, with their counts."""

    spec: ReleaseSpec
    column: str
    codes: dict[str, int] = field(default_factory=dict)
    counts: CodeArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    # Values that are in groups, and occur.
    met: set[str] = field(default_factory=set)
    n_missing: int = 0
    # Of those rows that count where categories are learned; all do where these are None.
    of_naming: CodeArray | None = None
    missing_of_naming: int = 0

    def code(self, category: str) -> int:
        known = self.codes.get(category)
        if known is not None:
            return known
        if len(category) > MAX_LABEL:
            raise DataError(
                f"column {self.column!r} has a value of {len(category):,} characters, and a category may have at most "
                f"{MAX_LABEL}; shorten it in the source, or leave the column out"
            )
        recode = self.spec.recode.get(self.column)
        groups = (
            (recode is not None and recode.minimum_count is not None)
            or self.column in self.spec.categories
            or self.spec.frequencies.kind.is_noisy
        )
        if len(self.codes) >= (COUNTED_FOR_GROUPING if groups else COUNTED):
            raise too_many(self.spec, self.column, self.seen(), counted_all=False)
        self.codes[category] = len(self.codes)
        return len(self.codes) - 1

    def add(self, codes: CodeArray, keep: Mask, naming: Mask | None = None) -> None:
        self.n_missing += int((codes == MISSING).sum())
        self.counts = self._more(self.counts, codes[keep & (codes != MISSING)])
        if naming is not None:
            self.missing_of_naming += int(((codes == MISSING) & naming).sum())
            self.of_naming = self._more(self.of_naming, codes[keep & naming & (codes != MISSING)])

    def _more(self, counts: CodeArray | None, codes: CodeArray) -> CodeArray:
        counted = np.bincount(codes, minlength=len(self.codes))
        if counts is not None:
            counted[: len(counts)] += counts
        return counted

    def naming(self) -> tuple[dict[str, int], int]:
        """Categories, and missing values, of the rows that count where categories are learned, and how many."""
        if self.of_naming is None:
            return self.occurring(), self.n_missing
        counts = zip(self.codes, self.of_naming.tolist(), strict=True)
        return {category: count for category, count in counts if count}, self.missing_of_naming

    def seen(self) -> dict[str, int]:
        """Categories met so far with their counts; zero for those met only in the batch that is being read."""
        counts = [*self.counts.tolist(), *[0] * (len(self.codes) - len(self.counts))]
        return dict(zip(self.codes, counts, strict=True))

    def occurring(self) -> dict[str, int]:
        """Categories with records that are kept, and how many those are."""
        return {category: count for category, count in self.seen().items() if count}


def _coding(
    spec: ReleaseSpec, tally: _Tally, share: Share | None, known: Mapping[str, Sequence[str]] | None, looks: Looks
) -> Coding:
    column, counts = tally.column, tally.occurring()
    for category in counts:
        if not category.strip():
            raise DataError(
                f"column {column!r} has cells without any text; list {category!r} in missing of [source], or name "
                "them in the source"
            )
    require_numbers(spec, column, counts, tally.met)
    require_spelt(spec, column, counts, tally.met)
    require_complete(spec, column, counts, tally.n_missing)
    may_miss = spec.source.on_missing == "category"
    n_missing = tally.n_missing if may_miss else 0
    group_of = spec.recode[column].group_of if column in spec.recode else {}
    if n_missing and spec.source.missing_label in counts and spec.source.missing_label not in group_of:
        raise DataError(
            f"column {column!r} has a category {spec.source.missing_label!r} of its own, which is also to name its "
            "missing values; set missing_label in [source] to another text"
        )
    has_noise = spec.frequencies.kind.is_noisy
    if known is not None and column in known:
        named = named_again(spec, column, known[column])
    elif has_noise:
        telling, missing = tally.naming()
        named = public_names(spec, looks, telling, missing if may_miss else 0, share)
    else:
        named = occurring_names(spec, column, counts, n_missing)
    if len(named.labels) > spec.limits.max_symbols:
        raise too_many(spec, column, tally.occurring())
    of_label = dict.fromkeys(named.labels, 0)
    n_grouped = n_grouped_values = n_left_out = 0
    for value, count in [*counts.items(), *([(None, n_missing)] if n_missing else [])]:
        label = named.missing if value is None else value if value in of_label else named.other
        if label is None:
            n_left_out += count
            continue
        of_label[label] += count
        # A value of that name, or of a group that the spec gives that name, is no other value.
        if label == named.other and value != label:
            n_grouped += count
            n_grouped_values += 1
    return Coding(
        column=column,
        kind="bins" if spec.has_bins(column) else "categories",
        labels=named.labels,
        counts=tuple(of_label.values()),
        n_missing=tally.n_missing,
        n_grouped=n_grouped,
        n_grouped_values=n_grouped_values,
        n_left_out=n_left_out,
        missing_label=named.missing,
        other_label=named.other,
        leaves_out=has_noise
        and column not in spec.complete
        and ((named.other is None and not spec.has_bins(column)) or (may_miss and named.missing is None)),
        unmet=unmet_values(spec, column, counts, tally.met),
        ungrouped=len({*counts} - {*group_of.values()}) if column in spec.hierarchies else 0,
    )


def _counted_again(spec: ReleaseSpec, source: Source, codings: Codings, batch_rows: int) -> Codings:
    """The same codings with the counts of the records that have a category in every column."""
    counts = {column: np.zeros(len(coding.labels), dtype=np.int64) for column, coding in codings.items()}
    n_kept = 0
    for batch in coded_batches(spec, source, codings, batch_rows):
        n_kept += batch.num_rows
        for column, total in counts.items():
            total += np.bincount(positions_of(batch.column(column), column), minlength=len(total))
    columns = tuple(replace(coding, counts=tuple(counts[coding.column].tolist())) for coding in codings.columns)
    left_out = codings.n_rows - n_kept
    return replace(codings, columns=columns, n_rows=n_kept, n_dropped=codings.n_dropped + left_out)


def _require_rows(spec: ReleaseSpec, source: Source, n_read: int, n_kept: int) -> None:
    needed = "a joint distribution of secret and published columns cannot be estimated from it"
    if n_read < 2 and spec.source.where:
        met = "no row" if n_read == 0 else "only 1 row"
        raise DataError(
            f"{met} of {source.name} meets the conditions of [source.where], on {listed(spec.source.where)}; {needed}: "
            "loosen them"
        )
    if n_read == 0:
        raise DataError(f"{source.name} has no rows; {needed}")
    if n_read == 1:
        raise DataError(f"{source.name} has 1 row; {needed}")
    if n_kept < 2:
        left = "no row is" if n_kept == 0 else "1 row is"
        raise DataError(
            f'{left} left of the {n_read:,} of {source.name}, since on_missing = "drop" leaves out every row with '
            f'a missing value in {listed(spec.columns)}; set on_missing = "category" in [source]'
        )


def _require_names(spec: ReleaseSpec, codings: Codings, learned: Mapping[str, Share]) -> None:
    """Refuse a table that is too small for its values to be learned under noise, and say what would help."""
    named = {
        column: len({*coding.labels} - {coding.other_label, coding.missing_label}) for column, coding in codings.items()
    }
    lacking = [column for column in spec.secret if column in learned and len(codings[column].labels) < 2]
    if not lacking and all(column in learned and not named[column] for column in spec.inputs):
        lacking = list(spec.inputs)
    if lacking:
        # The values of a secret column get half of its share.
        looks = (learned[column].halved() if column in spec.secret else learned[column] for column in lacking)
        least = max(share.threshold for share in looks)
        raise DataError(
            f"too few values of {listed(lacking)} are common enough to be named under the noise, which takes about "
            f"{least:,} records with each; list the values in [categories], group rare ones in [recode], or raise "
            "epsilon in [frequencies]"
        )


def _require_variation(spec: ReleaseSpec, codings: Codings) -> None:
    for column in spec.secret:
        if len(codings[column].labels) == 1:
            raise DataError(
                f"the secret column {column!r} has the same category in every row, so there is nothing to protect; "
                "check path and secret in the spec, and its recoding if it has one"
            )
    if all(len(codings[column].labels) == 1 for column in spec.inputs):
        raise DataError(
            f"{listed(spec.inputs)} has the same category in every row, so a release would tell nothing; check "
            "path and publish in the spec, and its recoding if it has one"
        )


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
