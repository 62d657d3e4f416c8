"""Coding: the categories of a column with their counts, and reading a source as codes of these categories."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Self

import numpy as np
import pyarrow as pa

from funnel.errors import DataError
from funnel.frequencies.selection import Share
from funnel.readers.cells import MISSING, OUTSIDE, Cells, CodeArray, Mask
from funnel.readers.formats import BATCH_ROWS, Source
from funnel.sampling.key_column import KEY_COLUMN
from funnel.settings.recode import Recode
from funnel.spec import ReleaseSpec


@dataclass(frozen=True)
class Coding:
    """The categories of one column after recoding, as learned from the source.

    Attributes
    ----------
    column : str
    kind : "categories" or "bins"
    labels : tuple of str
        Categories, in order: as declared, or numbers by value, bins from the lowest, texts naturally; then the category
        of other values, then that of missing ones. The code of a category is its position. They all occur, but under
        noise, where labels are public and what occurs is not.
    counts : tuple of int
        Records per label.
    n_missing : int
        Records whose cell is missing, among all that were read.
    n_grouped, n_grouped_values : int
        Records in the category of rarer values that no setting puts there, and how many values they have, a missing one
        among them.
    missing_label, other_label : str or None
        The labels of the categories of missing and of other values, where there are such: one and the same where
        missing values are too rare to be a category of their own.
    n_left_out : int
        Records that have no category in this column, and are left out of the release for it.
    leaves_out : bool
        Whether records whose value has no category are left out of the release: only under noise.
    unmet : tuple of str
        Values that the spec puts into groups, and that do not occur; none that [categories] lists.
    ungrouped : int
        Of a hierarchy: how many values occur that are not in it.
    """

    column: str
    kind: Literal["categories", "bins"]
    labels: tuple[str, ...]
    counts: tuple[int, ...]
    n_missing: int = 0
    n_grouped: int = 0
    n_grouped_values: int = 0
    missing_label: str | None = None
    other_label: str | None = None
    n_left_out: int = 0
    leaves_out: bool = False
    unmet: tuple[str, ...] = ()
    ungrouped: int = 0

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.counts) or len(self._positions) != len(self.labels):
            raise DataError(f"the coding of column {self.column!r} is damaged; learn it again from the source")

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {label: code for code, label in enumerate(self.labels)}

    def code(self, category: str) -> int:
        """Code of a category (a cell's text or bin); of "other" if it is too rare; `OUTSIDE` if there is none."""
        rare = OUTSIDE if self.other_label is None else self._positions[self.other_label]
        return self._positions.get(category, rare)

    @property
    def missing_code(self) -> int:
        """Code of a missing cell, or `OUTSIDE` if missing values are no category."""
        return OUTSIDE if self.missing_label is None else self._positions[self.missing_label]


@dataclass(frozen=True)
class Codings(Mapping[str, Coding]):
    """The codings of all columns of a release, by column name.

    Attributes
    ----------
    columns : tuple of Coding
        Secret columns, then published ones.
    n_rows : int
        Records that are kept: the sum of the counts of each column.
    n_dropped : int
        Records left out because a value is missing, or has no category.
    learned_epsilon, learned_delta : float
        What it cost to learn the categories, where frequencies are protected by noise.
    recode : mapping of column to str
        As JSON, the recoding of columns whose values were grouped so that no count is small, in place of that of the
        spec.
    by_class : bool
        Whether records are drawn by their class because values would have to be grouped too far otherwise.
    grouping_kept : float
        Of the information in the published columns as the spec asks for them, what grouping for a threshold left.
    """

    columns: tuple[Coding, ...]
    n_rows: int
    n_dropped: int = 0
    learned_epsilon: float = 0.0
    learned_delta: float = 0.0
    recode: Mapping[str, str] = field(default_factory=dict)
    by_class: bool = False
    grouping_kept: float = 1.0

    @cached_property
    def _by_name(self) -> dict[str, Coding]:
        return {coding.column: coding for coding in self.columns}

    def __getitem__(self, column: str) -> Coding:
        return self._by_name[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self.columns)

    def settled(self, spec: ReleaseSpec) -> ReleaseSpec:
        """The spec with the recoding that the categories were made by."""
        if not self.recode:
            return spec
        made = {column: Recode.model_validate_json(text) for column, text in self.recode.items()}
        return spec.model_copy(update={"recode": {**spec.recode, **made}})

    @property
    def learned(self) -> Share:
        """What it cost to learn the categories."""
        return Share(self.learned_epsilon, self.learned_delta)

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """The categories of every column, in order."""
        return {coding.column: coding.labels for coding in self.columns}

    def to_json(self) -> str:
        """As JSON text, the same for equal codings."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read back what `to_json` wrote.

        Raises
        ------
        DataError
            If the text is damaged.
        """
        try:
            said = json.loads(text)
            lists = ("labels", "counts", "unmet")
            columns = tuple(
                Coding(**{**entry, **{name: tuple(entry[name]) for name in lists if name in entry}})
                for entry in said.pop("columns")
            )
            return cls(columns, **said)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError("a file of codings is damaged; remove it, and it is made anew from the source") from error

    @property
    def digest(self) -> str:
        """SHA-256 of `to_json`."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()


def coded_batches(
    spec: ReleaseSpec,
    source: Source,
    codings: Mapping[str, Coding],
    batch_rows: int = BATCH_ROWS,
    key_column: Callable[[pa.RecordBatch], pa.Array] | None = None,
    seen: Callable[[pa.RecordBatch], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read the source again as codes: secret columns, then published ones, as dictionary<int32, string>.

    The dictionary of a column is the labels of its coding, in order. Records with a missing value are left out where
    the spec drops them, and so are those whose value has no category where the coding says so. Any other value outside
    the alphabet, which a source that changed may have, is null.

    With ``key_column``, a last column is what it makes of the record keys of the rows that are kept, and ``seen`` is
    told of these rows; the source must then have been opened with ``spec.reading``.

    Raises
    ------
    DataError
        If the source cannot be read to its end, a column has no coding, or a record has what cannot exist.
    """
    dictionaries: dict[str, pa.Array] = {}
    for column in spec.columns:
        if column not in codings:
            raise DataError(f"there is no coding of column {column!r}; learn the codings from this source first")
        dictionaries[column] = pa.array(codings[column].labels, pa.string())
    readers = cells_of(spec, source)
    names = [*spec.columns, *([KEY_COLUMN] if key_column is not None else [])]
    others = key_column is not None or seen is not None
    for batch in source.batches(spec.reading.columns if others else spec.columns, batch_rows):
        kept = batch
        codes = {column: readers[column].codes(batch.column(column), codings[column].code) for column in spec.columns}
        keep = None
        if spec.source.on_missing == "drop":
            keep = complete(codes)
        for column, values in codes.items():
            values[values == MISSING] = codings[column].missing_code
            if codings[column].leaves_out:
                keep = values >= 0 if keep is None else keep & (values >= 0)
        if keep is not None:
            codes = {column: values[keep] for column, values in codes.items()}
            kept = batch.filter(pa.array(keep)) if others else batch
        _require_possible(spec, codings, codes)
        arrays = []
        for column, values in codes.items():
            indices = pa.array(values.astype(np.int32), mask=values < 0)
            arrays.append(pa.DictionaryArray.from_arrays(indices, dictionaries[column]))
        if len(arrays[0]):
            if seen is not None:
                seen(kept)
            if key_column is not None:
                arrays.append(key_column(kept))
            yield pa.RecordBatch.from_arrays(arrays, names=names)


def _require_possible(spec: ReleaseSpec, codings: Mapping[str, Coding], codes: Mapping[str, CodeArray]) -> None:
    """Refuse records whose values the spec says cannot go together."""
    for listed in spec.impossible:
        if not listed.keys() <= codes.keys():
            # Some columns alone are read where bins are chosen; all of them are read before anything is drawn.
            continue
        found = [
            np.isin(codes[column], [k for k, label in enumerate(codings[column].labels) if label in values])
            for column, values in listed.items()
        ]
        if np.logical_and.reduce(found).any():
            raise DataError(
                f"[[impossible]] lists values of {' and '.join(map(repr, listed))} that go together in records of the "
                "source; mend the source, or take them out of the list"
            )


def cells_of(spec: ReleaseSpec, source: Source) -> dict[str, Cells]:
    """How to read the cells of each column of the spec.

    Raises
    ------
    DataError
        If a column's type has no categories, or cannot be put into the bins asked for.
    """
    missing = frozenset(spec.source.missing)
    readers = {}
    for column in spec.columns:
        recode = spec.recode.get(column)
        edges, bins = (recode.edges, recode.bin_labels) if recode is not None else ((), ())
        groups = {} if recode is None else recode.group_of
        period, form = (None, None) if recode is None else (recode.period, recode.format)
        kind = source.schema.field(column).type
        try:
            readers[column] = Cells(column, kind, missing, edges, bins, groups, period, spec.source.decimal, form)
        except DataError as error:
            if not spec.groups.auto or column not in spec.publish:
                raise
            raise DataError(f"{error}; or leave it out of all columns, by exclude in [groups]") from None
    return readers


def complete(codes: Mapping[str, CodeArray]) -> Mask:
    """Which rows have no missing cell, shape (n,)."""
    whole: Mask = np.logical_and.reduce([values != MISSING for values in codes.values()])
    return whole
