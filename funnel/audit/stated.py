"""What a report may state at all, whatever the counts were; and what of it no public file beside it tells."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from fractions import Fraction
from itertools import product
from typing import Any

from funnel.audit.arithmetic import WHOLE, Interval
from funnel.errors import FunnelError
from funnel.guarantees import parse_guarantee
from funnel.release.layout import Version
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.public_report import Change, History, PublicReport

# No figure of a report has more significant digits, but for numbers that the publisher declares.
_DIGITS = 4
_RECORDS = re.compile(r"no|fewer than 10|about [1-9]\d{0,2}(,\d{3})*")
# As documented: who knows how common every change is, and who knows it besides among people who ever changed.
OBSERVERS = ("transitions", "mover-stayer")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")


def stated_complaints(told: PublicReport, budget: float, step: Fraction) -> Iterator[str]:
    """What no report states.

    Parameters
    ----------
    told : PublicReport
    budget : float
        Of the guarantee.
    step : Fraction
        Of public shares.
    """
    figures = {key: value for key, value in told.content().items() if key != "frequencies"}
    if long := next(_long(figures, (budget, told.estimation.alpha), ""), None):
        yield f"{long} has more than {_DIGITS} digits"
    if told.source.dropped is not None and not _RECORDS.fullmatch(told.source.dropped):
        yield "source.dropped is no number of records in words"
    if told.figures.history is not None:
        yield from _history_complaints(told.figures.history, budget, step)
        yield from _series_complaints(told, told.figures.history)
    if told.change is not None:
        yield from _change_complaints(told.change)
    versions = [Version.parse(one.version) for one in told.kept]
    numbers = [one for one in versions if one is not None]
    if len(numbers) < len(versions) or numbers != sorted(set(numbers)):
        yield "kept is of what is no version, or not in their order"
    if versions and str(versions[-1]) != told.version:
        yield "kept does not end with this version"


def guess_limits(document: ProtocolDocument, limits: list[Interval]) -> tuple[Interval, Interval]:
    """How many values a guess gets right, for any prior within limits: of who knows the prior, and the output too."""
    before = Interval(max(p.low for p in limits), max(p.high for p in limits))
    least, most = (
        sum(
            max((weight / WHOLE * getattr(limits[x], end) for x, weight in row), default=0.0)
            for row in document.entries
        )
        for end in ("low", "high")
    )
    return before, Interval(least, min(1.0, most))


def _long(value: Any, declared: Collection[float], place: str) -> Iterator[str]:
    """Places of floats with more digits than figures have."""
    if isinstance(value, float):
        if value not in declared and float(f"{value:.{_DIGITS}g}") != value:
            yield place
        return
    parts = value.items() if isinstance(value, dict) else enumerate(value, 1) if isinstance(value, list) else ()
    for key, part in parts:
        yield from _long(part, declared, f"{place}.{key}" if place else str(key))


def _history_complaints(history: History, budget: float, step: Fraction) -> Iterator[str]:
    """Levels are upper bounds, at least the budget; shares are whole steps, at least one."""
    observers = history.observers
    levels = [level for one in observers for level in (one.level, one.level_of_all) if not isinstance(level, str)]
    if any(level < budget for level in levels):
        yield "a level for an observer who keeps all versions is below the bound, which no level is told to be"
    if any(one.bounded and one.level != budget for one in observers):
        yield "a level of people who are not moved is above the bound that holds for them"
    shares = [Fraction(repr(one.outside_at_most)) for one in observers]
    if any(share % step or not share for share in shares):
        yield "a share of people outside the bound is no whole number of steps of public shares, or none"
    bounded = [share for one, share in zip(observers, shares, strict=True) if one.bounded]
    if Fraction(repr(history.outside_at_most)) != max(bounded, default=None):
        yield "the share of people outside the bound is not the largest of those that it is bounded for"
    # Observer after observer, each of all secrets in one order, first for who knows no published column; where earlier
    # secrets are not bounded, fewer are told.
    is_of_all = all(one.bounded for one in observers if one.secret_of is not None)
    told = [(*one.observer.partition(", knowing ")[::2], one.secret_of) for one in observers]
    secrets = list(dict.fromkeys(secret for *_, secret in told))
    each = list(product(dict.fromkeys(name for name, *_ in told), secrets))
    in_turn = list(dict.fromkeys((name, secret) for name, _, secret in told))
    kept_together = sorted(told, key=lambda one: in_turn.index((one[0], one[2]))) == told
    alone = {(name, secret) for name, known, secret in told if not known}
    is_whole = in_turn == each and kept_together and len(set(told)) == len(told) and alone == set(each)
    if (is_of_all and not is_whole) or secrets[:1] != [None]:
        yield "not every observer is there once for each secret, in their order"
    if Fraction(repr(history.share_alone)) % step:
        yield "the share that the version alone would keep is no whole number of steps of public shares"
    if any(one.secret_of is None and not one.bounded and one.observer == "transitions" for one in observers):
        yield "the secret of this version is not bounded for who knows all changes"


def _series_complaints(told: PublicReport, history: History) -> Iterator[str]:
    """Secrets are those of this version and of as many before it; what this one keeps is told twice."""
    secrets = {one.secret_of for one in history.observers}
    earlier = {secret for secret in secrets if secret is not None}
    # An observer may know some of the published columns besides.
    if any(one.observer.partition(", knowing ")[0] not in OBSERVERS for one in history.observers):
        yield "there is no such observer"
    if None not in secrets or (earlier and len(secrets) != history.versions):
        yield "there are not as many secrets as versions"
    # Who stayed is counted wherever changes are, but not with noise, and not where people have several rows.
    of_movers = any(one.observer.partition(", knowing ")[0] == OBSERVERS[1] for one in history.observers)
    # Nor of whole records.
    counted = told.frequencies.protection != "noise" and not told.unit and history.own is None
    if of_movers > counted or (history.versions == 1 and of_movers < counted):
        yield f"observers who know changes by whether people changed before are {'' if of_movers else 'not '}told of"
    own, numbers = Version.parse(told.version), {secret: Version.parse(secret.rpartition("/")[2]) for secret in earlier}
    later = {
        s for s, n in numbers.items() if n is not None and own is not None and s == f"{told.name}/{n}" and n >= own
    }
    if None in numbers.values() or later:
        yield "a secret is of no version before this one"
    if not told.kept or (told.kept[-1].share, told.kept[-1].share_alone) != (told.figures.share, history.share_alone):
        yield "kept tells another share of this version"


def _change_complaints(change: Change) -> Iterator[str]:
    """The version before was published at some time, under some guarantee; the clock may have been set back since."""
    if not _TIME.fullmatch(change.created):
        yield "change.created is no time in whole seconds"
    try:
        parse_guarantee(change.guarantee)
    except FunnelError:
        yield "change.guarantee is no guarantee"


UNTOLD = {
    "what the publisher writes in words, such as the title and what the source is": (
        "title description licence.* contact.* source.title source.references.*"
    ),
    "how the source was recoded": "recodings.# source.dropped grouping_kept",
    "how good the search for the protocol was": "compared.#.finished compared.#.certificate.*",
    "what judged the release": "judged.#.*",
    "who approved it": "approval.*",
    "how many versions came before, and what they spent": (
        "earlier_releases frequencies.spent frequencies.unprotected"
    ),
    "whose people these are": "people unit.# frequencies.covers_versions",
    "how much a version alone would keep": "figures.history.share_alone",
    "how many whole records are people's own, but that they are no more than those whose class stays": (
        "figures.history.own"
    ),
    "how many records are of people with a rare number of rows": ("figures.history.rare"),
    "what people who are in several versions add up to, and for which observers": (
        "figures.history.observers.#.outside_at_most figures.history.observers.#.bounded "
        "figures.history.observers.#.level_of_all"
    ),
    "the version before": (
        "change.created change.guarantee change.records change.rows change.new_data change.withdrawn.# "
        "kept.#.share kept.#.share_alone"
    ),
}
"""Words for statements of ``report.json``, and their places: ``#`` is any number of a list."""
# Of counts that nobody publishes; from noisy ones all of this is made again.
_WITHOUT_NOISE = {
    "how the draws compare with the exact counts": "figures.consistency.* figures.outside rarity.combinations",
    "how much records tell of the secret on average": "figures.secret_information",
    "what observers who know one column of a whole record conclude, and how far tables of the secret are off": (
        "unchanged.known.#.level unchanged.known.#.outside unchanged.off.*"
    ),
    "how far counts are off in records of donors who are followed": "unchanged.followed.*",
    "levels over the confidence set": (
        "estimation.robust_level estimation.robust_lift_level estimation.doubtful figures.worst_of_many_distributions"
    ),
}
# Where there are so many lifts that no table of them is told.
_OF_MANY = {
    "lifts that are not among the strongest": (
        "lifts.total lifts.spreads.#.values.# beliefs.rows.#.lowest beliefs.rows.#.highest example.lowest "
        "example.highest unchanged.observers.#.level unchanged.observers.#.outside"
    )
}
# Where exact shares of outputs are known to the publisher alone.
_OF_READERS = {
    "shares of outputs that a protocol draws by the secret, and errors of estimates": (
        "outputs.* heat.* accuracy.* estimated.* beliefs.rows.#.lowest beliefs.rows.#.highest example.lowest "
        "example.highest lifts.total lifts.spreads.*"
    )
}


def untold(report: Mapping[str, Any], off: float | None) -> tuple[str, ...]:
    """Words for all that a report states and nothing else public tells, each once.

    ``off`` is how far probabilities of the protocol are said to be off at most.
    """
    there = {place for place, value in leaves(report) if value is not None}
    excepted = _excepted(report).items()
    said = [words for words, patterns in excepted if any(_is_in(place, patterns) for place in there)]
    said.append("the numbers that its spec declares, such as the limits of disclosure control")
    noise = report["frequencies"]["protection"] == "noise"
    said.append("when it was published, but that it was not before 2025 and not in the future")
    rounded = "what shares and lifts, and figures that are made of these, were before they were rounded"
    said.append("what the noise was added to" if noise else rounded)
    if noise and (report["figures"]["history"] is not None or report["unit"]):
        said.append("noisy counts of changes, rows, means and departures, but for what they have in common")
    table = report["lifts"]["table"]
    if not noise and table is not None and any(cell["lift"] is None for row in table["rows"] for cell in row["cells"]):
        said.append("ratios of lifts that are not told")
    if off:
        said.append("how far the probabilities of the protocol are off")
    return tuple(dict.fromkeys(said))


def untold_places(report: Mapping[str, Any]) -> set[str]:
    """The places of all these statements."""
    return {place for place, _ in leaves(report) for patterns in _excepted(report).values() if _is_in(place, patterns)}


def _excepted(report: Mapping[str, Any]) -> dict[str, str]:
    if report["frequencies"]["protection"] == "noise":
        return UNTOLD
    many = _OF_MANY if report["lifts"]["table"] is None else {}
    return {**UNTOLD, **_WITHOUT_NOISE, **many, **(_OF_READERS if report["mechanism"]["reads_secret"] else {})}


def _is_in(place: str, patterns: str) -> bool:
    return any(fnmatchcase(place, pattern) for pattern in patterns.split())


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every text, number and truth value of a document with its place."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from leaves(part, f"{place}.{key}" if place else str(key))
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from leaves(part, f"{place}.#")
    else:
        yield place, value
