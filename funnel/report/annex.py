"""The annex of the public report for data-protection officers: its figures, its questions and its page."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from funnel.guarantees import parse_guarantee
from funnel.guarantees.by_event import SideChannels
from funnel.guarantees.published import meaning_for
from funnel.guarantees.several import parts_of
from funnel.joint import FloatArray, IntArray
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.public_report import PublicReport
from funnel.release.report_parts import Level, Unchanged, nats_of
from funnel.report.page import render

Figures = dict[str, float]
"""Every figure of the annex by its name; shares are of one."""


def is_by_class(report: PublicReport, protocol: ProtocolDocument) -> bool:
    """Whether the release holds whole records, and the protocol is about classes of these."""
    return report.published.columns != protocol.outputs.columns


def compute_figures(report: PublicReport, protocol: ProtocolDocument) -> Figures:
    """The figures that apply to a release.

    Parameters
    ----------
    report : PublicReport
    protocol : ProtocolDocument

    Notes
    -----
    ``linked`` is the expected share of records that an observer links rightly who knows all published columns of a
    person but the secret, and takes the likeliest published record. With known values k, outputs y and n records the
    chance of the best link is P(y|k) / (n P(y)), so that the share is the sum over k of min(p(k), max_y P(k|y) / n).
    """
    figures: Figures = {"records": report.figures.rows}
    if report.figures.level_factor is not None:
        figures["change"] = report.figures.level_factor
    figures |= _beliefs(report)
    if report.frequencies.epsilon is not None:
        # One record with another value is one record less and one more.
        figures |= {"epsilon": report.frequencies.epsilon, "insider": math.exp(2 * report.frequencies.epsilon)}
    if report.alone is not None:
        figures["unique"] = report.alone
    linked = _linked(report, protocol)
    if is_by_class(report, protocol):
        # All other columns of a person tell the class, and nothing more of the secret; records are not linked by class.
        linked = {name: share for name, share in linked.items() if not name.startswith("linked")}
    else:
        figures |= {"guess_before": report.figures.prior_guess_accuracy, "guess": report.figures.guess_accuracy}
    figures |= linked
    if report.unchanged is not None:
        figures |= _unchanged(report.unchanged, report.figures.rows, is_by_class(report, protocol))
        if report.figures.history is not None and report.figures.history.own is not None:
            # Of donors who are followed records stay less often than their class.
            figures = {name: share for name, share in figures.items() if not name.startswith("kept_")}
            figures["unchanged"] = report.figures.history.own
        figures |= _observers(report.unchanged)
    return figures | _groups(report)


def _beliefs(report: PublicReport) -> Figures:
    """The belief in one value that a record raises most, of those listed."""
    told = [(row.highest / row.prior, row) for row in report.beliefs.rows if row.highest is not None and row.prior > 0]
    if not told:
        return {}
    row = max(told, key=lambda one: one[0])[1]
    return {"belief_before": row.prior, "belief": row.highest or 0.0}


def _linked(report: PublicReport, protocol: ProtocolDocument) -> Figures:
    prior, rows = protocol.prior, report.figures.rows
    hidden = [j for j, column in enumerate(prior.columns) if column in report.secret.columns]
    p = np.array(prior.probabilities) / sum(prior.probabilities)
    known: dict[tuple[str, ...], int] = {}
    of = np.array([known.setdefault(_without(symbol, hidden), len(known)) for symbol in prior.symbols])
    p_known, best, guessed = np.bincount(of, weights=p), np.zeros(len(known)), 0.0
    for mass, distribution in _posteriors(protocol, p):
        best = np.maximum(best, np.bincount(of, weights=distribution, minlength=len(known)))
        guessed += mass * float(_largest(of, distribution, len(known)).sum())
    figures = {
        "linked": float(np.minimum(p_known, best / rows).sum()),
        "linked_truth": float(np.minimum(p_known, 1 / rows).sum()),
    }
    if len(hidden) == len(report.secret.columns):
        before = float(_largest(of, p, len(known)).sum())
        figures |= {"secret_before": before, "secret": guessed, "gain": max(0.0, guessed - before)}
    return figures


def _without(symbol: tuple[str, ...], places: list[int]) -> tuple[str, ...]:
    return tuple(value for j, value in enumerate(symbol) if j not in places)


def _posteriors(protocol: ProtocolDocument, p: FloatArray) -> Iterator[tuple[float, FloatArray]]:
    """P(y) and P(x|y), shape (a,), of every output that can occur."""
    if protocol.posterior is not None:
        for entry in protocol.posterior:
            distribution = np.zeros(len(p))
            distribution[[int(x) for x in entry.inputs]] = list(entry.inputs.values())
            if entry.probability > 0 and distribution.sum() > 0:
                yield entry.probability, distribution / distribution.sum()
        return
    places = {symbol: x for x, symbol in enumerate(protocol.prior.symbols)}
    of = np.array([places[symbol] for symbol in protocol.inputs.symbols])
    for row in protocol.entries:
        distribution = np.zeros(len(p))
        for x, weight in row:
            distribution[of[x]] = p[of[x]] * (weight / int(protocol.denominator))
        if (mass := float(distribution.sum())) > 0:
            yield mass, distribution / mass


def _largest(of: IntArray, distribution: FloatArray, groups: int) -> FloatArray:
    """The largest probability in each group, shape (groups,): symbols of a group differ in the secret alone."""
    found = np.zeros(groups)
    np.maximum.at(found, of, distribution)
    return found


def _unchanged(kept: Unchanged, rows: int, by_class: bool) -> Figures:
    figures: Figures = {"unchanged": kept.share, "exact": kept.exact_records}
    if (alone := kept.whole if by_class else kept) is not None:
        figures["unique"] = alone.unique
        if kept.whole is not None and by_class:
            for one in kept.whole.columns:
                figures[f"true_{one.column}"] = one.share
                if one.typical is not None and one.least is not None:
                    figures |= {f"typical_{one.column}": one.typical, f"least_{one.column}": one.least}
        if (true := alone.unique_unchanged) is not None:
            figures |= {"unique_true": true, "singled": alone.unique * true / rows}
    if kept.secrets:
        shares = [one.share for one in kept.secrets]
        figures |= {"kept_least": min(shares), "kept_most": max(shares)}
    return figures


def _observers(kept: Unchanged) -> Figures:
    figures = {}
    lines = [(str(one.known), one.level, one.outside) for one in kept.observers]
    if kept.known:
        lines.append(("column", kept.known[0].level, kept.known[0].outside))
    for name, level, outside in lines:
        figures[f"factor_{name}"] = _factor(level)
        figures[f"outside_{name}"] = outside
    return figures


def _factor(level: Level) -> float:
    return math.exp(nats_of(level))


def _groups(report: PublicReport) -> Figures:
    """Errors of the groups of every column: of the median group, of the worst, and how much larger that is."""
    figures = {}
    for table in report.errors_by_column:
        if table.typical and table.largest is not None:
            name = table.columns[0]
            figures[f"median_{name}"] = table.typical
            figures[f"worst_{name}"] = table.largest
            figures[f"ratio_{name}"] = table.largest / table.typical
    return figures


def render_annex(report: PublicReport, protocol: ProtocolDocument) -> str:
    """The page, in UTF-8 text: a function of two public documents alone, the same to the byte.

    Parameters
    ----------
    report : PublicReport
        What ``report.json`` holds.
    protocol : ProtocolDocument
        What ``protocol.json`` holds.

    Raises
    ------
    SpecError
        If the document names a bound that this funnel does not know.
    """
    guarantee = parse_guarantee(report.guarantee)
    return render(
        "annex.html.jinja",
        {
            "report": report,
            "guarantee": guarantee,
            "meaning": meaning_for(
                guarantee, protocol.inputs.columns, report.secret.columns, report.at_once, report.people == "same"
            ),
            "extent": "; ".join(f"{part} is {part.extent}" for part in parts_of(guarantee)),
            "compared": "odds of two values" if guarantee.lift_limits is None and guarantee.ratio_limit else "a belief",
            "covers_columns": any(isinstance(part, SideChannels) for part in parts_of(guarantee)),
            "figures": compute_figures(report, protocol),
            "by_class": is_by_class(report, protocol),
        },
    )
