"""Balance and the bound of every part of published records, from the files of a protocol and counts made by hand."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import funnel
from funnel import DataError, Joint
from funnel.donors.wide_tables import ColumnsSolution
from funnel.recount.classes import PlainClasses
from funnel.recount.released import ReleasedProtocol
from funnel.recount.source import Recount
from funnel.release.classes_document import classes_document
from funnel.sampling.donors import Donors
from tests.whole_records import largest_imbalance, levels_by_prefix, part_of

ADULT = Path(__file__).parents[1] / "data" / "adult.parquet"
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


def files(found: ColumnsSolution) -> tuple[ReleasedProtocol, PlainClasses]:
    text = classes_document(found.classes).to_bytes()
    return ReleasedProtocol.parse(found.protocol.to_json()), PlainClasses.parse(text)


def test_both_are_computed_again(found: ColumnsSolution) -> None:
    (released, classes), people = files(found), counted(COLUMNS)
    assert largest_imbalance(released, classes, people) <= Fraction(1, 10**12)
    levels = levels_by_prefix("lip:1.0", released, classes, people, GROUPS)
    assert all(level.holds for level in levels)
    nats = [level.nats for level in levels]
    assert nats == sorted(nats)
    assert nats[-1] == pytest.approx(found.level, rel=1e-12)
    assert nats[0] > 0.5


def test_published_records_are_distributed_as_true_ones(found: ColumnsSolution) -> None:
    """P(Y = y), from the channel and from who takes whose place, pair by pair of classes, is the share of y."""
    joint = Joint.from_table(ADULT, ["income"], COLUMNS)
    people = joint.counts.sum(axis=0)
    donors = Donors.of(joint.inputs, people, found.classes, COLUMNS)
    moves, sizes = found.protocol.matrix, donors.sizes
    published = moves.diagonal()[donors.of_record] * people
    for source in range(len(sizes)):
        for target in range(len(sizes)):
            if source != target and moves[target, source]:
                _, others, shares = donors.pairs(source, target)
                for other, share in zip(others.tolist(), shares.tolist(), strict=True):
                    published[other] += share * sizes[source] * moves[target, source]
    assert abs(published - people).max() / joint.n <= 1e-9


def test_a_part_is_a_sum_of_records(found: ColumnsSolution) -> None:
    (released, classes), people = files(found), counted(COLUMNS)
    part = part_of(released, classes, people, ["sex"])
    assert sorted(part.outputs) == [("Female",), ("Male",)]
    assert all(sum(row[x] for row in part.weights) == 2**63 for x in range(len(part.inputs)))
    with pytest.raises(DataError, match="'age' is not published"):
        part_of(released, classes, people, ["age"])


def test_what_is_out_of_balance_is_found(found: ColumnsSolution) -> None:
    """A 2048th of the first class goes to the second: columns still sum to 2^63."""
    (_, classes), people = files(found), counted(COLUMNS)
    said = json.loads(found.protocol.to_json())
    said["weights"][0][0] = str(int(said["weights"][0][0]) - 2**52)
    said["weights"][1][0] = str(int(said["weights"][1][0]) + 2**52)
    altered = ReleasedProtocol.parse(json.dumps(said))
    records: Counter[tuple[str, ...]] = Counter()
    for (_, record), number in people.counts.items():
        records[record] += number
    of_class: dict[str, list[int]] = {name: [] for name in classes.names[:2]}
    for record, number in records.items():
        of_class.get(classes.of(record), []).append(number)
    moved = sum(of_class[classes.names[0]]) * 2.0**-11
    expected = max(moved * max(numbers) / sum(numbers) for numbers in of_class.values()) / people.rows
    assert float(largest_imbalance(altered, classes, people)) == pytest.approx(expected, rel=1e-6)


def test_other_people_are_out_of_balance(found: ColumnsSolution) -> None:
    (released, classes), people = files(found), counted(COLUMNS)
    cell = (people.secret[0], people.inputs[0])
    more = replace(people, counts={**people.counts, cell: 3_000}, rows=people.rows + 3_000)
    assert largest_imbalance(released, classes, more) > Fraction(1, 10**6)


def test_what_does_not_fit_is_refused(found: ColumnsSolution) -> None:
    (released, classes), people = files(found), counted(COLUMNS)
    with pytest.raises(DataError, match="not about these classes"):
        largest_imbalance(released, classes, counted(["sex"]))
    others = {cell: number for cell, number in people.counts.items() if classes.of(cell[1]) != classes.names[0]}
    with pytest.raises(DataError, match="nobody is of class"):
        largest_imbalance(released, classes, replace(people, counts=others))
