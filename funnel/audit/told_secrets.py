"""What a report says of secrets where nobody publishes counts: figures that fit one another and the public shares.

The exact frequencies of the secret and its lifts are known to the publisher alone. Each is told rounded, and what is
told of them is bounded by the others: shares add up to one, lifts have a mean of one over outputs and over secrets,
and the rest of a report follows from them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain, combinations
from typing import TYPE_CHECKING

from funnel.audit.arithmetic import (
    Interval,
    guarantee_of,
    prior_limits,
    share_step,
)
from funnel.audit.check import Found, check
from funnel.audit.package import rounded_radius
from funnel.audit.told_lifts import PLACES, ROUNDING, lift_complaints
from funnel.guarantees import parse_guarantee
from funnel.guarantees.several import parts_of
from funnel.recount.plain_distributions import NOISE, is_level_of_ratio, least_level, public_level, up_to_digits
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.public_report import PublicReport
from funnel.wording import listed

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext

# As documented: so many values of the secret are listed, of beliefs and of what stays unchanged.
_LISTED, _LISTED_UNCHANGED = 50, 30
# Fewer records than these expected of a cell make the confidence set doubtful.
_FEW = 5
# More than rounding up to two digits adds to a number.
_TWO_DIGITS = 1.11


@check("secrets", "figures exact counted", contained=True)
def check_secrets(known: AuditContext) -> Found:
    """Frequencies of secrets, lifts, ratios and the confidence set fit one another and the public shares."""
    told, document, rows = known.report, known.document, known.public_rows
    step = float(share_step(rows))
    said = known.folder.numbers.name
    complaints = (
        *_prior_complaints(told, document, rows, step),
        *_unchanged_complaints(told, observers_budget(known), step),
        *_known_complaints(told, known.columns.classes is not None, guarantee_of(known.document).budget, step),
        *_off_complaints(told, known.columns.texts),
        *_followed_complaints(told, known.columns.texts),
        *(lift_complaints(told, document, rows, step) if _is_complete(told) else ()),
        *_many_complaints(told, step),
        *_output_complaints(told, document),
        *_confidence_complaints(told, document, rows),
        *_level_complaints(told, document),
    )
    yield from (f"{said}: {one}" for one in complaints)
    return "what is told of secrets, lifts and the confidence set fits together"


def _is_complete(told: PublicReport) -> bool:
    return told.beliefs.total == len(told.beliefs.rows)


def _prior_complaints(told: PublicReport, document: ProtocolDocument, rows: int, step: float) -> Iterator[str]:
    """Shares of secrets are steps that add up to one; those of a published secret are the shares of its values."""
    beliefs, exact = told.beliefs.rows, share_step(rows)
    if told.secret.values != told.beliefs.total or len(beliefs) != min(_LISTED, told.beliefs.total):
        yield f"{len(beliefs)} of {told.beliefs.total} values of the secret are listed"
    shares = [Fraction(repr(one.prior)) for one in beliefs]
    if any(share % exact or not 0 <= share <= 1 for share in shares):
        yield f"the share of a secret is no multiple of {step:g}"
    lifted = sum(share == exact for share in shares)
    if _is_complete(told) and abs(sum(shares, Fraction()) - 1) > exact / 2 * len(shares) + exact * lifted:
        yield f"shares of the secret add up to {float(sum(shares, Fraction())):.6g}"
    columns = document.prior.columns
    if not set(told.secret.columns) <= set(columns):
        return
    places, limits = [columns.index(column) for column in told.secret.columns], prior_limits(document, rows)
    of: dict[str, list[Interval]] = {}
    for symbol, limit in zip(document.prior.symbols, limits, strict=True):
        of.setdefault(" · ".join(symbol[place] for place in places), []).append(limit)
    for one in beliefs:
        found = of.get(one.label, [])
        limit = Interval(math.fsum(part.low for part in found), math.fsum(part.high for part in found))
        if not limit.meets(one.prior, step / 2) and not (one.prior == step and limit.high > 0):
            yield f"the share of the secret {one.label!r} is not that of the published values"


def observers_budget(known: AuditContext) -> float:
    """Of observers of what the protocol reads; between parts of classes that of those who know no column, or all."""
    guarantee = guarantee_of(known.document)
    return min(part.budget for part in parts_of(guarantee)) if known.columns.at_once else guarantee.budget


def _unchanged_complaints(told: PublicReport, budget: float, step: float) -> Iterator[str]:
    """Records unchanged by secret are of the secrets that beliefs are about, and their mean is that of all."""
    stated = told.unchanged
    if stated is None:
        return
    total, beliefs = told.beliefs.total, {one.label: one.prior for one in told.beliefs.rows}
    if stated.secrets_total != total or len(stated.secrets) != min(_LISTED_UNCHANGED, total):
        yield f"{len(stated.secrets)} of {stated.secrets_total} values of the secret stay unchanged or do not"
    priors = [one.prior for one in stated.secrets]
    if priors != sorted(priors, reverse=True):
        yield "secrets that stay unchanged are not in the order of their shares"
    published = set(told.secret.columns) <= set(told.channel.reads)
    for one in stated.secrets:
        if _is_complete(told) and beliefs.get(one.label) != one.prior:
            yield f"the secret {one.label!r} that stays unchanged has another share than in beliefs"
        if not published and (one.stays is not None or one.at_most is not None):
            yield f"how often the secret {one.label!r} stays is told, and it is not published"
        if abs(one.share / step - round(one.share / step)) > 1e-6:
            yield f"the share of {one.label!r} unchanged is no multiple of {step:g}"
    if len(stated.secrets) == total:
        mean = math.fsum(one.prior * one.share for one in stated.secrets)
        # Of each: its share and what stays of it are rounded, and the least share is told as a step.
        slack = math.fsum(step / 2 * (one.prior + one.share + step) for one in stated.secrets) + step / 2
        slack += math.fsum(step for one in stated.secrets if one.prior <= step * 1.5)
        if abs(mean - stated.share) > slack + ROUNDING:
            yield "what stays unchanged by secret has another mean than the share of all records"
    others = [column for column in told.channel.reads if column not in told.secret.columns]
    sizes = sorted({size for size in (0, 1, 2, len(others)) if size <= len(others)})
    if [one.known for one in stated.observers] != sizes or any(one.columns != len(others) for one in stated.observers):
        yield "observers know other numbers of columns than there are"
    for observer in stated.observers:
        level, outside = _nats(observer.level), observer.outside
        if level is None or level < budget or (outside > 0) is not (level > budget):
            yield f"observers of {observer.known} columns conclude another amount than people are outside"
        if abs(outside / step - round(outside / step)) > 1e-6:
            yield f"the share of people outside for observers of {observer.known} columns is no multiple of {step:g}"


def _known_complaints(told: PublicReport, by_class: bool, budget: float, step: float) -> Iterator[str]:
    """Observers of columns are there once for all other columns, and for as many of these as observers know at once.

    Those with most people outside come first. Of donors who are followed none are told.
    """
    if told.unchanged is None:
        return
    known = told.unchanged.known
    named = sorted(tuple(sorted(one.columns)) for one in known)
    others = set(told.published.columns[:-1]) - set(told.secret.columns)
    sizes = range(1, max(1, told.at_once) + 1) if by_class and told.figures.history is None else ()
    if named != sorted(chain(*(combinations(sorted(others), size) for size in sizes))):
        yield "observers of columns are not of each published column, and of each set that observers know, once"
    if [one.outside for one in known] != sorted((one.outside for one in known), reverse=True):
        yield "observers of columns are not in the order of how many people are outside"
    for one in known:
        level = _nats(one.level)
        if (
            level is None
            or level not in {budget, public_level(level, budget)}
            or (one.outside > 0) is not (level > budget)
        ):
            yield f"an observer of {listed(one.columns)} concludes another amount than people are outside"
        if Fraction(repr(one.outside)) % Fraction(repr(step)):
            yield f"the share of people outside for observers of {listed(one.columns)} is no multiple of {step:g}"


def _followed_complaints(told: PublicReport, texts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The value whose count is farthest off is one that there is, and as far off as goes with the mean square."""
    if told.unchanged is None or (off := told.unchanged.followed) is None:
        return
    if told.figures.history is None or told.figures.history.own is None:
        yield "counts are off by donors who are followed, where there are none"
    if off.column in told.secret.columns or off.value not in texts.get(off.column, ()):
        yield "a count is off of a value that there is not"
    values = sum(map(len, texts.values()))
    if not 0 <= off.factor <= off.errors <= off.factor * math.sqrt(values) * _TWO_DIGITS:
        yield "the count that is farthest off does not go with the others"
    if any(number != up_to_digits(number, 2) for number in (off.factor, off.errors)):
        yield "how far counts are off has more than two digits"


def _off_complaints(told: PublicReport, texts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The cell that is farthest off is of a secret, and of another column and a value that it has."""
    if told.unchanged is None or (off := told.unchanged.off) is None:
        return
    of_secret = off.column in told.secret.columns or off.value not in texts.get(off.column, ())
    if of_secret or (_is_complete(told) and off.secret not in {one.label for one in told.beliefs.rows}):
        yield "a table is off in a cell that there is not"
    if off.records != up_to_digits(off.records, 2):
        yield "how many records a table is off by has more than two digits"


def _many_complaints(told: PublicReport, step: float) -> Iterator[str]:
    """Of many lifts the strongest alone are told: what follows from all has to fit these."""
    lifts, beliefs = told.lifts, told.beliefs.rows
    labels = {belief.label for belief in beliefs}
    if lifts.table is not None or told.beliefs.total > _LISTED:
        return
    if not len(lifts.strongest) <= lifts.total <= told.beliefs.total * told.channel.outputs:
        yield "lifts.total is not a number of lifts that there are"
    if parse_guarantee(told.guarantee).ratio_limit is None and {one.label for one in lifts.spreads} != labels:
        yield "lifts.spreads are of other secrets than there are"
    for one in beliefs:
        within = one.lowest is None or one.highest is None or one.lowest - step <= one.prior <= one.highest + step
        if not within or (one.least is not None and (one.lowest or 0.0) < one.least - ROUNDING):
            yield f"beliefs in {one.label!r} do not have its share between them"


def _output_complaints(told: PublicReport, document: ProtocolDocument) -> Iterator[str]:
    """Outputs drawn by the secret are those of the protocol, with their shares to four places."""
    said = {" · ".join(entry.output): entry.probability for entry in document.posterior or ()}
    for one in told.outputs.rows if said else ():
        if one.label not in said or abs(said[one.label] - one.probability) > PLACES + ROUNDING:
            yield f"the output {one.label!r} has another share than in protocol.json"


def _confidence_complaints(told: PublicReport, document: ProtocolDocument, rows: int) -> Iterator[str]:
    """The confidence set follows from how many cells and records there are."""
    said = told.estimation
    kept = [place for place, column in enumerate(document.prior.columns) if column not in told.secret.columns]
    others: dict[tuple[str, ...], float] = {}
    for symbol, limit in zip(document.prior.symbols, prior_limits(document, rows), strict=True):
        other = tuple(symbol[place] for place in kept)
        others[other] = others.get(other, 0.0) + limit.high
    if said.cells != told.secret.values * len(others):
        yield "estimation.cells is not the number of secrets times that of the other published values"
    if said.records != rows:
        yield "estimation.records is not the number of records"
    if said.radius != rounded_radius(said.cells, rows, said.alpha):
        yield "estimation.radius is not that of so many cells and records"
    if not said.doubtful and _is_complete(told):
        step = float(share_step(rows))
        if rows * min(others.values()) * min(one.prior + step / 2 for one in told.beliefs.rows) < _FEW:
            yield "estimation is doubtful, with so few records expected of a cell"


def _level_complaints(told: PublicReport, document: ProtocolDocument) -> Iterator[str]:
    """Levels are upper bounds that are not below the budget; over more distributions they are not smaller."""
    figures, said, budget = told.figures, told.estimation, guarantee_of(document).budget
    level = _nats(figures.level)
    # Only a level over many distributions, and one that nothing bounds, are no logarithm of a ratio.
    if figures.level_factor is None and not figures.worst_of_many_distributions:
        yield "level_factor is missing"
    if figures.level_factor is not None and level is not None and math.isfinite(level):
        factors = {up_to_digits(math.exp(level) * (1 + hair), 3) for hair in (-NOISE, 0.0, NOISE)}
        if figures.level_factor not in factors:
            yield "level_factor is not e to the level"
    if figures.holds and math.isfinite(budget) and figures.rules_out:
        yield "a release that keeps a finite bound rules nothing out"
    if figures.outside is not None and figures.outside > figures.rows:
        yield "more records than there are have values that the protocol does not read"
    plain, robust, of_lifts = map(_nats, (said.plain_level, said.robust_level, said.robust_lift_level))
    if plain is None or figures.level == 0:
        return
    if plain < budget or (robust is not None and robust < plain) or (of_lifts is not None and of_lifts < budget):
        yield "a level is below the bound, which no level is told to be, or below that of fewer distributions"
    ratios = [_nats(row.ratio) for row in (() if told.lifts.table is None else told.lifts.table.rows)]
    known = [one for one in ratios if one is not None]
    limit = guarantee_of(document).ratio_limit
    if len(known) == len(ratios) > 0 and not is_level_of_ratio(plain, max(known), budget, limit):
        yield "plain_level is not that of the largest ratio"
    elif known and plain < least_level(max(known), budget, limit) - NOISE:
        yield "plain_level is below that of the largest ratio that is told"


def _nats(level: float | str | None) -> float | None:
    return math.inf if isinstance(level, str) else level
