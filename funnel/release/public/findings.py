"""PublicFindings: what the audit of a release found, as it is published."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from funnel.findings.consistency import Consistency as FoundConsistency
from funnel.findings.followed import ExpectedObserver, FoundHistory, FoundObserver
from funnel.findings.of_release import Audited, DistributionFindings
from funnel.guarantees import Guarantee
from funnel.joint import FloatArray
from funnel.measures.utilities import Explained
from funnel.protocol import Protocol
from funnel.release.public.public_distributions import PublicDistributions
from funnel.release.public.rounding import (
    LIFT_DIGITS,
    TEXT_DIGITS,
    level_step,
    p_value,
    public_level,
    rounded,
    rounded_down,
    rounded_up,
    share_at_most,
)
from funnel.release.public_report import Consistency, Estimation, Figures, History, HistoryObserver


def public_history(history: FoundHistory, guarantee: Guarantee, distributions: PublicDistributions) -> History:
    """What is published of the histories of people: shares alone, none of them finer than other public shares.

    With noise, of exact findings about expected people alone. At least one step of shares may be outside the bound:
    whether it is nobody would tell those who know everybody else of the last one.
    """
    found: list[tuple[FoundObserver | ExpectedObserver, float]]
    if history.expected is None:
        found = [(one, one.outside / (history.units or distributions.n)) for one in history.observers]
    else:
        found = [(one, one.outside) for one in history.expected.observers]
    return History(
        versions=history.versions,
        share_alone=distributions.nats(history.share_alone),
        outside_at_most=share_at_most(max(share for one, share in found if one.bounded), distributions.step),
        observers=tuple(_observer(one, share, guarantee, distributions) for one, share in found),
        own=None if history.own is None else distributions.share(history.own),
        rare=None if history.rare is None else distributions.share(history.rare / distributions.n),
    )


def _observer(
    found: FoundObserver | ExpectedObserver, share: float, guarantee: Guarantee, distributions: PublicDistributions
) -> HistoryObserver:
    """Of exact findings, and the share of the people who are outside by these.

    Levels are upper bounds as `public_level`: never below the budget, which they are where the version is bounded.
    """
    level, of_all = (
        public_level(math.inf if one is None else one, guarantee, True) for one in (found.level, found.of_all)
    )
    outside = share_at_most(share, distributions.step)
    return HistoryObserver.like(found, level=level, level_of_all=of_all, outside_at_most=outside)


@dataclass(frozen=True)
class Witness:
    """The output and the secrets where a level is attained, and whether the output raises a belief."""

    output: str
    secret: str
    other: str | None
    upward: bool
    given: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class PublicFindings:
    """The audit of a release as it is published.

    Attributes
    ----------
    figures : Figures
        Levels are upper bounds, as `public_level` makes them: the budget where they keep it. Zero is told of
        a protocol that publishes the same of everybody. ``level_factor`` is an upper bound of the worst ratio of two
        probabilities: e to what is told of its logarithm, three digits, rounded up; None where the guarantee bounds
        something else. ``outside`` and ``consistency`` are None where frequencies are protected by noise, and the
        second where people have histories: how many tests there were would tell how many histories there are.
    estimation : Estimation
        ``radius`` and ``doubtful`` of the confidence set follow from public numbers but for whether few records are in
        some cells.
    witness : Witness or None
        Only of a release that does not keep its bound, or that rules a value out. Which output of one that does comes
        closest to it would tell those who know everybody else what the last one has.
    lift : ndarray, shape (c, b)
        As `PublicDistributions.lifts`.
    ratios : ndarray, shape (b,)
        Largest ratio between two secrets under each output, rounded up to the grid of levels and to two digits, to no
        more than a limit that holds.
    explained : Explained or None
    """

    figures: Figures
    estimation: Estimation
    witness: Witness | None
    lift: FloatArray
    ratios: FloatArray
    explained: Explained | None = None

    @classmethod
    def of(cls, audited: Audited, guarantee: Guarantee, distributions: PublicDistributions) -> PublicFindings:
        """Of what was found under public frequencies."""
        findings, confidence = audited.distribution, audited.distribution.confidence
        levels = _Levels(guarantee, findings.holds, _is_constant(distributions))
        explained = findings.explained
        if explained is not None:
            explained = replace(explained, share=min(1.0, distributions.nats(explained.share)))
        figures = Figures(
            holds=findings.holds,
            level=levels.public(findings.level),
            level_factor=_factor(findings, levels),
            rules_out=_rules_out(findings),
            worst_of_many_distributions=findings.level_ratio is None,
            utility=distributions.nats(findings.utility),
            # Something to know does not look like nothing.
            entropy=max(distributions.nats(findings.entropy), distributions.step) if findings.entropy > 0 else 0.0,
            share=distributions.nats(findings.share),
            secret_information=rounded(findings.secret_information, LIFT_DIGITS),
            guess_accuracy=distributions.nats(findings.guess_accuracy),
            prior_guess_accuracy=distributions.nats(findings.prior_guess_accuracy),
            rows=audited.rows,
            outside=audited.outside,
            consistency=None if audited.history is not None else _consistency(audited.consistency),
            history=None if audited.history is None else public_history(audited.history, guarantee, distributions),
            explained=None if explained is None else explained.share,
        )
        estimation = Estimation.like(
            confidence,
            radius=rounded(confidence.radius, TEXT_DIGITS),
            records=confidence.n,
            doubtful=confidence.doubtful,
            robust_level=levels.known(findings.robust_level),
            plain_level=levels.public(findings.plain_level),
            robust_lift_level=levels.known(findings.robust_lift_level),
        )
        lift = _within(distributions.lifts(findings.lift), guarantee, findings.holds)
        return cls(figures, estimation, _witness(findings), lift, _ratios(findings, guarantee), explained)


def _witness(findings: DistributionFindings) -> Witness | None:
    if findings.holds and not _rules_out(findings):
        return None
    return Witness(
        findings.witness_output,
        findings.witness_secret,
        findings.witness_other_secret,
        findings.witness_upward,
        findings.witness_given,
    )


def _consistency(found: FoundConsistency | None) -> Consistency | None:
    return None if found is None else Consistency.like(found, p_value=p_value(found.p_value))


@dataclass(frozen=True)
class _Levels:
    """How the levels of one release are told."""

    guarantee: Guarantee
    holds: bool
    constant: bool

    def public(self, level: float) -> float:
        # That a protocol tells nothing at all can be seen from its weights, whatever the counts are.
        return 0.0 if self.constant and level == 0 else public_level(level, self.guarantee, self.holds)

    def known(self, level: float | None) -> float | None:
        return None if level is None else self.public(level)


def _is_constant(distributions: PublicDistributions) -> bool:
    """Whether the same is published of everybody: no output changes what is believed of the input."""
    if isinstance(distributions.posterior, np.ndarray):
        seen = distributions.posterior[distributions.p_output > 0]
        return bool((np.ptp(seen, axis=0) < 1e-12).all())
    rows = (distributions.sources(int(y)) for y in np.flatnonzero(distributions.p_output > 0))
    first, shares = next(rows)
    return all(np.array_equal(first, inputs) and np.ptp([shares, part], axis=0).max() < 1e-12 for inputs, part in rows)


def largest_ratios(lift: FloatArray) -> FloatArray:
    """Largest P(y|s)/P(y|s') of every output, shape (b,), from lifts (c, b), since the P(y) cancel.

    Infinite where y excludes a secret that another record of y may have; nan where y never occurs.
    """
    known = ~np.isnan(lift)
    most = np.where(known, lift, -np.inf).max(axis=0)
    least = np.where(known, lift, np.inf).min(axis=0)
    ratios = np.where(known.any(axis=0), np.inf, np.nan)
    return np.asarray(np.divide(most, least, out=ratios, where=known.any(axis=0) & (least > 0)))


def _within(lifts: FloatArray, guarantee: Guarantee, holds: bool) -> FloatArray:
    """Rounded lifts, no further from 1 than limits that are proven to hold."""
    limits = guarantee.lift_limits
    if limits is None or not holds:
        return lifts
    return np.asarray(np.clip(lifts, rounded_up(limits[0]), rounded_down(limits[1])))


def _ratios(findings: DistributionFindings, guarantee: Guarantee) -> FloatArray:
    # On the grid of levels: finer ratios would tell those who know everybody else what the last one has.
    step = level_step(guarantee.budget)
    ratios = np.array([_rounded_ratio(float(ratio), step) for ratio in largest_ratios(findings.lift)])
    limit = guarantee.ratio_limit
    # Rounding must not seem to break a limit that is proven to hold.
    return ratios if limit is None or not findings.holds else np.minimum(ratios, rounded_up(limit))


def _rounded_ratio(ratio: float, step: float) -> float:
    """A ratio up to the next power of e^step, and to two digits."""
    if step == 0 or not 1 < ratio < math.inf:
        return rounded_up(ratio, LIFT_DIGITS)
    return rounded_up(max(ratio, math.exp(math.ceil(math.log(ratio) / step) * step)), LIFT_DIGITS)


def _factor(findings: DistributionFindings, levels: _Levels) -> float | None:
    if findings.level_ratio is not None:
        numerator, _, denominator = findings.level_ratio.partition("/")
        level = math.log(int(numerator)) - math.log(int(denominator))
        # The level, where it is that of this ratio, is proven not to be below its logarithm.
        level = findings.level if math.isclose(level, findings.level) else level * (1 + 1e-12)
    elif findings.witness_other_secret is not None and math.isfinite(findings.level):
        # Two secrets compared without an exact fraction: a worst case over many distributions.
        level = findings.level
    else:
        return None
    return rounded_up(math.exp(levels.public(level)))


def _rules_out(findings: DistributionFindings) -> bool:
    """Whether the level is infinite because an output excludes a secret, not because a budget of zero is exceeded."""
    if not math.isinf(findings.level) or findings.level_ratio is not None:
        return False
    return bool(findings.witness_given) or bool((findings.lift == 0).any())


@dataclass(frozen=True, eq=False)
class PublicRelease:
    """What is told of the people of a release, beside the rows and the protocol that they were drawn from.

    Attributes
    ----------
    distributions : PublicDistributions
    findings : PublicFindings
    mechanisms : tuple of dict
        The comparison of mechanisms, best first, with the keys of `funnel.planning.PlanRow.to_dict`.
    """

    distributions: PublicDistributions
    findings: PublicFindings
    mechanisms: tuple[dict[str, Any], ...]

    @classmethod
    def of(
        cls,
        audited: Audited,
        protocol: Protocol,
        guarantee: Guarantee,
        mechanisms: Iterable[dict[str, Any]] = (),
    ) -> Self:
        """Of public frequencies and what was found under them.

        Raises
        ------
        DataError
            If the protocol reads other columns.
        """
        distributions = PublicDistributions.of(audited.frequencies, protocol)
        told = tuple(distributions.compared(row, guarantee) for row in mechanisms)
        return cls(distributions, PublicFindings.of(audited, guarantee, distributions), told)
