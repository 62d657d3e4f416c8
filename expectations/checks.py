"""Checks of a coming version: the table of those that need its source, spec and keys, beside those of an audit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from funnel.audit.check import Check, Result, State, judged
from funnel.audit.context import AuditContext
from funnel.audit.recheck import CHECKS
from funnel.errors import FunnelError
from funnel.pipeline.expectations.claims import Claim
from funnel.protocol import Protocol

if TYPE_CHECKING:
    from funnel.pipeline.expectations.finished import Finished

# What is there of every coming version that is whole.
_ALWAYS = {"public", "table", "counted", "figures", "asked", "folder", "internal"}


def _by_claims(name: str, needs: str, says: str) -> Check[Finished]:
    return Check(name, needs, says, lambda finished: result_of(name, finished.claims(name)))


SOURCE_CHECKS: tuple[Check[Finished], ...] = (
    _by_claims("declared files", "public", "The folder holds exactly the declared public files, as plain files."),
    _by_claims(
        "record classes",
        "classes",
        "Every published record is one of the source, of its class, and in every class records are as in the source.",
    ),
    _by_claims(
        "answers by key",
        "keyed",
        "Every record has the answer that its key and the release secret give it, derived again.",
    ),
    _by_claims(
        "drawn by input",
        "public",
        "Every record drew once; among those with the same input, outputs look drawn without regard to the secret.",
    ),
    _by_claims(
        "random order",
        "shuffled",
        "The order of the rows looks random: it follows neither the source nor inputs or secrets.",
    ),
    _by_claims(
        "order of the source",
        "unshuffled",
        "Rows are not shuffled, as the spec asks: they stand in the order of the source.",
    ),
    _by_claims(
        "random words",
        "public",
        "The random words that rows were drawn with and ordered by look uniform, and none was ever used twice.",
    ),
    _by_claims(
        "sampler",
        "public",
        "The sampler gives every output exactly the share of words that its weight says.",
    ),
    _by_claims(
        "source", "public", "The release was made from the source as it is now, by what the text of its spec says."
    ),
    _by_claims(
        "counted again",
        "public",
        "The counts that it was made from are those counted again from the source by another reader.",
    ),
    _by_claims(
        "noisy counts",
        "noise",
        "The public counts are the recounted ones with noise as the spec asks for it, over values that tell nothing.",
    ),
    _by_claims(
        "disclosure rules",
        "public",
        "The frequencies keep the rules of disclosure control, unless the spec asks to report only.",
    ),
    _by_claims(
        "protocol and spec",
        "public",
        "Bound, columns and protection in protocol.json are as the spec asks.",
    ),
    _by_claims(
        "package and spec",
        "public",
        "Version, columns, numbers and rules in the data package are those that the spec asks for.",
    ),
    _by_claims(
        "register",
        "followed",
        "Everything published about a person, in all versions together, keeps the bound, by the register.",
    ),
    _by_claims(
        "report and counts",
        "public",
        "Shares, lifts, errors and the comparison in the report follow from the public counts and the spec.",
    ),
)
"""Checks that need more than the files of a version: its source, its spec, keys and the register."""


def declared_checks(has: Collection[str]) -> list[Check[Any]]:
    """The checks that a version of these traits is judged by before it is published."""
    every: list[Check[Any]] = [*SOURCE_CHECKS, *CHECKS]
    return [one for one in every if one.applies(has)]


def traits(protocol: Protocol, asked: Collection[str]) -> frozenset[str]:
    """The words of `funnel.audit.check.Check.needs` that will be true of a version.

    Parameters
    ----------
    protocol : Protocol
        The published one.
    asked : collection of str
        What is asked of it: ``csv``, ``keyed``, ``followed``, ``noise``, ``numbers`` and ``classes``, and ``shuffled``.
    """
    is_plain = protocol.inputs.columns == protocol.outputs.columns
    words = {
        "exact": "noise" not in asked,
        "unshuffled": "shuffled" not in asked,
        "invariant": protocol.is_invariant,
        "plain": is_plain,
    }
    return frozenset({*_ALWAYS, *asked, *(word for word, known in words.items() if known)})


def made_checks(finished: Finished, has: Collection[str], context: AuditContext) -> Iterator[Result]:
    """What the checks of a version find, those of its source first; each fails alone where it cannot be made."""
    for source_check in SOURCE_CHECKS:
        if source_check.applies(has):
            yield from _made(source_check, finished)
    try:
        known = context.has
    except Exception as error:
        yield from (Result(one.name, State.FAILED, sentence_of(error)) for one in CHECKS if one.applies(has))
        return
    for check in CHECKS:
        if check.applies(known):
            yield from _made(check, context)


def _made(check: Check[Any], known: object) -> Iterator[Result]:
    try:
        found = check.verify(known)
    except Exception as error:
        found = Result(check.name, State.FAILED, sentence_of(error))
    if found is not None:
        yield found


def result_of(name: str, claims: Iterable[Claim]) -> Result:
    """The result of a check that is made of claims: it fails with those that do not hold."""
    return judged(name, [f"{one.name} {one.failure}" for one in claims if one.failure is not None], "all of it holds")


def sentence_of(error: Exception) -> str:
    """Why evidence is missing; only errors of this package are quoted, since others may hold a row."""
    if isinstance(error, FunnelError):
        return f"its evidence could not be gathered: {error}"
    return f"its evidence could not be gathered because {type(error).__name__} was raised"
