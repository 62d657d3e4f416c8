"""What was learned of values under noise is learned once: from the workspace, or from what was published."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.preview.counted import preview
from funnel.progress import quiet
from funnel.readers.formats import Source, open_source
from funnel.release import learned
from funnel.release.earlier import Earlier
from funnel.release.files import remove_tree
from funnel.release.frequencies_document import frequencies_document
from funnel.release.layout import ReleaseFolder
from funnel.release.learned import learned_codings, recall_values, values_digest
from funnel.release.protected import ProtectionContext, public_frequencies
from funnel.release.snapshot import take_snapshot
from funnel.sampling.keyed import RecordKey
from funnel.source.coding import Codings
from funnel.source.counting import count_joint
from funnel.spec import ReleaseSpec
from tests.funnel.source.databases import sqlite_table
from tests.projects import spec_of
from tests.public import OPEN_COUNTS
from tests.records import SHA, record_of

NOISE = {"protection": "noise", "epsilon": 4.0, "delta": 1e-3}
# So common that noise of this size leaves all of them their names, and one that nobody may be named by.
TABLE = pa.table(
    {"s": ["ill", "well"] * 400, "x": ["a", "b", "b", "c"] * 200} | {"y": ["only here"] + ["elsewhere"] * 799}
)


def project(folder: Path, **changes: object) -> ReleaseSpec:
    pq.write_table(TABLE, folder / "people.parquet")
    return spec_of("people.parquet", folder, **{"publish": ["x", "y"], "frequencies": NOISE, **changes})


def learn(spec: ReleaseSpec) -> Codings:
    source = open_source(spec)
    return learned_codings(spec, source, source.files.digest(), spec.workspace_folder / "test", quiet)


def test_names_are_learned_once_for_a_source_and_its_coding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = project(tmp_path)
    first = learn(spec)
    assert first.labels["x"] == ("a", "b", "c", "Other", "(missing)")
    assert first.learned.epsilon > 0
    calls: list[object] = []
    real = learned.learn_codings

    def counted(*parts: object, known: object = None, **more: object) -> Codings:
        calls.append(known)
        return real(*parts, known=known, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(learned, "learn_codings", counted)
    assert learn(spec) == first
    assert calls == [{column: list(labels) for column, labels in first.labels.items()}]
    # Another epsilon is another learning; another bound is not.
    learn(project(tmp_path, guarantee="lip:2.0"))
    learn(project(tmp_path, frequencies={**NOISE, "epsilon": 3.0}))
    assert calls[1:] == [calls[0], None]
    # Where all names are declared, nothing is learned and nothing kept.
    declared = {"s": ["ill", "well"], "x": ["a", "b", "c"], "y": ["elsewhere"]}
    source = open_source(spec)
    assert values_digest(project(tmp_path, categories=declared), source.files.digest()) is None


def test_a_plan_of_a_database_learns_what_its_release_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest of a database is of the columns that are read: a plan reads the record key too, as a release does."""
    rows = [
        (f"p{k}", s, x) for k, (s, x) in enumerate(zip(*TABLE.select(["s", "x"]).to_pydict().values(), strict=True))
    ]
    url = sqlite_table(tmp_path, "person text, s text, x text", rows)
    spec = spec_of(url, tmp_path, record_key=["person"], frequencies=NOISE, source={"table": "people"})
    known: list[object] = []
    real = learned.learn_codings

    def counted(*parts: object, **more: object) -> Codings:
        known.append(more.get("known"))
        return real(*parts, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(learned, "learn_codings", counted)
    preview(spec, quiet)
    key = RecordKey(("person",), bytes(range(32)))

    def codings(source: Source, digest: str) -> Codings:
        return learned_codings(spec, source, digest, spec.workspace_folder / spec.name, quiet, key)

    take_snapshot(spec, tmp_path / "snapshots", key, quiet, codings)
    assert known[0] is None
    assert known[1] is not None


def test_where_units_have_several_rows_names_are_learned_from_the_first_of_each(tmp_path: Path) -> None:
    """What the rows of one unit say a hundred times over, nobody else says."""
    table = pa.table(
        {
            "u": [f"unit {k}" for k in range(400)] * 2 + ["unit 0"] * 100,
            "s": ["ill", "well"] * 400 + ["ill"] * 100,
            "x": ["a", "b", "b", "a"] * 200 + ["only here"] * 100,
        }
    )
    pq.write_table(table, tmp_path / "people.parquet")
    limits = {"set_aside": 0.2}
    said = {"publish": ["x"], "frequencies": NOISE, "history": {"people": "same"}, "limits": limits}
    spec = spec_of("people.parquet", tmp_path, **said, unit=["u"])
    source = open_source(spec.reading)
    workspace = spec.workspace_folder / "test"
    keys = [RecordKey(("u",), bytes(range(one, 32 + one))) for one in (1, 1, 2)]
    told = []
    for key in keys:
        found = learned_codings(spec, source, source.files.digest(), workspace, quiet, key)
        assert found.labels["x"] == ("a", "b", "Other", "(missing)")
        told.append(values_digest(spec, source.files.digest(), key))
    # Which row is the first depends on the secret, and so does what may be learned.
    assert told[0] == told[1] != told[2]
    assert len(list((workspace / "values").iterdir())) == 2
    # Of records it is another matter.
    plain = spec_of("people.parquet", tmp_path, publish=["x"], frequencies=NOISE)
    assert learn(plain).labels["x"] == ("a", "b", "only here", "Other", "(missing)")


def test_where_the_workspace_lost_them_published_names_are_taken(tmp_path: Path) -> None:
    spec = project(tmp_path)
    workspace = spec.workspace_folder / "test"
    first = learn(spec)
    values = values_digest(spec, open_source(spec.reading).files.digest())
    counted = count_joint(spec, quiet, codings=first)
    found = public_frequencies(ProtectionContext(spec, learned=first.learned), counted, values)
    place = ReleaseFolder(tmp_path / "releases" / "1.0.0")
    place.root.mkdir(parents=True)
    place.frequencies.write_bytes(frequencies_document(found.frequencies).to_bytes())
    record = record_of(frequencies=found.record)
    remove_tree(spec.workspace_folder)
    recall_values([Earlier(record, place, True, SHA(9))], workspace)
    assert learn(spec) == first
    # What is still there is left alone: the published files are not even opened.
    place.frequencies.unlink()
    recall_values([Earlier(record, place, True, SHA(9))], workspace)
    assert learn(spec) == first
    # Nothing is known of versions that are gone, or had no noise.
    remove_tree(spec.workspace_folder)
    plain = record.model_copy(update={"frequencies": OPEN_COUNTS})
    recall_values([Earlier(record, None, True, SHA(9)), Earlier(plain, place, True, SHA(9))], workspace)
    assert not workspace.exists()


def test_a_preview_is_what_the_release_will_be_made_from(tmp_path: Path) -> None:
    spec = project(tmp_path)
    first = preview(spec, quiet)
    again = preview(spec, quiet)
    assert again.protected.record == first.protected.record
    assert (again.counted.counts == first.counted.counts).all()
    # All combinations of names, whether anybody has them or not.
    assert len(first.counted.inputs) == 5 * len(learn(spec)["y"].labels)
    source = open_source(spec.reading).files.digest()
    exact = public_frequencies(ProtectionContext(spec, source=source), first.counted)
    assert exact.record.counted == first.protected.record.counted
    plain = preview(project(tmp_path, frequencies={"protection": "none"}), quiet)
    assert plain.protected.frequencies.joint is plain.counted
    assert len(plain.counted.inputs) < len(first.counted.inputs)
