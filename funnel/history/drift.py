"""Drift: how a version differs from the one before it, and whether sampling noise explains that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from funnel.alphabet import SEPARATOR, Alphabet
from funnel.errors import DataError
from funnel.history.changes import Changes
from funnel.joint import FloatArray, IntArray, Joint
from funnel.tails import binomial_two_sided, fisher, hypergeometric_two_sided

# One false alarm in a thousand versions: somebody has to read it, and nothing is lost by a version that waits. Draws
# are refused as good as never because a second draw would be a selection; here nothing has been drawn yet.
DRIFTED = 1e-3
_WHAT = ("the secret", "the published values", "secret and published values together")


@dataclass(frozen=True)
class Shift:
    """One comparison of frequencies.

    Attributes
    ----------
    who : str
        Who is compared with whom.
    what : str
        Frequencies of what.
    category : str
        The value whose frequency moved most clearly.
    before, after : float
        Its share among the first and among the second.
    p_value : float
        At most t with a probability of at most t if frequencies did not move; for this comparison alone.
    adjusted : float
        The same corrected by Holm's procedure for all comparisons of this version.
    """

    who: str
    what: str
    category: str
    before: float
    after: float
    p_value: Annotated[float, Field(ge=0, le=1)]
    adjusted: Annotated[float, Field(ge=0, le=1)]

    @property
    def sentence(self) -> str:
        """It in words."""
        return (
            f"{self.who}: the frequencies of {self.what} differ by more than chance explains "
            f"(p = {self.adjusted:.1g}), most clearly {self.category!r}, {self.before:.1%} against {self.after:.1%}."
        )


@dataclass(frozen=True)
class Drift:
    """What changed between two versions; exact figures, for internal reports.

    Attributes
    ----------
    new, vanished : tuple of (column, tuple of str)
        Values that only the later, or only the earlier version has, of the columns that have such values.
    columns : tuple of (str, str)
        Columns of both versions, where they are not the same; nothing else is compared then.
    shifts : tuple of Shift
        All comparisons, the clearest first.
    same_people : bool
        Whether people were followed from one version to the other.
    """

    new: tuple[tuple[str, tuple[str, ...]], ...]
    vanished: tuple[tuple[str, tuple[str, ...]], ...]
    columns: tuple[tuple[str, str], ...]
    shifts: tuple[Shift, ...]
    same_people: bool

    @property
    def p_value(self) -> float:
        """The smallest corrected p-value; 1 where nothing was compared."""
        return min((shift.adjusted for shift in self.shifts), default=1.0)

    @property
    def drifted(self) -> bool:
        """Whether a spec with ``on_drift = "fail"`` stops: other columns or values, or a p-value below 0.001."""
        return bool(self.columns or self.new or self.vanished) or self.p_value < DRIFTED

    @property
    def sentence(self) -> str:
        """What a person should know of it, in a few sentences."""
        if self.columns:
            return " ".join(f"The {what}." for _, what in self.columns)
        parts = [
            f"The column {column!r} has {len(values)} {kind} value{'s' if len(values) > 1 else ''}: {_listed(values)}."
            for kind, found in (("new", self.new), ("vanished", self.vanished))
            for column, values in found
        ]
        # The clearest of each comparison says enough.
        clearest = {shift.who: shift for shift in reversed(self.shifts)}
        parts += [shift.sentence for shift in self.shifts if shift.adjusted < DRIFTED and clearest[shift.who] is shift]
        if self.p_value >= DRIFTED and self.shifts:
            parts.append(f"No frequency moved by more than sampling noise explains (p = {self.p_value:.2g}).")
        return " ".join(parts) or "There was nobody to compare."

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            "same_people": self.same_people,
            "drifted": self.drifted,
            "p_value": self.p_value,
            "new": {column: list(values) for column, values in self.new},
            "vanished": {column: list(values) for column, values in self.vanished},
            "columns": dict(self.columns),
            "shifts": [asdict(shift) for shift in self.shifts],
        }


def drift_between(before: Joint, after: Joint, changes: Changes | None = None) -> Drift:
    """How the frequencies of a version differ from those of an earlier one.

    Parameters
    ----------
    before, after : Joint
        Counts of the two versions, over the same columns; alphabets may differ.
    changes : Changes, optional
        Where the versions are about the same people: those in both. Without it everybody is taken for somebody else.

    Returns
    -------
    Drift

    Raises
    ------
    DataError
        If there are more changes than people.

    Notes
    -----
    *Other people:* given how many records both versions have of each value, their division between the two is
    multivariate hypergeometric if both were drawn from one distribution. One exact test of each value, corrected by
    Bonferroni, and one of all together: values in the order of their totals, each count hypergeometric given those
    before it, the logarithms of the p-values added up (Fisher). Twice the smaller of the two is the p-value. All tails
    are exact, for any number of records (`funnel.tails`), as in the tests of the drawing (decision 0008).

    *The same people* are no two samples, since most stay what they are. Who changed is compared: if frequencies stood
    still, somebody who changed is as likely to have come to a value as to have left it, so that the number who came
    is binomial with 1/2 among those who came or left (McNemar's test, exact, of every value; Bonferroni's correction
    for their number). Stuart and Maxwell's statistic tests the same, but has no exact tail where few changed. Those who
    joined are compared with those who stayed, as they are now, and those who left with those who stayed, as they were:
    these are other people. People grow older, so that a panel with a published age always moves, and whoever joins or
    leaves is seldom like the others: of a panel this says that frequencies moved, not that anything is wrong.

    Holm's procedure corrects for all comparisons, so that the smallest corrected p-value is below t with a probability
    of at most t where nothing moved, however the comparisons depend on each other.
    O(values) tails each.
    """
    columns = tuple(_other_columns(before, after))
    if columns:
        return Drift((), (), columns, (), changes is not None)
    first, second = _Cells.over(before, after)
    new, vanished = _values_of(after, before), _values_of(before, after)
    found: list[Shift] = []
    if changes is None:
        found += _two_samples("Before and now", second, first.counts, second.counts)
    else:
        stayed_before, stayed_after = (
            first.of(changes.before, changes.records),
            second.of(changes.after, changes.records),
        )
        if (stayed_before > first.counts).any() or (stayed_after > second.counts).any():
            raise DataError("there are more changes than people; count them from the same two versions")
        found += _paired(first, second, changes)
        joined, left = second.counts - stayed_after, first.counts - stayed_before
        found += _two_samples("Those who stayed and those who joined", second, stayed_after, joined)
        found += _two_samples("Those who stayed and those who left", second, stayed_before, left)
    return Drift(new, vanished, (), _by_holm(found), changes is not None)


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells of one version in the alphabets of both together."""

    counts: IntArray
    places: IntArray
    labels: tuple[tuple[str, ...], tuple[str, ...]]

    @classmethod
    def over(cls, before: Joint, after: Joint) -> tuple[_Cells, _Cells]:
        secret = _union(before.secret, after.secret)
        inputs = _union(before.inputs, after.inputs)
        return cls._of(before, secret, inputs), cls._of(after, secret, inputs)

    @classmethod
    def _of(cls, joint: Joint, secret: Alphabet, inputs: Alphabet) -> _Cells:
        s = np.array([secret.index(symbol) for symbol in joint.secret.symbols])
        x = np.array([inputs.index(symbol) for symbol in joint.inputs.symbols])
        counts = np.zeros((len(secret), len(inputs)), dtype=np.int64)
        counts[np.ix_(s, x)] = joint.counts
        places = (s[:, None] * len(inputs) + x).ravel()
        return cls(counts, places, (secret.labels, inputs.labels))

    def of(self, cells: IntArray, records: IntArray) -> IntArray:
        """Counts (c, a) of people given by their cells in this version's own alphabets."""
        counts = np.zeros(self.counts.size, dtype=np.int64)
        np.add.at(counts, self.places[cells], records)
        return counts.reshape(self.counts.shape)

    def categories(self, what: int, cells: IntArray) -> IntArray:
        """The secret, the input, or the cell of each of these cells of both alphabets."""
        a = self.counts.shape[1]
        return np.asarray((cells // a, cells % a, cells)[what])

    def label(self, what: int, category: int) -> str:
        a = self.counts.shape[1]
        if what < 2:
            return str(self.labels[what][category])
        return SEPARATOR.join((self.labels[0][category // a], self.labels[1][category % a]))


def _union(first: Alphabet, second: Alphabet) -> Alphabet:
    return Alphabet(first.columns, tuple(dict.fromkeys(first.symbols + second.symbols)))


def _summed(counts: IntArray, what: int) -> IntArray:
    return np.asarray((counts.sum(axis=1), counts.sum(axis=0), counts.ravel())[what])


def _two_samples(who: str, second: _Cells, before: IntArray, after: IntArray) -> Iterator[Shift]:
    """Comparisons of different people; none where one side is empty."""
    if not before.sum() or not after.sum():
        return
    for what, name in enumerate(_WHAT):
        one, two = _summed(before, what), _summed(after, what)
        total = one + two
        seen = np.flatnonzero(total)
        n, m = int(one.sum()), int(total.sum())
        alone = _hypergeometric(one[seen], total[seen], np.full(len(seen), n), np.full(len(seen), m))
        # In an order that does not depend on how values are divided between the two.
        order = seen[np.argsort(-total[seen], kind="stable")]
        earlier, those = np.cumsum(one[order]) - one[order], np.cumsum(total[order]) - total[order]
        given = _hypergeometric(one[order], total[order], n - earlier, m - those)
        value = min(1.0, 2 * min(1.0, float(alone.min()) * len(seen), fisher(given[:-1])))
        clearest = int(seen[int(alone.argmin())])
        shares = float(one[clearest] / n), float(two[clearest] / (m - n))
        yield Shift(who, name, second.label(what, clearest), *shares, value, value)


def _hypergeometric(counts: IntArray, marked: IntArray, drawn: IntArray, total: IntArray) -> FloatArray:
    return hypergeometric_two_sided(*(np.asarray(part, dtype=np.int64) for part in (counts, marked, drawn, total)))


def _paired(first: _Cells, second: _Cells, changes: Changes) -> Iterator[Shift]:
    """Comparisons of what the same people were and are."""
    if not changes.n:
        return
    for what, name in enumerate(_WHAT):
        was = first.categories(what, first.places[changes.before])
        now = second.categories(what, second.places[changes.after])
        size = len(_summed(first.counts, what))
        moved = was != now
        left = np.bincount(was[moved], changes.records[moved], size).astype(np.int64)
        came = np.bincount(now[moved], changes.records[moved], size).astype(np.int64)
        seen = np.union1d(was, now)
        ones = np.ones(len(seen), dtype=np.int64)
        alone = binomial_two_sided(came[seen], (came + left)[seen], ones, 2 * ones)
        # Of two values one comes where the other leaves: a single test.
        value = min(1.0, float(alone.min()) * (1 if len(seen) == 2 else len(seen)))
        clearest = int(seen[int(alone.argmin())])
        before, now_it_is = (float(changes.records[side == clearest].sum()) / changes.n for side in (was, now))
        label = second.label(what, clearest)
        yield Shift("Those who stayed, then and now", name, label, before, now_it_is, value, value)


def _by_holm(shifts: Sequence[Shift]) -> tuple[Shift, ...]:
    """The clearest first, with Holm's corrected p-values: the k-th smallest times how many are not smaller."""
    ordered = sorted(shifts, key=lambda shift: shift.p_value)
    adjusted: list[Shift] = []
    largest = 0.0
    for place, shift in enumerate(ordered):
        largest = max(largest, min(1.0, shift.p_value * (len(ordered) - place)))
        adjusted.append(replace(shift, adjusted=largest))
    return tuple(adjusted)


def _other_columns(before: Joint, after: Joint) -> Iterator[tuple[str, str]]:
    for kind, one, two in (("secret", before.secret, after.secret), ("published", before.inputs, after.inputs)):
        if one.columns != two.columns:
            yield kind, f"{kind} columns are now {_listed(two.columns)}, and were {_listed(one.columns)}"


def _values_of(joint: Joint, other: Joint) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Values that occur in this one and not in the other, by column."""
    found = []
    for axis, here, there in ((1, joint.secret, other.secret), (0, joint.inputs, other.inputs)):
        for j, column in enumerate(here.columns):
            mine, theirs = (
                dict.fromkeys(symbol[j] for symbol, n in zip(alphabet.symbols, counts.sum(axis=axis), strict=True) if n)
                for alphabet, counts in ((here, joint.counts), (there, other.counts))
            )
            if only := tuple(value for value in mine if value not in theirs):
                found.append((column, only))
    return tuple(found)


def _listed(values: Sequence[str]) -> str:
    shown = ", ".join(repr(value) for value in values[:5])
    return shown if len(values) <= 5 else f"{shown} and {len(values) - 5} more"
