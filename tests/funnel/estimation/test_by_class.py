"""Estimates of whole records: plain counts, whose errors are those of classes and donors that are drawn."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import funnel
from funnel.alphabet import Alphabet
from funnel.errors import SpecError
from funnel.estimation.by_class import MOST_CELLS, class_channel
from funnel.joint import Joint
from funnel.protocol import Protocol
from funnel.sampling.donors import Donors
from funnel.sampling.published import CLASS_COLUMN

CODES = np.array([[i, j] for i in range(4) for j in range(3)], dtype=np.int32)
OF = np.array([0, 0, 1, 0, 1, 1, 2, 2, 1, 2, 2, 0])
COUNTS = np.array([60, 30, 80, 20, 70, 30, 50, 40, 60, 90, 30, 40])
VALUES = (("a", "b", "c", "d"), ("x", "y", "z"))
DONORS = Donors(("one", "two"), VALUES, CODES, ("1", "2", "3"), OF, COUNTS)
CLASSES = Alphabet((CLASS_COLUMN,), (("1",), ("2",), ("3",)))
SECRETS = [[20, 120, 190], [130, 120, 20]]


def protocol() -> Protocol:
    return funnel.fit("invariant", Joint.from_counts(SECRETS, inputs=CLASSES), funnel.LIP(0.3))


def published(records: np.ndarray) -> pa.Table:
    codes = CODES[records]
    columns = {name: np.array(VALUES[j])[codes[:, j]] for j, name in enumerate(DONORS.columns)}
    return pa.table({**columns, CLASS_COLUMN: np.array(DONORS.classes)[OF[records]]})


def test_shares_are_plain_counts_and_errors_those_of_many_draws() -> None:
    """Standard errors of 400 seeded draws are the estimated ones, or less where donors are alike."""
    random, channel = np.random.default_rng(1), protocol()
    people = np.repeat(np.arange(len(COUNTS)), COUNTS)
    shares, errors = [], []
    for _ in range(400):
        cumulated = np.cumsum(channel.matrix, axis=0)[:, OF[people]]
        drawn = (random.random(len(people)) > cumulated).sum(axis=0)
        words = random.integers(0, 2**64, (8, len(people)), dtype=np.uint64)
        table = published(DONORS.taken(people, drawn, words.__getitem__))
        over, counts = class_channel(table, channel, ("one",))
        found = funnel.estimate(counts, over, "one")
        texts = table["one"].to_pylist()
        assert found.frequencies.tolist() == pytest.approx([texts.count(cell[0]) / len(texts) for cell in found.cells])
        assert found.r is not None
        assert ((found.r >= 0) & (found.r <= 1)).all()
        shares.append(found.frequencies)
        errors.append(found.errors)
    truth = np.array([COUNTS[CODES[:, 0] == i].sum() for i in range(4)]) / COUNTS.sum()
    spread, claimed = np.std(shares, axis=0), np.mean(errors, axis=0)
    assert (abs(np.mean(shares, axis=0) - truth) < 5 * spread / 20).all()
    assert (spread < 1.2 * claimed).all()
    assert (spread > 0.5 * claimed).all()


def test_the_channel_is_invariant_for_the_published_shares_of_classes() -> None:
    """Where published classes are as many as they are expected to be, so is every cell."""
    table = published(np.repeat(np.arange(len(COUNTS)), COUNTS))
    over, counts = class_channel(table, protocol(), ("one", "two"))
    assert over.matrix @ counts == pytest.approx(counts)
    assert over.matrix.sum(axis=0) == pytest.approx(np.ones(len(counts)))


def test_what_cannot_be_told_is_refused() -> None:
    table = published(np.arange(len(COUNTS)))
    with pytest.raises(SpecError, match="'three' is no column"):
        class_channel(table, protocol(), ("three",))
    with pytest.raises(SpecError, match="folder of the release"):
        funnel.estimate(table, protocol(), "one")
    rows = MOST_CELLS + 1
    wide = pa.table({"id": [str(i) for i in range(rows)], CLASS_COLUMN: ["1"] * rows})
    with pytest.raises(SpecError, match="name fewer columns"):
        class_channel(wide, protocol(), ("id",))
