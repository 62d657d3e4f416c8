"""Balance and the bound of every part of published records, from the text of a protocol and counts made by hand."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import funnel
from funnel import DataError
from funnel.donors import ColumnsSolution
from funnel.recount import ReleasedProtocol
from funnel.recount.invariance import largest_imbalance, levels_by_prefix, part_of
from funnel.recount.source import Recount

ADULT = Path(__file__).parents[3] / "data" / "adult.parquet"
COLUMNS = ["education", "sex", "race", "relationship", "occupation"]
GROUPS = [["education", "sex"], ["race"], ["relationship", "occupation"]]


def counted(columns: list[str]) -> Recount:
    table = pq.read_table(ADULT, columns=["income", *columns])
    rows = zip(*(table[column].to_pylist() for column in ("income", *columns)), strict=True)
    counts = Counter((row[:1], row[1:]) for row in rows)
    secret, inputs = (tuple(sorted({cell[k] for cell in counts})) for k in (0, 1))
    return Recount(("income",), tuple(columns), secret, inputs, counts, len(table), 0, "")


@pytest.fixture(scope="module")
def found() -> ColumnsSolution:
    return funnel.fit_columns(ADULT, GROUPS, funnel.LIP(1.0), ["income"])


def test_both_are_computed_again(found: ColumnsSolution) -> None:
    released, people = ReleasedProtocol.parse(found.protocol.to_json()), counted(COLUMNS)
    assert largest_imbalance(released, people) <= Fraction(1, 10**12)
    levels = levels_by_prefix("lip:1.0", released, people, GROUPS)
    assert all(level.holds for level in levels)
    nats = [level.nats for level in levels]
    assert nats == sorted(nats)
    assert nats[-1] == pytest.approx(found.level, rel=1e-12)
    assert nats[0] > 0.5


def test_a_part_is_a_sum_of_records(found: ColumnsSolution) -> None:
    released = ReleasedProtocol.parse(found.protocol.to_json())
    part = part_of(released, ["sex"])
    assert part.outputs == tuple(dict.fromkeys(symbol[1:2] for symbol in released.outputs))
    assert sum(part.marginal) == 2**63
    assert all(sum(row[x] for row in part.weights) == 2**63 for x in range(0, len(part.inputs), 500))
    with pytest.raises(DataError, match="'age' is not published"):
        part_of(released, ["age"])


def altered(found: ColumnsSolution, change: int) -> ReleasedProtocol:
    """A share of one record moved from where it stays to another record: columns still sum to 2^63."""
    said: dict[str, Any] = json.loads(found.protocol.to_json())
    for y, other in itertools.pairwise(range(len(said["weights"]))):
        own, there = said["weights"][y], said["weights"][other]
        if int(own.get(str(y), "0")) > change:
            own[str(y)] = str(int(own[str(y)]) - change)
            there[str(y)] = str(int(there.get(str(y), "0")) + change)
            return ReleasedProtocol.parse(json.dumps(said))
    raise AssertionError


def test_what_is_out_of_balance_is_found(found: ColumnsSolution) -> None:
    released, people = altered(found, 2**52), counted(COLUMNS)
    people_there = sum(number for (_, x), number in people.counts.items() if x == released.outputs[0])
    assert largest_imbalance(released, people) == pytest.approx(people_there / people.rows * 2.0**-11, rel=1e-6)


def test_records_that_the_protocol_does_not_know(found: ColumnsSolution) -> None:
    released, people = ReleasedProtocol.parse(found.protocol.to_json()), counted(COLUMNS)
    counts = dict(people.counts)
    new = (people.secret[0], ("none", "of", "them", "is", "known"))
    more = Recount(
        *(people.secret_columns, people.published_columns, people.secret, (*people.inputs, new[1])),
        {**counts, new: 10},
        people.rows + 10,
        0,
        "",
    )
    # Ten people draw as all others are distributed, and nobody is published as they are.
    assert largest_imbalance(released, more) == pytest.approx(10 / more.rows, rel=1e-9)


def test_other_columns_are_refused(found: ColumnsSolution) -> None:
    released = ReleasedProtocol.parse(found.protocol.to_json())
    with pytest.raises(DataError, match="balance is about the same columns"):
        largest_imbalance(released, counted(["sex"]))
