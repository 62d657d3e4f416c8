"""Small panels published by funnel.History, and what a reader believes by another recursion, in fractions."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel import LIP
from tests.histories import History, Reader, Wave, level

BUDGET = 0.6


@st.composite
def panels(draw: st.DrawFn) -> list[dict[int, tuple[str, str]]]:
    """Three waves of people who join, leave, come back and change; values may be missing from a wave."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size, moving = draw(st.integers(12, 60)), draw(st.sampled_from([0.0, 0.1, 0.5]))
    secrets, inputs = draw(st.sampled_from([("no", "yes"), ("a", "b", "c")])), ("s", "m", "l")
    tilt = draw(st.sampled_from([0.0, 0.4, 0.9]))
    state: dict[int, tuple[str, str]] = {}
    waves = []
    for _ in range(3):
        for person in range(size):
            if person not in state or rng.random() < moving:
                secret = int(rng.integers(len(secrets)))
                leaning = rng.random() < tilt
                state[person] = secrets[secret], inputs[secret if leaning else int(rng.integers(3))]
        present = [person for person in range(size) if rng.random() < 0.8] or [0]
        waves.append({person: state[person] for person in present})
    return waves


@given(panels(), st.sampled_from([1.0, 0.8]))
@settings(max_examples=8, deadline=None)
def test_a_second_reader_believes_what_the_book_says(panel: list[dict[int, tuple[str, str]]], reserve: float) -> None:
    book = funnel.History(LIP(BUDGET), budget_fraction=reserve)
    waves: list[Wave] = []
    known: dict[int, History] = {}
    names = []
    for t, people in enumerate(panel):
        table = pa.table(
            {
                "id": list(people),
                "secret": [secret for secret, _ in people.values()],
                "size": [size for _, size in people.values()],
            }
        )
        names.append(str(1984 + t))
        step = book.extend(
            table, key=["id"], secret=["secret"], inputs=["size"], version=names[t], secret_bytes=bytes(range(32))
        )
        joint = step.joint
        places = {
            person: (joint.secret.index(secret), joint.inputs.index(size)) for person, (secret, size) in people.items()
        }
        waves.append(Wave(places, *joint.counts.shape))
        reader = Reader(tuple(waves), lambda v, h: book.steps[v].rows_for(tuple((names[u], y) for u, y in h)), Fraction)
        before = Counter(known.get(person, ()) for person in people)
        moved = outside = 0
        worst = 0.0
        for history, records in before.items():
            distribution = reader.before(history, t)
            said = book.distribution(tuple((names[u], y) for u, y in history), names[t])
            assert said == pytest.approx(distribution.astype(float), rel=1e-12, abs=0)
            weights = step.rows_for(tuple((names[u], y) for u, y in history))
            prior = reader.prior(history[-1][0] if history else None, t)
            levels = [
                level(reader.lifts((distribution * row).sum(axis=1) / (distribution * row).sum(), prior))
                for row in (np.array([Fraction(int(w)) for w in row], dtype=object) for row in weights)
                if (distribution * row).sum() > 0
            ]
            now = level(reader.lifts(distribution.sum(axis=1), prior))
            if now > BUDGET:
                moved += records
                # Held where it is, up to what the theorem allows.
                assert max(levels) <= now + 2e-9
                outside += records * (max(levels) > BUDGET)
            else:
                worst = max(worst, *levels)
                assert max(levels) <= BUDGET
        first = step.by_observer[0]
        assert (first.moved, first.outside) == (moved, outside)
        assert first.level == pytest.approx(worst, rel=1e-9, abs=1e-9)
        outputs = [step.channel.outputs.index((size,)) for size in step.released["size"].to_pylist()]
        for person, y in zip(people, outputs, strict=True):
            known[person] = (*known.get(person, ()), (t, y))
