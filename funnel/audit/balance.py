"""Whether the outputs of an invariant protocol have the distribution of its inputs, as far as files tell that one."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from funnel.audit.arithmetic import WHOLE, Interval, prior_limits
from funnel.audit.check import Result, check, judged
from funnel.recount.balance import TOLERANCE, alphabet_complaints, balance_complaints, of_rounding
from funnel.release.documents import ProtocolDocument

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext

_EXACTLY = "outputs are the inputs and have their distribution, to 1e-12 of all records"

_ROUNDED = (
    "outputs are the inputs and have their distribution in the source, to a record and the rounding of the weights"
)

_CORRECTED = "outputs are the inputs, and have the distribution that the public means ask for, to 1e-11 of all records"


@check("balance", "invariant counted")
def check_balance(known: AuditContext) -> Result:
    """Outputs are the inputs, and have their distribution, as far as public files tell it.

    For the public counts; without noise, for shares that are rounded to the public ones.
    """
    document, public, rows = known.document, known.public, known.public_rows
    if public is not None:
        counted = public.as_counts()
        shares = {(*s, *x) if document.prior.columns != public.published_columns else x: 0 for s, x in counted.counts}
        for (s, x), count in counted.counts.items():
            shares[(*s, *x) if (*s, *x) in shares else x] += count
        complaints = balance_complaints(document.content(), tuple(shares), list(shares.values()), public.mean_of)
        said = f"{_EXACTLY} of the public counts" if public.means is None else _CORRECTED
        return judged("balance", complaints, said)
    told = "the public shares" if not document.rounded else "the public shares and the rounding of the weights"
    said = f"outputs are the inputs and have their distribution, as far as {told} tell it"
    slack = TOLERANCE + of_rounding(document.rounded, rows)
    return judged("balance", _rounded_complaints(document, prior_limits(document, rows), slack), said)


@check("exact balance", "internal exact invariant")
def check_exact_balance(known: AuditContext) -> Result:
    """Outputs have the distribution of the inputs, by the exact counts."""
    document, joint = known.document, known.evidence.joint
    read = joint.read_by(document.inputs.columns)
    counts = read.counts.sum(axis=0).tolist()
    complaints = balance_complaints(document.content(), read.inputs.symbols, counts, off=document.rounded)
    said = f"{_EXACTLY} of the source" if not document.rounded else _ROUNDED
    return judged("exact balance", complaints, said)


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
