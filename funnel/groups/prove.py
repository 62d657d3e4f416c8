"""Prove: the bound of a grouped protocol for every prefix and output there is, decided in whole numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from funnel.errors import DataError, SolverError
from funnel.groups.protocol import SILENT, GroupedProtocol, Stage
from funnel.guarantees.alip import ALIP
from funnel.guarantees.base import PosteriorGuarantee
from funnel.guarantees.exact import log_above
from funnel.history.allowed import Allowed, allowed_by
from funnel.history.exact_law import WholeNumbers
from funnel.joint import IntArray, Joint


@dataclass(frozen=True)
class Proof:
    """What was found over all prefixes.

    Attributes
    ----------
    holds : bool
        Whether the bound holds after every output of every stage.
    level : float
        The smallest budget (nats) that would do: never below the exact one, infinite where none does.
    stage : int
        Where it is attained.
    outputs : int
        Prefixes and outputs that were decided.
    """

    holds: bool
    level: float
    stage: int
    outputs: int


def prove(joint: Joint, guarantee: PosteriorGuarantee, protocol: GroupedProtocol) -> Proof:
    """Decide a grouped protocol for everything that a record can show, in exact arithmetic on its integer weights.

    Every prefix is followed, also those that share a channel or a class, and every output of it is decided by itself:
    `P(s, h, y) = Σ_r n(s, r) Π_stages w`, whole numbers. A reader who sees labels alone knows less than who sees
    outputs, and averages of posteriors within a bound are within it.

    Raises
    ------
    DataError
        If the protocol reads other columns than the joint law has.
    SpecError
        If the guarantee is none on the posterior of the secret.

    Notes
    -----
    A product of whole numbers for every record, prefix that it may show and stage.
    """
    allowed = allowed_by(guarantee)
    prior = joint.counts.sum(axis=1)
    seen = prior > 0
    counts, prior = joint.counts[seen], prior[seen]
    readings = [stage_inputs(joint, stage) for stage in protocol.stages]
    tables = [[channel.table(stage.size) for channel in stage.channels] for stage in protocol.stages]
    there = np.flatnonzero(joint.counts.any(axis=0))
    ones = np.array([1] * len(there), dtype=object)
    # A prefix: its stage, its class, the records that may show it and their weights.
    left: list[tuple[int, int, IntArray, WholeNumbers]] = [(0, 0, there, ones)]
    # Of every side of the bound the largest ratio, and the stage where it is.
    worst: dict[str, tuple[Fraction, int]] = {}
    decided, holds, impossible = 0, True, False
    while left:
        number, place, rows, weights = left.pop()
        stage = protocol.stages[number]
        channel, following = stage.classes[place]
        table, inputs = tables[number][channel], readings[number][rows]
        if not table[:, inputs].any(axis=0).all():
            raise SolverError("a class of a grouped protocol has records that its channel is not made for")
        # All who draw for one input draw by the same weights: they are added up once for all outputs.
        there, behind = _by_input(counts[:, rows], weights, inputs)
        for row, after in zip(table, following, strict=True):
            drawn = row[there]
            if not drawn.any():
                continue
            decided += 1
            sums = [int(one) for one in behind @ drawn.astype(object)]
            for side, ratio in _ratios(sums, prior, allowed):
                if ratio is None:
                    impossible, holds = True, False
                elif ratio > worst.get(side, (1, 0))[0]:
                    worst[side] = ratio, number
            if holds:
                holds = allowed.within_exactly(np.array(sums, dtype=object)[:, None], prior)
            if after != SILENT:
                of_rows = row[inputs]
                some = np.flatnonzero(of_rows)
                left.append((number + 1, after, rows[some], weights[some] * of_rows[some].astype(object)))
    levels = [(_nats(guarantee, side, ratio), stage) for side, (ratio, stage) in worst.items()]
    level, at = max(levels, default=(0.0, 0))
    return Proof(holds, float("inf") if impossible else level, at, decided)


def stage_inputs(joint: Joint, stage: Stage) -> IntArray:
    """The input of a stage of every record of a joint law, (r,); -1 where nobody has it and the stage knows none.

    Raises
    ------
    DataError
        If the joint law has other columns, or values that the stage does not know.
    """
    columns = joint.inputs.columns
    wanted = [*stage.columns, *([stage.ahead.column] if stage.ahead else [])]
    if missing := [column for column in wanted if column not in columns]:
        raise DataError(f"the joint law has no column {missing[0]!r}, which the protocol reads")
    symbols = joint.inputs.symbols
    known = {symbol: x * stage.folds for x, symbol in enumerate(stage.symbols)}
    of_columns = [[symbol[place] for symbol in symbols] for place in map(columns.index, stage.columns)]
    inputs = np.array([known.get(texts, -1) for texts in zip(*of_columns, strict=True)], dtype=np.int64)
    if stage.ahead is not None:
        classes = dict(zip(stage.ahead.values, stage.ahead.classes, strict=True))
        ahead = columns.index(stage.ahead.column)
        places = np.array([classes.get(symbol[ahead], -1) for symbol in symbols], dtype=np.int64)
        inputs = np.where((inputs >= 0) & (places >= 0), inputs + places, -1)
    if (joint.counts.any(axis=0) & (inputs < 0)).any():
        raise DataError(
            f"the joint law has values of {', '.join(wanted)} that the protocol does not know; make it for this table"
        )
    return inputs


def _by_input(counts: IntArray, weights: WholeNumbers, inputs: IntArray) -> tuple[IntArray, WholeNumbers]:
    """The inputs (k,) that some records have, and who is behind each, up to a factor: Σ_r n(s, r) w(r), (c, k)."""
    order = np.argsort(inputs, kind="stable")
    there, starts = np.unique(inputs[order], return_index=True)
    behind = np.zeros((len(counts), len(there)), dtype=object)
    for s, row in enumerate(counts[:, order]):
        behind[s] = np.add.reduceat(row.astype(object) * weights[order], starts)
    return there, behind


def _ratios(sums: list[int], prior: IntArray, allowed: Allowed) -> Iterator[tuple[str, Fraction | None]]:
    """The ratios that levels are logarithms of, by the side of the bound; None for an infinite one."""
    lifts = [Fraction(part, int(size)) for part, size in zip(sums, prior.tolist(), strict=True)]
    middle = Fraction(sum(sums), int(prior.sum()))
    most, least = max(lifts), min(lifts)
    if allowed.apart is not None:
        yield "apart", most / least if least else None
    if allowed.up is not None:
        yield "up", most / middle
    if allowed.down is not None:
        yield "down", middle / least if least else None


def _nats(guarantee: PosteriorGuarantee, side: str, ratio: Fraction) -> float:
    """The level of a ratio; of two budgets the larger one, while they keep their proportion."""
    nats = log_above(ratio)
    return guarantee.scaled(nats, getattr(guarantee.sides, side)) if isinstance(guarantee, ALIP) else nats
