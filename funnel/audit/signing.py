"""The signature of a release: whether it is about the files that are there, and by whose key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from funnel.audit.check import Result, check, judged
from funnel.audit.files import read_document
from funnel.release.layout import ReleaseFolder
from funnel.release.signature import SignatureDocument

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext


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
def check_signature(context: AuditContext) -> Result:
    """The files are those that were signed.

    By the public key (hex) that the user knows the publisher by, or that of the workspace, where it is here.
    """
    document, package, facts = read_signature(context.folder), context.package, context.facts
    key, own = context.told.key, context.own_key
    known = key or own
    if document is None:
        return judged("signature", ["the release is not signed, so nothing tells whose it is"], "")
    shown = document.public_key
    whose = "the key that was given" if key is not None else "the key of this workspace"
    if known is None:
        holds = (
            f"signed with key {shown}, which is in the release itself: this proves only that no file was changed since "
            "it was signed; compare the key with the publisher's, or give it with --public-key"
        )
    else:
        holds = f"signed with {whose}, {shown}"

    def complaints() -> Iterator[str]:
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

    return judged("signature", complaints(), holds)
