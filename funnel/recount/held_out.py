"""Held-out records a second time: counts of those by which classes are not chosen, by their place in the source."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from fractions import Fraction

from funnel.errors import DataError
from funnel.recount.grouping import final_labels
from funnel.recount.source import Recount, labelled, source_records
from funnel.spec import ReleaseSpec

Symbol = tuple[str, ...]


def place_of(number: int) -> int:
    """Where the record of a number, from 0 on, stands in 2^64: it is held out below that part of it."""
    return int.from_bytes(hashlib.sha256(b"funnel held out %d" % number).digest()[:8], "big")


def held_out_counts(spec: ReleaseSpec, counted: Recount, share: Fraction) -> Mapping[tuple[Symbol, Symbol], int]:
    """Counts of (secret, record) among the records that are held out, from the source read again in its order.

    Parameters
    ----------
    spec : ReleaseSpec
        For whole records, settled.
    counted : Recount
        All of its records: their values say which categories a column has.
    share : Fraction
        Between 0 and 1.

    Raises
    ------
    DataError
        As `recount`; also if other records are read than those that were counted.
    """
    labels = [final_labels(spec, column, counted.values[column], counted.missing[column]) for column in spec.columns]
    width, number, below = len(spec.secret), 0, math.ceil(share * (1 << 64))
    every: Counter[tuple[Symbol, Symbol]] = Counter()
    held_out: Counter[tuple[Symbol, Symbol]] = Counter()
    with closing(source_records(spec, (), spec.columns)) as records:
        for _, categories in records:
            if (whole := labelled(labels, categories)) is None:
                continue
            pair = whole[:width], whole[width:]
            every[pair] += 1
            if place_of(number) < below:
                held_out[pair] += 1
            number += 1
    if every != counted.counts:
        raise DataError(f"the source {spec.source_address} changed while it was counted again; try again")
    return held_out
