"""A published version as a dataset of a Dataverse collection: a draft until all its files are there, then published."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, urlsplit

from funnel.errors import OutputError, SpecError
from funnel.progress import Progress
from funnel.release.privacy_block import KEY
from funnel.release.sharing import Shared, Whole
from funnel.wording import printable

TOKEN = "FUNNEL_DATAVERSE_TOKEN"
_PATIENCE = 60.0
_LONGEST_REASON = 200
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
# The licences that every Dataverse has; others are stated as terms of use.
_LICENCES = {"CC0-1.0": "CC0 1.0", "CC-BY-4.0": "CC BY 4.0"}
_AGENCY = "funnel"
_SUMS = {"MD5": "md5", "SHA-1": "sha1", "SHA-256": "sha256", "SHA-512": "sha512"}


@dataclass(frozen=True)
class Collection:
    """A collection of a Dataverse, by the native API.

    Attributes
    ----------
    server : str
    alias : str
    token : str
    """

    server: str
    alias: str
    token: str = field(repr=False)

    def call(self, method: str, path: str, **told: Any) -> Any:
        """What the API answers to a request; None where there is no such thing.

        Raises
        ------
        OutputError
            If it refuses, or cannot be reached.
        """
        import requests

        what, headers = path.partition("?")[0], {"X-Dataverse-key": self.token}
        try:
            # A redirect could take the token to another server.
            answer = requests.request(
                method, f"{self.server}/api/{path}", headers=headers, timeout=_PATIENCE, allow_redirects=False, **told
            )
            status, content = answer.status_code, _content(answer.content)
        except requests.RequestException as error:
            sentence = f"{self.server} cannot be reached ({type(error).__name__}); run again to finish what was begun"
        else:
            # Publishing may go on after the answer.
            if status in (200, 201, 202) and content.get("status") in ("OK", "WORKFLOW_IN_PROGRESS"):
                return content.get("data", {})
            if status == 404 and method == "GET":
                return None
            if status in (401, 403):
                sentence = f"{self.server} does not let this token do {what}; check {TOKEN} and the collection"
            else:
                reason = printable(str(content.get("message", status)))[:_LONGEST_REASON]
                sentence = f"{self.server} refused {what}: {reason}"
        # Raised outside the handler: a message of a library may hold the token.
        raise OutputError(sentence)


def open_collection(address: str, token: str | None) -> Collection:
    """The collection at an address.

    Parameters
    ----------
    address : str
        As a browser shows it: ``https://dataverse.example/dataverse/office``.
    token : str or None
        An API token of somebody who may publish datasets there.

    Raises
    ------
    SpecError
        If there is no token, it would be sent in the open, or requests is not installed.
    """
    parts = urlsplit(address)
    found = re.fullmatch(r"((?:/[\w.~-]+)*)/dataverse/([\w-]+)/?", parts.path)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None or found is None:
        raise SpecError(
            f"{printable(parts.hostname or address)} is no address of a collection, such as "
            "https://dataverse.example/dataverse/office"
        )
    if parts.scheme == "http" and parts.hostname not in _HERE:
        raise SpecError(f"{address} would get the token in the open; name the collection by https://")
    if not token:
        raise SpecError(f"a Dataverse takes datasets for a token only; put one into {TOKEN} in the environment")
    try:
        import requests  # noqa: F401
    except ImportError:
        raise SpecError(
            "a Dataverse needs a further package; install it with pip install 'funnel[dataverse]'"
        ) from None
    return Collection(f"{parts.scheme}://{parts.netloc}{found[1]}", found[2], token)


def share_in_collection(release: Whole, collection: Collection, progress: Progress) -> Shared:
    """Make a version a dataset of a collection, with every public file, and publish it.

    The dataset is a draft, which only its editors see, until every file is there with its checksum; one request then
    publishes it. A run that was killed is finished by the next one, which sends only what is missing.

    Raises
    ------
    OutputError
        If the server refuses something, or the dataset was changed there.
    SpecError
        If the release names no contact, which a Dataverse asks for.
    """
    known = _identifier(release)
    dataset = next(_having(collection, known), None)
    if dataset is None:
        described = _described(release, known)
        made = collection.call("POST", f"dataverses/{collection.alias}/datasets", json=described)
        dataset = str(made["persistentId"])
    of = f"persistentId={quote(dataset, safe='')}"
    place = f"{collection.server}/dataset.xhtml?{of}"
    latest = _latest(collection, of, place)
    changed = latest.get("versionState") != "RELEASED"
    there = {_path(one): one for one in latest.get("files", [])}
    for path, file in release.ordered:
        if path in there and _is_same(there[path], file):
            continue
        if not changed:
            raise OutputError(f"{path} of {place} is missing or was changed there; restore it, or remove the dataset")
        if path in there:
            collection.call("DELETE", f"files/{there[path]['dataFile']['id']}")
        progress(f"uploading {path}", 0, None)
        _upload(collection, of, path, file)
    if changed:
        _require_whole(release, _latest(collection, of, place), place)
        collection.call("POST", f"datasets/:persistentId/actions/:publish?{of}&type=major")
    return Shared(place, changed)


def _identifier(release: Whole) -> str:
    """By which a dataset is found again: the series, the version, and the digest of its signature."""
    return f"{release.series}/{release.version}/{release.digests[release.folder.signature.name]}"


def _having(collection: Collection, known: str) -> Iterator[str]:
    """Datasets of the collection with an identifier among their other ones; each is asked, as an index lags behind."""
    contents = collection.call("GET", f"dataverses/{collection.alias}/contents")
    if contents is None:
        raise OutputError(f"{collection.server} has no collection {collection.alias}; check the address")
    for item in contents:
        if item.get("type") != "dataset":
            continue
        dataset = f"{item['protocol']}:{item['authority']}/{item['identifier']}"
        found = collection.call("GET", f"datasets/:persistentId/?persistentId={quote(dataset, safe='')}") or {}
        blocks = found.get("latestVersion", {}).get("metadataBlocks", {})
        fields = {one["typeName"]: one["value"] for one in blocks.get("citation", {}).get("fields", [])}
        if any(one.get("otherIdValue", {}).get("value") == known for one in fields.get("otherId", [])):
            yield dataset


def _latest(collection: Collection, of: str, place: str) -> dict[str, Any]:
    found = collection.call("GET", f"datasets/:persistentId/?{of}")
    if found is None:
        raise OutputError(f"{place} is gone; run again")
    return dict(found["latestVersion"])


def _described(release: Whole, known: str) -> dict[str, Any]:
    """Metadata of the dataset, in the fields that every Dataverse asks for."""
    package: Mapping[str, Any] = json.loads(release.folder.package.read_bytes())
    (licence, *_), block = package["licenses"], package[KEY]
    contact = (package.get("contributors") or [{}])[0]
    if not contact.get("title") or not contact.get("email"):
        raise SpecError(
            "a Dataverse asks for the name and the e-mail address of a contact, and the release has none; set "
            "contact_name and contact_email under [metadata] and release again"
        )
    text = "\n\n".join(filter(None, (package.get("description"), f"{block['meaning']} ({block['guarantee']})")))
    fields = [
        _simple("title", f"{package['title']} ({release.version})"),
        _compound("otherId", otherIdAgency=_AGENCY, otherIdValue=known),
        _compound("author", authorName=contact["title"]),
        _compound("datasetContact", datasetContactName=contact["title"], datasetContactEmail=contact["email"]),
        _compound("dsDescription", dsDescriptionValue=text),
        {"typeName": "subject", "typeClass": "controlledVocabulary", "multiple": True, "value": ["Other"]},
    ]
    terms = " ".join(filter(None, (licence["name"], licence.get("path"))))
    named = _LICENCES.get(licence["name"])
    return {
        "datasetVersion": {
            **({"termsOfUse": terms} if named is None else {"license": {"name": named}}),
            "metadataBlocks": {"citation": {"displayName": "Citation Metadata", "fields": fields}},
        }
    }


def _simple(name: str, value: str) -> dict[str, Any]:
    return {"typeName": name, "typeClass": "primitive", "multiple": False, "value": value}


def _compound(name: str, **parts: str) -> dict[str, Any]:
    value = {part: _simple(part, text) for part, text in parts.items()}
    return {"typeName": name, "typeClass": "compound", "multiple": True, "value": [value]}


def _upload(collection: Collection, of: str, path: str, file: Path) -> None:
    folder = PurePosixPath(path).parent.as_posix()
    # Tables are kept as they were signed: not taken apart by the server.
    told = {"restrict": "false", "tabIngest": "false", **({} if folder == "." else {"directoryLabel": folder})}
    with file.open("rb") as opened:
        collection.call(
            "POST",
            f"datasets/:persistentId/add?{of}",
            data={"jsonData": json.dumps(told)},
            files={"file": (PurePosixPath(path).name, opened, "application/octet-stream")},
        )


def _path(listed: Mapping[str, Any]) -> str:
    """Where in the dataset a file is."""
    folder = listed.get("directoryLabel") or ""
    return f"{folder}/{listed['label']}" if folder else str(listed["label"])


def _is_same(listed: Mapping[str, Any], file: Path) -> bool:
    """Whether the server's own checksum is that of a file; which kind it makes is a setting of the server."""
    checksum = listed.get("dataFile", {}).get("checksum") or {}
    kind = _SUMS.get(str(checksum.get("type")))
    if kind is None:
        return False
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, kind).hexdigest() == checksum.get("value")


def _require_whole(release: Whole, latest: Mapping[str, Any], place: str) -> None:
    """Before anybody sees it: every file is there once and as it is here, and no other."""
    there = [(_path(one), one) for one in latest.get("files", [])]
    files = dict(release.ordered)
    if sorted(path for path, _ in there) != sorted(files) or not all(_is_same(one, files[path]) for path, one in there):
        raise OutputError(f"{place} does not hold the files that were sent; run again")


def _content(answer: bytes) -> dict[str, Any]:
    """A JSON object; an empty one for anything else, such as a page of a proxy."""
    try:
        found = json.loads(answer)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
