"""The figures of protocol.json, computed again from its weights and prior, in plain arithmetic.

Nothing here is shared with what makes them. Public shares are rounded, so what follows from them is known within
limits; a figure outside of them was not computed from this release.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from funnel.audit.check import Found, check
from funnel.errors import FunnelError
from funnel.guarantees import Guarantee, parse_guarantee
from funnel.protocol import SPARSE_FORMAT
from funnel.recount.plain_distributions import prior_distribution
from funnel.recount.plain_distributions import share_step as plain_share_step
from funnel.release.protocol_document import ProtocolDocument

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext

Limits = tuple[float, float]
Floats = npt.NDArray[np.float64]
Numbers = Sequence[float | None]
WHOLE = 2**63
# Of probabilities of outputs, which have four digits after the point.
_HALF_DIGIT = Fraction(1, 20_000)
_ROUNDING = 1e-9
# A marginal on a coarse grid is of weights that were moved by up to two steps, or mixed by a thousandth.
_STEPS, _MIXED = 4, Fraction(1, 1000)
_COARSE = 2 ** (63 - 28)


def share_step(n: int) -> Fraction:
    """The step of the public shares of n records, as a fraction."""
    return Fraction(str(plain_share_step(n)))


@dataclass(frozen=True)
class Interval:
    """Numbers between two."""

    low: float
    high: float

    def meets(self, value: float, slack: float) -> bool:
        """Whether a number rounded by at most ``slack`` may be one of these."""
        return self.low - slack - _ROUNDING <= value <= self.high + slack + _ROUNDING


class ShareLimits:
    """Limits of shares that add up to one.

    Parameters
    ----------
    low, high : sequence of float
    """

    def __init__(self, low: Sequence[float], high: Sequence[float]) -> None:
        self.low, self.high = low, high
        # What the least shares leave to be given out, and how much of it all of them can take.
        self._left, self._room = max(0.0, 1.0 - math.fsum(low)), math.fsum(high) - math.fsum(low)

    @classmethod
    def of(cls, limits: Sequence[Interval]) -> ShareLimits:
        """Of shares one by one."""
        return cls([limit.low for limit in limits], [limit.high for limit in limits])

    def mean(self, numbers: Iterable[tuple[int, float]]) -> Interval:
        """What Σ p q can be for numbers q >= 0 by the places of their shares; those that are left out are zero."""
        row = [(q, self.low[place], self.high[place]) for place, q in numbers if q]
        slack = 1e-12
        return Interval(max(0.0, self._extreme(row, True) - slack), min(1.0, self._extreme(row, False) + slack))

    def _extreme(self, row: Sequence[tuple[float, float, float]], least: bool) -> float:
        """The cheapest are filled first."""
        total, left = math.fsum(q * low for q, low, _ in row), self._left
        if least:
            left -= min(left, max(0.0, self._room - math.fsum(high - low for _, low, high in row)))
        for q, low, high in sorted(row, reverse=not least):
            part = min(left, high - low)
            total, left = total + q * part, left - part
        return total


def mean_between(low: Floats, high: Floats, values: Floats) -> Interval:
    """What a mean of values (k,) may be, by limits of their shares (k,).

    Notes
    -----
    The least mean has the largest shares of the smallest numbers and the least shares of all others.
    """
    ends = []
    for sign in (1.0, -1.0):
        order = np.argsort(sign * values, kind="stable")
        least, more, of_order = low[order], (high - low)[order], values[order]
        mass, total = least.sum() + more.cumsum(), least @ of_order + (more * of_order).cumsum()
        means = total[mass > 0] / mass[mass > 0]
        ends.append(sign * float((sign * means).min(initial=np.inf)) if means.size else 0.0)
    return Interval(*ends)


def prior_limits(document: ProtocolDocument, rows: int) -> list[Interval]:
    """What the share of every published value may have been before it was rounded."""
    step = float(share_step(rows))
    limits = []
    for share in document.prior.probabilities:
        # What occurs at all is told as at least one step.
        low = 0.0 if share <= step * 1.5 else share - step / 2
        limits.append(Interval(low, 0.0 if share == 0 else min(1.0, share + step / 2)))
    return limits


@check("guarantee", "public")
def check_guarantee(known: AuditContext) -> Found:
    """Kind, title, text and level of the guarantee agree with one another."""
    said = known.document.guarantee
    try:
        guarantee = parse_guarantee(said.declared)
    except FunnelError as error:
        yield f"the declared bound cannot be read: {error}"
        return ""
    if (said.kind, said.title, said.declared) != (guarantee.name, guarantee.title, str(guarantee)):
        yield "its kind, title and text are not those of one guarantee"
    if not 0 <= said.level <= guarantee.budget:
        yield f"the level {said.level:.12g} is above the budget of {said.declared}"
    if said.level not in (guarantee.budget, 0.0):
        yield "the level is neither the bound nor zero"
    return f"{said.declared}, level {said.level:.12g} nats"


@check("prior", "table counted")
def check_prior(known: AuditContext) -> Found:
    """Public shares are multiples of their step and add up to one."""
    document, rows = known.document, known.public_rows
    step = share_step(rows)
    shares = [Fraction(repr(share)) for share in document.prior.probabilities]
    published = document.outputs.columns
    if document.prior.columns != published or document.utility.columns != published:
        yield "its columns are not the published ones"
    if len(set(document.prior.symbols)) < len(document.prior.symbols):
        yield "a value is there twice"
    if any(share % step for share in shares):
        yield f"a share is no multiple of {float(step):g}, the step for {rows:,} records"
    slack = step / 2 * len(shares) + step * sum(share == step for share in shares)
    if abs(sum(shares, Fraction()) - 1) > slack:
        yield f"its shares add up to {float(sum(shares, Fraction())):.6g}"
    if set(document.inputs.columns) == set(published) and document.prior.symbols != document.inputs.symbols:
        yield "its values are not those that the protocol reads"
    return f"{len(shares):,} shares in steps of {float(step):g} that add up to one"


def reads_published_only(document: ProtocolDocument) -> bool:
    """Whether the protocol reads what is published and nothing else."""
    return document.inputs.columns == document.prior.columns


@check("marginal", "table counted")
def check_marginal(known: AuditContext) -> Found:
    """The marginal is the distribution of published values, as far as public shares show."""
    document, rows = known.document, known.public_rows
    if not reads_published_only(document):
        limits = output_limits(document, rows)
        slack = Fraction(_STEPS * grid_of(document), WHOLE) + _MIXED
        far = [
            y
            for y, (weight, limit) in enumerate(zip(document.marginal, limits, strict=True), 1)
            if not limit.meets(int(weight) / WHOLE, float(slack))
        ]
    else:
        limits = prior_limits(document, rows)
        widths = [Fraction(limit.high) - Fraction(limit.low) for limit in limits]
        # Shares divided by their sum may be outside their limits: many small ones are rounded upwards.
        middles = [(Fraction(limit.high) + Fraction(limit.low)) / 2 for limit in limits]
        shares = dict(enumerate(document.prior.probabilities))
        distribution = prior_distribution(shares, float(share_step(rows)), document.format == SPARSE_FORMAT)
        prior = [*map(Fraction, distribution.values())] if grid_of(document) >= _COARSE else middles
        far = far_from_marginal(document, prior, widths)
    if far:
        yield f"the marginal weight of output {far[0]} is not the distribution of the output"
    return "the distribution of the output, as far as the public shares tell it"


def far_from_marginal(document: ProtocolDocument, prior: list[Fraction], widths: list[Fraction]) -> list[int]:
    """Outputs whose marginal weight is not what a prior over the inputs makes, counted from one.

    Parameters
    ----------
    document : ProtocolDocument
    prior : list of Fraction, length a
        Public shares of what the protocol reads, adding up to one: what a marginal on a coarse grid is made of.
    widths : list of Fraction, length a
        How far the exact shares may be from them: what any other marginal is made of.
    """
    grid = grid_of(document)
    far = []
    for y, (weight, row) in enumerate(zip(document.marginal, document.entries, strict=True), 1):
        channel = [(x, Fraction(one, WHOLE)) for x, one in row]
        mass = sum((q * prior[x] for x, q in channel), Fraction())
        if grid >= _COARSE:
            reach = Fraction(_STEPS * grid, WHOLE) + _MIXED * mass
        else:
            reach = sum((q * widths[x] for x, q in channel), _MIXED)
        if abs(Fraction(int(weight), WHOLE) - mass) > reach:
            far.append(y)
    return far


def output_limits(document: ProtocolDocument, rows: int) -> list[Interval]:
    """What the probability of every output may be.

    Of a protocol that reads the secret the shares of (x, y) that the public ones are made of are rounded, and their sum
    is one only within that.
    """
    if reads_published_only(document):
        shares = ShareLimits.of(prior_limits(document, rows))
        return [shares.mean((x, weight / WHOLE) for x, weight in row) for row in document.entries]
    a, b, step = len(document.prior.symbols), len(document.outputs.symbols), float(share_step(rows))
    limits = []
    for entry in document.posterior or ():
        reach = a * step * (1 + b * entry.probability) + float(_HALF_DIGIT)
        limits.append(Interval(max(0.0, entry.probability - reach), min(1.0, entry.probability + reach)))
    return limits


def grid_of(document: ProtocolDocument) -> int:
    """The largest power of two that divides all weights."""
    return math.gcd(WHOLE, *(weight for row in document.entries for _, weight in row))


@check("utility", "table counted")
def check_utility(known: AuditContext) -> Found:
    """Entropy and mutual information follow from the weights and the public shares."""
    document, rows = known.document, known.public_rows
    said, step = document.utility, float(share_step(rows))
    limits = prior_limits(document, rows)
    entropy = Interval(sum(_least(p) for p in limits), sum(_most(p) for p in limits))
    for value in (said.entropy_nats, said.mutual_information_nats, said.share):
        if Fraction(repr(value)) % share_step(rows):
            yield f"a figure is no multiple of {step:g}"
    if not entropy.meets(said.entropy_nats, _step_of(said.entropy_nats, step) / 2):
        yield "H(X) is not the entropy of the prior"
    if said.mutual_information_nats > said.entropy_nats + step:
        yield "I(X;Y) is larger than H(X)"
    if reads_published_only(document) and not _information(document, limits).meets(
        said.mutual_information_nats, _step_of(said.mutual_information_nats, step) / 2
    ):
        yield "I(X;Y) is not what these weights keep of this prior"
    if not is_share_of(said.share, said.mutual_information_nats, said.entropy_nats, step):
        yield "the share is not I(X;Y) / H(X)"
    if said.explained is not None:
        share = said.explained.variance_share
        if Fraction(repr(share)) % share_step(rows):
            yield f"the share of the variance is no multiple of {step:g}"
        if reads_published_only(document) and not _explained(document, limits).meets(share, step / 2):
            yield "the share of the variance is not what these weights explain of this prior and these numbers"
    return f"{said.share:.12g} of H(X) = {said.entropy_nats:.12g} nats"


def _step_of(nats: float, step: float) -> float:
    """The step that an entropy is told to: no public figure has more than four digits."""
    return max(step, 0.01) if nats >= 10 else step


def _information(document: ProtocolDocument, limits: list[Interval]) -> Interval:
    """I(X;Y) = H(Y) - H(Y|X) for any prior within limits."""
    table = [[(x, weight / WHOLE) for x, weight in row] for row in document.entries]
    noise = [0.0] * len(limits)
    for row in table:
        for x, q in row:
            noise[x] += _surprise(q)
    outputs = [
        Interval(
            min(1.0, sum(q * limits[x].low for x, q in row)),
            min(1.0, sum(q * limits[x].high for x, q in row)),
        )
        for row in table
    ]
    low = sum(map(_least, outputs)) - sum(h * p.high for h, p in zip(noise, limits, strict=True))
    high = sum(map(_most, outputs)) - sum(h * p.low for h, p in zip(noise, limits, strict=True))
    return Interval(low, high)


def _explained(document: ProtocolDocument, limits: list[Interval]) -> Interval:
    """The share of the variance for any prior within limits."""
    if document.utility.explained is None:
        raise ValueError("there are numbers to explain")
    table = [[0.0] * len(limits) for _ in document.entries]
    for whole, row in zip(table, document.entries, strict=True):
        for x, weight in row:
            whole[x] = weight / WHOLE
    numbers = document.utility.explained.numbers
    return Interval(*explained_limits(table, [(limit.low, limit.high) for limit in limits], numbers))


def is_share_of(share: float, part: float, whole: float, step: float) -> bool:
    """Whether a share to a step is that of two entropies, each to its own."""
    return _quotient(part, whole, _step_of(whole, step)).meets(share, step / 2)


def _quotient(part: float, whole: float, step: float) -> Interval:
    half = step / 2
    low = max(0.0, part - half) / (whole + half)
    return Interval(low, 1.0 if whole <= half else min(1.0, (part + half) / (whole - half)))


def _surprise(p: float) -> float:
    return -p * math.log(p) if p > 0 else 0.0


def _least(p: Interval) -> float:
    return min(_surprise(p.low), _surprise(p.high))


def _most(p: Interval) -> float:
    peak = math.exp(-1)
    return peak if p.low <= peak <= p.high else max(_surprise(p.low), _surprise(p.high))


def guarantee_of(document: ProtocolDocument) -> Guarantee:
    """The declared guarantee; the document holds only such as can be read."""
    return parse_guarantee(document.guarantee.declared)


def explained_limits(weights: Sequence[Sequence[float]], prior: Sequence[Limits], numbers: Numbers) -> Limits:
    """The least and the most that Var E[N|Y] / Var N can be, in interval arithmetic; O(a b).

    Parameters
    ----------
    weights : b sequences of a floats
        P(y|x).
    prior : sequence of (low, high), length a
        What the distribution of the inputs may be.
    numbers : sequence of float or None, length a
        None for an input without a number, which counts as the mean of those that have one.
    """
    p, is_known = np.array(prior), np.array([n is not None for n in numbers])
    known, values = p[is_known], np.array([0.0 if n is None else n for n in numbers])
    whole = known.sum()
    if not whole:
        return 0.0, 1.0
    # From near the mean, what is not known of the distribution of numbers hardly matters.
    centre = values[is_known] @ known.sum(axis=1) / whole
    between = mean_between(known[:, 0], known[:, 1], values[is_known] - centre)
    gaps = np.where(is_known[:, np.newaxis], (values - centre)[:, np.newaxis], [between.low, between.high])
    products, squares = _times(p, gaps), _square(gaps)
    off, second = _square(products.sum(axis=0)), _times(p, squares).sum(axis=0)
    total = np.maximum(0.0, second - off[::-1])
    furthest = squares[:, 1].max()
    channel = np.array(weights)
    masses, told = channel @ p, _square(channel @ products)
    possible, sure = masses[:, 1] > 0, masses[:, 0] > 0
    low = (told[possible, 0] / masses[possible, 1]).sum()
    most = np.minimum(told[sure, 1] / masses[sure, 0], masses[sure, 1] * furthest)
    high = most.sum() + (masses[~sure, 1] * furthest).sum()
    least = max(0.0, low - off[1]) / total[1] if total[1] else 0.0
    largest = max(0.0, high - off[0]) / total[0] if total[0] else 1.0
    return min(1.0, float(least)), min(1.0, float(largest))


def _times(one: Floats, other: Floats) -> Floats:
    """The ends of products of numbers between ends (k, 2)."""
    ends = one[:, :, np.newaxis] * other[:, np.newaxis, :]
    return np.stack([ends.min(axis=(1, 2)), ends.max(axis=(1, 2))], axis=1)


def _square(one: Floats) -> Floats:
    """The ends of squares of numbers between ends (..., 2)."""
    ends = np.sort(one**2, axis=-1)
    ends[..., 0] = np.where((one[..., 0] <= 0) & (one[..., 1] >= 0), 0.0, ends[..., 0])
    return ends
