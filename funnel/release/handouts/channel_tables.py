"""protocol.csv and estimator.csv: the channel as a table, and the weights that turn published shares into estimates."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.estimation.linear import aimed_weights
from funnel.estimation.rare import RareValues
from funnel.joint import FloatArray
from funnel.release.csv_cells import guarded

PROBABILITY = "probability"


def channel_table(protocol: Mapping[str, Any]) -> str:
    """The channel as a csv.

    The columns are the true ones (``true NAME``), the published ones (``published NAME``) and ``probability``, as the
    shortest decimal that is the nearest double. Lines go by true value and then by published one, in the order of
    ``protocol.json``; pairs that cannot occur are left out. Cells that a spreadsheet would run are guarded.

    Parameters
    ----------
    protocol : JSON object
        Content of ``protocol.json``.

    Notes
    -----
    O(entries that are not zero) time and memory.
    """
    inputs, outputs = protocol["inputs"], protocol["outputs"]
    return _table(inputs, outputs, PROBABILITY, likely_pairs(protocol))


def _table(
    inputs: Mapping[str, Any], outputs: Mapping[str, Any], name: str, pairs: Iterable[tuple[int, int, float]]
) -> str:
    """A csv with a number for pairs of a true and a published value, given by their positions."""
    written = io.StringIO()
    # Every text in quotation marks, as in the csv of the records; numbers without.
    writer = csv.writer(written, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    names = [*(f"true {column}" for column in inputs["columns"]), *(f"published {one}" for one in outputs["columns"])]
    writer.writerow([guarded(one) for one in (*names, name)])
    true, published = ([list(map(guarded, symbol)) for symbol in part["symbols"]] for part in (inputs, outputs))
    for x, y, number in pairs:
        writer.writerow([*true[x], *published[y], number])
    return written.getvalue()


def likely_pairs(protocol: Mapping[str, Any]) -> Iterator[tuple[int, int, float]]:
    """Positions of a true and a published value, and the probability of that, where it is not zero; by true value."""
    denominator = int(protocol["denominator"])
    columns: list[list[tuple[int, int]]] = [[] for _ in protocol["inputs"]["symbols"]]
    for y, row in enumerate(protocol["weights"]):
        # Of a wide table only the weights that are not zero are written, by position.
        entries = ((int(x), weight) for x, weight in row.items()) if isinstance(row, dict) else enumerate(row)
        for x, weight in entries:
            if weight != "0":
                columns[x].append((y, int(weight)))
    for x, column in enumerate(columns):
        for y, weight in column:
            yield x, y, weight / denominator


WEIGHT = "weight"
# Values that are published to be more common than this are left for the records to tell.
RARE = 0.0025
# Of values times outputs times the fewer of both; above it there are no lines.
LARGEST = 1e7
_EXACT = 1e-10


def estimator_table(protocol: Mapping[str, Any]) -> str:
    """The weights as a csv: the share of a true value is the sum of weight times published share over its lines.

    Columns as those of ``protocol.csv``, with ``weight`` for the probability, to nine digits: more could be anything.
    The estimates are the unbiased least squares ones with all values alike, of every true value that released records
    can tell. Where values hardly occur and keep others from being told, these are taken to have their published
    share: then that is their weight in all lines.

    Parameters
    ----------
    protocol : JSON object
        Content of ``protocol.json``.

    Notes
    -----
    O(a b min(a, b)), at most `LARGEST`.
    """
    inputs, outputs = protocol["inputs"], protocol["outputs"]
    a, b = len(inputs["symbols"]), len(outputs["symbols"])
    if float(a) * b * min(a, b) > LARGEST:
        return _table(inputs, outputs, WEIGHT, ())
    weights = estimator_weights(protocol)
    return _table(
        inputs, outputs, WEIGHT, ((x, y, float(weights[x, y])) for x, y in np.argwhere(weights != 0).tolist())
    )


def estimator_weights(protocol: Mapping[str, Any]) -> FloatArray:
    """The weights (a, b); a row of zeros for a value that the records cannot tell."""
    a, b = len(protocol["inputs"]["symbols"]), len(protocol["outputs"]["symbols"])
    channel = np.zeros((b, a))
    for x, y, probability in likely_pairs(protocol):
        channel[y, x] = probability
    prior = _prior(protocol)
    candidates = np.array([x for x in np.argsort(prior, kind="stable") if prior[x] <= RARE], dtype=np.int64)
    weights, told = _with_rare(channel, prior, candidates[:0])
    if not told.all() and 0 < len(candidates) < a:
        rare, best = candidates, _with_rare(channel, prior, candidates)
        for x in candidates[::-1]:
            fewer = rare[rare != x]
            without = _with_rare(channel, prior, fewer)
            if without[1].sum() >= best[1].sum():
                rare, best = fewer, without
        if best[1].sum() > told.sum():
            weights = best[0]
    rounded = np.array([float(f"{weight:.9g}") for weight in weights.ravel()]).reshape(a, b)
    rounded[np.abs(rounded) < 1e-12] = 0.0
    return rounded


def _with_rare(
    channel: FloatArray, prior: FloatArray, rare: npt.NDArray[np.int64]
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Weights (a, b) with some values taken to have their published share, and whether each value is told (a,)."""
    values = RareValues(channel, rare, 2 * prior[rare])
    seen, others = values.seen, values.others
    alike = np.full(len(others), 1 / len(others))
    drawn = (outputs := seen @ alike) > 0
    weights, told = np.zeros(channel.T.shape), np.zeros(channel.shape[1], dtype=np.bool_)
    found, some = aimed_weights(seen[drawn], outputs[drawn], alike, np.eye(len(others)))
    # What is told but for a part that would be lost in the errors of an estimate is not told by weights alone.
    off = np.abs(found @ seen[drawn] - np.eye(len(others))).max(axis=1)
    told[others] = some & (off <= _EXACT * np.maximum(1.0, np.abs(found).sum(axis=1)))
    weights[np.ix_(others, drawn)] = values.left * found * told[others, np.newaxis]
    weights[rare], told[rare] = prior[rare, np.newaxis], True
    return weights, told


def _prior(protocol: Mapping[str, Any]) -> FloatArray:
    """Published shares of the inputs (a,); one where there are none, since the protocol reads the secret too."""
    prior, inputs = protocol["prior"], protocol["inputs"]
    known = dict(zip(map(tuple, prior["symbols"]), prior["probabilities"], strict=True))
    same = prior["columns"] == inputs["columns"]
    return np.array([known.get(tuple(symbol), 1.0) if same else 1.0 for symbol in inputs["symbols"]])
