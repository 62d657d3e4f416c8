"""Cells of a released csv that a spreadsheet would run as formulas, written so that it does not; and read back."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

# What spreadsheets take for a formula at the start of a cell, also after apostrophes that were there before.
_FORMULA = r"^'*[=+\-@\t\r\n]"
# A number is read as the number that it is.
_NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"

RULE = (
    "A value that begins with one of = + - @, a tab or a line break, and is not a plain number, has an apostrophe "
    "before it in this file, so that no spreadsheet runs it as a formula; so has one that begins so after apostrophes. "
    "Take one apostrophe away to get the value, which is the one in the parquet file."
)


def guarded(text: str) -> str:
    """A value as it is written to a csv.

    Examples
    --------
    >>> [guarded(value) for value in ("=1+1", "-5", "-5 to under 0", "'s-Hertogenbosch", "'=1")]
    ["'=1+1", '-5', "'-5 to under 0", "'s-Hertogenbosch", "''=1"]
    """
    return f"'{text}" if re.match(_FORMULA, text) and not re.fullmatch(_NUMBER, text) else text


def guarded_column(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """`guarded` for a column of text."""
    run = pc.and_not(pc.match_substring_regex(values, _FORMULA), pc.match_substring_regex(values, f"^({_NUMBER})$"))
    return pc.if_else(run, pc.binary_join_element_wise("'", values, ""), values)
