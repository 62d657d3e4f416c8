"""Versions under a bound in the population that they are drawn from, and what both computations find in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pyarrow as pa

from funnel.audit.history import recount_histories
from funnel.pipeline.flows.pipeline import run_release
from funnel.register.register import Register
from funnel.release.findings import FindingsDocument
from funnel.release.layout import ReleaseFolder
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.projects import make_project

LEFT_OPEN = "frequencies of a population that are not ruled out"


@dataclass(frozen=True)
class PopulationVersions:
    """Releases about the same people or units, one after the other, in the register of a name."""

    folder: Path
    name: str
    releases: list[ReleaseFolder]

    @classmethod
    def of(cls, folder: Path, name: str, spec: str, tables: Iterable[pa.Table]) -> Self:
        """Release a table after the other by a spec."""
        releases = []
        for table in tables:
            path = make_project(folder, spec, table)
            told, _ = run_release(ReleaseSpec.load(path), again=False, rotate=False)
            releases.append(ReleaseFolder(Path(told["folder"])))
        return cls(folder, name, releases)

    @property
    def register(self) -> Register:
        """That all of them are in."""
        return Register.of(self.folder / ".funnel", self.name)

    def require_bound(self, share: float) -> None:
        """Both computations find the bound in every version, and each keeps more than a share of the information."""
        for one in self.releases:
            found = FindingsDocument.read(one.findings).history
            assert found.share > share
            assert [check for check in recheck(one) if check.failed] == []
        again = recount_histories(self.register.root)
        assert not again.complaints
        assert [(version.complaints, version.broken) for version in again.versions] == [((), ())] * len(self.releases)

    def require_refusal(self) -> None:
        """The second computation finds that they disclose too much, in a population that it does not rule out."""
        said = [said for version in recount_histories(self.register.root).versions for said in version.broken]
        assert any(LEFT_OPEN in one for one in said), said
