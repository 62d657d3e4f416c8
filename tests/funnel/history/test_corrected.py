"""Corrected versions: published counts are right on average for the people there are, however they change."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funnel
from funnel import LIP, Joint
from funnel.frequencies.moves import Moves
from funnel.history.changes import Changes
from funnel.history.corrected import PARTS, corrected, correction, means
from funnel.history.distributions import distributions_before
from funnel.history.expected import Expected, answered, attending, expected_after, expected_people
from funnel.history.fitting import Fitted, fitted
from funnel.history.following import VersionTerms
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.joint import FloatArray
from funnel.protocol import WORD_BITS
from funnel.recount.balance import Correction, balance_complaints

BOUND = LIP(0.5)
FIRST = Joint.from_counts([[300, 100, 60], [100, 200, 240]], ["ill", "well"], ["young", "grown", "old"])
# A third of them grows older, and nobody younger: by the tables they could be anything else.
GROWN = np.array([[200, 167, 93], [67, 166, 307]])
SECOND = Joint.from_counts(GROWN, ["ill", "well"], ["young", "grown", "old"])


@pytest.fixture(scope="module")
def second() -> Fitted:
    """The second version, as it is drawn before its answers are changed."""
    past, expected = Past(), Expected.nobody()
    who = attending(past, expected, {}, float(FIRST.n))
    target = funnel.fit("invariant", FIRST, BOUND)
    step = VersionTerms(BOUND, "first", target=target).decide(past, expected_people(past, who, FIRST, {}))
    distributions = distributions_before(past, who.nodes, FIRST, {}).values.sum(axis=1)
    nodes, outputs, people, others = answered(who, distributions, step.library, step.drawn_from)
    chapter = step.chapter(nodes, outputs)
    past, expected = past.followed_by(chapter), expected_after(who, chapter.first, people, others)
    # What everybody was, is, and was published as, in the first version by its probabilities.
    was = np.array([[200, 100, 0], [0, 67, 33], [0, 0, 60]]), np.array([[67, 33, 0], [0, 133, 67], [0, 0, 240]])
    cells = [(s * 3 + x, s * 3 + now, int(n)) for s in (0, 1) for (x, now), n in np.ndenumerate(was[s]) if n]
    exact = Changes(*(np.array(column) for column in zip(*cells, strict=True)))
    changes = {0: Moves.counted("first", exact, FIRST, SECOND).changes(FIRST, SECOND)}
    who = attending(past, expected, {0: float(FIRST.n)}, float(SECOND.n))
    target = funnel.fit("invariant", SECOND, BOUND)
    expecting = expected_people(past, who, SECOND, changes)
    decided = VersionTerms(BOUND, "second", target=target).decide(past, expecting)
    rows = np.ldexp(step.library[step.drawn_from[0]].astype(np.float64), -WORD_BITS)
    node = dict(zip(outputs.tolist(), range(chapter.first, chapter.first + len(outputs)), strict=True))
    people_of: dict[tuple[int, int], float] = {}
    for before, after, n in cells:
        for y, share in enumerate(rows[:, before % 3]):
            key = node[y], after % 3
            people_of[key] = people_of.get(key, 0.0) + n * share
    pairs = sorted(people_of)
    counts = np.array([round(people_of[pair]) for pair in pairs])
    # Whole people, of every value as many as there are.
    inputs = np.array([x for _, x in pairs])
    for x in range(3):
        counts[np.flatnonzero(inputs == x)[counts[inputs == x].argmax()]] += (
            GROWN.sum(axis=0)[x] - counts[inputs == x].sum()
        )
    there = counts > 0
    nodes, inputs, counts = np.array([h for h, _ in pairs])[there], inputs[there], counts[there]
    real = Observed(SECOND, changes, nodes, inputs, counts)
    return fitted(decided, real.known_by(SECOND, changes))


def off(found: Fitted) -> FloatArray:
    """By how many records every count is off on average."""
    return np.asarray(means(found.step) / PARTS - SECOND.counts.sum(axis=0))


def test_means_are_what_the_rows_of_everybody_add_up_to(second: Fitted) -> None:
    step, observed = second.step, second.step.observed
    rows = np.ldexp(step.library.astype(np.float64), -WORD_BITS)
    of = step.channels_of(observed.nodes)
    by_hand = sum(n * rows[k, :, x] for k, x, n in zip(of, observed.inputs, observed.records, strict=True))
    assert means(step) / PARTS == pytest.approx(by_hand, abs=3 * SECOND.n / PARTS)
    # Whoever comes or goes changes them by one record in all.
    assert 0 <= SECOND.n * PARTS - means(step).sum() <= 3 * SECOND.n


def test_counts_come_late_and_are_put_right(second: Fitted) -> None:
    assert np.abs(off(second)).max() > 5
    found = corrected(second, means(second.step))
    assert np.abs(off(found)).max() < 0.01
    assert found.step.level.value <= 0.5 >= found.predicted.level.value
    assert BOUND.holds_for(SECOND, found.step.channel.weights)
    assert found.step.channel == found.predicted.channel
    # What says nothing of a value stays so.
    silent = (second.step.library == second.step.library[:, :, :1]).all(axis=(1, 2))
    assert (found.step.library[silent] == found.step.library[silent][:, :, :1]).all()


def test_the_noise_of_means_is_what_is_left(second: Fitted) -> None:
    noise = np.array([7, -4, 2])
    found = corrected(second, means(second.step) + noise * PARTS)
    # To first order, and shares of all records stay.
    assert off(found) == pytest.approx(-noise + noise.sum() * SECOND.p_input, abs=0.5)


def test_the_published_channel_is_in_the_balance_that_the_means_ask_for(second: Fitted) -> None:
    noisy = means(second.step)
    symbols, counts = SECOND.inputs.symbols, SECOND.counts.sum(axis=0).tolist()
    for version, told in ((second, None), (corrected(second, noisy), dict(zip(symbols, noisy.tolist(), strict=True)))):
        content = version.predicted.channel.to_dict()
        assert list(balance_complaints(content, symbols, counts, told)) == []
    # Not the one of counts alone, and of other means it is not.
    assert list(balance_complaints(content, symbols, counts)) != []
    assert told is not None
    others = {**told, symbols[0]: told[symbols[0]] + 10 * PARTS}
    (why,) = balance_complaints(content, symbols, counts, others)
    assert "do not have the distribution that the means ask for" in why


@given(st.lists(st.tuples(st.integers(-50, 500), st.integers(0, 400)), min_size=2, max_size=8))
def test_both_computations_change_answers_alike(numbers: list[tuple[int, int]]) -> None:
    noisy, counts = (list(column) for column in zip(*numbers, strict=True))
    if not any(counts):
        return
    p = np.array(counts) / sum(counts)
    moved, taken = correction(np.array(noisy), p)
    found = Correction.of(noisy, counts)
    assert moved == pytest.approx(list(map(float, found.moved)), abs=1e-12)
    assert taken == pytest.approx(list(map(float, found.taken)), abs=1e-9)
    assert sum(found.taken) == 1
    # Answers that are as common as the means come out as common as the counts, and back.
    there = [Fraction(max(0, one)) if n else Fraction(0) for one, n in zip(noisy, counts, strict=True)]
    after = found.after(there)
    assert found.before(after) == there
    if any(there):
        assert after == [sum(there) * Fraction(n, sum(counts)) for n in counts]
