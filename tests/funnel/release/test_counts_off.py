"""How far counts of donors who are followed are off: errors by two computations, by an enumeration and by estimates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import funnel
from funnel.alphabet import CLASS_COLUMN, Alphabet
from funnel.donors.composition import Composition
from funnel.estimation.by_class import Followed, whole_records
from funnel.joint import Joint
from funnel.protocol import DENOMINATOR, Protocol
from funnel.recount.classes import PlainClasses
from funnel.recount.published_classes import PublishedByClass
from funnel.release.classes_document import classes_document
from funnel.release.counted_as_usual import counts_off

COLUMNS, OWN = ("job", "town"), 0.7
RANDOM = np.random.default_rng(4)
JOB, TOWN = RANDOM.integers(0, 6, 900), RANDOM.integers(0, 4, 900)
ILL = RANDOM.random(900) < 0.1 + 0.14 * JOB
TABLE = pa.table(
    {
        "ill": np.where(ILL, "yes", "no"),
        "job": pa.array([f"j{one}" for one in JOB]).dictionary_encode(),
        "town": pa.array([f"t{one}" for one in TOWN]).dictionary_encode(),
    }
)


def fitted() -> tuple[Composition, Protocol]:
    found = funnel.fit_columns(TABLE, list(COLUMNS), funnel.LIP(0.5), secret=["ill"], least=60)
    return Composition.of(Joint.from_table(TABLE, ["ill"], list(COLUMNS)), found.classes), found.protocol


def moves_of(composition: Composition, protocol: Protocol) -> dict[tuple[tuple[str, ...], tuple[str, ...]], float]:
    weights = protocol.weights_for(composition.classes.alphabet)
    return {
        (x, y): int(weights[j, i]) / DENOMINATOR
        for j, y in enumerate(protocol.outputs.symbols)
        for i, x in enumerate(composition.classes.alphabet.symbols)
        if weights[j, i]
    }


def with_classes(composition: Composition, rows: pa.Table) -> pa.Table:
    records = Alphabet(COLUMNS, tuple({*zip(*(rows[name].to_pylist() for name in COLUMNS), strict=True)}))
    number = dict(zip(records.symbols, composition.classes.of_records(records).tolist(), strict=True))
    codes = [number[record] for record in zip(*(rows[name].to_pylist() for name in COLUMNS), strict=True)]
    names = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), list(composition.classes.names))
    return rows.select(COLUMNS).append_column(CLASS_COLUMN, names)


def test_errors_are_those_of_an_enumeration_and_of_estimates() -> None:
    composition, protocol = fitted()
    errors = composition.followed_errors(protocol, OWN)
    table = with_classes(composition, TABLE)
    plain, _ = whole_records(table, protocol, followed=Followed(OWN, 1.0))
    twice, _ = whole_records(table, protocol, followed=Followed(OWN, 2.0))
    for column in COLUMNS:
        cells, of = plain.cells((column,))
        found = dict(zip(cells, plain.drawing_errors(of, len(cells)) * plain.n, strict=True))
        for place, (name, value) in enumerate(composition.cells):
            if name == column:
                assert errors[place] == pytest.approx(found[(value,)])
        assert twice.drawing_errors(of, len(cells)) == pytest.approx(2 * plain.drawing_errors(of, len(cells)))
        rows = np.eye(len(cells))[:, of]
        assert twice.aimed(rows, False).covariance == pytest.approx(4 * plain.aimed(rows, False).covariance)
    # One record after the other: whose it becomes, and whether that has the value.
    moves, names = moves_of(composition, protocol), table[CLASS_COLUMN].to_pylist()
    values = np.array(TABLE["job"].to_pylist()) == "j0"
    stays = float(np.mean([moves.get(((name,), (name,)), 0.0) for name in names]))
    share = {name: values[[one == name for one in names]].mean() for name in {*names}}
    variance = 0.0
    for name, value in zip(names, values, strict=True):
        own = moves[(name,), (name,)] * OWN / stays
        mean = own * value + sum(moves.get(((name,), (to,)), 0.0) * share[to] for to in share) - own * share[name]
        variance += mean * (1 - mean)
    assert errors[composition.cells.index(("job", "j0"))] == pytest.approx(variance**0.5)


def test_the_second_computation_finds_the_same_deviations(tmp_path: Path) -> None:
    composition, protocol = fitted()
    drawn = TABLE.take(pa.array(np.where(RANDOM.random(900) < OWN, np.arange(900), RANDOM.integers(0, 900, 900))))
    published = with_classes(composition, drawn)
    pq.write_table(published, tmp_path / "records.parquet")
    found = counts_off(tmp_path / "records.parquet", composition, protocol, OWN)
    assert found is not None
    true = Joint.from_table(TABLE, ["ill"], list(COLUMNS))
    counted = {
        (s, x): int(true.counts[i, j])
        for i, s in enumerate(true.secret.symbols)
        for j, x in enumerate(true.inputs.symbols)
        if true.counts[i, j]
    }
    shown: dict[tuple[tuple[str, ...], tuple[str, ...], str], int] = {}
    for *record, name in zip(*(column.to_pylist() for column in published.columns), strict=True):
        shown[(), tuple(record), name] = shown.get(((), tuple(record), name), 0) + 1
    classes = PlainClasses.parse(classes_document(composition.classes).to_bytes())
    again = PublishedByClass(classes, counted, shown, moves_of(composition, protocol)).off_in_errors(OWN)
    off = np.array([*again.values()])
    assert found.factor == pytest.approx(np.sqrt((off**2).mean()))
    assert (found.errors, again[found.column, found.value]) == (pytest.approx(off.max()), pytest.approx(off.max()))
