"""Where: which records of a source are read, by conditions on their cells, each decided once per distinct value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from funnel.errors import DataError
from funnel.readers.cells import MISSING, Cells, Mask, number_in
from funnel.readers.days import day_of
from funnel.readers.opened_source import Source, SourceSpec

if TYPE_CHECKING:
    from funnel.settings.source import Condition


def filtered(spec: SourceSpec, source: Source) -> Source:
    """A source of the records that meet all conditions of a spec; it was opened with `ReleaseSpec.filtering`.

    Raises
    ------
    DataError
        If a column of a condition has no categories; when it is read, if a cell to be compared is no number or date.
    """
    if not spec.source.where:
        return source
    missing = frozenset(spec.source.missing)
    readers = {
        column: Cells(column, source.schema.field(column).type, missing, decimal=spec.source.decimal)
        for column in spec.source.where
    }

    def read(columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        needed = tuple(dict.fromkeys((*columns, *readers)))
        for batch in source.read(needed, batch_rows):
            kept = batch.filter(pa.array(_met(spec.source.where, readers, batch)))
            if kept.num_rows:
                yield kept.select(list(columns))

    return replace(source, read=read, n_rows=None)


@dataclass(frozen=True)
class _How:
    """How numbers are read of the texts of cells: whether they are whole, and their decimal mark."""

    whole: bool
    decimal: str


def _met(where: Mapping[str, Condition], readers: Mapping[str, Cells], batch: pa.RecordBatch) -> Mask:
    met = np.ones(batch.num_rows, dtype=np.bool_)
    for column, condition in where.items():
        cells = readers[column]
        kind = cells.type.value_type if pa.types.is_dictionary(cells.type) else cells.type
        how = _How(pa.types.is_integer(kind), cells.decimal)
        codes = cells.codes(batch.column(column), _decided(column, condition, how))
        if condition.missing is not None:
            met &= (codes == MISSING) == condition.missing
        met &= (codes == 1) | ((codes == MISSING) & (condition.missing is True))
    return met


def _decided(column: str, condition: Condition, how: _How) -> Callable[[str], int]:
    """1 for the text of a cell that meets a condition, 0 for one that does not."""

    def of(text: str) -> int:
        if condition.one_of is not None and text not in condition.one_of:
            return 0
        if condition.none_of is not None and text in condition.none_of:
            return 0
        for bound, is_lower in ((condition.at_least, True), (condition.under, False)):
            if bound is not None and (_value(column, text, bound, how) >= bound) != is_lower:  # type: ignore[operator]
                return 0
        return 1

    return of


def _value(column: str, text: str, bound: int | float | date, how: _How) -> int | float | date:
    value: int | float | date | None
    if isinstance(bound, date):
        kind, value = "dates", day_of(text)
    else:
        kind, value = "numbers", int(text) if how.whole else number_in(text, how.decimal)
    if value is None:
        raise DataError(
            f"column {column!r} has values that are no {kind}, so they cannot be compared in where of [source]; if "
            "they mean missing, list them in missing"
        )
    return value
