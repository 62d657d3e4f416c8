"""The bound under every set of tables that noise leaves open: none within the limits is ever beyond what they say."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.alphabet import Alphabet
from funnel.bounds import Bounds
from funnel.errors import SpecError
from funnel.frequencies.moves import Moves
from funnel.guarantees import parse_guarantee
from funnel.history.allowed import allowed_by, require_posterior
from funnel.history.changes import MoveLimits
from funnel.history.expected import Expected, attending, expected_people
from funnel.history.following import VersionTerms
from funnel.history.open_shares import shares_under_noise
from funnel.history.past import Chapter, Past
from funnel.history.possible import PossibleStep, Reach
from funnel.history.possible_distributions import DistributionSet
from funnel.history.worst_tables import told_of, worst
from funnel.joint import IntArray, Joint
from funnel.protocol import DENOMINATOR, Protocol
from funnel.rounding import marginal_weights
from funnel.solver.optimum import optimal
from tests.funnel.history.populations import Known, carried, followed, telling

BOUNDS = ("lip:0.7", "alip:1.0,0.5", "ldp:1.0", "pml:0.6")


@dataclass(frozen=True)
class Tables:
    """What is true, and nobody knows: counts of every wave, and how people changed between successive ones."""

    counts: list[IntArray]
    moves: list[Moves]

    def distribution(self, v: int, u: list[Fraction]) -> list[Fraction]:
        """Of a history whose last wave is v, one wave later; by cell."""
        moves, now = self.moves[v], self.counts[v + 1]
        stays = [
            Fraction(int(stay), int(stay + left))
            for stay, left in zip(moves.stayed[:, 0], moves.left[:, 0], strict=True)
        ]
        return carried(u, [shares(row) for row in moves.secrets], stays, [shares(row) for row in now])

    def prior(self, t: int, is_new: bool) -> list[Fraction]:
        """How common secrets are in a wave: of new people, or of those who were in the wave before."""
        table = self.counts[t].sum(axis=1) if is_new else self.moves[t - 1].secrets.sum(axis=0)
        return shares(table)


def shares(counts: IntArray) -> list[Fraction]:
    return [Fraction(int(n), int(counts.sum())) for n in counts]


def alphabets(c: int, a: int) -> tuple[Alphabet, Alphabet]:
    """Of secret and input."""
    return Alphabet(("s",), tuple((f"s{i}",) for i in range(c))), Alphabet(("x",), tuple((f"x{i}",) for i in range(a)))


def bounded(noisy: IntArray, within: int) -> Joint:
    """Published counts, and everything that is no further from the noisy ones."""
    lower, upper = np.maximum(noisy - within, 0), np.maximum(noisy + within, 0)
    sums, wide = noisy.sum(axis=1), within * noisy.shape[1]
    totals = np.stack([np.maximum(sums - wide, lower.sum(axis=1)), np.minimum(sums + wide, upper.sum(axis=1))], axis=1)
    return Joint(np.maximum(noisy, 0), *alphabets(*noisy.shape), Bounds(lower, upper, totals, 0.01))


@dataclass(frozen=True)
class Case:
    """True tables, what is published of them with noise that is small enough, and channels of two waves."""

    true: Tables
    joints: list[Joint]
    noisy: list[Moves]
    within: int
    channels: list[IntArray]


@st.composite
def cases(draw: st.DrawFn, least: int = 1, most: int = 60, wide: int = 12) -> Case:
    """Three waves, all of whose people are in the one before."""
    c, a = draw(st.integers(2, 3)), draw(st.integers(2, 3))
    within = draw(st.integers(0, wide))
    whole, noise = st.integers(least, most), st.integers(-within, within)

    def table(shape: tuple[int, int]) -> IntArray:
        return np.array(draw(st.lists(whole, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))).reshape(
            shape
        )

    def noised(exact: IntArray) -> IntArray:
        moved = draw(st.lists(noise, min_size=exact.size, max_size=exact.size))
        return exact + np.array(moved).reshape(exact.shape)

    counts = [table((c, a)) for _ in range(3)]
    moves = [Moves("w", table((c, c)), table((c, 1)), table((c, 1))) for _ in range(2)]
    noisy = [Moves("w", *(noised(getattr(one, name)) for name in ("secrets", "stayed", "left"))) for one in moves]
    channels = []
    for _ in range(2):
        rows = table((2, a)) / 1.0
        weights = np.ldexp(rows / rows.sum(axis=0), 62).astype(np.uint64) * np.uint64(2)
        weights[0] += np.uint64(DENOMINATOR) - weights.sum(axis=0, dtype=np.uint64)
        channels.append(weights)
    joints = [bounded(noised(one), within) for one in counts]
    return Case(Tables(counts, moves), joints, noisy, within, channels)


def lifts(prior: list[Fraction], distribution: list[Fraction], row: list[int]) -> list[Fraction]:
    """What an output says of every secret."""
    a = len(row)
    told = [sum(distribution[s * a + x] * row[x] for x in range(a)) for s in range(len(prior))]
    return [one / (sum(told) * share) for one, share in zip(told, prior, strict=True)]


@given(cases(), st.sampled_from(BOUNDS))
@settings(max_examples=40, deadline=None)
def test_no_tables_within_the_limits_are_beyond_them(case: Case, bound: str) -> None:
    guarantee = require_posterior(parse_guarantee(bound))
    allowed, true = allowed_by(guarantee), case.true
    past = Past()
    for t, channel in enumerate(case.channels):
        joint = case.joints[t]
        protocol = Protocol(
            channel, marginal_weights(joint, channel), joint.inputs, alphabets(2, 2)[0], "made up", bound
        )
        limits = {} if t == 0 else {t - 1: case.noisy[t - 1].limits(case.within)}
        nodes = np.zeros(1, np.int64) if t == 0 else np.arange(2) + past.chapters[-1].first
        drawn = np.zeros(len(nodes), np.int64)
        chapter_parents, outputs = np.repeat(nodes, 2), np.tile(np.arange(2), len(nodes))
        chapter = Chapter(
            f"v{t}", bound, joint, {}, protocol, channel[None], nodes, drawn, past.size, chapter_parents, outputs,
            limits=limits,
        )  # fmt: skip
        past = past.followed_by(chapter)
    distributions = DistributionSet(past, case.joints[2], {1: case.noisy[1].limits(case.within)})
    nodes = past.chapters[1].first + np.arange(4)
    rows = np.repeat(np.ldexp(case.channels[1].astype(float), -63)[None], 4, axis=0)
    _, steps = distributions.steps_of(nodes)
    (told,), found = told_of(distributions, steps[1], nodes, rows, allowed)
    assert (found.ratios <= worst(told, steps[1].prior, allowed).ratios * (1 + 1e-9)).all()
    first = [Fraction(int(n)) for n in true.counts[0].ravel()]
    a = true.counts[0].shape[1]
    for node in range(4):
        distribution = first
        for t, y in enumerate(divmod(node, 2)):
            row = case.channels[t][y].tolist()
            distribution = true.distribution(t, [share * row[cell % a] for cell, share in enumerate(distribution)])
        for y in range(2):
            said = lifts(true.prior(2, False), distribution, case.channels[1][y].tolist())
            for (kind, s, other), ratio in zip(found.which.tolist()[1:], found.ratios[node * 2 + y][1:], strict=True):
                one = (said[s], 1 / said[s], said[s] / said[other])[kind]
                limit = (allowed.up, allowed.down, allowed.apart)[kind]
                assert limit is not None
                assert float(one / limit) <= ratio * (1 + 1e-12)
                if case.within == 0:
                    # Nothing is open, so nothing is given away but for counts that are looked at twice.
                    assert ratio < math.inf


@given(cases(least=60, most=400, wide=4), st.sampled_from(BOUNDS))
@settings(max_examples=8, deadline=None)
def test_what_is_decided_holds_for_whatever_is_within_the_limits(case: Case, bound: str) -> None:
    guarantee = require_posterior(parse_guarantee(bound))
    allowed, true = allowed_by(guarantee), case.true
    past, expected, steps = Past(), Expected.nobody(), []
    for t, joint in enumerate(case.joints):
        known = {} if t == 0 else {t - 1: float(joint.n)}
        distributions = {} if t == 0 else {t - 1: case.noisy[t - 1].changes(case.joints[t - 1], joint)}
        limits = {} if t == 0 else {t - 1: case.noisy[t - 1].limits(case.within)}
        who = attending(past, expected, known, float(joint.n))
        observed = expected_people(past, who, joint, distributions, limits)
        target = optimal(joint, guarantee, time_limit=0.2).protocol
        step = VersionTerms(guarantee, f"v{t}", target=target, budget=0.2).decide(past, observed)
        steps.append(step)
        b = len(target.outputs)
        pairs = np.arange(len(step.followed) * b)
        mass = np.full(len(pairs), joint.n / len(pairs))
        possible = (step.library[step.drawn_from] > 0).any(axis=2).ravel()
        chapter = step.chapter(step.followed[pairs[possible] // b], pairs[possible] % b)
        past = past.followed_by(chapter)
        nodes = chapter.first + np.arange(int(possible.sum()))
        expected = Expected(nodes, mass[possible], np.zeros(t + 1))

    def before(t: int, node: int, told: Known | None) -> Known:
        counts = [Fraction(int(n)) for n in true.counts[t].ravel()]
        return true.distribution(t - 1, told[0]) if told else counts, true.prior(t, told is None)

    for *_, channel, distribution, prior in followed(zip(steps, past.chapters, strict=True), before):
        assert all(within(lifts(prior, distribution, row), allowed) for row in telling(channel))


def test_little_noise_leaves_nearly_all_to_be_said() -> None:
    counts = np.array([[9000, 5000, 4000], [3000, 4000, 6000]])
    moves = Moves("w", np.array([[15000, 3000], [2000, 11000]]), np.array([[9000], [6000]]), np.array([[9000], [7000]]))
    guarantee = require_posterior(parse_guarantee("lip:1.0"))
    kept = []
    for wide in (None, 0, 40, 4000):
        joint = bounded(counts, wide or 0)
        past, expected = Past(), Expected.nobody()
        for t in range(2):
            distributions = {0: moves.changes(joint, joint)} if t else {}
            limits = None if wide is None else {0: moves.limits(wide)} if t else {}
            who = attending(past, expected, {0: float(joint.n)} if t else {}, float(joint.n))
            observed = expected_people(past, who, joint, distributions, limits)
            target = optimal(joint, guarantee, time_limit=0.1).protocol
            step = VersionTerms(guarantee, f"v{t}", target=target, budget=1.0).decide(past, observed)
            b = len(target.outputs)
            past = past.followed_by(step.chapter(np.zeros(b, np.int64), np.arange(b)))
            expected = Expected(1 + np.arange(b), step.channel.marginal / 2.0**63 * joint.n, np.zeros(1))
        kept.append(step.utility / step.entropy)
    published, exact, narrow, open_wide = kept
    assert exact == pytest.approx(published, abs=0.01)
    assert published - 0.05 < narrow <= exact + 0.01
    assert open_wide < narrow - 0.1


COUNTS = np.array([[50, 30, 20], [10, 40, 60]])
SECRETS, STAYED, LEFT = np.array([[70, 30], [20, 90]]), np.array([60, 40]), np.array([40, 70])
OPEN = {"counts": 5, "secrets": 9, "stayed": 12, "left": 12}


def corners(table: IntArray, within: int) -> Iterator[IntArray]:
    """Every table whose counts are all at an end of their limits."""
    for signs in product((-within, within), repeat=table.size) if within else [(0,) * table.size]:
        yield table + np.array(signs).reshape(table.shape)


@pytest.mark.parametrize("family", ["counts", "secrets", "stayed"])
def test_limits_are_attained_where_one_thing_alone_is_open(family: str) -> None:
    wide = {name: within * (name == family) for name, within in OPEN.items()}
    joint, exact = bounded(COUNTS, wide["counts"]), bounded(COUNTS, 0)
    limits = MoveLimits(
        *(
            np.stack([table - wide[name], table + wide[name]])
            for name, table in (("secrets", SECRETS), ("stayed", STAYED), ("left", LEFT))
        )
    )
    step = PossibleStep(joint, shares_under_noise(joint, limits), exact)
    u = COUNTS / 1.0
    reach = Reach(u[None], u[None], u.sum(axis=1)[None], u.sum(axis=1)[None], np.ones(1, dtype=bool))
    rows = np.array([[0.9, 0.2, 0.1], [0.1, 0.3, 0.9]])
    told = step.told(Reach(*(np.repeat(one, 2, axis=0) for one in vars(reach).values())), rows)
    of_rows, of_priors = [], []
    for counts in corners(COUNTS, wide["counts"]):
        for secrets in corners(SECRETS, wide["secrets"]):
            for stayed in corners(STAYED, wide["stayed"]):
                table = [Fraction(int(n)) for n in COUNTS.ravel()]
                moves = Moves("w", secrets, stayed[:, None], LEFT[:, None])
                distribution = np.array(Tables([COUNTS, counts], [moves]).distribution(0, table), dtype=float).reshape(
                    2, 3
                )
                of_rows.append(distribution @ rows.T)
                of_priors.append(secrets.sum(axis=0) / secrets.sum())
    # One secret's D and ρ are open by themselves, but the same counts are in both ends of the distribution of the
    # input.
    least, most = np.min(of_rows, axis=0), np.max(of_rows, axis=0)
    slack = 1e-9 if family != "counts" else 0.02
    assert (least + 1e-12 >= told.least.T).all()
    assert (most - 1e-12 <= told.most.T).all()
    assert pytest.approx(least, rel=slack) == told.least.T
    assert pytest.approx(most, rel=slack) == told.most.T
    assert step.prior[0] == pytest.approx(np.min(of_priors, axis=0), rel=1e-9)
    assert step.prior[1] == pytest.approx(np.max(of_priors, axis=0), rel=1e-9)


def test_after_an_output_cells_and_sums_are_limited_by_what_they_may_be() -> None:
    """All tables within limits, one after the other: every limit holds, and those of one wave are attained."""
    wide = 4
    joint, exact = bounded(COUNTS, wide), bounded(COUNTS, 0)
    rows = np.array([[0.9, 0.2, 0.1], [0.1, 0.3, 0.9]])
    reach = PossibleStep(joint, shares_under_noise(joint, None)).after(None, rows)
    assert reach.sound.all()
    assert joint.bounds is not None
    # The factor that all limits of a history have in common is a power of two that brings the largest to 1 at most.
    scale = joint.bounds.upper[0, 0] * rows[:, 0] / reach.upper[:, 0, 0]
    assert np.log2(scale) == pytest.approx(np.round(np.log2(scale)), abs=1e-9)
    scale = 2.0 ** np.round(np.log2(scale))
    assert ((reach.upper.max(axis=(1, 2)) > 0.5) & (reach.upper.max(axis=(1, 2)) <= 1)).all()
    tables = np.stack(list(corners(COUNTS, wide)))[:, None] * rows[:, None, :] / scale[:, None, None]
    for found, least, most in ((tables, reach.lower, reach.upper), (tables.sum(axis=3), reach.least, reach.most)):
        assert found.min(axis=0) == pytest.approx(least, rel=1e-9)
        assert found.max(axis=0) == pytest.approx(most, rel=1e-9)
        assert (found >= least).all()
        assert (found <= most).all()
    # A wave later, of whose counts and moves nothing is open.
    limits = MoveLimits(*(np.stack([table, table]) for table in (SECRETS, STAYED, LEFT)))
    later = PossibleStep(exact, shares_under_noise(exact, limits), exact).after(reach, rows)
    moves, distributions = Moves("w", SECRETS, STAYED[:, None], LEFT[:, None]), []
    for counts in tables[::7]:
        each = []
        for u in counts:
            distribution = Tables([COUNTS, COUNTS], [moves]).distribution(0, [Fraction(float(n)) for n in u.ravel()])
            each.append(np.array(distribution, dtype=float).reshape(2, 3))
        distributions.append(np.stack(each) * rows[:, None, :])
    found = np.stack(distributions)
    again = found[0] / later.upper
    common = 2.0 ** np.round(np.log2(again.max(axis=(1, 2))) + 0.5)
    for factor in (0.25, 0.5, 1.0, 2.0):
        scaled = found / (common * factor)[:, None, None]
        if (scaled <= later.upper).all() and (scaled >= later.lower).all():
            break
    else:
        raise AssertionError("no common factor puts all tables within the limits")
    sums = scaled.sum(axis=3)
    assert (sums >= later.least).all()
    assert (sums <= later.most).all()
    assert (later.least > 0.5 * sums.min(axis=0)).all()
    assert (later.most < 2 * sums.max(axis=0)).all()


def test_what_is_compared_is_with_the_worst_prior() -> None:
    joint = bounded(COUNTS, 0)
    step = PossibleStep(joint, shares_under_noise(joint, None))
    told = step.told(None, np.array([[0.9, 0.2, 0.1]]))
    prior = np.array([[0.4, 0.3], [0.7, 0.6]])
    said = told.most[0]
    for bound, kinds in (("lip:1.0", {0, 1}), ("ldp:1.0", {2})):
        found = worst(told, prior, allowed_by(parse_guarantee(bound)))
        for (kind, s, t), ratio in zip(found.which.tolist()[1:], found.ratios[0, 1:].tolist(), strict=True):
            lift = said / said.sum()
            expected = (
                lift[s] / prior[0, s],
                prior[1, s] / lift[s],
                (lift[s] / prior[0, s]) / (lift[t] / prior[1, t]),
            )[kind]
            assert ratio * math.e == pytest.approx(expected, rel=1e-9)
        assert {kind for kind, _, _ in found.which.tolist()[1:]} == kinds


def test_limits_are_asked_for_where_they_are_needed() -> None:
    joint = bounded(np.full((2, 2), 50), 3)
    moves = Moves("w", np.full((2, 2), 20), np.full((2, 2), 9), np.full((2, 2), 9))
    with pytest.raises(SpecError, match="counted by published input"):
        moves.limits(3)
    with pytest.raises(SpecError, match="without bounds"):
        DistributionSet(Past(), Joint(joint.counts, joint.secret, joint.inputs), {}).steps_of(
            np.zeros(1, dtype=np.int64)
        )
    with pytest.raises(SpecError, match="cross"):
        MoveLimits(np.zeros((2, 1, 1)), np.array([[1], [0]]), np.zeros((2, 1)))
    limits = moves.by_secret.limits(3)
    assert limits.hold(moves.secrets + 3, np.array([15, 21]), np.array([18, 18]))
    assert not limits.hold(moves.secrets + 4, np.array([15, 21]), np.array([18, 18]))


def within(said: list[Fraction], allowed: object) -> bool:
    """Whether lifts are within a bound, exactly."""
    up, down, apart = (getattr(allowed, name) for name in ("up", "down", "apart"))
    return (
        (up is None or max(said) <= up)
        and (down is None or min(said) * down >= 1)
        and (apart is None or max(said) <= apart * min(said))
    )
