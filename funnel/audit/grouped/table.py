"""Whether a released table of groups can have been drawn by its protocol: every text, every pair, every record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from funnel.audit.grouped.draws import Symbol, law_of_counts
from funnel.audit.grouped.law import PublishedLaw
from funnel.audit.grouped.rows import summed
from funnel.recount.grouped_text import GroupedText


@dataclass(frozen=True)
class TableTest:
    """Result of the test of a table.

    Attributes
    ----------
    p_value : float
        A table that was drawn by the protocol has one of at most t with a probability of at most t.
    impossible : int
        Rows that nobody can be published as.
    labels : int
        Texts, pairs of texts and records that were tested.
    worst : tuple of str
        Columns where it is least likely.
    """

    p_value: float
    impossible: int
    labels: int
    worst: tuple[str, ...]


def table_test(law: PublishedLaw, counted: Mapping[Symbol, int]) -> TableTest:
    """Test how often each text of a column, each pair of texts of two, and each record is in a table.

    Parameters
    ----------
    law : PublishedLaw
    counted : mapping of published record to int

    Notes
    -----
    Records are drawn independently, so each count is a sum of independent indicators whose mean is known. The tests of
    a set of columns are corrected by their number, and sets of columns by theirs (Bonferroni).
    """
    n, width = sum(counted.values()), len(law.columns)
    # A table of one column has no pairs, and of two one that is the record.
    sets = list(dict.fromkeys([*((j,) for j in range(width)), *combinations(range(width), 2), tuple(range(width))]))
    impossible = sum(number for record, number in counted.items() if record not in law.followed.masses)
    found: list[tuple[float, tuple[str, ...]]] = []
    labels = 0
    for some in sets:
        means, there = law.expected(some), summed(counted, some)
        names = list(means)
        counts = np.array([there[name] for name in names], dtype=np.float64)
        p = law_of_counts(counts, np.array(list(means.values())), n)
        found.append((p, tuple(law.columns[j] for j in some)))
        labels += len(names)
    p_value, worst = min(found)
    return TableTest(0.0 if impossible else min(1.0, len(sets) * p_value), impossible, labels, worst)


def text_complaints(text: GroupedText, counted: Mapping[Symbol, int]) -> Iterator[str]:
    """Whether every cell of a table is one of the texts of its column."""
    for j, (column, texts) in enumerate(text.texts.items()):
        known = set(texts)
        strange = sum(number for (cell,), number in summed(counted, [j]).items() if cell not in known)
        if strange:
            yield f"{strange:,} rows have another text of {column} than the protocol can publish"
