"""Why donors are followed over versions: else own records are the same twice, and those of donors are not."""

from __future__ import annotations

import numpy as np

from funnel.alphabet import Alphabet
from funnel.joint import IntArray
from funnel.sampling.donors import Donors
from funnel.sampling.random_words import WordArray

PEOPLE = 1_000


class _ByLetter:
    """Two classes: records that begin with g, and with h."""

    columns = ("record",)
    names = ("g", "h")
    draws_evenly = False

    def of_records(self, records: Alphabet) -> IntArray:
        return np.array([int(symbol[0].startswith("h")) for symbol in records.symbols])


def published(people: list[str], random: np.random.Generator) -> dict[str, str]:
    """Everybody of a version as of class h, by their own record: over classes, a row that tells nothing."""
    n = len(people)
    records, categories = Alphabet(("record",), tuple((one,) for one in people)), {"record": sorted(people)}
    donors = Donors.of(records, np.ones(n, dtype=np.int64), _ByLetter(), ("record",), categories)

    def words(_: int) -> WordArray:
        return random.integers(0, 2**64, size=n, dtype=np.uint64)

    taken = donors.taken(np.arange(n), np.ones(n, dtype=np.int64), words)
    assert (donors.of_record[taken] == 1).all()
    return {one: people[place] for one, place in zip(people, taken.tolist(), strict=True)}


def test_of_two_versions_equal_records_tell_whose_they_are() -> None:
    random = np.random.default_rng(7)
    everybody = [f"{name}{number:04}" for name in "gh" for number in range(PEOPLE + PEOPLE // 10)]
    # A tenth leaves, of each class, and as many come.
    first = [one for one in everybody if int(one[1:]) % 11 != 0]
    second = [one for one in everybody if int(one[1:]) % 11 != int(random.integers(1, 11))]
    before, after = published(first, random), published(second, random)
    both = [one for one in before if one in after]
    own, others = ([before[one] == after[one] for one in both if one[0] == name] for name in "hg")
    assert all(own)
    assert 0 < np.mean(others) < 0.25
    # What is published of the classes tells nothing of one another: the odds grow by what records tell alone.
    odds = np.mean(own) / np.mean(others)
    assert odds > 4
