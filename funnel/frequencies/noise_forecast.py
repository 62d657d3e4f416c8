"""Noise forecast: what noise on the frequencies costs, by epsilon and the number of records, and what helps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from funnel.errors import FunnelError
from funnel.frequencies.helping import Help, expected, made_one, scaled, what_would_help
from funnel.frequencies.noise import Noise
from funnel.guarantees import Guarantee
from funnel.guarantees.sided import over_set
from funnel.joint import Joint
from funnel.measures import mutual_information, normalised_mutual_information
from funnel.mechanisms import mechanism
from funnel.mechanisms.instead import merging_for
from funnel.mechanisms.memory import require_memory
from funnel.mechanisms.optimal import Optimal
from funnel.progress import Progress, quiet
from funnel.protocol import Protocol
from funnel.settings.protection_settings import FrequencySettings
from funnel.solver.budget import Budget
from funnel.solver.optimum import optimal

EPSILONS = (0.1, 0.3, 1.0, 3.0)
SIZES = (1_000, 10_000, 100_000)
NO_COST = "no table of what noise costs: it is for bounds that cover noise, and are not perfect privacy"
"""What is said where `forecast_noise` has nothing to tell."""
# Seconds for one number of records and one epsilon, as work that is counted.
SECONDS = 1.0
# Of H(X): closer than this an optimum need not be known to be told in tenths of a percent.
_GAP = 2e-3
# A smaller share of H(X) is nothing.
_NOTHING = 5e-4


@dataclass(frozen=True)
class Cost:
    """One number of records with one noise.

    Attributes
    ----------
    n : int
    epsilon : float or None
        Of the noise, all of what a version would spend; None: without noise.
    kept : float or None
        Share of H(X) that a protocol keeps which was found to meet the guarantee, in exact arithmetic; None where
        there is none to be had, for ``reason``.
    most : float or None
        Share that no protocol exceeds which reads the published columns alone.
    level : float or None
        What that protocol reaches for the worst counts that the noise leaves open, nats.
    ignored : float or None
        What the protocol made without noise would reach for these, nats; may be infinite. None if there is none.
    reason : str or None
    """

    n: int
    epsilon: float | None
    kept: float | None
    most: float | None
    level: float | None
    ignored: float | None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values; an infinite level becomes None, with ``certain`` true."""
        ignored = self.ignored
        certain = ignored is not None and math.isinf(ignored)
        return {**vars(self), "ignored": None if certain else ignored, "ignored_certain": certain}

    @property
    def share(self) -> str:
        """What is kept, in words; two numbers where the search has left a gap that shows."""
        if self.kept is None or self.most is None:
            return "-"
        low, high = f"{self.kept:.1%}", f"{self.most:.1%}"
        if self.kept < _NOTHING:
            low = "nothing"
        return low if self.most - self.kept <= _GAP * 1.5 else f"{low} to {high}"


@dataclass(frozen=True)
class NoiseForecast:
    """What noise costs under one guarantee.

    Attributes
    ----------
    guarantee : str
    n : int
        Records of the plan.
    epsilon : float
        As the spec has it.
    beta : float
    epsilons : tuple of float
        Ascending.
    sizes : tuple of int
        Numbers of records, ascending.
    costs : tuple of Cost
        By number of records, without noise first, then by epsilon.
    help : Help or None
        What would help, where the table is too small: less than half of what is kept without noise is kept with it.
    columns : tuple of str
        Of the secret.
    """

    guarantee: str
    n: int
    epsilon: float
    beta: float
    epsilons: tuple[float, ...]
    sizes: tuple[int, ...]
    costs: tuple[Cost, ...]
    help: Help | None
    columns: tuple[str, ...]

    def cost(self, n: int, epsilon: float | None) -> Cost:
        """One cell."""
        return next(cost for cost in self.costs if cost.n == n and cost.epsilon == epsilon)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values."""
        return {
            "guarantee": self.guarantee,
            "epsilon": self.epsilon,
            "beta": self.beta,
            "costs": [cost.to_dict() for cost in self.costs],
            "help": None if self.help is None else vars(self.help),
            "sentence": self.sentence,
        }

    @property
    def sentence(self) -> str | None:
        """What would help where the table is too small for the noise; None where it is not."""
        if self.help is None:
            return None
        found, half = self.cost(self.n, self.epsilon), self.help
        ways = []
        if half.n is not None:
            ways.append(f"about {half.n:,} records with the same frequencies")
        if half.together:
            then = f" (then at least {half.then:.1%})" if half.then is not None else ""
            ways.append(f"the values {', '.join(half.together)} of {', '.join(self.columns)} made one{then}")
        enough = [one for one in self.epsilons if one > self.epsilon and self._keeps(one, half.share)]
        if enough:
            ways.append(f"an epsilon of {enough[0]:g}")
        if ways:
            helps = f"at least {half.share:.1%} would be kept with {', or with '.join(ways)}"
        else:
            helps = "neither more records with the same frequencies nor rare values made one would be sure to help"
        return (
            f"the table is too small for noise of epsilon {self.epsilon:g} under {self.guarantee}: of H(X) "
            f"{found.share} is kept from {self.n:,} records, and {self.cost(self.n, None).share} without noise; {helps}"
        )

    def lines(self) -> Iterator[str]:
        """What a console says of it: two tables, and what would help."""
        yield (
            f"share of H(X) that is kept under {self.guarantee} by epsilon of the frequencies, these being the same in "
            "so many records (protocols that read the published columns alone):"
        )
        columns = (None, *self.epsilons)
        yield from self._table(columns, [[self.cost(n, epsilon).share for epsilon in columns] for n in self.sizes])
        yield "level of the protocol that is made without noise, for the worst counts that the noise leaves open:"
        levels = [[self.cost(n, epsilon).ignored for epsilon in self.epsilons] for n in self.sizes]
        yield from self._table(
            self.epsilons, [["-" if level is None else f"{level:.3g}" for level in row] for row in levels]
        )
        yield "* as the spec has it; where two shares are told, the best is between them"
        yield from (cost.reason for cost in self.costs if cost.n == self.n and cost.reason)
        if self.sentence is not None:
            yield self.sentence

    def _table(self, columns: Sequence[float | None], rows: Sequence[Sequence[str]]) -> Iterator[str]:
        """Numbers of records by epsilon, as text."""
        head = ["no noise" if one is None else f"{one:g}{' *' if one == self.epsilon else ''}" for one in columns]
        sizes = [f"{n:,}{' *' if n == self.n else '  '}" for n in self.sizes]
        table = [["records  ", *head], *([size, *row] for size, row in zip(sizes, rows, strict=True))]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for row in table:
            yield "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))

    def _keeps(self, epsilon: float, share: float) -> bool:
        kept = self.cost(self.n, epsilon).kept
        return kept is not None and kept >= share


def forecast_noise(
    joint: Joint,
    guarantee: Guarantee,
    settings: FrequencySettings,
    part: float = 1.0,
    epsilons: Sequence[float] = EPSILONS,
    sizes: Sequence[int] = SIZES,
    seconds: float = SECONDS,
    progress: Progress = quiet,
) -> NoiseForecast | None:
    """What the best protocol that reads the published columns alone keeps, whatever counts the noise leaves open.

    Counts are those of a plan, scaled to other numbers of records in whole numbers (`funnel.frequencies.helping`),
    with the bounds that noise would leave had it come out as 0 everywhere. So nothing is drawn, nothing is spent, and
    the same counts give the same figures.

    Parameters
    ----------
    joint : Joint
        Public counts.
    guarantee : Guarantee
    settings : FrequencySettings
        Of the spec: its epsilon and beta.
    part : float
        Of epsilon, what the counts get; the rest is spent on learning which values there are.
    epsilons : sequence of float
        Beside that of the spec.
    sizes : sequence of int
        Beside the number of records that there are.
    seconds : float
        For each cell of the table, as work that is counted: what is found does not depend on the machine.
    progress : callable

    Returns
    -------
    NoiseForecast or None
        None for a guarantee that is decided for the published counts alone, and for perfect privacy.

    Notes
    -----
    A protocol that was found for fewer records, or for more noise, is taken where it keeps more and is proven to hold;
    and what none exceeds with less noise, none exceeds with more.
    """
    epsilon, beta = settings.epsilon, settings.beta
    epsilons, sizes = tuple(sorted({*epsilons, epsilon})), tuple(sorted({*sizes, joint.n}))
    counts = joint.as_published
    if guarantee.is_perfect or over_set(guarantee, expected(counts, Noise(epsilon * part, 0.0, beta))) is None:
        return None
    costs: list[Cost] = []
    found: dict[float | None, Protocol] = {}
    plain: Protocol | None = None
    steps = len(sizes) * (1 + len(epsilons))
    for n in sizes:
        table = counts if n == counts.n else scaled(counts, n)
        row: list[Cost] = []
        for one in (None, *epsilons):
            what = "without noise" if one is None else f"epsilon {one:g}"
            progress(f"what noise costs: {n:,} records, {what}", len(costs) + len(row), steps)
            known = table if one is None else expected(table, Noise(one * part, 0.0, beta))
            others = [found[key] for key in (one, *([] if one is None else [None, row[-1].epsilon])) if key in found]
            try:
                protocol, most = _best(known, guarantee, others, seconds)
            except FunnelError as error:
                found.pop(one, None)
                row.append(Cost(n, one, None, None, None, None, str(error)))
                continue
            found[one] = protocol
            kept = normalised_mutual_information(known, protocol)
            level = guarantee.level(known, protocol).value
            bare = found.get(None)
            ignored = None if one is None or bare is None else guarantee.level(known, bare).value
            row.append(Cost(n, one, kept, most, level, ignored))
        costs += _tightened(row)
        if n == counts.n:
            plain = found.get(None)
    outlook = NoiseForecast(
        str(guarantee), counts.n, epsilon, beta, epsilons, sizes, tuple(costs), None, joint.secret.columns
    )
    now, without = outlook.cost(counts.n, epsilon), outlook.cost(counts.n, None)
    if plain is None or without.kept is None or (now.kept or 0.0) >= without.kept / 2:
        return outlook
    progress("what would help", steps, steps)
    noise = Noise(epsilon * part, 0.0, beta)
    helps = what_would_help(counts, guarantee, noise, plain)
    if helps is not None and helps.together:
        table = expected(made_one(counts, helps.together), noise)
        best, _ = _best(table, guarantee, [plain], seconds)
        helps = replace(helps, then=max(helps.share, normalised_mutual_information(table, best)))
    return replace(outlook, help=helps)


def _best(joint: Joint, guarantee: Guarantee, others: Sequence[Protocol], seconds: float) -> tuple[Protocol, float]:
    """The best protocol that is known to hold, and the share of H(X) that none exceeds."""
    require_memory(Optimal.name, Optimal().memory(joint, guarantee), joint)
    solution = optimal(joint, guarantee, _GAP * max(joint.entropy, _GAP), seconds)
    best, utility = solution.protocol, solution.utility
    merged = []
    if not solution.finished:
        # A search that was cut short may be behind what takes next to nothing.
        with suppress(FunnelError):
            merged = [mechanism(merging_for(guarantee)).fitted(joint, guarantee, Budget.of(seconds)).protocol]
    for other in (*others, *merged):
        if (kept := mutual_information(joint, other)) > utility and guarantee.holds(joint, other):
            best, utility = other, kept
    return best, min(1.0, solution.bound / joint.entropy) if joint.entropy else 0.0


def _tightened(row: Sequence[Cost]) -> list[Cost]:
    """Costs for one number of records, from no noise to little epsilon first: none keeps more than with less noise."""
    bare, *noisy = row
    limit, tightened = bare.most, []
    for cost in reversed(noisy):
        if limit is not None and cost.most is not None:
            cost = replace(cost, most=min(cost.most, limit))
        limit = cost.most if cost.most is not None else limit
        tightened.append(cost)
    return [bare, *reversed(tightened)]
