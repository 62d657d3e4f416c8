"""Donor answers: whose record was published for everybody, derived once more from the secret, keys and histories.

A record goes on or begins by a word as other answers are drawn, class by class: first that the same person goes on,
then that another one begins. Who begins is drawn by a word of its own among all people of the class in the order of
the digests of their keys, but for the person and who stood for them before: of people who are new among all, later
among those who are not published otherwise, where there is one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.pipeline.expectations.keyed_answers import Answers, Words, decisions_of, words_of
from funnel.recount.chapters import NEW, Chapter, Tree
from funnel.recount.donor_register import NOBODY, Person
from funnel.recount.register_files import Entry
from funnel.release.snapshot import Snapshot
from funnel.sampling.key_column import KEY_COLUMN
from funnel.sampling.keyed import RecordKey

_WORDS = 2**64


def wrong_donors(entries: Sequence[Entry], key: RecordKey) -> tuple[int, int]:
    """How many people of the last version have another output, and for how many another record is published.

    Parameters
    ----------
    entries : sequence of Entry
        All versions of a register of whole records.
    key : RecordKey
        With the release secret.

    Notes
    -----
    Some 300 bytes a person.
    """
    entry = entries[-1]
    chapter, tree = entry.chapter, Tree([one.chapter for one in entries])
    people = pq.read_table(entry.people, columns=["high", "low", "cell", "node"])
    high, low, cells, nodes = (column.to_numpy() for column in people.columns)
    of_class, place = (cells % chapter.a).tolist(), nodes - chapter.first
    parents, outputs = (np.array(some, dtype=np.int64)[place].tolist() for some in (chapter.parents, chapter.drawn))
    decisions = decisions_of(entry, tree)
    blocks = np.array([decisions[node] for node in parents], dtype="V16").view("<u8").reshape(-1, 2)
    digests = np.stack([high, low], axis=1)
    draw, donate = (words_of(key, ("decision", purpose), digests, blocks) for purpose in ("answer", "donor"))
    row_of: dict[Person, int] = {
        person: row for row, person in enumerate(zip(high.tolist(), low.tolist(), strict=True))
    }
    last = _donors(entries[:-1])
    before = [row_of.get(last.get(person, person), -1) for person in row_of]
    reads = [
        2 * chapter.a if one < 0 else of_class[one] + (0 if one == row else chapter.a) for row, one in enumerate(before)
    ]
    wrong = _wrong_outputs(chapter, parents, reads, outputs, draw)
    begins = {
        row: y % chapter.a
        for row, (y, x) in enumerate(zip(outputs, reads, strict=True))
        if y >= chapter.a and (parents[row] != NEW or y != chapter.a + x)
    }
    stands_for = _stand_ins(of_class, before, begins, {row for row, node in enumerate(parents) if node == NEW}, donate)
    told = _donors(entries[-1:])
    return wrong, sum(row_of.get(told[person]) not in stands_for[row] for person, row in row_of.items())


def _donors(entries: Sequence[Entry]) -> dict[Person, Person]:
    """Whose record was published last for everybody."""
    found: dict[Person, Person] = {}
    for entry in entries:
        assert entry.donors is not None
        rows = zip(*(column.to_pylist() for column in pq.read_table(entry.donors).columns), strict=True)
        found |= {(high, low): (of_high, of_low) for high, low, of_high, of_low in rows}
    return found


def _wrong_outputs(
    chapter: Chapter, parents: Sequence[int], reads: Sequence[int], outputs: Sequence[int], words: Words
) -> int:
    """How many outputs are not those that the words give."""
    rows: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row, (node, x) in enumerate(zip(parents, reads, strict=True)):
        rows[chapter.followed[node], x].append(row)
    wrong = 0
    for (channel, x), some in rows.items():
        weights = [dict(row).get(x, 0) for row in chapter.channels[channel]]
        order = [y for c in range(chapter.a) for y in (c, chapter.a + c)]
        answers = Answers((y, weights[y]) for y in order if weights[y])
        wrong += int(np.count_nonzero(answers.of(words[some]) != np.array(outputs)[some]))
    return wrong


def _stand_ins(
    of_class: Sequence[int], before: Sequence[int], begins: Mapping[int, int], new: set[int], words: Words
) -> list[list[int]]:
    """Whose record is published for every row: one, or all of whom one is drawn by a word that is not the first."""
    stands_for = [[one] for one in before]
    everybody: dict[int, list[int]] = defaultdict(list)
    for row, c in enumerate(of_class):
        everybody[c].append(row)

    def drawn(row: int, *pools: Sequence[int]) -> list[int]:
        return _others(pools, {row, before[row]}, int(words[row]))

    for row in sorted(new & begins.keys()):
        stands_for[row] = drawn(row, everybody[begins[row]])
    published = {one for row, some in enumerate(stands_for) if row in new or row not in begins for one in some}
    left = {c: [row for row in some if row not in published] for c, some in everybody.items()}
    for row, c in begins.items():
        if row not in new:
            stands_for[row] = drawn(row, left[c], everybody[c])
    return stands_for


def _others(pools: Sequence[Sequence[int]], without: set[int], word: int) -> list[int]:
    """Who is drawn of the first of some ascending pools that has others; all of these if the word tells none."""
    for pool in pools:
        found = ((one, bisect_left(pool, one)) for one in sorted(without))
        places = [place for one, place in found if pool[place : place + 1] == [one]]
        others = len(pool) - len(places)
        if others and word >= _WORDS - _WORDS % others:
            return [one for one in pool if one not in without]
        if others:
            number = word % others
            for place in places:
                number += place <= number
            return [pool[number]]
    return []


def records_off(
    entries: Sequence[Entry], snapshot: Snapshot, columns: Sequence[str], published: Mapping[tuple[str, ...], int]
) -> tuple[int, int]:
    """How many published records are of nobody who stands for a person, and how many of these are not published.

    Parameters
    ----------
    entries : sequence of Entry
    snapshot : Snapshot
        The records, with digests of their keys.
    columns : sequence of str
        Of the published records.
    published : mapping of record to int
    """
    record_of: dict[Person, tuple[str, ...]] = {}
    with pq.ParquetFile(snapshot.data.path) as file:
        for batch in file.iter_batches(columns=[*columns, KEY_COLUMN]):
            texts = zip(*(batch.column(name).cast(pa.string()).to_pylist() for name in columns), strict=True)
            keys = np.frombuffer(b"".join(batch.column(KEY_COLUMN).to_pylist()), dtype="<u8").reshape(-1, 2)
            record_of |= dict(zip(map(tuple, keys.tolist()), texts, strict=True))
    expected = Counter(record_of[of] for of in _donors(entries[-1:]).values() if of != NOBODY)
    more, less = Counter(published) - expected, expected - Counter(published)
    return more.total(), less.total()
