"""Measures of a distribution in the experiments of PF and ALIP: shares kept, certified bounds, lifts, parameters."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from funnel.errors import InfeasibleGuarantee, SolverError, SpecError
from funnel.guarantees import ALIP, LDP, LIP, SRLIP, AlphaLift, Chi2Lift, Guarantee, L1Lift
from funnel.joint import Joint
from funnel.measures import lift, normalised_mutual_information
from funnel.mechanisms import fit
from funnel.mechanisms.conditional_reporting import conditional_reporting_matrix
from funnel.mechanisms.family import calibrate
from funnel.mechanisms.grr import grr_matrix
from funnel.mechanisms.side_channel_product import product_channel
from funnel.protocol import Protocol
from funnel.rounding import integer_weights
from funnel.solver.optimum import optimal
from funnel_papers.rows import Numbers, Row, rowed
from funnel_papers.theorem_2 import best_vertex

_GAP = 1e-4


def best_of_notions(joint: Joint, xs: Sequence[float], seconds: float) -> Row:
    """Optima under LDP(ε), LIP(ε) and LIP(ε/2) with what no protocol exceeds, and their processor time."""

    def one(epsilon: float) -> Numbers:
        found: Numbers = {}
        for label, guarantee in (
            ("LDP(ε)", LDP(epsilon)),
            ("LIP(ε)", LIP(epsilon)),
            ("LIP(ε/2)", LIP(epsilon / 2)),
        ):
            found |= _optimum(joint, guarantee, label, seconds)
        return found

    return rowed(xs, one)


def best_of_polytope(joint: Joint, xs: Sequence[float]) -> Row:
    """PF theorem 2 by enumeration beside the optimiser: shares, vertices and processor time."""

    def one(epsilon: float) -> Numbers:
        started = time.process_time()
        value, vertices = best_vertex(joint, epsilon)
        taken = time.process_time() - started
        return {
            "theorem 2": value / joint.entropy,
            "vertices of theorem 2": float(vertices),
            "seconds of theorem 2": taken,
            **_optimum(joint, LDP(epsilon), "LDP(ε)", None),
            **_optimum(joint, LIP(epsilon), "LIP(ε)", None),
        }

    return rowed(xs, one)


def side_channels(joint: Joint, xs: Sequence[float], seconds: float) -> Row:
    """LIP and SRLIP on several columns: optima, the calibrated product, and the one that theorem 4 promises ε for."""

    def one(epsilon: float) -> Numbers:
        guarantee = SRLIP(epsilon)
        product = fit("side-channel-product", joint, guarantee, seconds)
        parts = len(joint.inputs.columns)
        printed = product_channel(joint, guarantee, (epsilon / parts,) * parts)
        return {
            **_optimum(joint, LIP(epsilon), "LIP(ε)", seconds),
            **_optimum(joint, guarantee, "SRLIP(ε)", seconds),
            "product": normalised_mutual_information(joint, product),
            "level of theorem 4": guarantee.level_for(joint, integer_weights(printed)).value,
        }

    return rowed(xs, one)


def two_reports(joint: Joint, xs: Sequence[float]) -> Row:
    """Randomised response on each of two binary columns: the sum of their SRLIP levels, and the level of both.

    Parameters
    ----------
    joint : Joint
        Over the columns in the order no no, no yes, yes no, yes yes.
    xs : sequence of float
        The probability of a lie.
    """

    def one(lie: float) -> Numbers:
        response = np.array([[1 - lie, lie], [lie, 1 - lie]])
        first, second = np.repeat(response, 2, axis=1), np.tile(response, 2)
        both = (first[:, None, :] * second[None]).reshape(4, 4)
        levels = [SRLIP(1.0).level_for(joint, integer_weights(channel)).value for channel in (first, second, both)]
        # What the level of both would have to be for it to be a promise that is kept.
        best = optimal(joint, SRLIP(levels[2]), _GAP)
        distribution = both * joint.p_input
        outputs = distribution.sum(axis=1)
        told = float((distribution * np.log(both / outputs[:, None])).sum())
        return {
            "sum of the levels": levels[0] + levels[1],
            "level of both reports": levels[2],
            "both reports": told / joint.entropy,
            "SRLIP at that level": best.utility / joint.entropy,
            "bound of SRLIP at that level": best.bound / joint.entropy,
        }

    return rowed(xs, one)


def explicit(joint: Joint, xs: Sequence[float], seconds: float, unary: bool = False) -> Row:
    """GRR, Conditional Reporting and OUE calibrated to LIP(ε), with both optima and what no protocol exceeds."""

    def one(epsilon: float) -> Numbers:
        guarantee = LIP(epsilon)
        found = {
            "GRR": _share(joint, "grr", guarantee),
            "CR": _share(joint, "conditional-reporting", guarantee),
            **({"OUE": _share(joint, "oue", guarantee)} if unary else {}),
            **_optimum(joint, guarantee, "Opt-LIP", seconds),
        }
        aware = optimal(joint, guarantee, 1e-3, seconds, reads_secret=True)
        found["optimum with S"] = aware.utility / joint.entropy
        # Everything that reads X alone reads (S, X) too.
        found["bound with S"] = aware.bound / joint.entropy
        return found

    return rowed(xs, one)


def parameters(joint: Joint, xs: Sequence[float]) -> Row:
    """α of GRR and of Conditional Reporting for LIP(ε), their shares, and the differences GRR - CR of both."""
    read = joint.with_secret()

    def one(epsilon: float) -> Numbers:
        guarantee = LIP(epsilon)
        size = len(joint.inputs)
        response, _ = calibrate(lambda alpha: grr_matrix(size, alpha), joint, guarantee)
        try:
            reporting, _ = calibrate(lambda alpha: conditional_reporting_matrix(joint, alpha), read, guarantee)
        except InfeasibleGuarantee:
            return {"α of GRR": response, "GRR": _share(joint, "grr", guarantee)}
        shares = [_share(joint, name, guarantee) or 0.0 for name in ("grr", "conditional-reporting")]
        utility = [share * joint.entropy for share in shares]
        return {
            "α of GRR": response,
            "α of CR": reporting,
            "GRR": shares[0],
            "CR": shares[1],
            "difference of α": response - reporting,
            "difference of utility": utility[0] - utility[1],
        }

    return rowed(xs, one)


def lift_range(joint: Joint, xs: Sequence[float]) -> Row:
    """ALIP figure 1: of ln of the least and the largest lift of symbols, the density in each bin that starts at x."""
    logs = np.log(np.maximum(joint.secret_given_input / joint.p_secret[:, None], 1e-300))
    edges = [*xs, 2 * xs[-1] - xs[-2]]
    found: Row = {}
    for label, values in (("ln Ψ", logs.min(axis=0)), ("ln Λ", logs.max(axis=0))):
        counts, _ = np.histogram(values, edges)
        found[f"density of {label}"] = [
            round(float(count / len(values) / (high - low)), 6)
            for count, low, high in zip(counts, edges, edges[1:], strict=False)
        ]
    ends = {"least ln Ψ": logs.min(), "greatest ln Ψ": logs.min(axis=0).max()}
    ends |= {"least ln Λ": logs.max(axis=0).min(), "greatest ln Λ": logs.max()}
    ends["share of |ln Ψ| > 6"] = float((logs.min(axis=0) < -6).mean())
    return found | {label: [round(float(value), 6), *[None] * (len(xs) - 1)] for label, value in ends.items()}


def trade_off(joint: Joint, xs: Sequence[float], mechanism: str, guarantee: str, share: float, order: int = 2) -> Row:
    """Share kept, and ln of the extreme lifts, of one mechanism of ALIP under one notion.

    Parameters
    ----------
    joint : Joint
    xs : sequence of float
        Budgets ε of LDP: ε_l = λ ε, ε_u = (1 - λ) ε.
    mechanism : str
    guarantee : "ldp", "alip", "l1", "chi2" or "alpha"
    share : float
        λ.
    order : int
        α of the α-lift.
    """

    def one(epsilon: float) -> Numbers:
        notion = notion_of(guarantee, share * epsilon, (1 - share) * epsilon, order)
        protocol = fit(mechanism, joint, notion)
        return {"kept": normalised_mutual_information(joint, protocol), **_lifts(joint, protocol)}

    return _labelled(line_label(mechanism, guarantee, share, order), rowed(xs, one))


def frontier(joint: Joint, xs: Sequence[float], guarantee: str, share: float, seconds: float) -> Row:
    """AORR, that is the optimum, under LDP or ALIP: share, what no protocol exceeds, and ln of its extreme lifts."""

    def one(epsilon: float) -> Numbers:
        notion = notion_of(guarantee, share * epsilon, (1 - share) * epsilon)
        best = optimal(joint, notion, _GAP, seconds)
        return {
            "kept": best.utility / joint.entropy,
            "bound": best.bound / joint.entropy,
            **_lifts(joint, best.protocol),
        }

    return _labelled(line_label("optimal", guarantee, share), rowed(xs, one))


def line_label(mechanism: str, guarantee: str, share: float = 0.5, order: int = 2) -> str:
    """What stands before the labels of `trade_off` and `frontier`: LDP has no λ, and one notion alone an order."""
    parts = [mechanism, guarantee]
    parts += [] if guarantee == "ldp" else [f"λ={share:g}"]
    parts += [f"α={order}"] if guarantee == "alpha" else []
    return " ".join(parts)


def _labelled(label: str, row: Row) -> Row:
    return {f"{label}: {name}": values for name, values in row.items()}


def notion_of(name: str, lower: float, upper: float, order: int = 2) -> Guarantee:
    """A notion of ALIP with budgets ε_l and ε_u; LDP with their sum."""
    kinds: dict[str, Callable[[], Guarantee]] = {
        "ldp": lambda: LDP(lower + upper),
        "alip": lambda: ALIP(lower, upper),
        "l1": lambda: L1Lift(lower, upper),
        "chi2": lambda: Chi2Lift(lower, upper),
        "alpha": lambda: AlphaLift(lower, upper, order),
    }
    return kinds[name]()


def _lifts(joint: Joint, protocol: Protocol) -> Numbers:
    lifts = lift(joint, protocol)
    least = float(np.nanmin(lifts))
    return {
        "min-lift leakage": math.inf if least == 0 else abs(math.log(least)),
        "max-lift leakage": math.log(float(np.nanmax(lifts))),
    }


def _share(joint: Joint, name: str, guarantee: Guarantee) -> float | None:
    try:
        return normalised_mutual_information(joint, fit(name, joint, guarantee))
    except (InfeasibleGuarantee, SpecError):
        return None


def _optimum(joint: Joint, guarantee: Guarantee, label: str, seconds: float | None) -> Numbers:
    started = time.process_time()
    try:
        best = optimal(joint, guarantee, _GAP, seconds)
    except SolverError:
        # Nothing within the time: no number takes its place.
        return {}
    return {
        label: best.utility / joint.entropy,
        f"bound of {label}": best.bound / joint.entropy,
        f"seconds of {label}": time.process_time() - started,
    }
