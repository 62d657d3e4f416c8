"""The tables of the public report as parts of its document; a long one holds its most important rows and a total."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.guarantees import LDP, LIP, Guarantee
from funnel.guarantees.exact import capped_exp
from funnel.guarantees.published import meaning_for
from funnel.joint import FloatArray
from funnel.protocol import DENOMINATOR
from funnel.release.public.rounding import MOST_DIGITS, lift_step, rounded_down, rounded_up
from funnel.release.public_report import Accuracy, Frequency
from funnel.release.report_parts import (
    Belief,
    Beliefs,
    Heat,
    LiftCell,
    Lifts,
    LiftTable,
    LiftTableRow,
    Output,
    Outputs,
    Spread,
    StrongestCase,
    StrongLift,
    TrueValue,
)
from funnel.report.content import PublicContent


@dataclass(frozen=True)
class Promise:
    """The limits that a guarantee sets whatever the data are.

    Attributes
    ----------
    kind : str
        Which words fit: ``"lip"``, ``"ldp"``, or ``"other"`` for the words the guarantee has for itself.
    meaning : str
        Those words.
    factor : float
        e^budget, or a factor that no protocol can reach where that is smaller.
    lift_limits : tuple of two floats, or None
        Least and largest lift P(s|y)/P(s) allowed, where the guarantee limits lifts one by one.
    ratio_limit : float or None
        Largest P(y|s)/P(y|s') allowed, where the guarantee compares secrets.
    """

    kind: str
    meaning: str
    factor: float
    lift_limits: tuple[float, float] | None
    ratio_limit: float | None


def promised_by(
    guarantee: Guarantee, read: Sequence[str] = (), secret: Sequence[str] = (), at_once: int = 0, several: bool = False
) -> Promise:
    """The limits that a guarantee sets for a protocol that reads these columns; ``at_once`` and ``several`` as for
    `meaning_for`.

    Limits and words are those of the guarantee itself, so that adding one needs no change here. LIP and LDP, and what
    derives from them, have longer words in the templates of the report, with an example from the data.
    """
    kind = "lip" if isinstance(guarantee, LIP) else "ldp" if isinstance(guarantee, LDP) else "other"
    factor = capped_exp(guarantee.budget)
    meaning = meaning_for(guarantee, read, secret, at_once, several)
    return Promise(kind, meaning, factor, guarantee.lift_limits, guarantee.ratio_limit)


MAX_ROWS = 50
TOP_SOURCES = 3
# As many columns of names as a page can show beside the names of rows.
MAX_COLUMNS = 28
MAX_HEAT = 12
MAX_FREQUENCIES = 30


def largest(keys: FloatArray | Sequence[float], most: int = MAX_ROWS) -> list[int]:
    """Positions to show: all, in order, or the ones with the largest keys, largest first; nan comes last."""
    values = np.asarray(keys, dtype=np.float64)
    if len(values) <= most:
        return list(range(len(values)))
    order = np.argsort(-np.where(np.isnan(values), -np.inf, values), kind="stable")
    return [int(i) for i in order[:most]]


def number_or_none(value: float) -> float | None:
    """A figure for a document; None where it is not told or does not exist."""
    return None if math.isnan(value) else float(value)


def log_lift(lift: FloatArray) -> FloatArray:
    """ln of lifts: minus infinity where an output excludes a secret, nan where the lift is."""
    return np.log(lift, out=np.full(lift.shape, -np.inf), where=lift != 0)


def posterior_of_secret(content: PublicContent) -> FloatArray:
    """P(s|y), shape (c, b), as rounded figures have it; nan where s or y never occurs or the lift is not told."""
    return np.asarray(np.minimum(1.0, content.findings.lift * content.distributions.p_secret[:, np.newaxis]))


def belief(content: PublicContent, s: int, seen: tuple[FloatArray, FloatArray] | None = None) -> Belief:
    """What an observer may come to believe about secret s; within the limits, where these hold.

    ``seen`` is `posterior_limits`, where it is known.
    """
    lower, upper = posterior_limits(content) if seen is None else seen
    allowed = content.belief_limits
    limits = (None, None) if allowed is None else (allowed[0][s], allowed[1][s])
    least, most = (None if limit is None else float(limit) for limit in limits)
    shown = (content.distributions.p_output > 0) & (content.distributions.p_secret[s] > 0)
    return Belief(
        label=content.distributions.secret.labels[s],
        prior=float(content.distributions.p_secret[s]),
        least=None if least is None else rounded_down(least, MOST_DIGITS),
        most=None if most is None else rounded_up(most, MOST_DIGITS),
        lowest=rounded_down(float(lower[s, shown].min()), MOST_DIGITS) if shown.any() else None,
        highest=rounded_up(float(upper[s, shown].max()), MOST_DIGITS) if shown.any() else None,
    )


def posterior_limits(content: PublicContent) -> tuple[FloatArray, FloatArray]:
    """Least and largest P(s|y), shape (c, b), that rounded figures leave open, and the bound where that holds.

    A lift that is told is off by half its step, one that is not told can be any that is allowed; beliefs add up to one.
    """
    distributions, lift = content.distributions, content.findings.lift
    expected = distributions.n * np.outer(distributions.p_secret, distributions.p_output)
    lower, upper = np.zeros(lift.shape), np.ones(lift.shape)
    for s, y in np.argwhere(~np.isnan(lift) & (expected > 0)).tolist():
        value = float(lift[s, y])
        # What is less than a step is told as one.
        step = lift_step(value, float(expected[s, y])) if value > 0 else 0.0
        least = 0.0 if value <= step else value - step / 2
        lower[s, y] = least * max(0.0, distributions.p_secret[s] - distributions.step / 2)
        upper[s, y] = min(1.0, (value + step / 2) * (distributions.p_secret[s] + distributions.step / 2))
    if content.findings.figures.holds and content.belief_limits is not None:
        least_allowed, most_allowed = (limit[:, np.newaxis] for limit in content.belief_limits)
        # A rounded lift times a rounded share can exceed a limit that both exact ones keep.
        lower, upper = (np.clip(side, least_allowed, most_allowed) for side in (lower, upper))
    others_least, others_most = lower.sum(axis=0) - lower, upper.sum(axis=0) - upper
    return np.maximum(lower, 1 - others_most), np.minimum(upper, 1 - others_least)


def beliefs(content: PublicContent) -> Beliefs:
    """One row per value of the secret, the most common ones where there are too many."""
    prior, seen = content.distributions.p_secret, posterior_limits(content)
    return Beliefs(rows=tuple(belief(content, s, seen) for s in largest(prior)), total=len(prior))


def example(content: PublicContent) -> Belief | None:
    """The belief in the most common value of the secret; None where the guarantee sets beliefs no limits."""
    return None if content.belief_limits is None else belief(content, int(content.distributions.p_secret.argmax()))


def outputs(content: PublicContent) -> Outputs:
    """One row per output, the most probable ones where there are too many."""
    probability = content.distributions.p_output
    rows = []
    for y in largest(probability):
        inputs, shares = content.distributions.sources(y)
        chances = np.minimum(shares, 1.0)
        likeliest = np.argsort(-chances, kind="stable")[:TOP_SOURCES]
        sources = tuple(
            TrueValue(label=content.distributions.inputs.labels[inputs[i]], chance=float(chances[i])) for i in likeliest
        )
        rows.append(
            Output(
                label=content.protocol.outputs.labels[y],
                probability=min(float(probability[y]), 1.0),
                sources=sources,
                further=len(chances) - len(sources),
            )
        )
    return Outputs(rows=tuple(rows), total=len(probability))


def heat(content: PublicContent) -> Heat:
    """The protocol's probabilities, to a thousandth, of the most common published for the most common true values.

    What is possible is told as a thousandth at least, and what is not certain as no more than 0.999.
    """
    protocol, distributions = content.protocol, content.distributions
    b, a = protocol.size
    # Of a protocol that reads the secret no distribution of what it reads is published.
    known = protocol.inputs == distributions.inputs
    across = largest(distributions.p_input if known else -np.arange(a, dtype=np.float64), MAX_HEAT)
    down = largest(distributions.p_output, MAX_HEAT)
    matrix = np.zeros((b, len(across)))
    for column, x in enumerate(across):
        possible, weights = protocol.conditional(x)
        matrix[possible, column] = weights / np.float64(DENOMINATOR)
    shown = matrix[down]
    if len(down) < b:
        shown = np.vstack([shown, np.maximum(0.0, matrix.sum(axis=0) - shown.sum(axis=0))])
    rounded = np.round(shown, 3)
    rounded = np.where((shown > 0) & (shown < 1), np.clip(rounded, 0.001, 0.999), rounded)
    return Heat(
        inputs=tuple(protocol.inputs.labels[x] for x in across),
        outputs=tuple(protocol.outputs.labels[y] for y in down),
        shares=tuple(tuple(map(float, np.minimum(row, 1.0))) for row in rounded),
        further_inputs=a - len(across),
        further_outputs=b - len(down),
    )


def lift_strength(content: PublicContent, promised: Promise) -> FloatArray:
    """|ln lift| as a fraction of the largest one allowed, at most 1, shape (c, b); nan where the lift is."""
    logs = log_lift(content.findings.lift)
    size = np.abs(logs)
    finite = size[np.isfinite(size)]
    # Without limits on single lifts a shade means: compared with the largest lift there is.
    most = float(finite.max()) if finite.size else 0.0
    down, up = promised.lift_limits or (0.0, np.inf)
    lower = -np.log(down) if down > 0 else most
    upper = np.log(up) if up < np.inf else most
    limit = np.where(logs < 0, lower, upper)
    share = np.divide(size, limit, out=np.where(size > 0, 1.0, size), where=limit > 0)
    return np.asarray(np.where(np.isnan(size), np.nan, np.minimum(1.0, share)))


def lifts(content: PublicContent, promised: Promise) -> Lifts:
    """All lifts as a table, or the strongest where there are too many; and the lines of their chart."""
    lift, strength = content.findings.lift, lift_strength(content, promised)
    size = np.abs(log_lift(lift)).ravel()
    small = len(content.protocol.outputs) <= MAX_ROWS and len(content.distributions.secret) <= MAX_COLUMNS
    rows, total = _spreads(content, promised)
    return Lifts(
        table=_lift_table(content, strength) if small else None,
        strongest=() if small else _strongest(content, strength, size),
        total=int((~np.isnan(size)).sum()),
        spreads=rows,
        spreads_total=total,
    )


def _lift_table(content: PublicContent, strength: FloatArray) -> LiftTable:
    lift, ratios = content.findings.lift, content.findings.ratios
    return LiftTable(
        secrets=content.distributions.secret.labels,
        rows=tuple(
            LiftTableRow(
                output=label,
                cells=tuple(
                    LiftCell(lift=number_or_none(value), strength=number_or_none(used))
                    for value, used in zip(lift[:, y], strength[:, y], strict=True)
                ),
                ratio=None if math.isnan(ratios[y]) else float(ratios[y]),
            )
            for y, label in enumerate(content.protocol.outputs.labels)
        ),
    )


def furthest(size: FloatArray, outputs: int, most: int) -> list[tuple[int, int]]:
    """The places (secret, output) whose lifts are furthest from 1, of those that are known, by their size (c b,)."""
    order = [int(i) for i in np.argsort(-np.nan_to_num(size, nan=-1.0), kind="stable")[:most]]
    return [divmod(i, outputs) for i in order if not np.isnan(size[i])]


def _strongest(content: PublicContent, strength: FloatArray, size: FloatArray) -> tuple[StrongLift, ...]:
    """The (secret, output) whose lifts are furthest from 1, of all whose secret and output occur."""
    posterior, lift = posterior_of_secret(content), content.findings.lift
    return tuple(
        StrongLift(
            secret=content.distributions.secret.labels[s],
            output=content.protocol.outputs.labels[y],
            prior=float(content.distributions.p_secret[s]),
            posterior=float(posterior[s, y]),
            cell=LiftCell(lift=number_or_none(lift[s, y]), strength=number_or_none(strength[s, y])),
        )
        for s, y in furthest(size, posterior.shape[1], MAX_ROWS)
    )


def _spreads(content: PublicContent, promised: Promise) -> tuple[tuple[Spread, ...], int]:
    """Of each value of the secret its different lifts; where secrets are compared, of each output its largest ratio."""
    if promised.ratio_limit is not None:
        ratios, names = content.findings.ratios, content.protocol.outputs.labels
        shown = largest(ratios)
        values = [() if math.isnan(ratios[y]) else (float(ratios[y]),) for y in shown]
        return tuple(Spread(label=names[y], values=v) for y, v in zip(shown, values, strict=True)), len(names)
    lift, names = content.findings.lift, content.distributions.secret.labels
    shown = largest(np.nan_to_num(np.abs(log_lift(lift)), nan=-1.0).max(axis=1, initial=-1.0))
    spreads = tuple(
        Spread(label=names[s], values=tuple(float(v) for v in np.unique(lift[s][~np.isnan(lift[s])]))) for s in shown
    )
    return spreads, len(names)


def accuracy(content: PublicContent) -> Accuracy | None:
    """Standard errors of the most common values; None where there are too many to compute them."""
    if content.accuracy is None:
        return None
    errors, shares = content.accuracy.errors, content.distributions.p_input
    return Accuracy(
        rows=tuple(
            Frequency(
                label=content.distributions.inputs.labels[x], share=float(shares[x]), error=number_or_none(errors[x])
            )
            for x in largest(shares, MAX_FREQUENCIES)
            if shares[x] > 0
        ),
        total=int((shares > 0).sum()),
        unknown=int((np.isnan(errors) & (shares > 0)).sum()),
    )


def strongest_case(content: PublicContent) -> StrongestCase | None:
    """The witness of the findings, in beliefs; None where it is not public."""
    witness, lift, distributions = content.findings.witness, content.findings.lift, content.distributions
    if witness is None:
        return None
    columns = _positions(content.protocol.outputs.labels, witness.output)
    secrets = _positions(distributions.secret.labels, witness.secret)
    # Labels of several columns can coincide: the witness is then the strongest of the places they name.
    size = np.nan_to_num(np.abs(log_lift(lift[np.ix_(secrets, columns)])), nan=-1.0)
    row, column = np.unravel_index(int(np.argmax(size)), size.shape)
    s, y = secrets[int(row)], columns[int(column)]
    posterior = posterior_of_secret(content)[:, y]
    t = s if witness.other is None else _positions(distributions.secret.labels, witness.other)[0]
    return StrongestCase.like(
        witness,
        prior=float(distributions.p_secret[s]),
        posterior=number_or_none(posterior[s]),
        other_prior=float(distributions.p_secret[t]),
        other_posterior=number_or_none(posterior[t]),
    )


def _positions(labels: tuple[str, ...], label: str) -> list[int]:
    return [i for i, candidate in enumerate(labels) if candidate == label]
