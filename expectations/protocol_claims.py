"""What protocol.json states, held against what follows from the recounted records, its weights and the spec."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from funnel.errors import SpecError
from funnel.pipeline.expectations.claims import NOISE, Claim, all_of, claim, near, near_nats, same
from funnel.pipeline.expectations.frequency_claims import protection_claim
from funnel.pipeline.expectations.laws import Laws, Symbol, prior_law, share_step
from funnel.pipeline.expectations.said import Said
from funnel.recount import PlainLevel, read_promise
from funnel.recount.balance import alphabet_complaints, balance_complaints, is_invariant
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.sparse_row import entries_of

# Posteriors and probabilities of outputs are told to four decimals.
_DECIMALS = 4
CLAIMS = (
    "canonical text",
    "guarantee",
    "level",
    "columns",
    "records outside the alphabet",
    "utility",
    "prior",
    "probabilities of outputs",
    "posteriors",
    "marginal",
    "effective channel",
    "frequencies",
    "outputs are the inputs",
    "balance",
)


def protocol_claims(
    content: Mapping[str, Any],
    canonical: bool,
    laws: Laws,
    level: PlainLevel,
    said: Said,
    effective: Mapping[Symbol, Sequence[Fraction]] | None = None,
    public: PublicFrequencies | None = None,
) -> list[Claim]:
    """What holds of the content of a ``protocol.json``.

    Parameters
    ----------
    content : mapping
        Of the file.
    canonical : bool
        Whether the file is, to the byte, what its content is written as: nothing else is hidden in it.
    laws : Laws
        Of the recounted records under these weights.
    level : PlainLevel
        Of the same, for the bound of the spec.
    said : Said
        What the text of the spec says.
    effective : mapping of input to b fractions, optional
        What the channels of all histories come to, where people have histories.
    public : PublicFrequencies, optional
        Where noise protects the frequencies.
    """
    stated = content["guarantee"]
    step = share_step(laws.recount.rows)
    return [
        claim("canonical text", canonical, "holds more than its content"),
        guarantee_claim("guarantee", stated["declared"], said),
        level_claim("level", stated["level"], level),
        _columns(content, said, laws),
        same("records outside the alphabet", laws.outside, 0),
        utility_claim("utility", content["utility"], laws, step, content["prior"]["symbols"]),
        _prior(content["prior"], laws, step),
        *_outputs(content, laws, step),
        _marginal(laws, content["prior"], step),
        _effective(laws, effective, step, content["rounded"]),
        protection_claim("frequencies", content["frequencies"], public, said),
        *_invariant(content, laws, said),
    ]


def _invariant(content: Mapping[str, Any], laws: Laws, said: Said) -> Iterator[Claim]:
    """Of an invariant protocol that outputs are the inputs, with the distribution of the counts that are public."""
    asked = is_invariant({"mechanism": said.mechanism})
    if asked or is_invariant(content):
        known = claim("mechanism", not asked or is_invariant(content), "is not the one of the spec")
        yield all_of(
            "outputs are the inputs", [known, *(Claim("alphabet", why) for why in alphabet_complaints(content))]
        )
        symbols, counts = tuple(laws.inputs), list(laws.inputs.values())
        yield all_of("balance", (Claim("balance", why) for why in balance_complaints(content, symbols, counts)))
    else:
        yield from (Claim("outputs are the inputs"), Claim("balance"))


def _effective(
    laws: Laws, effective: Mapping[Symbol, Sequence[Fraction]] | None, step: float, rounded: float | None = None
) -> Claim:
    """Where people have histories: that the protocol is what their channels come to, rounded to the grid it is on.

    Or nearer than it is said to be, which where there are none is not said.

    `HistoryEvidence` holds it to the register, by the documented way of rounding; this is by the drawing alone.
    """
    if effective is None:
        return claim("effective channel", rounded is None, "is said to be rounded, and nobody has a history")
    if set(effective) != set(laws.weights):
        return Claim("effective channel", "is about other values than people draw by")
    weights = [weight for column in laws.weights.values() for weight in column]
    # Weights of few bits may be on a coarser grid than they were rounded to: none is coarser than public shares.
    unit = min(math.gcd(*weights), int(laws.denominator * min(step, 2**-8)))
    law = [
        sum((n * effective[x][y] for x, n in laws.inputs.items()), Fraction(0)) / laws.recount.rows
        for y in range(len(laws.outputs))
    ]
    mixed = {x: _whole(_slightly_mixed(column, law)) for x, column in effective.items()}
    wrong = [_far(laws, exact, unit) for exact in (effective, mixed)]
    if None in wrong or (rounded is not None and _is_near(laws, effective, Fraction(rounded))):
        return Claim("effective channel")
    return Claim("effective channel", f"is not what the channels of all histories come to, at {_named(wrong[0] or ())}")


def _is_near(laws: Laws, effective: Mapping[Symbol, Sequence[Fraction]], rounded: Fraction) -> bool:
    """Whether no probability is further off than that, nor possible where it is not, unless all are."""
    pairs = [pair for x, column in laws.weights.items() for pair in zip(column, effective[x], strict=True)]
    most = laws.denominator * rounded + len(laws.outputs)
    near = all(abs(weight - laws.denominator * share) <= most for weight, share in pairs)
    same_support = all(bool(weight) == bool(share) for weight, share in pairs)
    return near and (same_support or all(weight for weight, _ in pairs))


def _slightly_mixed(column: Sequence[Fraction], law: Sequence[Fraction]) -> list[Fraction]:
    return [share + (q - share) / 1024 if share else share for share, q in zip(column, law, strict=True)]


def _whole(column: list[Fraction]) -> list[Fraction]:
    """The largest has what is left: the law of outputs that the input cannot have was not mixed in."""
    rest = column.index(max(column))
    return [share + (1 - sum(column) if y == rest else 0) for y, share in enumerate(column)]


def _far(laws: Laws, exact: Mapping[Symbol, Sequence[Fraction]], unit: int) -> Symbol | None:
    """The first input with a weight that is not one of its own, rounded; None if there is none."""
    b = len(laws.outputs)
    for x, column in laws.weights.items():
        gaps = [abs(weight - laws.denominator * share) for weight, share in zip(column, exact[x], strict=True)]
        # The largest has what is left. Whole numbers that the channels were added up in may each be off by one.
        rest = exact[x].index(max(exact[x]))
        others = [gap for y, gap in enumerate(gaps) if y != rest]
        if any(gap > unit + b for gap in others) or gaps[rest] > b * (unit + b):
            return x
        if any(bool(weight) != bool(share) for weight, share in zip(column, exact[x], strict=True)):
            return x
    return None


def guarantee_claim(name: str, stated: object, said: Said) -> Claim:
    """That the stated bound is the one of the spec, number by number."""
    try:
        promise = read_promise(str(stated))
    except SpecError:
        return Claim(name, "is no guarantee")
    return claim(name, promise == said.promise, f"is {stated!r}, which is not the bound of the spec")


def level_claim(name: str, stated: object, level: PlainLevel) -> Claim:
    """That a stated level is not below the plain one, and within the declared budget if that one is."""
    if isinstance(stated, bool) or not isinstance(stated, (int, float)) or not math.isfinite(stated):
        return Claim(name, "is no number")
    budget = float(level.promise.budget)
    if stated < level.nats * (1 - NOISE):
        return Claim(name, f"is {stated!r}, which is less than the protocol leaks")
    return claim(name, not level.holds or stated <= budget, f"is {stated!r}, beyond the bound of {budget!r} that holds")


def utility_claim(
    name: str, stated: Mapping[str, Any], laws: Laws, step: float, symbols: Sequence[Sequence[str]]
) -> Claim:
    """That utility, entropy and share are the exact ones, rounded, and numbers those of the published values."""
    return all_of(
        name,
        [
            near_nats("mutual information", stated["mutual_information_nats"], laws.information.utility, step),
            near_nats("entropy", stated["entropy_nats"], laws.information.entropy, step),
            near("share", stated["share"], laws.share, step),
            *_explained(stated["explained"], laws, step, symbols),
        ],
    )


def _explained(
    stated: Mapping[str, Any] | None, laws: Laws, step: float, symbols: Sequence[Sequence[str]]
) -> Iterator[Claim]:
    """The share of the variance, and the number that every value stands for."""
    if laws.numbers is None or stated is None:
        yield same("explained", stated is None, laws.numbers is None)
        return
    yield explained_claim("explained", stated["variance_share"], laws, step)
    known = [laws.numbers.get(tuple(symbol)) for symbol in symbols]
    numbers = [None if number is None else float(number) for number in known]
    yield same("numbers", list(stated["numbers"]), numbers)


def explained_claim(name: str, stated: object, laws: Laws, step: float) -> Claim:
    """That a share of the variance is the exact one, rounded; that none is told where the spec asks for none."""
    if laws.explained is None or stated is None:
        return same(name, stated, laws.explained)
    return near(name, stated, laws.explained, step)


def _columns(content: Mapping[str, Any], said: Said, laws: Laws) -> Claim:
    publish = list(said.publish)
    # What is published of a record may be named otherwise than what it is, but in the same columns.
    return all_of(
        "columns",
        [
            same("outputs", content["outputs"]["columns"], publish),
            same("secret", content["guarantee"]["secret"], list(said.secret)),
            same("prior", content["prior"]["columns"], publish),
            same("utility", content["utility"]["columns"], publish),
            claim("prior", _symbols(content) == set(laws.recount.inputs), "is about other values than occur"),
            claim(
                "inputs",
                laws.reads_secret or set(laws.weights) == set(laws.recount.inputs),
                "are other values than occur in the source",
            ),
        ],
    )


def _symbols(content: Mapping[str, Any]) -> set[Symbol]:
    return {tuple(symbol) for symbol in content["prior"]["symbols"]}


def _prior(prior: Mapping[str, Any], laws: Laws, step: float) -> Claim:
    n = laws.recount.rows
    shares = zip(prior["symbols"], prior["probabilities"], strict=True)
    return all_of("prior", (near(_named(x), p, laws.inputs.get(tuple(x), 0) / n, step) for x, p in shares))


def _named(symbol: Sequence[str]) -> str:
    return repr(", ".join(symbol))


def _outputs(content: Mapping[str, Any], laws: Laws, step: float) -> Iterator[Claim]:
    """Probability and posterior of every output, within what the rounding of shares leaves open."""
    low, high = _public_pairs(content["prior"], laws, step)
    least = math.fsum(math.fsum(masses.values()) for masses in low)
    most = math.fsum(math.fsum(masses.values()) for masses in high)
    symbols = {str(place): tuple(symbol) for place, symbol in enumerate(content["prior"]["symbols"])}
    probabilities: list[Claim] = []
    posteriors: list[Claim] = []
    for entry, lowest, highest in zip(content["posterior"], low, high, strict=True):
        name = _named(entry["output"])
        below, above = math.fsum(lowest.values()), math.fsum(highest.values())
        probabilities.append(_between(name, entry["probability"], below / most, above / least))
        posteriors += _posterior(entry, symbols, lowest, highest, below, above)
    yield all_of("probabilities of outputs", probabilities)
    yield all_of("posteriors", posteriors)


def _posterior(
    entry: Mapping[str, Any],
    symbols: Mapping[str, Symbol],
    low: Mapping[Symbol, float],
    high: Mapping[Symbol, float],
    below: float,
    above: float,
) -> Iterator[Claim]:
    """What is told of an output, and what of the values that it may come from is not."""
    for place in entry["inputs"]:
        if place not in symbols:
            yield Claim(_named(entry["output"]), "may come from a value that does not occur")
    told = {symbols[place]: share for place, share in entry["inputs"].items() if place in symbols}
    for x in {*told, *high}:
        most, least = high.get(x, 0.0), low.get(x, 0.0)
        # The rest of an output's mass goes the other way.
        bottom = least / (least + above - most) if least else 0.0
        top = most / (most + below - least) if most else 0.0
        yield _between(_named(entry["output"]), told.get(x, 0.0), bottom, top)


def _public_pairs(
    prior: Mapping[str, Any], laws: Laws, step: float
) -> tuple[list[dict[Symbol, float]], list[dict[Symbol, float]]]:
    """Least and largest public shares of (x, y), by output: of rounded ones, and a tie may go either way."""
    low: list[dict[Symbol, float]] = [{} for _ in laws.outputs]
    high: list[dict[Symbol, float]] = [{} for _ in laws.outputs]
    if not laws.reads_secret:
        shares = {tuple(x): p for x, p in zip(prior["symbols"], prior["probabilities"], strict=True)}
        for symbol, p in prior_law(shares, step, laws.released.sparse).items():
            for y, weight in entries_of(laws.column((), symbol)):
                low[y][symbol] = p * weight / laws.denominator
        return low, low
    for x, masses in laws.pairs.items():
        for y, mass in masses.items():
            low[y][x], high[y][x] = _told(mass, step, -NOISE), _told(mass, step, NOISE)
    return low, high


def _told(share: float, step: float, noise: float) -> float:
    return max(1, round(share / step + noise)) * step if share > 0 else 0.0


def _between(name: str, stated: object, low: float, high: float) -> Claim:
    half = 0.5 * 10.0**-_DECIMALS + NOISE
    fine = isinstance(stated, (int, float)) and low - half <= stated <= high + half
    return claim(name, fine, f"is told with {stated!r}, which is not what follows from weights and prior")


def _marginal(laws: Laws, prior: Mapping[str, Any], step: float) -> Claim:
    """What a record outside the alphabet draws from is the law of outputs: the exact one, or that of public shares."""
    every = [weight for row in (laws.marginal, *laws.released.weights) for _, weight in entries_of(row)]
    # Weights are on a grid: the largest power of two that divides all of them. The law is that of the weights from
    # before they were moved to the grid, each by less than three steps of it (`funnel.release.coarse`).
    unit = min((weight & -weight for weight in every), default=1)
    slack = 4 * unit + laws.denominator * NOISE
    exact = _law(laws, {symbol: float(count) for symbol, count in laws.reads.items()})
    if laws.reads_secret:
        n = laws.recount.rows
        shares = {symbol: _told(count / n, step, 0.0) for symbol, count in laws.reads.items()}
        # A tie may have been rounded the other way.
        slack += laws.denominator * step * sum(abs(count / n / step % 1 - 0.5) < NOISE for count in laws.reads.values())
    else:
        shares = {tuple(x): p for x, p in zip(prior["symbols"], prior["probabilities"], strict=True)}
    public = _law(laws, shares)
    # Weights that were mixed with the exact law, at most a thousandth of it, moved by that much of the difference.
    mixed = [abs(p - q) * laws.denominator / 1000 for p, q in zip(exact, public, strict=True)]
    for law in (exact, public):
        gaps = [abs(m - p * laws.denominator) for m, p in zip(laws.marginal, law, strict=True)]
        if all(gap <= slack + more for gap, more in zip(gaps, mixed, strict=True)):
            return Claim("marginal")
    return Claim("marginal", "is not the law of the outputs")


def _law(laws: Laws, shares: Mapping[Symbol, float]) -> list[float]:
    whole = math.fsum(shares.values())
    parts: list[list[float]] = [[] for _ in laws.outputs]
    for symbol, share in shares.items():
        for y, weight in entries_of(laws.weights.get(symbol, laws.marginal)):
            parts[y].append(share * weight)
    return [math.fsum(some) / whole / laws.denominator for some in parts]
