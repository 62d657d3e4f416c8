"""The figures of a public report made again from the other public files, for audits of these.

From noisy counts all of them follow. Without noise they are those of counts that nobody publishes: what the report says
first of these, the frequencies of secrets and the lifts, is taken from it, and all that follows is made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from funnel.alphabet import SEPARATOR, Alphabet
from funnel.errors import DataError
from funnel.findings.of_release import Audited, distribution_findings
from funnel.frequencies.averages import NoisyAverages
from funnel.frequencies.public_counts import Frequencies
from funnel.guarantees import parse_guarantee
from funnel.joint import FloatArray
from funnel.mechanisms import mechanism
from funnel.release.protection import Protection
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.public.findings import PublicFindings, Witness
from funnel.release.public.public_distributions import PublicDistributions, PublicRarity, SparsePosterior, posterior_of
from funnel.release.public.rounding import share_step
from funnel.release.public_accuracy import PublicAccuracy
from funnel.release.public_report import Mechanism, PublicReport
from funnel.release.published_values import published_values
from funnel.report.content import PublicContent, SourceNote
from funnel.report.public.public_figures import report_of
from funnel.report.public.report_tables import MAX_COLUMNS, MAX_ROWS

# What a report tells of public counts and protocol alone.
COMPUTED = (
    "secret",
    "published",
    "channel",
    "mechanism",
    "figures",
    "beliefs",
    "example",
    "strongest",
    "outputs",
    "heat",
    "lifts",
    "estimation",
    "accuracy",
    "estimated",
    "rarity",
    "frequencies",
)
# Figures of the versions before it and of the numbers that a spec declares, which are checked elsewhere if at all.
_TAKEN = ("figures.history", "figures.explained")
# What follows from all lifts, where only the strongest are told; and from all secrets, where the commonest are.
_OF_LIFTS: tuple[str, ...] = ("beliefs.rows.lowest", "beliefs.rows.highest", "example.lowest", "example.highest")
_OF_LIFTS += ("lifts.total", "lifts.spreads")
# What takes the shares of outputs: of a protocol that reads the secret its file tells these to four places.
_OF_OUTPUTS = (*_OF_LIFTS, "outputs", "heat", "accuracy", "estimated")
_OF_SECRETS = (*_OF_LIFTS, "secret.values", "beliefs", "example", "strongest", "lifts", "rarity.secrets")


def other_figures(told: PublicReport, document: ProtocolDocument, frequencies: Frequencies | None) -> list[str]:
    """The parts of a report that do not follow from the other public files; of `COMPUTED`.

    Parameters
    ----------
    told : PublicReport
        What ``report.json`` tells; whatever is not computed here is taken from it.
    document : ProtocolDocument
        What ``protocol.json`` tells.
    frequencies : Frequencies or None
        With noise, as ``frequencies.json`` has them; None without.

    Raises
    ------
    FunnelError
        If the protocol is not one of these counts, or the report is about secrets that there are not.
    """
    known = _rounded(told, document) if frequencies is None else _counted(told, document, frequencies)
    again, stated = (
        _without(report.content(), known.left) for report in (report_of(_content(told, document, known)), told)
    )
    return [key for key in COMPUTED if again.get(key) != stated.get(key)]


@dataclass(frozen=True, eq=False)
class _Known:
    """What a report is made of, and the places of it that do not follow from that."""

    distributions: PublicDistributions
    findings: PublicFindings
    rarity: PublicRarity
    left: Iterable[str]
    departures: NoisyAverages | None = None


def _counted(told: PublicReport, document: ProtocolDocument, frequencies: Frequencies) -> _Known:
    guarantee, protocol = parse_guarantee(told.guarantee), document.protocol
    distribution = distribution_findings(frequencies.joint, protocol, guarantee, told.estimation.alpha)
    drawn = np.zeros(len(protocol.outputs), dtype=np.int64)
    audited = Audited(frequencies, distribution, told.figures.rows, None, None, None, drawn)
    distributions = PublicDistributions.of(frequencies, protocol)
    findings, rarity = PublicFindings.of(audited, guarantee, distributions), PublicRarity.of(frequencies, distributions)
    return _Known(distributions, findings, rarity, _TAKEN, frequencies.departures)


def _rounded(told: PublicReport, document: ProtocolDocument) -> _Known:
    distributions, outputs = _distributions(told, document), document.protocol.outputs.labels
    # Labels of several columns can coincide, and the report names secrets and outputs by their labels.
    named = all(len(set(labels)) == len(labels) for labels in (outputs, [row.label for row in told.beliefs.rows]))
    few = len(outputs) <= MAX_ROWS and told.beliefs.total <= MAX_COLUMNS
    left = () if few else _OF_LIFTS
    if not named or told.beliefs.total > MAX_ROWS:
        left = _OF_SECRETS
    if document.posterior is not None:
        left += _OF_OUTPUTS
    rarity = PublicRarity.from_words(distributions, told.rarity.combinations)
    return _Known(
        distributions, _told_findings(told, distributions, outputs if named else ()), rarity, (*_TAKEN, *left)
    )


def _distributions(told: PublicReport, document: ProtocolDocument) -> PublicDistributions:
    """The public shares of the protocol, with those of secrets that the report tells."""
    inputs = Alphabet(document.prior.columns, document.prior.symbols)
    n, shares = told.source.records, np.array(document.prior.probabilities)
    step = share_step(n)
    posterior: FloatArray | SparsePosterior
    if document.posterior is None:
        posterior, p_output = posterior_of(document.protocol, inputs, shares, step)
    else:
        p_output = np.array([entry.probability for entry in document.posterior])
        posterior = np.zeros((len(p_output), len(inputs)))
        for row, entry in zip(posterior, document.posterior, strict=True):
            row[list(map(int, entry.inputs))] = list(entry.inputs.values())
    labels, width = [belief.label for belief in told.beliefs.rows], len(told.secret.columns)
    symbols = [tuple(label.split(SEPARATOR, width - 1)) for label in labels]
    if len(set(symbols)) < len(symbols):
        symbols = [(str(number),) * width for number in range(len(symbols))]
    secrets = Alphabet(told.secret.columns, tuple(symbols))
    priors = np.array([belief.prior for belief in told.beliefs.rows])
    return PublicDistributions(secrets, inputs, n, priors, shares, p_output, posterior, step)


def _told_findings(told: PublicReport, distributions: PublicDistributions, outputs: tuple[str, ...]) -> PublicFindings:
    """What the report says first: lifts as it tells them, and the figures that follow from no others."""
    shape = (len(distributions.secret), len(distributions.p_output))
    lift, ratios = np.full(shape, np.nan), np.full(shape[1], np.nan)
    row_of, column_of = (
        {label: place for place, label in enumerate(names)} for names in (distributions.secret.labels, outputs)
    )
    try:
        for one in told.lifts.strongest if outputs else ():
            lift[row_of[one.secret], column_of[one.output]] = _number(one.cell.lift)
        for y, row in enumerate(() if told.lifts.table is None else told.lifts.table.rows):
            lift[:, y], ratios[y] = [_number(cell.lift) for cell in row.cells], _number(row.ratio)
    except (LookupError, ValueError) as error:
        raise DataError("report.json tells lifts of secrets or outputs that there are not") from error
    case = told.strongest
    witness = None if case is None else Witness(case.output, case.secret, case.other, case.upward, case.given)
    return PublicFindings(told.figures, told.estimation, witness, lift, ratios)


def _number(value: float | str | None) -> float:
    return np.nan if value is None else np.inf if isinstance(value, str) else value


def _without(value: Any, places: Iterable[str]) -> Any:
    """A JSON value without some places, whose names have the keys of objects alone."""
    if isinstance(value, Mapping):
        heads = [place.partition(".") for place in places]
        gone = {head for head, _, rest in heads if not rest}
        return {
            key: _without(part, [rest for head, _, rest in heads if head == key])
            for key, part in value.items()
            if key not in gone
        }
    return [_without(part, places) for part in value] if isinstance(value, list) else value


def _content(told: PublicReport, document: ProtocolDocument, known: _Known) -> PublicContent:
    protocol = document.protocol
    content = {part.name: getattr(told, part.name) for part in fields(PublicContent) if hasattr(told, part.name)}
    estimates = not published_values(protocol.mechanism).estimator
    content |= {
        "source": SourceNote(told.source.title, None, told.source.references),
        "mechanism": Mechanism.like(mechanism(protocol.mechanism)),
        "guarantee": parse_guarantee(told.guarantee),
        "covers_versions": bool(told.frequencies.covers_versions),
        "protocol": protocol,
        "protection": Protection.like(told.frequencies),
        "released": told.published.columns,
        "distributions": known.distributions,
        "findings": known.findings,
        "rarity": known.rarity,
        "accuracy": PublicAccuracy.of(known.distributions, told.figures.rows, estimates, known.departures),
    }
    return PublicContent(**content)
