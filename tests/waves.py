"""A panel of people over five yearly waves: the real one where it lies beside the project, else one drawn like it."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

WAVES = (1984, 1985, 1986, 1987, 1988)
FOLLOWED = """
name = "panel"
title = "A panel"
secret = ["outwork"]
publish = ["kids"]
record_key = ["id"]
guarantee = "lip:1.0"

[source]
path = "people.parquet"

[mechanism]
name = "grr"

[frequencies]
epsilon = 2.0

[categories]
outwork = ["in", "out"]
kids = ["no", "yes"]

[history]
people = "same"

[metadata]
licence = "CC-BY-4.0"
"""
"""The spec of a panel of people who are the same in every wave, under noise."""
COUNTED = """
name = "panel"
title = "A panel"
secret = ["outwork"]
publish = ["income"]
record_key = ["id"]
guarantee = "lip:1.0"
frequencies.protection = "none"

[source]
path = "people.parquet"

[disclosure]
on_breach = "report"

[metadata]
licence = "CC-BY-4.0"

[history]
people = "same"
"""
"""The same with exact counts, of their incomes."""
_COLUMNS = ("id", "year", "age", "outwork", "married", "kids", "edlevel", "hhninc")
_BESIDE = Path(__file__).parents[2] / "shared" / "data" / "health_panel.parquet"


def wave(year: int, people: int | None = None) -> pa.Table:
    """The people of one wave, with income in fifths of that wave and age in decades.

    Parameters
    ----------
    year : int
        One of `WAVES`.
    people : int, optional
        How many people at most: those with the smallest numbers, the same in every wave.
    """
    rows = panel()
    rows = rows[rows["year"] == year]
    if people is not None:
        rows = rows[rows["id"] <= np.sort(panel()["id"].unique())[people - 1]]
    fifths = pd.qcut(rows["hhninc"].rank(method="first"), 5, labels=False)
    return pa.table(
        {
            "id": pa.array(rows["id"].to_numpy(), pa.int64()),
            "outwork": pa.array(np.where(rows["outwork"] == 1, "out", "in")),
            "married": pa.array(np.where(rows["married"] == 1, "yes", "no")),
            "kids": pa.array(np.where(rows["kids"] == 1, "yes", "no")),
            "education": pa.array(rows["edlevel"].astype(str).to_numpy(dtype=object), pa.string()),
            "income": pa.array([f"fifth {1 + int(fifth)}" for fifth in fifths]),
            "age": pa.array([f"{10 * int(age // 10)}s" for age in rows["age"]]),
        }
    )


@cache
def panel() -> pd.DataFrame:
    """All waves: the file that FUNNEL_PANEL names, else the real one if it is there, else a drawn one."""
    found = Path(os.environ["FUNNEL_PANEL"]) if "FUNNEL_PANEL" in os.environ else _BESIDE
    if found.is_file():
        return pq.read_table(found, columns=list(_COLUMNS)).to_pandas()
    return drawn_panel()


@cache
def drawn_panel() -> pd.DataFrame:
    """All waves as they are drawn, wherever that is."""
    return _drawn(np.random.default_rng(84))


def _drawn(rng: np.random.Generator) -> pd.DataFrame:
    """6,000 people who join and leave, and whose columns change from wave to wave about as often as the real ones."""
    n = 6000
    joins, stays = rng.choice(5, n, p=[0.6, 0.1, 0.1, 0.1, 0.1]), rng.integers(1, 6, n)
    age, edlevel = rng.integers(25, 60, n), rng.choice(["edlevel1", "edlevel2", "edlevel3", "edlevel4"], n)
    outwork, married, kids = rng.random(n) < 0.35, rng.random(n) < 0.77, rng.random(n) < 0.45
    standing = rng.normal(size=n) - 0.6 * outwork
    waves = []
    for number, year in enumerate(WAVES):
        there = (joins <= number) & (number < joins + stays)
        columns = {"id": np.arange(1, n + 1), "year": year, "age": age + number, "outwork": outwork.astype(int)}
        columns |= {"married": married.astype(int), "kids": kids.astype(int), "edlevel": edlevel}
        waves.append(pd.DataFrame({**columns, "hhninc": np.exp(standing + rng.normal(scale=0.3, size=n))})[there])
        for values, share in ((outwork, 0.09), (married, 0.03), (kids, 0.06)):
            values ^= rng.random(n) < share
    return pd.concat(waves, ignore_index=True)
