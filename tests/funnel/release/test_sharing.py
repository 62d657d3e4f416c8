"""A release somewhere else too: whole or not at all, as often as one likes, and only what was signed."""

from __future__ import annotations

import json
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from funnel.cli import main
from funnel.errors import DataError, OutputError, SpecError
from funnel.progress import quiet
from funnel.release.ckan import open_portal, share_on_portal
from funnel.release.dataverse import open_collection
from funnel.release.layout import INDEX, ReleaseFolder
from funnel.release.series_index import ListedVersion, SeriesIndex, VersionList
from funnel.release.sharing import share_at, whole_release
from tests.funnel.release.portal import TOKEN, PortalDouble, Refused, running


@pytest.fixture
def copy(published: ReleaseFolder, tmp_path: Path) -> ReleaseFolder:
    shutil.copytree(published.root, tmp_path / "1.0.0")
    return ReleaseFolder(tmp_path / "1.0.0")


@pytest.fixture
def portal() -> Iterator[PortalDouble]:
    with running(PortalDouble()) as double:
        yield double


def public(folder: ReleaseFolder) -> dict[str, bytes]:
    return {
        path.relative_to(folder.root).as_posix(): path.read_bytes() for path in folder.root.rglob("*") if path.is_file()
    }


def at(url: str) -> dict[str, bytes]:
    storage, root = fsspec.core.url_to_fs(url)
    return {path.removeprefix(f"{root}/"): storage.cat_file(path) for path in storage.find(root)}


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_version_appears_at_a_url_whole_and_once(published: ReleaseFolder, tmp_path: Path, kind: str) -> None:
    url = f"memory://{secrets.token_hex(6)}" if kind == "memory" else f"file://{tmp_path}/out"
    release = whole_release(published.root.parent)
    first = share_at(release, url, quiet)
    assert (first.place, first.changed) == (f"{url}/people/1.0.0", True)
    there = at(f"{url}/people")
    index = (published.root.parent / INDEX).read_bytes()
    versions = {f"1.0.0/{name}": content for name, content in public(published).items()}
    assert there == {"latest": b"1.0.0\n", INDEX: index, **versions}
    assert not share_at(release, url, quiet).changed
    assert at(f"{url}/people") == there
    # What a killed run left is no version: the data package is not there yet.
    storage, root = fsspec.core.url_to_fs(f"{url}/people")
    for name in ("latest", "1.0.0/datapackage.json", "1.0.0/protocol.json"):
        storage.rm(f"{root}/{name}")
    assert share_at(release, url, quiet).changed
    assert at(f"{url}/people") == there
    storage.pipe_file(f"{root}/1.0.0/signature.json", b"another")
    with pytest.raises(OutputError, match=r"people/1\.0\.0 holds another release of this name and version"):
        share_at(release, url, quiet)


def test_an_index_is_shared_with_its_version_and_never_an_older_one(published: ReleaseFolder, tmp_path: Path) -> None:
    """A copy without the index, an index that does not list the copy, and one that lists less than the one there."""
    root = tmp_path / "people"
    shutil.copytree(published.root, root / "1.0.0")
    url = f"file://{tmp_path}/out"
    share_at(whole_release(root / "1.0.0"), url, quiet)
    assert INDEX not in at(f"{url}/people")
    theirs = SeriesIndex.read(published.root.parent / INDEX)
    (root / INDEX).write_bytes(theirs.to_bytes())
    share_at(whole_release(root / "1.0.0"), url, quiet)
    assert at(f"{url}/people")[INDEX] == theirs.to_bytes()
    key = Ed25519PrivateKey.generate()
    more = (*theirs.listed.versions, ListedVersion(version="1.1.0", signature="ab" * 32, withdrawn=False))
    newer = SeriesIndex.signed(VersionList(series="people", versions=more), key).to_bytes()
    (tmp_path / "out" / "people" / INDEX).write_bytes(newer)
    with pytest.raises(OutputError, match=r"versions\.json lists version 1\.1\.0, which the index here does not"):
        share_at(whole_release(root / "1.0.0"), url, quiet)
    assert at(f"{url}/people")[INDEX] == newer
    for content in (newer, SeriesIndex.signed(VersionList(series="people", versions=more[1:]), key).to_bytes()):
        (root / INDEX).write_bytes(content)
        with pytest.raises(DataError, match=r"versions\.json is no signed list with this version of people"):
            whole_release(root / "1.0.0")


def test_what_is_no_version_is_put_nowhere(published: ReleaseFolder, tmp_path: Path) -> None:
    release = replace(whole_release(published.root), version="1.0")
    with pytest.raises(DataError, match=r"^1\.0 is no version; the release is damaged$"):
        share_at(release, f"file://{tmp_path}/out", quiet)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: folder.readme.write_text("Nothing."), r"README\.md of .* was changed"),
        (lambda folder: folder.readme.unlink(), r"README\.md of .* is missing"),
        (lambda folder: (folder.root / "joint.json").write_text("{}"), r"joint\.json of .* came"),
        (lambda folder: folder.signature.unlink(), "signature"),
        (
            lambda folder: folder.signature.write_text(folder.signature.read_text().replace('"1.0.0"', '"1.0.1"')),
            "the signature of .* does not hold",
        ),
    ],
)
def test_only_what_was_signed_is_shared(copy: ReleaseFolder, change: Callable[[ReleaseFolder], Any], said: str) -> None:
    change(copy)
    with pytest.raises(DataError, match=said):
        whole_release(copy.root)


def shared(portal: PortalDouble, folder: ReleaseFolder, organisation: str | None = "office") -> tuple[str, bool]:
    told = share_on_portal(whole_release(folder.root), open_portal(portal.address, TOKEN), organisation, quiet)
    return told.place, told.changed


def test_a_version_becomes_a_dataset_that_nobody_sees_before_it_is_whole(
    portal: PortalDouble, published: ReleaseFolder
) -> None:
    seen: list[dict[str, Any]] = []
    portal.before = lambda action, told: seen.append(portal.visible())
    assert shared(portal, published) == (f"{portal.address}/dataset/people-1-0-0", True)
    assert all(not one for one in seen)
    assert portal.visible() == {"people-1-0-0": public(published)}
    (dataset,) = portal.datasets.values()
    assert (dataset["version"], dataset["license_id"], dataset["maintainer"]) == (
        "1.0.0",
        "CC-BY-4.0",
        "Office of Tests",
    )
    # Tags of portals have two letters at least, and no slash.
    assert dataset["tags"] == [{"name": "people"}, {"name": "tests"}]
    extras = {one["key"]: one["value"] for one in dataset["extras"]}
    assert (extras["funnel:guarantee"], extras["funnel:level"], extras["funnel:unit"]) == ("lip:1.0", "1.0", "nats")
    assert dataset["notes"] == published.readme.read_text()
    portal.asked.clear()
    assert shared(portal, published) == (f"{portal.address}/dataset/people-1-0-0", False)
    assert portal.asked == ["package_show"]


@pytest.mark.parametrize("action", ["package_create", "resource_create", "package_patch"])
def test_whatever_interrupts_it_the_next_run_finishes_it(
    portal: PortalDouble, published: ReleaseFolder, action: str
) -> None:
    calls = 0

    def interrupt(asked: str, told: dict[str, Any]) -> None:
        nonlocal calls
        calls += asked == action
        # The third file of several, or the only request of its kind.
        if asked == action and calls == (3 if action == "resource_create" else 1):
            raise Refused(500, "Internal Server Error")

    portal.before = interrupt
    with pytest.raises(OutputError, match=f"refused {action}"):
        shared(portal, published)
    assert portal.visible() == {}
    portal.before = lambda asked, told: None
    portal.asked.clear()
    assert shared(portal, published)[1]
    assert portal.visible() == {"people-1-0-0": public(published)}
    sent = portal.asked.count("resource_create")
    assert sent == {"package_create": len(public(published)), "resource_create": len(public(published)) - 2}.get(
        action, 0
    )


def test_what_was_sent_is_looked_at_before_it_is_shown(portal: PortalDouble, published: ReleaseFolder) -> None:
    release, client = whole_release(published.root), open_portal(portal.address, TOKEN)

    def cut(action: str, told: dict[str, Any]) -> None:
        if action == "package_show" and portal.datasets:
            portal.datasets["people-1-0-0"]["resources"][0]["size"] -= 1

    portal.before = cut
    with pytest.raises(OutputError, match="does not hold the files that were sent"):
        share_on_portal(release, client, "office", quiet)
    assert portal.visible() == {}
    # A file of a draft with another digest is sent again.
    portal.before = lambda action, told: None
    draft = portal.datasets["people-1-0-0"]["resources"][0]
    draft["hash"] = "sha256:0"
    assert share_on_portal(release, client, "office", quiet).changed
    assert portal.visible() == {"people-1-0-0": public(published)}


def test_other_datasets_are_left_alone(portal: PortalDouble, published: ReleaseFolder) -> None:
    shared(portal, published)
    dataset = portal.datasets["people-1-0-0"]
    dataset["resources"][0]["hash"] = "sha256:0"
    with pytest.raises(OutputError, match="was changed on the portal"):
        shared(portal, published)
    dataset["extras"] = []
    before = json.dumps(portal.datasets)
    with pytest.raises(OutputError, match="is another dataset, or of another release"):
        shared(portal, published)
    assert json.dumps(portal.datasets) == before


def test_a_portal_that_refuses_is_told_without_the_token(portal: PortalDouble, published: ReleaseFolder) -> None:
    release = whole_release(published.root)
    for client, organisation, said in (
        (open_portal(portal.address, "another-token"), "office", "does not let this token do package_show"),
        (open_portal(portal.address, TOKEN), None, "refused package_create: .*owner_org"),
        (open_portal("http://127.0.0.1:9", TOKEN), "office", r"cannot be reached \(ConnectionError\)"),
    ):
        with pytest.raises(OutputError, match=said) as caught:
            share_on_portal(release, client, organisation, quiet)
        assert "token" not in str(caught.value).replace("this token", "")
    assert portal.datasets == {}


@pytest.mark.parametrize(
    ("opened", "address", "token", "said"),
    [
        (open_portal, "http://data.example", TOKEN, "would get the token in the open; name the portal"),
        (open_portal, "https://data.example", None, "put one into FUNNEL_CKAN_TOKEN"),
        (open_portal, "data.example", TOKEN, "is no address of a portal"),
        (open_portal, "https://me:secret@data.example", TOKEN, "^data.example is no address"),
        (open_collection, "http://data.example/dataverse/office", TOKEN, "token in the open; name the collection"),
        (open_collection, "https://data.example/dataverse/office", None, "put one into FUNNEL_DATAVERSE_TOKEN"),
        (open_collection, "https://data.example", TOKEN, "is no address of a collection"),
        (open_collection, "https://me:secret@data.example", TOKEN, "^data.example is no address"),
    ],
)
def test_a_portal_that_cannot_be_asked_is_none(
    opened: Callable[..., object], address: str, token: str | None, said: str
) -> None:
    with pytest.raises(SpecError, match=said):
        opened(address, token)


@pytest.mark.parametrize(
    ("opened", "package", "extra"), [(open_portal, "ckanapi", "ckan"), (open_collection, "requests", "dataverse")]
)
def test_a_portal_without_its_package_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch, opened: Callable[..., object], package: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SpecError, match=rf"install it with pip install 'funnel\[{extra}\]'"):
        opened("https://data.example/dataverse/office", TOKEN)


def test_an_address_that_knows_no_datasets_is_told_as_one(portal: PortalDouble, published: ReleaseFolder) -> None:
    def unknown(action: str, told: dict[str, Any]) -> None:
        if action == "package_create":
            raise Refused(404, "Not Found Error", message="Not found")

    portal.before = unknown
    with pytest.raises(OutputError, match=r"does not know package_create, or what it is about; check the address$"):
        shared(portal, published)
    assert portal.datasets == {}


def test_the_command_shares_at_a_url_and_on_a_portal(
    portal: PortalDouble, published: ReleaseFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUNNEL_CKAN_TOKEN", TOKEN)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["share", str(published.root), *arguments], catch_exceptions=False)

    for what in ("shared", "already there"):
        assert run(f"file://{tmp_path}/out").stdout == f"{what}: file://{tmp_path}/out/people/1.0.0\n"
    told = json.loads(run(portal.address, "--ckan", "--organisation", "office", "--json").stdout.splitlines()[-1])
    assert told == {"changed": True, "place": f"{portal.address}/dataset/people-1-0-0"}
    for arguments, said in (
        (("out",), "out is no URL"),
        (("s4://bucket",), "the address has the protocol"),
        (("file:///x", "--organisation", "office"), "add --ckan"),
    ):
        done = run(*arguments)
        assert (done.exit_code, said in done.stderr) == (3, True), done.output
