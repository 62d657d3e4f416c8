"""A dozen columns of Adult and of Census-Income, as text, with numbers in intervals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

ADULT = [
    "education",
    "sex",
    "occupation",
    "age",
    "relationship",
    "race",
    "workclass",
    "hours-per-week",
    "marital-status",
    "capital-gain",
    "capital-loss",
    "native-country",
]
CENSUS = [
    "education",
    "sex",
    "major-occupation-code",
    "age",
    "marital-stat",
    "race",
    "class-of-worker",
    "weeks-worked-in-year",
    "tax-filer-stat",
    "capital-gains",
    "citizenship",
    "major-industry-code",
]
# Upper ends of the intervals in which numbers are published.
ENDS = {
    "age": (24, 29, 34, 39, 44, 49, 54, 59, 64),
    "hours-per-week": (19, 34, 39, 40, 49),
    "weeks-worked-in-year": (0, 25, 51),
    "capital-gain": (0, 5000),
    "capital-gains": (0, 5000),
    "capital-loss": (0, 1800),
}


def table_of(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Columns as text, numbers in intervals."""
    table = pq.read_table(path, columns=list(columns)).to_pandas()
    for column, ends in ENDS.items():
        if column in columns:
            edges = [-np.inf, *ends, np.inf]
            names = [
                f"to {ends[0]}",
                *(f"{low + 1} to {high}" for low, high in pairwise(ends)),
                f"{ends[-1] + 1}-",
            ]
            table[column] = pd.cut(pd.to_numeric(table[column]), edges, labels=names)
    return table.astype(str)
