"""The best channel whose secrets are drawn anew between classes: against the whole programme with that as equations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import funnel
from funnel.alphabet import Alphabet
from funnel.joint import FloatArray, Joint
from funnel.solver.budget import Budget
from funnel.solver.invariant import counted
from funnel.solver.within_classes import within_classes


@st.composite
def joints(draw: st.DrawFn) -> Joint:
    """A secret of two or three values and two to four classes, some of which lack a secret."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    c, k = draw(st.integers(2, 3)), draw(st.integers(2, 4))
    counts = random.integers(0, 40, (c, k))
    counts[0] += 1
    counts[1:, 1] *= draw(st.integers(0, 1))
    return Joint.from_counts(counts + np.eye(c, k, dtype=np.int64)).with_secret()


def by_equations(joint: Joint, epsilon: float, worth: FloatArray) -> float:
    """The optimum over all T(y|x), one variable each, where moves are asked to be of that kind by equations."""
    seen = np.flatnonzero(joint.p_input)
    n, law, most = len(seen), joint.p_input[seen], math.exp(epsilon)
    symbols = [joint.inputs.symbols[x] for x in seen]
    of_class = [x[-1] for x in symbols]
    sizes = {k: law[[one == k for one in of_class]].sum() for k in of_class}
    at = {(y, x): y * n + x for y in range(n) for x in range(n)}

    def row(*entries: tuple[tuple[int, int], float]) -> FloatArray:
        out = np.zeros(n * n)
        for place, value in entries:
            out[at[place]] += value
        return out

    equal = [row(*(((y, x), 1.0) for y in range(n))) for x in range(n)]
    equal += [row(*(((y, x), law[x]) for x in range(n))) for y in range(n)]
    sums = [1.0] * n + list(law)
    below, limits = [], []
    for y, x, other in itertools.product(range(n), repeat=3):
        if of_class[x] == of_class[other] != of_class[y] and x < other:
            equal.append(row(((y, x), 1.0), ((y, other), -1.0)))
            sums.append(0.0)
        if of_class[x] == of_class[other] and x != other:
            below.append(row(((y, x), 1.0), ((y, other), -most)))
            limits.append(0.0)
    for y, other, x in itertools.product(range(n), repeat=3):
        if of_class[y] == of_class[other] != of_class[x] and y < other:
            equal.append(row(((y, x), law[other] / sizes[of_class[y]]), ((other, x), -law[y] / sizes[of_class[y]])))
            sums.append(0.0)
    prior = joint.p_secret
    for y, s in itertools.product(range(n), range(len(prior))):
        mass = [((y, x), joint.counts[s, seen[x]] / joint.n) for x in range(n)]
        for sign, limit in ((1.0, most), (-1.0, -1 / most)):
            below.append(row(*((place, sign * value) for place, value in mass)))
            limits.append(limit * prior[s] * law[y])
    gain = row(*(((x, x), worth[x]) for x in range(n)))
    found = linprog(-gain, np.array(below), limits, np.array(equal), sums, bounds=(0, 1), method="highs")
    assert found.status == 0
    return float(-found.fun)


@settings(max_examples=25, deadline=None)
@given(joints(), st.sampled_from([0.3, 1.0, 2.0]), st.sampled_from(["root", "share"]))
def test_it_is_the_best_of_its_kind_and_below_the_certified_bound(joint: Joint, epsilon: float, weights: str) -> None:
    seen = np.flatnonzero(joint.p_input)
    worth = counted(joint, weights)[seen]  # type: ignore[arg-type]
    guarantee = funnel.Attribute(epsilon)
    flows = within_classes(joint, guarantee, worth, 0.0, Budget.of(None))
    assert flows is not None
    law = joint.p_input[seen]
    assert flows.sum(axis=0) == pytest.approx(law, abs=1e-8)
    assert flows.sum(axis=1) == pytest.approx(law, abs=1e-8)
    assert flows.min() >= -1e-9
    kept = float(worth @ (np.diagonal(flows) / law))
    assert kept == pytest.approx(by_equations(joint, epsilon, worth), abs=1e-6)
    rows = np.zeros((len(seen), len(joint.inputs)))
    for x, symbol in enumerate(joint.inputs.symbols):
        # A secret that nobody of a class has is drawn as one that somebody has.
        of = [j for j, y in enumerate(seen) if joint.inputs.symbols[y][-1] == symbol[-1]]
        rows[:, x] = (flows / law)[:, next((j for j in of if seen[j] == x), of[0])]
    assert guarantee.output_levels(joint, rows).max() <= epsilon + 1e-6
    assert kept <= funnel.optimal(joint, guarantee, utility="unchanged", weights=weights, gap=1e-3).bound + 1e-6


def test_other_guarantees_and_columns_are_left_to_the_search() -> None:
    joint = Joint.from_counts([[30, 10], [10, 50]]).with_secret()
    worth = counted(joint, "share")
    assert within_classes(joint, funnel.LIP(1.0), worth, 0.0, Budget.of(None)) is None
    inputs = Alphabet(("one", "two"), (("a", "p"), ("b", "p")))
    two = Joint.from_counts([[30, 10], [10, 50]], inputs=inputs).with_secret()
    assert within_classes(two, funnel.Attribute(1.0), worth, 0.0, Budget.of(None)) is None
