"""The public files of real releases, byte by byte: no digit too many, no digest of what is internal, nothing of counts
that public figures do not tell."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from funnel import LIP, fit, measures
from funnel.frequencies.noise_forecast import forecast_noise
from funnel.pipeline.flows import artifacts, pipeline, plan
from funnel.pipeline.flows.pipeline import Done, run_release
from funnel.pipeline.tasks.optimise import Optimised
from funnel.planning import PlanRow
from funnel.preview import spec_plan
from funnel.release.coarse import coarsened
from funnel.release.comparison import comparison_document
from funnel.release.documents import JointDocument
from funnel.release.layout import ReleaseFolder
from funnel.release.record import Record
from funnel.release.signature import SignatureDocument
from funnel.sampling import random_words
from funnel.spec import ReleaseSpec
from tests.digits import too_fine
from tests.projects import SPEC, adult_rows, make_project, tree
from tests.releases import make_release

CSV = SPEC + "\n[output]\ncsv = true\n"


def documents(folder: ReleaseFolder) -> dict[str, bytes]:
    """The public files that are not rows."""
    files = {name: content for name, content in tree(folder.root).items() if not name.startswith("data/")}
    assert {"protocol.json", "datapackage.json", "report.html"} <= set(files)
    return files


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> ReleaseSpec:
    return ReleaseSpec.load(make_project(tmp_path_factory.mktemp("released"), CSV))


@pytest.fixture(scope="module")
def done(spec: ReleaseSpec) -> Done:
    published = run_release(spec, again=False, rotate=False)[1]
    assert published is not None
    return published


@pytest.fixture(scope="module")
def folder(done: Done) -> ReleaseFolder:
    return ReleaseFolder(Path(done.published.folder))


def test_no_number_of_a_public_file_has_more_digits_than_public_figures_have(folder: ReleaseFolder) -> None:
    fine = {name: too_fine(name, content) for name, content in documents(folder).items()}
    assert not any(fine.values()), fine


def test_what_the_orchestrator_shows_is_no_finer(
    spec: ReleaseSpec, done: Done, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its database is read by others than the steward: what runs leave there is counted as public."""
    told: list[Any] = []
    for name in ("markdown", "table", "link"):
        monkeypatch.setattr(artifacts, f"create_{name}_artifact", lambda *parts, **named: told.append([*parts, named]))
    artifacts.describe_run(spec, done.published, done.channel, done.public)
    # The report has a link only where its address is known.
    assert len(told) == 3
    # Some seconds of searching more would tell the same kinds of numbers.
    monkeypatch.setattr(spec_plan, "forecast_noise", partial(forecast_noise, epsilons=(), sizes=(), seconds=0.05))
    plan.plan.fn(str(spec.resolve("people.toml")), suggest=True, frequencies=True)
    assert [part[-1]["key"] for part in told[3:]] == [
        "funnel-plan",
        "funnel-plan-disclosure",
        "funnel-plan-frequencies",
    ]
    assert too_fine("artifacts.json", json.dumps(told).encode()) == []


def test_nobody_is_told_what_is_outside_the_alphabet_where_noise_hides_it(
    spec: ReleaseSpec, done: Done, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(artifacts, "create_markdown_artifact", lambda text, **_: told.append(text))
    for name in ("table", "link"):
        monkeypatch.setattr(artifacts, f"create_{name}_artifact", lambda *_, **named: None)
    findings = done.public.findings
    figures = findings.figures.model_copy(update={"outside": None})
    hidden = replace(done.public, findings=replace(findings, figures=figures))
    artifacts.describe_run(spec, done.published, done.channel, done.public)
    artifacts.describe_run(spec, done.published, done.channel, hidden)
    assert ["outside the alphabet" in text for text in told] == [True, False]
    assert all(f"{findings.figures.rows:,}" in text for text in told)


def test_numbers_of_too_many_digits_are_noticed_wherever_they_stand() -> None:
    page = '<p>{}</p><svg><defs><path d="M 0.{} 1"/></defs><use x="{}"/></svg>'
    assert too_fine("report.html", page.format("1.234 at 2026-01-01T10:00:00Z, version 1.0.0", 7, 12).encode()) == []
    for parts in (("level 0.99995", 7, 12), ("1", 77, 12), ("1", 7, "12.5"), ("9223372036854775807", 7, 1)):
        assert len(too_fine("report.html", page.format(*parts).encode())) == 1
    for value in (0.99995, 0.1 + 0.2, "p = 0.12345", 10**10, str(2**62 + 1), [{"0.12345": None}]):
        assert len(too_fine("a.json", json.dumps({"value": value}).encode())) == 1
    assert too_fine("a.json", json.dumps([0.3, 48_842, str(2**62), True, None, "1.2.3", 1e-6]).encode()) == []


def test_no_digest_of_the_source_or_of_other_internal_things_is_public(folder: ReleaseFolder) -> None:
    record = Record.read(folder.record)
    public = tree(folder.root)
    internal = {text for content in tree(folder.internal).values() for text in re.findall(rb"[0-9a-f]{64}", content)}
    source = folder.root.parents[2] / "people.parquet"
    internal |= {digest.encode() for digest in (record.origin.source, record.origin.snapshot, record.origin.spec)}
    internal |= {hashlib.sha256(source.read_bytes()).hexdigest().encode()}
    internal |= {hashlib.sha256(content).hexdigest().encode() for content in tree(folder.internal).values()}
    own = {hashlib.sha256(content).hexdigest().encode() for content in public.values()}
    secret = internal - own - {record.origin.protocol.encode()}
    assert len(secret) >= 5
    # The first digits of one would confirm a guess as well.
    told = [(name, digest) for digest in secret for name, content in public.items() if digest[:12] in content]
    assert told == []


def exchanged(table: pa.Table, joint_of: Path) -> pa.Table:
    """The same people, but two of them who published the same for the other columns have exchanged their secrets.

    Every count of a secret and every count of a value stays; four counts of both together change by one.
    """
    joint = JointDocument.from_json(joint_of.read_bytes()).joint
    # Where there are most: one person more or less is no figure there.
    s, t = np.argsort(-joint.counts.sum(axis=1))[:2]
    x, z = np.argsort(-np.minimum(joint.counts[s], joint.counts[t]))[:2]
    secret, value = (table.column(name).to_pylist() for name in ("marital-status", "relationship"))
    rows = list(zip(secret, value, strict=True))
    one = rows.index((joint.secret.labels[s], joint.inputs.labels[x]))
    other = rows.index((joint.secret.labels[t], joint.inputs.labels[z]))
    secret[one], secret[other] = secret[other], secret[one]
    return table.set_column(table.column_names.index("marital-status"), "marital-status", pa.array(secret))


def test_sources_with_the_same_public_figures_have_the_same_public_files_to_the_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real way, twice, on two sources: only the random words, the protocol and the time are held fixed."""
    first = make_release(make_project(tmp_path / "one", CSV))
    joint = JointDocument.from_json(first.joint.read_bytes()).joint
    protocol = coarsened(joint, LIP(0.9), fit("grr", joint, LIP(0.9)))
    told = measures.mutual_information(joint, protocol), measures.normalised_mutual_information(joint, protocol)
    compared = comparison_document([PlanRow(protocol.mechanism, False, protocol, *told, 0.9, 1.0, None)])
    chosen = Optimised(protocol, compared, cached=False)
    released = []
    for name, table in (("two", adult_rows()), ("three", exchanged(adult_rows(), first.joint))):
        counter = itertools.count()
        with monkeypatch.context() as patch:
            patch.setattr(
                random_words, "_system_bytes", lambda size, n=counter: hashlib.shake_256(b"%d" % next(n)).digest(size)
            )
            patch.setattr(random_words, "_KEYS_SEEN", {})
            patch.setattr(pipeline, "optimise", lambda *_: chosen)
            patch.setattr(pipeline, "datetime", Fixed)
            released.append(make_release(make_project(tmp_path / name, CSV, table)))
    one, other = released
    assert (
        JointDocument.from_json(one.joint.read_bytes()).joint.counts
        != JointDocument.from_json(other.joint.read_bytes()).joint.counts
    ).sum() == 4
    assert json.loads(one.findings.read_bytes())["lift"] != json.loads(other.findings.read_bytes())["lift"]
    public = [tree(folder.root) for folder in released]
    assert sorted(public[0]) == sorted(public[1])
    # Each workspace has a key of its own; what is signed is the same.
    assert [name for name in public[0] if public[0][name] != public[1][name]] == ["signature.json"]
    assert SignatureDocument.read(one.signature).manifest == SignatureDocument.read(other.signature).manifest


class Fixed(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
