"""Rows of units for donors: visits whose secrets depend on each other, and the second computation of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from funnel.guarantees.base import Guarantee
from funnel.history.donor_units import UnitRecords, publish_units
from funnel.recount.followed_donors import DonorFigures, DonorFindings
from funnel.recount.unit_donors import Row, UnitRelease, judge_units
from tests.donor_panels import RATES, SECRET, ByLetter, class_of
from tests.waves import WAVES, wave


def visits(units: int, seed: int, most: int = 3, rare: int = 2) -> pa.Table:
    """Units of 1 to ``most`` rows in turn, and some with one row more; the class of a row tells of the next secret."""
    random = np.random.default_rng(seed)
    rows: list[tuple[int, str, str, str]] = []
    for unit in range(units + rare):
        size = 1 + unit % most if unit < units else most + 1
        c = int(random.choice(3, p=[0.4, 0.35, 0.25]))
        for _ in range(size):
            before = c
            c = c if random.random() < 0.6 else int(random.choice(3, p=[0.4, 0.35, 0.25]))
            ill = "yes" if random.random() < RATES[before] else "no"
            rows.append((unit, ill, f"{'abc'[c]}{random.integers(4)}", f"t{random.integers(5)}"))
    order = random.permutation(len(rows))
    columns = zip(*(rows[number] for number in order), strict=True)
    return pa.table(dict(zip(("id", "ill", "job", "town"), map(list, columns), strict=True)))


def published_rows(table: pa.Table, guarantee: Guarantee, secret_bytes: bytes | None = SECRET) -> UnitRecords:
    return publish_units(table, guarantee, ByLetter(), unit=["id"], secret=["ill"], secret_bytes=secret_bytes)


def plain_release(
    found: UnitRecords, table: pa.Table, columns: Sequence[str] = ByLetter.columns, secret: str = "ill"
) -> UnitRelease:
    """A release as the second computation reads it."""
    rows: list[Row] = list(zip(map(str, table["id"].to_pylist()), found.rows.places.tolist(), strict=True))
    records = list(zip(*(map(str, table[name].to_pylist()) for name in columns), strict=True))
    released = (tuple(map(str, row.values())) for row in found.released.to_pylist())
    return UnitRelease(
        "rows",
        dict(zip(rows, zip(map(str, table[secret].to_pylist()), records, strict=True), strict=True)),
        dict(zip(rows, released, strict=True)),
        {row: y for row, y in zip(rows, found.outputs.tolist(), strict=True) if y >= 0},
        {row: rows[of] for row, of in zip(rows, found.stands_for.tolist(), strict=True)},
        {
            step.past.history(node): step.library[channel].tolist()
            for step in found.waves
            for node, channel in zip(step.followed.tolist(), step.drawn_from.tolist(), strict=True)
        },
        DonorFigures(found.level, 0, 0, found.own),
    )


def judged_rows(found: UnitRecords, table: pa.Table, guarantee: Guarantee) -> DonorFindings:
    return judge_units(str(guarantee), class_of, ByLetter.names, plain_release(found, table))


def waves_as_rows(people: int, most: int = 3, rare: int = 2) -> pa.Table:
    """The first waves of a panel as rows of its people, in no order; some people have more rows than all others."""
    table = pa.concat_tables([wave(year, people) for year in WAVES[:most]])
    counts = table["id"].value_counts()
    always = [one["values"] for one in counts.to_pylist() if one["counts"] == most]
    some = table.filter(pc.is_in(table["id"], pa.array(always[:rare], table["id"].type)))
    table = pa.concat_tables([table, *[some] * bool(rare)])
    return table.take(np.random.default_rng(7).permutation(len(table)))


VISITS = """
name = "visits"
title = "Visits of a test"
secret = ["outwork"]
publish = "auto"
unit = ["id"]
guarantee = "lip:0.4"
mechanism = "invariant"

[groups]
min_records = 60

[source]
path = "people.parquet"

[frequencies]
protection = "none"

[disclosure]
on_breach = "report"

[metadata]
licence = "CC-BY-4.0"

[history]
people = "same"
budget_fraction = 0.8
"""
"""The spec of whole records of people with several rows."""
