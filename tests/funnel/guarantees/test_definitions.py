"""Every guarantee against its definition, written out in fractions: level, decision, witness, rows and cone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel import (
    ALIP,
    LDP,
    LIP,
    SRLIP,
    Alphabet,
    AlphaLift,
    Chi2Lift,
    Guarantee,
    Joint,
    L1Lift,
    MutualInformation,
    PerfectPrivacy,
    Protocol,
    SpecError,
)
from funnel.guarantees import ConeGuarantee, OutputGuarantee
from funnel.rounding import integer_weights, marginal_weights
from tests.brute import given_secret, ldp_ratio, lip_ratio
from tests.strategies import joints

INF = math.inf


@st.composite
def channels(draw: st.DrawFn, columns: int = 1, plain: bool = False) -> tuple[Joint, Protocol]:
    """A joint distribution and a random protocol, sparse or dense, over its inputs or over secret and inputs."""
    joint = draw(joints()) if columns == 1 else draw(tables(columns))
    read = joint if plain or draw(st.booleans()) else joint.with_secret()
    b = draw(st.integers(1, 4))
    column = st.lists(st.one_of(st.just(0.0), st.floats(0.01, 1)), min_size=b, max_size=b).filter(any)
    matrix = np.array([draw(column) for _ in range(len(read.inputs))]).T
    weights = integer_weights(matrix / matrix.sum(axis=0))
    outputs = Alphabet(joint.inputs.columns, tuple((f"y{k}",) * len(joint.inputs.columns) for k in range(b)))
    return joint, Protocol(weights, marginal_weights(read, weights), read.inputs, outputs)


@st.composite
def tables(draw: st.DrawFn, columns: int) -> Joint:
    symbols = tuple(itertools.product("ab", repeat=columns))
    c = draw(st.integers(1, 3))
    cells = st.lists(st.one_of(st.just(0), st.integers(1, 40)), min_size=len(symbols), max_size=len(symbols))
    counts = np.array([draw(cells) for _ in range(c)])
    counts[-1, -1] += 1
    return Joint.from_counts(counts, inputs=Alphabet(tuple("pqr"[:columns]), symbols))


def lifts(joint: Joint, protocol: Protocol) -> list[list[tuple[Fraction, Fraction]]]:
    """(p_s, l(s, y)) of every output that occurs."""
    distribution, marginal = given_secret(joint, protocol)
    sizes = joint.counts.sum(axis=1).tolist()
    return [
        [(Fraction(sizes[s], joint.n), value / marginal[y]) for (z, s), value in distribution.items() if z == y]
        for y in range(len(marginal))
        if marginal[y] > 0
    ]


def nats(ratio: Fraction | None) -> float:
    return INF if ratio is None else math.log(ratio)


def alip_level(joint: Joint, protocol: Protocol, guarantee: ALIP) -> float:
    values = [lift for output in lifts(joint, protocol) for _, lift in output]
    up = nats(max(values))
    down = INF if min(values) == 0 else -math.log(min(values))
    return two_sides(up, down, guarantee)


def two_sides(up: float, down: float, guarantee: ALIP | L1Lift | Chi2Lift | AlphaLift) -> float:
    """The common scale at which both sides are within their budgets, as a value of the larger finite budget."""
    scale = 0.0
    for nats_there, side in ((up, guarantee.upper), (down, guarantee.lower)):
        if math.isfinite(side):
            scale = max(scale, nats_there * guarantee.budget / side)
    return scale


def mean_level(
    measure: Callable[[list[tuple[Fraction, Fraction]]], float],
) -> Callable[[Joint, Protocol, L1Lift | Chi2Lift | AlphaLift], float]:
    def level(joint: Joint, protocol: Protocol, guarantee: L1Lift | Chi2Lift | AlphaLift) -> float:
        outputs = lifts(joint, protocol)
        up = max(measure(output) for output in outputs)
        down = max(
            INF if any(lift == 0 for _, lift in output) else measure([(p, 1 / lift) for p, lift in output])
            for output in outputs
        )
        return two_sides(up, down, guarantee)

    return level


def information(joint: Joint, protocol: Protocol) -> float:
    """I(S;Y) by decimal logarithms of 50 digits."""
    distribution, marginal = given_secret(joint, protocol)
    sizes = joint.counts.sum(axis=1).tolist()
    with localcontext(prec=50):
        total = Decimal(0)
        for (y, s), value in distribution.items():
            if value > 0:
                ratio = value / marginal[y]
                mass = value * Fraction(sizes[s], joint.n)
                total += (
                    Decimal(mass.numerator)
                    / Decimal(mass.denominator)
                    * (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
                )
        return float(total)


def srlip_level(joint: Joint, protocol: Protocol) -> float:
    """Every set of published columns, every value of theirs, every secret, by brute force."""
    read = joint.read_by(protocol.inputs.columns)
    weights = protocol.weights_for(read.inputs).tolist()
    columns = [k for k, name in enumerate(read.inputs.columns) if name in joint.inputs.columns]
    counts = read.counts.tolist()
    worst = Fraction(1)
    for size in range(len(columns) + 1):
        for known in itertools.combinations(columns, size):
            for values in {tuple(symbol[k] for k in known) for symbol in read.inputs.symbols}:
                inside = [
                    x
                    for x, symbol in enumerate(read.inputs.symbols)
                    if tuple(symbol[k] for k in known) == values
                ]  # fmt: skip
                here = sum(row[x] for row in counts for x in inside)
                for y in range(len(weights)):
                    average = sum(row[x] * weights[y][x] for row in counts for x in inside)
                    for row in counts:
                        size_s = sum(row[x] for x in inside)
                        if size_s == 0 or average == 0:
                            continue
                        part = Fraction(sum(row[x] * weights[y][x] for x in inside), size_s)
                        if part == 0:
                            return INF
                        ratio = part / Fraction(average, here)
                        worst = max(worst, ratio, 1 / ratio)
    return math.log(worst)


CASES: list[tuple[Guarantee, Callable[..., float]]] = [
    (LIP(1.0), lambda j, p, g: nats(lip_ratio(j, p))),
    (LDP(1.0), lambda j, p, g: nats(ldp_ratio(j, p))),
    (PerfectPrivacy(), lambda j, p, g: nats(lip_ratio(j, p))),
    (ALIP(1.3, 0.7), alip_level),
    (ALIP(0.2, 2.0), alip_level),
    (ALIP(INF, 0.5), alip_level),
    (ALIP(0.5, INF), alip_level),
    (L1Lift(1.0, 0.5), mean_level(lambda o: math.log1p(sum(p * abs(v - 1) for p, v in o)))),
    (L1Lift(INF, 0.5), mean_level(lambda o: math.log1p(sum(p * abs(v - 1) for p, v in o)))),
    (Chi2Lift(0.4, 0.9), mean_level(lambda o: math.log1p(math.sqrt(sum(p * (v - 1) ** 2 for p, v in o))))),
    (AlphaLift(1.0, 0.5, 2), mean_level(lambda o: math.log(sum(p * v**2 for p, v in o)) / 2)),
    (AlphaLift(1.0, INF, 10), mean_level(lambda o: math.log(sum(p * v**10 for p, v in o)) / 10)),
    (MutualInformation(0.1), lambda j, p, g: information(j, p)),
]
names = [str(guarantee) for guarantee, _ in CASES]


@pytest.mark.parametrize(("guarantee", "definition"), CASES, ids=names)
@settings(max_examples=30)
@given(channel=channels())
def test_levels_are_those_of_the_definition(
    guarantee: Guarantee, definition: Callable[..., float], channel: tuple[Joint, Protocol]
) -> None:
    expected = definition(*channel, guarantee)
    level = guarantee.level(*channel).value
    if math.isinf(expected):
        assert math.isinf(level)
        assert not guarantee.holds(*channel)
        return
    assert level == pytest.approx(expected, rel=1e-12, abs=1e-14)
    assert_decided(guarantee, *channel, level)


def assert_decided(guarantee: Guarantee, joint: Joint, protocol: Protocol, level: float) -> None:
    """The decision flips at the level: a hair above it holds, clearly below it does not."""
    if isinstance(guarantee, PerfectPrivacy):
        assert guarantee.holds(joint, protocol) == (level == 0)
        return
    assert guarantee.with_budget(level * (1 + 1e-11) + 1e-14).holds(joint, protocol)
    if level > 1e-6:
        assert not guarantee.with_budget(level * (1 - 1e-9)).holds(joint, protocol)


@pytest.mark.parametrize("columns", [2, 3])
@settings(max_examples=25)
@given(data=st.data())
def test_side_channels_are_those_of_the_definition(columns: int, data: st.DataObject) -> None:
    joint, protocol = data.draw(channels(columns))
    expected = srlip_level(joint, protocol)
    level = SRLIP(1.0).level(joint, protocol)
    if math.isinf(expected):
        assert math.isinf(level.value)
        return
    assert level.value == pytest.approx(expected, rel=1e-12, abs=1e-14)
    assert_decided(SRLIP(1.0), joint, protocol, level.value)
    # What the observer is said to know exists, and SRLIP is never weaker than LIP.
    for column, value in level.witness.given:
        assert value in {symbol[joint.inputs.columns.index(column)] for symbol in joint.inputs.symbols}
    assert LIP(1.0).level(joint, protocol).value <= level.value


@pytest.mark.parametrize("guarantee", [g for g, _ in CASES if isinstance(g, OutputGuarantee)], ids=str)
@settings(max_examples=20)
@given(channel=channels(plain=True))
def test_levels_of_rows_are_those_of_the_channel(guarantee: OutputGuarantee, channel: tuple[Joint, Protocol]) -> None:
    joint, protocol = channel
    used = protocol.matrix @ joint.p_input > 0
    largest = float(guarantee.output_levels(joint, protocol.matrix[used]).max())
    exact = guarantee.level(joint, protocol).value
    assert largest == pytest.approx(exact, rel=1e-6, abs=1e-7)
    assert guarantee.risks(joint, protocol.matrix[used]).shape == (int(used.sum()),)


@pytest.mark.parametrize("guarantee", [g for g, _ in CASES if isinstance(g, ConeGuarantee) and g.budget > 0], ids=str)
@settings(max_examples=20)
@given(channel=channels(plain=True))
def test_rows_are_in_the_cone_exactly_when_they_hold(guarantee: ConeGuarantee, channel: tuple[Joint, Protocol]) -> None:
    joint, protocol = channel
    level = guarantee.level(joint, protocol).value
    if level <= 1e-6:
        return
    for budget, expected in ((level * 1.001, True), (level * 0.999, False)):
        if math.isfinite(budget):
            cone = guarantee.with_budget(budget).cone(joint)
            scale = np.abs(cone) @ protocol.matrix.T
            assert bool((cone @ protocol.matrix.T <= 1e-12 * scale).all()) == expected


@settings(max_examples=60)
@given(channels())
def test_relations_between_the_guarantees(channel: tuple[Joint, Protocol]) -> None:
    """METHOD section 2: LDP ⇒ LIP ⇒ LDP of twice the budget; ALIP ⇒ LDP of the sum and I(S;Y) <= ε_u."""
    lip, ldp, mi = (kind(1.0).level(*channel).value for kind in (LIP, LDP, MutualInformation))
    assert lip <= ldp <= 2 * lip * (1 + 1e-15)
    assert ALIP(1.0, 1.0).level(*channel).value == lip
    up, down = ALIP(INF, 1.0).level(*channel).value, ALIP(1.0, INF).level(*channel).value
    assert max(up, down) == lip
    assert ldp <= (up + down) * (1 + 1e-15)
    assert mi <= up * (1 + 1e-12)
    orders = [AlphaLift(INF, 1.0, order).level(*channel).value for order in (2, 5, 20)]
    assert all(low <= high * (1 + 1e-12) for low, high in itertools.pairwise([*orders, up]))
    assert PerfectPrivacy().holds(*channel) == (lip == 0)


@settings(max_examples=40)
@given(channels())
def test_merging_outputs_never_raises_a_level(channel: tuple[Joint, Protocol]) -> None:
    """What is convex in a row, and I(S;Y) by data processing; inverse lifts are bounded here on the lift side only."""
    joint, protocol = channel
    if len(protocol.outputs) == 1:
        return
    merged = np.vstack([protocol.weights[:1] + protocol.weights[1:2], protocol.weights[2:]])
    read = joint.read_by(protocol.inputs.columns)
    for guarantee in (LIP(1.0), LDP(1.0), ALIP(0.4, 1.0), L1Lift(INF, 1.0), Chi2Lift(INF, 1.0), MutualInformation(1.0)):
        before = guarantee.level_for(read, protocol.weights).value
        assert guarantee.level_for(read, merged).value <= before * (1 + 1e-12)


def test_side_channels_need_two_columns() -> None:
    joint = Joint.from_counts([[3, 1], [1, 3]])
    protocol = Protocol(
        np.full((1, 2), 2**63, dtype=np.uint64),
        np.array([2**63], dtype=np.uint64),
        joint.inputs,
        Alphabet.of(None, 1, "X"),
    )
    with pytest.raises(SpecError, match="only X is published"):
        SRLIP(1.0).level(joint, protocol)


@pytest.mark.parametrize("guarantee", [g for g, _ in CASES], ids=str)
def test_the_smallest_distributions(guarantee: Guarantee) -> None:
    """One secret, one input, one output; nothing can leak."""
    for counts in ([[5]], [[5, 3]], [[5], [3]], [[0, 0], [2, 1]], [[2**29, 0], [0, 2**29]]):
        joint = Joint.from_counts(counts)
        weights = np.full((1, len(joint.inputs)), 2**63, dtype=np.uint64)
        level = guarantee.level_for(joint, weights)
        assert level.value == 0
        assert guarantee.holds_for(joint, weights)
        assert joint.counts[level.witness.secret].sum() > 0


def test_an_infinite_side_stays_infinite_when_a_budget_is_scaled() -> None:
    for guarantee in (ALIP(INF, 0.5), L1Lift(0.5, INF)):
        for budget in (0.0, 1e-3, 2.0):
            scaled = guarantee.with_budget(budget)
            assert {scaled.lower, scaled.upper} == {INF, budget}


def test_limits_on_beliefs_where_a_secret_never_occurs() -> None:
    low, high = ALIP(INF, 0.5).posterior_limits(np.array([0.5, 0.5, 0.0]))
    assert low.tolist() == pytest.approx([1 - 0.5 * math.exp(0.5)] * 2 + [0.0])
    assert high.tolist() == pytest.approx([0.5 * math.exp(0.5)] * 2 + [0.0])


@pytest.mark.parametrize("secrets", [4, 7])
def test_the_cone_with_a_level_is_that_of_all_pairs(secrets: int) -> None:
    random = np.random.default_rng(secrets)
    prior, guarantee = random.dirichlet(np.ones(secrets)), LDP(0.7)
    levelled = guarantee.levelled_cone(prior)
    assert levelled is not None
    assert len(levelled) == 2 * secrets
    near = prior * np.exp(random.uniform(-0.4, 0.4, size=(400, secrets)))
    posteriors = near / near.sum(axis=1, keepdims=True)
    allowed = (posteriors @ guarantee.posterior_cone(prior).T <= 1e-12).all(axis=1)
    least = (posteriors / prior).min(axis=1, keepdims=True)
    assert (np.hstack([posteriors, least]) @ levelled.T <= 1e-12).all(axis=1).tolist() == allowed.tolist()
    assert 0 < allowed.sum() < len(allowed)
    # No other level does where the least lift does not.
    levels = np.linspace(0, 1, 101)
    outside = posteriors[~allowed][:20]
    for posterior in outside:
        tried = np.hstack([np.tile(posterior, (101, 1)), levels[:, None]])
        assert (tried @ levelled.T > 0).any(axis=1).all()


def test_few_secrets_and_a_budget_of_nothing_have_no_level() -> None:
    assert LDP(0.7).levelled_cone(np.full(3, 1 / 3)) is None
    assert LDP(0.0).levelled_cone(np.full(5, 0.2)) is None
    assert LIP(0.7).levelled_cone(np.full(5, 0.2)) is None
