"""What the report of an invariant release states of records that stay unchanged, computed again from other files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from funnel.audit.arithmetic import guarantee_of, share_step
from funnel.audit.check import Result, check, judged
from funnel.audit.evidence import counted_of
from funnel.audit.unchanged_limits import RoundedShares, limit_complaints
from funnel.recount.balance import alphabet_complaints
from funnel.recount.classes import moves_of, published_by_class
from funnel.recount.donors import PlainDonors, whole_complaints
from funnel.recount.published import count_published
from funnel.recount.source import Recount
from funnel.recount.stated_unchanged import Rule, unchanged_complaints
from funnel.recount.unchanged import PlainUnchanged
from funnel.release.documents import ProtocolDocument

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext

Json = dict[str, Any]
_FOLLOWS = "what stays unchanged, and what observers conclude, follows from the protocol and the counts"


@check("unchanged", "invariant table counted", contained=True)
def check_unchanged(known: AuditContext) -> Result:
    """Shares of records unchanged follow from the protocol and the public shares or counts.

    Exactly from noisy counts, otherwise within what rounded shares leave open.
    """
    if known.public is not None:
        return _check_counted("unchanged", known, known.public.as_counts())
    document, rows = known.document, known.public_rows
    shares = RoundedShares(document, rows)
    return _checked(
        "unchanged",
        known,
        lambda stated: limit_complaints(stated, shares, _rule(document, rows), _published(known)),
        "shares unchanged follow from the protocol, as far as the public shares tell it",
    )


@check("whole records", "invariant table counted classes", contained=True)
def check_whole(known: AuditContext) -> Result:
    """Shares of whole records unchanged, by column, follow from the records and the protocol."""
    columns = known.columns

    def complaints() -> Iterator[str]:
        stated, names = known.report.unchanged, columns.names
        width = 0 if columns.classes is None else len(columns.classes.known)
        secrets = len(known.document.outputs.columns) - width - 1
        published = published_by_class(count_published(known.folder.data, names), secrets)
        moves = moves_of(known.released, width)
        if stated is None:
            yield "report.json does not state how many records are unchanged"
            return
        whole = None if stated.whole is None else stated.whole.model_dump(mode="json")
        found = PlainDonors(names[:-1], published, moves, columns.texts)
        yield from whole_complaints(whole, found, stated.share, float(share_step(known.public_rows)))

    holds = "shares of whole records unchanged, by column, follow from the records and the protocol"
    return judged("whole records", complaints(), holds)


@check("exact unchanged", "internal exact invariant table", contained=True)
def check_exact_unchanged(known: AuditContext) -> Result:
    """Shares of records unchanged follow from the protocol and the exact counts."""
    return _check_counted("exact unchanged", known, counted_of(known.evidence.joint))


def _check_counted(name: str, known: AuditContext, counted: Recount) -> Result:
    """The figures from counts of the secret and of what is published, public ones or exact ones."""
    document = known.document
    if document.inputs.columns != counted.published_columns:
        counted = counted.with_secret()
    exact = PlainUnchanged(document.content(), counted)

    def complaints(stated: Json) -> Iterator[str]:
        if not exact.records.keys() <= set(exact.symbols):
            yield "a value has a count, and the protocol does not read it"
            return
        yield from unchanged_complaints(stated, exact, _rule(document, counted.rows), _published(known))

    return _checked(name, known, complaints, _FOLLOWS)


def _checked(name: str, known: AuditContext, complaints: Callable[[Json], Iterator[str]], holds: str) -> Result:
    """The check of what the report states, where it can be read and outputs are inputs at all."""
    stated = known.report.unchanged
    if stated is None:
        return judged(name, ["report.json does not state how many records are unchanged"], "")
    wrong = list(alphabet_complaints(known.document.content()))
    return judged(name, wrong or complaints(stated.model_dump(mode="json")), holds)


def _rule(document: ProtocolDocument, rows: int) -> Rule:
    guarantee = guarantee_of(document)
    limits = guarantee.lift_limits
    return Rule(float(share_step(rows)), guarantee.budget, None if limits is None else limits[1])


def _published(known: AuditContext) -> dict[tuple[str, ...], int]:
    return dict(zip(known.document.outputs.symbols, known.table.counts.tolist(), strict=True))
