"""Words of decisions: the same decision has the same word, another one an unrelated word."""

from __future__ import annotations

import itertools
from functools import reduce

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

import funnel
from funnel.history.changes import Changes
from funnel.history.decisions import EMPTY, History, channel_digest, decision_array, decision_digest, extended_digest
from funnel.history.following import VersionTerms
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.history.step import drawing_protocol
from funnel.protocol import DENOMINATOR
from funnel.sampling.keyed import RecordKey, decision_keys, encrypted_words, key_digests, word_key

HALF = DENOMINATOR // 2
KEY = RecordKey(("id",), bytes(range(32)))
INPUTS, OUTPUTS = funnel.Alphabet(("x",), (("a",), ("b",))), funnel.Alphabet(("x",), (("u",), ("v",)))


EVEN = np.full((2, 2), HALF, dtype=np.uint64)


def history_digest(history: History) -> bytes:
    """The digest of a history, from its beginning."""
    return reduce(lambda digest, one: extended_digest(digest, *one), history, EMPTY)


histories = st.lists(st.tuples(st.text(max_size=4), st.integers(0, 300)), max_size=4).map(tuple)


@given(st.lists(histories, unique=True, min_size=2, max_size=6))
def test_histories_that_differ_have_other_digests(some: list[tuple[tuple[str, int], ...]]) -> None:
    assert len({history_digest(history) for history in some}) == len(some)


def test_names_cannot_run_into_outputs_or_into_each_other() -> None:
    digests = [
        history_digest(history)
        for history in [(("ab", 1), ("c", 2)), (("a", 1), ("bc", 2)), (("ab", 1),), (("ab", 1), ("c", 2), ("", 0)), ()]
    ]
    assert len(set(digests)) == len(digests)


def test_channels_that_differ_have_other_digests() -> None:
    other = EVEN + np.array([[1, 0], [-1, 0]], dtype=np.int64).astype(np.uint64)
    digests = [
        channel_digest(EVEN, INPUTS, OUTPUTS),
        channel_digest(other, INPUTS, OUTPUTS),
        channel_digest(EVEN, OUTPUTS, INPUTS),
        channel_digest(EVEN, INPUTS, funnel.Alphabet(("y",), OUTPUTS.symbols)),
    ]
    assert len(set(digests)) == len(digests)
    assert channel_digest(EVEN.copy(order="F"), INPUTS, OUTPUTS) == digests[0]


def words(ids: list[int], decision: bytes) -> list[int]:
    digests = key_digests(pa.table({"id": ids}), KEY)
    tweaks = np.repeat(decision_array([decision]), len(ids), axis=0)
    return [
        int(word)
        for word in encrypted_words(decision_keys(digests, tweaks, word_key(KEY, "one")), word_key(KEY, "two"))
    ]


def test_a_word_is_the_chained_cipher_of_record_and_decision() -> None:
    decision = decision_digest(history_digest((("1985", 2),)), channel_digest(EVEN, INPUTS, OUTPUTS))
    (record,) = key_digests(pa.table({"id": [7]}), KEY)
    first = Cipher(algorithms.AES(word_key(KEY, "one")), modes.ECB()).encryptor().update(record.astype("<u8").tobytes())
    chained = bytes(one ^ two for one, two in zip(first, decision, strict=True))
    last = Cipher(algorithms.AES(word_key(KEY, "two")), modes.ECB()).encryptor().update(chained)
    assert words([7], decision) == [int.from_bytes(last[:8], "little")]


def test_the_same_decision_repeats_its_word_and_another_does_not() -> None:
    channel = channel_digest(EVEN, INPUTS, OUTPUTS)
    one, two = (decision_digest(history_digest((("a", y),)), channel) for y in (0, 1))
    ids = list(range(500))
    assert words(ids, one) == words(ids, one)
    assert words(list(reversed(ids)), one) == list(reversed(words(ids, one)))
    assert not set(words(ids, one)) & set(words(ids, two))
    apart = np.array(words(ids, one), dtype=np.uint64) ^ np.array(words(ids, two), dtype=np.uint64)
    ones = sum(int(word).bit_count() for word in apart) / (64 * len(ids))
    assert ones == pytest.approx(0.5, abs=0.02)


def test_no_two_decisions_of_a_book_have_a_word_in_common() -> None:
    random = np.random.default_rng(2)
    book = funnel.History(funnel.LIP(0.5))
    digests: list[bytes] = []
    decisions = 0
    for version in range(4):
        table = {"id": np.arange(300), "s": random.integers(0, 2, 300), "x": random.integers(0, 3, 300)}
        step = book.extend(
            pa.table(table), key=["id"], secret=["s"], inputs=["x"], version=str(version), secret_bytes=KEY.secret
        )
        digests += step.decision_digests(step.followed)
        decisions += step.histories
        assert step.decision_digests(step.followed[-1:]) == digests[-1:]
    assert decisions > 10
    assert len(set(digests)) == decisions


def test_the_digest_of_a_node_is_that_of_its_history() -> None:
    book = funnel.History(funnel.LIP(0.5))
    for version in "abc":
        table = {"id": np.arange(60), "s": np.arange(60) % 2, "x": np.arange(60) // 2 % 3}
        book.extend(pa.table(table), key=["id"], secret=["s"], inputs=["x"], version=version, secret_bytes=KEY.secret)
    for node in range(book.past.size):
        assert book.past.digest(node) == history_digest(book.past.history(node))
        assert book.past.node(book.past.history(node)) == node


def test_nobody_is_drawn_from_a_history_that_nobody_has() -> None:
    book = funnel.History(funnel.LIP(0.5))
    table = {"id": np.arange(60), "s": np.arange(60) % 2, "x": np.arange(60) // 2 % 3}
    step = book.extend(pa.table(table), key=["id"], secret=["s"], inputs=["x"], version="a")
    with pytest.raises(funnel.FunnelError, match="nobody in version 'a'"):
        step.decision_digests(np.array([5]))


def test_the_drawing_protocol_has_the_rows_of_every_history() -> None:
    random = np.random.default_rng(4)
    n, a = 400, 3
    cells = random.integers(0, 2 * a, size=(2, n))
    cells[1] = np.where(random.random(n) < 0.7, cells[0], cells[1])
    joints = [
        funnel.Joint.from_counts(np.bincount(one, minlength=2 * a).reshape(2, a), inputs=["p", "q", "r"])
        for one in cells
    ]
    guarantee = funnel.LIP(0.1)
    first = VersionTerms(guarantee, "a").decide(
        Past(), Observed.counted(joints[0], {}, np.zeros(n, int), cells[0] % a), read_alone=False
    )
    outputs = random.integers(0, first.channel.size[0], size=n)
    pairs, places = np.unique(outputs, return_inverse=True)
    past = Past().followed_by(first.chapter(np.zeros(len(pairs), int), pairs))
    observed = Observed.counted(joints[1], {0: Changes.counted(cells[0], cells[1])}, 1 + places, cells[1] % a)
    step = VersionTerms(guarantee, "b").decide(past, observed, read_alone=False)
    drawing = drawing_protocol(step)
    assert drawing.inputs.columns == ("history channel", "X")
    assert drawing.outputs == step.channel.outputs
    met = set()
    for node, x in itertools.product(step.followed.tolist(), range(a)):
        rows = step.rows_for(past.history(node))
        symbol = (str(step.drawn_from[step.followed.tolist().index(node)]), *step.joint.inputs.symbols[x])
        if symbol in drawing.inputs:
            assert (drawing.weights[:, drawing.inputs.index(symbol)] == rows[:, x]).all()
            met.add(symbol)
    assert met == set(drawing.inputs.symbols)
    assert len(met) >= a
