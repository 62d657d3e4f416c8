"""What stays unchanged in an invariant release, by budget: records, columns and values of the secret."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.certificate import Weighting
from funnel.errors import FunnelError
from funnel.guarantees import Guarantee, parse_guarantee
from funnel.joint import FloatArray, Joint
from funnel.measures.unchanged_shares import Unchanged, unchanged
from funnel.measures.utilities import INFORMATION
from funnel.planning import PlanRow
from funnel.protocol import INVARIANT, Protocol
from funnel.solver.invariant import share_kept
from funnel.solver.optimum import optimal
from funnel.tradeoff.sweep import Point, Sweep, rising, varied
from funnel.tradeoff.trials import Trials

SECONDS = 5.0
"""Seconds for one optimisation of one point, as work that is counted."""
PARTS = (0.25, 0.5, 1.0, 1.5, 2.0)
"""Budgets that are looked at, as parts of the one of the spec: each takes as long as a release."""
# Of the records: as finely as a curve can be read.
_GAP = 1e-3


@dataclass(frozen=True)
class UnchangedPoint:
    """The invariant protocol at one budget.

    Attributes
    ----------
    guarantee : str
    budget : float
        Nats.
    share : float or None
        Expected share of the records that are wholly unchanged; None where there is no protocol, for ``reason``.
    columns : list of float
        By published column, the share of the records whose value there is the true one.
    secrets : list of float
        By value of the secret, the share of its records whose published secret is the true one where the secret is
        published, and that are wholly unchanged where it is not; the most common value first.
    weighted, most : float or None
        The weighted share that the protocol is chosen by, and what no protocol exceeds.
    kept : float or None
        I(X;Y) / H(X).
    level : float or None
        Exact, nats.
    reason : str or None
    """

    guarantee: str
    budget: float
    share: float | None
    columns: list[float]
    secrets: list[float]
    weighted: float | None
    most: float | None
    kept: float | None
    level: float | None
    reason: str | None


@dataclass(frozen=True)
class UnchangedCurve:
    """The points of one guarantee by ascending budget.

    Attributes
    ----------
    guarantee : str
        As the spec, or the command, has it.
    weights : str
        As the spec has it.
    columns : tuple of str
        Published ones.
    secrets : tuple of str
        Values of the secret, the most common one first.
    secret_published : bool
    points : tuple of UnchangedPoint
    """

    guarantee: str
    weights: Weighting
    columns: tuple[str, ...]
    secrets: tuple[str, ...]
    secret_published: bool
    points: tuple[UnchangedPoint, ...]

    @property
    def usable(self) -> tuple[UnchangedPoint, ...]:
        """Those where there is a protocol."""
        return tuple(point for point in self.points if point.share is not None)

    def share_at(self, budget: float) -> float | None:
        """Records wholly unchanged at one of the budgets; None where there is no protocol."""
        return next((point.share for point in self.points if point.budget == budget), None)

    def as_sweep(self) -> Sweep:
        """The same protocols by the information that they keep."""
        return Sweep(
            self.guarantee,
            tuple(point.budget for point in self.points),
            tuple(
                Point(INVARIANT, one.guarantee, one.budget, one.kept, one.level, None, one.reason, unchanged=one.share)
                for one in self.points
            ),
        )


def unchanged_curve(
    joint: Joint,
    guarantee: Guarantee,
    weights: Weighting,
    trials: Trials,
    *,
    fitted: PlanRow | None = None,
    parts: Sequence[float] = PARTS,
    seconds: float = SECONDS,
) -> UnchangedCurve:
    """Fit the invariant protocol at several budgets.

    Parameters
    ----------
    joint : Joint
        Public counts (c, a) over what is published, with the secret where that is published too.
    guarantee : Guarantee
        As for `funnel.tradeoff.sweep.sweep`.
    weights : "root", "share" or "uniform"
        What values count that stay as they are.
    trials, parts, seconds
        As for `funnel.tradeoff.sweep.sweep`.
    fitted : PlanRow, optional
        Of this mechanism under the guarantee itself: it is not fitted again, and the page tells what the plan does.
    """
    known = [] if fitted is None or fitted.protocol is None else [_point_of_row(joint, guarantee, weights, fitted)]
    budgets = [one for one in varied(guarantee, parts) if not known or one != guarantee]
    tasks = [(joint, str(one), weights, seconds) for one in budgets]
    found = trials.results(_point, tasks, UnchangedPoint)
    points = sorted([*known, *found], key=lambda point: point.budget)
    labels = joint.secret.labels
    return UnchangedCurve(
        str(guarantee),
        weights,
        joint.inputs.columns,
        tuple(labels[s] for s in _by_frequency(joint)),
        _publishes_secret(joint),
        tuple(rising(points, lambda point: point.weighted)),
    )


def share_unchanged(joint: Joint, text: str, weights: Weighting, seconds: float) -> float | None:
    """Records that the invariant protocol leaves wholly unchanged under a guarantee; None where there is none."""
    return _point(joint, text, weights, seconds).share


def _point(joint: Joint, text: str, weights: Weighting, seconds: float) -> UnchangedPoint:
    """One budget, by whatever worker."""
    guarantee = parse_guarantee(text)
    try:
        found = optimal(joint, guarantee, _GAP, time_limit=seconds, utility="unchanged", weights=weights)
    except FunnelError as error:
        return UnchangedPoint(text, guarantee.budget, None, [], [], None, None, None, None, str(error))
    return _point_of(joint, guarantee, found.protocol, found.utility, found.bound)


def _point_of_row(joint: Joint, guarantee: Guarantee, weights: Weighting, row: PlanRow) -> UnchangedPoint:
    assert row.protocol is not None
    weighted = share_kept(joint, row.protocol, weights)
    bound = 1.0 if row.certificate is None else weighted + row.certificate.gap
    return _point_of(joint, guarantee, row.protocol, weighted, bound)


def _point_of(joint: Joint, guarantee: Guarantee, protocol: Protocol, weighted: float, bound: float) -> UnchangedPoint:
    stays, level = unchanged(joint, protocol), guarantee.level(joint, protocol).value
    return UnchangedPoint(
        guarantee=str(guarantee),
        budget=guarantee.budget,
        share=stays.share,
        columns=stays.by_column.tolist(),
        secrets=_by_secret(joint, protocol, stays)[_by_frequency(joint)].tolist(),
        weighted=weighted,
        most=min(1.0, bound),
        kept=INFORMATION.share(joint, protocol),
        level=level if math.isfinite(level) else None,
        reason=None,
    )


def _publishes_secret(joint: Joint) -> bool:
    width = len(joint.secret.columns)
    return joint.inputs.columns[:width] == joint.secret.columns


def _by_frequency(joint: Joint) -> list[int]:
    """Values of the secret that occur, the most common one first."""
    order = np.argsort(-joint.p_secret, kind="stable")
    return [int(s) for s in order if joint.p_secret[s] > 0]


def _by_secret(joint: Joint, protocol: Protocol, stays: Unchanged) -> FloatArray:
    """As `UnchangedPoint.secrets`, shape (c,) in the order of the joint distribution."""
    if not _publishes_secret(joint):
        return stays.by_secret
    width = len(joint.secret.columns)
    weights = protocol.weights_for(joint.inputs) / np.float64(protocol.denominator)
    of = np.array([joint.secret.index(symbol[:width]) for symbol in joint.inputs.symbols])
    same = (weights * (of[:, np.newaxis] == of)).sum(axis=0)
    return np.asarray(np.nan_to_num(joint.input_given_secret) @ same)
