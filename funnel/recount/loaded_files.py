"""The cells of files of Stata, SPSS, SAS and Excel for the second computation.

Stata is read by pandas' own code; the others by the one library that reads each, by way of data frames. What is a
label, a whole number or a day is decided here again, by columns of a frame.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FORMATS = ("stata", "spss", "sas", "excel")


def loaded_table(form: str, file: Path) -> pa.Table:
    """A file as a table of typed columns, labels in place of the codes of columns most of whose codes have one."""
    import pyarrow as pa

    frame, labels = _frame(form, file)
    return pa.table({str(name): _typed(frame[name], labels.get(str(name), {})) for name in frame.columns})


def _frame(form: str, file: Path) -> tuple[pd.DataFrame, Mapping[str, Mapping[Any, str]]]:
    import pandas as pd

    if form == "stata":
        codes = pd.read_stata(file, convert_categoricals=False, preserve_dtypes=False)
        return codes, _labels_of(codes, pd.read_stata(file, preserve_dtypes=False))
    if form == "excel":
        frame = pd.read_excel(file, sheet_name=0, header=None, dtype=object, na_values=[], keep_default_na=False)
        frame = frame.replace({"": None})
        head, body = frame.iloc[0], frame.iloc[1:].dropna(how="all")
        kept = [place for place, name in enumerate(head) if not pd.isna(name) and str(name).strip()]
        return body.iloc[:, kept].set_axis([str(head.iloc[place]).strip() for place in kept], axis=1), {}
    import pyreadstat

    read: Mapping[str, Callable[[str], Any]] = {
        ".por": pyreadstat.read_por,
        ".sas7bdat": pyreadstat.read_sas7bdat,
        ".xpt": pyreadstat.read_xport,
    }
    frame, described = read.get(file.suffix.lower(), pyreadstat.read_sav)(str(file))
    return frame, described.variable_value_labels


def _labels_of(codes: pd.DataFrame, labelled: pd.DataFrame) -> Mapping[str, Mapping[Any, str]]:
    """The labels of the codes that occur, from the same rows with labels in place of codes."""
    found: dict[str, dict[Any, str]] = {}
    for name in codes.columns:
        if str(labelled[name].dtype) == "category":
            pairs = zip(codes[name].tolist(), labelled[name].tolist(), strict=True)
            found[str(name)] = {code: label for code, label in pairs if isinstance(label, str)}
    return found


def _typed(values: pd.Series[Any], labels: Mapping[Any, str]) -> pa.Array:
    import pandas as pd
    import pyarrow as pa

    if labels:
        codes = values.dropna().drop_duplicates()
        if 0 < codes.isin(list(labels)).sum() * 2 >= len(codes):
            cells = [None if pd.isna(code) else labels.get(code) or _text(code) for code in values.tolist()]
            return pa.array(cells, pa.string())
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        midnight = (values.dropna() == values.dropna().dt.normalize()).all()
        return (
            pa.array(values.dt.date.where(values.notna(), None), pa.date32())
            if midnight
            else pa.array(values.astype("datetime64[us]"))
        )
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
        return _numbers([None if pd.isna(value) else value for value in values.tolist()])
    cells = [None if pd.isna(value) else value for value in values.tolist()]
    cells = [value.to_pydatetime() if isinstance(value, pd.Timestamp) else value for value in cells]
    there = [value for value in cells if value is not None]
    if there and all(isinstance(value, bool) for value in there):
        return pa.array(cells, pa.bool_())
    if there and {type(value) for value in there} <= {int, float}:
        return _numbers(cells)
    if there and all(isinstance(value, datetime.date) for value in there):
        stamps = pd.to_datetime(pd.Series(cells, dtype=object))
        return _typed(stamps, {})
    return pa.array([None if value is None else _text(value) for value in cells], pa.string())


def _numbers(cells: list[Any]) -> pa.Array:
    import pyarrow as pa

    there = [value for value in cells if value is not None]
    if all(value == int(value) and abs(value) < 2**53 for value in there):
        return pa.array([None if value is None else int(value) for value in cells], pa.int64())
    return pa.array([None if value is None else float(value) for value in cells], pa.float64())


def _text(value: Any) -> str:
    number = isinstance(value, float) or type(value) is int
    return str(int(value)) if number and float(value).is_integer() else str(value)
