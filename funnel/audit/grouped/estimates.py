"""How exactly columns and pairs of a release of groups can be estimated, computed a second time from its public files.

`funnel.estimation.grouped_errors` finds estimates with short intervals by majorisation, one after the other. Here the
same programme is solved by a path of smoothed ones, all estimates of a table at once, and intervals are those of
normal laws that are off. Both come near the one least length there is, and so near each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import qr, solve_triangular
from scipy.special import ndtr, ndtri

from funnel.audit.grouped.figures import step_of
from funnel.joint import FloatArray
from funnel.recount.grouped_text import GroupedText, members_of

Texts = tuple[str | None, ...]
Line = tuple[Texts, Texts, Texts, float, float]
"""Columns, true values and published texts, two of each or one and None; share of the input, and probability."""

FEW = "(values of few records)"
_FEWEST = 500
# Room of 95 % on both sides, and what a standard error of drawing weighs beside rounding, as documented.
_BOTH, _QUANTILE = 0.975, 2.0
_SMOOTHED = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
_STEPS = 6
_NORM = 8
# An error of drawing is at least that of so many records.
_DRAWN = 1e-3
_MISSED = 1e-7
# What is left of a column, of the longest one, where it depends on others.
_DEPENDENT = 1e-10
# How far the ends of a first and a second computation of the shortest interval may be apart, and what two digits add.
ROOM = 1.12
_UP = 1.1 * ROOM + 1e-6
# What is told of nothing.
_LEAST = 1e-9
_ROWS = 30
# Larger tables are told nothing of.
_MOST_WORK = 1e9


@dataclass(frozen=True, eq=False)
class TableAgain:
    """Of one column, or of two crossed.

    Attributes
    ----------
    columns : tuple of str
    cells : tuple of tuple of str
        Names of the cells.
    shares : ndarray, shape (cells,)
    half : ndarray, shape (cells,)
        Half of the length of the interval of 95 % that is expected; infinite where no estimate is without bias.
    """

    columns: tuple[str, ...]
    cells: tuple[Texts, ...]
    shares: FloatArray
    half: FloatArray

    @property
    def errors(self) -> FloatArray:
        """The standard errors that would make intervals as long."""
        return np.asarray(self.half / ndtri(_BOTH))

    def untold(self, room: float) -> npt.NDArray[np.bool_]:
        """Whether the interval of a cell would be all there is, were it longer by some factor."""
        return np.asarray(self.half * room >= np.maximum(self.shares, 1 - self.shares))


class Estimates:
    """What the effective channels of a release tell of shares.

    Parameters
    ----------
    lines : sequence of lines
        Of ``channels.parquet``.
    text : GroupedText
    records : int
    """

    def __init__(self, lines: Sequence[Line], text: GroupedText, records: int) -> None:
        self._lines: dict[Texts, list[Line]] = {}
        for line in lines:
            self._lines.setdefault(line[0], []).append(line)
        self._text, self.records = text, records
        self._values = {column: stage.values[j] for stage in text.stages for j, column in enumerate(stage.columns)}
        self._means: Mapping[str, dict[str, frozenset[str]]] = {
            column: {one: frozenset(members_of(one, self._values[column])) for one in texts}
            for column, texts in text.texts.items()
        }

    @property
    def columns(self) -> tuple[str, ...]:
        """As they are published."""
        return self._text.columns

    @cached_property
    def tables(self) -> dict[tuple[str, ...], TableAgain | None]:
        """Every column, then every two, but for those that are too large; None where nothing is told of them."""
        columns = self._text.columns
        wanted: list[tuple[str, ...]] = [(column,) for column in columns]
        return {some: self.table(some) for some in [*wanted, *combinations(columns, 2)] if not self._is_large(some)}

    def _is_large(self, columns: tuple[str, ...]) -> bool:
        lines = self._of(columns)
        inputs, outputs = {line[1] for line in lines}, {line[2] for line in lines if line[2][0] is not None}
        return float(len(inputs)) ** 3 * len(outputs) > _MOST_WORK

    def _of(self, columns: tuple[str, ...]) -> list[Line]:
        return self._lines.get(columns if len(columns) > 1 else (columns[0], None), [])

    def table(self, columns: tuple[str, ...], together: Sequence[Sequence[str]] = ()) -> TableAgain | None:
        """Of some columns; of a single one also of sums of its values, which come after the cells."""
        lines = self._of(columns)
        if not lines:
            return None
        width = len(columns)
        inputs = list(dict.fromkeys(line[1] for line in lines))
        outputs = [shown for shown in dict.fromkeys(line[2] for line in lines) if shown[0] is not None]
        channel, shares = np.zeros((len(outputs), len(inputs))), np.zeros(len(inputs))
        for _, true, shown, share, probability in lines:
            x = inputs.index(true)
            shares[x] = share
            if shown[0] is not None:
                channel[outputs.index(shown), x] = probability
        may = np.array(
            [
                [
                    true[0] is None
                    or all(
                        value in self._means[column].get(str(one), frozenset())
                        for column, one, value in zip(columns, shown[:width], true[:width], strict=True)
                    )
                    for true in inputs
                ]
                for shown in outputs
            ],
            dtype=np.bool_,
        ).reshape(channel.shape)
        step, n = step_of(self.records), self.records
        least = np.where(shares > 1.5 * step, shares - step / 2, 0.0)
        few = max(_FEWEST, self._text.people)
        whole = channel.sum(axis=0) > 1 - 1e-6
        off = np.array([step_of(int(max(few, least[x] * n))) * (1.0 if whole[x] else 0.5) for x in range(len(inputs))])
        slack = (may * off) @ (shares + step / 2)
        left_out, beyond = 0.0, np.zeros(len(outputs), dtype=np.bool_)
        every = int(np.prod([len(self._values[column]) for column in columns]))
        if not any(true[0] is None for true in inputs) and len(inputs) < every:
            left_out = min(max(1 - float(least.sum()), 0.0), few / n)
        if left_out > 0:
            known = {true[:width] for true in inputs}
            beyond = np.array(
                [
                    any(
                        some not in known
                        for some in product(
                            *(
                                self._means[column].get(str(one), frozenset())
                                for column, one in zip(columns, shown[:width], strict=True)
                            )
                        )
                    )
                    for shown in outputs
                ],
                dtype=np.bool_,
            )
        names = tuple((FEW,) * width if true[0] is None else true[:width] for true in inputs)
        aims = np.eye(len(inputs))
        if together:
            sums = [[1.0 if str(name[0]) in group else 0.0 for name in names] for group in together]
            aims = np.vstack([aims, np.array(sums)])
        law = shares / shares.sum()
        half = _half_lengths(channel, law, slack, aims, n, left_out, beyond)
        return TableAgain(columns, names, aims @ law, half)


def _half_lengths(
    channel: FloatArray,
    law: FloatArray,
    slack: FloatArray,
    aims: FloatArray,
    n: int,
    left_out: float,
    beyond: npt.NDArray[np.bool_],
) -> FloatArray:
    """Half of the length (k,) of the shortest interval of 95 % of each aim (k, a) that is found."""
    b = len(channel)
    spread, mean = (np.maximum(channel @ law, 1 / n) + slack) / n, aims @ law
    shown = np.append(beyond, True) & (left_out > 0)
    found = np.full(len(aims), np.inf)
    cost = np.tile(spread / np.sqrt(spread.sum() / max(b, 1)) + slack, (len(aims), 1))
    pull, centre = np.zeros((len(aims), b + 1)), np.zeros(len(aims))
    met = _Met(channel, aims)
    for smooth in _SMOOTHED:
        for _ in range(_STEPS):
            weights = met.least(cost, pull, centre, mean)
            w, ends = weights[:, :b], _ends(weights) * shown
            missed = np.abs(w @ channel + weights[:, b:] - aims).max(axis=1)
            half = np.where(
                missed <= _MISSED * np.maximum(1.0, np.abs(weights).max(axis=1)),
                _room(weights, channel, law, slack, n, left_out * ends.max(axis=1)),
                np.inf,
            )
            found = np.minimum(found, half)
            certain = ((aims - weights[:, b:]) ** 2) @ law / n
            centre = _QUANTILE / (n * np.sqrt(np.maximum((w**2) @ spread - certain, (_DRAWN / n) ** 2)))
            cost = centre[:, None] * n * spread + slack / np.sqrt(w**2 + smooth**2)
            if left_out > 0:
                largest = np.maximum(ends.max(axis=1), 1e-12)[:, None]
                norm = largest * np.maximum(((ends / largest) ** _NORM).sum(axis=1, keepdims=True), 1.0) ** (1 / _NORM)
                pull = (pull + left_out * (ends / norm) ** (_NORM - 2) / norm) / 2
    return found


class _Met:
    """Weights and constants (b + 1) that meet the equations of aims (k, a), of least costs.

    ``A = [W; 1]`` takes weights and a constant z to what they are on average, ``Aᵀ z = m``. With pivoted columns
    ``A P = Q R`` of rank r the columns but the first r are combinations of these, so for an aim that can be met at all
    the equations of these r inputs, ``R₁ᵀ Qᵀ z = m₁``, say all that there is to say: the system has full rank. Whether
    an aim can be met is seen when its weights are held against all inputs.
    """

    def __init__(self, channel: FloatArray, aims: FloatArray) -> None:
        b = len(channel)
        basis, triangle, order = qr(np.vstack([channel, np.ones(channel.shape[1])]), mode="economic", pivoting=True)
        sizes = np.abs(np.diag(triangle))
        rank = int((sizes > _DEPENDENT * sizes[0]).sum())
        self._basis, self._last = basis[:b, :rank], basis[b, :rank]
        self._aims = solve_triangular(triangle[:rank, :rank], aims[:, order[:rank]].T, trans="T").T
        # The products of any two directions, once each: systems for all costs are one product with them.
        self._pairs = np.tril_indices(rank)
        self._products = self._basis[:, self._pairs[0]] * self._basis[:, self._pairs[1]]

    def least(self, cost: FloatArray, pull: FloatArray, centre: FloatArray, mean: FloatArray) -> FloatArray:
        """Weights and a constant (k, b + 1) for each aim, of least ``cost w² + pull (w + c)²``.

        Less ``centre (c - mean)²``, which is what the answers of all true values vary among each other.
        """
        (k, b), r = cost.shape, len(self._last)
        # In units in which all numbers of the system are about one.
        unit = np.exp(np.log(cost).sum(axis=1, keepdims=True) / max(b, 1)) / max(b, 1)
        cost, pull, centre = cost / unit, pull / unit, centre / unit[:, 0]
        inverse, apart = 1 / (cost + pull[:, :b]), pull[:, :b]
        system, right = np.empty((k, r + 1, r + 1)), np.empty((k, r + 1, 1))
        first, second = self._pairs
        system[:, first, second] = system[:, second, first] = inverse @ self._products
        system[:, :r, r] = system[:, r, :r] = self._last - (apart * inverse) @ self._basis
        system[:, r, r] = (apart**2 * inverse).sum(axis=1) - pull.sum(axis=1) + centre
        right[:, :r, 0], right[:, r, 0] = self._aims, centre * mean
        solved = np.linalg.solve(system, right)[:, :, 0]
        constant = solved[:, r:]
        return np.hstack([(solved[:, :r] @ self._basis.T - apart * constant) * inverse, constant])


def _ends(weights: FloatArray) -> FloatArray:
    """What one more record adds by what it shows (k, b + 1); at the end all that is not told."""
    return np.abs(np.hstack([weights[:, :-1], np.zeros((len(weights), 1))]) + weights[:, -1:])


def _room(
    weights: FloatArray, channel: FloatArray, law: FloatArray, slack: FloatArray, n: int, beside: FloatArray
) -> FloatArray:
    """So long that a normal estimate that may be off is within it of the truth in 95 % of cases."""
    w = weights[:, :-1]
    means = w @ channel
    variance = np.maximum(0.0, (w**2) @ (channel @ law) - (means**2) @ law) / n + (w**2) @ slack / n
    error, off = np.sqrt(variance), np.abs(w) @ slack + beside
    # Bisection on the probability of being within; where nothing is drawn it is the bias.
    low, high = off, off + ndtri(_BOTH) * error
    at = 1 / np.maximum(error, 1e-300)
    for _ in range(50):
        middle = (low + high) / 2
        inside = ndtr((middle - off) * at) - ndtr(-(middle + off) * at)
        low, high = np.where(inside < 0.95, middle, low), np.where(inside < 0.95, high, middle)
    return np.asarray(high)


def estimate_complaints(told: Sequence[Mapping[str, Any]], estimates: Estimates) -> Iterator[str]:
    """Whether the errors of estimates that a report tells are those of its public files.

    Parameters
    ----------
    told : sequence of mapping
        ``estimated`` of ``report.json``.
    estimates : Estimates
    """
    tables = estimates.tables
    if [tuple(one["columns"]) for one in told] != list(tables):
        yield "errors of estimates are not told of every column and every two of them"
        return
    for one, (columns, table) in zip(told, tables.items(), strict=True):
        named = " × ".join(columns)
        cells = () if table is None else table.cells
        if one["cells"] != len(cells):
            yield f"of {named} {one['cells']!r} cells are told of, and there are {len(cells)}"
        elif table is None:
            if one["typical"] is not None or one["largest"] is not None or one["unknown"] or one["rows"] or one["sums"]:
                yield f"errors of {named} are told, of which nothing is known"
        else:
            yield from (f"{said} of {named}" for said in _table_complaints(one, table))
            if len(columns) == 1:
                yield from (f"{said} of {named}" for said in _sum_complaints(one["sums"], table, estimates))


def _table_complaints(told: Mapping[str, Any], table: TableAgain) -> Iterator[str]:
    """Of the cells of one table; whether a cell can be told is open where that is near to be."""
    surely, maybe = table.untold(1 / ROOM), table.untold(ROOM)
    if not surely.sum() <= told["unknown"] <= maybe.sum():
        yield f"{told['unknown']!r} cells cannot be told, it says,"
    known = np.sort(table.errors[~maybe]), np.sort(table.errors[~surely])
    for name in ("typical", "largest"):
        low, high = (
            None if not len(errors) else float(np.median(errors) if name == "typical" else errors[-1])
            for errors in known
        )
        if surely.sum() == maybe.sum():
            wrong = not _is_near(told[name], low, high)
        else:
            # With a cell more or less the median is between its neighbours, too.
            wrong = told[name] is not None and (high is None or not told[name] <= float(known[1][-1]) * _UP)
        if wrong:
            yield f"the {name} error is told as {told[name]!r}, which does not follow,"
    if len(table.cells[0]) > 1:
        if told["rows"] or told["sums"]:
            yield "errors of single cells are told"
        return
    errors = {str(cell[0]): place for place, cell in enumerate(table.cells)}
    if len(told["rows"]) != min(_ROWS, len(errors)) or len({row["label"] for row in told["rows"]}) != len(told["rows"]):
        yield "errors are not told of the most common values"
    for row in told["rows"]:
        place = errors.get(row["label"])
        if place is None:
            yield f"{row['label']!r} is no value"
        elif row["error"] is None:
            if not maybe[place]:
                yield f"the error of {row['label']!r} is not told"
        elif surely[place] or not _is_near(row["error"], float(table.errors[place]), float(table.errors[place])):
            yield f"the error of {row['label']!r} is told as {row['error']!r}, which does not follow,"


def _is_near(stated: object, low: float | None, high: float | None) -> bool:
    """Whether an error is that of a second computation, to two digits and rounded up."""
    if stated is None or low is None or high is None:
        return stated is None and low is None
    if isinstance(stated, bool) or not isinstance(stated, (int, float)):
        return False
    return low / ROOM - _LEAST <= stated <= high * _UP + _LEAST and float(f"{stated:.1e}") == stated


def _sum_complaints(told: Sequence[Sequence[str]], table: TableAgain, estimates: Estimates) -> Iterator[str]:
    """Values that are said to be told only in sum: none of them can be, and their sum can."""
    maybe, surely = table.untold(ROOM), table.untold(1 / ROOM)
    names = [str(cell[0]) for cell in table.cells]
    if not told:
        if surely.sum() == len(names) > 1:
            yield "it is not said that nothing is told"
        return
    if len(told) > 1:
        yield "more than one sum is told"
    group = set(told[0])
    if not {name for name, one in zip(names, surely, strict=True) if one} <= group or not group <= {
        name for name, one in zip(names, maybe, strict=True) if one
    }:
        yield "the values that are told in sum are not those that cannot be told"
    elif len(group) < len(names):
        again = estimates.table(table.columns, told)
        if again is None or again.untold(1 / ROOM)[-1]:
            yield "a sum of values is said to be told, and cannot be"
