"""Linear and logistic regression on records that were changed at random: estimating equations and sandwich intervals.

The coefficients β solve ``Σ_x p(x) s(x; β) = 0``, where s is the score of a value x and p are the shares of true
values. Records that are counted as usual give p; of others p is estimated without bias by the inverse of the channel,
so that the equation is the sum of ``Σ_x W(x, y) s(x; β)`` over records y. With the information
``A = -Σ_x p(x) ∂s/∂β`` a coefficient is off by ``A⁻¹ Σ_x (p̂ - p)(x) s(x; β)`` to the first order: a linear function of
p̂, whose variance the channel gives (the sandwich).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from funnel.alphabet import Alphabet
from funnel.errors import SolverError, SpecError
from funnel.estimation.combined import NoisyShares, fit_of
from funnel.estimation.departed_shares import DepartedShares
from funnel.estimation.design import Design, design_of
from funnel.estimation.fit import normal_quantile, require_few
from funnel.estimation.layout import errors_of, json_figure, json_settings, table
from funnel.estimation.linear import Aimed
from funnel.estimation.number_categories import StandFor
from funnel.estimation.plain_counts import PlainCounts
from funnel.estimation.rare import AtMost, RareValues
from funnel.joint import FloatArray, IntArray
from funnel.protocol import Protocol

Family = Literal["linear", "logistic"]
_STEPS = 100
# Of a standard deviation of the linear predictor.
_CLOSE = 1e-9
# Of the largest eigenvalue of the information.
_SINGULAR = 1e-10


@dataclass(frozen=True, eq=False)
class Regression:
    """Coefficients of a regression of true values.

    Attributes
    ----------
    formula : str
    family : "linear" or "logistic"
    terms : tuple of str
        Names of the p coefficients.
    coefficients, errors, lower, upper : ndarray, shape (p,)
        With standard errors and intervals.
    covariance : ndarray, shape (p, p)
    r : ndarray, shape (p,), or None
        Usual (sandwich) variances are multiplied by 1 + r; None where records are not counted as usual.
    records : int
    method : str
    sampling : bool
        Whether errors are of the population that the records are a sample of, or of these records.
    confidence : float
        Of each interval by itself.
    """

    formula: str
    family: Family
    terms: tuple[str, ...]
    coefficients: FloatArray
    errors: FloatArray
    lower: FloatArray
    upper: FloatArray
    covariance: FloatArray
    r: FloatArray | None
    records: int
    method: str
    sampling: bool
    confidence: float

    @property
    def odds_ratios(self) -> FloatArray:
        """e to the coefficients of a logistic regression, shape (p,).

        Raises
        ------
        SpecError
            If it is a linear one.
        """
        if self.family != "logistic":
            raise SpecError('odds ratios are of a logistic regression; ask for family="logistic"')
        return np.asarray(np.exp(self.coefficients))

    @property
    def about(self) -> str:
        """What the figures are, in one sentence."""
        how = "counted as usual" if self.method == "count" else f"by {self.method}"
        what = "changes" if self.method == "count" else "answers"
        usual = "; usual standard errors for the population are multiplied by √(1 + r)" if self.r is not None else ""
        return (
            f"{self.records:,} records, {how}; {self.family} regression {self.formula}; "
            f"{errors_of(what, self.sampling)}; intervals at {self.confidence:.0%}{usual}"
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values."""
        rows = zip(self.terms, self.coefficients, self.errors, self.lower, self.upper, strict=True)
        names = ("coefficient", "error", "lower", "upper")
        terms = [{"term": term, **dict(zip(names, map(json_figure, figures), strict=True))} for term, *figures in rows]
        if self.r is not None:
            terms = [{**one, "r": json_figure(r)} for one, r in zip(terms, self.r, strict=True)]
        return {
            **json_settings(self, "formula", "family", "records", "method", "sampling", "confidence"),
            "terms": terms,
        }

    def __repr__(self) -> str:
        head = ("", "coefficient", "error", "from", "to", *(("r",) if self.r is not None else ()))
        rows = [head]
        figures = zip(self.coefficients, self.errors, self.lower, self.upper, strict=True)
        for place, (term, row) in enumerate(zip(self.terms, figures, strict=True)):
            more = () if self.r is None else (f"{self.r[place]:.3f}",)
            rows.append((term, *(f"{value:.4g}" for value in row), *more))
        return table(rows, 1, self.about)


def regress(
    source: LinearSource,
    formula: str,
    *,
    family: Family = "linear",
    event: str | Collection[str] | None = None,
    numbers: Mapping[str, StandFor] | None = None,
    sampling: bool = True,
    confidence: float = 0.95,
) -> Regression:
    """Fit a regression by what a release tells of true shares.

    Parameters
    ----------
    source : LinearSource
        Made with the same ``sampling``.
    formula : str
        Such as ``"income ~ education + sex"``.
    family, event, numbers
        As of `funnel.analysis.Release.regress`.
    sampling : bool
    confidence : float

    Raises
    ------
    SpecError
        If the formula does not fit the columns, or the records do not tell a coefficient.
    SolverError
        If no coefficients solve the equations.
    """
    quantile = normal_quantile(confidence)
    if family not in ("linear", "logistic"):
        raise SpecError(f'the family of a regression is "linear" or "logistic", not {family!r}')
    design = design_of(source.values, source.fitted, formula, family == "logistic", event, numbers or {})
    _require_independent(design, source.fitted)
    start = _solved(design, source.fitted, np.zeros(len(design.terms)), family)
    coefficients = _solved(design, source.unbiased, start, family)
    bread = _inverse(_information(design, source.unbiased, coefficients, family), design)
    influence = bread @ _scores(design, coefficients, family)
    found = source.aimed(influence)
    if not found.told.all():
        untold = ", ".join(term for term, told in zip(design.terms, found.told, strict=True) if not told)
        raise SpecError(
            f"the records do not tell these coefficients, since answers leave values apart only in sum: {untold}; "
            "use fewer columns or coarser values in the formula"
        )
    errors = np.sqrt(np.maximum(np.diag(found.covariance), 0.0))
    off = np.array([found.off(unit) for unit in np.eye(len(errors))])
    reach = quantile * errors + off
    return Regression(
        formula,
        family,
        design.terms,
        coefficients,
        errors,
        coefficients - reach,
        coefficients + reach,
        found.covariance,
        None if source.ratio is None else source.ratio(influence),
        source.records,
        source.method,
        sampling,
        confidence,
    )


def _means(design: Design, coefficients: FloatArray, family: Family) -> FloatArray:
    """The expected y of every value, (a,)."""
    linear = design.matrix @ coefficients
    return linear if family == "linear" else np.asarray(0.5 * (1 + np.tanh(linear / 2)))


def _scores(design: Design, coefficients: FloatArray, family: Family) -> FloatArray:
    """The score of every value, (p, a); zero where a value is left out."""
    return np.asarray(design.matrix.T * (design.y - _means(design, coefficients, family)))


def _information(design: Design, shares: FloatArray, coefficients: FloatArray, family: Family) -> FloatArray:
    means = _means(design, coefficients, family)
    weights = shares if family == "linear" else shares * means * (1 - means)
    return np.asarray((design.matrix.T * weights) @ design.matrix)


def _require_independent(design: Design, shares: FloatArray) -> None:
    """That the columns of the design are independent among values that occur."""
    gram = (design.matrix.T * shares) @ design.matrix
    scale = np.sqrt(np.diag(gram))
    if (scale == 0).any() or np.linalg.eigvalsh(gram / np.outer(scale, scale))[0] < _SINGULAR:
        raise SpecError(
            f"the terms {', '.join(design.terms)} depend on each other among the values that occur; take one out"
        )


def _inverse(information: FloatArray, design: Design) -> FloatArray:
    scale = np.sqrt(np.maximum(np.diag(information), 0.0))
    if (scale == 0).any() or np.linalg.eigvalsh(information / np.outer(scale, scale))[0] < _SINGULAR:
        raise SolverError(
            f"the records tell too little of the coefficients of {', '.join(design.terms)}: their information is not "
            "above zero; use fewer terms, or more records"
        )
    return np.asarray(np.linalg.inv(information))


def _solved(design: Design, shares: FloatArray, start: FloatArray, family: Family) -> FloatArray:
    """The coefficients at which the scores of these shares add up to nothing, by Newton's method with halved steps."""
    coefficients = start
    for _ in range(_STEPS):
        total = _scores(design, coefficients, family) @ shares
        step = _inverse(_information(design, shares, coefficients, family), design) @ total
        # A step is as long as one unit of the linear predictor at most, as large odds ask for.
        longest = float(np.abs(design.matrix @ step).max())
        if longest <= _CLOSE:
            return np.asarray(coefficients + step)
        coefficients = coefficients + (step if family == "linear" else step * min(1.0, 2.0 / longest))
    raise SolverError(
        "no coefficients solve the equations: the outcome is the same for all records with some values (separation); "
        "group these values, or take their term out"
    )


@dataclass(frozen=True, eq=False)
class LinearSource:
    """What a release tells of the shares of true values, for statistics that are functions of these.

    Attributes
    ----------
    values : Alphabet
        The a values.
    fitted : ndarray, shape (a,)
        Shares of them, none below zero.
    unbiased : ndarray, shape (a,)
        Unbiased estimates of them, some perhaps below zero.
    aimed : callable
        Of weights (k, a): the linear functions of the shares with their covariance.
    ratio : callable or None
        Of weights (k, a): r of each, where records are counted as usual.
    records : int
    method : str
    """

    values: Alphabet
    fitted: FloatArray
    unbiased: FloatArray
    aimed: Callable[[FloatArray], Aimed]
    ratio: Callable[[FloatArray], FloatArray] | None
    records: int
    method: str

    @classmethod
    def of_plain(cls, plain: PlainCounts, sampling: bool) -> LinearSource:
        """Of records that are counted as usual."""
        return cls(
            plain.values,
            plain.shares,
            plain.shares,
            lambda weights: plain.aimed(weights, sampling),
            plain.ratio,
            plain.n,
            "count",
        )

    @classmethod
    def of_outputs(
        cls,
        counts: IntArray,
        protocol: Protocol,
        sampling: bool,
        beside: NoisyShares | None = None,
        at_most: AtMost | None = None,
        rounded: float = 0.0,
        departed: DepartedShares | None = None,
    ) -> LinearSource:
        """Of counts (b,) of outputs that stand for sets of values; other parameters as of `funnel.estimate`.

        Raises
        ------
        SpecError
            If there are too many values.
        SolverError
            If the likeliest shares are not found.
        """
        require_few(protocol)
        fit = fit_of(RareValues.of(protocol, at_most, rounded, departed), "em", beside)
        shares = fit.aimed(counts, np.eye(len(protocol.inputs)), sampling)
        return cls(
            protocol.inputs,
            np.maximum(shares.fitted, 0.0),
            shares.unbiased,
            lambda weights: fit.aimed(counts, weights, sampling),
            None,
            int(counts.sum()),
            "estimating equations" if beside is None else "estimating equations, with the noisy counts",
        )
