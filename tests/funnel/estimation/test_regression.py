"""Regressions on released records: against plain arithmetic on records, against simulation, and what they refuse."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

from funnel import LIP, Alphabet, Attribute, Joint, Protocol, SolverError, SpecError, fit
from funnel.estimation.plain_counts import PlainCounts
from funnel.estimation.regression import LinearSource, regress
from funnel.estimation.variance_ratios import variance_ratio

VALUES = Alphabet(
    ("ill", "marital-status", "age"),
    tuple((ill, status, age) for ill in ("no", "yes") for status in ("alone", "married") for age in ("20", "40", "60")),
)
COUNTS = np.array([90, 80, 40, 60, 70, 45, 20, 30, 40, 10, 25, 55])


def same(counts: np.ndarray[Any, Any] = COUNTS) -> LinearSource:
    """Records that are published as they are."""
    whole = np.eye(len(VALUES), dtype=np.uint64) * np.uint64(2**63)
    return LinearSource.of_plain(PlainCounts.of(Protocol(whole, whole[0], VALUES, VALUES, "invariant"), counts), True)


def records() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Design, illness and age of every record."""
    rows = [VALUES.symbols[x] for x in np.repeat(np.arange(len(VALUES)), COUNTS)]
    design = np.array([[1.0, status == "married", float(age)] for _, status, age in rows])
    return design, np.array([ill == "yes" for ill, _, _ in rows], dtype=float), np.array([float(r[2]) for r in rows])


def joint() -> Joint:
    """The table with a secret beside it."""
    town = np.array([0.3, 0.5, 0.2, 0.6, 0.4, 0.5, 0.7, 0.2, 0.5, 0.4, 0.6, 0.3])
    some = np.round(COUNTS * town).astype(int)
    return Joint.from_counts(np.array([some, COUNTS - some]), Alphabet(("town",), (("a",), ("b",))), VALUES)


def test_linear_regression_of_true_records_is_least_squares_with_robust_errors() -> None:
    X, ill, age = records()
    X = np.column_stack([X[:, :2], ill])
    found = regress(same(), "age ~ marital-status + ill")
    assert found.terms == ("Intercept", "marital-status[T.married]", "ill[T.yes]")
    coefficients = np.linalg.lstsq(X, age, rcond=None)[0]
    np.testing.assert_allclose(found.coefficients, coefficients, rtol=1e-9)
    bread = np.linalg.inv(X.T @ X)
    meat = (X.T * (age - X @ coefficients) ** 2) @ X
    np.testing.assert_allclose(found.covariance, bread @ meat @ bread, rtol=1e-8)
    assert found.r is not None
    np.testing.assert_array_equal(found.r, 0.0)


def test_logistic_regression_of_true_records_is_the_likeliest_with_robust_errors() -> None:
    X, ill, _ = records()
    found = regress(same(), "ill ~ marital-status + age", family="logistic", event="yes")
    mean = 1 / (1 + np.exp(-X @ found.coefficients))
    # The score is zero, and the errors are those of a sandwich by record.
    np.testing.assert_allclose(X.T @ (ill - mean), 0.0, atol=1e-7)
    bread = np.linalg.inv((X.T * (mean * (1 - mean))) @ X)
    meat = (X.T * (ill - mean) ** 2) @ X
    np.testing.assert_allclose(found.errors, np.sqrt(np.diag(bread @ meat @ bread)), rtol=1e-7)
    np.testing.assert_allclose(found.upper - found.lower, 2 * 1.959964 * found.errors, rtol=1e-6)
    np.testing.assert_allclose(found.odds_ratios, np.exp(found.coefficients))
    assert "logistic regression ill ~ marital-status + age" in str(found)
    assert found.to_dict()["terms"][2]["coefficient"] == found.coefficients[2]


def test_a_category_instead_of_a_number_and_an_interaction() -> None:
    found = regress(same(), "ill ~ C(age) * `marital-status`", family="logistic", event=["yes"])
    assert len(found.terms) == 6
    # A model with a term for every cell has the odds of the cell.
    odds = COUNTS[6] / COUNTS[0]
    assert found.odds_ratios[0] == pytest.approx(odds, rel=1e-7)


def test_errors_of_counted_records_have_the_factor_of_r() -> None:
    table = joint()
    whole = Joint.from_counts(
        np.array([[*COUNTS[:6], *[0] * 6], [*[0] * 6, *COUNTS[6:]]]), Alphabet(("ill",), (("no",), ("yes",))), VALUES
    )
    assert table.n == whole.n
    protocol = fit("invariant", whole, Attribute(1.0))
    plain = PlainCounts.of(protocol, COUNTS)
    of_population, of_records = (
        regress(LinearSource.of_plain(plain, sampling), "age ~ ill", sampling=sampling) for sampling in (True, False)
    )
    usual = regress(same(), "age ~ ill")
    r = of_population.r
    assert r is not None
    assert 0.05 < r[1] < 1
    np.testing.assert_allclose(of_population.errors, usual.errors * np.sqrt(1 + r), rtol=1e-2)
    np.testing.assert_allclose(of_records.errors, usual.errors * np.sqrt(r), rtol=5e-2)
    X, ill, _ = records()
    X = np.column_stack([X[:, 0], ill])
    rows = np.array([[1.0, symbol[0] == "yes"] for symbol in VALUES.symbols])
    off = np.array([float(symbol[2]) for symbol in VALUES.symbols]) - rows @ usual.coefficients
    np.testing.assert_allclose(r, variance_ratio(COUNTS, protocol, np.linalg.inv(X.T @ X) @ (rows.T * off)), rtol=1e-9)


def shown(protocol: Protocol, counts: np.ndarray[Any, Any], random: np.random.Generator) -> np.ndarray[Any, Any]:
    """The outputs of records with these values."""
    channel = protocol.matrix.T / protocol.matrix.T.sum(axis=1, keepdims=True)
    order = [VALUES.symbols.index(symbol) for symbol in protocol.inputs.symbols]
    return random.multinomial(counts[order], channel).sum(axis=0)


@pytest.mark.parametrize(("mechanism", "scale"), [("grr", 400), ("optimal", 4000)])
def test_estimating_equations_give_true_coefficients_and_their_errors(mechanism: str, scale: int) -> None:
    """Of 300 seeded releases: without bias, and spread as the errors say; intervals hold the truth in 91 to 99 %."""
    protocol, random = fit(mechanism, joint(), LIP(0.6)), np.random.default_rng(5)
    truth = regress(same(), "ill ~ marital-status", family="logistic", event="yes")
    found = [
        regress(
            LinearSource.of_outputs(shown(protocol, COUNTS * scale, random), protocol, False),
            "ill ~ marital-status",
            family="logistic",
            event="yes",
            sampling=False,
        )
        for _ in range(300)
    ]
    off = np.array([(one.coefficients - truth.coefficients) / one.errors for one in found])
    assert np.abs(off.mean(axis=0)).max() < 0.25
    assert 0.85 < off.std(axis=0).min() <= off.std(axis=0).max() < 1.15
    held = np.array([(one.lower <= truth.coefficients) & (truth.coefficients <= one.upper) for one in found])
    assert held.mean(axis=0).min() >= 0.91
    assert found[0].r is None
    assert "estimating equations" in str(found[0])


def test_a_sample_adds_its_own_errors() -> None:
    protocol = fit("grr", joint(), LIP(0.6))
    counts = shown(protocol, COUNTS * 400, np.random.default_rng(1))
    of_records, of_population = (
        regress(LinearSource.of_outputs(counts, protocol, sampling), "age ~ ill", sampling=sampling).errors
        for sampling in (False, True)
    )
    usual = regress(same(COUNTS * 400), "age ~ ill").errors
    # The variances add up, but for what estimated shares are off.
    np.testing.assert_allclose(of_population**2, of_records**2 + usual**2, rtol=0.02)


@pytest.mark.parametrize(
    ("formula", "settings", "said"),
    [
        ("ill", {}, r"is no formula; write OUTCOME ~ TERM \+ TERM"),
        ("income ~ age", {}, "the outcome 'income' is none of the columns ill, marital-status, age"),
        ("age ~ income", {}, "cannot be read"),
        ("age ~ ill +", {}, "cannot be read"),
        ("ill ~ age", {}, "no value of 'ill' stands for a number"),
        ("ill ~ age", {"family": "logistic"}, "needs the event: values of ill, one or more of no, yes"),
        ("ill ~ age", {"family": "logistic", "event": "maybe"}, "needs the event"),
        ("ill ~ age", {"family": "logistic", "event": ["no", "yes"]}, "all records have the event, or none"),
        ("age ~ ill", {"event": "yes"}, "an event is of a logistic regression"),
        ("age ~ ill", {"family": "poisson"}, '"linear" or "logistic"'),
        ("age ~ ill", {"confidence": 1.0}, "between 0 and 1"),
        ("age ~ ill + C(ill, contr.sum) - 1 + I(ill == 'yes')", {}, "depend on each other"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(formula: str, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        regress(same(), formula, **settings)


def test_numbers_that_values_stand_for_are_taken_and_others_left_out() -> None:
    found = regress(same(), "ill ~ age", numbers={"ill": {"no": 0.0, "yes": 1.0}})
    X, ill, age = records()
    slope = np.polyfit(age, ill, 1)
    np.testing.assert_allclose(found.coefficients, slope[::-1], rtol=1e-9)
    some = regress(same(), "age ~ ill", numbers={"age": {"20": 20.0, "40": 40.0, "60": None}})
    middle = (20 * (90 + 60) + 40 * (80 + 70)) / (90 + 60 + 80 + 70)
    assert some.coefficients[0] == pytest.approx(middle)
    assert X.shape[1] == 3


def test_separated_outcomes_have_no_coefficients() -> None:
    counts = COUNTS.copy()
    counts[[6, 7, 8]] = 0
    with pytest.raises(SolverError, match=r"too little of the coefficients|separation"):
        regress(same(counts), "ill ~ marital-status", family="logistic", event="yes")


def test_a_category_that_no_record_has_gets_no_coefficient() -> None:
    counts = COUNTS.copy()
    counts[[2, 5, 8, 11]] = 0
    found = regress(same(counts), "ill ~ C(age)", family="logistic", event="yes")
    assert found.terms == ("Intercept", "C(age)[T.40.0]")


def test_coefficients_that_answers_tell_only_in_sum_are_named() -> None:
    """Two values with the same answers cannot be told apart."""
    cells = Alphabet(("ill", "sex"), (("no", "f"), ("no", "m"), ("yes", "f"), ("yes", "m")))
    half = 2**62
    weights = np.array([[2**63, 2**63, half, half], [0, 0, half, half]], dtype=np.uint64)
    outputs = Alphabet(("ill", "sex"), (("no", "f or m"), ("yes", "f or m")))
    protocol = Protocol(weights, np.array([half, half], dtype=np.uint64), cells, outputs, "optimal")
    source = LinearSource.of_outputs(np.array([700, 300]), protocol, True)
    assert regress(source, "ill ~ 1", family="logistic", event="yes").coefficients[0] == pytest.approx(math.log(1.5))
    with pytest.raises(SpecError, match=r"do not tell these coefficients.*sex\[T.m\]"):
        regress(source, "ill ~ sex", family="logistic", event="yes")


def test_without_formulaic_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(SpecError, match=r"funnel\[formulas\]"):
        regress(same(), "age ~ ill")


def test_odds_ratios_are_of_logistic_regressions() -> None:
    with pytest.raises(SpecError, match="odds ratios are of a logistic regression"):
        _ = regress(same(), "age ~ ill").odds_ratios
