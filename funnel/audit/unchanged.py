"""What the report of an invariant release states of records that stay unchanged, computed again from other files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from funnel.audit.arithmetic import guarantee_of, share_step
from funnel.audit.check import Result, judged
from funnel.audit.encoding import Table
from funnel.audit.evidence import counted_of
from funnel.audit.files import read_document
from funnel.audit.released_columns import ReleasedColumns
from funnel.audit.unchanged_limits import RoundedShares, limit_complaints
from funnel.errors import DataError
from funnel.joint import Joint
from funnel.recount.balance import alphabet_complaints
from funnel.recount.classes import moves_of, published_by_class
from funnel.recount.donors import PlainDonors, whole_complaints
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.published import count_published
from funnel.recount.released import ReleasedProtocol
from funnel.recount.source import Recount
from funnel.recount.stated_unchanged import Rule, unchanged_complaints
from funnel.recount.unchanged import PlainUnchanged
from funnel.release.documents import ProtocolDocument
from funnel.release.layout import ReleaseFolder
from funnel.release.public_report import PublicReport

Json = dict[str, Any]
_FOLLOWS = "what stays unchanged, and what observers conclude, follows from the protocol and the counts"


def check_unchanged(
    folder: ReleaseFolder, document: ProtocolDocument, public: PublicFrequencies | None, table: Table, rows: int
) -> Result:
    """The figures from the public files: exactly from noisy counts, otherwise within what rounded shares leave open.

    Parameters
    ----------
    folder : ReleaseFolder
    document : ProtocolDocument
        Of an invariant protocol.
    public : PublicFrequencies or None
        The noisy counts, where these are public.
    table : Table
    rows : int
        Records that public shares are of.
    """
    if public is not None:
        counted = public.as_counts()
        return check_counted_unchanged("unchanged", folder, document, counted, _published(document, table))
    shares = RoundedShares(document, rows)
    return _checked(
        "unchanged",
        folder,
        document,
        lambda stated: limit_complaints(stated, shares, _rule(document, rows), _published(document, table)),
        "shares unchanged follow from the protocol, as far as the public shares tell it",
    )


def check_whole(folder: ReleaseFolder, document: ProtocolDocument, columns: ReleasedColumns, rows: int) -> Result:
    """The figures of whole records, from these and the protocol of their classes.

    Parameters
    ----------
    folder : ReleaseFolder
    document : ProtocolDocument
    columns : ReleasedColumns
    rows : int
        Records that public shares are of.
    """

    def complaints() -> Iterator[str]:
        try:
            stated = PublicReport.from_json(read_document(folder.numbers), str(folder.numbers)).unchanged
            names = columns.names
            known = 0 if columns.classes is None else len(columns.classes.known)
            secrets = len(document.outputs.columns) - known - 1
            published = published_by_class(count_published(folder.data, names), secrets)
            moves = moves_of(ReleasedProtocol.parse(read_document(folder.protocol)), known)
        except DataError as error:
            yield str(error)
            return
        if stated is None:
            yield "report.json does not state how many records are unchanged"
            return
        whole = None if stated.whole is None else stated.whole.model_dump(mode="json")
        found = PlainDonors(names[:-1], published, moves, columns.texts)
        yield from whole_complaints(whole, found, stated.share, float(share_step(rows)))

    holds = "shares of whole records unchanged, by column, follow from the records and the protocol"
    return judged("whole records", complaints(), holds)


def check_exact_unchanged(folder: ReleaseFolder, document: ProtocolDocument, joint: Joint, table: Table) -> Result:
    """The figures from exact counts, where all that is public follows from these."""
    counted, published = counted_of(joint), _published(document, table)
    return check_counted_unchanged("exact unchanged", folder, document, counted, published)


def check_counted_unchanged(
    name: str,
    folder: ReleaseFolder,
    document: ProtocolDocument,
    counted: Recount,
    published: Mapping[tuple[str, ...], int],
) -> Result:
    """The figures from counts of the secret and of what is published, public ones or exact ones.

    Parameters
    ----------
    name : str
        Of the check.
    folder : ReleaseFolder
    document : ProtocolDocument
        Of an invariant protocol.
    counted : Recount
    published : mapping of record to int
        The released records.
    """
    if document.inputs.columns != counted.published_columns:
        counted = counted.with_secret()
    exact = PlainUnchanged(document.content(), counted)

    def complaints(stated: Json) -> Iterator[str]:
        if not exact.records.keys() <= set(exact.symbols):
            yield "a value has a count, and the protocol does not read it"
            return
        yield from unchanged_complaints(stated, exact, _rule(document, counted.rows), published)

    return _checked(name, folder, document, complaints, _FOLLOWS)


def _checked(
    name: str,
    folder: ReleaseFolder,
    document: ProtocolDocument,
    complaints: Callable[[Json], Iterator[str]],
    holds: str,
) -> Result:
    """The check of what the report states, where it can be read and outputs are inputs at all."""
    try:
        stated = PublicReport.from_json(read_document(folder.numbers), str(folder.numbers)).unchanged
    except DataError as error:
        return judged(name, [str(error)], "")
    if stated is None:
        return judged(name, ["report.json does not state how many records are unchanged"], "")
    wrong = list(alphabet_complaints(document.content()))
    return judged(name, wrong or complaints(stated.model_dump(mode="json")), holds)


def _rule(document: ProtocolDocument, rows: int) -> Rule:
    guarantee = guarantee_of(document)
    limits = guarantee.lift_limits
    return Rule(float(share_step(rows)), guarantee.budget, None if limits is None else limits[1])


def _published(document: ProtocolDocument, table: Table) -> dict[tuple[str, ...], int]:
    return dict(zip(document.outputs.symbols, table.counts.tolist(), strict=True))
