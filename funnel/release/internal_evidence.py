"""Internal evidence: what a release was made from, written into its internal folder."""

from __future__ import annotations

import json

from funnel.errors import DataError
from funnel.joint import Joint
from funnel.release.document import dump
from funnel.release.documents import JointDocument, parts_document
from funnel.release.files import write_new
from funnel.release.layout import ReleaseFolder
from funnel.spec import ReleaseSpec


def write_evidence(spec: ReleaseSpec, joint: Joint, folder: ReleaseFolder, first: Joint | None = None) -> None:
    """Write the spec and the exact counts; nothing public is made of these files.

    Parameters
    ----------
    spec : ReleaseSpec
    joint : Joint
        Of all rows.
    folder : ReleaseFolder
    first : Joint, optional
        Of the first rows of units, where it is these that public counts are of.
    """
    write_spec(spec, folder)
    write_new(folder.joint, JointDocument.like(joint).to_bytes())
    if joint.parts is not None:
        write_new(folder.parts, parts_document(joint.parts).to_bytes())
    if first is not None:
        write_new(folder.first_rows, JointDocument.like(first).to_bytes())


def write_spec(spec: ReleaseSpec, folder: ReleaseFolder) -> None:
    """Write the spec to the letter, and what its hierarchies came to: their tables may be gone when it is audited."""
    write_new(folder.spec, spec.text.encode())
    if spec.hierarchies:
        write_new(folder.hierarchies, dump(spec.hierarchies))


def read_spec(folder: ReleaseFolder, text: str, hierarchies: str | bytes | None) -> ReleaseSpec:
    """The spec in an internal folder, from the texts of what `write_spec` wrote.

    Raises
    ------
    SpecError
        As `ReleaseSpec.parse`.
    DataError
        If what its hierarchies came to cannot be read.
    """
    if hierarchies is None:
        return ReleaseSpec.parse(text, folder.spec, kept=True)
    try:
        known = dict(json.loads(hierarchies))
    except (ValueError, TypeError, RecursionError):
        raise DataError(f"{folder.hierarchies} cannot be read; restore it from a backup") from None
    return ReleaseSpec.parse(text, folder.spec, known, kept=True)
