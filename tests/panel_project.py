"""A project of a small panel, and whether what is published, its register and its ledger tell the same of it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from funnel.pipeline.ledger.account import ledger_of
from funnel.pipeline.ledger.reconcile import newest_of_each
from funnel.register.register import Register
from funnel.release.layout import ReleaseFolder, versions
from funnel.release.record import Record
from funnel.spec import ReleaseSpec
from tests.stage import Ended, Stage
from tests.waves import COUNTED, wave

PEOPLE = 300

SPEC = COUNTED.replace('"panel"', '"NAME"').replace("people.parquet", "panel.parquet")
SPEC = SPEC.replace('["income"]', '["kids", "income"]').replace("[source]", '[mechanism]\nname = "grr"\n\n[source]')
SPEC += 'register = "panel-people"\n'


@dataclass(frozen=True)
class PanelProject:
    """A folder with a source, a spec and what comes of it.

    Attributes
    ----------
    folder : Path
    stage : Stage
        Runs its commands.
    name : str
        Of the series.
    """

    folder: Path
    stage: Stage
    name: str = "panel"

    @property
    def spec(self) -> Path:
        return self.folder / f"{self.name}.toml"

    @property
    def series(self) -> Path:
        return self.folder / "releases" / self.name

    @property
    def workspace(self) -> Path:
        return self.folder / ".funnel"

    @property
    def register(self) -> Register:
        """As it is on disk now."""
        return Register.of(self.workspace, "panel-people")

    def write_spec(self, extra: str = "") -> None:
        """Write the spec."""
        self.spec.write_text(SPEC.replace("NAME", self.name) + extra)

    def source(self, table: pa.Table | int) -> None:
        """Put a table, or the wave of a year, in the place of the source."""
        pq.write_table(wave(table, PEOPLE) if isinstance(table, int) else table, self.folder / "panel.parquet")

    def release(self, *options: str, **how: Any) -> Ended:
        """``funnel release --json``."""
        return self.stage.run("release", self.spec, "--json", *options, **how)

    def copy(self, folder: Path) -> PanelProject:
        """The same project in another folder."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return PanelProject(folder, self.stage, self.name)

    def rows(self, version: str) -> str:
        """Digest of the rows of a version, in whatever order."""
        return digest_of_rows(self.series / version)

    def in_folders(self) -> list[str]:
        """Versions that are published."""
        return [str(version) for version in versions(self.series)]

    def in_register(self) -> list[str]:
        """Names of all versions about these people."""
        return [entry.name for entry in self.register.entries]

    def in_ledger(self) -> dict[str, str]:
        """The last that the ledger says of every version of this series."""
        spec = ReleaseSpec.load(self.spec)
        with ledger_of(spec, read_only=True) as ledger:
            ledger.verify()
            entries = list(ledger.entries(series=self.name))
        (place,) = {entry.event.place for entry in entries}
        events = newest_of_each((entry.event for entry in entries), self.name, place)
        return {version: event.kind for version, event in events.items()}

    def require_agreement(self, *, withdrawn: tuple[str, ...] = ()) -> None:
        """Make sure that folders, register and ledger tell of the same versions and of the same answers.

        Of every version that is there, the answers that the register keeps are as often each as the rows that are
        published; its record names the entry, and a head that the register knows.
        """
        there = self.in_folders()
        entries = {entry.version: entry for entry in self.register.entries if entry.series == self.name}
        assert sorted(entries) == sorted([*there, *withdrawn])
        # Restored: published before this ledger was begun.
        told = {version: kind.replace("restored", "published") for version, kind in self.in_ledger().items()}
        assert told == {**dict.fromkeys(there, "published"), **dict.fromkeys(withdrawn, "withdrawn")}
        self.register.check()
        head = self.register.head
        assert head is not None
        for version in there:
            folder, entry = ReleaseFolder(self.series / version), entries[version]
            history = Record.read(folder.record).history
            assert history is not None
            assert (history.entry, history.ordinal) == (head.entries[entry.ordinal].entry, entry.ordinal)
            assert history.head is not None
            self.register.require_head(history.head)
            assert 0 <= history.level <= 1
            assert _noted(self.register, entry.ordinal) == _published(folder, entry.outputs.columns)
        left = [path.name for path in (*self.series.iterdir(), *self.register.root.iterdir())]
        assert [name for name in left if name.startswith(".")] == []

    def require_whole(self, version: str, *, withdrawn: tuple[str, ...] = ()) -> None:
        """Make sure that all agrees, that the newest version passes its audit, and that nothing is to be released."""
        self.require_agreement(withdrawn=withdrawn)
        verified = self.stage.run("ledger", "verify", self.spec)
        assert verified.status == 0, verified.stderr
        audited = self.stage.run("audit", self.series / "latest", "--json")
        assert audited.status == 0, audited.stdout
        checks = {check["name"]: check["state"] for check in json.loads(audited.stdout)["checks"]}
        # Counted again from the files of the register, with code of its own.
        assert checks["histories"] == "passed"
        said = self.release().said
        assert (said["status"], said["version"]) == ("unchanged", version)


def digest_of_rows(folder: Path) -> str:
    """Digest of the rows of a version that is put together in a folder, in whatever order."""
    rows = sorted(map(str, pq.read_table(ReleaseFolder(folder).data).to_pylist()))
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def _noted(register: Register, ordinal: int) -> Counter[tuple[str, ...]]:
    """How often each answer is, as the register keeps who got which."""
    entry = register.entries[ordinal]
    nodes = pq.read_table(register.people(ordinal)[0], columns=["node"]).column(0).to_numpy()
    outputs = pq.read_table(register.root / entry.folder / "nodes.parquet", columns=["output"]).column(0).to_numpy()
    symbols = entry.outputs.alphabet().symbols
    return Counter(symbols[outputs[node - entry.first]] for node in nodes)


def _published(folder: ReleaseFolder, columns: tuple[str, ...]) -> Counter[tuple[str, ...]]:
    """How often each answer is in the published rows."""
    table = pq.read_table(folder.data, columns=list(columns))
    return Counter(tuple(map(str, row.values())) for row in table.to_pylist())
