"""An invariant release: the distribution of its outputs, and what is stated of records that stay unchanged."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from funnel.audit.arithmetic import WHOLE, Interval, guarantee_of, prior_limits, share_step
from funnel.audit.check import Found, Unchecked, check
from funnel.audit.evidence import counted_of
from funnel.audit.protected import TOO_FAR_OFF, is_usual
from funnel.audit.told_secrets import observer_budgets
from funnel.audit.unchanged_shares import UnchangedShares, unchanged_complaints
from funnel.recount.balance import TOLERANCE, alphabet_complaints, balance_complaints, of_rounding
from funnel.recount.donors import PlainDonors, whole_complaints
from funnel.recount.published import count_published
from funnel.recount.published_classes import moves_of, published_by_class
from funnel.recount.source import Recount
from funnel.recount.unchanged import PlainUnchanged, Rule
from funnel.release.documents import ProtocolDocument

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext

Json = dict[str, Any]
_SILENT = "report.json does not state how many records are unchanged"
_EXACTLY = "outputs are the inputs and have their distribution, to 1e-12 of all records"
_ROUNDED = (
    "outputs are the inputs and have their distribution in the source, to a record and the rounding of the weights"
)
_CORRECTED = "outputs are the inputs, and have the distribution that the public means ask for, to 1e-11 of all records"


@check("unchanged", "invariant table counted", contained=True)
def check_unchanged(known: AuditContext) -> Found:
    """Shares of records unchanged follow from the protocol and the public shares or counts.

    Exactly from noisy counts, otherwise within what rounded shares leave open.
    """
    if known.public is not None:
        return (yield from _counted(known, known.public.as_counts(), ordered=True))
    document, rows = known.document, known.public_rows
    stated = yield from _stated(known)
    if stated is not None:
        if document.prior.symbols != document.inputs.symbols:
            yield "the values that there are shares of are not those that the protocol reads"
        else:
            shares = UnchangedShares.rounded(document, rows)
            yield from unchanged_complaints(stated, shares, _rule(known, rows), _published(known))
    return "shares unchanged follow from the protocol, as far as the public shares tell it"


@check("whole records", "invariant table counted classes", contained=True)
def check_whole(known: AuditContext) -> Found:
    """Shares of whole records unchanged, by column, follow from the records and the protocol."""
    stated, names, columns = known.report.unchanged, known.columns.names, known.columns
    width = 0 if columns.classes is None else len(columns.classes.known)
    secrets = len(known.document.outputs.columns) - width - 1
    published = published_by_class(count_published(known.folder.data, names), secrets)
    if stated is None:
        yield _SILENT
        return ""
    whole = None if stated.whole is None else stated.whole.model_dump(mode="json")
    found = PlainDonors(names[:-1], published, moves_of(known.released, width), columns.texts)
    yield from whole_complaints(whole, found, stated.share, float(share_step(known.public_rows)))
    return "shares of whole records unchanged, by column, follow from the records and the protocol"


@check("exact unchanged", "internal exact invariant table", contained=True)
def check_exact_unchanged(known: AuditContext) -> Found:
    """Shares of records unchanged follow from the protocol and the exact counts."""
    return (yield from _counted(known, counted_of(known.evidence.joint), ordered=False))


def _counted(known: AuditContext, counted: Recount, *, ordered: bool) -> Found:
    """The figures from counts of the secret and of what is published, public ones or exact ones."""
    document = known.document
    if document.inputs.columns != counted.published_columns:
        counted = counted.with_secret()
    exact, stated = PlainUnchanged(document.content(), counted), (yield from _stated(known))
    if stated is not None and not exact.records.keys() <= set(exact.symbols):
        yield "a value has a count, and the protocol does not read it"
    elif stated is not None:
        shares = UnchangedShares.counted(exact)
        rule = replace(_rule(known, counted.rows), ordered=ordered)
        yield from unchanged_complaints(stated, shares, rule, _published(known))
    return "what stays unchanged, and what observers conclude, follows from the protocol and the counts"


def _stated(known: AuditContext) -> Generator[str, None, Json | None]:
    """What the report states, where it can be read and outputs are inputs at all; else that they are not."""
    stated = known.report.unchanged
    wrong = [_SILENT] if stated is None else list(alphabet_complaints(known.document.content()))
    yield from wrong
    return None if wrong or stated is None else stated.model_dump(mode="json")


def _rule(known: AuditContext, rows: int) -> Rule:
    guarantee = guarantee_of(known.document)
    limits, (alone, budget) = guarantee.lift_limits, observer_budgets(known)
    return Rule(float(share_step(rows)), budget, None if limits is None else limits[1], alone)


def _published(known: AuditContext) -> dict[tuple[str, ...], int]:
    return dict(zip(known.document.outputs.symbols, known.table.counts.tolist(), strict=True))


@check("balance", "invariant counted")
def check_balance(known: AuditContext) -> Found:
    """Published values are the true ones, with the same distribution, as far as public files show.

    For the public counts; without noise, for shares that are rounded to the public ones.
    """
    document, public, rows = known.document, known.public, known.public_rows
    if public is not None:
        counted = public.as_counts()
        shares = {(*s, *x) if document.prior.columns != public.published_columns else x: 0 for s, x in counted.counts}
        for (s, x), count in counted.counts.items():
            shares[(*s, *x) if (*s, *x) in shares else x] += count
        yield from balance_complaints(document.content(), tuple(shares), list(shares.values()), public.mean_of)
        return f"{_EXACTLY} of the public counts" if public.means is None else _CORRECTED
    if not is_usual(document):
        return Unchecked(TOO_FAR_OFF)
    told = "the public shares" if not document.rounded else "the public shares and the rounding of the weights"
    slack = TOLERANCE + of_rounding(document.rounded, rows)
    yield from _rounded_complaints(document, prior_limits(document, rows), slack)
    return f"outputs are the inputs and have their distribution, as far as {told} tell it"


@check("exact balance", "internal exact invariant")
def check_exact_balance(known: AuditContext) -> Found:
    """Outputs have the distribution of the inputs, by the exact counts."""
    document, joint = known.document, known.evidence.joint
    read = joint.read_by(document.inputs.columns)
    counts = read.counts.sum(axis=0).tolist()
    yield from balance_complaints(document.content(), read.inputs.symbols, counts, off=document.rounded)
    return f"{_EXACTLY} of the source" if not document.rounded else _ROUNDED


def _rounded_complaints(document: ProtocolDocument, limits: list[Interval], slack: Fraction) -> Iterator[str]:
    """Outputs that no shares within limits are balanced for: what they gain from others, less what they lose."""
    wrong = list(alphabet_complaints(document.content()))
    yield from wrong
    if wrong or document.prior.symbols != document.inputs.symbols:
        return
    low, high = ([Fraction(getattr(limit, end)) for limit in limits] for end in ("low", "high"))
    for number, row in enumerate(document.entries, 1):
        y = number - 1
        stays = Fraction(dict(row).get(y, 0), WHOLE)
        gained = [(x, Fraction(weight, WHOLE)) for x, weight in row if x != y]
        least = sum((q * low[x] for x, q in gained), Fraction(0)) - (1 - stays) * high[y]
        most = sum((q * high[x] for x, q in gained), Fraction(0)) - (1 - stays) * low[y]
        if not -slack <= most or not least <= slack:
            yield f"output {number} does not have the distribution of the inputs, whatever rounding left out"
