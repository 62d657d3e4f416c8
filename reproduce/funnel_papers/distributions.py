"""The distributions that the papers experiment on: drawn with a fixed seed, or counted in Adult."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from funnel.alphabet import Alphabet
from funnel.errors import DataError
from funnel.joint import Joint

# Records that a random distribution is rounded to, where the paper takes the distribution itself.
_RECORDS = 10**6


@dataclass(frozen=True)
class Distribution:
    """One distribution of (S, X), by all that it is made from.

    Attributes
    ----------
    kind : "uniform", "jeffreys", "sampled", "adult" or "counts"
        Cells uniform in [0, 1] and normalised; Dirichlet(½); counts of records drawn from a Dirichlet(½) distribution;
        counts in Adult; counts as they are.
    shape : tuple of int
        Secrets, then values of every published column; empty for Adult.
    seed : int
    records : int
        That are drawn; only of sampled distributions.
    columns : tuple of two str
        Secret and published column of Adult.
    without : tuple of two str
        A column and the value whose records are left out of Adult.
    counts : tuple of tuple of int
        As they are.
    """

    kind: Literal["uniform", "jeffreys", "sampled", "adult", "counts"]
    shape: tuple[int, ...] = ()
    seed: int = 0
    records: int = 0
    columns: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    counts: tuple[tuple[int, ...], ...] = ()

    def content(self, data: Path) -> list[object]:
        """All that the distribution depends on, as JSON values; the content of Adult by its digest."""
        said: list[object] = [self.kind, self.shape, self.seed, self.records, self.columns, self.without, self.counts]
        return [*said, _digest(data)] if self.kind == "adult" else said

    def joint(self, data: Path) -> Joint:
        """Counts (c, a).

        Parameters
        ----------
        data : path
            Of Adult as parquet; not looked at by other distributions.

        Raises
        ------
        DataError
            If Adult cannot be read.
        """
        if self.kind == "adult":
            return _adult(data, self.columns, self.without)
        if self.kind == "counts":
            return Joint.from_counts(np.array(self.counts), inputs=self._inputs())
        random = np.random.default_rng(self.seed)
        cells = (self.shape[0], prod(self.shape[1:]))
        if self.kind == "uniform":
            distribution = random.random(cells)
            counts = np.maximum(1, np.rint(distribution / distribution.sum() * _RECORDS))
        elif self.kind == "jeffreys":
            # A cell that rounds to no record has probability zero; a whole value without records is no value.
            while True:
                counts = np.rint(random.dirichlet(np.full(prod(cells), 0.5)).reshape(cells) * _RECORDS)
                if counts.sum(axis=0).all() and counts.sum(axis=1).all():
                    break
        else:
            while True:
                distribution = random.dirichlet(np.full(prod(cells), 0.5))
                counts = random.multinomial(self.records, distribution).reshape(cells).astype(np.float64)
                if counts.sum(axis=1).all():
                    break
        return Joint.from_counts(counts.astype(np.int64), inputs=self._inputs())

    def _inputs(self) -> Alphabet | None:
        if len(self.shape) < 3:
            return None
        names = tuple(f"x{j + 1}" for j in range(len(self.shape) - 1))
        return Alphabet(names, tuple(itertools.product(*(map(str, range(size)) for size in self.shape[1:]))))


def _adult(data: Path, columns: tuple[str, ...], without: tuple[str, ...]) -> Joint:
    secret, published = columns
    try:
        table = pq.read_table(data, columns=list(dict.fromkeys((*columns, *without[:1]))))
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"Adult cannot be read from {data} ({type(error).__name__}); name the parquet file with --adult"
        ) from error
    if without:
        table = table.filter(pc.not_equal(table[without[0]].cast("string"), without[1]))
    return Joint.from_table(table.select(list(columns)), secret=[secret], inputs=[published])


@lru_cache(maxsize=4)
def _digest(data: Path) -> str:
    try:
        return hashlib.sha256(data.read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(
            f"Adult cannot be read from {data} ({error.strerror}); name the parquet file with --adult"
        ) from error
