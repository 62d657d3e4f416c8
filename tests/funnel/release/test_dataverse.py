"""A release in a collection of a Dataverse: whole or not at all, as often as one likes, and never its token."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from funnel.cli import main
from funnel.errors import OutputError
from funnel.progress import quiet
from funnel.release.dataverse import open_collection, share_in_collection
from funnel.release.layout import ReleaseFolder
from funnel.release.sharing import Shared, whole_release
from tests.funnel.release.dataverse_double import TOKEN, DataverseDouble, Refused
from tests.funnel.release.portal import running
from tests.funnel.release.test_sharing import public

PLACE = "dataset.xhtml?persistentId=doi%3A10.5072%2FFK2%2FN0"


@pytest.fixture
def dataverse() -> Iterator[DataverseDouble]:
    with running(DataverseDouble()) as double:
        yield double


def shared(dataverse: DataverseDouble, folder: ReleaseFolder) -> Shared:
    collection = open_collection(f"{dataverse.address}/dataverse/office", TOKEN)
    return share_in_collection(whole_release(folder.root), collection, quiet)


@pytest.mark.parametrize("checksum", ["MD5", "SHA-1", "SHA-256", "SHA-512"])
def test_a_version_becomes_a_dataset_that_nobody_sees_before_it_is_whole(
    dataverse: DataverseDouble, published: ReleaseFolder, checksum: str
) -> None:
    dataverse.checksum = checksum
    seen = []
    dataverse.before = lambda action: seen.append(dataverse.visible())
    assert shared(dataverse, published) == Shared(f"{dataverse.address}/{PLACE}", True)
    assert not any(seen)
    ((name, files),) = dataverse.visible().items()
    assert files == public(published)
    version = dataverse.datasets[name]
    assert version["license"] == {"name": "CC BY 4.0"}
    fields = {one["typeName"]: one["value"] for one in version["metadataBlocks"]["citation"]["fields"]}
    assert fields["title"].endswith("(1.0.0)")
    assert fields["author"][0]["authorName"]["value"] == "Office of Tests"
    assert "lip:1.0" in fields["dsDescription"][0]["dsDescriptionValue"]["value"]
    dataverse.asked.clear()
    assert not shared(dataverse, published).changed
    assert {action.partition(" ")[0] for action in dataverse.asked} == {"GET"}


@pytest.mark.parametrize(
    ("action", "sent"),
    [
        ("POST dataverses/office/datasets", 0),
        ("POST datasets/:persistentId/add", 2),
        ("POST datasets/:persistentId/actions/:publish", None),
    ],
)
def test_whatever_interrupts_it_the_next_run_finishes_it(
    dataverse: DataverseDouble, published: ReleaseFolder, action: str, sent: int | None
) -> None:
    calls = 0

    def interrupt(asked: str) -> None:
        nonlocal calls
        calls += asked == action
        # The third file of several, or the only request of its kind.
        if asked == action and calls == (3 if sent == 2 else 1):
            raise Refused(500, "Internal Server Error")

    dataverse.before = interrupt
    with pytest.raises(OutputError, match=r"refused .*: Internal Server Error$"):
        shared(dataverse, published)
    assert dataverse.visible() == {}
    dataverse.before = lambda asked: None
    dataverse.asked.clear()
    assert shared(dataverse, published).changed
    assert list(dataverse.visible().values()) == [public(published)]
    number = len(public(published))
    assert dataverse.asked.count("POST datasets/:persistentId/add") == (0 if sent is None else number - sent)


def test_what_was_sent_is_looked_at_before_it_is_published(
    dataverse: DataverseDouble, published: ReleaseFolder
) -> None:
    def cut(action: str) -> None:
        files = [one for dataset in dataverse.datasets.values() for one in dataset["files"]]
        if action == "GET datasets/:persistentId/" and files:
            files[0]["dataFile"]["checksum"]["value"] = "0"

    dataverse.before = cut
    with pytest.raises(OutputError, match="does not hold the files that were sent"):
        shared(dataverse, published)
    assert dataverse.visible() == {}
    # A file of a draft with another checksum is sent again, and a file that is none of these is never published.
    dataverse.before = lambda action: None
    (dataset,) = dataverse.datasets.values()
    dataset["files"].append({"label": "other.txt", "dataFile": {"id": 99}})
    with pytest.raises(OutputError, match="does not hold the files that were sent"):
        shared(dataverse, published)
    dataset["files"] = [one for one in dataset["files"] if one["label"] != "other.txt"]
    assert shared(dataverse, published).changed
    assert list(dataverse.visible().values()) == [public(published)]


def test_what_was_changed_there_is_left_alone(dataverse: DataverseDouble, published: ReleaseFolder) -> None:
    shared(dataverse, published)
    (dataset,) = dataverse.datasets.values()
    dataset["files"][0]["dataFile"]["checksum"]["value"] = "0"
    before = json.dumps(dataverse.datasets)
    with pytest.raises(OutputError, match="is missing or was changed there"):
        shared(dataverse, published)
    assert json.dumps(dataverse.datasets) == before
    # A dataset without the identifier of this very release is another one.
    for one in dataset["metadataBlocks"]["citation"]["fields"]:
        if one["typeName"] == "otherId":
            one["value"][0]["otherIdValue"]["value"] += "0"
    assert shared(dataverse, published).changed
    assert len(dataverse.datasets) == 2


def test_a_server_that_refuses_is_told_without_the_token(dataverse: DataverseDouble, published: ReleaseFolder) -> None:
    release = whole_release(published.root)
    for address, token, said in (
        (
            f"{dataverse.address}/dataverse/office",
            "another-key",
            "does not let this token do dataverses/office/contents",
        ),
        (f"{dataverse.address}/dataverse/nobody", TOKEN, "has no collection nobody"),
        ("http://127.0.0.1:9/dataverse/office", TOKEN, r"cannot be reached \(ConnectionError\)"),
    ):
        collection = open_collection(address, token)
        assert token not in repr(collection)
        with pytest.raises(OutputError, match=said) as caught:
            share_in_collection(release, collection, quiet)
        assert token not in str(caught.value)
    assert dataverse.datasets == {}


def test_the_command_shares_in_a_collection(
    dataverse: DataverseDouble, published: ReleaseFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUNNEL_DATAVERSE_TOKEN", TOKEN)
    arguments = ["share", str(published.root), f"{dataverse.address}/dataverse/office", "--dataverse"]
    done = CliRunner().invoke(main, [*arguments, "--json"], catch_exceptions=False)
    assert json.loads(done.stdout.splitlines()[-1]) == {"changed": True, "place": f"{dataverse.address}/{PLACE}"}
    done = CliRunner().invoke(main, [*arguments, "--ckan"], catch_exceptions=False)
    assert (done.exit_code, "give one of --ckan and --dataverse" in done.stderr) == (3, True)
