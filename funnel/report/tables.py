"""The rows of the report's tables; a table too long to read shows its most important rows and counts the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from funnel.joint import FloatArray
from funnel.report.changes import log_lift
from funnel.report.content import PublicContent
from funnel.report.promise import Promise

MAX_ROWS = 50
TOP_SOURCES = 3
# What still fits the width of a printed page beside the name of an output.
BLOCK_COLUMNS = 7
MAX_BLOCKS = 4

Row = TypeVar("Row")


@dataclass(frozen=True)
class Extract(Generic[Row]):
    """The rows that a table shows, of ``total`` rows that there are."""

    rows: tuple[Row, ...]
    total: int

    @property
    def complete(self) -> bool:
        """Whether no row is left out."""
        return len(self.rows) == self.total


@dataclass(frozen=True)
class BeliefRow:
    """What an observer may come to believe about one value of the secret.

    Attributes
    ----------
    label : str
    prior : float
        P(s).
    least, most : float or None
        Limits that the guarantee sets to P(s|y).
    lowest, highest : float
        Smallest and largest P(s|y) over the outputs of this protocol; nan for a value that never occurs.
    """

    label: str
    prior: float
    least: float | None
    most: float | None
    lowest: float
    highest: float


@dataclass(frozen=True)
class OutputRow:
    """One output: its label, P(y), and its likeliest inputs with P(x|y); ``further`` counts the other possible ones."""

    label: str
    probability: float
    sources: tuple[tuple[str, float], ...]
    further: int


@dataclass(frozen=True)
class LiftCell:
    """One lift P(s|y)/P(s), and its strength: |ln lift| as a fraction of the largest one allowed, from 0 to 1."""

    lift: float
    strength: float

    @property
    def tint(self) -> str:
        """Name of the shade: ``up1`` to ``up4`` or ``down1`` to ``down4``, or nothing for an uninformative cell."""
        shade = min(4, int(self.strength * 4 + 0.5)) if self.strength == self.strength else 0
        return f"{'up' if self.lift > 1 else 'down'}{shade}" if shade else ""


@dataclass(frozen=True)
class LiftBlock:
    """Lifts of some secrets (columns) and all outputs (rows), one printable table.

    Attributes
    ----------
    secrets : tuple of str
    rows : tuple of (str, tuple of LiftCell, float)
        Output, its lifts, and its largest ratio between any two secrets (also of other blocks).
    """

    secrets: tuple[str, ...]
    rows: tuple[tuple[str, tuple[LiftCell, ...], float], ...]


@dataclass(frozen=True)
class LiftRow:
    """One (secret, output) of a table that does not show all of them."""

    secret: str
    output: str
    prior: float
    posterior: float
    cell: LiftCell


@dataclass(frozen=True)
class Worst:
    """The place of the largest leakage, in beliefs: P(s) becomes P(s|y), and likewise for s' where two are compared.

    ``given`` is what an observer with a side channel knows of the record besides.
    """

    output: str
    secret: str
    prior: float
    posterior: float
    other: str | None
    other_prior: float
    other_posterior: float
    given: tuple[tuple[str, str], ...] = ()


def _largest(keys: FloatArray | Sequence[float]) -> list[int]:
    """Positions to show: all, in order, or the ones with the largest keys, largest first; nan comes last."""
    values = np.asarray(keys, dtype=np.float64)
    if len(values) <= MAX_ROWS:
        return list(range(len(values)))
    order = np.argsort(-np.where(np.isnan(values), -np.inf, values), kind="stable")
    return [int(i) for i in order[:MAX_ROWS]]


def posterior_of_secret(content: PublicContent) -> FloatArray:
    """P(s|y), shape (c, b), as rounded figures have it; nan where s or y never occurs or the lift is not told."""
    return np.asarray(np.minimum(1.0, content.findings.lift * content.laws.p_secret[:, np.newaxis]))


def belief_row(content: PublicContent, promised: Promise, s: int) -> BeliefRow:
    """What an observer may come to believe about secret s; within the limits, where these hold."""
    posterior = posterior_of_secret(content)[s]
    seen = posterior[~np.isnan(posterior)]
    limits = (None, None) if promised.belief is None else (promised.belief[0][s], promised.belief[1][s])
    least, most = (None if limit is None else float(limit) for limit in limits)
    if content.findings.holds and least is not None and most is not None:
        # A rounded lift times a rounded share can exceed a limit that both exact ones keep.
        seen = np.clip(seen, least, most)
    lowest, highest = (float(seen.min()), float(seen.max())) if len(seen) else (np.nan, np.nan)
    return BeliefRow(content.laws.secret.labels[s], float(content.laws.p_secret[s]), least, most, lowest, highest)


def belief_rows(content: PublicContent, promised: Promise) -> Extract[BeliefRow]:
    """One row per value of the secret, the most common ones where there are too many."""
    prior = content.laws.p_secret
    return Extract(tuple(belief_row(content, promised, s) for s in _largest(prior)), len(prior))


def output_rows(content: PublicContent) -> Extract[OutputRow]:
    """One row per output, the most probable ones where there are too many."""
    probability, posterior = content.laws.p_output, content.laws.posterior
    rows = []
    for y in _largest(probability):
        chances = np.nan_to_num(posterior[y])
        likeliest = np.argsort(-chances, kind="stable")[:TOP_SOURCES]
        sources = tuple((content.laws.inputs.labels[x], float(chances[x])) for x in likeliest if chances[x] > 0)
        possible = int((chances > 0).sum())
        rows.append(
            OutputRow(content.protocol.outputs.labels[y], float(probability[y]), sources, possible - len(sources))
        )
    return Extract(tuple(rows), len(probability))


def lift_strength(content: PublicContent, promised: Promise) -> FloatArray:
    """|ln lift| as a fraction of the largest one allowed, at most 1, shape (c, b); nan where the lift is."""
    logs = log_lift(content.findings.lift)
    size = np.abs(logs)
    finite = size[np.isfinite(size)]
    # Without limits on single lifts a shade means: compared with the largest lift there is.
    largest = float(finite.max()) if finite.size else 0.0
    down, up = promised.lift_limits or (0.0, np.inf)
    lower = -np.log(down) if down > 0 else largest
    upper = np.log(up) if up < np.inf else largest
    limit = np.where(logs < 0, lower, upper)
    share = np.divide(size, limit, out=np.where(size > 0, 1.0, size), where=limit > 0)
    return np.asarray(np.where(np.isnan(size), np.nan, np.minimum(1.0, share)))


def lift_blocks(content: PublicContent, strength: FloatArray) -> tuple[LiftBlock, ...]:
    """The lifts of all secrets and outputs as tables that fit a page; none if there are too many of either."""
    secrets, outputs = content.laws.secret.labels, content.protocol.outputs.labels
    if len(outputs) > MAX_ROWS or len(secrets) > MAX_BLOCKS * BLOCK_COLUMNS:
        return ()
    blocks = -(-len(secrets) // BLOCK_COLUMNS)
    # Even widths: 8 secrets become 4 + 4, not 7 + 1.
    width = -(-len(secrets) // blocks)
    lift = content.findings.lift
    cells = [
        tuple(LiftCell(float(value), float(used)) for value, used in zip(lift[:, y], strength[:, y], strict=True))
        for y in range(len(outputs))
    ]
    ratios = content.findings.ratios
    return tuple(
        LiftBlock(
            secrets[start : start + width],
            tuple((label, cells[y][start : start + width], float(ratios[y])) for y, label in enumerate(outputs)),
        )
        for start in range(0, len(secrets), width)
    )


def lift_rows(content: PublicContent, strength: FloatArray) -> Extract[LiftRow]:
    """The (secret, output) whose lifts are furthest from 1, of all whose secret and output occur."""
    size = np.abs(log_lift(content.findings.lift)).ravel()
    posterior = posterior_of_secret(content)
    order = [int(i) for i in np.argsort(-np.nan_to_num(size, nan=-1.0), kind="stable")[:MAX_ROWS]]
    places = [divmod(i, posterior.shape[1]) for i in order if not np.isnan(size[i])]
    rows = tuple(
        LiftRow(
            content.laws.secret.labels[s],
            content.protocol.outputs.labels[y],
            float(content.laws.p_secret[s]),
            float(posterior[s, y]),
            LiftCell(float(content.findings.lift[s, y]), float(strength[s, y])),
        )
        for s, y in places
    )
    return Extract(rows, int((~np.isnan(size)).sum()))


def worst(content: PublicContent) -> Worst:
    """The witness of the findings, in beliefs."""
    findings, laws = content.findings, content.laws
    outputs = _positions(content.protocol.outputs.labels, findings.witness_output)
    secrets = _positions(laws.secret.labels, findings.witness_secret)
    # Labels of several columns can coincide: the witness is then the strongest of the places they name.
    size = np.nan_to_num(np.abs(log_lift(findings.lift[np.ix_(secrets, outputs)])), nan=-1.0)
    row, column = np.unravel_index(int(np.argmax(size)), size.shape)
    s, y = secrets[int(row)], outputs[int(column)]
    posterior = posterior_of_secret(content)[:, y]
    other = findings.witness_other_secret
    t = s if other is None else _positions(laws.secret.labels, other)[0]
    return Worst(
        findings.witness_output,
        findings.witness_secret,
        float(laws.p_secret[s]),
        float(posterior[s]),
        other,
        float(laws.p_secret[t]),
        float(posterior[t]),
        findings.witness_given,
    )


def _positions(labels: tuple[str, ...], label: str) -> list[int]:
    return [i for i, candidate in enumerate(labels) if candidate == label]
