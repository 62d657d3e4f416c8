"""Expected people: who is there, what they are drawn from, and channels of theirs for people whom nobody expected."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from funnel import LIP, Joint
from funnel.frequencies.moves import Moves
from funnel.history.allowed import allowed_by
from funnel.history.distributions import distributions_before
from funnel.history.expected import (
    LEAST,
    Attending,
    Expected,
    answered,
    attending,
    expected_after,
    expected_people,
    likeliest,
)
from funnel.history.fitting import Fitted, fitted
from funnel.history.following import VersionTerms
from funnel.history.history_status import stand
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.history.step import Step
from funnel.recount.chapters import Tree
from funnel.recount.expected import Expected as Recounted

JOINT = Joint.from_counts([[300, 100, 60], [100, 200, 240]], ["ill", "well"], ["a", "b", "c"])
BOUND = LIP(1.0)
# Everybody, and then fewer: a fifth has left, and some people are new.
MOVES = Moves(
    "panel/1.0.0",
    np.array([[350, 30], [20, 400]]),
    np.array([[230, 70, 40], [80, 150, 180]]),
    np.array([[12, 8, 6], [5, 11, 9]]),
)


def first_version() -> tuple[Past, Expected, Step]:
    """A version of new people alone, as it is expected."""
    who = attending(Past(), Expected.nobody(), {}, float(JOINT.n))
    step = VersionTerms(BOUND, "panel/1.0.0").decide(Past(), expected_people(Past(), who, JOINT, {}))
    return published(Past(), who, step)


def published(past: Past, who: Attending, step: Step) -> tuple[Past, Expected, Step]:
    """Once a version is published of which nobody has a history that was not expected."""
    distributions = distributions_before(past, who.nodes, step.joint, step.observed.changes).values.sum(axis=1)
    nodes, outputs, people, others = answered(who, distributions, step.library, step.drawn_from)
    chapter = step.chapter(nodes, outputs)
    return past.followed_by(chapter), expected_after(who, chapter.first, people, others), step


@pytest.fixture(scope="module")
def second() -> tuple[Past, Expected, Attending, Step]:
    """Before the second version, and what was decided for it."""
    past, expected, _ = first_version()
    changes = {0: MOVES.changes(JOINT, JOINT)}
    who = attending(past, expected, {0: float(MOVES.people)}, 900.0)
    step = VersionTerms(BOUND, "panel/1.1.0").decide(past, expected_people(past, who, JOINT, changes))
    return past, expected, who, step


def test_everybody_is_expected_once(second: tuple[Past, Expected, Attending, Step]) -> None:
    past, expected, who, step = second
    assert expected.people.sum() + expected.lost.sum() == pytest.approx(JOINT.n)
    assert MOVES.people == 800
    assert who.people[0] == pytest.approx(100)
    assert who.people.sum() + who.others == pytest.approx(900)
    away = who.away
    assert away.people.sum() + away.lost.sum() == pytest.approx(JOINT.n - 800)
    # Of everybody whose last version it is, the same share is there.
    assert who.people[1:] / expected.people == pytest.approx(np.full(len(expected.people), 0.8))
    _, after, _ = published(past, who, step)
    assert after.people.sum() + after.lost.sum() == pytest.approx(JOINT.n - 800 + 900)
    assert (after.people >= LEAST).all()


def test_more_people_than_there_could_be_are_new() -> None:
    past, expected, _ = first_version()
    who = attending(past, expected, {0: 5000.0}, 1200.0)
    assert who.people[0] == pytest.approx(200)
    assert who.people[1:] == pytest.approx(expected.people)
    assert who.away.people.sum() + who.away.lost.sum() == pytest.approx(0)
    nobody = attending(past, expected, {0: 0.0}, 700.0)
    assert nobody.nodes.tolist() == [0]
    assert nobody.people.tolist() == [700]


def test_the_channel_is_the_mean_over_expected_people(second: tuple[Past, Expected, Attending, Step]) -> None:
    past, _, who, step = second
    distributions = distributions_before(past, who.nodes, JOINT, step.observed.changes).values.sum(axis=1)
    masses = who.people[:, None] * distributions
    rows = np.ldexp(step.library.astype(np.float64), -63)[step.drawn_from]
    mean = np.einsum("hx,hyx->yx", masses, rows) / masses.sum(axis=0)
    assert who.others < 1e-9
    assert step.channel.matrix == pytest.approx(mean, abs=1e-7)
    assert BOUND.holds_for(JOINT, step.channel.weights)
    assert step.level.value <= 1
    assert step.observed.people(step.observed.records.sum()) == JOINT.n


def real(past: Past, nodes: np.ndarray, step: Step) -> Observed:
    """People with some histories, of whom nothing else is known."""
    xs = np.arange(len(nodes)) % 3
    counts = np.zeros((2, 3), dtype=np.int64)
    np.add.at(counts[0], xs, 1)
    exact = Joint(counts, JOINT.secret, JOINT.inputs)
    return Observed.counted(exact, {}, nodes, xs).known_by(JOINT, step.observed.changes)


def test_real_people_get_the_channels_of_expected_ones_or_others_that_hold(
    second: tuple[Past, Expected, Attending, Step],
) -> None:
    past, _, who, step = second
    assert len(who.nodes) > 2
    # As if of some histories nobody had been expected.
    unknown = who.nodes[-1]
    blind = step_without(step, int(unknown))
    observed = real(past, np.repeat(who.nodes, 6), step)
    found: Fitted = fitted(blind, observed)
    assert (found.unpredicted, found.predicted) == (6, blind)
    assert set(who.nodes.tolist()) <= set(found.step.followed.tolist())
    at = np.searchsorted(found.step.followed, who.nodes[:-1])
    before = blind.channels_of(who.nodes[:-1])
    assert (found.step.drawn_from[at] == before).all()
    assert found.step.channel is blind.channel
    # The bound holds for all of them, exactly.
    status = stand(past, observed, BOUND)
    for place in range(len(status.nodes)):
        channel = found.step.channels_of(status.nodes[place])
        outputs = status.exact_distribution(place) @ found.step.library[channel].astype(object).T
        assert allowed_by(BOUND).within_exactly(outputs, status.priors[status.prior_of[place]])
    # Their own real inputs do not enter.
    others = real(past, np.repeat(who.nodes, 3), step)
    again = fitted(blind, others)
    assert (again.step.drawn_from == found.step.drawn_from).all()


def test_where_no_channel_holds_nothing_is_said(second: tuple[Past, Expected, Attending, Step]) -> None:
    past, _, who, step = second
    loud = np.zeros((1, *step.library.shape[1:]), dtype=np.uint64)
    loud[0, np.arange(3), np.arange(3)] = 1 << 63
    # What everybody has, as it is, says more than a small bound allows.
    blind = replace(step_without(step, int(who.nodes[-1]), loud), guarantee=LIP(0.05))
    observed = real(past, np.repeat(who.nodes[-1:], 3), step)
    found = fitted(blind, observed)
    channel = found.step.library[found.step.channels_of(who.nodes[-1])]
    assert found.silent == found.unpredicted == 3
    assert (channel == step.channel.marginal[:, None]).all()


def step_without(step: Step, node: int, library: np.ndarray | None = None) -> Step:
    """A step that did not expect one history; drawn from other channels where these are given."""
    kept = step.followed != node
    drawn_from = step.drawn_from[kept] if library is None else np.zeros(int(kept.sum()), dtype=np.int64)
    return replace(
        step,
        followed=step.followed[kept],
        drawn_from=drawn_from,
        library=step.library if library is None else library,
    )


def test_rounding_decides_for_nobody_who_is_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100,000 people in visits whose numbers were alike, both computations left out others: sums differ by 1e-13."""
    monkeypatch.setattr("funnel.recount.expected.MOST", 296)
    random = np.random.default_rng(5)
    people = np.repeat(random.uniform(0.005, 3, 60), 10)
    chosen = likeliest(people * (1 + random.uniform(-1e-13, 1e-13, 600)), 295)
    again = {node: n * (1 + 1e-13 * (-1) ** node) for node, n in enumerate(people.tolist(), 1)}
    tree = SimpleNamespace(versions=[None, *[0] * 600])
    found = Recounted(dict(again), {}).attending(cast(Tree, tree), {0: 10**6}, 10**6).people
    assert [node - 1 for node in found if node] == chosen.tolist()
    assert len(chosen) == 295
    assert people[chosen].min() > LEAST
