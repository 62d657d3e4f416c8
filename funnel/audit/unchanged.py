"""An invariant release: the distribution of its outputs, and what is stated of records that stay unchanged.

What is stated of shares is held to limits of them: of public shares as wide as their rounding, of counts without width.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from funnel.audit.arithmetic import (
    WHOLE,
    Floats,
    Interval,
    ShareLimits,
    guarantee_of,
    mean_between,
    prior_limits,
    share_step,
)
from funnel.audit.check import Found, Unchecked, check
from funnel.audit.evidence import counted_of
from funnel.audit.protected import TOO_FAR_OFF, is_usual
from funnel.audit.told_secrets import observers_budget
from funnel.recount.balance import TOLERANCE, alphabet_complaints, balance_complaints, of_rounding
from funnel.recount.donors import PlainDonors, whole_complaints
from funnel.recount.plain_distributions import NOISE, believed, up_to_digits
from funnel.recount.published import count_published
from funnel.recount.published_classes import moves_of, published_by_class
from funnel.recount.source import Recount
from funnel.recount.unchanged import (
    PlainStays,
    PlainUnchanged,
    Rule,
    ceiling_mismatch,
    observer_complaints,
)
from funnel.release.protocol_document import ProtocolDocument

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext
    from funnel.release.report_parts import Unchanged

Json = Mapping[str, Any]
Symbol = tuple[str, ...]
Placed = Sequence[tuple[int, Interval]]
"""Shares of some values, by their places."""

_RARE = 0.001
# As documented: at most so many values of the secret are listed, the most common ones.
_LISTED = 30
_SEPARATOR = " · "
# A share that sums of floats alone can make of nothing.
_NOTHING = 1e-11


@dataclass(frozen=True, eq=False)
class UnchangedShares:
    """An invariant protocol, and limits of the share of every value that it reads.

    Attributes
    ----------
    plain : PlainStays
    rows : int
        Records that shares are of.
    columns : tuple of str
        That are published.
    limits : sequence of Interval, length a
        In the order of the protocol: before they were rounded, or of counts.
    secrets : mapping of str to Placed, or None
        By secret, the shares of the records with it; None where nobody publishes how common secrets are.
    width : int
        How many columns of the secret published values begin with; 0 where it is not published.
    """

    plain: PlainStays
    rows: int
    columns: tuple[str, ...]
    limits: Sequence[Interval]
    secrets: Mapping[str, Placed] | None
    width: int

    @classmethod
    def rounded(cls, document: ProtocolDocument, rows: int) -> Self:
        """As far as public shares show; the prior is of what the protocol reads."""
        width, limits = len(document.guarantee.secret), prior_limits(document, rows)
        secrets: dict[str, list[tuple[int, Interval]]] = {}
        for place, (symbol, limit) in enumerate(zip(document.prior.symbols, limits, strict=True)):
            secrets.setdefault(_SEPARATOR.join(symbol[:width]), []).append((place, limit))
        plain, columns = PlainStays(document.content()), document.prior.columns
        if columns[:width] != document.guarantee.secret:
            return cls(plain, rows, columns, limits, None, 0)
        return cls(plain, rows, columns, limits, secrets, width)

    @classmethod
    def counted(cls, exact: PlainUnchanged) -> Self:
        """Of counts, in which there is every value that has one."""
        place, counted = {symbol: x for x, symbol in enumerate(exact.symbols)}, exact.counted
        secrets: dict[str, list[tuple[int, Interval]]] = {_SEPARATOR.join(s): [] for s in counted.secret}
        # What is believed of the secret can be more evenly spread over what is read than the records are.
        for (s, x), n in believed(counted).items():
            if n:
                share = float(n / counted.rows)
                secrets[_SEPARATOR.join(s)].append((place[x], Interval(share, share)))
        shares = [float(exact.records.get(symbol, 0) / counted.rows) for symbol in exact.symbols]
        limits = [Interval(share, share) for share in shares]
        width = len(counted.secret_columns) if exact.publishes_secret else 0
        return cls(exact, counted.rows, counted.published_columns, limits, secrets, width)

    @property
    def stays(self) -> Floats:
        """Probability that a value stays, shape (a,)."""
        return np.array([self.plain.stays(x) / self.plain.whole for x in self.plain.symbols])

    def keeps(self, places: slice) -> Floats:
        """Probability that some columns of a value stay, shape (a,)."""
        return np.array([self.plain.keeps(x, places) / self.plain.whole for x in self.plain.symbols])

    def mean(self, values: Floats) -> Interval:
        """What the mean of numbers (a,) over all records may be."""
        return ShareLimits.of(self.limits).mean(enumerate(values.tolist()))

    def mean_of(self, some: Placed, values: Floats) -> Interval:
        """What the mean of numbers (a,) over some of the records may be."""
        of_some = values[[place for place, _ in some]] if some else np.zeros(0)
        return mean_between(np.array([one.low for _, one in some]), np.array([one.high for _, one in some]), of_some)

    @property
    def exact(self) -> Floats:
        """1 of values that always stay, and that nothing else that occurs becomes; shape (a,)."""
        symbols, whole = self.plain.symbols, self.plain.whole
        entered = self.plain.entered([x for x, one in zip(symbols, self.limits, strict=True) if one.high > 0])
        return np.array([float(x not in entered and self.plain.stays(x) == whole) for x in symbols])

    @property
    def error(self) -> Interval:
        """The largest standard error of a counted share."""
        spread: dict[Symbol, list[tuple[int, float]]] = {y: [] for y in self.plain.symbols}
        for place, x in enumerate(self.plain.symbols):
            for y, weight in self.plain.rows[x].items():
                kept = weight / self.plain.whole
                spread[y].append((place, kept * (1 - kept)))
        shares = ShareLimits.of(self.limits)
        limits = [shares.mean(row) for row in spread.values()]
        low, high = max(limit.low for limit in limits), max(limit.high for limit in limits)
        return Interval(math.sqrt(max(0.0, low) / self.rows), math.sqrt(high / self.rows))

    @property
    def any_error(self) -> Interval:
        """What no standard error of a counted share exceeds: each record is in it by its own value, or by another's."""
        limit = self.mean(np.array([one * (1 - one) if one > 0.5 else 0.25 for one in self.stays.tolist()]))
        return Interval(math.sqrt(max(0.0, limit.low) / self.rows), math.sqrt(limit.high / self.rows))


def unchanged_complaints(
    stated: Json, shares: UnchangedShares, rule: Rule, published: Mapping[Symbol, int]
) -> Iterator[str]:
    """What the block *unchanged* of a report states that cannot follow.

    What takes the distribution of a secret that is not known is left to those who know it.

    Parameters
    ----------
    stated : JSON object
        That part of ``report.json``.
    shares : UnchangedShares
    rule : Rule
    published : mapping of record to int
        The released records, counted.
    """
    yield from _share("share", stated["share"], shares.mean(shares.stays), rule.step)
    digits = partial(up_to_digits, digits=2)
    for name, limit in (("error", shares.error), ("any_error", None if rule.in_units else shares.any_error)):
        error = stated[name]
        if error is None or limit is None:
            if error is not limit:
                yield f"{name} is {error!r}, and it should be {'missing' if limit is None else 'there'}"
        elif error != digits(error) or not digits(limit.low * (1 - NOISE)) <= error <= digits(limit.high * (1 + NOISE)):
            yield f"{name} is not that of counted shares"
    listed = [one["column"] for one in stated["columns"]]
    if listed != list(shares.columns):
        yield f"columns are {listed!r} instead of {list(shares.columns)!r}"
    for j, one in enumerate(stated["columns"][: len(shares.columns)]):
        limit = shares.mean(shares.keeps(slice(j, j + 1)))
        yield from _share(f"share of {one['column']!r}", one["share"], limit, rule.step)
    if shares.secrets is not None:
        yield from _secrets(stated, shares, shares.secrets, rule)
    yield from _rare(stated, shares, rule)
    yield from _share("exact_records", stated["exact_records"], shares.mean(shares.exact), rule.step)
    # These are seen in the table alone.
    alone, true = shares.plain.alone(published)
    if stated["unique"] != alone:
        yield f"unique is {stated['unique']!r} instead of {alone!r}"
    likely = None if true is None else Interval(true, true)
    yield from _share("unique_unchanged", stated["unique_unchanged"], likely, rule.step)
    if isinstance(shares.plain, PlainUnchanged):
        yield from _observers(stated["observers"], shares.plain, rule)


def _share(name: str, stated: Any, limit: Interval | None, step: float) -> Iterator[str]:
    """That a share is a multiple of a step, next to what it may be; what is not nothing may be stated as one step."""
    if limit is None or stated is None:
        if limit is not stated:
            yield f"{name} is {stated!r}, and it should be {'missing' if limit is None else 'there'}"
        return
    least = limit.high > _NOTHING and limit.low < step and abs(stated - step) <= NOISE
    if not (least or limit.meets(stated, step / 2)) or abs(stated / step - round(stated / step)) > 1e-6:
        yield f"{name} is {stated!r}, which cannot follow from the protocol and the shares or counts"


def _secrets(stated: Json, shares: UnchangedShares, secrets: Mapping[str, Placed], rule: Rule) -> Iterator[str]:
    if stated["secrets_total"] != len(secrets) or len(stated["secrets"]) != min(_LISTED, len(secrets)):
        yield f"{len(stated['secrets'])} of {stated['secrets_total']} values of the secret are listed"
    # The most common first, by the shares that are public.
    listed = [secrets.get(one["label"], ()) for one in stated["secrets"]]
    common = [(sum(share.low for _, share in some), sum(share.high for _, share in some)) for some in listed]
    if rule.ordered and any(high < low - rule.step for (_, high), (low, _) in pairwise(common)):
        yield "values of the secret are not listed in the order of their shares"
    stays, same = shares.stays, shares.keeps(slice(shares.width))
    for one in stated["secrets"]:
        name, some = repr(one["label"]), secrets.get(one["label"])
        if some is None:
            yield f"the secret {name} does not occur"
            continue
        prior = Interval(sum(share.low for _, share in some), min(1.0, sum(share.high for _, share in some)))
        again = shares.mean_of(some, same) if shares.width else None
        yield from _share(f"prior of {name}", one["prior"], prior, rule.step)
        yield from _share(f"share of {name}", one["share"], shares.mean_of(some, stays), rule.step)
        yield from _share(f"stays of {name}", one["stays"], again, rule.step)
        # The limit follows from the prior before it was rounded.
        half = rule.step / 2 if prior.low < prior.high else 0.0
        ends = (max(0.0, one["prior"] - half), one["prior"] + half) if half else (prior.low, prior.high)
        yield from ceiling_mismatch(name, one["at_most"], ends, rule, shares.width > 0)


def _rare(stated: Json, shares: UnchangedShares, rule: Rule) -> Iterator[str]:
    occurring = [(place, one) for place, one in enumerate(shares.limits) if one.high > 0]
    surely = [(place, one) for place, one in occurring if one.high < _RARE]
    possibly = [(place, one) for place, one in occurring if one.low < _RARE]
    limit = Interval(sum(one.low for _, one in surely), min(1.0, sum(one.high for _, one in possibly)))
    yield from _share("rare_records", stated["rare_records"], limit, rule.step)
    kept = shares.stays[[place for place, _ in possibly]] if possibly else np.zeros(0)
    if stated["rare_unchanged"] is None or not possibly:
        if surely or stated["rare_unchanged"] is not None:
            yield "rare_unchanged is missing, or is stated and no value is rare"
        return
    limit = shares.mean_of(surely, shares.stays) if surely == possibly else Interval(kept.min(), kept.max())
    yield from _share("rare_unchanged", stated["rare_unchanged"], limit, rule.step)


def _observers(stated: Sequence[Json], exact: PlainUnchanged, rule: Rule) -> Iterator[str]:
    found = list(exact.observers(rule.budget))
    sizes = [one["known"] for one in stated]
    if sizes != [size for size, _, _ in found]:
        yield f"observers know {sizes!r} columns instead of {[size for size, _, _ in found]!r}"
    for one, (size, level, outside) in zip(stated, found, strict=False):
        name = f"observers of {size}"
        if one["columns"] != len(exact.others):
            yield f"{name} have {one['columns']!r} columns to know instead of {len(exact.others)}"
        yield from observer_complaints(name, one, level, outside, rule)


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
    if (history := known.report.figures.history) is not None:
        shares = UnchangedShares.rounded(known.document, known.public_rows)
        most = shares.mean(shares.stays).high + (known.document.rounded or 0.0)
        yield from followed_complaints(history.own, stated, most, float(share_step(known.public_rows)))
        return "the share of own records, of donors who are followed, is no larger than that of classes that stay"
    whole = None if stated.whole is None else stated.whole.model_dump(mode="json")
    found = PlainDonors(names[:-1], published, moves_of(known.released, width), columns.texts)
    yield from whole_complaints(whole, found, stated.share, float(share_step(known.public_rows)))
    return "shares of whole records unchanged, by column, follow from the records and the protocol"


def followed_complaints(own: float | None, stated: Unchanged, most: float, step: float) -> Iterator[str]:
    """What is wrong with what is stated of whole records of the same people: how many are their own, and no more.

    Parameters
    ----------
    own : float or None
    stated : Unchanged
    most : float
        The largest share of classes that stay, before shares and weights were rounded.
    step : float
        Of public shares.
    """
    if own is None:
        yield "report.json does not state how many records are people's own"
    elif not 0 <= own <= most + step / 2 + NOISE or abs(own / step - round(own / step)) > 1e-6:
        yield f"the share of own records is {own!r}, which is no public share, or more than that of classes that stay"
    if stated.whole is not None or stated.known:
        yield "more is stated of whole records than donors who are followed let be told"
    if stated.followed is None and own is not None and own < 1:
        yield "report.json does not state how far counts are off"


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
    limits, of_units = guarantee.lift_limits, bool(known.report.unit)
    ceiling = None if limits is None else limits[1]
    return Rule(float(share_step(rows)), observers_budget(known), ceiling, in_units=of_units)


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
    counts = read.believed.sum(axis=0).tolist()
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
