"""What is written beside the rows, and how a version gets into its place."""

from __future__ import annotations

import json
import math
import os
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from funnel.errors import LedgerError, ReleaseRefused
from funnel.guarantees import LIP
from funnel.joint import Joint
from funnel.mechanisms import fit
from funnel.release.files import FileRef
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.publication import require_drawn, write_documents, write_package
from funnel.release.series import Series, open_series
from funnel.report.public import public_report
from funnel.settings.publication import OutputSettings
from funnel.spec import ReleaseSpec
from tests.funnel.release.test_series import record
from tests.funnel.report.contents import make_content
from tests.projects import make_project, spec_of
from tests.public import UNPROTECTED, counted, public_of
from tests.releases import judged, make_release


def test_rows_that_cannot_be_read_back_are_refused(tmp_path: Path) -> None:
    joint = Joint.from_counts([[30, 10], [10, 50]])
    folder = ReleaseFolder(tmp_path)
    folder.data.parent.mkdir()
    folder.internal.mkdir(mode=0o700)
    pq.write_table(pa.table({"x": pa.array(["a", "b"] * 500)}), folder.data)
    whole = folder.data.read_bytes()
    # The first page is overwritten; or nothing of the file is left but its name.
    for content in (whole[:4] + bytes(20) + whole[24:], b"PAR1"):
        folder.data.write_bytes(content)
        spec = spec_of("x.parquet", tmp_path, output={"csv": True})
        protocol = fit("grr", joint, LIP(1.0))
        with pytest.raises(ReleaseRefused, match="the drawn rows cannot be read back"):
            write_documents(
                spec,
                protocol,
                public_of(joint, protocol, LIP(1.0)),
                counted(joint),
                UNPROTECTED,
                folder,
            )


def test_a_csv_that_cannot_be_written_is_told_as_what_it_is(tmp_path: Path) -> None:
    """Not as rows that cannot be read back: the file system has its own sentence for it."""
    joint = Joint.from_counts([[3, 1], [1, 3]])
    protocol = fit("grr", joint, LIP(1.0))
    folder = ReleaseFolder(tmp_path)
    folder.data.parent.mkdir()
    folder.csv.symlink_to("gone/records.csv")
    pq.write_table(pa.table({"x": ["a", "b"]}), folder.data)
    spec = spec_of("x.parquet", tmp_path, output={"csv": True})
    public = public_of(joint, protocol, LIP(1.0))
    with pytest.raises(FileNotFoundError):
        write_documents(spec, protocol, public, counted(joint), UNPROTECTED, folder)


@pytest.mark.parametrize("share", [math.nan, math.inf])
def test_a_figure_that_is_no_number_is_not_published(tmp_path: Path, share: float) -> None:
    joint = Joint.from_counts([[3, 1], [1, 3]])
    protocol = fit("grr", joint, LIP(1.0))
    folder = ReleaseFolder(tmp_path)
    folder.data.parent.mkdir()
    pq.write_table(pa.table({"x": ["a", "b"]}), folder.data)
    spec, report = spec_of("x.parquet", tmp_path), public_report(make_content(joint, protocol, LIP(1.0)))
    package = partial(write_package, spec, protocol, protection=UNPROTECTED, folder=folder)
    for path in (folder.protocol, folder.numbers):
        path.write_text("{}")
    with pytest.raises(ReleaseRefused, match=r"a figure of datapackage\.json is not a finite number"):
        package(report=report.model_copy(update={"figures": report.figures.model_copy(update={"share": share})}))
    assert not folder.package.exists()
    there = {"data/records.parquet", "protocol.json", "report.json"}
    assert set(package(report=report)) == {*there, "datapackage.json"}


def test_rows_that_changed_after_they_were_drawn_are_refused(tmp_path: Path) -> None:
    folder = ReleaseFolder(tmp_path)
    folder.data.parent.mkdir()
    folder.data.write_bytes(b"drawn")
    rows = FileRef.of(folder.data)
    require_drawn(folder, rows)
    folder.data.write_bytes(b"exchanged")
    with pytest.raises(ReleaseRefused, match="changed after they were drawn"):
        require_drawn(folder, rows)


def test_all_is_on_disk_before_the_rename_and_the_rename_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of("x.parquet", tmp_path, output={"folder": "out", "workspace": "work"})
    happened: list[tuple[str, str]] = []
    real_fsync, real_rename = os.fsync, Path.rename

    def fsync(descriptor: int) -> None:
        happened.append(("sync", str(Path(f"/proc/self/fd/{descriptor}").readlink().name)))
        real_fsync(descriptor)

    def rename(path: Path, target: Path) -> Path:
        happened.append(("rename", str(Path(target).name)))
        return real_rename(path, target)

    with open_series(spec) as series, series.incoming() as folder:
        (folder.root / "data").mkdir()
        folder.internal.mkdir(mode=0o700)
        folder.record.write_bytes(record("1.0.0").to_bytes())
        for name in ("data/rows", "protocol.json"):
            (folder.root / name).write_text("x")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fsync)
            patch.setattr(Path, "rename", rename)
            series.publish(folder, Version(1, 0, 0), judged(folder), lambda *_: None)
        at = happened.index(("rename", "1.0.0"))
        before, after = happened[:at], happened[at + 1 :]
        assert {"rows", "protocol.json", "data", folder.root.name} <= {name for kind, name in before if kind == "sync"}
        assert ("sync", series.root.name) in after
        assert series.folder(Version(1, 0, 0)).root.stat().st_mode & 0o777 == 0o755
        assert (series.root / "latest").readlink() == Path("1.0.0")


@pytest.mark.parametrize("mask", [0o077, 0o002, 0o000])
def test_everybody_may_read_what_is_published_and_its_owner_alone_what_is_internal(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        folder = make_release(make_project(tmp_path, make_spec(True)))
    finally:
        os.umask(before)
    series = folder.root.parent
    modes = {
        path: path.lstat().st_mode & 0o777
        for path in (series, *series.rglob("*"))
        if not path.is_symlink() and not path.is_relative_to(series / "latest")
    }
    assert {path.name for path in modes} >= {"records.parquet", "data", "report.json", "versions.json", series.name}
    assert modes == {path: 0o755 if path.is_dir() else 0o644 for path in modes}
    assert folder.internal.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("shuffle", [True, False])
def test_the_order_of_rows_is_told_as_it_is(tmp_path: Path, shuffle: bool) -> None:
    spec = make_project(tmp_path, make_spec(shuffle))
    folder = make_release(spec)
    said = json.loads(folder.package.read_text())["funnel:privacy"]["rowOrder"]
    assert said == ("random" if shuffle else "as in the source")
    assert OutputSettings(shuffle=shuffle).shuffle is shuffle
    # Nobody but its owner reads what is internal.
    assert folder.internal.stat().st_mode & 0o777 == 0o700
    assert folder.root.stat().st_mode & 0o777 == 0o755
    described(folder, shuffle)
    # The spec of the version is kept as it was written, to the letter.
    assert folder.spec.read_text() == spec.read_text()
    with open_series(ReleaseSpec.load(spec)) as series:
        whole(series)


def test_a_public_file_that_is_too_large_stops_the_release_and_names_the_setting(tmp_path: Path) -> None:
    text = make_spec(shuffle=False)
    spec = make_project(tmp_path, text + "[limits]\nmax_document = 2000\n")
    with pytest.raises(ReleaseRefused, match="more than max_document = 2000 in") as why:
        make_release(spec)
    enough = str(why.value).rsplit("max_document = ", 1)[1]
    assert not (tmp_path / "releases" / "people" / "1.0.0").exists()
    spec.write_text(text + f"[limits]\nmax_document = {enough}\n")
    folder = make_release(spec)
    # The csv is there because the spec asks for it.
    assert folder.csv.is_file()
    assert max(path.stat().st_size for path in folder.root.iterdir()) <= int(enough)


def make_spec(shuffle: bool) -> str:
    return f"""# a comment
name = "people"
title = "People of a test"
secret = ["marital-status"]
publish = ["relationship"]
guarantee = "lip:1.0"
frequencies.protection = "none"
{"" if shuffle else 'description = "People, some of them."'}
[source]
path = "people.parquet"
[mechanism]
name = "grr"
[output]
shuffle = {str(shuffle).lower()}
csv = {str(not shuffle).lower()}
[disclosure]
on_breach = "report"
[metadata]
licence = "CC-BY-4.0"
{"" if shuffle else DESCRIBED}"""


DESCRIBED = """
licence_url = "https://creativecommons.org/licenses/by/4.0/"
keywords = ["people", "tests"]
contact_name = "Office of Tests"
[[metadata.sources]]
title = "Census"
path = "https://example.org/census"
"""


def described(folder: ReleaseFolder, shuffle: bool) -> None:
    """What the spec says of the release is in its package, and nothing that it does not say; the csv is the parquet."""
    package = json.loads(folder.package.read_text())
    said = {key: package.get(key) for key in ("description", "keywords", "contributors", "sources")}
    paths = [resource["path"] for resource in package["resources"]]
    rows = pq.read_table(folder.data)
    if shuffle:
        assert set(said.values()) == {None}
        assert "path" not in package["licenses"][0]
        assert paths == ["data/records.parquet"]
        assert not folder.csv.exists()
        return
    assert said == {
        "description": "People, some of them.",
        "keywords": ["people", "tests"],
        "contributors": [{"title": "Office of Tests", "roles": ["publisher"]}],
        "sources": [{"title": "Census", "path": "https://example.org/census"}],
    }
    assert package["licenses"][0]["path"] == "https://creativecommons.org/licenses/by/4.0/"
    assert paths == ["data/records.csv", "data/records.parquet"]
    written = pacsv.read_csv(
        folder.csv, convert_options=pacsv.ConvertOptions(column_types={"relationship": pa.string()})
    )
    assert written.equals(rows.cast(written.schema))


def whole(series: Series) -> None:
    """A version is known to be whole, and every change of a public file is noticed."""
    version = Version(1, 0, 0)
    series.check_whole(version)
    folder = series.folder(version)
    files = series.record(version).files
    documents = {"protocol.json", "report.json", "report.html", "datapackage.json", "signature.json"}
    documents |= {"README.md", "CITATION.cff", "dcat.jsonld", "annex.html"}
    public = {"data/records.parquet"} | documents
    tables = {"data/records.csv", "protocol.csv", "estimator.csv"}
    assert set(files) == public | (tables if folder.csv.exists() else set())
    for name in files:
        content = (folder.root / name).read_bytes()
        (folder.root / name).write_bytes(content + b" ")
        with pytest.raises(LedgerError, match="gone or was changed"):
            series.check_whole(version)
        (folder.root / name).unlink()
        with pytest.raises(LedgerError, match="gone or was changed"):
            series.check_whole(version)
        (folder.root / name).write_bytes(content)
    for path in (folder.joint, folder.draws, folder.findings, folder.verdict):
        moved = path.rename(path.with_suffix(".moved"))
        with pytest.raises(LedgerError, match=rf"{path.name} is gone, so version 1\.0\.0 can no longer be audited"):
            series.check_whole(version)
        moved.rename(path)
    # What is added to the evidence nobody else reads.
    (folder.internal / "notes").write_text("mine")
    series.check_whole(version)
    for name in ("data/more.csv", ".hidden"):
        (folder.root / name).write_text("a")
        with pytest.raises(LedgerError, match=r"was not published with version 1\.0\.0, and readers see it"):
            series.check_whole(version)
        (folder.root / name).unlink()
    series.check_whole(version)
