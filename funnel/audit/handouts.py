"""What a release tells people and portals, held against what its data package and its protocol make of it."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import Any

from funnel.audit.check import Result, judged
from funnel.audit.files import read_document
from funnel.audit.package import Facts
from funnel.recount.balance import is_invariant
from funnel.recount.estimator import estimator_complaints
from funnel.recount.handouts import handouts_again
from funnel.release.documents import ProtocolDocument
from funnel.release.layout import ReleaseFolder, Version

HANDOUTS = ("CITATION.cff", "README.md", "dcat.jsonld")
_BEFORE = re.compile(rb'"dcat:prev": \{\s*"@id": "\.\./([0-9.]+)/"')


def check_handouts(folder: ReleaseFolder, document: ProtocolDocument, package: dict[str, Any], facts: Facts) -> Result:
    """Whether the handouts are, to the byte, what follows.

    Parameters
    ----------
    folder : ReleaseFolder
    document : ProtocolDocument
    package : JSON object
    facts : mapping
        The files that are there.
    """
    return judged("handouts", _complaints(folder, document, package, facts), "what the two documents make of them")


def _complaints(
    folder: ReleaseFolder, document: ProtocolDocument, package: dict[str, Any], facts: Facts
) -> Iterator[str]:
    tables = [folder.channel.name, *([] if is_invariant(document.content()) else [folder.estimator.name])]
    needed = (*HANDOUTS, *(tables if "data/records.csv" in facts else ()))
    missing = [name for name in needed if name not in facts]
    yield from (f"{name} is missing" for name in missing)
    try:
        previous = previous_told(folder, package, facts)
        again = handouts_again(package, document.content(), previous)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        yield "they cannot be told from these documents"
        return
    if folder.estimator.name in facts:
        for complaint in estimator_complaints(read_document(folder.estimator), document.content()):
            yield f"{folder.estimator.name}: {complaint}"
    for name in sorted(set(again) - set(missing)):
        if read_document(folder.root / name) != again[name]:
            yield f"{name} is not what the two documents make"


def previous_told(folder: ReleaseFolder, package: dict[str, Any], facts: Container[str]) -> str | None:
    """The version before, which only the entry of the catalogue tells: one that is smaller than this one."""
    if folder.catalogue.name not in facts:
        return None
    found = _BEFORE.search(read_document(folder.catalogue))
    told, own = Version.parse(found[1].decode()) if found else None, Version.parse(str(package.get("version")))
    return str(told) if told is not None and own is not None and told < own else None
