"""Checks of a coming version: the table of those that need its source, spec and keys, beside those of an audit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any

import pandas as pd

from funnel.audit.check import Check, Result, State, judged, sentence_of
from funnel.audit.context import AuditContext, Coming, Told
from funnel.audit.recheck import CHECKS, is_excused
from funnel.errors import FunnelError
from funnel.pipeline.expectations.claims import Claim
from funnel.pipeline.expectations.class_claims import class_claims
from funnel.pipeline.expectations.drawing_claims import (
    drawn_by_input,
    in_source_order,
    random_order,
    random_words,
    sampler,
)
from funnel.pipeline.expectations.finished_folder import FinishedFolder
from funnel.pipeline.expectations.frequency_claims import disclosure_claims, frequency_claims
from funnel.pipeline.expectations.history_claims import register_claims
from funnel.pipeline.expectations.keyed_answers import answer_claims
from funnel.pipeline.expectations.report_claims import report_claims
from funnel.pipeline.expectations.spec_claims import (
    count_claims,
    files_claims,
    package_claims,
    protocol_claims,
    source_claims,
)
from funnel.progress import Progress, quiet
from funnel.protocol import Protocol
from funnel.rendering import page_renderer

if TYPE_CHECKING:
    from funnel.pipeline.expectations.custom import ReleaseExpectation

_JUDGING = "judging the release"
# What is there of every coming version that is whole.
_ALWAYS = {"public", "table", "counted", "figures", "asked", "folder", "internal"}


CLAIMS: Mapping[str, tuple[str, Callable[[Any], list[Claim]]]] = {
    "declared files": ("public", files_claims),
    "record classes": ("classes", class_claims),
    "answers by key": ("keyed", answer_claims),
    "drawn by input": ("public", drawn_by_input),
    "random order": ("shuffled", random_order),
    "order of the source": ("unshuffled", in_source_order),
    "random words": ("public", random_words),
    "sampler": ("public", sampler),
    "source": ("public", source_claims),
    "counted again": ("public", count_claims),
    "noisy counts": ("noise", frequency_claims),
    "disclosure rules": ("public", disclosure_claims),
    "protocol and spec": ("public", protocol_claims),
    "package and spec": ("public", package_claims),
    "register": ("followed", register_claims),
    "report and counts": ("public", report_claims),
}
"""What a version states that is held against its source, its spec, keys and the register; with what that needs."""


def _by_claims(name: str, needs: str, claims: Callable[[Any], list[Claim]]) -> Check[Finished]:
    return Check(name, needs, sentence_of(claims), lambda finished: result_of(name, claims(finished)))


SOURCE_CHECKS = tuple(_by_claims(name, *needs_and_claims) for name, needs_and_claims in CLAIMS.items())
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
    words = {
        "exact": "noise" not in asked,
        "unshuffled": "shuffled" not in asked,
        "invariant": protocol.is_invariant,
    }
    return frozenset({*_ALWAYS, *asked, *(word for word, known in words.items() if known)})


def made_checks(finished: Finished, has: Collection[str], context: AuditContext) -> Iterator[Result]:
    """What the checks of a version find, those of its source first; each fails alone where it cannot be made."""
    number, made = len(declared_checks(has)), count()

    def results(checks: Iterable[Check[Any]], about: object) -> Iterator[Result]:
        for check in checks:
            finished.progress(_JUDGING, next(made), number)
            try:
                found = check.verify(about)
            except Exception as error:
                found = Result(check.name, State.FAILED, reason_of(error))
            if found is not None:
                yield found

    yield from results((one for one in SOURCE_CHECKS if one.applies(has)), finished)
    try:
        known = context.has
    except Exception as error:
        yield from (Result(one.name, State.FAILED, reason_of(error)) for one in CHECKS if one.applies(has))
    else:
        yield from results((one for one in CHECKS if one.applies(known)), context)


def result_of(name: str, claims: Iterable[Claim]) -> Result:
    """The result of a check that is made of claims: it fails with those that do not hold."""
    return judged(name, [f"{one.name} {one.failure}" for one in claims if one.failure is not None], "all of it holds")


def reason_of(error: Exception) -> str:
    """Why evidence is missing; only errors of this package are quoted, since others may hold a row."""
    if isinstance(error, FunnelError):
        return f"its evidence could not be gathered: {error}"
    return f"its evidence could not be gathered because {type(error).__name__} was raised"


@dataclass(frozen=True, eq=False)
class Finished(FinishedFolder):
    """A finished folder, table by table: what is claimed of it and whether that holds.

    Parameters
    ----------
    progress : callable
        Told how many checks are made.
    """

    progress: Progress = quiet

    def declared(self) -> list[ReleaseExpectation]:
        """What is expected of it."""
        from funnel.pipeline.expectations.custom import declare

        return declare(self.evidence, declared_checks(self.traits))

    @property
    def traits(self) -> frozenset[str]:
        """The words of what checks need that are true of it."""
        said = self.spec_text
        asked = {
            "csv": said.csv,
            "keyed": said.keyed,
            "followed": self.is_followed,
            "noise": said.has_noise,
            "numbers": bool(said.drawn),
            "classes": self.classes is not None,
            "shuffled": said.shuffled,
        }
        return traits(self.document.protocol, {word for word, holds in asked.items() if holds})

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """What all checks of it find."""
        return tuple(made_checks(self, self.traits, self.context))

    @cached_property
    def context(self) -> AuditContext:
        """What an audit knows of it: it has no record and no signature yet."""
        entry = None if self.prepared is None else self.prepared.coming
        coming = Coming(self.folder.root, self.spec.workspace_folder, None, entry, self.taken_over)
        return AuditContext(self.folder, Told(render=page_renderer(), coming=coming))

    def table(self, name: str) -> pd.DataFrame:
        """One of the tables to judge: the results of checks, or one of the evidence."""
        if name != "checks":
            return self.evidence.table(name)
        rows = [
            (one.name, str(one.state), None if one.passed or is_excused(one, self.taken_over) else one.detail)
            for one in self.results
        ]
        return self.evidence.counted(pd.DataFrame(rows, columns=["check", "state", "failure"]))

    def claims(self, name: str) -> list[Claim]:
        """What the files state that a check of the source is about, each with whether it holds."""
        _, claims = CLAIMS[name]
        return claims(self)
