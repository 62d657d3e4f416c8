"""People who are the same, and frequencies with noise: what is published, what it says of changes, what is judged."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.audit.histories import recount_histories
from funnel.console import frequencies_line
from funnel.pipeline.flows.way import go
from funnel.recount.frequencies import PublicFrequencies
from funnel.register.register import Register
from funnel.release import secret
from funnel.release.layout import ReleaseFolder
from funnel.release.protection import Protection
from funnel.release.record import Record
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.projects import adult_rows, make_project
from tests.tasks.test_neighbours import DECLARED, released, require_the_same, told_alike, with_another_secret
from tests.waves import WAVES, wave

PANEL = """
name = "panel"
title = "A panel"
secret = ["outwork"]
publish = ["kids"]
record_key = ["id"]
guarantee = "lip:1.0"

[source]
path = "people.parquet"

[mechanism]
name = "grr"

[frequencies]
epsilon = 2.0

[categories]
outwork = ["in", "out"]
kids = ["no", "yes"]

[history]
people = "same"

[metadata]
licence = "CC-BY-4.0"
"""
KEYED = DECLARED.replace('people = "different"', 'people = "same"').replace(
    'secret = ["marital', 'record_key = ["id"]\nsecret = ["marital'
)


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two waves, released, with the frequencies of both under noise."""
    folder = tmp_path_factory.mktemp("panel")
    for year in WAVES[:2]:
        told, done = go(ReleaseSpec.load(make_project(folder, PANEL, wave(year, 800))), again=False, rotate=False)
        assert done is not None, told
    return folder


def test_counts_in_the_register_are_the_published_ones(panel: Path) -> None:
    register = Register.of(panel / ".funnel", "panel")
    for entry, version in zip(register.entries, ("1.0.0", "1.1.0"), strict=True):
        folder = ReleaseFolder(panel / "releases" / "panel" / version)
        public = PublicFrequencies.parse(folder.frequencies.read_bytes())
        assert entry.counts == public.counts
        assert entry.noise == public.epsilon_counts == (2.0 if version == "1.0.0" else 1.5)
        people = pq.read_metadata(register.root / entry.folder / "people.parquet").num_rows
        assert people == Record.read(folder.record).rows
    # Both computations take them for the law, and no history leaves the bound.
    found = recount_histories(register.root)
    assert not found.complaints
    assert [(version.complaints, version.broken) for version in found.versions] == [((), ())] * 2
    assert all(version.level <= 1 for version in found.versions)
    assert found.versions[0].histories == 1 < found.versions[1].histories


@pytest.mark.parametrize("version", ["1.0.0", "1.1.0"])
def test_an_audit_passes_though_nobody_has_some_values(panel: Path, version: str) -> None:
    checks = recheck(ReleaseFolder(panel / "releases" / "panel" / version))
    assert [check for check in checks if check.failed] == []


@pytest.mark.parametrize("version", ["1.0.0", "1.1.0"])
def test_no_public_file_says_that_something_is_exact(panel: Path, version: str) -> None:
    folder = ReleaseFolder(panel / "releases" / "panel" / version)
    page = folder.report.read_text(encoding="utf-8")
    assert "not protected by the noise" not in page
    assert ("counts of how people changed" in page) is (version == "1.1.0")
    package = json.loads(folder.package.read_bytes())
    assert package["funnel:privacy"]["frequencies"]["meaning"].endswith("never from the exact ones")
    record = Record.read(folder.record).frequencies
    assert record is not None
    assert "no public file is made from exact ones" in frequencies_line(
        Protection.model_validate(record.public.model_dump())
    )


def test_the_first_version_of_a_register_is_a_function_of_noisy_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The same release secret: what people's answers are derived from.
    same = SimpleNamespace(token_hex=lambda size: hashlib.shake_256(b"secret").hexdigest(size))
    monkeypatch.setattr(secret, "secrets", same)
    table = adult_rows()
    table = table.append_column("id", pa.array(range(len(table)), pa.int64()))
    one = released(tmp_path / "one", KEYED, table, monkeypatch)
    other = released(tmp_path / "other", KEYED, with_another_secret(table), monkeypatch, one.noisy)
    require_the_same(one, other)
    assert told_alike(one, other)
