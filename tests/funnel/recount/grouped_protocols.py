"""Small grouped protocols as text, drawn at random and not by what makes them; and everything that they can do."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from funnel.recount.grouped_text import SILENT, UNIT, label_of

Values = tuple[str, ...]
COLUMNS = ("x", "y", "z")


@st.composite
def tables(draw: st.DrawFn) -> dict[tuple[Values, Values], int]:
    """Counts of secret and record over three columns of two or three values; every secret occurs."""
    records = [(f"x{i}", f"y{j}", f"z{k}") for i in range(3) for j in range(2) for k in range(2)]
    chosen = draw(st.lists(st.sampled_from(records), min_size=2, max_size=6, unique=True))
    counts: dict[tuple[Values, Values], int] = {}
    for s in ("no", "yes"):
        numbers = draw(st.lists(st.integers(0, 9), min_size=len(chosen), max_size=len(chosen)))
        numbers[0] += 1
        counts.update({((s,), record): number for record, number in zip(chosen, numbers, strict=True) if number})
    return counts


@st.composite
def protocols(draw: st.DrawFn, counts: dict[tuple[Values, Values], int]) -> dict[str, Any]:
    """A grouped protocol for a table: any weights, any classes, names that are the sets that are mixed."""
    groups = draw(st.sampled_from([(("x",), ("y",), ("z",)), (("y",), ("z", "x")), (("x", "z"), ("y",))]))
    records = sorted({record for _, record in counts})
    stages: list[dict[str, Any]] = []
    after = 0
    for number in range(len(groups) - 1, -1, -1):
        stages.insert(0, draw(_stage(groups, number, records, after)))
        after = len(stages[0]["classes"])
    content = {
        "format": "funnel-grouped-protocol/1",
        "denominator": UNIT,
        "columns": list(COLUMNS),
        "stages": stages,
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return {**content, "guarantee": "lip:1.0", "people": 1, "digest": hashlib.sha256(text.encode()).hexdigest()}


@st.composite
def _stage(
    draw: st.DrawFn, groups: tuple[Values, ...], number: int, records: list[Values], after: int
) -> dict[str, Any]:
    group = groups[number]
    places = [COLUMNS.index(column) for column in group]
    symbols = sorted({tuple(record[j] for j in places) for record in records})
    later = [column for one in groups[number + 1 :] for column in one]
    ahead = None
    if later and draw(st.booleans()):
        values = sorted({record[COLUMNS.index(later[0])] for record in records})
        ahead = {"column": later[0], "values": values, "classes": [min(place, 1) for place in range(len(values))]}
    folds = 1 if ahead is None else max(ahead["classes"]) + 1
    channels = [draw(_channel(symbols, folds)) for _ in range(draw(st.integers(1, 2)))]
    classes = []
    for place in range(1 if number == 0 else draw(st.integers(1, 2))):
        channel = place % len(channels)
        size = len(channels[channel]["labels"])
        classes.append([channel, draw(st.lists(st.integers(SILENT, after - 1), min_size=size, max_size=size))])
    return {
        "columns": list(group),
        "symbols": [list(symbol) for symbol in symbols],
        "ahead": ahead,
        "channels": channels,
        "classes": classes,
    }


@st.composite
def _channel(draw: st.DrawFn, symbols: list[Values], folds: int) -> dict[str, Any]:
    size, outputs = len(symbols) * folds, draw(st.integers(1, 3))
    table: list[list[int]] = []
    for _ in range(size):
        cuts = sorted(draw(st.lists(st.integers(0, 8), min_size=outputs - 1, max_size=outputs - 1)))
        ends = [0, *(cut * UNIT // 8 for cut in cuts), UNIT]
        table.append([high - low for low, high in pairwise(ends)])
    values = [tuple(sorted({symbol[j] for symbol in symbols})) for j in range(len(symbols[0]))]
    rows = []
    for y in range(outputs):
        inputs = [x for x in range(size) if table[x][y]]
        if inputs:
            mixed = [symbols[x // folds] for x in inputs]
            label = [label_of(of_column, {symbol[j] for symbol in mixed}) for j, of_column in enumerate(values)]
            rows.append((label, inputs, [table[x][y] for x in inputs]))
    marginal = [0] * len(rows)
    marginal[0] = UNIT
    return {
        "labels": [row[0] for row in rows],
        "inputs": [row[1] for row in rows],
        "weights": [row[2] for row in rows],
        "marginal": marginal,
    }


def ways(content: dict[str, Any], record: Values) -> list[tuple[tuple[tuple[int, int], ...], Values, Fraction]]:
    """All that a record can do: its classes and outputs, what is published of it, and how likely that is."""
    left: list[tuple[int, tuple[tuple[int, int], ...], dict[str, str], Fraction]] = [(0, (), {}, Fraction(1))]
    for stage in content["stages"]:
        symbol = [record[COLUMNS.index(column)] for column in stage["columns"]]
        x = stage["symbols"].index(symbol)
        if stage["ahead"]:
            ahead = stage["ahead"]
            of_value = ahead["classes"][ahead["values"].index(record[COLUMNS.index(ahead["column"])])]
            x = x * (max(ahead["classes"]) + 1) + of_value
        longer = []
        for place, path, shown, likely in left:
            if place == SILENT:
                longer.append((SILENT, path, {**shown, **dict.fromkeys(stage["columns"], "any")}, likely))
                continue
            channel, following = stage["classes"][place]
            of_channel = stage["channels"][channel]
            for y, (label, inputs, weights) in enumerate(
                zip(of_channel["labels"], of_channel["inputs"], of_channel["weights"], strict=True)
            ):
                if x in inputs:
                    share = Fraction(weights[inputs.index(x)], UNIT)
                    told = {**shown, **dict(zip(stage["columns"], label, strict=True))}
                    longer.append((following[y], (*path, (place, y)), told, likely * share))
        left = longer
    return [(path, tuple(shown[column] for column in COLUMNS), likely) for _, path, shown, likely in left]
