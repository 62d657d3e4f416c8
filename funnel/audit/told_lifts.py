"""Lifts where nobody publishes counts: told in steps that follow from public shares, and fitting one another.

Exact lifts are known to the publisher alone. They have a mean of one over outputs and over secrets, and ratios and the
information about the secret are functions of them; so what is told of some is bounded by the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from funnel.audit.arithmetic import (
    WHOLE,
    Interval,
    guarantee_of,
    output_limits,
    reads_published_only,
    share_step,
)
from funnel.protocol import SPARSE_FORMAT
from funnel.recount.plain_distributions import is_public_ratio, prior_distribution, step_above
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.public_report import PublicReport

Floats = npt.NDArray[np.float64]
# As documented: a lift has two digits, and is told no finer than ten of the records expected of a secret and an output;
# where that would be more than a half it is not told.
_DIGITS, _RECORDS, _COARSEST = 2, 10, 0.5
# Limits of lifts have three digits.
_LIMIT = 0.01
ROUNDING = 1e-9
# Half of the fourth place, to which the protocol tells a share of an output, and half of what four digits leave open.
PLACES = 1e-4


def lift_complaints(told: PublicReport, document: ProtocolDocument, rows: int, step: float) -> Iterator[str]:
    """What is wrong with the table of lifts of all secrets, with its ratios, and with the information about them."""
    table = told.lifts.table
    if table is None:
        return
    if len(table.rows) != len(document.outputs.symbols) or any(len(r.cells) != told.beliefs.total for r in table.rows):
        yield "the table of lifts has other secrets or outputs than there are"
        return
    likely, told_outputs = output_limits(document, rows), _told_outputs(document, rows)
    yield from _step_complaints(told, document, told_outputs, rows)
    low, high = _lift_limits(told, document, told_outputs, rows)
    priors = np.array([one.prior for one in told.beliefs.rows])
    least = np.where(priors <= step * 1.5, 0.0, np.maximum(0.0, priors - step / 2))
    most = np.where(priors > 0, np.minimum(1.0, priors + step / 2), 0.0)
    seen = np.array([one.high > 0 for one in likely])
    for y in np.flatnonzero(seen).tolist():
        if least @ low[:, y] > 1 + ROUNDING or _most(most, high[:, y]) < 1 - ROUNDING:
            yield f"the lifts of output {y + 1} do not have a mean of one over secrets"
        if table.rows[y].ratio is None and likely[y].low > 0:
            yield f"the ratio of output {y + 1} is not told"
        if (said := table.rows[y].ratio) is not None and not _is_ratio(said, low[:, y], high[:, y], document):
            yield f"the ratio of output {y + 1} is not that of its lifts"
    outputs_low, outputs_high = (np.array([getattr(one, end) for one in likely]) for end in ("low", "high"))
    for s in np.flatnonzero(priors > 0).tolist():
        if outputs_low @ low[s] > 1 + ROUNDING or _most(outputs_high, high[s]) < 1 - ROUNDING:
            yield f"the lifts of secret {s + 1} do not have a mean of one over outputs"
    yield from _information_complaints(told, (least, most), (outputs_low, outputs_high), (low, high))


def _lift_limits(
    told: PublicReport, document: ProtocolDocument, likely: Sequence[Interval], rows: int
) -> tuple[Floats, Floats]:
    """Least and largest exact lifts (c, b) by the table of lifts; none and any where one is not told."""
    table = told.lifts.table
    if table is None:
        raise ValueError("there is a table of lifts")
    low, high = np.zeros((len(table.secrets), len(table.rows))), np.full((len(table.secrets), len(table.rows)), np.inf)
    for y, row in enumerate(table.rows):
        for s, (cell, belief) in enumerate(zip(row.cells, told.beliefs.rows, strict=True)):
            if cell.lift is None or belief.prior == 0 or likely[y].high == 0:
                continue
            if cell.lift == 0:
                high[s, y] = 0.0
                continue
            width = max(_steps(cell.lift, _expected(belief.prior, likely[y], rows)))
            # What is less than a step is told as one.
            low[s, y] = 0.0 if cell.lift <= width * (1 + ROUNDING) else cell.lift - width / 2
            high[s, y] = cell.lift + width / 2
    limits = guarantee_of(document).lift_limits
    if limits is not None and told.figures.holds:
        # A lift is told no farther from one than its limit, and may be as far.
        low, high = np.maximum(low, limits[0] * (1 - ROUNDING)), np.minimum(high, limits[1] * (1 + ROUNDING))
    return low, high


def _expected(prior: float, output: Interval, rows: int) -> Interval:
    """How many records are expected of a secret and an output."""
    return Interval(rows * prior * output.low, rows * prior * output.high)


def _steps(lift: float, expected: Interval) -> set[float]:
    """The steps that a lift may be told in: one, but where rounding leaves open which side of a limit something is."""
    digits = 10.0 ** (math.floor(math.log10(lift) + ROUNDING) + 1 - _DIGITS)
    # A lift of a power of ten may have been rounded up to it.
    of_digits = {digits, digits / 10} if abs(lift / digits / 10 ** (_DIGITS - 1) - 1) < ROUNDING else {digits}
    of_records = {step_above(_RECORDS / max(1e-300, end)) for end in (expected.low, expected.high)}
    return {max(one, other) for one in of_digits for other in of_records}


def _step_complaints(
    told: PublicReport, document: ProtocolDocument, outputs: Sequence[Interval], rows: int
) -> Iterator[str]:
    """Lifts are multiples of their steps, and told unless these are too coarse."""
    limits, step = guarantee_of(document).lift_limits if told.figures.holds else None, float(share_step(rows))
    for y, row in enumerate(() if told.lifts.table is None else told.lifts.table.rows):
        for s, (cell, belief) in enumerate(zip(row.cells, told.beliefs.rows, strict=True)):
            expected = _expected(belief.prior, outputs[y], rows)
            of_records = [step_above(_RECORDS / end) for end in (expected.low, expected.high) if end > 0]
            if cell.lift is None:
                most = min(1 / max(belief.prior - step, 1e-300), math.inf if limits is None else limits[1])
                # What is ten times as likely has no place after the point, and is too coarse.
                if len(of_records) == 2 and max(of_records) <= _COARSEST and most < 9.5:
                    yield f"the lift of secret {s + 1} by output {y + 1} is not told"
            elif not of_records:
                yield f"a lift of secret {s + 1} by output {y + 1} is told, which never occur together"
            elif cell.lift and not _is_told(cell.lift, _steps(cell.lift, expected), limits):
                yield f"the lift of secret {s + 1} by output {y + 1} is no multiple of its step"


def _is_told(lift: float, steps: set[float], limits: tuple[float, float] | None) -> bool:
    """Whether a lift can be told so: in steps that are not too coarse, or up to the limits of all lifts."""
    if limits is not None and (
        limits[0] <= lift <= limits[0] * (1 + _LIMIT) or limits[1] * (1 - _LIMIT) <= lift <= limits[1]
    ):
        return True
    return any(
        step <= _COARSEST and round(lift / step) > 0 and math.isclose(lift, round(lift / step) * step) for step in steps
    )


def _told_outputs(document: ProtocolDocument, rows: int) -> list[Interval]:
    """P(y) as it follows from public shares, which steps of lifts are made of."""
    if not reads_published_only(document):
        shares = [entry.probability for entry in document.posterior or ()]
        return [Interval(max(0.0, share - PLACES / 2), share + PLACES / 2) for share in shares]
    step, told = float(share_step(rows)), dict(enumerate(document.prior.probabilities))
    distribution = prior_distribution(told, step, document.format == SPARSE_FORMAT)
    made = [math.fsum(weight / WHOLE * distribution[x] for x, weight in row) for row in document.entries]
    return [Interval(share * (1 - ROUNDING), share * (1 + ROUNDING)) for share in made]


def _most(shares: Floats, lifts: Floats) -> float:
    """The largest sum; a lift that is not told can be anything."""
    return math.inf if bool(np.isinf(lifts[shares > 0]).any()) else float(shares @ np.where(shares > 0, lifts, 0.0))


def _is_ratio(said: float | str, low: Floats, high: Floats, document: ProtocolDocument) -> bool:
    """Whether a ratio, rounded up to two digits and to a step of levels, can be that of lifts within limits."""
    least, most = float(high.min()), float(low.max())
    possible = Interval(
        1.0 if least == math.inf else math.inf if least == 0 else max(1.0, most / least),
        math.inf if low.min() == 0 else float(high.max() / low.min()),
    )
    value, guarantee = math.inf if isinstance(said, str) else said, guarantee_of(document)
    least, most = possible.low * (1 - ROUNDING), possible.high * (1 + ROUNDING)
    return is_public_ratio(value, least, most, guarantee.budget, guarantee.ratio_limit)


def _information_complaints(
    told: PublicReport, secrets: tuple[Floats, Floats], outputs: tuple[Floats, Floats], lifts: tuple[Floats, Floats]
) -> Iterator[str]:
    """I(S;Y) is the mean of lift ln lift - lift + 1, which is never negative and least at one."""
    (least, most), (low, high) = secrets, lifts
    nearest = np.clip(1.0, low, np.where(np.isinf(high), np.maximum(low, 1.0), high))
    floor = float(least @ _excess(nearest) @ outputs[0])
    told_of = ~np.isinf(high)
    extreme = np.maximum(_excess(low), _excess(np.where(told_of, high, 1.0)))
    open_ = bool((np.outer(most, outputs[1])[~told_of] > 0).any())
    ceiling = math.inf if open_ else float(most @ extreme @ outputs[1])
    value = told.figures.secret_information
    # Rounded to two digits.
    if not floor * 0.94 - ROUNDING <= value <= ceiling * 1.06 + ROUNDING:
        yield "secret_information is not that of the lifts"


def _excess(lift: Floats) -> Floats:
    return np.where(lift > 0, lift * np.log(np.where(lift > 0, lift, 1.0)) - lift + 1.0, 1.0)
