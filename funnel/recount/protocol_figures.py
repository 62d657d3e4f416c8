"""The figures of a protocol.json that follow from counts and weights: utility, prior, posteriors and marginal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from funnel.recount.channel import entries_of
from funnel.recount.plain_distributions import NOISE, Distributions, Json, Symbol, mismatch, nats_mismatch, share_step

# Posteriors and probabilities of outputs are told to four decimals.
_DECIMALS = 4

Complaint = tuple[str, str, str]
"""A part of the document, what in it is wrong, and why."""


def figure_complaints(content: Json, distributions: Distributions) -> Iterator[Complaint]:
    """What of a ``protocol.json`` does not follow from counts and weights.

    Parameters
    ----------
    content : mapping
        Of the file.
    distributions : Distributions
        Of the counts under its weights.
    """
    step = share_step(distributions.recount.rows)
    for figure, why in _utility(content["utility"], distributions, step, content["prior"]["symbols"]):
        if why is not None:
            yield "utility", figure, why
    for x, stated in zip(content["prior"]["symbols"], content["prior"]["probabilities"], strict=True):
        if (
            why := mismatch(stated, distributions.inputs.get(tuple(x), 0) / distributions.recount.rows, step)
        ) is not None:
            yield "prior", _named(x), why
    yield from _posteriors(content, distributions, step)
    if not _is_marginal(distributions, content["prior"], step):
        yield "marginal", "weights", "are not the distribution of the outputs"


def _utility(
    stated: Json, distributions: Distributions, step: float, symbols: Sequence[Sequence[str]]
) -> Iterator[tuple[str, str | None]]:
    """Utility, entropy and share, the share of the variance, and the number that every value stands for."""
    exact, explained = distributions.information, stated["explained"]
    yield "mutual information", nats_mismatch(stated["mutual_information_nats"], exact.utility, step)
    yield "entropy", nats_mismatch(stated["entropy_nats"], exact.entropy, step)
    yield "share", mismatch(stated["share"], distributions.share, step)
    if distributions.numbers is None or distributions.explained is None or explained is None:
        right = (explained is None) == (distributions.numbers is None)
        yield "explained", None if right else "is told where the spec asks for none, or is not told"
        return
    yield "explained", mismatch(explained["variance_share"], distributions.explained, step)
    known = [distributions.numbers.get(tuple(symbol)) for symbol in symbols]
    numbers = [None if number is None else float(number) for number in known]
    yield "numbers", None if list(explained["numbers"]) == numbers else f"are not {numbers!r}"


def _named(symbol: Sequence[str]) -> str:
    return repr(", ".join(symbol))


def _posteriors(content: Json, distributions: Distributions, step: float) -> Iterator[Complaint]:
    """Probability and posterior of every output, between least and largest shares of (x, y), where the secret is read.

    Where it is not, they follow from weights and prior, and are not there.
    """
    if not distributions.reads_secret:
        if content["posterior"] is not None:
            yield "posteriors", "all", "are told though they follow from the prior"
        return
    low, high = _rounded_pairs(distributions, step)
    least = math.fsum(math.fsum(masses.values()) for masses in low)
    most = math.fsum(math.fsum(masses.values()) for masses in high)
    symbols = {str(place): tuple(symbol) for place, symbol in enumerate(content["prior"]["symbols"])}
    for entry, lowest, highest in zip(content["posterior"], low, high, strict=True):
        name = _named(entry["output"])
        below, above = math.fsum(lowest.values()), math.fsum(highest.values())
        if not _is_between(stated := entry["probability"], below / most, above / least):
            yield "probabilities of outputs", name, f"is told with {stated!r}, which does not follow"
        for why in _posterior(entry, symbols, lowest, highest, below, above):
            yield "posteriors", name, why


def _posterior(
    entry: Json,
    symbols: Mapping[str, Symbol],
    low: Mapping[Symbol, float],
    high: Mapping[Symbol, float],
    below: float,
    above: float,
) -> Iterator[str]:
    """What is told of an output, and what of the values that it may come from is not."""
    if not symbols.keys() >= set(entry["inputs"]):
        yield "may come from a value that does not occur"
    told = {symbols[place]: share for place, share in entry["inputs"].items() if place in symbols}
    if not all(told.values()):
        yield "names a value that it does not come from"
    for x in {*told, *high}:
        most, least = high.get(x, 0.0), low.get(x, 0.0)
        # The rest of an output's mass goes the other way.
        bottom = least / (least + above - most) if least else 0.0
        top = most / (most + below - least) if most else 0.0
        if not _is_between(stated := told.get(x, 0.0), bottom, top):
            yield f"is told with {stated!r}, which is not what follows from weights and prior"


def _rounded_pairs(
    distributions: Distributions, step: float
) -> tuple[list[dict[Symbol, float]], list[dict[Symbol, float]]]:
    """Least and largest public shares of (x, y), by output: of rounded ones, and a tie may go either way."""
    low: list[dict[Symbol, float]] = [{} for _ in distributions.released.outputs]
    high: list[dict[Symbol, float]] = [{} for _ in distributions.released.outputs]
    for x, masses in distributions.pairs.items():
        for y, mass in masses.items():
            low[y][x], high[y][x] = _rounded(mass, step, -NOISE), _rounded(mass, step, NOISE)
    return low, high


def _rounded(share: float, step: float, noise: float) -> float:
    return max(1, round(share / step + noise)) * step if share > 0 else 0.0


def _is_between(stated: object, low: float, high: float) -> bool:
    half = 0.5 * 10.0**-_DECIMALS + NOISE
    return isinstance(stated, (int, float)) and low - half <= stated <= high + half


def _is_marginal(distributions: Distributions, prior: Json, step: float) -> bool:
    """Whether a record outside the alphabet draws from the distribution of outputs, exact or of public shares."""
    every = [
        weight
        for row in (distributions.released.marginal, *distributions.released.weights)
        for _, weight in entries_of(row)
    ]
    # Weights are on a grid: the largest power of two that divides all of them. The distribution is that of the weights
    # from before they were moved to the grid, each by less than three steps of it (`funnel.release.coarse`).
    unit = min((weight & -weight for weight in every), default=1)
    slack = 4 * unit + distributions.released.denominator * NOISE
    exact = _output_distribution(distributions, {symbol: float(count) for symbol, count in distributions.reads.items()})
    if distributions.reads_secret:
        n = distributions.recount.rows
        shares = {symbol: _rounded(count / n, step, 0.0) for symbol, count in distributions.reads.items()}
        # A tie may have been rounded the other way.
        slack += (
            distributions.released.denominator
            * step
            * sum(abs(count / n / step % 1 - 0.5) < NOISE for count in distributions.reads.values())
        )
    else:
        shares = {tuple(x): p for x, p in zip(prior["symbols"], prior["probabilities"], strict=True)}
    public = _output_distribution(distributions, shares)
    # Weights that were mixed with the exact distribution, at most a thousandth of it, moved by that much of the
    # difference.
    mixed = [abs(p - q) * distributions.released.denominator / 1000 for p, q in zip(exact, public, strict=True)]
    for distribution in (exact, public):
        gaps = [
            abs(m - p * distributions.released.denominator)
            for m, p in zip(distributions.released.marginal, distribution, strict=True)
        ]
        if all(gap <= slack + more for gap, more in zip(gaps, mixed, strict=True)):
            return True
    return False


def _output_distribution(distributions: Distributions, shares: Mapping[Symbol, float]) -> list[float]:
    whole = math.fsum(shares.values())
    parts: list[list[float]] = [[] for _ in distributions.released.outputs]
    for symbol, share in shares.items():
        for y, weight in entries_of(distributions.weights.get(symbol, distributions.released.marginal)):
            parts[y].append(share * weight)
    return [math.fsum(some) / whole / distributions.released.denominator for some in parts]
