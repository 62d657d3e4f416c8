"""The public frequencies of a release as their file says them, read anew, and what their noise has cost."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

from funnel.errors import DataError
from funnel.recount.channel import Symbols
from funnel.recount.count_box import CountBox
from funnel.recount.noise import limits_of, possible_counts
from funnel.recount.noisy_moves import NoisyChanges, NoisyDepartures, NoisyMeans, NoisyRows, Table, block_complaints
from funnel.recount.reading import read
from funnel.recount.register_files import entry_folders
from funnel.recount.released import alphabet_of
from funnel.recount.source import Recount

WIDEST = 1e5
"""The largest scale of noise of a release: the smallest epsilon of a spec is 10^-4, of which counts have a quarter."""
NARROWEST = 0.05
"""The smallest scale: the largest epsilon of a spec is 20. What it proves of smaller ones takes long to decide."""
MOST_RECORDS = 10**12
"""More than a count of any release is, with its noise."""


@dataclass(frozen=True)
class Impossible:
    """Values of each of several published columns that were declared not to go together.

    Attributes
    ----------
    columns : tuple of str
    values : tuple of tuple of str
        Of each column.
    """

    columns: tuple[str, ...]
    values: Symbols

    def holds(self, columns: Sequence[str], symbol: Sequence[str]) -> bool:
        """Whether a combination of values of these columns is one of them."""
        said = dict(zip(columns, symbol, strict=True))
        return all(said[column] in listed for column, listed in zip(self.columns, self.values, strict=True))


@dataclass(frozen=True)
class PublicFrequencies:
    """What a ``frequencies.json`` says: the noisy counts that all other public documents are made from.

    Attributes
    ----------
    epsilon, epsilon_counts, delta, beta, spent, scale : float
        As the file says them.
    cells_within, totals_within : int
        Limits that it states of single counts and of the totals of secrets.
    secret_columns, published_columns : tuple of str
    secret, inputs : tuple of tuple of str
        All combinations of public values, c and a of them.
    noisy : tuple of tuple of int, c × a
        Of people by the first of their rows, where they have several.
    changes : NoisyChanges or None
        How people changed since earlier versions about them.
    rows : NoisyRows or None
        How rows of people with several follow each other.
    means : NoisyMeans or None
        How many records each value is published for on average, before it is put right by that.
    impossible : tuple of Impossible or None
        Published values that were declared not to go together.
    departures : NoisyDepartures or None
        How many more have each published value on average than the protocol leads to expect.
    """

    epsilon: float
    epsilon_counts: float
    delta: float
    beta: float
    spent: float
    scale: float
    cells_within: int
    totals_within: int
    secret_columns: tuple[str, ...]
    secret: Symbols
    published_columns: tuple[str, ...]
    inputs: Symbols
    noisy: Table
    changes: NoisyChanges | None = None
    rows: NoisyRows | None = None
    means: NoisyMeans | None = None
    impossible: tuple[Impossible, ...] | None = None
    departures: NoisyDepartures | None = None

    @classmethod
    def parse(cls, text: str | bytes) -> Self:
        """Read the text of a ``frequencies.json``.

        Raises
        ------
        DataError
            If it is none: another protection, keys of no such file, symbols that do not fit the columns or come
            twice, counts of another shape, or numbers that are none. Whether the other tables are what they should be,
            `moves_complaints` tells.
        """
        try:
            said = json.loads(text)
            if said.pop("protection") != "noise" or not said.pop("schema"):
                raise ValueError
            (secret_columns, secret), (columns, inputs) = (alphabet_of(said.pop(name)) for name in ("secret", "inputs"))
            alphabets = {
                "secret_columns": secret_columns,
                "secret": secret,
                "published_columns": columns,
                "inputs": inputs,
            }
            # What there is none of is said to be none.
            if {one.name for one in fields(cls)} - {*said, *alphabets}:
                raise ValueError
            found: Self = read(cls, {**said, **alphabets})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
            raise DataError("the public frequencies cannot be read, so nothing can be said about them") from None
        # What is proven of them would take hours.
        if not NARROWEST <= found.scale <= WIDEST or any(
            abs(count) > MOST_RECORDS for row in found.noisy for count in row
        ):
            raise DataError("the public frequencies have wider or narrower noise, or more records, than any release")
        if any(
            len({*one.columns}) != len(one.values) or not {*one.columns} <= {*columns} for one in found.impossible or ()
        ):
            raise DataError("the public frequencies declare impossible what are no values of published columns")
        if (len(found.noisy), len(found.noisy[0])) != (len(found.secret), len(found.inputs)):
            raise DataError("the public counts do not fit the values that they are said to be of")
        return found

    @cached_property
    def counts(self) -> tuple[tuple[int, ...], ...]:
        """The counts that everything else is made from: nothing is below zero; c × a."""
        return tuple(tuple(max(0, count) for count in row) for row in self.noisy)

    @cached_property
    def possible(self) -> CountBox:
        """Every table of counts within the limits that it states."""
        return possible_counts(self.noisy, self.cells_within, self.totals_within)

    @cached_property
    def least_limits(self) -> tuple[int, int]:
        """The least limits of counts and of totals that its scale and beta prove."""
        return limits_of(self.scale, Fraction(self.beta), len(self.secret), len(self.inputs))

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """The values of every column, in order."""
        found = {}
        for columns, symbols in ((self.secret_columns, self.secret), (self.published_columns, self.inputs)):
            for place, column in enumerate(columns):
                found[column] = tuple(dict.fromkeys(symbol[place] for symbol in symbols))
        return found

    def is_whole(self, inputs: Collection[tuple[str, ...]] | None = None) -> bool:
        """Whether there is a count for every combination of values, so that none tells that it occurs.

        Parameters
        ----------
        inputs : collection of tuple of str, optional
            All that there may be, where these are public: the classes of records.
        """
        labels = self.labels
        secret, every = (
            set(product(*(labels[column] for column in columns)))
            for columns in (self.secret_columns, self.published_columns)
        )
        for one in self.impossible or ():
            every -= {symbol for symbol in every if one.holds(self.published_columns, symbol)}
        return set(self.secret) == secret and set(self.inputs) == (every if inputs is None else {*inputs})

    def as_counts(self, sha256: str = "") -> Recount:
        """The public counts in the form of counted ones: what whoever has only these would count.

        Raises
        ------
        DataError
            If no count is above zero.
        """
        counts = {
            (s, x): count
            for s, row in zip(self.secret, self.counts, strict=True)
            for x, count in zip(self.inputs, row, strict=True)
        }
        rows = sum(counts.values())
        if not rows:
            raise DataError("no public count is above zero, so nothing follows from them")
        return Recount(self.secret_columns, self.published_columns, self.secret, self.inputs, counts, rows, 0, sha256)

    @property
    def parts(self) -> tuple[float, ...]:
        """The epsilon of the counts, and of the other tables that are told."""
        return (self.epsilon_counts, *(block.epsilon for block in self._blocks))

    @property
    def mean_of(self) -> dict[tuple[str, ...], int] | None:
        """The published mean of every value; None where none are told."""
        return None if self.means is None else dict(zip(self.inputs, self.means.counts, strict=True))

    @property
    def _blocks(self) -> list[NoisyChanges | NoisyRows | NoisyMeans]:
        found = (self.changes, self.rows, self.means, self.departures)
        return [block for block in found if block is not None]

    @property
    def draws(self) -> dict[Hashable, float]:
        """What every draw of noise in it cost, by what was drawn: that of counts with what learning values cost."""
        counts = math.fsum((self.epsilon, *(-block.epsilon for block in self._blocks)))
        return {(self.secret, self.inputs, self.noisy): counts, **{block: block.epsilon for block in self._blocks}}

    def moves_complaints(self) -> Iterator[str]:
        """What is wrong with the tables beside the counts by themselves, as parts of sentences."""
        sizes = (len(self.secret), len(self.inputs), None)
        yield from block_complaints(self.changes, self.rows, self.means, self.departures, sizes)

    def noise(self, counted: Recount) -> list[list[int]]:
        """What was added to counted records, c × a.

        Raises
        ------
        DataError
            If a combination of values occurs that there is no public count of.
        """
        exact = counted.table(self.secret, self.inputs)
        return [[n - m for n, m in zip(*rows, strict=True)] for rows in zip(self.noisy, exact, strict=True)]


Draws = Mapping[str, Decimal]
"""Epsilon of every draw of noise of one version, by the SHA-256 (hex) of what was drawn."""

# What was drawn of each table.
_TABLES: Mapping[str, Callable[[Any], object]] = {
    "changes": itemgetter("since"),
    "rows": itemgetter("stayed", "left", "sizes"),
    "means": itemgetter("counts"),
    "departures": itemgetter("counts"),
}


def own_draws(content: Mapping[str, Any]) -> Draws:
    """What the noise of one version cost, by its ``frequencies.json``."""
    found = {
        _sha256(json.dumps(drawn(told), sort_keys=True)): Decimal(repr(told["epsilon"]))
        for name, drawn in _TABLES.items()
        if (told := content.get(name)) is not None
    }
    alphabets = ({key: content[name][key] for key in ("columns", "symbols")} for name in ("secret", "inputs"))
    counts = _sha256(json.dumps([content["noisy"], *alphabets]))
    return {**found, counts: Decimal(repr(content["epsilon"])) - sum(found.values())}


def spent_complaints(
    content: Mapping[str, Any], record: Mapping[str, Any], register: Path, workspace: Path, until: str | None = None
) -> Iterator[str]:
    """What is wrong with what ``frequencies.json`` says was spent on the people of a register, as parts of sentences.

    Parameters
    ----------
    content : mapping
        Of the file.
    record : mapping
        That of the version: the same noise is paid once where it is for the same exact tables, and noise for others was
        drawn by itself, also where it is the same by chance.
    register : Path
        Its folder.
    workspace : Path
        That keeps the records of all series.
    until : str, optional
        Time of publication of the version (ISO 8601, UTC): later versions do not count. By default none is later.
    """
    records, draws = list(_records(workspace, register.name)), _named(record, own_draws(content))
    before = [one for one in records if until is None or str(one["created"]) < until]
    for one in before:
        draws = {**_named(one, _draws(one["frequencies"])), **draws}
    known = {str(one["history"]["name"]) for one in records}
    entries = (json.loads((folder / "entry.json").read_bytes()) for folder in entry_folders(register))
    names = {str(entry.get("name")) for entry in entries}
    if until is None and (unknown := sorted(names - known)):
        yield f"of {unknown[0]}, which is in the register, no record says what it spent"
    least = sum(draws.values(), Decimal(0))
    if content["spent"] < float(least) * (1 - 1e-12):
        yield f"is {content['spent']!r}, and all series of the register have spent {float(least)!r}"


def _records(workspace: Path, register: str) -> Iterator[dict[str, Any]]:
    """All records of versions about the people of a register."""
    for path in sorted(workspace.glob("*/records/*/*.json")):
        record = json.loads(path.read_bytes())
        history = record.get("history") or {}
        if history.get("register") == register and "frequencies" in record:
            yield record


def _named(record: Mapping[str, Any], draws: Draws) -> dict[tuple[str, str, str], Decimal]:
    """The draws of a version by its series, the digest of what each was drawn for, and that of what was drawn."""
    frequencies, series = record["frequencies"], str(record["history"]["name"]).rpartition("/")[0]
    drawn_for = {str(one["noisy"]): str(one["counted"]) for one in (frequencies, *_tables(frequencies))}
    return {(series, drawn_for.get(noisy, ""), noisy): cost for noisy, cost in draws.items()}


def _tables(frequencies: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for name in _TABLES if (one := frequencies.get(name)) is not None]


def _draws(frequencies: Mapping[str, Any]) -> Draws:
    """The same by the part of a record about frequencies; nothing of a version without noise."""
    if frequencies.get("noisy") is None:
        return {}
    tables = _tables(frequencies)
    found = {one["noisy"]: Decimal(repr(one["epsilon"])) for one in tables}
    return {**found, frequencies["noisy"]: Decimal(repr(frequencies["epsilon"])) - sum(found.values())}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
