"""Finished: the folder of a coming version with its spec, which is all that a release is judged by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd

from funnel.audit.check import Result
from funnel.audit.context import AuditContext
from funnel.audit.recheck import OF_WRITERS
from funnel.audit.told import Coming, Told
from funnel.pipeline.expectations.checks import CLAIMS, made_checks, traits
from funnel.pipeline.expectations.claims import Claim
from funnel.pipeline.expectations.finished_folder import FinishedFolder
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
        _, claims = CLAIMS[name]
        return claims(self)
