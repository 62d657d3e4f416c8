"""EffectiveChannels: what is told of columns that were published in groups, and how far rounding may have moved it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.errors import SpecError
from funnel.estimation.affine import AffineEstimates, shortest
from funnel.joint import FloatArray

Row = tuple[str | None, str | None, str | None, str | None, str | None, str | None, float, float]
"""Two columns, or one and None; their true values, None for those that few records have together; the published texts,
None for all that are not told; the share of the records with these values, and the probability of these texts."""

FEW = "(values of few records)"
# Probabilities of an input that add up to so much leave nothing that is not told.
_WHOLE = 1 - 1e-6


@dataclass(frozen=True, eq=False)
class ToldChannel:
    """The channel of one column, or of two together, as it is told.

    Attributes
    ----------
    columns : tuple of str
    inputs : tuple of tuple of str
        The a true values, or pairs of them, that are told of; `FEW` in every column stands for all that few records
        have.
    outputs : tuple of tuple of str
        The b published texts that are told for any input. All others are one more, which is the last row of `matrix`.
    matrix : ndarray, shape (b + 1, a)
        Rounded probabilities; columns sum to one.
    possible : ndarray of bool, shape (b, a)
        Whether an output can be that of an input at all: no text leaves out the true value.
    off : ndarray, shape (b, a)
        The probabilities are at most so far from those that are told.
    shares : ndarray, shape (a,)
        Of the records with each input, rounded.
    step : float
        Shares are at most half of it off.
    left_out : float
        The largest share of records that have none of the inputs, since too few have what they have.
    beyond : ndarray of bool, shape (b,)
        Outputs that these records may show, besides those that are not told.
    records : int
    """

    columns: tuple[str, ...]
    inputs: tuple[tuple[str, ...], ...]
    outputs: tuple[tuple[str, ...], ...]
    matrix: FloatArray
    possible: npt.NDArray[np.bool_]
    off: FloatArray
    shares: FloatArray
    step: float
    left_out: float
    beyond: npt.NDArray[np.bool_]
    records: int

    @property
    def slack(self) -> FloatArray:
        """By how much the share of every output (b,) can be off that the true shares and `matrix` lead one to expect.

        ``Σ_x p(x) |W(y|x) - told| <= Σ_x p(x) off``, with the largest share that every input can have.
        """
        return np.asarray((self.off * self.possible) @ (self.shares + self.step / 2))

    @cached_property
    def estimates(self) -> AffineEstimates:
        """Of every input, from shares of the outputs: what is published alone says which, and no record."""
        return self.estimates_of(np.eye(len(self.inputs)))

    def estimates_of(self, aims: FloatArray) -> AffineEstimates:
        """The same of weighted sums of inputs, told by weights (k, a) between -1 and 1."""
        named, prior = self.matrix[:-1], self.shares / self.shares.sum()
        return shortest(named, prior, self.slack, aims, self.records, self.left_out, self.beyond)


@dataclass(frozen=True, eq=False)
class EffectiveChannels:
    """The effective channels of a release of groups, as its public files tell them: `funnel.open_release` reads them.

    Attributes
    ----------
    columns : tuple of str
        Published ones.
    rows : sequence of rows
        Of ``channels.parquet``.
    meant : mapping of column to mapping of text to frozenset of str
        Of every text that may be published of a column the true values that it may stand for.
    records : int
        Of the release.
    fewest : int
        Values that fewer records have are told of together, and not at all where all of them are fewer.

    Examples
    --------
    >>> import funnel
    >>> rows = [("c", None, "u", None, "u", None, 0.4, 0.9), ("c", None, "u", None, "any", None, 0.4, 0.1),
    ...         ("c", None, "v", None, "v", None, 0.6, 0.7), ("c", None, "v", None, "any", None, 0.6, 0.3)]
    >>> meant = {"c": {"u": frozenset("u"), "v": frozenset("v"), "any": frozenset("uv")}}
    >>> told = funnel.EffectiveChannels(("c",), rows, meant, 10_000)
    >>> told.of(["c"]).matrix[:2].tolist()
    [[0.9, 0.0], [0.1, 0.3]]
    """

    columns: tuple[str, ...]
    rows: Sequence[Row]
    meant: Mapping[str, Mapping[str, frozenset[str]]]
    records: int
    fewest: int = 500

    def of(self, columns: Sequence[str]) -> ToldChannel:
        """The channel of one column, or of two together, in the order asked for.

        Raises
        ------
        SpecError
            If one is not published, there are more than two, or none, or nothing is told of them.
        """
        # Rounding is a part of releases, which need what is worth estimating.
        from funnel.release.public.rounding import share_step

        asked = tuple(columns)
        if unknown := [column for column in asked if column not in self.columns]:
            raise SpecError(
                f"{unknown[0]!r} is no published column; the probabilities of groups are averages over all records of "
                f"the release, and hold for no part of them; estimate {', '.join(self.columns)}, or two of these"
            )
        if not 1 <= len(set(asked)) == len(asked) <= 2:
            raise SpecError(
                "columns that were published in groups are estimated one at a time, or two together: name one or two "
                f"of {', '.join(self.columns)}"
            )
        stored = tuple(sorted(asked, key=self.columns.index))
        rows = self._of_columns.get(_padded(stored))
        if rows is None:
            raise SpecError(f"nothing is told of {' and '.join(asked)}: too few records have any of their values")
        order = [stored.index(column) for column in asked]
        true, shown = ([_chosen(row[at : at + 2], order) for row in rows] for at in (2, 4))
        inputs, outputs = dict.fromkeys(true), [text for text in dict.fromkeys(shown) if text is not None]
        place = {text: y for y, text in enumerate(outputs)}
        at = {value: x for x, value in enumerate(inputs)}
        matrix = np.zeros((len(outputs) + 1, len(inputs)))
        shares = np.zeros(len(inputs))
        for value, text, row in zip(true, shown, rows, strict=True):
            shares[at[value]] = row[6]
            if text is not None:
                matrix[place[text], at[value]] = row[7]
        whole = matrix[:-1].sum(axis=0) > _WHOLE
        matrix[-1] = np.maximum(0.0, 1 - matrix[:-1].sum(axis=0))
        matrix[-1, whole] = 0.0
        possible = np.array([[self._possible(asked, text, value) for value in inputs] for text in outputs], dtype=bool)
        step = share_step(self.records)
        fewest = np.maximum(self.fewest, _least(shares, step) * self.records)
        # Nearest multiples, of which some are one lower where all together were more than one.
        steps = np.array([share_step(int(number)) for number in fewest]) * np.where(whole, 1.0, 0.5)
        off = np.broadcast_to(steps, possible.shape)
        names = tuple((FEW,) * len(asked) if value is None else value for value in inputs)
        left_out = 0.0 if None in inputs else self._left_out(asked, shares, step)
        beyond = np.array([left_out > 0 and self._is_beyond(asked, text, inputs) for text in outputs], dtype=bool)
        return ToldChannel(
            asked, names, tuple(outputs), matrix, possible, off, shares, step, left_out, beyond, self.records
        )

    def is_told(self, columns: Sequence[str]) -> bool:
        """Whether there is anything to estimate one or two published columns by."""
        return _padded(tuple(sorted(columns, key=self.columns.index))) in self._of_columns

    @cached_property
    def _of_columns(self) -> dict[tuple[str | None, str | None], list[Row]]:
        found: dict[tuple[str | None, str | None], list[Row]] = {}
        for row in self.rows:
            found.setdefault(row[:2], []).append(row)
        return found

    def values(self, column: str) -> frozenset[str]:
        """All true values of a published column that records have."""
        return frozenset[str]().union(*self.meant[column].values())

    def _possible(self, columns: tuple[str, ...], text: tuple[str, ...], value: tuple[str, ...] | None) -> bool:
        """Whether a text can be that of a value, or of any of those that few records have."""
        means = [self.meant[column].get(one, frozenset()) for column, one in zip(columns, text, strict=True)]
        return value is None or all(one in may for one, may in zip(value, means, strict=True))

    def _is_beyond(
        self, columns: tuple[str, ...], text: tuple[str, ...], inputs: Collection[tuple[str, ...] | None]
    ) -> bool:
        """Whether a text can be that of a value that nothing is told of."""
        means = [self.meant[column].get(one, frozenset()) for column, one in zip(columns, text, strict=True)]
        return any(value not in inputs for value in product(*means))

    def _left_out(self, columns: tuple[str, ...], shares: FloatArray, step: float) -> float:
        """The largest share of records that nothing is told of."""
        values = [self.values(column) for column in columns]
        if len(shares) == np.prod([len(some) for some in values]):
            return 0.0
        return float(np.clip(1 - _least(shares, step).sum(), 0.0, self.fewest / self.records))


def _least(shares: FloatArray, step: float) -> FloatArray:
    """The least that told shares can be: one step is told of whatever is less, too."""
    return np.asarray(np.where(shares > 1.5 * step, shares - step / 2, 0.0))


def _padded(columns: tuple[str, ...]) -> tuple[str, str | None]:
    return columns[0], columns[1] if len(columns) > 1 else None


def _chosen(texts: tuple[Any, ...], order: Sequence[int]) -> tuple[str, ...] | None:
    """The texts of the columns in the order asked for; None where nothing is told."""
    return None if texts[0] is None else tuple(str(texts[place]) for place in order)
