"""Finished: the folder of a coming version with its spec, which is all that a release is judged by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd

from funnel.audit.check import Result
from funnel.audit.context import AuditContext
from funnel.audit.recheck import OF_WRITERS
from funnel.audit.told import Coming, Told
from funnel.pipeline.expectations.checks import made_checks, traits
from funnel.pipeline.expectations.claims import Claim
from funnel.pipeline.expectations.class_claims import class_claims
from funnel.pipeline.expectations.disclosure_claims import disclosure_claims
from funnel.pipeline.expectations.finished_folder import FinishedFolder
from funnel.pipeline.expectations.frequency_claims import frequency_claims
from funnel.pipeline.expectations.keyed_answers import answer_claims
from funnel.pipeline.expectations.package_claims import package_claims
from funnel.pipeline.expectations.protocol_claims import protocol_claims
from funnel.pipeline.expectations.public_files import files_claims
from funnel.pipeline.expectations.report_claims import report_claims
from funnel.pipeline.expectations.source_claims import count_claims, source_claims
from funnel.rendering import page_renderer

if TYPE_CHECKING:
    from funnel.pipeline.expectations.custom import ReleaseExpectation


@dataclass(frozen=True, eq=False)
class Finished(FinishedFolder):
    """A finished folder, table by table: what is claimed of it and whether that holds."""

    def declared(self) -> list[ReleaseExpectation]:
        """What is expected of it."""
        from funnel.pipeline.expectations.suite import declare

        return declare(self.evidence, self._traits)

    @property
    def _traits(self) -> frozenset[str]:
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
        return tuple(made_checks(self, self._traits, self.context))

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
        excused = OF_WRITERS if self.taken_over else ()
        rows = [
            (one.name, str(one.state), None if one.passed or (not one.failed and one.name in excused) else one.detail)
            for one in self.results
        ]
        return self.evidence.counted(pd.DataFrame(rows, columns=["check", "state", "failure"]))

    def claims(self, name: str) -> list[Claim]:
        """What the files state that a check of the source is about, each with whether it holds."""
        return CLAIMS[name](self)


def _register_claims(finished: Finished) -> list[Claim]:
    evidence = finished.history_evidence
    if evidence is None:
        return [Claim("register", "cannot be judged: no register is handed on")]
    return evidence.claims()


CLAIMS: Mapping[str, Callable[[Finished], list[Claim]]] = {
    "declared files": files_claims,
    "drawn by input": lambda finished: finished.drawing.independence(),
    "random order": lambda finished: finished.drawing.random_order(),
    "order of the source": lambda finished: finished.drawing.source_order(),
    "random words": lambda finished: finished.drawing.random_words(),
    "sampler": lambda finished: finished.drawing.sampler(),
    "record classes": class_claims,
    "source": source_claims,
    "answers by key": answer_claims,
    "register": _register_claims,
    "noisy counts": frequency_claims,
    "counted again": count_claims,
    "disclosure rules": lambda finished: disclosure_claims(finished.public.counts, finished.spec_text),
    "protocol and spec": protocol_claims,
    "package and spec": package_claims,
    "report and counts": report_claims,
}
"""What a version states by the checks of its source, by their names."""
