"""Column sets: people with values of one column, and of two, counted record by record; and kept in a document."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from funnel.alphabet import Alphabet
from funnel.class_parts import ClassParts
from funnel.donors import column_sets
from funnel.donors.column_sets import ColumnSets, number_of_sets
from funnel.errors import SpecError
from funnel.release.documents import PartsDocument, parts_document

COLUMNS = ("a", "b", "c")


def some_records(seed: int) -> tuple[Alphabet, np.ndarray, np.ndarray]:
    """Records, the people of each, and their parts; some values never come together."""
    random = np.random.default_rng(seed)
    symbols = [(f"a{i}", f"b{j}", f"c{k}") for i, j, k in np.ndindex(3, 2, 4) if random.random() < 0.5]
    return Alphabet(COLUMNS, tuple(symbols)), random.integers(1, 9, len(symbols)), random.integers(0, 5, len(symbols))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_people_are_counted_by_every_set_of_values(at_once: int, seed: int) -> None:
    records, counts, parts = some_records(seed)
    sets = ColumnSets.of(records, at_once)
    assert len(sets.of_record) == number_of_sets(3, at_once)
    expected: Counter[tuple[tuple[tuple[str, str], ...], int]] = Counter()
    for symbol, count, part in zip(records.symbols, counts.tolist(), parts.tolist(), strict=True):
        for size in range(1, at_once + 1):
            for places in combinations(range(3), size):
                expected[tuple((COLUMNS[j], symbol[j]) for j in places), part] += count
    people = sets.people(parts, counts, 5)
    found = {(one, part): int(people[v, part]) for v, one in enumerate(sets.known) for part in range(5)}
    assert {key: number for key, number in found.items() if number} == dict(expected)


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_document_holds_them(at_once: int) -> None:
    records, counts, parts = some_records(1)
    sets = ColumnSets.of(records, at_once)
    classes = Alphabet(("record_class",), (("1",), ("2",)))
    known = ClassParts(classes, np.array([0, 0, 1, 1, 1]), sets.people(parts, counts, 5), sets.known)
    again = PartsDocument.from_json(parts_document(known).to_bytes()).parts
    assert again.content == known.content


def test_too_many_values_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    records, *_ = some_records(0)
    monkeypatch.setattr(column_sets, "_MOST", 9)
    assert len(ColumnSets.of(records, 1).known) == 9
    with pytest.raises(SpecError, match="any 2 of 3 columns may know more than 9 values together"):
        ColumnSets.of(records, 2)
