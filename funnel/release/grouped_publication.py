"""Publication of a grouped release: its public files beside the rows, written where the version is put together."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from funnel.errors import ReleaseRefused
from funnel.groups.protocol import GroupedProtocol
from funnel.guarantees import Guarantee
from funnel.release.datapackage import PROTECTED, disclosure_control, package_of, scope_alone
from funnel.release.document import dump
from funnel.release.files import FileRef, write_whole
from funnel.release.grouped_protocol_document import MECHANISM, grouped_protocol_document
from funnel.release.grouped_public import GroupedPublic
from funnel.release.handouts.citation import citation
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.protection import Protection
from funnel.release.publication import write_csv
from funnel.source import file_digest
from funnel.spec import ReleaseSpec

_MEANING = (
    "sanitised: a plain value stands for itself; a value with 'or', or 'any but', may come from any of the values it "
    "names or leaves, and 'any' from all. protocol.json says how it was drawn, and channels.parquet how probable it is."
)


def write_grouped_documents(
    spec: ReleaseSpec,
    protocol: GroupedProtocol,
    guarantee: Guarantee,
    public: GroupedPublic,
    channels: pa.Table,
    protection: Protection,
    drawn: FileRef,
    folder: ReleaseFolder,
) -> None:
    """Write the protocol, the effective channels, and the csv if the spec asks for it.

    Raises
    ------
    ReleaseRefused
        If the rows are no longer those that were drawn.
    """
    if file_digest(folder.data) != drawn.sha256:
        raise ReleaseRefused("the rows were changed after they were drawn; run the release again")
    document = grouped_protocol_document(protocol, guarantee, spec.secret, public, protection)
    write_whole(folder.protocol, document.to_bytes())
    pq.write_table(channels, folder.channels, compression="zstd")
    if spec.output.csv:
        write_csv(folder)


def write_grouped_package(
    spec: ReleaseSpec,
    protocol: GroupedProtocol,
    public: GroupedPublic,
    protection: Protection,
    version: Version,
    created: str,
    folder: ReleaseFolder,
) -> None:
    """Write the Data Package over the public files that are there, and how to cite it."""
    files = {
        path.relative_to(folder.root).as_posix(): (file_digest(path), path.stat().st_size)
        for path in (folder.data, folder.csv, folder.protocol, folder.channels, folder.numbers, folder.report)
        if path.is_file()
    }
    privacy = _privacy(spec, protocol, public, protection, files)
    content = package_of(spec, protocol.labels, _MEANING, str(version), created, files, privacy)
    try:
        text = dump(content)
    except ValueError:
        raise ReleaseRefused("nothing was published: a figure of datapackage.json is not a finite number") from None
    write_whole(folder.package, text)
    # What else is handed out beside a joint release tells of its one channel.
    write_whole(folder.citation, citation(content).encode())


def _privacy(
    spec: ReleaseSpec,
    protocol: GroupedProtocol,
    public: GroupedPublic,
    protection: Protection,
    files: dict[str, tuple[str, int]],
) -> dict[str, Any]:
    def told(path: str) -> dict[str, str]:
        return {"path": path, "hash": f"sha256:{files[path][0]}"}

    return {
        "guarantee": public.guarantee,
        "level": public.level,
        "unit": "nats",
        "secret": list(spec.secret),
        "published": list(spec.publish),
        "groups": [list(group) for group in public.groups],
        "madeFor": public.people,
        "mechanism": MECHANISM,
        "readsSecret": False,
        "protocol": told("protocol.json"),
        "protocolDigest": protocol.digest,
        "channels": told("channels.parquet"),
        **({"report": {**told("report.json"), "page": "report.html"}} if "report.json" in files else {}),
        "utilityShare": public.share,
        "records": public.rows,
        "rowOrder": "random" if spec.output.shuffle else "as in the source",
        "disclosureControl": disclosure_control(spec),
        "frequencies": {"protection": protection.protection, "meaning": PROTECTED[protection.protection]},
        **({} if spec.history is None else {"people": spec.history.people}),
        "scope": scope_alone(spec),
    }
