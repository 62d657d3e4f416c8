"""Whether the released counts can have been drawn with the public weights from the public shares."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from funnel.audit.arithmetic import (
    WHOLE,
    Interval,
    ShareLimits,
    is_usual,
    off_complaints,
    output_limits,
    prior_limits,
    reads_published_only,
)
from funnel.audit.check import Found, Result, check, judged, unchecked
from funnel.audit.protected import mean_limits
from funnel.release.documents import ProtocolDocument

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext

# A release that was drawn as declared fails this at most once in a thousand million audits.
FALSE_ALARM = 1e-9
TOO_FAR_OFF = (
    "the probabilities are said to be further off than rounding makes them as a rule, so it cannot be told from public "
    "files what they were"
)
# Outweighs the error of the tails themselves.
_ROUNDING = 1 + 2.0**-20


@check("frequencies", "table counted")
def check_drawn_counts(known: AuditContext) -> Result:
    """The released counts can have been drawn from the public shares by the protocol."""
    limits = None if known.public is None else mean_limits(known.public, known.document, known.table.rows)
    privacy = known.package.get("funnel:privacy")
    people = privacy.get("people") if isinstance(privacy, dict) else None
    if wrong := list(off_complaints(known.document, people)):
        return judged("frequencies", wrong, "")
    found = check_frequencies(known.document, known.table.counts, limits)
    return found if found.failed or is_usual(known.document) else unchecked("frequencies", TOO_FAR_OFF)


def check_frequencies(
    document: ProtocolDocument, counts: npt.NDArray[np.int64], means: list[Interval] | None = None
) -> Result:
    """Test the count of every output against its probability, for a user who has only the public files.

    Parameters
    ----------
    document : ProtocolDocument
    counts : ndarray of int64, shape (b,)
        Released records by output.
    means : list of Interval, optional
        What the mean probability of each output can be, where noise protects the shares that are public.

    Notes
    -----
    *Proof that a release that was drawn as declared fails with a probability of at most `FALSE_ALARM`.* The count of an
    output y is a sum of n independent indicators, one a record, with probabilities Q(y|x_i) whose mean is
    q = Σ_x (n_x/n) Q(y|x). By Hoeffding (1956, theorem 5) its tails beyond nq ± 1 are at most those of Binomial(n, q),
    and these grow with q above and fall with q below. Each share n_x/n lies within half a step of the public one, so q
    lies between two numbers that are public; the tails at these are tested, each at `FALSE_ALARM` / 2b (Bonferroni).
    For a protocol that reads the secret q lies within the rounding of its public probability. Where shares have noise,
    q lies within ``means``, but for as large a probability again. Where the published channel is the effective one of
    people with histories, each probability is off by what the protocol states (``rounded``) at most, and so is q.
    """
    n = int(counts.sum())
    off = document.rounded or 0.0
    p_values = []
    for count, q in zip(counts.tolist(), means or _limits(document, n), strict=True):
        least, most = max(0.0, q.low - off), min(1.0, q.high + off)
        above = 1.0 if count <= n * most + 1 or most >= 1 else float(betainc(count, n - count + 1, most))
        below = 1.0 if count >= n * least - 1 or least <= 0 else float(betainc(n - count, count + 1, 1 - least))
        p_values.append(min(above, below) * _ROUNDING)
    worst = min(range(len(p_values)), key=p_values.__getitem__)
    p = min(1.0, 2 * len(p_values) * p_values[worst])
    said = f"p = {p:.2g} for the counts of {len(p_values)} outputs, from the public shares alone"
    return judged("frequencies", [f"{said}: that of output {worst + 1} does not fit"] if p < FALSE_ALARM else [], said)


@check("order", "table counted shuffled")
def check_order(known: AuditContext) -> Found:
    """Rows are not sorted.

    By how many repeat the row before, where they are said to be in random order.

    Notes
    -----
    Given the counts, a random order has Σ n_y (n_y - 1) / n repeats in the mean. Exchanging two records changes at most
    four, so revealing the order record by record is a martingale with steps of at most four, and by Azuma's inequality
    a deviation of t has a probability of at most 2 exp(-t² / 32 n). That is `FALSE_ALARM` at t = 26 √n: sorted rows are
    noticed from about 1,500 records on, a subtler order is not.
    """
    counts, repeats = known.table.alike, known.table.repeats
    n = int(counts.sum())
    expected = sum(int(count) * (int(count) - 1) for count in counts) / n
    p = min(1.0, 2 * math.exp(-((repeats - expected) ** 2) / (32 * n)))
    said = f"{repeats:,} records repeat the one before, {expected:,.0f} would by chance"
    if p < FALSE_ALARM:
        yield said
    return said


def _limits(document: ProtocolDocument, n: int) -> list[Interval]:
    """Least and largest mean probability of every output."""
    if not reads_published_only(document):
        return output_limits(document, n)
    shares = ShareLimits.of(prior_limits(document, n))
    return [shares.mean((x, weight / WHOLE) for x, weight in entries) for entries in document.entries]
