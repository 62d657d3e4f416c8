"""Protected frequencies of a release: what frequencies.json says, and that everything public follows from it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from funnel.audit.arithmetic import WHOLE, Interval, ShareLimits
from funnel.audit.check import Found, check
from funnel.audit.evidence import counts_of
from funnel.audit.files import read_document
from funnel.errors import DataError
from funnel.recount.channel import Symbols
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.noise import cell_limit, scale_of, total_limit
from funnel.recount.plausible import disagreement, plausible_noise
from funnel.release.documents import ProtocolDocument
from funnel.release.layout import ReleaseFolder, Version

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext

# Of audits of a release that was made as declared, the share that the noise may fail.
FALSE_ALARM = 1e-9
_NUMBERS = ("epsilon", "delta", "beta", "spent")


def read_frequencies(folder: ReleaseFolder, document: ProtocolDocument) -> PublicFrequencies | None:
    """The public frequencies, where the protocol says that noise protects the others.

    Raises
    ------
    DataError
        If they cannot be read, or are of other columns or values than the protocol.
    """
    if document.frequencies.protection != "noise":
        return None
    public = PublicFrequencies.parse(read_document(folder.frequencies))
    if _of_record(public, document) != (document.prior.columns, document.prior.symbols):
        raise DataError(f"{folder.frequencies} is of other published values than the protocol; the release is damaged")
    if public.secret_columns != document.guarantee.secret:
        raise DataError(f"{folder.frequencies} is of another secret than the protocol; the release is damaged")
    return public


def _of_record(public: PublicFrequencies, document: ProtocolDocument) -> tuple[tuple[str, ...], Symbols]:
    """Columns and values of a published record that there are counts of: with the secret, where that is published."""
    counted = public.as_counts()
    if document.prior.columns == public.secret_columns + public.published_columns:
        counted = counted.with_secret()
    return counted.published_columns, counted.inputs


@check("protected frequencies", "noise")
def check_protected(known: AuditContext) -> Found:
    """All files state the same noise of the public counts, and these statements agree."""
    public, said, classes = known.noisy, known.document.frequencies, known.columns.classes
    privacy = known.package.get("funnel:privacy")
    told = privacy.get("frequencies") if isinstance(privacy, dict) else None
    parts = [Fraction(part) for part in public.parts]
    if not 0 < sum(parts) <= Fraction(public.epsilon) <= Fraction(public.spent):
        yield "its epsilons do not follow each other: of the counts, of this version, of all versions"
    if public.delta > 0 and sum(parts) == Fraction(public.epsilon):
        yield "it has a delta for learning values, which cost nothing"
    yield from _split_complaints(public)
    wrong = list(public.moves_complaints())
    yield from wrong
    if not wrong:
        p = disagreement(public.noisy, public.scale, public.changes, public.rows)
        if p < FALSE_ALARM:
            yield f"its tables of changes and rows are not of the same people as its counts: p = {p:.3g}"
    if public.scale != scale_of(public.epsilon_counts):
        yield "its scale costs another epsilon"
    cells, totals = public.least_limits
    if public.cells_within != cells or not totals <= public.totals_within <= totals + 1:
        yield "its limits are not those that the scale and beta prove"
    # Of every class the values of known columns are public.
    if not public.is_whole(None if classes is None else classes.symbols.values()):
        yield "it lacks combinations of values, and so tells which of them occur"
    if any(getattr(said, name) != getattr(public, name) for name in _NUMBERS):
        yield "the protocol says other numbers of its noise"
    if not isinstance(told, dict) or any(told.get(name) != getattr(public, name) for name in _NUMBERS):
        yield "the data package says other numbers of its noise"
    yield from _since_complaints(public, known.name, known.version)
    words = f"{public.epsilon:.12g} nats for this version, {public.spent:.12g} for all about these people"
    return words


def _since_complaints(public: PublicFrequencies, name: str, version: str) -> Iterator[str]:
    """Changes are since versions before this one."""
    since = [] if public.changes is None else [one.version for one in public.changes.since]
    for one in since:
        series, _, number = one.rpartition("/")
        before, own = Version.parse(number), Version.parse(version)
        if before is None or not series or (series == name and own is not None and before >= own):
            yield "its changes are since what is no version before this one"


def _split_complaints(public: PublicFrequencies) -> Iterator[str]:
    """Whether parts stand to each other as is said; what learning values cost is known to who has the spec alone."""
    counts, *told = public.parts
    # Each of them is a quarter of what there was; the counts have what is left, or all if they were drawn before.
    ways = [4 * part - number * part for part in told for number in range(len(told) + 1)]
    if told and not (
        math.isclose(max(told), min(told), rel_tol=1e-12)
        and any(math.isclose(counts, way, rel_tol=1e-12) for way in ways)
    ):
        yield "its epsilon is not split between counts and the other tables as is said"


@check("noise", "internal noise")
def check_noise(known: AuditContext) -> Found:
    """Public and exact counts differ by noise of the declared distribution."""
    public, exact = known.noisy, counts_of(known.evidence.first_rows or known.evidence.joint)
    places = [[(s, x) for x in public.inputs] for s in public.secret]
    if set(exact) - {cell for row in places for cell in row}:
        yield "the source has combinations of values that no public count is of"
        return ""
    noise = [
        [noisy - exact.get(cell, 0) for noisy, cell in zip(*rows, strict=True)]
        for rows in zip(public.noisy, places, strict=True)
    ]
    found = plausible_noise(noise, public.scale, [[exact.get(cell, 0) for cell in row] for row in places])
    said = f"p = {found.p_value:.3g} over {len(public.secret) * len(public.inputs):,} counts"
    if not found.p_value >= FALSE_ALARM:
        yield f"{said}, by {found.what}"
    return said


def mean_limits(public: PublicFrequencies, document: ProtocolDocument, rows: int) -> list[Interval]:
    """What the mean probability of every output can be over the true values of the records of a table.

    The counts of these values are within limits of the noisy ones, which fail with a probability of `FALSE_ALARM`
    at most, and add up to the records of the table.
    """
    tail = Fraction(FALSE_ALARM)
    noisy = np.array(public.noisy, dtype=np.int64)
    if public.rows is not None:
        # Counts of first rows say nothing certain of all rows, nor does their protocol of what each one drew from.
        return [Interval(0.0, 1.0)] * len(document.weights)
    if document.inputs.columns == public.published_columns:
        c, a = noisy.shape
        sums, reach = noisy.sum(axis=0), total_limit(public.scale, c, tail / a)
        rows_read = [list(row) for row in document.entries]
    else:
        sums, reach = noisy.ravel(), cell_limit(public.scale, tail / noisy.size)
        place = {symbol: x for x, symbol in enumerate(document.inputs.symbols)}
        cells: dict[int | None, list[int]] = {}
        for cell, symbol in enumerate(s + x for s in public.secret for x in public.inputs):
            cells.setdefault(place.get(symbol), []).append(cell)
        rows_read = [
            [(cell, weight) for x, weight in (*row, (None, int(marginal))) for cell in cells.get(x, ())]
            for row, marginal in zip(document.entries, document.marginal, strict=True)
        ]
    shares = ShareLimits(*(np.clip((sums + sign * reach) / rows, 0.0, 1.0).tolist() for sign in (-1, 1)))
    return [shares.mean((place, weight / WHOLE) for place, weight in row) for row in rows_read]
