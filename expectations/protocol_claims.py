"""What protocol.json states, held against what follows from the recounted records, its weights and the spec."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from funnel.errors import SpecError
from funnel.pipeline.expectations.claims import Claim, all_of, claim, same
from funnel.pipeline.expectations.frequency_claims import protection_claim
from funnel.pipeline.expectations.said import Said
from funnel.recount import PlainLevel, read_promise
from funnel.recount.balance import alphabet_complaints, balance_complaints, is_invariant
from funnel.recount.figures import NOISE, PARTS, figure_complaints
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.laws import Laws, Symbol

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
    has_histories: bool = False,
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
    has_histories : bool
        Whether people have histories: then the channel is that of their register, rounded, which `HistoryEvidence` and
        the audit hold it to.
    public : PublicFrequencies, optional
        Where noise protects the frequencies.
    """
    stated = content["guarantee"]
    figures = list(figure_complaints(content, laws))
    return [
        claim("canonical text", canonical, "holds more than its content"),
        guarantee_claim("guarantee", stated["declared"], said),
        level_claim("level", stated["level"], level),
        _columns(content, said, laws),
        same("records outside the alphabet", laws.outside, 0),
        *(all_of(part, (Claim(where, why) for one, where, why in figures if one == part)) for part in PARTS),
        claim(
            "effective channel",
            has_histories or content["rounded"] is None,
            "is said to be rounded, and nobody has a history",
        ),
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
