"""Learning the categories of the columns of a release in one pass over its source."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

from funnel.alphabet import natural_key
from funnel.errors import DataError
from funnel.fields import MAX_LABEL
from funnel.progress import Progress, quiet
from funnel.source.cells import MISSING, NUMBER, CodeArray, Mask
from funnel.source.coding import Coding, Codings, cells_of, complete
from funnel.source.reader import BATCH_ROWS, Source
from funnel.source.suggestion import too_many
from funnel.spec import ReleaseSpec
from funnel.wording import listed, toml_key

# Distinct values to keep count of before giving up: enough to say how many there are, or to group rare ones.
COUNTED = 100_000
COUNTED_FOR_GROUPING = 500_000


def learn_codings(
    spec: ReleaseSpec, source: Source, progress: Progress = quiet, batch_rows: int = BATCH_ROWS
) -> Codings:
    """Read the columns of the spec once and learn the categories of each, with their counts.

    Values are compared as text, code point by code point: what only looks alike stays apart. Records that the spec
    drops do not count. Memory is O(batch + distinct values).

    Parameters
    ----------
    progress : callable
        Told after each batch of the rows read and, if known, the rows there are.

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
        codes = {column: readers[column].codes(batch.column(column), tallies[column].code) for column in spec.columns}
        keep = complete(codes) if spec.source.on_missing == "drop" else np.ones(batch.num_rows, dtype=np.bool_)
        for column, values in codes.items():
            tallies[column].add(values, keep)
        n_read += batch.num_rows
        n_kept += int(keep.sum())
        progress("learning the categories", n_read, source.n_rows)
    _require_rows(spec, source, n_read, n_kept)
    codings = Codings(tuple(_coding(spec, tally) for tally in tallies.values()), n_kept, n_read - n_kept)
    _require_variation(spec, codings)
    return codings


@dataclass
class _Tally:
    """Categories of one column seen so far, with their counts."""

    spec: ReleaseSpec
    column: str
    codes: dict[str, int] = field(default_factory=dict)
    counts: CodeArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    n_missing: int = 0

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
        groups = recode is not None and recode.minimum_count is not None
        if len(self.codes) >= (COUNTED_FOR_GROUPING if groups else COUNTED):
            raise too_many(self.spec, self.column, self.seen(), counted_all=False)
        self.codes[category] = len(self.codes)
        return len(self.codes) - 1

    def add(self, codes: CodeArray, keep: Mask) -> None:
        self.n_missing += int((codes == MISSING).sum())
        counted = np.bincount(codes[keep & (codes != MISSING)], minlength=len(self.codes))
        counted[: len(self.counts)] += self.counts
        self.counts = counted

    def seen(self) -> dict[str, int]:
        """Categories met so far with their counts; zero for those met only in the batch that is being read."""
        counts = [*self.counts.tolist(), *[0] * (len(self.codes) - len(self.counts))]
        return dict(zip(self.codes, counts, strict=True))

    def occurring(self) -> dict[str, int]:
        """Categories with records that are kept, and how many those are."""
        return {category: count for category, count in self.seen().items() if count}


def _coding(spec: ReleaseSpec, tally: _Tally) -> Coding:
    column, recode = tally.column, spec.recode.get(tally.column)
    counts = tally.occurring()
    for category in counts:
        if not category.strip():
            raise DataError(
                f"column {column!r} has cells without any text; list {category!r} in missing of [source], or name "
                "them in the source"
            )
    bins = () if recode is None else recode.bin_labels
    # Categories are those of groups already; what is no cell's own text joins its group here.
    group_of = {} if recode is None else recode.group_of
    missing = spec.source.missing_label if spec.source.on_missing == "category" and tally.n_missing else None
    if missing is not None and missing in counts and missing not in group_of:
        raise DataError(
            f"column {column!r} has a category {missing!r} of its own, which is also to name its missing values; set "
            "missing_label in [source] to another text"
        )
    of_bins = dict.fromkeys(group_of.get(label, label) for label in bins)
    labels = [label for label in of_bins if label in counts] or ordered(counts)
    if missing is not None:
        missing = group_of.get(missing, missing)
        counts[missing] = counts.get(missing, 0) + tally.n_missing
        if missing not in labels:
            labels.append(missing)
    rare = _too_rare(labels, counts, 0 if recode is None else recode.minimum_count or 0)
    n_grouped = sum(counts[label] for label in rare)
    other = recode.other if recode is not None and rare else None
    if other is not None and other in counts and other not in group_of:
        raise DataError(
            f"column {column!r} has a category {other!r} of its own, which is also to name its rarer values; set other "
            f"in [recode.{toml_key(column)}] to another text"
        )
    labels = [label for label in labels if label not in rare]
    if other is not None:
        other = group_of.get(other, other)
        if other in labels:
            counts[other] += n_grouped
        else:
            # Before the category of missing values, where that is one of its own.
            labels.insert(len(labels) - (bool(labels) and labels[-1] == missing), other)
            counts[other] = n_grouped
    if len(labels) > spec.limits.max_symbols:
        raise too_many(spec, column, tally.occurring())
    return Coding(
        column=column,
        kind="bins" if bins else "categories",
        labels=tuple(labels),
        counts=tuple(counts[label] for label in labels),
        n_missing=tally.n_missing,
        n_grouped=n_grouped,
        n_grouped_values=len(rare),
        missing_label=other if missing in rare else missing,
        other_label=other,
    )


def _too_rare(labels: list[str], counts: dict[str, int], least: int) -> set[str]:
    """Categories to be one: those of fewer records than ``least``; while they are fewer together, the next smallest.

    A group of three people is as rare as a value that three people have. Of categories of one size the one that comes
    first in order joins.
    """
    waiting = sorted(labels, key=lambda label: counts[label])
    rare: set[str] = set()
    together = 0
    for label in waiting:
        if counts[label] >= least and not 0 < together < least:
            break
        rare.add(label)
        together += counts[label]
    return rare


def ordered(labels: dict[str, int]) -> list[str]:
    """Labels in order: by value if all are numbers, else naturally (``9th`` before ``10th``)."""
    if all(re.fullmatch(NUMBER, label) for label in labels):
        return sorted(labels, key=lambda label: (Decimal(label), label))
    return sorted(labels, key=lambda label: (natural_key(label), label))


def _require_rows(spec: ReleaseSpec, source: Source, n_read: int, n_kept: int) -> None:
    needed = "a joint distribution of secret and published columns cannot be estimated from it"
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


def _require_variation(spec: ReleaseSpec, codings: Codings) -> None:
    for column in spec.secret:
        if len(codings[column].labels) == 1:
            raise DataError(
                f"the secret column {column!r} has the same category in every row, so there is nothing to protect; "
                "check path and secret in the spec, and its recoding if it has one"
            )
    if all(len(codings[column].labels) == 1 for column in spec.publish):
        raise DataError(
            f"{listed(spec.publish)} has the same category in every row, so a release would tell nothing; check "
            "path and publish in the spec, and its recoding if it has one"
        )
