"""The signature of a release, of which files and by whose key; and what the signed index of its series says of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from funnel.audit.check import Found, Unchecked, check
from funnel.audit.files import canonical_difference, read_document
from funnel.release.layout import INDEX, ReleaseFolder
from funnel.release.series_index import SeriesIndex
from funnel.release.signature import SignatureDocument

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext, Told


def read_signature(folder: ReleaseFolder) -> SignatureDocument | None:
    """The signature of a release; None if there is none.

    Raises
    ------
    DataError
        If it is damaged.
    """
    if not folder.signature.is_symlink() and not folder.signature.exists():
        return None
    return SignatureDocument.from_json(read_document(folder.signature), str(folder.signature))


@check("signature", "signature")
def check_signature(context: AuditContext) -> Found:
    """The files are those that were signed.

    By the public key (hex) that the user knows the publisher by, or that of the workspace, where it is here.
    """
    document, package, facts = read_signature(context.folder), context.package, context.facts
    key, own = context.told.key, context.own_key
    known = key or own
    if document is None:
        yield "the release is not signed, so nothing tells whose it is"
        return ""
    shown = document.public_key
    whose = "the key that was given" if key is not None else "the key of this workspace"
    if known is None:
        holds = (
            f"signed with key {shown}, which is in the release itself: this proves only that no file was changed since "
            "it was signed; compare the key with the publisher's, or give it with --public-key"
        )
    else:
        holds = f"signed with {whose}, {shown}"
    if not document.holds():
        yield "the signature is not of this manifest"
    if known is not None and shown != known:
        yield f"it was signed with key {shown}, not with {whose}, {known}"
    manifest = document.manifest
    if (manifest.series, manifest.version, manifest.created) != tuple(
        package.get(name) for name in ("name", "version", "created")
    ):
        yield "the manifest is of another series, version or time than datapackage.json"
    listed = {file.path: (file.sha256, file.bytes) for file in manifest.files}
    for path in sorted((set(listed) | set(facts)) - {"signature.json"}):
        if path not in facts:
            yield f"{path} was signed and is missing"
        elif path not in listed:
            yield f"{path} was not signed"
        elif facts[path] != listed[path]:
            yield f"{path} is not the file that was signed"
    return holds


def read_index(folder: ReleaseFolder, told: Told) -> bytes | None:
    """The series index that was given, or is beside the folder; None where there is none.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    if told.index is not None or told.fetched:
        return told.index
    beside = folder.root.parent / INDEX
    return read_document(beside) if beside.is_symlink() or beside.exists() else None


@check("newest version", "published", contained=True)
def check_newest(known: AuditContext) -> Found:
    """The signed index of the series lists the version, as the newest.

    Whoever asks for a version by its number may ask for an older one. Any other address, such as that of the series or
    of a copy under another name, is held to be the newest. The index has to be signed by the publisher's key, where it
    is known, else by that of the version. None where nothing says that the version is the newest: then another check
    says that this could not be checked.
    """
    content, told, version, facts = known.index, known.told, known.version, known.facts
    if content is None:
        if not told.by_latest:
            return None
        return Unchecked(
            f"{INDEX} is not beside the versions, so that an older one may have taken the place of the newest"
        )
    index, difference = SeriesIndex.from_json(content, INDEX), canonical_difference(content, Path(INDEX))
    signature = read_signature(known.folder)
    signed_by = told.key or known.own_key or (None if signature is None else signature.public_key)
    digest, _ = facts.get(known.folder.signature.name, (None, 0))
    listed, newest = index.listed.find(version), index.listed.newest
    by_number = not told.by_latest and (told.asked or known.folder.root.name) == version
    if difference is not None:
        yield difference
    if not index.holds():
        yield f"the signature of {INDEX} is not of this list"
    if signed_by is not None and index.public_key != signed_by:
        yield f"{INDEX} was signed with key {index.public_key}, not with {signed_by}"
    if index.listed.series != known.name:
        yield f"{INDEX} is of another series"
    elif listed is None:
        yield f"{INDEX} does not list version {version}"
    elif listed.signature != digest:
        yield f"version {version} is not the one that {INDEX} lists"
    elif listed.withdrawn:
        yield f"version {version} was withdrawn by its publisher"
    elif version != newest and not by_number:
        yield f"version {version} is not the newest one, {newest}; to check an older one name it by its number"
    count = len(index.listed.versions)
    which = "the newest" if version == newest else f"an older one, for {newest} is the newest,"
    return f"version {version} is {which} of {count} in {INDEX}"
