"""Frequency tables: sources whose rows are combinations of values with the number of people who have them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from pathlib import Path

from funnel.drafting.look import Column, Look
from funnel.drafting.people import table_of
from funnel.progress import Progress

# Names of a column that says how many people a row is about.
_COUNT = re.compile(
    r"(n|nr|no|count|counts|freq|frequency|frequencies|obs|observations|cases|persons|people|population|total|"
    r"anzahl|häufigkeit|haeufigkeit|fälle|personen|(number|no|nr|num)[ _-]of[ _-](people|persons|cases|records))"
    r"|.*[ _-](count|counts|freq|frequency)"
)
# Combinations of all values that there may be for each row: people who differ in many columns are no frequency table.
_SPARSE = 20


def count_column(look: Look, folder: Path, spared: Collection[str], progress: Progress) -> str | None:
    """The column that says how many people each row is about; None where rows are of people.

    That is one of whole numbers with a name of that kind, whose sum is more than the rows, where no two rows have the
    same values in all other columns although these have few combinations.

    Parameters
    ----------
    look : Look
    folder : Path
        Where relative paths start.
    spared : collection of str
        Columns that a person named as values of one record.
    progress : callable
    """
    if look.more:
        return None
    for column in look.columns:
        if column.name not in spared and _counts_people(column, look.rows):
            others = [one for one in look.columns if one is not column and not one.unique(look.rows)]
            if not others or math.prod(one.values + (one.missing > 0) for one in others) > _SPARSE * look.rows:
                continue
            names = [one.name for one in others]
            table = table_of(look.settings, folder, names, progress)
            if table.group_by(names).aggregate([]).num_rows == table.num_rows:
                return column.name
    return None


def _counts_people(column: Column, rows: int) -> bool:
    if column.kind != "number" or column.missing or not _COUNT.fullmatch(column.name.strip().lower()):
        return False
    if not all(re.fullmatch(r"[0-9]+(\.0+)?", value) for value in column.counts):
        return False
    return sum(float(value) * count for value, count in column.counts.items()) > rows


def frequency_table_message(column: str) -> str:
    """What such a table is, and what to do about it."""
    return (
        f"{column!r} seems to say how many people each row is about, since no other two rows are alike: a release is "
        f"of records, so write a table in which a row is there that many times, without {column!r} (in pandas: "
        f"table.loc[table.index.repeat(table[{column!r}])].drop(columns={column!r}))"
    )
