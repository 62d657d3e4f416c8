"""Donor answers: whose record was published for everybody, derived once more from the secret, keys and histories.

A record goes on or begins by a word as other answers are drawn, class by class: first that the same person goes on,
then that another one begins. Who begins is drawn by a word of its own among all people of the class in the order of
the digests of their keys, but for the person and who stood for them before: of people who are new among all, later
among those who are not published otherwise, where there is one. Of people with several rows this is so for the first
rows of those with as many, then for the second ones, ….
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from funnel.pipeline.expectations.keyed_answers import Answers, Words, decisions_of, places_in_units, words_of
from funnel.recount.chapters import NEW, Chapter, Tree
from funnel.recount.donor_register import NOBODY
from funnel.recount.register_files import Entry
from funnel.release.snapshot import Snapshot
from funnel.sampling.key_column import KEY_COLUMN
from funnel.sampling.keyed import RecordKey

# The digest of the key of a person, and which of their rows it is, from 1.
Record = tuple[int, int, int]
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
    several = entry.chapter.units is not None
    people = pq.read_table(entry.rows, columns=["high", "low", "cell", "node", *(("row",) if several else ())])
    # Nothing is read of units whose number of rows is rare.
    people = people.filter(pc.greater(people["node"], NEW))
    high, low, cells, nodes = (column.to_numpy() for column in people.columns[:4])
    of_class, place = (cells % chapter.a).tolist(), nodes - chapter.first
    parents, outputs = (np.array(some, dtype=np.int64)[place].tolist() for some in (chapter.parents, chapter.drawn))
    decisions = decisions_of(entry, tree)
    blocks = np.array([decisions[node] for node in parents], dtype="V16").view("<u8").reshape(-1, 2)
    digests = np.stack([high, low], axis=1)
    draw, donate = (words_of(key, ("decision", purpose), digests, blocks) for purpose in ("answer", "donor"))
    known = zip(high.tolist(), low.tolist(), people["row"].to_pylist() if several else [1] * len(high), strict=True)
    row_of: dict[Record, int] = {record: row for row, record in enumerate(known)}
    told = _donors(entries[-1:])
    before = [row_of.get(one, -1) for one in _before(row_of, _donors(entries[:-1]), told)]
    reads = [
        2 * chapter.a if one < 0 else of_class[one] + (0 if one == row else chapter.a) for row, one in enumerate(before)
    ]
    wrong = _wrong_outputs(chapter, parents, reads, outputs, draw)
    begins = {
        row: y % chapter.a
        for row, (y, x) in enumerate(zip(outputs, reads, strict=True))
        if y >= chapter.a and (parents[row] != NEW or y != chapter.a + x)
    }
    new, records, others = {row for row, node in enumerate(parents) if node == NEW}, [*row_of], 0
    for some in _alike(records):
        stands_for = _stand_ins(some, of_class, before, begins, new, donate)
        others += sum(row_of.get(told[records[row]]) not in stands_for[row] for row in some)
    return wrong, others


def _alike(records: Sequence[Record]) -> Iterable[list[int]]:
    """Rows that can be published for each other: with one place in units with as many rows."""
    sizes = Counter(record[:2] for record in records)
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row, record in enumerate(records):
        found[sizes[record[:2]], record[2]].append(row)
    return found.values()


def _before(row_of: Iterable[Record], last: Mapping[Record, Record], told: Mapping[Record, Record]) -> Iterator[Record]:
    """Whose record stands for each before it is drawn: who stood for the row before, or in an earlier version."""
    for high, low, number in row_of:
        if number == 1:
            yield last.get((high, low, number), (high, low, number))
        else:
            of_high, of_low, of_row = told[high, low, number - 1]
            yield of_high, of_low, of_row + 1


def _donors(entries: Sequence[Entry]) -> dict[Record, Record]:
    """Whose record was published last for everybody, or for each of their rows."""
    found: dict[Record, Record] = {}
    for entry in entries:
        assert entry.donors is not None
        table = pq.read_table(entry.donors)
        ones = [1] * len(table)
        rows, of_rows = (table[name].to_pylist() if name in table.column_names else ones for name in ("row", "of_row"))
        high, low, of_high, of_low = (table[name].to_pylist() for name in ("high", "low", "of_high", "of_low"))
        found |= dict(zip(zip(high, low, rows, strict=True), zip(of_high, of_low, of_rows, strict=True), strict=True))
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
    rows: Sequence[int],
    of_class: Sequence[int],
    before: Sequence[int],
    begins: Mapping[int, int],
    new: set[int],
    words: Words,
) -> dict[int, list[int]]:
    """Whose record is published for each of some rows: one, or all of whom one is drawn by a later word."""
    stands_for = {row: [before[row]] for row in rows}
    everybody: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        everybody[of_class[row]].append(row)

    def drawn(row: int, *pools: Sequence[int]) -> list[int]:
        return _others(pools, {row, before[row]}, int(words[row]))

    first, later = ([row for row in rows if row in begins and (row in new) is is_new] for is_new in (True, False))
    for row in first:
        stands_for[row] = drawn(row, everybody[begins[row]])
    published = {one for row, some in stands_for.items() if row in new or row not in begins for one in some}
    left = {c: [row for row in some if row not in published] for c, some in everybody.items()}
    for row in later:
        stands_for[row] = drawn(row, left[begins[row]], everybody[begins[row]])
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
    entries: Sequence[Entry],
    snapshot: Snapshot,
    columns: Sequence[str],
    published: Mapping[tuple[str, ...], int],
    key: RecordKey,
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
    key : RecordKey
        With the release secret.
    """
    records, digests = list[tuple[str, ...]](), list[bytes]()
    with pq.ParquetFile(snapshot.data.path) as file:
        for batch in file.iter_batches(columns=[*columns, KEY_COLUMN]):
            records += zip(*(batch.column(name).cast(pa.string()).to_pylist() for name in columns), strict=True)
            digests += batch.column(KEY_COLUMN).to_pylist()
    people = np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 2)
    rows = np.ones(len(people), dtype=np.int64) if entries[-1].chapter.units is None else places_in_units(people, key)
    record_of = dict(zip(zip(*people.T.tolist(), rows.tolist(), strict=True), records, strict=True))
    expected = Counter(record_of[of] for of in _donors(entries[-1:]).values() if of[:2] != NOBODY)
    more, less = Counter(published) - expected, expected - Counter(published)
    return more.total(), less.total()


def unread_cells(entry: Entry) -> Counter[int]:
    """Cells of the rows of units whose number of rows is rare, of which nothing is read."""
    if entry.chapter.units is None:
        return Counter()
    rows = pq.read_table(entry.rows, columns=["cell", "node"])
    return Counter(rows.filter(pc.equal(rows["node"], NEW))["cell"].to_pylist())
