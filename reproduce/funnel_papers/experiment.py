"""An experiment as a declaration: distributions, what is measured, drawn and must hold, and the text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from funnel.errors import SolverError
from funnel.joint import FloatArray
from funnel_papers.distributions import Distribution
from funnel_papers.rows import Row

Measure = Callable[..., Row]
"""``measure(joint, xs, **settings)``: of every label one number for every x; at the top of a module."""

SLACK = 2e-6
"""Shares are kept to six digits."""


@dataclass(frozen=True)
class Size:
    """How much is computed.

    Attributes
    ----------
    distributions : int or None
        Random distributions; None for what the experiment takes by itself.
    full : bool
        As many distributions and budgets as in the paper.
    """

    distributions: int | None = None
    full: bool = False

    def of(self, default: int, paper: int) -> int:
        """The number of distributions of an experiment that takes ``default``, and in the paper takes ``paper``."""
        return self.distributions if self.distributions is not None else paper if self.full else default


@dataclass(frozen=True)
class Point:
    """What is measured of one distribution at once: the least that an interrupted run loses.

    Attributes
    ----------
    case : str
        The panel, or group of panels, that it is for.
    subject : str
        What of one distribution lies on one line over all x, such as "distribution 3".
    measure : Measure
    distribution : Distribution
    settings : mapping
        JSON values, further arguments of the measure.
    at : int or None
        The place of the only x that is measured; None for all.
    """

    case: str
    subject: str
    measure: Measure
    distribution: Distribution
    settings: Mapping[str, Any] = field(default_factory=dict)
    at: int | None = None


@dataclass(frozen=True)
class Curve:
    """What is drawn of one label.

    Attributes
    ----------
    label : str
        In the results.
    title : str
        In the legend.
    role : "paper", "ours", "optimum" or "bound"
        A mechanism of the paper as published, one that is calibrated here, the optimum that was found, or what no
        protocol exceeds.
    spread : bool
        Whether standard deviations over distributions are drawn.
    """

    label: str
    title: str
    role: Literal["paper", "ours", "optimum", "bound"] = "paper"
    spread: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes: means of some labels against x, or one label against another, by distribution.

    Attributes
    ----------
    case, title, x_title, y_title : str
    curves : tuple of Curve
    against : str
        The label on the other axis of a scatter; empty for curves against x.
    at : float or None
        The x that a scatter is of.
    scale : tuple of two str
        "linear" or "log" axes, x then y.
    diagonal : str
        What y = x is called, where it is drawn.
    shared : bool
        Whether means are taken over those distributions alone that all curves were measured of: curves that are close
        could else change places by their distributions.
    best : tuple of str
        Labels of which the largest number, distribution by distribution, is drawn as `BEST`.
    """

    case: str
    title: str
    curves: tuple[Curve, ...]
    x_title: str = "ε (nats)"
    y_title: str = "I(X;Y) / H(X)"
    against: str = ""
    at: float | None = None
    scale: tuple[str, str] = ("linear", "linear")
    diagonal: str = ""
    shared: bool = False
    best: tuple[str, ...] = ()


BEST = "best found"
"""The label of the best of several labels, distribution by distribution (`Panel.best`)."""


class Results:
    """What was measured for one figure.

    Attributes
    ----------
    xs : tuple of float
    cases : dict
        case -> label -> subject -> one number, or None, for every x.
    seconds : float
        Of processor time, of all points, when they were measured.
    """

    def __init__(self, xs: Sequence[float]) -> None:
        self.xs = tuple(xs)
        self.cases: dict[str, dict[str, dict[str, list[float | None]]]] = {}
        self.seconds = 0.0

    def add(self, point: Point, row: Row) -> None:
        """Take over what was measured at a point."""
        case = self.cases.setdefault(point.case, {})
        for label, values in row.items():
            line = case.setdefault(label, {}).setdefault(point.subject, [None] * len(self.xs))
            if point.at is None:
                line[:] = values
            else:
                (line[point.at],) = values

    def values(self, case: str, label: str) -> FloatArray:
        """Shape (distributions, x), nan where nothing was measured; none where the label was not measured."""
        lines = self.cases.get(case, {}).get(label, {})
        table = [[math.nan if value is None else value for value in line] for line in lines.values()]
        return np.array(table, dtype=np.float64).reshape(len(table), len(self.xs))

    def mean(self, case: str, label: str) -> FloatArray:
        """Over the distributions that have it, for every x; nan where there is none."""
        table = self.values(case, label)
        known = ~np.isnan(table)
        number = known.sum(axis=0)
        total = np.where(known, table, 0.0).sum(axis=0)
        return np.asarray(np.divide(total, number, out=np.full(len(self.xs), np.nan), where=number > 0))

    def deviation(self, case: str, label: str) -> FloatArray:
        """Standard deviation over distributions, for every x; nan of fewer than two."""
        table = self.values(case, label)
        found = np.full(len(self.xs), np.nan)
        for i, column in enumerate(table.T):
            some = column[~np.isnan(column)]
            if len(some) > 1:
                found[i] = some.std(ddof=1)
        return found

    def distributions(self, case: str, label: str) -> int:
        """How many distributions have it at some x."""
        return int((~np.isnan(self.values(case, label))).any(axis=1).sum())

    def at(self, case: str, label: str, x: float) -> FloatArray:
        """What was measured at one x, of all distributions that have it; nothing at an x that was not measured."""
        if x not in self.xs:
            return np.empty(0)
        column = self.values(case, label)[:, self.xs.index(x)]
        return np.asarray(column[~np.isnan(column)])

    def of(self, panel: Panel) -> Results:
        """What a panel is made of: these results, or those of the distributions all its curves share."""
        table = self.cases.get(panel.case, {})
        if panel.best:
            table = {**table, BEST: _largest([table[label] for label in panel.best if label in table])}
        if not panel.shared and not panel.best:
            return self
        drawn = [table[curve.label] for curve in panel.curves if curve.label in table]
        measured = [
            {name for name, line in lines.items() if any(value is not None for value in line)} for lines in drawn
        ]
        subjects = set[str]().union(*measured)
        subjects = subjects.intersection(*measured) if panel.shared else subjects
        found = Results(self.xs)
        found.cases[panel.case] = {
            label: {subject: line for subject, line in lines.items() if subject in subjects}
            for label, lines in table.items()
        }
        return found

    def pairs(self, case: str, low: str, high: str) -> Iterator[tuple[str, float, float, float]]:
        """Subject, x and two labels, wherever both were measured."""
        table = self.cases.get(case, {})
        for subject, line in table.get(low, {}).items():
            other = table.get(high, {}).get(subject)
            for x, one, two in zip(self.xs, line, other or (), strict=False):
                if one is not None and two is not None:
                    yield subject, x, one, two


def distributions_of(panel: Panel, results: Results) -> str:
    """How many distributions the curves of a panel share, where they do."""
    if not panel.shared:
        return ""
    shared = results.of(panel)
    distributions = max((shared.distributions(panel.case, curve.label) for curve in panel.curves), default=0)
    return f", {distributions:,} distribution{'s' * (distributions != 1)}"


def _largest(lines: Sequence[dict[str, list[float | None]]]) -> dict[str, list[float | None]]:
    """Of every subject the largest number at every x, of those that are known."""
    found: dict[str, list[float | None]] = {}
    for subject in dict.fromkeys(name for one in lines for name in one):
        columns = zip(*(one[subject] for one in lines if subject in one), strict=True)
        found[subject] = [max((value for value in column if value is not None), default=None) for column in columns]
    return found


@dataclass(frozen=True)
class Judged:
    """What the text says beside what was found.

    Attributes
    ----------
    printed, ours : str
    agrees : bool or None
        None where there is nothing to agree on, such as seconds of another machine.
    """

    printed: str
    ours: str
    agrees: bool | None


@dataclass(frozen=True)
class Claim:
    """A number or an order that the text states of an experiment.

    Attributes
    ----------
    where : str
        In the paper.
    says : str
    judge : callable
        Of the results.
    """

    where: str
    says: str
    judge: Callable[[Results], Judged]


@dataclass(frozen=True)
class Experiment:
    """One figure.

    Attributes
    ----------
    name : str
        As the command takes it, such as "6".
    title : str
    about : str
        What is done, in words.
    xs : callable
        Of the size: what stands on the axis.
    points : callable
        Of the size: what is to be measured.
    panels : tuple of Panel
    orders : tuple of (str, str)
        Labels of which the first never exceeds the second, distribution by distribution.
    rising : tuple of str
        Labels that never fall with x, distribution by distribution.
    claims : tuple of Claim
    distributions : str
        How many distributions by default and in the paper, in words.
    """

    name: str
    title: str
    about: str
    xs: Callable[[Size], Sequence[float]]
    points: Callable[[Size], Sequence[Point]]
    panels: tuple[Panel, ...]
    orders: tuple[tuple[str, str], ...] = ()
    rising: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    distributions: str = ""

    def check(self, results: Results) -> int:
        """Make sure of all orders, distribution by distribution; how many comparisons that were.

        Raises
        ------
        SolverError
            If something is above what bounds it, or falls where it must not.
        """
        made = 0
        for case, table in results.cases.items():
            for low, high in self.orders:
                for subject, x, one, two in results.pairs(case, low, high):
                    made += 1
                    if one > two + SLACK:
                        raise SolverError(
                            f"figure {self.name}, {case}, {subject}, at {x:g}: {low} is {one:.6f}, above {high}, "
                            f"{two:.6f}; this is a defect, please report it"
                        )
            for label in self.rising:
                for subject, line in table.get(label, {}).items():
                    known = [value for value in line if value is not None]
                    made += max(0, len(known) - 1)
                    if any(later < earlier - SLACK for earlier, later in pairwise(known)):
                        raise SolverError(
                            f"figure {self.name}, {case}, {subject}: {label} falls where it must not; this is a "
                            "defect, please report it"
                        )
        return made


@dataclass(frozen=True)
class Erratum:
    """Something that a paper states and that is not so.

    Attributes
    ----------
    where, says, holds : str
        Holds: what holds instead.
    """

    where: str
    says: str
    holds: str


@dataclass(frozen=True)
class Paper:
    """A paper and its experiments.

    Attributes
    ----------
    name : str
        As the command takes it.
    title, about : str
    experiments : tuple of Experiment
    errata : tuple of Erratum
    """

    name: str
    title: str
    about: str
    experiments: tuple[Experiment, ...]
    errata: tuple[Erratum, ...]


def number(
    printed: float, found: Callable[[Results], FloatArray], within: float, digits: int = 2
) -> Callable[[Results], Judged]:
    """Judge a printed mean by what was found: it agrees if they are as close as digits and chance allow.

    Parameters
    ----------
    printed : float
    found : callable
        Of the results: the values that the mean is of, one for every distribution.
    within : float
        Half of the last printed digit, and what reading a figure allows.
    digits : int
    """

    def judge(results: Results) -> Judged:
        values = found(results)
        if not len(values):
            return Judged(f"{printed:g}", "not measured", None)
        mean = float(values.mean())
        error = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0
        ours = f"{mean:.{digits}f}" + (f" ± {error:.{digits}f}" if error else "")
        return Judged(f"{printed:g}", ours, abs(mean - printed) <= within + 3 * error)

    return judge


def beside(printed: str, found: Callable[[Results], str]) -> Callable[[Results], Judged]:
    """Set a number beside another where there is nothing to agree on, such as seconds of two machines."""
    return lambda results: Judged(printed, found(results), None)


def holds(found: Callable[[Results], Sequence[bool]], printed: str) -> Callable[[Results], Judged]:
    """Judge something that the text states of every case by in how many it is so."""

    def judge(results: Results) -> Judged:
        cases = found(results)
        return Judged(printed, f"in {sum(cases):,} of {len(cases):,} cases", all(cases) if cases else None)

    return judge


def not_above(low: str, high: str, slack: float = SLACK) -> Callable[[Results], Judged]:
    """Judge that one label is never above another, by what is known of optima, in any distribution at any x."""

    def found(results: Results) -> list[bool]:
        return [one <= two + slack for case in results.cases for _, _, one, two in results.pairs(case, low, high)]

    return holds(found, "always")
