"""The donor attack on optimal protocols: an observer who knows the other columns of a person asks for the secret."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import funnel
from funnel import Guarantee, Joint, Protocol
from funnel.errors import SpecError
from funnel.joint import FloatArray
from funnel.solver import invariant
from tests.projects import ADULT

#: Below e by less than 1e-15.
E_FROM_BELOW = sum((Fraction(1, math.factorial(k)) for k in range(18)), Fraction(0))

EDUCATION = {
    "HS-grad": "diploma",
    "Some-college": "some college",
    "Assoc-acdm": "associate",
    "Assoc-voc": "associate",
    "Bachelors": "bachelor",
    "Masters": "higher",
    "Prof-school": "higher",
    "Doctorate": "higher",
}


@pytest.fixture(scope="module")
def joint() -> Joint:
    """Income of Adult, published with education in six groups and sex: inputs are (income, education, sex)."""
    table = pq.read_table(ADULT, columns=["income", "education", "sex"])
    grouped = pa.array([EDUCATION.get(value, "no diploma") for value in table["education"].to_pylist()])
    table = table.set_column(1, "education", grouped)
    return Joint.from_table(table, secret=["income"], inputs=["education", "sex", "income"])


def unrefused(joint: Joint, guarantee: Guarantee, monkeypatch: pytest.MonkeyPatch) -> Protocol:
    """The optimum, below the refusal of a published secret that nothing protects."""
    monkeypatch.setattr(invariant, "check_published_secret", lambda guarantee, joint: None)
    return invariant.invariant_optimum(joint, guarantee, "share", 1e-4).protocol


def by_secret_and_rest(joint: Joint, protocol: Protocol) -> tuple[list[list[list[int]]], int, int]:
    """Weights [y][s][u] as whole numbers, and how many secrets and other values there are."""
    c = len(joint.secret)
    u = len(joint.inputs) // c
    return [[row[s * u : (s + 1) * u] for s in range(c)] for row in protocol.weights.tolist()], c, u


def own_beliefs(joint: Joint, protocol: Protocol) -> tuple[FloatArray, FloatArray]:
    """For a person (s, u) published unchanged: the observer's belief in s, knowing u, and the mass of such records.

    Both of shape (c, u).
    """
    c = len(joint.secret)
    u = len(joint.inputs) // c
    people = joint.counts.sum(axis=0).reshape(c, u) / joint.n
    channel = protocol.matrix.reshape(c, u, c, u)[:, np.arange(u), :, np.arange(u)]
    # Of shape (u, published secret, secret).
    together = channel * people.T[:, None, :]
    own = np.diagonal(together, axis1=1, axis2=2).T
    published = together.sum(axis=2).T
    return np.divide(own, published, out=np.ones_like(own), where=published > 0), own


def test_an_optimum_for_the_record_alone_gives_unchanged_secrets_away(
    joint: Joint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under lip:1 the likeliest secret is the true one for every unchanged record, and for a third it is certain."""
    guarantee = funnel.LIP(1.0)
    with pytest.raises(SpecError, match="an observer who finds a record by its other columns would read income in it"):
        funnel.optimal(joint, guarantee, utility="unchanged")
    protocol = unrefused(joint, guarantee, monkeypatch)
    assert guarantee.holds(joint, protocol)
    belief, unchanged = own_beliefs(joint, protocol)
    assert unchanged.sum() > 0.8
    assert belief.min() > 0.5
    assert (belief * unchanged).sum() / unchanged.sum() > 0.9
    assert unchanged[belief > 0.999].sum() / unchanged.sum() > 0.3
    # No belief in the rarer secret was above 3/4 before; a quarter of its unchanged records are certain now.
    people = joint.counts.sum(axis=0).reshape(belief.shape)
    assert (people[1] / people.sum(axis=0)).max() < 0.75
    assert unchanged[1][belief[1] > 0.999].sum() / unchanged[1].sum() > 0.25
    assert not funnel.Attribute(1.0).holds(joint, protocol)


def test_attribute_protection_bounds_the_odds_of_every_secret_exactly(
    joint: Joint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under attribute:1 no record multiplies the odds of two secrets by more than e, whatever u is known."""
    protocol = unrefused(joint, funnel.Attribute(1.0), monkeypatch)
    weights, c, u = by_secret_and_rest(joint, protocol)
    largest = Fraction(1)
    for row in weights:
        for known in range(u):
            of_secrets = [row[s][known] for s in range(c)]
            if any(of_secrets):
                assert all(of_secrets)
                largest = max(largest, Fraction(max(of_secrets), min(of_secrets)))
    assert Fraction(27, 10) < largest <= E_FROM_BELOW
    belief, unchanged = own_beliefs(joint, protocol)
    assert unchanged.sum() > 0.7
    # Of some unchanged secrets an observer still believes the other one.
    assert belief.min() < 0.5
    assert (belief * unchanged).sum() / unchanged.sum() < 0.85


def test_the_same_odds_under_the_record_alone_have_no_bound(joint: Joint, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = unrefused(joint, funnel.LIP(1.0), monkeypatch)
    weights, c, u = by_secret_and_rest(joint, protocol)
    ratios = [
        Fraction(max(row[s][known] for s in range(c)), max(1, min(row[s][known] for s in range(c))))
        for row in weights
        for known in range(u)
    ]
    assert max(ratios) > 10**6
