"""What protocol.json states, held against what follows from the recounted records, its weights and the spec."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from funnel.errors import SpecError
from funnel.pipeline.expectations.claims import Claim, all_of, claim, same
from funnel.pipeline.expectations.finished_folder import FinishedFolder
from funnel.pipeline.expectations.spec_text import SpecText
from funnel.recount import read_promise
from funnel.recount.balance import is_invariant
from funnel.recount.plain_distributions import Distributions, Symbol


def protocol_claims(finished: FinishedFolder) -> list[Claim]:
    """Bound, columns and protection in protocol.json are as the spec asks.

    Where people have histories the channel is that of their register, rounded, which `HistoryEvidence` and an audit
    hold it to.
    """
    content, laws, said = finished.protocol, finished.laws, finished.spec_text
    known, of_same = finished.drawing_document is not None or content["rounded"] is None, said.people == "same"
    asked = is_invariant({"mechanism": said.mechanism})
    return [
        guarantee_claim("guarantee", content["guarantee"]["declared"], said),
        _columns(content, said, laws),
        same("records outside the alphabet", laws.outside, 0),
        claim("effective channel", known, "is said to be rounded, and nobody has a history"),
        same("protection", content["frequencies"]["protection"], said.frequencies.protection),
        claim("versions without noise", of_same or not content["frequencies"]["unprotected"], "where each is alone"),
        same("numbers", _numbers(content), None if laws.numbers is None else _expected(content, laws.numbers)),
        claim("mechanism", not asked or is_invariant(content), "is not the one of the spec"),
    ]


def _numbers(content: Mapping[str, Any]) -> object:
    """The numbers that values are said to stand for, where the variance that is explained is told."""
    explained = content["utility"]["explained"]
    return None if explained is None else explained["numbers"]


def _expected(content: Mapping[str, Any], numbers: Mapping[Symbol, Fraction | None]) -> list[float | None]:
    """The same by the spec."""
    known = [numbers.get(tuple(symbol)) for symbol in content["prior"]["symbols"]]
    return [None if number is None else float(number) for number in known]


def guarantee_claim(name: str, stated: object, said: SpecText) -> Claim:
    """That the stated bound is the one of the spec, number by number."""
    try:
        promise = read_promise(str(stated))
    except SpecError:
        return Claim(name, "is no guarantee")
    return claim(name, promise == said.promise, f"is {stated!r}, which is not the bound of the spec")


def _columns(content: Mapping[str, Any], said: SpecText, laws: Distributions) -> Claim:
    return all_of(
        "columns",
        [
            same("outputs", content["outputs"]["columns"], list(said.publish)),
            same("secret", content["guarantee"]["secret"], list(said.secret)),
            claim(
                "inputs",
                laws.reads_secret or set(laws.weights) == set(laws.recount.inputs),
                "are other values than occur in the source",
            ),
        ],
    )
