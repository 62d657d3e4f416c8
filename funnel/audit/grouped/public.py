"""What of a grouped release its public files alone tell: its promise, its figures, and how often texts are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import betainc

from funnel.audit.check import Check, judged
from funnel.audit.files import parse_json, read_document
from funnel.audit.frequencies import FALSE_ALARM
from funnel.audit.grouped.estimates import Estimates, estimate_complaints
from funnel.audit.grouped.explained import purpose_complaints, worth_complaints, worth_limits
from funnel.audit.grouped.figures import read_channels, step_of
from funnel.audit.grouped.rows import summed
from funnel.audit.page import weighted_of
from funnel.audit.tails import ROUNDING
from funnel.errors import DataError, FunnelError
from funnel.guarantees import parse_guarantee
from funnel.recount.grouped_text import GroupedText
from funnel.release.grouped_report import GroupedReport
from funnel.release.layout import ReleaseFolder

_Texts = tuple[str | None, ...]


def check_public_promise(text: GroupedText) -> Check:
    """Kind, title, text and level of the guarantee."""
    said = text.content["guarantee"]
    try:
        guarantee = parse_guarantee(said["declared"])
    except FunnelError as error:
        return judged("guarantee", [f"the declared bound cannot be read: {error}"], "")
    complaints = []
    if (said["kind"], said["title"], said["declared"]) != (guarantee.name, guarantee.title, str(guarantee)):
        complaints.append("its kind, title and text are not those of one guarantee")
    if said["level"] not in (guarantee.budget, 0.0):
        complaints.append(f"the level {said['level']!r} is not the bound of {said['declared']}")
    return judged("guarantee", complaints, f"{said['declared']}, level {said['level']:.12g} nats")


def check_public_numbers(folder: ReleaseFolder, text: GroupedText, package: dict[str, Any], rows: int | None) -> Check:
    """Whether the figures of the report are those of the protocol and of the data package."""
    try:
        told = GroupedReport.from_json(read_document(folder.numbers), str(folder.numbers))
    except DataError as error:
        return judged("report figures", [str(error)], "")
    figures, content = told.figures, text.content
    utility, promise = content["utility"], content["guarantee"]
    of_columns = [(one.column, one.group, one.plain, one.kept) for one in told.columns]
    pairs = {
        **{key: (getattr(told, key), package.get(key)) for key in ("name", "title", "version", "created")},
        "description": (told.description, package.get("description", "")),
        "guarantee": (told.guarantee, promise["declared"]),
        "level": (figures.level, promise["level"]),
        "utility": (figures.utility, utility["mutual_information_nats"]),
        "entropy": (figures.entropy, utility["entropy_nats"]),
        "share": (figures.share, utility["share"]),
        "digest": (told.digest, content["digest"]),
        "secret": (list(told.secret.columns), promise["secret"]),
        "groups": ([one.columns for one in told.groups], [stage.columns for stage in text.stages]),
        "columns": (of_columns, [(one["column"], one["group"], one["plain"], one["kept"]) for one in content["told"]]),
        "made_for": (told.made_for, text.people),
        "weighted": weighted_of(told.weighted, package),
        "choice": (told.choice, content["choice"]),
        "holds": (figures.holds, True),
        "frequencies": (told.frequencies.protection, content["frequencies"]["protection"]),
        **({} if rows is None else {"rows": (figures.rows, rows), "source.records": (told.source.records, rows)}),
    }
    wrong = [f"{folder.numbers.name}: {key} is not that of the other files" for key, (a, b) in pairs.items() if a != b]
    return judged("report figures", wrong, "those of the protocol and the data package")


def check_public_estimates(folder: ReleaseFolder, text: GroupedText) -> Check:
    """Whether the errors of estimates in the report follow from the effective channels that are published."""
    name = "report estimates"
    try:
        content = read_document(folder.numbers)
        told = GroupedReport.from_json(content, str(folder.numbers))
        stated = [one.model_dump(mode="json") for one in told.estimated]
        if parse_json(content, folder.numbers)["schema"] == "funnel/grouped-report/1":
            return judged(name, [], "reports of this version tell none")
        estimates = Estimates(read_channels(folder.channels), text, told.figures.rows)
        wrong = list(estimate_complaints(stated, estimates))
        wrong += purpose_complaints(told.content(), told.chosen_by)
        if told.worth is not None:
            wrong += worth_complaints(told.worth, worth_limits(estimates), step_of(told.figures.rows))
    except DataError as error:
        return judged(name, [str(error)], "")
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
        return judged(name, [f"channels.parquet cannot be read as channels ({type(error).__name__})"], "")
    return judged(name, wrong, f"{len(stated)} tables, as the channels tell them")


def check_public_frequencies(path: Path, text: GroupedText, counted: Mapping[tuple[str, ...], int]) -> Check:
    """Test how often each text of a column is there against the public channels, for a user of public files alone.

    Notes
    -----
    The count of a text is a sum of independent indicators whose mean lies within what rounding leaves of the shares of
    inputs and of the probabilities of the text, so the argument is that of `funnel.audit.frequencies`: tails at both
    ends, each at `FALSE_ALARM` over the number of all of them.
    """
    try:
        told = read_channels(path)
    except (OSError, KeyError, ValueError, DataError, pa.ArrowException) as error:
        return judged("frequencies", [f"channels.parquet cannot be read ({type(error).__name__})"], "")
    n = sum(counted.values())
    found: list[tuple[float, str]] = []
    for j, column in enumerate(text.columns):
        rows = [(true, shown, share, p) for some, true, shown, share, p in told if some == (column, None)]
        there = summed(counted, [j])
        for label, low, high in _means(rows, text.texts[column], n):
            count = there[label,]
            above = 1.0 if count <= n * high + 1 or high >= 1 else float(betainc(count, n - count + 1, high))
            below = 1.0 if count >= n * low - 1 or low <= 0 else float(betainc(n - count, count + 1, 1 - low))
            found.append((min(above, below) * ROUNDING, column))
    smallest, worst = min(found, default=(1.0, ""))
    p = min(1.0, 2 * len(found) * smallest)
    said = f"p = {p:.2g} for the counts of {len(found)} texts, from the public channels alone"
    return judged("frequencies", [f"{said}: that of a text of {worst} does not fit"] if p < FALSE_ALARM else [], said)


def _means(
    rows: list[tuple[_Texts, _Texts, float, float]], texts: tuple[str, ...], n: int
) -> Iterator[tuple[str, float, float]]:
    """Of every text the least and the largest mean probability that the public channel of its column leaves open."""
    step = step_of(n)
    inputs = {true: share for true, _, share, _ in rows}
    # One step is told of whatever is less, too.
    least = {true: share - step / 2 if share > 1.5 * step else 0.0 for true, share in inputs.items()}
    told = {(true, shown): p for true, shown, _, p in rows}
    # Who has an input that is not told may be published as anything.
    rest = min(1.0, max(0.0, 1 - sum(least.values())))
    for label in texts:
        low = high = 0.0
        for true, share in inputs.items():
            finest = step_of(max(1, int(least[true] * n)))
            p = told.get((true, (label, None)), 0.0)
            low += least[true] * max(0.0, p - finest / 2)
            # Some may have been lowered by a step so that all of them add up to one.
            high += (share + step / 2) * min(1.0, p + finest)
        yield label, low, float(np.clip(high + rest, 0.0, 1.0))
