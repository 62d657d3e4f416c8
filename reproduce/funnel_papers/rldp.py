"""RLDP: the experiments of "Robust Local Differential Privacy", figures 2 and 3."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from funnel_papers.distributions import Distribution
from funnel_papers.errata import RLDP_ERRATA
from funnel_papers.experiment import (
    BEST,
    Claim,
    Curve,
    Experiment,
    Judged,
    Panel,
    Paper,
    Point,
    Results,
    Size,
    holds,
    not_above,
)
from funnel_papers.robust_measuring import robust_part

_EPSILONS = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
_SIZES = (100.0, 1000.0, 10_000.0, 100_000.0)
_CASE = "distributions"
_BUDGET, _RECORDS, _SCALE = "ε (nats)", "records n", ("log", "linear")
_NAMES = ("GRR", "IR", "CR", "PolyOpt")
# Seconds of work for one PolyOpt or optimum.
_SECONDS, _LARGE_SECONDS = 20.0, 30.0
# Distributions that each part is measured of: by default, and with --full, of figure 2 and of figure 3.
_Parts = dict[str, tuple[int, int]]
_PARTS_2: _Parts = {
    "published": (200, 200),
    "polyopt": (200, 200),
    "calibrated": (10, 200),
    "polyopt_calibrated": (10, 200),
    "optimum": (10, 200),
}
_PARTS_3: _Parts = {
    "published": (200, 200),
    "calibrated": (6, 50),
    "polyopt": (3, 20),
    "polyopt_calibrated": (2, 10),
    "optimum": (2, 10),
}


def _curves() -> tuple[Curve, ...]:
    return (
        Curve("bound", "no protocol above", "bound"),
        Curve(BEST, "best found over F", "optimum"),
        *(Curve(f"{name}, calibrated", f"{name}, calibrated", "ours") for name in reversed(_NAMES)),
        *(Curve(name, f"{name} as published", "paper") for name in reversed(_NAMES)),
    )


# Cutting planes that were stopped may be far inside: the best is then another mechanism.
_FOUND = ("cutting planes", *(f"{name}{version}" for name in _NAMES for version in ("", ", calibrated")))


# The curves of the paper's figures.
_PAPER = tuple(curve for curve in _curves() if curve.role == "paper")


def _kept(title: str, curves: tuple[Curve, ...], x_title: str = _BUDGET, best: tuple[str, ...] = ()) -> Panel:
    return Panel(_CASE, title, curves, x_title, "I((S,U);Y) / H(S,U)", scale=_SCALE, shared=True, best=best)


def _used(x_title: str = _BUDGET) -> Panel:
    curves = tuple(Curve(f"used by {name}", name, "paper") for name in _NAMES)
    return Panel(_CASE, "Budget used, as published", curves, x_title, "true robust level / ε", scale=_SCALE)


_ORDERS = (
    *((f"{name}{version}", "bound") for name in _NAMES for version in ("", ", calibrated")),
    ("cutting planes", "bound"),
)


def _numbers(parts: _Parts, size: Size) -> list[tuple[str, int]]:
    """How many distributions every part is measured of; --distributions is the most of any."""
    return [
        (part, min(size.distributions, default) if size.distributions is not None else paper if size.full else default)
        for part, (default, paper) in parts.items()
    ]


def _points(
    parts: _Parts,
    size: Size,
    xs: Sequence[float],
    distribution: Callable[[int, float], Distribution],
    **settings: float,
) -> list[Point]:
    """Every part of every distribution, at every x."""
    return [
        Point(_CASE, f"distribution {i}", robust_part, distribution(i, x), {"part": part, **settings}, at)
        for part, distributions in _numbers(parts, size)
        for i in range(distributions)
        for at, x in enumerate(xs)
    ]


def _at(x: float, high: str, low: str) -> Callable[[Results], Sequence[bool]]:
    """Whether one label is above another in the mean over the distributions that have both, at one x."""

    def found(results: Results) -> list[bool]:
        pairs = [(one, two) for _, at, one, two in results.pairs(_CASE, low, high) if at == x]
        return [float(np.mean([two - one for one, two in pairs])) > 0] if pairs else []

    return found


def _crossing(results: Results) -> Judged:
    """Where GRR begins to keep more than IR and CR, in the mean."""
    grr, others = results.mean(_CASE, "GRR"), [results.mean(_CASE, name) for name in ("IR", "CR")]
    said, places = [], []
    for name, other in zip(("IR", "CR"), others, strict=True):
        above = [x for x, one, two in zip(results.xs, grr, other, strict=True) if one > two]
        place = min(above, default=None)
        places.append(place)
        said.append(f"{name} from {place:g} on" if place is not None else f"{name} nowhere up to {results.xs[-1]:g}")
    agrees = all(place is not None and 2 <= place <= 8 for place in places)
    return Judged("around ε = 4", "above " + ", above ".join(said), agrees)


def _gain(results: Results) -> Judged:
    said = []
    for name in _NAMES:
        pairs = [
            (one, two) for _, x, one, two in results.pairs(_CASE, name, f"{name}, calibrated") if x in (0.5, 1000.0)
        ]
        if pairs:
            said.append(f"{name} {np.mean([two for _, two in pairs]) / np.mean([one for one, _ in pairs]) - 1:+.0%}")
    return Judged("(not in the paper)", ", ".join(said), None)


def _larger_n(name: str) -> Callable[[Results], Judged]:
    def judge(results: Results) -> Judged:
        means = results.mean(_CASE, name)
        said = ", ".join(f"{value:.3f}" for value in means)
        return Judged("better for larger n", said, bool((np.diff(means) > 0).all()))

    return judge


def _who_gains(results: Results) -> Judged:
    """Which of IR and CR keeps more at the largest n: sections V and VI name different ones."""
    ir, cr = (float(results.mean(_CASE, name)[-1]) for name in ("IR", "CR"))
    return Judged("V: CR; VI: IR", f"IR {ir:.3f}, CR {cr:.3f} at n = {results.xs[-1]:,.0f}", None)


def _figure_2() -> Experiment:
    def points(size: Size) -> Sequence[Point]:
        return _points(_PARTS_2, size, _EPSILONS, lambda i, _: Distribution("sampled", (3, 3), i, 1000), limit=_SECONDS)

    return Experiment(
        name="2",
        title="Share kept against ε, |S| = |U| = 3, n = 1000",
        about=(
            "Distributions from the Jeffreys prior, 1,000 records drawn from each, α = 0.05, F as in the paper. "
            "Dashed: the "
            "paper's mechanisms as published, by conditions that suffice. Solid: the same, calibrated to the exact "
            "worst case over F. On top: the best protocol found over F itself and what no protocol exceeds. On the "
            "right: how much of ε the published versions really use."
        ),
        distributions="all 200 distributions of the paper for its own curves, 10 for the rest; 200 for all with --full",
        xs=lambda size: _EPSILONS,
        points=points,
        panels=(
            _kept("Share kept, as in the paper", _PAPER),
            _kept("Share kept", _curves(), best=_FOUND),
            _used(),
        ),
        orders=_ORDERS,
        rising=("GRR", "GRR, calibrated"),
        claims=(
            Claim("V", "PolyOpt outperforms GRR", not_above("GRR", "PolyOpt")),
            Claim("V", "PolyOpt outperforms IR", not_above("IR", "PolyOpt")),
            Claim("V", "PolyOpt outperforms CR", not_above("CR", "PolyOpt")),
            Claim("V", "GRR outperforms IR and CR for large ε, typically", _crossing),
            Claim("V", "at ε = 1 IR clearly outperforms GRR, in the mean", holds(_at(1.0, "IR", "GRR"), "so")),
            Claim("V", "at ε = 1 CR clearly outperforms GRR, in the mean", holds(_at(1.0, "CR", "GRR"), "so")),
            Claim("figure 2", "what calibration to the exact worst case gains at ε = 0.5", _gain),
        ),
    )


def _figure_3() -> Experiment:
    def points(size: Size) -> Sequence[Point]:
        def distribution(i: int, n: float) -> Distribution:
            return Distribution("sampled", (5, 5), i, int(n))

        return _points(_PARTS_3, size, _SIZES, distribution, limit=_LARGE_SECONDS, epsilon=1.0)

    return Experiment(
        name="3",
        title="Share kept against n, |S| = |U| = 5, ε = 1",
        about=(
            "As figure 2, with the number of records changing. The paper leaves PolyOpt out as not computable; here it "
            "is computed. The optimum over F in 25 dimensions is searched for with a limit of 30 seconds for "
            "each distribution."
        ),
        distributions=(
            "all 200 distributions for the paper's own curves, 6 calibrated, 3 for PolyOpt, 2 for the optimum; "
            "10 to 50 of "
            "these with --full"
        ),
        xs=lambda size: _SIZES,
        points=points,
        panels=(
            _kept(
                "Share kept, as in the paper", tuple(curve for curve in _PAPER if curve.label != "PolyOpt"), _RECORDS
            ),
            _kept("Share kept", _curves(), _RECORDS, _FOUND),
            _kept(
                "The paper's curves, and calibrated",
                tuple(curve for curve in _curves() if curve.label.partition(",")[0] in ("CR", "IR", "GRR")),
                _RECORDS,
            ),
            _used(_RECORDS),
        ),
        orders=_ORDERS,
        claims=(
            Claim("V", "CR performs better for larger n, in the mean", _larger_n("CR")),
            Claim("V, VI", "which of IR and CR is better for larger n", _who_gains),
            Claim("V", "IR outperforms GRR at ε = 1, n = 1,000, in the mean", holds(_at(1000.0, "IR", "GRR"), "so")),
            Claim("V", "CR outperforms GRR at ε = 1, n = 1,000, in the mean", holds(_at(1000.0, "CR", "GRR"), "so")),
            Claim("VI", "PolyOpt outperforms CR", not_above("CR", "PolyOpt")),
            Claim("figure 3", "what calibration to the exact worst case gains at n = 1,000", _gain),
        ),
    )


RLDP_PAPER = Paper(
    name="rldp",
    title="Robust Local Differential Privacy",
    about=(
        "M. Lopuhaä-Zwakenberg and J. Goseling. Utility is I((S,U);Y), as the paper has it. Figure 1 is a diagram; "
        "there are no tables. The paper's curves are means over distributions, and so are these; all curves of a "
        "panel are over "
        "the same distributions where it says how many."
    ),
    experiments=(_figure_2(), _figure_3()),
    errata=RLDP_ERRATA,
)
