"""Neighbours: two sources that differ in one person, noise that makes public counts agree, and every public byte."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from funnel.frequencies import public_counts as room
from funnel.frequencies.averages import NoisyAverages
from funnel.frequencies.moves import Moves, NoisyMoves
from funnel.frequencies.public_counts import Frequencies
from funnel.joint import IntArray, Joint
from funnel.pipeline.expectations import frequency_claims
from funnel.pipeline.flows import pipeline
from funnel.pipeline.flows.pipeline import Done, run_release
from funnel.pipeline.tasks import ingest
from funnel.recount.noise import NoiseMaterial
from funnel.release import protected, protected_tables, secret
from funnel.release.layout import ReleaseFolder
from funnel.release.signature import SignatureDocument
from funnel.sampling import random_words
from funnel.source.learning import learn_codings
from funnel.spec import ReleaseSpec
from tests.projects import SPEC, adult_rows, make_project, tree

NOISE = (
    SPEC.replace('frequencies.protection = "none"\n', "")
    + """
[output]
csv = true

[mechanism]
name = "grr"

[frequencies]
protection = "noise"
"""
)
MARRIED, ALONE = "Married-civ-spouse", "Never-married"
DECLARED = (
    NOISE
    + """
[categories]
marital-status = ["Never-married", "Married-civ-spouse", "Divorced", "Other"]
relationship = ["Husband", "Not-in-family", "Own-child", "Unmarried", "Wife", "Other"]
"""
)
# What noise could have selected of either source, where nobody declares it.
LEARNED = {
    "marital-status": (ALONE, "Divorced", MARRIED, "Other"),
    "relationship": ("Husband", "Not-in-family", "Own-child", "Other", "(missing)"),
}


class Fixed(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        return datetime(2026, 1, 1, tzinfo=tz or UTC)


@dataclass(frozen=True)
class Released:
    """A version, what its run told, and the public counts that it was made from."""

    folder: ReleaseFolder
    told: dict[str, Any]
    done: Done
    noisy: IntArray

    @property
    def changes(self) -> NoisyMoves | None:
        """The public tables of how people changed that it was made from."""
        return self.done.protected.frequencies.changes

    @property
    def means(self) -> NoisyAverages | None:
        """The public means that its answers were put right by."""
        return self.done.protected.frequencies.means

    @property
    def departures(self) -> NoisyAverages | None:
        """The public departures of its answers from the effective channel."""
        return self.done.protected.frequencies.departures

    @property
    def public(self) -> dict[str, bytes]:
        """Every public byte but the signature, which every workspace has a key of its own for."""
        files = tree(self.folder.root)
        assert files.pop("signature.json")
        return files


@contextmanager
def arranged(
    patch: pytest.MonkeyPatch,
    seed: int,
    noisy: IntArray | None,
    changes: NoisyMoves | None = None,
    means: NoisyAverages | None = None,
    departures: NoisyAverages | None = None,
) -> Iterator[list[IntArray]]:
    """Random words, noise and the clock fixed, or noise by which noisy tables are what they shall be."""
    counter, drawn, real = itertools.count(), [], room.protect

    def protect(counted: Joint, *settings: Any, **named: Any) -> Frequencies:
        with patch.context() as inner:
            if noisy is not None:
                inner.setattr(room, "draw_noise", lambda size, epsilon, **_: (noisy - counted.counts).reshape(size))
            found = real(counted, *settings, **named)
        assert found.noisy is not None
        drawn.append(found.noisy)
        return found

    def moves(exact: Sequence[Moves], *_: Any) -> NoisyMoves:
        assert [one.since for one in exact] == [one.since for one in changes.since]
        return changes

    def system_bytes(size: int) -> bytes:
        return hashlib.shake_256(b"%d" % next(counter)).digest(size)

    with patch.context() as outer:
        outer.setattr(random_words, "_system_bytes", system_bytes)
        outer.setattr(random_words, "_KEYS_SEEN", {})
        outer.setattr(pipeline, "datetime", Fixed)
        outer.setattr(secret, "fresh_text", lambda: hashlib.sha256(b"%d" % seed).hexdigest())
        if noisy is not None:
            # As if the secret of the series gave this noise: there is one that does, and it is as likely as the other.
            outer.setattr(NoiseMaterial, "wrong", lambda *_: 0)
        outer.setattr(protected, "protect", protect)
        if changes is not None:
            outer.setattr(protected_tables, "noisy_moves", moves)
        if means is not None or departures is not None:

            def told(kind: str, _: IntArray, length: int, *__: object) -> NoisyAverages:
                found = means if kind == "means" else departures
                # What one person may add follows from public tables.
                assert length == found.length
                return found

            outer.setattr(protected_tables, "noisy_averages", told)
        yield drawn


def released(
    folder: Path,
    spec: str,
    table: pa.Table,
    patch: pytest.MonkeyPatch,
    noisy: IntArray | None = None,
    changes: NoisyMoves | None = None,
    means: NoisyAverages | None = None,
    departures: NoisyAverages | None = None,
) -> Released:
    path = make_project(folder, spec, table)
    # Versions of one series have noise of their own.
    with arranged(patch, len([*folder.glob("releases/*/*")]), noisy, changes, means, departures) as drawn:
        told, done = run_release(ReleaseSpec.load(path), again=False, rotate=False)
    assert done is not None
    (counts,) = drawn
    return Released(ReleaseFolder(Path(told["folder"])), told, done, counts)


def with_another_secret(table: pa.Table) -> pa.Table:
    """The same people, but one of them has another secret."""
    secret = table.column("marital-status").to_pylist()
    secret[secret.index(MARRIED)] = ALONE
    return table.set_column(table.column_names.index("marital-status"), "marital-status", pa.array(secret))


def told_alike(one: Released, other: Released) -> bool:
    """Whether a run told the console and the orchestrator the same, but where things are."""
    places = ("folder", "report", "internal", "key")
    said = [{name: value for name, value in run.told.items() if name not in places} for run in (one, other)]
    return said[0] == said[1] and bool(
        one.done.public.findings.figures.share == other.done.public.findings.figures.share
    )


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> Released:
    """A version whose values are declared in its spec."""
    with pytest.MonkeyPatch.context() as patch:
        return released(tmp_path_factory.mktemp("declared"), DECLARED, adult_rows(), patch)


def require_the_same(one: Released, other: Released) -> None:
    """Exact counts differ, and no public byte does, nor what the runs told."""
    assert one.folder.joint.read_bytes() != other.folder.joint.read_bytes()
    assert one.folder.findings.read_bytes() != other.folder.findings.read_bytes()
    assert "frequencies.json" in one.public
    assert one.public == other.public
    manifests = [SignatureDocument.read(run.folder.signature).manifest for run in (one, other)]
    assert manifests[0] == manifests[1]
    assert told_alike(one, other)


def test_another_secret_of_one_person_changes_no_public_byte(
    declared: Released, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = with_another_secret(adult_rows())
    require_the_same(declared, released(tmp_path, DECLARED, table, monkeypatch, declared.noisy))


def test_nor_where_the_names_of_values_are_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "learned_codings", lambda spec, source, *_: learn_codings(spec, source, known=LEARNED))
    # As if the secret of the series gave the noise that names these.
    monkeypatch.setattr(frequency_claims, "named_values", lambda _, column, *__: frozenset(LEARNED[column]))
    table = adult_rows()
    one = released(tmp_path / "one", NOISE, table, monkeypatch)
    other = released(tmp_path / "other", NOISE, with_another_secret(table), monkeypatch, one.noisy)
    require_the_same(one, other)


def test_one_person_more_changes_nothing_but_what_the_table_shows(
    declared: Released, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = declared
    other = released(tmp_path, DECLARED, adult_rows(rows=3001), monkeypatch, one.noisy)
    assert one.public["frequencies.json"] == other.public["frequencies.json"]
    assert one.public["protocol.json"] == other.public["protocol.json"]
    readmes = [re.sub(r"\b3,00[01] records", "N", run.public["README.md"].decode()) for run in (one, other)]
    assert readmes[0] == readmes[1]
    reports = [json.loads(run.public["report.json"]) for run in (one, other)]
    for report, rows in zip(reports, (3000, 3001), strict=True):
        assert report["source"].pop("records") == report["figures"].pop("rows") == rows
        for expectation in report["judged"]:
            expectation["description"] = expectation["description"].replace(f"{rows:,}", "N")
    assert reports[0] == reports[1]
    pages = [re.sub(r"\b3,00[01]\b", "N", run.public["report.html"].decode()) for run in (one, other)]
    assert pages[0] == pages[1]
    packages = [json.loads(run.public["datapackage.json"]) for run in (one, other)]
    for package in packages:
        assert package["funnel:privacy"].pop("records") in (3000, 3001)
        assert package["funnel:privacy"]["report"].pop("hash")
        for resource in package["resources"]:
            assert all(resource.pop(name) for name in {"hash", "bytes"} & set(resource))
    assert packages[0] == packages[1]
