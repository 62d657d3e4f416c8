"""Publication of a grouped release: its public files beside the rows, written where the version is put together."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from funnel.errors import ReleaseRefused
from funnel.groups.protocol import GroupedProtocol
from funnel.guarantees import Guarantee, parse_guarantee
from funnel.numbers import described_numbers
from funnel.release.channel_rows import read_channel_rows
from funnel.release.datapackage import disclosure_control, package_of, protected_by, scope_alone
from funnel.release.document import dump
from funnel.release.files import FileRef, write_whole
from funnel.release.grouped_privacy import RECIPE, GroupedPrivacyBlock
from funnel.release.grouped_protocol_document import grouped_protocol_document
from funnel.release.grouped_public import GroupedPublic
from funnel.release.handouts import grouped_handouts
from funnel.release.handouts.drawn_numbers import drawn_columns, write_drawn_numbers
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.privacy_block import DisclosureControl, Estimation, ProtocolFile, ReportFile
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

    So are numbers that are drawn within intervals, by a spec with the recoding that the values were made by.

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
    write_drawn_numbers(drawn_columns(spec, protocol), folder, spec.output.csv)


def write_grouped_package(
    spec: ReleaseSpec,
    protocol: GroupedProtocol,
    public: GroupedPublic,
    protection: Protection,
    version: Version,
    created: str,
    folder: ReleaseFolder,
) -> None:
    """Write the Data Package over the public files that are there.

    Parameters
    ----------
    spec : ReleaseSpec
        With the recoding that the values were made by (`funnel.source.Codings.settled`).
    protocol, public, protection, version, created, folder
        As for any release.
    """
    files = {
        path.relative_to(folder.root).as_posix(): (file_digest(path), path.stat().st_size)
        for path in (
            folder.data,
            folder.csv,
            folder.drawn,
            folder.drawn_csv,
            folder.protocol,
            folder.channels,
            folder.numbers,
            folder.report,
        )
        if path.is_file()
    }
    try:
        privacy = _privacy(spec, protocol, public, protection, files)
        content = package_of(
            spec,
            protocol.labels,
            _MEANING,
            str(version),
            created,
            files,
            privacy,
            lambda column: described_numbers(spec, column),
            drawn_columns(spec, protocol),
        )
        text = dump(content)
    except ValueError:
        raise ReleaseRefused("nothing was published: a figure of datapackage.json is not a finite number") from None
    write_whole(folder.package, text)


def write_grouped_handouts(folder: ReleaseFolder, previous: Version | None) -> None:
    """Write what is told to people and portals, from the data package and the effective channels that are there.

    Parameters
    ----------
    folder : ReleaseFolder
    previous : Version or None
        The newest version that readers find.
    """
    package, channels = json.loads(folder.package.read_bytes()), read_channel_rows(folder.channels)
    told = grouped_handouts(package, channels, None if previous is None else str(previous))
    write_whole(folder.readme, told[folder.readme.name])
    write_whole(folder.citation, told[folder.citation.name])
    write_whole(folder.catalogue, told[folder.catalogue.name])
    write_whole(folder.channel, told[folder.channel.name])


def _privacy(
    spec: ReleaseSpec,
    protocol: GroupedProtocol,
    public: GroupedPublic,
    protection: Protection,
    files: dict[str, tuple[str, int]],
) -> dict[str, Any]:
    def digest(path: str) -> str:
        return f"sha256:{files[path][0]}"

    block = GroupedPrivacyBlock(
        guarantee=public.guarantee,
        meaning=parse_guarantee(public.guarantee).meaning,
        level=public.level,
        secret=spec.secret,
        published=spec.publish,
        groups=public.groups,
        made_for=public.people,
        protocol=ProtocolFile(path="protocol.json", hash=digest("protocol.json")),
        protocol_digest=protocol.digest,
        channels=ProtocolFile(path="channels.parquet", hash=digest("channels.parquet")),
        report=ReportFile(path="report.json", hash=digest("report.json"), page="report.html"),
        estimation=Estimation(path="protocol.csv", recipe=RECIPE),
        utility_share=public.share,
        records=public.rows,
        row_order="random" if spec.output.shuffle else "as in the source",
        disclosure_control=DisclosureControl(**disclosure_control(spec)),
        frequencies=protected_by(protection, files),
        people=None if spec.history is None else "different",
        scope=scope_alone(spec),
    )
    return block.content()
