"""How exactly a report says that shares can be estimated, held against least squares on the weights and shares."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from funnel.alphabet import SEPARATOR
from funnel.pipeline.expectations.claims import Claim, claim, same
from funnel.recount.channel import alike, entries_of
from funnel.recount.noisy_moves import RECORD
from funnel.recount.plain_distributions import Distributions, Symbol, share_step

# Where a second computation would take longer than all the rest of the judgement, and the first is not made either.
_MOST_WORK = 1e9
# As documented: directions with less than this part of the largest singular value tell nothing; of the square of the
# length of a cell as much may lie outside of what is told; and a smaller part of the share of a cell than the last, as
# what drawing adds to the variance of one record, is none.
_CUT, _MISSED, _NOTHING_ADDED = 1e-5, 1e-5, 1e-13

Floats = NDArray[np.float64]


class Estimating:
    """What n records drawn from a channel tell of shares.

    Parameters
    ----------
    distribution : sequence of (a sequence of b numbers)
        P(y|x) of every true value x that occurs, in proportion.
    shares : sequence of a numbers
        Of these values, in proportion.
    n : int
        Records.
    noise : float
        Variance of what is taken off the share of every output.

    Notes
    -----
    An estimate of ``mᵀp`` is ``wᵀ`` (shares of outputs) with ``Qᵀ w = m``; the one of least variance under multinomial
    outputs has the least ``Σ q w²``, up to what all shares together add. What is taken off adds up to nothing, so of b
    outputs its noise adds ``noise (Σ w² - (Σ w)² / b)``.
    """

    def __init__(
        self, distribution: Sequence[Sequence[float]], shares: Sequence[float], n: int, noise: float = 0.0
    ) -> None:
        channel: Floats = np.array(distribution, dtype=np.float64).T
        channel /= channel.sum(axis=0)
        self.shares: Floats = np.array(shares, dtype=np.float64) / np.sum(shares)
        outputs = channel @ self.shares
        self._noise, self._b = noise, len(outputs)
        channel, outputs = channel[outputs > 0], outputs[outputs > 0]
        self._roots: Floats = np.sqrt(outputs)
        self._scaled: Floats = (channel / np.sqrt(outputs)[:, None] * np.sqrt(self.shares)).T
        self._n = n

    @property
    def too_much(self) -> bool:
        """Whether nothing is told of so many values and outputs."""
        a, b = self._scaled.shape
        return bool(float(a) * b * min(a, b) > _MOST_WORK)

    @property
    def least(self) -> float:
        """The largest error that may be told as none: a smaller one cannot be told from the rounding of variances."""
        return float(np.sqrt(_NOTHING_ADDED / self._n))

    def errors(self, cells: Sequence[Sequence[int]]) -> list[float | None]:
        """Of the shares of cells, each a list of values: what drawing and noise add; None where it cannot be told."""
        found, missed = self._solved(cells)
        told: list[float | None] = []
        for place, members in enumerate(cells):
            share = float(self.shares[members].sum())
            variance = float(found[:, place] @ found[:, place]) - share**2
            added = variance - share * (1 - share)
            drawn = added / self._n if added >= _NOTHING_ADDED * share else 0.0
            weights = (found[:, place] / self._roots).tolist()
            taken = self._noise * max(0.0, math.fsum(w * w for w in weights) - math.fsum(weights) ** 2 / self._b)
            told.append(None if missed[place] > _MISSED * share else math.sqrt(drawn + taken))
        return told

    def can_be_estimated(self, members: Sequence[int], others: int) -> bool:
        """Whether the share of all these values together can be told.

        The share of all values can be, so that of these lies as far outside of what is told as that of all others. Of a
        cell that can be told a part of at most ``_MISSED`` does, and the parts of m cells add up to at most m times
        their sum (Cauchy and Schwarz).

        Parameters
        ----------
        members : sequence of int
        others : int
            m, how many cells can be told alone.
        """
        _, (missed,) = self._solved([members])
        share = float(self.shares[list(members)].sum())
        return bool(missed <= _MISSED * max(share, others * (1 - share)))

    def _solved(self, cells: Sequence[Sequence[int]]) -> tuple[Floats, Floats]:
        """Weights (b, cells) for outputs, in units of the roots of their shares, and what they miss of each cell."""
        aims = np.zeros((len(self.shares), len(cells)))
        for place, members in enumerate(cells):
            aims[list(members), place] = np.sqrt(self.shares[list(members)])
        found, *_ = np.linalg.lstsq(self._scaled, aims, rcond=_CUT)
        missed: Floats = ((self._scaled @ found - aims) ** 2).sum(axis=0, dtype=np.float64)
        return np.asarray(found, dtype=np.float64), missed


# Figures are told to two digits, rounded up, and rows of the most common values alone.
_UP = 1.1 + 1e-6
_MOST_ROWS = 30


class _Counting:
    """What n records of an invariant protocol tell of shares that are counted in them; as `Estimating`."""

    too_much = False

    def __init__(self, rows: Sequence[Mapping[int, float]], places: Sequence[int], shares: Sequence[float], n: int):
        self._rows, self._places, self._shares, self._n = rows, places, shares, n
        # The error of a share whose variance is nothing but the rounding of sums of probabilities.
        self.least = 1e-6 / math.sqrt(n)

    def errors(self, cells: Sequence[Sequence[int]]) -> list[float | None]:
        """Of the shares of cells, each a list of values: the count of one is a sum of independent answers."""
        found: list[float | None] = []
        whole = math.fsum(self._shares)
        for members in cells:
            outputs = {self._places[x] for x in members}
            inside = [math.fsum(p for y, p in row.items() if y in outputs) for row in self._rows]
            spread = math.fsum(share * p * max(0.0, 1 - p) for share, p in zip(self._shares, inside, strict=True))
            found.append(math.sqrt(spread / whole / self._n))
        return found

    def can_be_estimated(self, members: Sequence[int], others: int) -> bool:
        """Every share is."""
        return bool(members)


def accuracy_claims(
    numbers: Mapping[str, Any],
    distributions: Distributions,
    records: int,
    counted: bool = False,
    departures: float | None = None,
) -> Iterator[Claim]:
    """What holds of the errors that ``report.json`` tells; all of them follow from rounded shares.

    ``records`` are published, of people with several rows more than the distributions are of. ``counted`` is whether
    the protocol is invariant: then shares are counted in the records as they are. ``departures`` is the scale of the
    noise in departures, in parts of a record, where they are taken off first.
    """
    stated, tables = numbers["accuracy"], numbers["estimated"]
    # Of a wide table nothing is told, and no table is made to find that out.
    estimating: Estimating | _Counting | None
    symbols, estimating = (
        ([], None) if distributions.released.sparse else _estimating(distributions, records, counted, departures)
    )
    if estimating is None or estimating.too_much:
        yield same("accuracy", stated, None)
        yield same("estimated", list(tables), [])
        return
    yield claim("accuracy", stated is not None, "is not told")
    if stated is not None:
        errors = estimating.errors([[x] for x in range(len(symbols))])
        known = dict(zip((SEPARATOR.join(symbol) for symbol in symbols), errors, strict=True))
        for row in stated["rows"]:
            # What does not occur is told of elsewhere to be no value.
            yield _near(f"error of {row['label']!r}", row["error"], known.get(row["label"]), estimating.least)
        yield same("unknown", stated["unknown"], errors.count(None))
    columns = distributions.recount.published_columns
    crossed = [*((column,) for column in columns), *combinations(columns, 2)]
    told_of = [tuple(table["columns"]) for table in tables]
    yield claim("tables", told_of == crossed, "are not every column and every two of them")
    if told_of == crossed:
        for table in tables:
            yield from _table(table, [columns.index(column) for column in table["columns"]], symbols, estimating)


def utility_share(distributions: Distributions, counted: bool) -> float:
    """The share of the records that would tell as much as they are, of all tables of one and two published columns.

    From the public counts as they are, which the choice of a mechanism is made from. ``counted`` is as of
    `accuracy_claims`.
    """
    columns, n = distributions.recount.published_columns, distributions.recount.rows
    read = [symbol for symbol, count in distributions.reads.items() if count]
    entries = [dict(entries_of(distributions.weights.get(symbol, distributions.released.marginal))) for symbol in read]
    known = _known(distributions, read, entries, [distributions.reads[symbol] / n for symbol in read], n, counted)
    first = len(read[0]) - len(columns)
    sampled = added = 0.0
    for places in [*((place,) for place in range(len(columns))), *combinations(range(len(columns)), 2)]:
        cells = alike(read, [first + place for place in places])
        shares = [sum(distributions.reads[read[x]] for x in members) / n for members in cells.values()]
        errors = known.errors(list(cells.values()))
        if None in errors:
            return 0.0
        sampled += sum(share * (1 - share) for share in shares)
        added += sum(n * error**2 for error in errors if error is not None)
    return sampled / (sampled + added) if sampled > 0 else 1.0


def _estimating(
    distributions: Distributions, records: int, counted: bool, departures: float | None
) -> tuple[list[Symbol], Estimating | _Counting]:
    """The values that occur, and what records tell of their shares as they are published."""
    n = distributions.recount.rows
    step = share_step(n)

    def rounded(share: float) -> float:
        return max(1, round(round(share / step, 9))) * step if share > 0 else 0.0

    symbols = [symbol for symbol, count in distributions.inputs.items() if count]
    shares = [rounded(distributions.inputs[symbol] / n) for symbol in symbols]
    if distributions.reads_secret:
        entries = [{y: rounded(mass) for y, mass in distributions.pairs[symbol].items()} for symbol in symbols]
    else:
        entries = [
            dict(entries_of(distributions.weights.get(symbol, distributions.released.marginal))) for symbol in symbols
        ]
    # Of noise with P(k) in proportion to exp(-|k| / scale).
    noise = 0.0 if departures is None else 0.5 / (math.sinh(0.5 / departures) * records * RECORD) ** 2
    return symbols, _known(distributions, symbols, entries, shares, records, counted, noise)


def _known(
    distributions: Distributions,
    symbols: Sequence[Symbol],
    entries: Sequence[Mapping[int, float]],
    shares: Sequence[float],
    n: int,
    counted: bool,
    noise: float = 0.0,
) -> Estimating | _Counting:
    """What n records tell of the shares of values, each with what it becomes."""
    if counted:
        place = {symbol: y for y, symbol in enumerate(distributions.released.outputs)}
        rows = [{y: weight / distributions.released.denominator for y, weight in one.items()} for one in entries]
        return _Counting(rows, [place[symbol] for symbol in symbols], shares, n)
    return Estimating([_spread(one, len(distributions.released.outputs)) for one in entries], shares, n, noise)


def _spread(entries: Mapping[int, float], width: int) -> list[float]:
    """Numbers at their places, and zeros."""
    row = [0.0] * width
    for y, number in entries.items():
        row[y] = float(number)
    return row


def _table(
    table: Mapping[str, Any], places: Sequence[int], symbols: Sequence[Symbol], estimating: Estimating | _Counting
) -> Iterator[Claim]:
    name = " × ".join(table["columns"])
    cells = alike(symbols, places)
    errors = dict(zip(cells, estimating.errors(list(cells.values())), strict=True))
    told, least = [error for error in errors.values() if error is not None], estimating.least
    yield same(f"cells of {name}", table["cells"], len(cells))
    yield same(f"unknown of {name}", table["unknown"], len(cells) - len(told))
    yield _near(f"typical error of {name}", table["typical"], statistics.median(told) if told else None, least)
    yield _near(f"largest error of {name}", table["largest"], max(told) if told else None, least)
    if len(places) > 1:
        yield same(f"rows of {name}", [len(table["rows"]), len(table["sums"])], [0, 0])
        return
    yield same(f"rows of {name}", len(table["rows"]), min(_MOST_ROWS, len(cells)))
    for row in table["rows"]:
        symbol = (row["label"],)
        if symbol not in errors:
            yield Claim(f"{name} {row['label']!r}", "does not occur")
        else:
            yield _near(f"error of {name} {row['label']!r}", row["error"], errors[symbol], least)
    in_sums = [(value,) for group in table["sums"] for value in group]
    untold = [symbol for symbol, error in errors.items() if error is None]
    yield claim(f"sums of {name}", sorted(in_sums) == sorted(untold), "are not of the values that cannot be told")
    for group in table["sums"]:
        members = [x for value in group for x in cells.get((value,), [])]
        yield claim(
            f"sum in {name}", bool(members) and estimating.can_be_estimated(members, len(told)), "cannot be told either"
        )


def _near(name: str, stated: object, exact: float | None, least: float) -> Claim:
    """That an error is told where there is one: to two digits, rounded up, give or take the least that is told."""
    if exact is None or stated is None or isinstance(stated, bool) or not isinstance(stated, (int, float)):
        return claim(name, stated is None and exact is None, f"is {stated!r}, which does not follow from the weights")
    holds = exact * (1 - 1e-6) - least <= stated <= exact * _UP + least and float(f"{stated:.1e}") == stated
    return claim(name, holds, f"is {stated!r}, which does not follow from the weights")
