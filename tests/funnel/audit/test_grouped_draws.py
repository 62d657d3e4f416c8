"""The tests of draws and tables of groups: how rarely they err, and what they notice."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from funnel.audit.grouped.draws import Cells, draw_test, path_complaints, table_complaints
from funnel.audit.grouped.law import PublishedLaw
from funnel.audit.grouped.order import order_test
from funnel.audit.grouped.rows import Rows
from funnel.audit.grouped.table import table_test
from funnel.recount.grouped import follow
from funnel.recount.grouped_text import SILENT, UNIT, GroupedText

SECRETS = (("no",), ("yes",))
# People by secret and record; columns x and y.
COUNTS = {
    (("no",), ("a", "u")): 400,
    (("no",), ("b", "v")): 200,
    (("no",), ("a", "v")): 100,
    (("yes",), ("a", "u")): 150,
    (("yes",), ("b", "u")): 250,
    (("yes",), ("b", "v")): 300,
}


def content() -> dict[str, Any]:
    """Two stages: what is said of x decides between two channels for y, or nothing more is said."""
    third = UNIT // 4
    first = {
        "labels": [["a"], ["b"], ["any"]],
        "inputs": [[0], [1], [0, 1]],
        "weights": [[2 * third], [third], [2 * third, 3 * third]],
        "marginal": [third, third, 2 * third],
    }
    said = {"labels": [["u"], ["any"]], "inputs": [[0], [0, 1]], "weights": [[third], [3 * third, UNIT]]}
    other = {"labels": [["v"], ["any"]], "inputs": [[1], [0, 1]], "weights": [[2 * third], [UNIT, 2 * third]]}
    return {
        "format": "funnel-grouped-protocol/1",
        "denominator": UNIT,
        "columns": ["x", "y"],
        "guarantee": "lip:2.0",
        "people": 10,
        "digest": "",
        "stages": [
            {
                "columns": ["x"],
                "symbols": [["a"], ["b"]],
                "ahead": None,
                "channels": [first],
                "classes": [[0, [0, 1, SILENT]]],
            },
            {
                "columns": ["y"],
                "symbols": [["u"], ["v"]],
                "ahead": None,
                "channels": [{**said, "marginal": [third, 3 * third]}, {**other, "marginal": [third, 3 * third]}],
                "classes": [[0, [SILENT, SILENT]], [1, [SILENT, SILENT]]],
            },
        ],
    }


TEXT = GroupedText.parse(json.dumps(content()))
LAW = PublishedLaw.following(follow(TEXT, "lip:2.0", COUNTS))


def drawn(seed: int, tilt: float = 0.0, by_secret: float = 0.0, stuck: bool = False) -> tuple[Cells, Rows]:
    """Rows drawn by the protocol; with a tilt of all draws, one by the secret, or always by the first class."""
    random = np.random.default_rng(seed)
    cells: dict[tuple[int, ...], int] = {}
    rows = []
    for ((secret,), record), count in COUNTS.items():
        s = int(secret == "yes")
        for _ in range(count):
            place, shown = 0, []
            for number, stage in enumerate(TEXT.stages):
                if place == SILENT:
                    shown.extend(stage.nothing)
                    continue
                drawn_in = 0 if stuck else place
                channel, following = stage.classes[drawn_in]
                x = stage.reads(TEXT.columns, record)
                known = stage.channels[channel].inputs[x]
                shares = np.array([weight / UNIT for _, weight in known])
                u = random.random() * (1 - tilt - (by_secret if s else -by_secret))
                output = known[min(len(known) - 1, int(np.searchsorted(shares.cumsum(), max(u, 0.0), side="right")))][0]
                cell = (number, place, x, output, s)
                cells[cell] = cells.get(cell, 0) + 1
                shown.extend(stage.channels[channel].labels[output])
                place = following[output]
            rows.append(tuple(shown))
    keys = sorted(cells)
    counted = Cells(SECRETS, np.array(keys), np.array([cells[key] for key in keys]))
    order = random.permutation(len(rows))
    return counted, as_rows([rows[i] for i in order], ("x", "y"))


def as_rows(rows: list[tuple[str, ...]], columns: tuple[str, ...]) -> Rows:
    """Rows as codes."""
    texts = tuple(tuple(dict.fromkeys(row[j] for row in rows)) for j in range(len(columns)))
    codes = [[texts[j].index(row[j]) for row in rows] for j in range(len(columns))]
    return Rows(columns, texts, np.array(codes, dtype=np.int32))


def source() -> Rows:
    records = [(*secret, *record) for (secret, record), count in COUNTS.items() for _ in range(count)]
    return as_rows(records, ("s", "x", "y"))


def test_draws_by_the_weights_are_as_rarely_refused_as_is_said() -> None:
    p_values = []
    for seed in range(24):
        cells, rows = drawn(seed)
        assert not list(path_complaints(TEXT, cells, COUNTS))
        assert not list(table_complaints(TEXT, cells, rows.counted))
        p_values.append([draw_test(TEXT, cells).p_value, draw_test(TEXT, cells, by_secret=True).p_value])
        p_values[-1].append(table_test(LAW, rows.counted).p_value)
        p_values[-1].append(order_test(TEXT, rows, source(), ("s",)).p_value)
    for t in (0.05, 0.2):
        # Of so many, with a probability of 1e-6 at most more than this.
        assert (np.array(p_values) <= t).sum(axis=0).max() <= 24 * t + 5 * np.sqrt(24 * t)


@pytest.mark.parametrize("seed", [1, 2])
def test_other_weights_are_noticed_in_draws_and_rows(seed: int) -> None:
    cells, rows = drawn(seed, tilt=0.2)
    assert draw_test(TEXT, cells).p_value < 1e-9
    assert table_test(LAW, rows.counted).p_value < 1e-9


def test_draws_that_look_at_the_secret_are_noticed_by_secret() -> None:
    cells, _ = drawn(3, by_secret=0.3)
    assert draw_test(TEXT, cells, by_secret=True).p_value < 1e-9


def test_the_class_of_another_prefix_is_noticed() -> None:
    cells, rows = drawn(4, stuck=True)
    assert draw_test(TEXT, cells).impossible > 0
    assert draw_test(TEXT, cells).p_value == 0
    assert table_test(LAW, rows.counted).impossible > 0


def test_draws_of_other_records_or_classes_are_told() -> None:
    cells, rows = drawn(5)
    moved = cells.cells.copy()
    at = np.flatnonzero(moved[:, 0] == 1)
    moved[at, 1] = 1 - moved[at, 1]
    said = list(path_complaints(TEXT, Cells(SECRETS, moved, cells.records), COUNTS))
    assert any("led to" in one for one in said)
    fewer = {**COUNTS, (("no",), ("a", "u")): 399}
    assert any("first stage" in one for one in path_complaints(TEXT, cells, fewer))
    strange = cells.cells.copy()
    strange[0, 3] = 9
    assert list(path_complaints(TEXT, Cells(SECRETS, strange, cells.records), COUNTS))
    assert list(table_complaints(TEXT, Cells(SECRETS, strange, cells.records), rows.counted))
    turned = {record[::-1]: count for record, count in rows.counted.items()}
    assert list(table_complaints(TEXT, cells, turned))


def test_rows_in_the_order_of_the_source_are_noticed() -> None:
    _, rows = drawn(6)
    ordered = Rows(rows.columns, rows.texts, rows.codes[:, np.lexsort(rows.codes)])
    assert order_test(TEXT, ordered, source(), ("s",)).p_value < 1e-9
