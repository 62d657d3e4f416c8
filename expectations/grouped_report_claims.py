"""What the public report of a grouped release tells, held against what follows from recount, weights and spec."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

from funnel.audit.grouped.estimates import Estimates, estimate_complaints
from funnel.audit.grouped.explained import (
    NumbersAgain,
    explained_complaints,
    purpose_complaints,
    worth_complaints,
    worth_limits,
)
from funnel.audit.grouped.figures import column_complaints, is_told, level_complaints, step_of
from funnel.audit.grouped.law import PublishedLaw
from funnel.pipeline.expectations.claims import NOISE, Claim, all_of, claim, same
from funnel.pipeline.expectations.disclosure_claims import asked_rules
from funnel.pipeline.expectations.grouped_claims import of
from funnel.pipeline.expectations.protocol_claims import guarantee_claim
from funnel.pipeline.expectations.report_claims import inactive_claim
from funnel.pipeline.expectations.said import Said
from funnel.pipeline.expectations.weighted_claims import weighted_claims
from funnel.recount.grouped_text import members_of

CLAIMS = (
    "canonical text",
    "page",
    "nothing active",
    "texts",
    "bound",
    "level",
    "groups",
    "columns",
    "figures",
    "beliefs",
    "examples",
    "estimates",
    "purpose",
    "explained",
    "worth",
    "weighted",
    "checks",
)
# As documented of channels: values that fewer records have are not told of by themselves.
_FEWEST = 500
_SEPARATOR = " · "
# Figures that are not shares have so many digits.
_DIGITS, _LIMITS = 2, 3


def grouped_report_claims(
    numbers: Mapping[str, Any],
    canonical: bool,
    page: str,
    path: Path,
    version: str,
    created: str,
    law: PublishedLaw,
    said: Said,
    checks: Sequence[tuple[str, str]],
    estimates: Estimates,
    weights: Mapping[str, Fraction] = MappingProxyType({}),
    meant: NumbersAgain = MappingProxyType({}),
) -> list[Claim]:
    """What holds of the figures of a report, and of the page that is made of them.

    Parameters
    ----------
    numbers : mapping
        Content of ``report.json``.
    canonical : bool
        Whether that is, to the byte, what its content is written as.
    page : str
        ``report.html``.
    path : Path
        Of ``report.json``, of which the page is made again.
    version, created : str
        As in ``datapackage.json``.
    law : PublishedLaw
    said : Said
    checks : sequence of (name, description)
        Of all expectations.
    estimates : Estimates
        What the effective channels tell, which were judged.
    weights : mapping of class to Fraction
        What the classes of survey weights stand for.
    meant : mapping of column to mapping of value to Fraction or None
        By variance, what the values of columns of numbers stand for.
    """
    settings, figures, text = said.settings, numbers["figures"], law.followed.text
    budget = float(said.promise.budget)
    texts = {
        "name": settings["name"],
        "title": settings["title"],
        "description": settings.get("description", ""),
        "version": version,
        "created": created,
        "shuffled": said.shuffled,
        "people": said.people,
        "secret": {"columns": list(said.secret), "values": len(law.followed.secrets)},
        "digest": text.digest,
        "choice": text.content["choice"],
        "made_for": said.expected_people,
        "least_people": math.ceil(said.expected_people / 10),
        "rules": _rules(said),
    }
    told = [(one["name"], one["description"]) for one in numbers["judged"]]
    return [
        claim("canonical text", canonical, "holds more than its content"),
        claim("page", page == _rendered(path), "is not what is made of the figures"),
        inactive_claim(page),
        all_of("texts", (same(key, numbers[key], value) for key, value in texts.items())),
        guarantee_claim("bound", numbers["guarantee"], said),
        of("level", level_complaints("the level", figures["level"], law.followed.outputs, budget)),
        of("groups", _groups(numbers["groups"], law)),
        of("columns", _columns(numbers["columns"], law)),
        of("figures", _figures(numbers, law, said)),
        of("beliefs", _beliefs(numbers, law, said)),
        of("examples", _examples(numbers["texts"], law)),
        of("estimates", estimate_complaints(numbers["estimated"], estimates)),
        of("purpose", purpose_complaints(numbers, said.utility)),
        of("explained", explained_complaints(numbers["explained"], law, meant, rounded=True)),
        of("worth", _worth(numbers["worth"], estimates)),
        all_of("weighted", _weighted(numbers, law, said, weights)),
        claim("checks", told == list(checks), "are not those that the release is judged by"),
    ]


def _rules(said: Said) -> dict[str, Any] | None:
    """What has to be said of the rules that channels keep; None where a breach is only told of."""
    rules = asked_rules(said)
    if rules is None:
        return None
    return {
        "minimum_cell": rules.least,
        "dominance": float(rules.share),
        "unique_share": float(rules.alone),
    }


def _worth(stated: float | None, estimates: Estimates) -> Iterator[str]:
    if stated is not None:
        yield from worth_complaints(stated, worth_limits(estimates), step_of(estimates.records))


def _rendered(path: Path) -> str:
    from funnel.release.grouped_report import GroupedReport
    from funnel.report.grouped import render_grouped

    return str(render_grouped(GroupedReport.read(path)))


def _weighted(
    numbers: Mapping[str, Any], law: PublishedLaw, said: Said, weights: Mapping[str, Fraction]
) -> Iterator[Claim]:
    weight: str | None = said.settings.get("weight")
    columns: dict[str, dict[tuple[str, str], int]] = {}
    for column in law.columns:
        if weight is not None and column != weight:
            both = sorted((column, weight), key=law.columns.index)
            at, pairs = both.index(column), law.effective[tuple(both)]
            found = ((pair[at], pair[1 - at]) for pair in pairs.inputs)
            columns[column] = dict(zip(found, map(int, pairs.people), strict=True))
    fewest = max(_FEWEST, said.expected_people)
    return weighted_claims(numbers.get("weighted"), weight, weights, columns, fewest)


def _groups(told: Sequence[Mapping[str, Any]], law: PublishedLaw) -> Iterator[str]:
    stages, step = law.followed.text.stages, step_of(int(law.people.sum()))
    if [tuple(one["columns"]) for one in told] != [stage.columns for stage in stages]:
        yield "they are not those of the protocol"
        return
    for one, stage, shared in zip(told, stages, law.followed.shared, strict=True):
        named = ", ".join(stage.columns)
        channels = sum(len(channel.labels) > 1 for channel in stage.channels)
        if (one["combinations"], one["channels"]) != (len(stage.symbols), channels):
            yield f"combinations and ways to draw {named} are not those of the protocol"
        if not is_told(one["kept"], law.of(stage.columns).kept, step):
            yield f"what is kept of {named} is told as {one['kept']!r}, which it is not"
        if not is_told(one["shared"], shared, step):
            yield f"of how many people {named} shares weights is told as {one['shared']!r}, which it is not"


def _columns(told: Sequence[Mapping[str, Any]], law: PublishedLaw) -> Iterator[str]:
    text = law.followed.text
    if tuple(one["column"] for one in told) != law.columns:
        yield "they are not the published ones"
        return
    yield from column_complaints(told, law, step_of(int(law.people.sum())))
    for one, (column, texts) in zip(told, text.texts.items(), strict=True):
        stage = text.stages[one["group"] - 1]
        values = len(stage.values[stage.columns.index(column)])
        if (one["values"], one["texts"]) != (values, len(texts)):
            yield f"numbers of values and texts of {column} are not those of the protocol"


def _figures(numbers: Mapping[str, Any], law: PublishedLaw, said: Said) -> Iterator[str]:
    figures, rows = numbers["figures"], int(law.people.sum())
    step = step_of(rows)
    share = min(1.0, law.information / law.entropy) if law.entropy > 0 else 0.0
    for name, exact in (("utility", law.information), ("entropy", law.entropy), ("share", share)):
        if not is_told(figures[name], exact, step):
            yield f"{name} is told as {figures[name]!r}, which is not what follows"
    if not figures["holds"] or (figures["rows"], numbers["source"]["records"]) != (rows, rows):
        yield "records are not as many as the source has, or the bound is not said to hold"
    factor = figures["level_factor"]
    if not math.exp(figures["level"]) * (1 - NOISE) <= factor <= math.exp(figures["level"]) * 1.01:
        yield f"the factor of the level is told as {factor!r}, which it is not"
    if not _is_error(numbers["error"], 0.5, said.expected_people):
        yield f"the error of a share of one half is told as {numbers['error']!r}, which it is not"
    protected = {"protection": said.frequencies.protection}
    if {key: value for key, value in numbers["frequencies"].items() if value} != protected:
        yield "the frequencies are not said to be protected as the spec asks"


def _is_error(stated: object, share: float, people: int) -> bool:
    exact = math.sqrt(share * (1 - share) / people)
    return isinstance(stated, (int, float)) and abs(stated - exact) <= exact * 0.051 + NOISE


def _beliefs(numbers: Mapping[str, Any], law: PublishedLaw, said: Said) -> Iterator[str]:
    """Shares of the secret, and limits: those that the bound sets, which no possible record goes beyond."""
    followed, told = law.followed, numbers["beliefs"]
    n, step = sum(followed.sizes), step_of(int(law.people.sum()))
    place = {_SEPARATOR.join(secret): s for s, secret in enumerate(followed.secrets)}
    if sorted(one["label"] for one in told) != sorted(place):
        yield "they are not about the values of the secret that occur"
        return
    lowest, highest = _reached(law)
    for one in told:
        s = place[one["label"]]
        share = followed.sizes[s] / n
        if not is_told(one["prior"], share, step):
            yield f"the share of {one['label']!r} is told as {one['prior']!r}, which it is not"
        if not _is_error(one["error"], one["prior"], said.expected_people):
            yield f"the error of the share of {one['label']!r} is told as {one['error']!r}, which it is not"
        least, most = one["least"], one["most"]
        if (least is None) != (most is None):
            yield f"only one limit of {one['label']!r} is told"
        elif least is not None and not (least * 0.99 - NOISE <= lowest[s] and highest[s] <= most * 1.01 + NOISE):
            yield f"a record goes beyond what is allowed of {one['label']!r}"
        if said.promise.kind == "lip" and least is not None:
            factor = math.exp(said.promise.budget)
            # A share is told to half a step; what is lifted to one step may be a single record. The bound limits what
            # all other values have together as well.
            low = min(1 / n, one["prior"]) if one["prior"] <= step else one["prior"] - step / 2
            high = min(1.0, one["prior"] + step / 2)
            bottom = max(0.0, low / factor, 1 - (1 - low) * factor)
            top = min(high * factor, 1 - (1 - high) / factor)
            if abs(least - bottom) > 0.01 * bottom + NOISE or abs(most - top) > 0.01 * top + NOISE:
                yield f"limits of {one['label']!r} are not those that the bound sets"


def _reached(law: PublishedLaw) -> tuple[list[float], list[float]]:
    """Least and largest P(s | record) over all records that are possible."""
    secrets = len(law.followed.secrets)
    lowest, highest = [1.0] * secrets, [0.0] * secrets
    for masses in law.followed.masses.values():
        whole = sum(masses)
        for s, mass in enumerate(masses):
            share = mass / whole
            lowest[s], highest[s] = min(lowest[s], share), max(highest[s], share)
    return lowest, highest


def _examples(told: Sequence[Mapping[str, Any]], law: PublishedLaw) -> Iterator[str]:
    """Examples of texts: each is one of its column, and names the values that it stands for."""
    text = law.followed.text
    kinds = [one["kind"] for one in told]
    if len(set(kinds)) != len(kinds) or not kinds:
        yield "there is none, or two of a kind"
    for one in told:
        stage = next((stage for stage in text.stages if one["column"] in stage.columns), None)
        if stage is None or one["text"] not in text.texts[one["column"]]:
            yield f"{one['text']!r} is no text of a published column"
            continue
        values = stage.values[stage.columns.index(one["column"])]
        members = members_of(one["text"], values)
        kind = "a set"
        if members == set(values) and one["text"].startswith("any"):
            kind = "anything"
        elif len(members) == 1:
            kind = "a value"
        elif one["text"].startswith("any but "):
            kind = "all but some"
        if set(one["values"]) != members or len(one["values"]) != len(members) or one["kind"] != kind:
            yield f"{one['text']!r} is said to stand for other values than it does"
