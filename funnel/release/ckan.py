"""A published version as a dataset of a CKAN portal: a draft until all its files are there, then visible at once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from funnel.errors import OutputError, SpecError
from funnel.progress import Progress
from funnel.release.privacy_block import KEY
from funnel.release.sharing import Shared, Whole
from funnel.wording import printable

# Seconds that a portal may be silent.
_PATIENCE = 60.0
_LONGEST_REASON = 200
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_TAG = re.compile(r"[\w\-. ]{2,100}")
_FORMATS = {".csv": "CSV", ".parquet": "Parquet", ".json": "JSON", ".jsonld": "JSON-LD", ".html": "HTML", ".md": "MD"}
# What the action API says of the block on privacy, as further fields of the dataset.
_TOLD = ("guarantee", "meaning", "level", "unit", "scope")
_SIGNED = "funnel:signature"


class Portal(Protocol):
    """What of ``ckanapi.RemoteCKAN`` is used."""

    address: str

    def call_action(
        self,
        action: str,
        data_dict: dict[str, Any] | None = None,
        *,
        files: dict[str, Any] | None = None,
        requests_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """The result of an action of the API."""


def open_portal(address: str, token: str | None) -> Portal:
    """The portal at an address.

    Parameters
    ----------
    address : str
        Of its start page.
    token : str or None
        An API token of somebody who may make datasets.

    Raises
    ------
    SpecError
        If there is no token, it would be sent in the open, or ckanapi is not installed.
    """
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise SpecError(
            f"{printable(parts.hostname or address)} is no address of a portal, such as https://data.example"
        )
    if parts.scheme == "http" and parts.hostname not in _HERE:
        raise SpecError(f"{address} would get the token in the open; name the portal by https://")
    if not token:
        raise SpecError("a portal takes datasets for a token only; put one into FUNNEL_CKAN_TOKEN in the environment")
    try:
        from ckanapi import RemoteCKAN
    except ImportError:
        raise SpecError("portals need a further package; install it with pip install 'funnel[ckan]'") from None
    portal: Portal = RemoteCKAN(address.rstrip("/"), apikey=token, user_agent="funnel")
    return portal


def share_on_portal(release: Whole, portal: Portal, organisation: str | None, progress: Progress) -> Shared:
    """Make a version a dataset of a portal, with every public file as a resource.

    The dataset is a draft, which only its editors see, until every file is there with its digest; one request then
    makes it visible. A run that was killed is finished by the next one, which sends only what is missing.

    Parameters
    ----------
    release : Whole
    portal : Portal
    organisation : str or None
        The organisation of the portal that owns the dataset.
    progress : Progress

    Raises
    ------
    OutputError
        If the portal refuses something, or has another dataset of this name.
    """
    name = dataset_name(release)
    place = f"{portal.address}/dataset/{name}"
    found = _shown(portal, name)
    if found is not None and _signature(found) != release.digests[release.folder.signature.name]:
        raise OutputError(f"{place} is another dataset, or of another release; remove it there, or rename this release")
    if found is None:
        found = _call(portal, "package_create", _described(release, name, organisation))
    there = {str(one.get("name")): one for one in found.get("resources", [])}
    changed = found.get("state") != "active"
    for path, file in release.ordered:
        digest = f"sha256:{release.digests[path]}"
        if there.get(path, {}).get("hash") == digest:
            continue
        if not changed:
            raise OutputError(f"{path} of {place} was changed on the portal; restore it there, or remove the dataset")
        if path in there:
            _call(portal, "resource_delete", {"id": there[path]["id"]})
        progress(f"uploading {path}", 0, None)
        _upload(portal, name, path, file, digest)
    if changed:
        _require_whole(release, _shown(portal, name) or {}, place)
        _call(portal, "package_patch", {"id": name, "state": "active"})
    return Shared(place, changed)


def dataset_name(release: Whole) -> str:
    """The name of the dataset: that of the series with the version, in the letters that portals allow."""
    return re.sub(r"[^a-z0-9_-]", "-", f"{release.series}-{release.version}".lower())[:100]


def _described(release: Whole, name: str, organisation: str | None) -> dict[str, Any]:
    package: Mapping[str, Any] = json.loads(release.folder.package.read_bytes())
    (licence, *_), block = package["licenses"], package[KEY]
    contact = (package.get("contributors") or [{}])[0]
    told = {f"funnel:{key}": str(block[key]) for key in _TOLD if block.get(key) is not None}
    told[_SIGNED] = release.digests[release.folder.signature.name]
    return {
        "name": name,
        "title": f"{package['title']} ({release.version})",
        "notes": release.folder.readme.read_text(encoding="utf-8") if release.folder.readme.is_file() else "",
        "version": release.version,
        "license_id": licence["name"],
        "license_url": licence.get("path", ""),
        "maintainer": contact.get("title", ""),
        "maintainer_email": contact.get("email", ""),
        "state": "draft",
        "tags": [{"name": word} for word in dict.fromkeys(package.get("keywords", [])) if _TAG.fullmatch(word)],
        "extras": [{"key": key, "value": value} for key, value in sorted(told.items())],
        **({} if organisation is None else {"owner_org": organisation}),
    }


def _upload(portal: Portal, name: str, path: str, file: Path, digest: str) -> None:
    kind = _FORMATS.get(file.suffix, file.suffix.removeprefix(".").upper())
    told = {"package_id": name, "name": path, "hash": digest, "format": kind, "url": file.name}
    with file.open("rb") as opened:
        _call(portal, "resource_create", told, {"upload": (file.name, opened)})


def _shown(portal: Portal, name: str) -> dict[str, Any] | None:
    try:
        return dict(_call(portal, "package_show", {"id": name}))
    except _Absent:
        return None


def _signature(dataset: Mapping[str, Any]) -> str | None:
    return next((one.get("value") for one in dataset.get("extras", []) if one.get("key") == _SIGNED), None)


def _require_whole(release: Whole, dataset: Mapping[str, Any], place: str) -> None:
    """Before anybody sees it: every file is there once, with its digest, and of its size where the portal tells one."""
    there = sorted((str(one.get("name")), one.get("hash"), one.get("size")) for one in dataset.get("resources", []))
    wanted = {path: (f"sha256:{release.digests[path]}", file.stat().st_size) for path, file in release.ordered}
    if [path for path, *_ in there] != sorted(wanted) or any(
        digest != wanted[path][0] or size not in (None, wanted[path][1]) for path, digest, size in there
    ):
        raise OutputError(f"{place} does not hold the files that were sent; run again")


class _Absent(Exception):
    """The portal has no such dataset."""


def _call(portal: Portal, action: str, told: dict[str, Any], files: dict[str, Any] | None = None) -> Any:
    from ckanapi.errors import CKANAPIError, NotAuthorized, NotFound, ServerIncompatibleError

    try:
        return portal.call_action(action, told, files=files, requests_kwargs={"timeout": _PATIENCE})
    except NotFound:
        if action == "package_show":
            raise _Absent from None
        sentence = f"{portal.address} does not know {action}, or what it is about; check the address"
    except NotAuthorized:
        sentence = f"{portal.address} does not let this token do {action}; check FUNNEL_CKAN_TOKEN and the organisation"
    except (CKANAPIError, ServerIncompatibleError) as error:
        sentence = f"{portal.address} refused {action}: {printable(str(error))[:_LONGEST_REASON]}"
    except OSError as error:
        sentence = f"{portal.address} cannot be reached ({type(error).__name__}); run again to finish what was begun"
    # Raised outside the handler: a message of a library may hold the token.
    raise OutputError(sentence)
