"""Publication: the public files of a version beside its rows, written into the folder where it is put together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.csv as pacsv

from funnel.donors.record_classes import RecordClasses
from funnel.errors import ReleaseRefused
from funnel.frequencies.public_counts import Frequencies
from funnel.guarantees import parse_guarantee
from funnel.protocol import Protocol
from funnel.readers.source_files import file_digest
from funnel.release.classes_document import chosen_by, classes_document
from funnel.release.csv_cells import guarded, guarded_column
from funnel.release.datapackage import data_package
from funnel.release.document import dump
from funnel.release.files import FileRef, write_new
from funnel.release.frequencies_document import frequencies_document
from funnel.release.handouts import documentation
from funnel.release.handouts.number_table import drawn_columns, write_drawn_numbers
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.protection import Protection
from funnel.release.protocol_document import protocol_document
from funnel.release.public.findings import PublicRelease
from funnel.release.public_report import PublicReport
from funnel.spec import ReleaseSpec
from funnel.tables import open_paged

BATCH_ROWS = 1 << 17


def require_drawn(folder: ReleaseFolder, rows: FileRef) -> None:
    """Make sure that the rows of a version are those that were drawn.

    Raises
    ------
    ReleaseRefused
        If they were changed.
    """
    if file_digest(folder.data) != rows.sha256:
        raise ReleaseRefused("the rows were changed after they were drawn; run the release again")


def write_documents(
    spec: ReleaseSpec,
    protocol: Protocol,
    public: PublicRelease,
    frequencies: Frequencies,
    protection: Protection,
    folder: ReleaseFolder,
    rounded: float | None = None,
    classes: RecordClasses | None = None,
) -> None:
    """Write the protocol as its users need it, the noisy counts it was made from, and the csv if the spec asks for it.

    So are numbers that are drawn within intervals, by a spec with the recoding that the values were made by. Without
    noise there are no counts to publish: rounding is all that protects the exact ones.
    """
    if protection.kind.is_noisy:
        write_new(folder.frequencies, frequencies_document(frequencies).to_bytes())
    if classes is not None:
        write_new(folder.classes, classes_document(classes, people=chosen_by(spec.groups)).to_bytes())
    guarantee = parse_guarantee(spec.guarantee.canonical)
    document = protocol_document(protocol, guarantee, public, protection, rounded)
    write_new(folder.protocol, document.to_bytes())
    if spec.output.csv:
        # From the released rows, so that both say the same.
        write_csv(folder)
    write_drawn_numbers(drawn_columns(spec, protocol), folder, spec.output.csv)


def write_package(
    spec: ReleaseSpec,
    protocol: Protocol,
    report: PublicReport,
    protection: Protection,
    folder: ReleaseFolder,
    categories: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, str]:
    """Write the Data Package over the public files that are there; return the digest of each, its own included.

    ``categories`` are the values of every published column, where they are not those of the protocol's outputs.

    Returns
    -------
    dict of str to str
        SHA-256 (hex) by path in the folder.
    """
    public = [
        path
        for path in (
            folder.data,
            folder.csv,
            folder.drawn,
            folder.drawn_csv,
            folder.protocol,
            folder.classes,
            folder.frequencies,
            folder.numbers,
            folder.report,
        )
        if path.is_file()
    ]
    files = {path.relative_to(folder.root).as_posix(): (file_digest(path), path.stat().st_size) for path in public}
    try:
        text = dump(data_package(spec, protocol, report, protection, files, categories))
    except ValueError:
        raise ReleaseRefused("nothing was published: a figure of datapackage.json is not a finite number") from None
    write_new(folder.package, text)
    return {
        **{name: digest for name, (digest, _) in files.items()},
        folder.package.name: file_digest(folder.package),
    }


def write_documentation(folder: ReleaseFolder, previous: Version | None) -> None:
    """Write what is told to people and portals, from the data package and the protocol that are there.

    Parameters
    ----------
    folder : ReleaseFolder
    previous : Version or None
        The newest version that readers find.
    """
    package, protocol = json.loads(folder.package.read_bytes()), json.loads(folder.protocol.read_bytes())
    told = documentation(package, protocol, None if previous is None else str(previous))
    write_new(folder.readme, told[folder.readme.name])
    write_new(folder.citation, told[folder.citation.name])
    write_new(folder.catalogue, told[folder.catalogue.name])
    if folder.channel.name in told:
        write_new(folder.channel, told[folder.channel.name])
    if folder.estimator.name in told:
        write_new(folder.estimator, told[folder.estimator.name])


def require_small(folder: ReleaseFolder, most: int) -> None:
    """Refuse public files beside the records that people would not want to download.

    Parameters
    ----------
    folder : ReleaseFolder
    most : int
        Bytes, as ``max_document`` in ``[limits]`` says; csv may have more, since a spec asks for it.

    Raises
    ------
    ReleaseRefused
        With the largest file.
    """
    files = [path for path in folder.root.iterdir() if path.is_file() and path.suffix != ".csv"]
    size, largest = max((path.stat().st_size, path.name) for path in files)
    if size > most:
        raise ReleaseRefused(
            f"nothing was published: {largest} has {size:,} bytes, more than max_document = {most} in [limits]; "
            f"publish fewer combinations of values (groups, bins), or write max_document = {size + size // 10}"
        )


def write_csv(folder: ReleaseFolder) -> None:
    """Write the released rows as csv too.

    Raises
    ------
    ReleaseRefused
        If they cannot be read back.
    """
    try:
        _write_csv(folder)
        return
    except (pa.ArrowException, OSError) as error:
        # The library reports damage as an OSError without a number; others are of the file system.
        if isinstance(error, OSError) and error.errno is not None:
            raise
    raise ReleaseRefused("nothing was published: the drawn rows cannot be read back as parquet; run the release again")


def _write_csv(folder: ReleaseFolder) -> None:
    with open_paged(folder.data) as file:
        names = file.schema_arrow.names
        schema = pa.schema([(guarded(name), pa.string()) for name in names])
        with pacsv.CSVWriter(folder.csv, schema) as writer:
            for batch in file.iter_batches(BATCH_ROWS):
                columns = [guarded_column(column.cast(pa.string())) for column in batch.columns]
                writer.write_table(pa.Table.from_arrays(columns, schema=schema))
