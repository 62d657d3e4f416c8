"""Whether the order of the rows of a grouped release tells anything, or is that of the source where that is wanted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from funnel.audit.grouped.draws import Cells
from funnel.audit.grouped.rows import Rows
from funnel.audit.order import association
from funnel.joint import IntArray
from funnel.recount.grouped_text import GroupedText

_BLOCKS = 64
# Labels and outputs that are told apart: the commonest, all others being one.
_MOST = 128


@dataclass(frozen=True)
class OrderTest:
    """Result of the test of an order.

    Attributes
    ----------
    p_value : float
        A uniformly random order has one of at most t with a probability of at most t.
    tables : int
    what : str
        What the order is least likely to have nothing to do with.
    """

    p_value: float
    tables: int
    what: str


def order_test(text: GroupedText, released: Rows, source: Rows, secret: tuple[str, ...]) -> OrderTest:
    """Test that places say nothing of the source: by group, and by whole published record.

    Parameters
    ----------
    text : GroupedText
    released : Rows
        Of the published columns, in the order of the file.
    source : Rows
        Of the secret and published columns, in the order of the source.
    secret : tuple of str

    Notes
    -----
    Every label of a place, such as the input at the same place of the source, has nothing to do with the order of the
    rows; so each table of labels by outputs is judged as `funnel.audit.order` proves, and the smallest p-value is
    corrected by their number. Rare labels and outputs are one class, by how often they occur and by nothing else.
    """
    size = min(len(released), len(source))
    _, s = source.joined(secret)
    blocks = np.arange(size) * _BLOCKS // max(1, size)
    found: list[tuple[float, str]] = []
    outputs = [(", ".join(stage.columns), released.joined(stage.columns)[1]) for stage in text.stages]
    for place, (name, y) in enumerate([*outputs, ("whole records", released.joined(released.columns)[1])]):
        y = _folded(y)
        labels = {"blocks of rows": blocks, "the row before": None, "the secret there": s}
        if place < len(text.stages):
            labels["the value there"] = source.inputs(text.stages[place])
        for what, label in labels.items():
            if label is None:
                pairs = len(y) // 2 * 2
                tables = [(y[0:pairs:2], y[1:pairs:2])]
            else:
                tables = [(_folded(label)[:size], y[:size])]
                if what != "blocks of rows":
                    # As if the file were sorted by it.
                    tables.append((np.sort(_folded(label))[:size], y[:size]))
            for one, other in tables:
                found.append((association(_table(one, other)).p_value, f"{name} and {what}"))
    p, what = min(found)
    return OrderTest(min(1.0, len(found) * p), len(found), what)


def source_order_complaints(text: GroupedText, released: Rows, source: Rows, draws: Cells) -> Iterator[str]:
    """Whether rows stand in the order of the source: with every input the texts that were drawn for it."""
    size = min(len(released), len(source))
    for number, stage in enumerate(text.stages):
        labels, y = released.joined(stage.columns)
        x = source.inputs(stage)
        there = Counter(zip(x[:size].tolist(), y[:size].tolist(), strict=True))
        found = Counter({(one, labels[other]): count for (one, other), count in there.items()})
        expected: Counter[tuple[int, tuple[str, ...]]] = Counter()
        silent = Counter(x.tolist())
        for (place, one, output), count in draws.at(number).total((1, 2, 3)).items():
            expected[one, stage.channels[stage.classes[place][0]].labels[output]] += count
            silent[one] -= count
        for one, count in silent.items():
            expected[one, stage.nothing] += count
        wrong = sum(abs(expected[cell] - found[cell]) for cell in {*expected, *found}) // 2
        if wrong:
            yield f"{wrong:,} rows of {', '.join(stage.columns)} are not at the place of their record in the source"


def _folded(codes: IntArray) -> IntArray:
    """Codes from 0, the commonest by themselves."""
    _, codes, counts = np.unique(codes, return_inverse=True, return_counts=True)
    codes = codes.reshape(-1)
    if len(counts) <= _MOST:
        return np.asarray(codes)
    places = np.full(len(counts), _MOST - 1, dtype=np.int64)
    places[np.argsort(-counts, kind="stable")[: _MOST - 1]] = np.arange(_MOST - 1)
    return np.asarray(places[codes])


def _table(labels: IntArray, outputs: IntArray) -> IntArray:
    height, width = int(labels.max(initial=0)) + 1, int(outputs.max(initial=0)) + 1
    return np.bincount(labels * width + outputs, minlength=height * width).reshape(height, width)
