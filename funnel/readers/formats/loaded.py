"""Files that are read whole: their cells as Python values become typed columns, with labels in place of codes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any

import pyarrow as pa

from funnel.wording import plain_number

# In the metadata of a column: what it is about, and the labels of its values, as JSON, in the order of their codes.
LABEL, LABELS = b"label", b"labels"
_WHOLE = 2.0**53


class Loaded:
    """A file in memory, as `funnel.readers.formats.columnar.OpenFile`."""

    def __init__(
        self,
        columns: Mapping[str, Sequence[Any]],
        labels: Mapping[str, Mapping[Any, str]],
        about: Mapping[str, str | None] | None = None,
    ) -> None:
        arrays, fields = [], []
        for name, values in columns.items():
            array, told = column_of(values, labels.get(name, {}))
            metadata = {LABELS: json.dumps(told)} if told else {}
            metadata |= {LABEL: label} if (label := (about or {}).get(name)) else {}
            arrays.append(array)
            fields.append(pa.field(name, array.type, metadata=metadata or None))
        self.schema: pa.Schema = pa.schema(fields)
        self._table = pa.Table.from_arrays(arrays, schema=self.schema)
        self.rows: int | None = self._table.num_rows

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Its rows with these columns."""
        return iter(self._table.select(list(columns)).to_batches(max_chunksize=batch_rows))

    def close(self) -> None:
        """Nothing is open."""


def column_of(values: Sequence[Any], labels: Mapping[Any, str]) -> tuple[pa.Array, list[str]]:
    """The values of a column as an array, and the labels that it has in place of codes, in the order of the codes.

    A column has labels where at least half of its different values have one; what has none, or an empty one, is then
    text like the others. A label of two codes, or that is the text of one without, has its code beside it: different
    codes stay different. Labels of a few values of many, such as 97 for "97 or older", leave a column of numbers as it
    is. Numbers that are all whole are whole numbers; points in time that are all at midnight are days; of several kinds
    of values the texts are taken.

    Parameters
    ----------
    values : sequence
        None where there is no value.
    labels : mapping of code to str
    """
    present = [value for value in values if value is not None]
    different = set(present)
    named = sum(value in labels for value in different)
    if named and 2 * named >= len(different):
        told = {code: labels[code] or text_of(code) for code in sorted(labels, key=lambda c: (isinstance(c, str), c))}
        taken = Counter([*told.values(), *(text_of(value) for value in different if value not in told)])
        told = {code: label if taken[label] == 1 else f"{label} ({text_of(code)})" for code, label in told.items()}
        texts = [None if value is None else told.get(value) or text_of(value) for value in values]
        return pa.array(texts, pa.string()), [*told.values()]
    kinds = {type(value) for value in present}
    if kinds <= {bool}:
        return pa.array(values, pa.bool_()), []
    if kinds <= {int, float}:
        if all(float(value).is_integer() and abs(value) < _WHOLE for value in present):
            return pa.array([None if value is None else int(value) for value in values], pa.int64()), []
        return pa.array([None if value is None else float(value) for value in values], pa.float64()), []
    if kinds <= {date, datetime}:
        if all(not isinstance(value, datetime) or value.time() == time() for value in present):
            days = [value.date() if isinstance(value, datetime) else value for value in values]
            return pa.array(days, pa.date32()), []
        points = [
            value if value is None or isinstance(value, datetime) else datetime.combine(value, time())
            for value in values
        ]
        return pa.array(points, pa.timestamp("us")), []
    return pa.array([None if value is None else text_of(value) for value in values], pa.string()), []


def text_of(value: Any) -> str:
    """The text of a cell: whole numbers without a point."""
    return plain_number(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def label_of(column: pa.Field) -> str | None:
    """What a column is about, where its file says it in more than its name."""
    label = " ".join((column.metadata or {}).get(LABEL, b"").decode("utf-8", "replace").split())
    return label if label and label.isprintable() and label != column.name else None


def labels_of(column: pa.Field) -> tuple[str, ...]:
    """The labels of a column, in the order of their codes; none where it has no codes."""
    return tuple(json.loads((column.metadata or {}).get(LABELS, b"[]")))
