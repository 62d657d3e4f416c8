"""Addresses: what a spec may name, and one sentence without secrets for whatever goes wrong with it."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest

from funnel.errors import DataError, SpecError
from funnel.readers.source_files import file_digest
from funnel.spec import ReleaseSpec
from funnel.storage import attempt, filesystem
from tests.projects import spec_of


def spec(source: str = "a.parquet", **output: str) -> ReleaseSpec:
    return spec_of(source, "/project", output=output)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("s4://bucket/a.parquet", "[source] path has the protocol 's4', which is not known; did you mean s3?"),
        ("s3://AKIA:Zebediah@bucket/a.parquet", "holds a password"),
        ("https://host/a.parquet?signature=Zebediah", "holds a query"),
        ("zip://a.parquet::s3://b/c.zip", "must be one URL"),
        ("file://a.parquet", "must have three slashes"),
    ],
)
def test_addresses_that_cannot_be_meant(address: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec(address)
    assert words in str(caught.value)
    assert "Zebediah" not in str(caught.value)


def test_where_things_are() -> None:
    local = spec("file:///data/a.parquet", folder="file:///out")
    assert local.source_address == "/data/a.parquet"
    assert (local.output_url, local.output_folder) == (None, Path("/out"))
    remote = spec("s3://bucket/people/", folder="s3://bucket/releases")
    assert (remote.source_address, remote.source.format) == ("s3://bucket/people/", "parquet")
    assert remote.output_url == "s3://bucket/releases"
    assert remote.workspace_folder == Path("/project/.funnel")
    assert remote.output_folder.is_relative_to(remote.workspace_folder)
    assert spec(folder="s3://bucket/releases/").output_folder == remote.output_folder
    assert spec(folder="s3://bucket/other").output_folder != remote.output_folder
    with pytest.raises(SpecError, match="workspace must be a local folder"):
        spec(workspace="s3://bucket/work")


def test_a_protocol_whose_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(protocol: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec, "get_filesystem_class", absent)
    with pytest.raises(SpecError, match=r"s3:// needs a further package; install it with pip install 'funnel\[s3\]'"):
        filesystem("s3://bucket/a.parquet")
    with pytest.raises(SpecError, match="gs:// needs a further package: Install s3fs"):
        filesystem("gs://bucket/a.parquet")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError("Zebediah"), "there is nothing at s3://b/k"),
        (PermissionError("Zebediah"), "access was denied; check the credentials"),
        (ConnectionResetError("Zebediah"), "cannot be reached or read (ConnectionResetError)"),
        (OSError(5, "Zebediah"), "cannot be reached or read (OSError)"),
    ],
)
def test_failures_are_told_by_their_class_alone(error: OSError, words: str) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(DataError) as caught:
        attempt(fail, "s3://b/k", DataError)
    assert words in str(caught.value)
    assert "Zebediah" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_missing_object_has_no_digest() -> None:
    with pytest.raises(DataError, match="memory://none cannot be read"):
        file_digest("memory://none")
