"""The words of rows: unrelated for drawing, ordering and ties, and nothing of them without a digest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from funnel.errors import DataError, EntropyError
from funnel.sampling import row_words
from funnel.sampling.key_column import KEY_COLUMN, KeyColumn, key_array
from funnel.sampling.keyed import RecordKey, decision_keys, key_digests, scope_of_register
from funnel.sampling.random_words import WordStream
from funnel.sampling.row_words import FreshWords, KeyedWords, WordKeys, decision_key, words_for
from tests.snapshots import KEY, NOISY, OTHER


def with_digests(ids: list[int], key: RecordKey = KEY) -> pa.RecordBatch:
    batch = pa.record_batch({"id": pa.array(ids)})
    with KeyColumn(key) as keys:
        return batch.append_column(KEY_COLUMN, keys.column(batch))


def test_fresh_words_come_from_a_stream_for_each_purpose(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[int]] = []

    class Noted(WordStream):
        def __init__(self) -> None:
            super().__init__()
            self.asked: list[int] = []
            asked.append(self.asked)

        def words(self, n: int) -> np.ndarray:
            self.asked.append(n)
            return super().words(n)

    monkeypatch.setattr(row_words, "WordStream", Noted)
    words, batch = FreshWords(), with_digests([1, 2, 3])
    assert asked == []
    drawn = [words.to_draw(batch), words.to_order(batch), words.to_part(7, 0, 5), words.to_part(7, 1, 5)]
    drawn += [words.to_draw(batch), FreshWords().to_draw(batch)]
    assert asked == [[3, 3], [3], [5, 5], [3]]
    together = np.concatenate(drawn)
    assert len(np.unique(together)) == len(together)


def test_keyed_words_are_unrelated_for_each_purpose_and_repeat() -> None:
    batch = with_digests(list(range(100)))
    words = KeyedWords(WordKeys.of(KEY, NOISY))
    drawn = [words.to_draw(batch), words.to_order(batch), words.to_part(0, 0, 100), words.to_part(0, 1, 100)]
    assert len(np.unique(np.concatenate(drawn))) == 400
    np.testing.assert_array_equal(words_for(WordKeys.of(KEY, NOISY)).to_draw(batch.slice(40, 7)), drawn[0][40:47])
    np.testing.assert_array_equal(words_for(WordKeys.of(KEY, NOISY)).to_order(batch.slice(40, 7)), drawn[1][40:47])
    assert isinstance(words_for(None), FreshWords)


def test_keys_say_what_their_words_are_for() -> None:
    """Words to draw with are others under another protocol, and so are orders and ties."""
    batch = with_digests(list(range(50)))
    one, other = WordKeys.of(KEY, NOISY), WordKeys.of(KEY, OTHER)
    assert NOISY.digest != OTHER.digest
    assert one.decision != other.decision
    assert len({one.words, one.records, one.order, one.ties, other.order, other.ties}) == 6
    assert len({one.digest, other.digest, WordKeys.of(KEY, NOISY, decided=True).digest}) == 3
    drawn = [KeyedWords(keys).to_draw(batch) for keys in (one, other)]
    assert len(np.unique(np.concatenate(drawn))) == 100
    changed = WordKeys.of(RecordKey(KEY.columns, bytes(range(1, 33))), NOISY)
    assert not {changed.words, changed.order, changed.ties} & {one.words, one.order, one.ties}


def test_a_word_is_of_a_record_and_a_decision() -> None:
    """Decisions of single records give the words of one decision about all of them, and of no other."""
    batch = with_digests(list(range(50)))
    keys = WordKeys.of(KEY, NOISY)
    decision = np.frombuffer(keys.decision or b"", dtype="<u8").astype(np.uint64)
    digests = key_digests(batch, KEY)
    expected = KeyedWords(keys).to_draw(batch)
    decisions = np.tile(decision, (50, 1))
    decisions[7] += np.uint64(1)
    decided = decision_keys(digests, decisions, decision_key(KEY))
    own = batch.set_column(1, KEY_COLUMN, key_array(decided))
    found = KeyedWords(WordKeys.of(KEY, OTHER, decided=True)).to_draw(own)
    assert np.flatnonzero(found != expected).tolist() == [7]
    # Never one word for two purposes, nor one scope for words that do not come again.
    made = [keys, WordKeys.of(KEY, OTHER), *(WordKeys.of(KEY, one, decided=True) for one in (NOISY, OTHER))]
    assert len({scope for one in made for scope in one.scopes.values()}) == 10


def test_the_series_and_the_names_of_key_columns_enter_every_key_but_the_fingerprint() -> None:
    plain = RecordKey(("id",), bytes(range(32)))
    scopes = [plain, replace(plain, series="a"), replace(plain, series="b")]
    scopes += [replace(plain, series=scope_of_register("a"))]
    # Not to be read as one another.
    for columns in (("person",), ("id", "person"), ("id person",)):
        scopes += [replace(plain, series="a", columns=columns), replace(plain, series="a id", columns=columns)]
    assert len({key.fingerprint for key in scopes}) == 1
    made = [WordKeys.of(key, NOISY) for key in scopes]
    assert len({key for one in made for key in (one.words, one.order, one.ties)}) == 3 * len(scopes)
    # Without a series the name of a key column does not enter.
    assert WordKeys.of(replace(plain, columns=("person",)), NOISY) == made[0]
    batches = {key.columns[0]: pa.record_batch({key.columns[0]: [7]}) for key in scopes if len(key.columns) == 1}
    single = [key for key in scopes if len(key.columns) == 1]
    assert len({key_digests(batches[key.columns[0]], key).tobytes() for key in single}) == len(single)


def test_a_record_without_a_digest_is_not_drawn() -> None:
    words = KeyedWords(WordKeys.of(KEY, NOISY))
    batch = with_digests([1, 2]).set_column(1, KEY_COLUMN, pa.array([b"x" * 16, None], pa.binary(16)))
    for draw in (words.to_draw, words.to_order):
        with pytest.raises(DataError, match="1 records have no digest"):
            draw(batch)


def test_a_stuck_source_gives_no_fresh_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.urandom", bytes)
    with pytest.raises(EntropyError, match="stuck"):
        FreshWords().to_part(0, 0, 1)
