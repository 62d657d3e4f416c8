"""Telling: what every stage of a grouped protocol adds, and who draws by weights that several combinations have."""

from __future__ import annotations

import numpy as np

from funnel.groups.library import information
from funnel.groups.pooling import shared_rows
from funnel.groups.protocol import BITS, SILENT, GroupedProtocol
from funnel.groups.prove import stage_inputs
from funnel.joint import FloatArray, IntArray, Joint


def told_by(joint: Joint, protocol: GroupedProtocol) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """I(X; Y | outputs before) of every stage, nats; and the share of people who share a row of weights there.

    Raises
    ------
    DataError
        If the joint law is not over the columns and values of the protocol.
    """
    readings = [stage_inputs(joint, stage) for stage in protocol.stages]
    people = joint.counts.sum(axis=0).astype(np.float64)
    told, shared = [0.0] * len(protocol.stages), [0.0] * len(protocol.stages)
    there = np.flatnonzero(people)
    left: list[tuple[int, int, IntArray, FloatArray]] = [(0, 0, there, np.ones(len(there)))]
    while left:
        number, place, rows, shows = left.pop()
        stage = protocol.stages[number]
        channel, following = stage.classes[place]
        weights = stage.channels[channel].table(stage.size)
        table = np.ldexp(weights.astype(np.float64), -BITS)
        inputs = readings[number][rows]
        behind = np.bincount(inputs, people[rows] * shows, stage.size).astype(np.float64)
        told[number] += information(table, behind[None])
        if len(weights) > 1:
            shared[number] += float(behind[shared_rows(weights, stage.folds)].sum())
        for row, after in zip(table, following, strict=True):
            some = np.flatnonzero(row[inputs])
            if after != SILENT and len(some):
                left.append((number + 1, after, rows[some], shows[some] * row[inputs[some]]))
    return tuple(one / joint.n for one in told), tuple(one / joint.n for one in shared)
