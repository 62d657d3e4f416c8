"""Counts of a release: what frequencies.json says, and whether the released counts can have been drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from funnel.audit.arithmetic import (
    WHOLE,
    Interval,
    ShareLimits,
    grid_of,
    output_limits,
)
from funnel.audit.check import FALSE_ALARM, Found, Result, check, judged, unchecked
from funnel.audit.evidence import counts_of
from funnel.audit.files import read_document
from funnel.errors import DataError
from funnel.recount.channel import Symbols
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.noise import cell_limit, scale_of, total_limit
from funnel.recount.noisy_moves import RECORD
from funnel.recount.plausible import disagreement, plausible_noise
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.protocol_document import ProtocolDocument

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext

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
    told = known.privacy.get("frequencies")
    parts = [Fraction(part) for part in public.parts]
    if not 0 < sum(parts) <= Fraction(public.epsilon) <= Fraction(public.spent):
        yield "its epsilons do not follow each other: of the counts, of this version, of all versions"
    if public.delta > 0 and sum(parts) == Fraction(public.epsilon):
        yield "it has a delta for learning values, which cost nothing"
    if public.delta == 0 and not math.isclose(sum(parts), public.epsilon, rel_tol=1e-12):
        yield "its epsilon is more than its tables cost, and learning values cost nothing"
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
    told_of = 1 if public.changes is None else 1 + len(public.changes.since)
    if known.privacy.get("people") == "same" and known.privacy.get("versions") != told_of:
        yield "its changes are not since every version before it about the same people"
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
    of_series = [Version.parse(one.rpartition("/")[2]) for one in since if one.rpartition("/")[0] == name]
    numbers = [one for one in of_series if one is not None]
    if numbers != sorted(numbers):
        yield "its changes are not since versions in their order"


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


def departed(means: Sequence[Interval], public: PublicFrequencies, rows: int) -> list[Interval]:
    """What these can be with the departures that are told, whose noise is further off with `FALSE_ALARM` at most."""
    told = public.departures
    assert told is not None
    reach = cell_limit(told.scale, Fraction(FALSE_ALARM) / len(told.counts))
    return [
        Interval(
            min(1.0, max(0.0, one.low + (count - reach) / RECORD / rows)),
            min(1.0, max(0.0, one.high + (count + reach) / RECORD / rows)),
        )
        for one, count in zip(means, told.counts, strict=True)
    ]


TOO_FAR_OFF = (
    "the probabilities are said to be further off than rounding makes them as a rule, so it cannot be told from public "
    "files what they were"
)
OF_EXPECTED_PEOPLE = (
    "the records do not fit the published channel and departures: these are of people whose parts were shortened, and "
    "public files do not tell what that left out"
)
# Outweighs the error of the tails themselves.
_ROUNDING = 1 + 2.0**-20


# The finest and the coarsest grid that weights are rounded to (they are on a coarser one by chance), and the share of
# the distribution of the output that may be mixed in.
_FINEST_GRID, _COARSEST_GRID, _MIXED_IN = WHOLE >> 28, WHOLE >> 8, 2.0**-10


def off_complaints(document: ProtocolDocument, people: object) -> Iterator[str]:
    """What is wrong with how far probabilities are said to be off, as far as public files tell it."""
    if document.rounded is None:
        if people == "same":
            yield "it does not say how far its probabilities are off, and its people are followed"
        return
    grid, off = min(grid_of(document), _COARSEST_GRID), Fraction(document.rounded) * WHOLE
    if people != "same":
        yield "its probabilities are said to be off, and nothing follows its people through versions or rows"
    if off and (grid < _FINEST_GRID or off % grid):
        yield "its probabilities are said to be off by what is no whole number of steps of their grid"


def is_usual(document: ProtocolDocument) -> bool:
    """Whether probabilities are said to be off by no more than rounding to their grid makes them, as a rule.

    The largest of a column has what all others leave. Where no usual rounding keeps the bound they may be further off,
    and public files do not tell whether they are.
    """
    grid = min(grid_of(document), _COARSEST_GRID)
    most = (len(document.entries) + 1) * grid / WHOLE + _MIXED_IN
    return (document.rounded or 0.0) <= most


@check("frequencies", "table counted")
def check_drawn_counts(known: AuditContext) -> Result:
    """The released counts can have been drawn from the public shares by the protocol.

    With noise a later version publishes the channel of the people who are expected, and by how much the answers of
    those who came depart from it, each person's part shortened. Nothing bounds what that leaves out, so that what does
    not fit all the same is no proof: each draw is held to the channel of its own history, by the evidence.
    """
    public = known.public
    limits = None if public is None else mean_limits(public, known.document, known.table.rows)
    if wrong := list(off_complaints(known.document, known.privacy.get("people"))):
        return judged("frequencies", wrong, "")
    found = check_frequencies(known.document, known.table.counts, limits)
    if found.failed and limits is not None and public is not None and public.departures is not None:
        found = check_frequencies(known.document, known.table.counts, departed(limits, public, known.table.rows))
        if found.failed:
            return unchecked("frequencies", OF_EXPECTED_PEOPLE)
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
    for count, q in zip(counts.tolist(), means or output_limits(document, n), strict=True):
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
    a deviation of t has a probability of at most 2 exp(-t² / 32 n). That is `FALSE_ALARM` at t = 28 √n: sorted rows are
    noticed from about 1,800 records on, a subtler order is not.
    """
    counts, repeats = known.table.alike, known.table.repeats
    n = int(counts.sum())
    expected = sum(int(count) * (int(count) - 1) for count in counts) / n
    p = min(1.0, 2 * math.exp(-((repeats - expected) ** 2) / (32 * n)))
    said = f"{repeats:,} records repeat the one before, {expected:,.0f} would by chance"
    if p < FALSE_ALARM:
        yield said
    return said
