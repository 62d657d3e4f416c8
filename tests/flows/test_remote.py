"""From an S3-compatible server to one: whole versions only, `latest` last, and nothing internal ever uploaded."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import httpx
import pyarrow.parquet as pq
import pytest
from botocore.session import get_session

from funnel.audit.check import State, overall
from funnel.audit.recheck import Told
from funnel.errors import DataError, FunnelError, LedgerError, OutputError
from funnel.pipeline.flows.release import release as flow
from funnel.pipeline.flows.watch import watch_source
from funnel.pipeline.tasks.step import listening
from funnel.readers.formats import open_source
from funnel.release.fetch import fetch_release
from funnel.release.layout import Version
from funnel.release.series import Series
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.projects import SPEC, adult_rows
from tests.releases import release

pytestmark = pytest.mark.usefixtures("in_process")

KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "Zebediah", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    """The file system of a server of its own, with one empty bucket; the environment points to it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    patch = pytest.MonkeyPatch()
    try:
        for name, value in {**KEYS, "AWS_ENDPOINT_URL": url}.items():
            patch.setenv(name, value)
        # Made once, without the authorities of the machine, as the server of flows is asked.
        asking = httpx.Client(verify=False, timeout=5)
        while True:
            try:
                asking.get(f"{url}/moto-api/")
                break
            except httpx.TransportError:
                assert server.poll() is None
                time.sleep(0.1)
        asking.close()
        storage = fsspec.filesystem("s3", use_listings_cache=False)
        storage.mkdir("bucket")
        yield storage
    finally:
        patch.undo()
        server.terminate()
        server.wait()


def project(folder: Path, source: str, output: str) -> Path:
    spec = folder / "people.toml"
    text = SPEC.replace('path = "people.parquet"', f'path = "{source}"')
    text = text.replace('folder = "releases"', f'folder = "{output}"')
    assert source in text
    spec.write_text(text if output in text else f'{text}\n[output]\nfolder = "{output}"\n')
    return spec


def upload(storage: Any, path: str, folder: Path, start: int, rows: int) -> None:
    pq.write_table(adult_rows(start, rows), folder / "part.parquet")
    storage.put_file(str(folder / "part.parquet"), path)


def objects(storage: Any, root: str = "bucket/out/people") -> dict[str, bytes]:
    return {path.removeprefix(f"{root}/"): storage.cat_file(path) for path in storage.find(root)}


def test_from_s3_to_s3(s3: Any, tmp_path: Path) -> None:
    upload(s3, "bucket/people/a.parquet", tmp_path, 0, 2000)
    upload(s3, "bucket/people/b.parquet", tmp_path, 2000, 1000)
    s3.pipe_file("bucket/people/_SUCCESS", b"")
    spec = project(tmp_path, "s3://bucket/people/", "s3://bucket/out")
    first = flow(str(spec))
    assert (first["status"], first["version"], first["rows"]) == ("published", "1.0.0", 3000)
    assert first["folder"] == "s3://bucket/out/people/1.0.0"
    assert first["report"] == "s3://bucket/out/people/1.0.0/report.html"
    public = {
        "data/records.parquet",
        "protocol.json",
        "report.json",
        "report.html",
        "annex.html",
        "datapackage.json",
        "signature.json",
        "README.md",
        "CITATION.cff",
        "dcat.jsonld",
    }
    before = objects(s3)
    assert set(before) == {"latest", "versions.json", *(f"1.0.0/{name}" for name in public)}
    assert before["latest"] == b"1.0.0\n"
    assert json.loads(before["1.0.0/datapackage.json"])["version"] == "1.0.0"
    assert pq.read_table("bucket/out/people/1.0.0/data/records.parquet", filesystem=s3).num_rows == 3000

    fetched = fetch_release("s3://bucket/out/people", tmp_path / "fetched")
    assert (fetched.url, fetched.unlisted) == (first["folder"], ())
    checks = recheck(fetched.folder, Told(fetched=True))
    assert [check.name for check in checks if not check.passed] == ["evidence"]
    assert overall(checks) is State.UNCHECKED

    assert release(str(spec))["status"] == "unchanged"
    assert objects(s3) == before

    # A new file in the folder of the source; the upload stops before the last file.
    upload(s3, "bucket/people/c.parquet", tmp_path, 3000, 500)

    def broken(what: str, done: int, total: int | None) -> None:
        if what == "uploading datapackage.json":
            raise ConnectionResetError(104, "Connection reset by peer")

    with listening(broken), pytest.raises(OutputError):
        release(str(spec))
    torn = objects(s3)
    assert "1.1.0/protocol.json" in torn
    assert "1.1.0/datapackage.json" not in torn
    assert {name: torn[name] for name in before} == before

    # The next run removes what is there, and puts there the rows that may have been seen, rather than others.
    s3.pipe_file("bucket/out/people/1.1.0/stray", b"")
    newer = release(str(spec))
    assert (newer["version"], newer["drawn"], newer["rows"]) == ("1.1.0", False, 3500)
    after = objects(s3)
    assert set(after) == {*before, *(f"1.1.0/{name}" for name in public)}
    assert after["1.1.0/data/records.parquet"] == torn["1.1.0/data/records.parquet"]
    assert after["latest"] == b"1.1.0\n"
    moved = {"latest", "versions.json"}
    assert {name: after[name] for name in before if name not in moved} == {
        name: content for name, content in before.items() if name not in moved
    }
    described = ReleaseSpec.load(spec)
    kept = described.output_folder / "people"
    assert sorted(path.name for path in kept.iterdir()) == ["1.0.0", "1.1.0", "latest", "versions.json"]
    assert Series.of(described).record(Version(1, 1, 0)).fresh

    # Another workspace knows nothing of what was published: the run stops before it reads anything.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = project(elsewhere, "s3://bucket/people/", "s3://bucket/out")
    with pytest.raises(LedgerError, match="restore it from a backup"):
        release(str(other))
    (kept / "1.1.0" / "datapackage.json").write_text("{}")
    with pytest.raises(LedgerError, match="published from another workspace"):
        release(str(spec))
    assert objects(s3) == after


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("s3://nobucket/a.parquet", "there is no source file s3://nobucket/a.parquet"),
        ("s3://bucket/none/", "there is no source file s3://bucket/none/"),
        ("s3://bucket/torn.parquet", "s3://bucket/torn.parquet is not a parquet file, or it was cut short"),
    ],
)
def test_sources_that_are_not_there(s3: Any, tmp_path: Path, source: str, words: str) -> None:
    upload(s3, "bucket/torn.parquet", tmp_path, 0, 100)
    s3.pipe_file("bucket/torn.parquet", s3.cat_file("bucket/torn.parquet")[:-20])
    spec = project(tmp_path, source, "releases")
    with pytest.raises(DataError) as caught:
        open_source(ReleaseSpec.load(spec))
    assert words in str(caught.value)


@contextmanager
def permissions(storage: Any, *actions: str) -> Iterator[None]:
    """Let the server ask who is there: the credentials of the environment may do these things, or are unknown."""
    url = os.environ["AWS_ENDPOINT_URL"]
    keys = dict(zip(("aws_access_key_id", "aws_secret_access_key"), ("AKIAUNKNOWN", "Zebediah"), strict=True))
    if actions:
        iam = get_session().create_client("iam", endpoint_url=url)
        iam.create_user(UserName="reader")
        allowed = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
        iam.put_user_policy(UserName="reader", PolicyName="reader", PolicyDocument=policy)
        made = iam.create_access_key(UserName="reader")["AccessKey"]
        keys = {"aws_access_key_id": made["AccessKeyId"], "aws_secret_access_key": made["SecretAccessKey"]}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in keys.items():
            patch.setenv(name.upper(), value)
        type(storage).clear_instance_cache()
        httpx.post(f"{url}/moto-api/reset-auth", content="0")
        try:
            yield
        finally:
            httpx.post(f"{url}/moto-api/reset-auth", content="1000000000")
            type(storage).clear_instance_cache()


def refused_at_once(spec: Path, error: type[FunnelError], words: str) -> None:
    """A release fails before any work is done for it."""
    told: list[str] = []
    with listening(lambda what, done, total: told.append(what)), pytest.raises(error) as caught:
        release(str(spec))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "Zebediah" not in str(caught.value)
    assert told in ([], ["reading the source"])
    assert not (spec.parent / ".funnel" / "people" / "snapshots").exists()


def test_an_output_bucket_that_is_not_there(s3: Any, tmp_path: Path) -> None:
    pq.write_table(adult_rows(0, 500), tmp_path / "people.parquet")
    refused_at_once(project(tmp_path, "people.parquet", "s3://nobucket/out"), OutputError, "there is no such bucket")


def test_an_output_that_may_only_be_read(s3: Any, tmp_path: Path) -> None:
    pq.write_table(adult_rows(0, 500), tmp_path / "people.parquet")
    before = objects(s3, "bucket")
    spec = project(tmp_path, "people.parquet", "s3://bucket/readonly")
    with permissions(s3, "s3:List*", "s3:Get*"):
        refused_at_once(spec, OutputError, "s3://bucket/readonly/people cannot be read or written: access was denied")
    assert objects(s3, "bucket") == before


def test_a_source_for_which_the_credentials_are_wrong(s3: Any, tmp_path: Path) -> None:
    upload(s3, "bucket/locked/a.parquet", tmp_path, 0, 500)
    for source in ("s3://bucket/locked/a.parquet", "s3://bucket/locked/"):
        spec = project(tmp_path, source, "releases")
        with permissions(s3):
            refused_at_once(spec, DataError, f"{source} cannot be read or written: access was denied")


def test_a_folder_of_a_bucket_is_watched(
    s3: Any, tmp_path: Path, server: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", server["PREFECT_API_URL"])
    upload(s3, "bucket/watched/a.parquet", tmp_path, 0, 100)
    spec = project(tmp_path, "s3://bucket/watched/", "s3://bucket/none")
    seen = []
    for change in (None, None, "b.parquet", "_SUCCESS"):
        if change is not None:
            upload(s3, f"bucket/watched/{change}", tmp_path, 100, 100)
        seen += [look["status"] for look in watch_source(spec, 1.0, True, lambda *said: None)]
    assert seen == ["noted", "unchanged", "changed", "unchanged"]


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "cannot be reached or read"),
        ({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}, "there are no credentials for it"),
    ],
)
def test_no_way_in(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str | None], words: str
) -> None:
    settings = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "1", "HOME": str(tmp_path), **environment}
    for name, value in settings.items():
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    described = ReleaseSpec.load(project(tmp_path, "s3://bucket/a.parquet", "releases"))
    type(s3).clear_instance_cache()
    try:
        with pytest.raises(DataError) as caught:
            open_source(described)
    finally:
        type(s3).clear_instance_cache()
    assert words in str(caught.value)
    assert "Zebediah" not in str(caught.value)
    assert caught.value.__context__ is None
