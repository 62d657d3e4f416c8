"""Evidence: what a release was made from, written into its internal folder."""

from __future__ import annotations

from funnel.joint import Joint
from funnel.release.documents import joint_document
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
    folder.spec.write_bytes(spec.text.encode())
    folder.joint.write_bytes(joint_document(joint).to_bytes())
    if first is not None:
        folder.first_rows.write_bytes(joint_document(first).to_bytes())
