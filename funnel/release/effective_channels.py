"""Effective channels: what becomes of every column and pair of columns of a grouped release, as a public table.

They are averages over all else that is in records, so they follow from exact counts: each number is told to a step of
at least ten of the records that it is about, as all public shares are, and what few records have is told together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa

from funnel.estimation import EffectiveChannels
from funnel.groups.effective import Shown
from funnel.groups.protocol import GroupedProtocol
from funnel.joint import FloatArray, IntArray
from funnel.release.channel_rows import FEWEST, NUMBERS, TEXTS, ChannelRow
from funnel.release.public.rounding import share_step

# What is left of all probabilities of an input is told from here on.
_LEFT = 1e-9


def channels_table(shown: Shown, people: int) -> pa.Table:
    """The effective channel of every column, then of every pair, one row for each input and output.

    Columns ``first``, ``second`` (none for a column of its own), ``true_first``, ``true_second`` (none for all inputs
    together that fewer than `FEWEST`, or ``people``, records have), ``published_first``, ``published_second`` (none for
    all outputs that are not told), ``share`` of the records with this input, and ``probability`` of the output.

    Parameters
    ----------
    shown : Shown
    people : int
        As in the protocol.
    """
    rows = channel_rows(shown, people)
    texts = [pa.array([row[j] for row in rows], pa.string()).dictionary_encode() for j in range(len(TEXTS))]
    numbers = [pa.array([row[j] for row in rows], pa.float64()) for j in (6, 7)]
    return pa.table([*texts, *numbers], names=[*TEXTS, *NUMBERS])


def channel_rows(shown: Shown, people: int) -> list[ChannelRow]:
    """The rows of `channels_table`."""
    told = _Told(shown, max(FEWEST, people))
    columns = shown.protocol.columns
    wanted: list[tuple[str, ...]] = [(column,) for column in columns]
    return [row for some in [*wanted, *combinations(columns, 2)] for row in told.rows(some)]


def told_channels(protocol: GroupedProtocol, rows: Sequence[ChannelRow], records: int) -> EffectiveChannels:
    """What the rows of ``channels.parquet`` tell of the columns of a protocol, for estimation.

    Parameters
    ----------
    protocol : GroupedProtocol
    rows : sequence of rows
    records : int
        Of the release.
    """
    return EffectiveChannels(protocol.columns, rows, protocol.meant, records, max(FEWEST, protocol.people))


@dataclass(frozen=True, eq=False)
class _Told:
    shown: Shown
    fewest: int

    def rows(self, columns: tuple[str, ...]) -> Iterator[ChannelRow]:
        """The rows of the channel of some columns."""
        shown = self.shown
        alphabet, of_record = shown.records.read(columns)
        n = np.bincount(of_record, weights=shown.joint.counts.sum(axis=0), minlength=len(alphabet)).astype(np.int64)
        enough = n >= self.fewest
        # All others are one input, the last.
        number = np.where(enough, np.cumsum(enough) - 1, int(enough.sum()))
        sizes = np.bincount(number, weights=n, minlength=int(enough.sum()) + 1).astype(np.int64)
        at = [shown.protocol.columns.index(column) for column in columns]
        outputs, of_published = np.unique(shown.codes[:, at], axis=0, return_inverse=True)
        flat = number[of_record[shown.rows]] * len(outputs) + of_published.reshape(-1)[shown.published]
        masses = np.bincount(flat, weights=shown.masses, minlength=len(sizes) * len(outputs))
        table = masses.reshape(len(sizes), len(outputs)) * shown.joint.n
        labels = [shown.protocol.labels[column] for column in columns]
        known = [alphabet.symbols[x] for x in np.flatnonzero(enough).tolist()]
        step = share_step(shown.joint.n)
        for x, size in enumerate(sizes.tolist()):
            if size < self.fewest:
                continue
            true = _pair(known[x]) if x < len(known) else (None, None)
            share = max(1, round(size / shown.joint.n / step)) * step
            multiples, of_input = _multiples(table[x] / size, share_step(size)), share_step(size)
            for y in np.flatnonzero(multiples).tolist():
                text = tuple(of[code] for of, code in zip(labels, outputs[y].tolist(), strict=True))
                yield (
                    *_pair(columns),
                    *true,
                    *_pair(text),
                    round(share, 12),
                    round(float(multiples[y] * of_input), 12),
                )
            if (left := 1 - float(multiples.sum() * of_input)) > _LEFT:
                yield (*_pair(columns), *true, None, None, round(share, 12), round(left, 12))


def _multiples(law: FloatArray, step: float) -> IntArray:
    """Probabilities as the nearest multiples of a step; where these are more than one, those that gained most lose it.

    So no probability is told off by a whole step, however many there are.
    """
    found = np.round(law / step).astype(np.int64)
    excess = max(0, int(found.sum()) - round(1 / step))
    found[np.argsort(law / step - found, kind="stable")[:excess]] -= 1
    return found


def _pair(texts: tuple[str, ...]) -> tuple[str | None, str | None]:
    return texts[0], texts[1] if len(texts) > 1 else None
