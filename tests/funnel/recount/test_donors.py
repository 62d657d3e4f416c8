"""What stays of whole records, column by column, computed once more: as for the report, and as counted by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from funnel.alphabet import Alphabet
from funnel.estimation.by_class import whole_records
from funnel.estimation.plain_counts import PlainCounts
from funnel.protocol import DENOMINATOR, Protocol
from funnel.recount.donors import PlainDonors, whole_complaints
from funnel.release.counted_as_usual import _errors, _group_stays
from funnel.release.public_accuracy import estimated

CATEGORIES = {"s": ["u", "v"], "x": ["b", "a", "c"], "z": ["1", "0"]}
RECORDS = {"1": [("b", "0"), ("a", "1")], "2": [("b", "1"), ("c", "1"), ("c", "0")]}


def protocol_of(secrets: tuple[tuple[str, ...], ...], moved: list[float]) -> Protocol:
    """Over secrets and classes, each input keeping what it does not move to the next one."""
    symbols = tuple((*secret, name) for secret in secrets for name in RECORDS)
    size = len(symbols)
    weights = np.zeros((size, size), dtype=np.uint64)
    for x, share in enumerate(moved):
        # In steps of a thousandth of all: whole numbers that add up.
        step = round(share * 1000) * (DENOMINATOR // 1000)
        weights[(x + 1) % size, x] = step
        weights[x, x] += np.uint64(DENOMINATOR - step)
    marginal = np.array([DENOMINATOR, *[0] * (size - 1)], dtype=np.uint64)
    columns = (*(("s",) if len(secrets) > 1 else ()), "class")
    alphabet = Alphabet(columns, symbols)
    return Protocol(weights, marginal, alphabet, alphabet, "invariant")


@st.composite
def scenes(draw: st.DrawFn) -> tuple[Protocol, dict[tuple[tuple[str, ...], tuple[str, ...], str], int]]:
    secrets = draw(st.sampled_from([((),), (("u",), ("v",))]))
    share = st.integers(0, 1000).map(lambda number: number / 1000)
    moved = draw(st.lists(share, min_size=2 * len(secrets), max_size=2 * len(secrets)))
    cells = [(secret, record, name) for secret in secrets for name, of in RECORDS.items() for record in of]
    counts = draw(st.lists(st.integers(0, 5), min_size=len(cells), max_size=len(cells)).filter(any))
    return protocol_of(secrets, moved), {cell: n for cell, n in zip(cells, counts, strict=True) if n}


def donors_of(protocol: Protocol, published: dict[tuple[tuple[str, ...], tuple[str, ...], str], int]) -> PlainDonors:
    symbols = protocol.inputs.symbols
    moves = {
        (x, y): float(protocol.matrix[j, i])
        for i, x in enumerate(symbols)
        for j, y in enumerate(symbols)
        if protocol.weights[j, i]
    }
    columns = (*protocol.inputs.columns[:-1], "x", "z")
    return PlainDonors(columns, published, moves, CATEGORIES)


@given(scenes())
@example(
    (protocol_of(((),), [1.0, 0.0]), {((), ("b", "0"), "1"): 3, ((), ("a", "1"), "1"): 4, ((), ("c", "0"), "2"): 3})
)
def test_the_same_as_those_who_publish_it(
    scene: tuple[Protocol, dict[tuple[tuple[str, ...], tuple[str, ...], str], int]],
) -> None:
    protocol, published = scene
    rows = [(*s, *record, name) for (s, record, name), count in published.items() for _ in range(count)]
    values = {**CATEGORIES, "class": list(RECORDS)}
    names = (*protocol.inputs.columns[:-1], "x", "z", "class")
    cells = {
        name: pa.DictionaryArray.from_arrays(pa.array([values[name].index(row[j]) for row in rows]), values[name])
        for j, name in enumerate(names)
    }
    plain, _ = whole_records(pa.table(cells), protocol)
    found = donors_of(protocol, published)
    for column in names[:-1]:
        assert found.stays[column] == pytest.approx(plain.stays((column,)), abs=1e-12)
        groups, told = found.groups(column), _group_stays(plain, column)
        assert told is not None
        assert told.least == pytest.approx(min(groups.values()), abs=1e-12)
        assert told.typical == pytest.approx(float(np.median(list(groups.values()))), abs=1e-12)
        assert groups[told.worst] == pytest.approx(told.least, abs=1e-12)
        (table,) = estimated([_errors(plain, column)])
        # Of a value that no record can become both variances are roundings of zero, and their roots are not.
        assert [(row.label, row.error**2) for row in table.rows] == [
            (value, pytest.approx(error**2, rel=1e-9, abs=1e-15)) for value, error in found.errors(column).items()
        ]
    alone = plain.counts == 1
    number, true = found.alone
    assert number == alone.sum()
    assert found.whole == pytest.approx(float(plain.unchanged @ plain.shares), abs=1e-12)
    assert true == (pytest.approx(plain.unchanged[alone].mean(), abs=1e-12) if number else None)


def test_lines_by_hand() -> None:
    """Two of class 1, (b, 0) and (a, 1), stand beside the halves of class 2: (b, 1), and (c, 0)."""
    published = {((), ("b", "0"), "1"): 1, ((), ("a", "1"), "1"): 1, ((), ("b", "1"), "2"): 3, ((), ("c", "0"), "2"): 3}
    found = donors_of(protocol_of(((),), [0.5, 0.0]), published)
    # Of class 1 half goes: (b, 0) takes (b, 1) and keeps x, and (a, 1) takes (c, 0) and keeps nothing.
    assert found.stays == {"x": pytest.approx(7.5 / 8), "z": pytest.approx(7 / 8)}
    assert found.groups("x") == {"b": pytest.approx(1.0), "a": pytest.approx(0.5), "c": pytest.approx(1.0)}
    assert found.groups("z") == {"0": pytest.approx(3.5 / 4), "1": pytest.approx(3.5 / 4)}
    assert found.alone == (2, pytest.approx(0.5))
    # One of both is an a, and one a z of 1 beside the three of class 2, with the chance 1/2: a variance of 1/4 each.
    assert found.errors("x") == {"c": pytest.approx(0.5 / 8), "b": 0.0, "a": pytest.approx(0.5 / 8)}
    assert found.errors("z") == {"1": pytest.approx(0.5**0.5 / 8), "0": pytest.approx(0.5**0.5 / 8)}


def test_groups_are_those_of_a_thousandth_of_the_records() -> None:
    """Of (b, 0) half become (b, 1); a group of one record in a thousand is told of, and of one in 1,001 not."""
    for others, told in ((999, {"0", "1"}), (1000, {"1"})):
        published = {((), ("b", "0"), "1"): 1, ((), ("b", "1"), "2"): others}
        found = donors_of(protocol_of(((),), [0.5, 0.0]), published)
        assert set(found.groups("z")) == told
        counts, values = np.array([1, others]), Alphabet(("x", "z", "class"), (("b", "0", "1"), ("b", "1", "2")))
        plain = PlainCounts(values, counts, np.array([[0.5, 0.0], [0.5, 1.0]]))
        stays = _group_stays(plain, "z")
        assert stays is not None
        assert (stays.worst, stays.least) == (("0", 0.5) if "0" in told else ("1", 1.0))
    many = Alphabet(("x", "class"), tuple((str(k), "1") for k in range(1001)))
    assert _group_stays(PlainCounts(many, np.ones(1001, dtype=np.int64), np.eye(1001)), "x") is None


def test_what_does_not_follow_is_a_complaint() -> None:
    published = {((), ("b", "0"), "1"): 2, ((), ("b", "1"), "2"): 2}
    found = donors_of(protocol_of(((),), [0.5, 0.3]), published)
    shares = [
        {"column": "x", "share": 1.0, "typical": 1.0, "least": 1.0, "worst": "b"},
        {"column": "z", "share": 0.6, "typical": 0.6, "least": 0.5, "worst": "0"},
    ]
    # Of the records 60 % stay in all columns: the share that is stated is the one of the counts.
    # Of both records of a class one has z = 0 with the chance .5, and one with .3: a variance of .92, of four records.
    never = {"columns": ["x"], "cells": 1, "typical": 0.0, "largest": 0.0, "unknown": 0, "sums": []}
    never |= {"rows": [{"label": "b", "error": 0.0}]}
    often = {"columns": ["z"], "cells": 2, "typical": 0.24, "largest": 0.24, "unknown": 0, "sums": []}
    often |= {"rows": [{"label": "1", "error": 0.24}, {"label": "0", "error": 0.24}]}
    right = {"columns": shares, "estimated": [never, often], "unique": 0, "unique_unchanged": None}
    assert list(whole_complaints(right, found, 0.6, 0.1)) == []
    wrong = [
        None,
        {**right, "columns": shares[:1]},
        {**right, "columns": [shares[0], shares[1] | {"share": 0.7}]},
        {**right, "columns": [shares[0], shares[1] | {"typical": 0.7}]},
        {**right, "columns": [shares[0], shares[1] | {"typical": None}]},
        {**right, "columns": [shares[0], shares[1] | {"least": 0.6}]},
        {**right, "columns": [shares[0], shares[1] | {"worst": "1"}]},
        {**right, "columns": [shares[0], shares[1] | {"worst": None}]},
        {**right, "columns": [shares[0], shares[1] | {"worst": "2"}]},
        {**right, "estimated": [never]},
        {**right, "estimated": [often, never]},
        {**right, "estimated": [never, often | {"typical": 0.23}]},
        {**right, "estimated": [never, often | {"largest": 0.25}]},
        {**right, "estimated": [never, often | {"largest": None}]},
        {**right, "estimated": [never, often | {"largest": 0.2401}]},
        {**right, "estimated": [never, often | {"cells": 3}]},
        {**right, "estimated": [never, often | {"unknown": 1}]},
        {**right, "estimated": [never, often | {"sums": [["1", "0"]]}]},
        {**right, "estimated": [never, often | {"rows": often["rows"][:1]}]},
        {**right, "estimated": [never, often | {"rows": often["rows"][::-1]}]},
        {**right, "estimated": [never, often | {"rows": [often["rows"][0], {"label": "0", "error": 0.12}]}]},
        {**right, "unique": 1},
        {**right, "unique_unchanged": 0.5},
    ]
    assert all(list(whole_complaints(stated, found, 0.6, 0.1)) for stated in wrong)
