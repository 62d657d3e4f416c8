"""What protocol.json states, held against what follows from the recounted records, its weights and the spec."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from funnel.errors import SpecError
from funnel.pipeline.expectations.claims import Claim, all_of, claim, same
from funnel.pipeline.expectations.frequency_claims import protection_claim
from funnel.pipeline.expectations.said import Said
from funnel.recount import PlainLevel, read_promise
from funnel.recount.balance import alphabet_complaints, balance_complaints, is_invariant
from funnel.recount.figures import NOISE, PARTS, figure_complaints
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.laws import Laws, Symbol, share_step

CLAIMS = (
    "canonical text",
    "guarantee",
    "level",
    "columns",
    "records outside the alphabet",
    *PARTS,
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
    figures = list(figure_complaints(content, laws))
    return [
        claim("canonical text", canonical, "holds more than its content"),
        guarantee_claim("guarantee", stated["declared"], said),
        level_claim("level", stated["level"], level),
        _columns(content, said, laws),
        same("records outside the alphabet", laws.outside, 0),
        *(all_of(part, (Claim(where, why) for one, where, why in figures if one == part)) for part in PARTS),
        _effective(laws, effective, step, content["rounded"]),
        protection_claim("frequencies", content["frequencies"], public, said),
        *_invariant(content, laws, said, public),
    ]


def _invariant(content: Mapping[str, Any], laws: Laws, said: Said, public: PublicFrequencies | None) -> Iterator[Claim]:
    """Of an invariant protocol that outputs are the inputs, with the distribution of the counts that are public."""
    asked = is_invariant({"mechanism": said.mechanism})
    if asked or is_invariant(content):
        known = claim("mechanism", not asked or is_invariant(content), "is not the one of the spec")
        yield all_of(
            "outputs are the inputs", [known, *(Claim("alphabet", why) for why in alphabet_complaints(content))]
        )
        symbols, counts = tuple(laws.inputs), list(laws.inputs.values())
        wrong = balance_complaints(content, symbols, counts, None if public is None else public.mean_of)
        yield all_of("balance", (Claim("balance", why) for why in wrong))
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


def _named(symbol: Sequence[str]) -> str:
    return repr(", ".join(symbol))
