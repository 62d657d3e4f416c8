"""The drawing judged: faults of the sampler, one line each, are found by the expectation that is meant to find them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import funnel
from funnel.alphabet import Alphabet
from funnel.audit.check import FALSE_ALARM as OF_AN_AUDIT
from funnel.drawn import DrawnCounts
from funnel.findings.consistency import FALSE_ALARM, SHARES
from funnel.findings.order import association
from funnel.joint import Joint
from funnel.pipeline.expectations import drawing_claims
from funnel.pipeline.expectations import drawing_claims as ordering
from funnel.pipeline.expectations.claims import Claim
from funnel.pipeline.expectations.drawing_claims import Channel, Placed, _likely, coded
from funnel.protocol import Protocol
from funnel.release.documents import DrawsDocument, draws_document
from funnel.sampling import answers, parts, row_words
from funnel.sampling.answers import Answers
from funnel.sampling.codes import InputEncoder
from funnel.sampling.engine import release_rows
from funnel.sampling.key_column import KEY_COLUMN, KeyColumn
from funnel.sampling.keyed import RecordKey
from funnel.sampling.partitions import plan_rows
from funnel.sampling.random_words import WordArray, WordStream
from funnel.word_statistics import WordStatistics
from tests.projects import ADULT

ROWS = 12_000
SECRETS = tuple(sorted(set(pq.read_table(ADULT, columns=["marital-status"])["marital-status"].to_pylist())))
# Every check of the drawing, and the function that makes it.
CHECKS = ("drawn_by_input", "random_order", "in_source_order", "random_words", "sampler")
INDEPENDENCE, ORDER, SOURCE_ORDER, WORDS, SAMPLER = CHECKS


@dataclass(frozen=True, eq=False)
class Drawing:
    """What is asked of a finished folder about the drawing of its rows, without a folder."""

    released: Path
    published: Protocol
    joint: Joint
    channel: Channel
    draws: DrawsDocument
    words: Mapping[str, WordStatistics]
    snapshot: Path
    shuffled: bool
    taken_over: bool = False
    earlier_words: tuple[Mapping[str, WordStatistics], ...] = ()
    classes: None = None

    @property
    def drawn_with(self) -> Protocol:
        return self.channel.protocol

    def __getattr__(self, name: str) -> Any:
        """Parts of a folder that have one part each here."""
        parts = {
            "document": lambda: SimpleNamespace(protocol=self.published),
            "folder": lambda: SimpleNamespace(data=self.released),
            "spec_text": lambda: SimpleNamespace(shuffled=self.shuffled),
            "drawn_snapshot": lambda: SimpleNamespace(data=SimpleNamespace(path=str(self.snapshot))),
        }
        return parts[name]()


class Case:
    """A source in six partitions, and a protocol for it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        self.source = folder / "source.parquet"
        table = pq.read_table(ADULT, columns=["marital-status", "education"]).slice(0, ROWS)
        pq.write_table(table, self.source, row_group_size=2000)
        self.joint = funnel.Joint.from_table(self.source, secret=["marital-status"], inputs=["education"])
        self.protocol: Protocol = funnel.optimal(self.joint, funnel.LIP(1.0)).protocol

    def draw(self, *, shuffle: bool = True, key: RecordKey | None = None, asked: bool | None = None) -> Drawing:
        """What is left of rows that are drawn now; ``asked`` is what the spec says of shuffling."""
        self.number += 1
        answers._sampler.cache_clear()
        path, source = self.folder / f"{self.number}.parquet", self.source
        (self.folder / str(self.number)).mkdir()
        if key is not None:
            source = self.keyed(key)
        plan = plan_rows(
            source,
            "",
            self.protocol,
            self.folder / str(self.number),
            shuffle=shuffle,
            record_key=key,
            secret=self.joint.secret,
            partition_rows=2000,
        )
        drawn = release_rows(plan, path)
        answers._sampler.cache_clear()
        return Drawing(
            path,
            self.protocol,
            self.joint,
            Channel(self.protocol, self.joint, DrawnCounts.of_pairs(drawn.counts)),
            draws_document(drawn.counts, self.joint.secret, drawn.probe),
            drawn.words,
            source,
            shuffle if asked is None else asked,
        )

    def keyed(self, key: RecordKey) -> Path:
        """The source with the digests of keys that a snapshot has."""
        path = self.folder / "keyed.parquet"
        table = pq.read_table(self.source).append_column("id", pa.array(range(ROWS)))
        with KeyColumn(key) as keys:
            digests = keys.column(table.combine_chunks().to_batches()[0])
            keys.check()
        pq.write_table(table.append_column(KEY_COLUMN, digests), path, row_group_size=2000)
        return path


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(tmp_path_factory.mktemp("drawing"))


@pytest.fixture(scope="module")
def clean(case: Case) -> Drawing:
    return case.draw()


def failures(drawing: Drawing) -> dict[str, str]:
    """What fails, with the sentences."""
    order = ORDER if drawing.shuffled else SOURCE_ORDER
    claims: dict[str, list[Claim]] = {
        name: getattr(drawing_claims, name)(drawing) for name in (INDEPENDENCE, order, WORDS, SAMPLER)
    }
    wrong = {name: [f"{one.name} {one.failure}" for one in some if one.failure] for name, some in claims.items()}
    return {name: "; ".join(some) for name, some in wrong.items() if some}


def test_a_faultless_release_passes(clean: Drawing) -> None:
    assert failures(clean) == {}


def test_faultless_releases_are_refused_at_most_once_in_a_thousand_million() -> None:
    assert sum(SHARES.values()) == pytest.approx(FALSE_ALARM)
    # With the nine tests of an audit that are not of the drawing, and those of the register, at 1e-12 each.
    assert FALSE_ALARM + 9 * OF_AN_AUDIT < 9e-10


Mutate = Callable[[pytest.MonkeyPatch], None]


def _words(change: Callable[[WordArray], WordArray]) -> Mutate:
    """Other words to draw with; words that rows are ordered by are refused by the engine if they tie that often."""
    real = row_words.FreshWords.to_draw
    return lambda patch: patch.setattr(row_words.FreshWords, "to_draw", lambda self, batch: change(real(self, batch)))


def _order(tags: Callable[[Answers], Any]) -> Mutate:
    """Rows in another order: by the highest bits, then at random."""
    real = parts.order_words

    def order_words(drawn: Answers, outputs: int, words: Any) -> WordArray:
        tagged, code = real(drawn, outputs, words), np.uint64(15)
        first = tags(drawn).astype(np.uint64) << np.uint64(48)
        return first | (tagged >> np.uint64(16)) & ~code | tagged & code

    return lambda patch: patch.setattr(parts, "order_words", order_words)


def _secrets(drawn: Answers) -> Any:
    return InputEncoder(Alphabet(("marital-status",), tuple((text,) for text in SECRETS))).codes(drawn.batch)


def _coupled(patch: pytest.MonkeyPatch) -> None:
    """Among the records of one input, the last outputs go to the last secrets: no pair of (input, output) changes."""
    real = parts.answers

    def coupled(*arguments: Any) -> Iterator[Answers]:
        for drawn in real(*arguments):
            secrets, outputs = _secrets(drawn), drawn.outputs.copy()
            for x in np.unique(drawn.inputs):
                rows = np.flatnonzero(drawn.inputs == x)
                outputs[rows[np.argsort(secrets[rows], kind="stable")]] = np.sort(outputs[rows])
            yield replace(drawn, outputs=outputs)

    patch.setattr(parts, "answers", coupled)


def _shared(patch: pytest.MonkeyPatch) -> None:
    def begin(self: row_words.FreshWords) -> None:
        self._streams = {
            use: WordStream.with_known_key_for_tests(bytes([i] * 32), bytes(16))
            for i, use in enumerate(("draw", "order", "ties"))
        }

    patch.setattr(row_words.FreshWords, "__init__", begin)


def _one_stream(patch: pytest.MonkeyPatch) -> None:
    """Rows are ordered by the words that they were drawn with."""
    patch.setattr(
        row_words.FreshWords,
        "to_order",
        lambda self, batch: self._last,
    )
    real = row_words.FreshWords.to_draw

    def to_draw(self: Any, batch: pa.RecordBatch) -> WordArray:
        self._last = real(self, batch)
        return self._last.copy()

    patch.setattr(row_words.FreshWords, "to_draw", to_draw)


def _off_by_one(patch: pytest.MonkeyPatch) -> None:
    real = answers.ChannelSampler.__init__

    def begin(self: Any, weights: Any, marginal: Any) -> None:
        # One word of 2^63 moves from the largest weight of all to the next of the same input.
        moved = weights.copy()
        y, x = np.unravel_index(int(weights.argmax()), weights.shape)
        moved[y, x] -= np.uint64(1)
        moved[(y + 1) % len(moved), x] += np.uint64(1)
        real(self, moved, marginal)

    patch.setattr(answers.ChannelSampler, "__init__", begin)


@pytest.mark.parametrize(
    ("mutate", "name", "said"),
    [
        (_coupled, INDEPENDENCE, r"outputs depend on the secret beyond the input, over .* most with .*: p-value"),
        (_order(lambda drawn: _secrets(drawn)), ORDER, r"rows are sorted by the secret|the file is not the same"),
        (_order(lambda drawn: drawn.inputs), ORDER, r"rows are sorted by the input|the file is not the same"),
        (_order(lambda drawn: 100 - drawn.inputs), ORDER, r"the file is not the same|rows are sorted by the input"),
        (_order(lambda drawn: drawn.outputs), ORDER, r"the file is not the same|rows are sorted|the row before"),
        (
            _words(lambda words: np.repeat(words, 2)[: len(words)]),
            WORDS,
            r"\d+ of those compared had been there",
        ),
        (_words(lambda words: words & np.uint64(0xFF << 56)), WORDS, r"bit \d+ of them is one in 0 % of cases"),
        (_words(lambda words: words & np.uint64(0xFF)), WORDS, r"bit \d+ of them is one in 0 % of cases"),
        (_words(lambda words: words | np.uint64(1 << 20)), WORDS, r"bit 20 of them is one in 100 % of cases"),
        (_shared, WORDS, r"words that rows were drawn with are there twice in this release"),
        (_one_stream, WORDS, r"words are used for two purposes"),
        (_off_by_one, SAMPLER, r"does not give way from one output to the next where the weights"),
    ],
    ids=[
        "draws coupled to the secret",
        "sorted by secret",
        "sorted by input",
        "sorted by input, last first",
        "sorted by output",
        "every word twice",
        "8-bit words",
        "8-bit words, low",
        "a bit stuck",
        "words shared by partitions",
        "one stream for two purposes",
        "threshold off by one",
    ],
)
def test_faults_of_the_sampler_are_found(
    case: Case, monkeypatch: pytest.MonkeyPatch, mutate: Mutate, name: str, said: str
) -> None:
    with monkeypatch.context() as patch:
        mutate(patch)
        drawing = case.draw()
    found = failures(drawing)
    assert name in found, found

    assert re.search(said, found[name]), found[name]


def test_rows_that_are_not_shuffled_though_the_spec_asks_are_found(case: Case) -> None:
    found = failures(case.draw(shuffle=False, asked=True))
    assert re.match("order tells something: rows follow the order of the source: p-value", found[ORDER])
    assert found[WORDS] == f"words that rows were ordered by is 0 instead of {ROWS}"


def test_the_order_of_the_source_is_kept_where_the_spec_does_not_shuffle(case: Case) -> None:
    assert failures(case.draw(shuffle=False)) == {}
    found = failures(case.draw(shuffle=True, asked=False))
    assert set(found) == {SOURCE_ORDER}
    assert found[SOURCE_ORDER].startswith("order is not that of the source: inputs and outputs differ in ")


def test_words_of_an_earlier_version_are_known_again(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generator with a seed, which gives good words, and the same ones in every release."""

    def seeded(self: row_words.FreshWords, use: str, count: int) -> WordArray:
        generators = self.__dict__.setdefault("generators", {})
        generator = generators.setdefault(use, np.random.default_rng(len(use)))
        return generator.integers(0, 2**64, count, dtype=np.uint64)

    with monkeypatch.context() as patch:
        patch.setattr(row_words.FreshWords, "_words", seeded)
        one, two = case.draw(), case.draw()
    # In six partitions that begin alike, and again in the next version; however few were repeated of a release.
    assert "are there twice in this release" in failures(one)[WORDS]
    again = failures(replace(two, earlier_words=(one.words,)))[WORDS]
    assert "words that rows were drawn with were used in an earlier version" in again
    assert "words that rows were ordered by were used in an earlier version" in again


def test_keyed_words_come_again_with_their_key_and_with_no_other(case: Case) -> None:
    keys = [RecordKey(("id",), bytes(range(n, n + 32))) for n in (0, 1)]
    one, two, other = (case.draw(key=key) for key in (keys[0], keys[0], keys[1]))
    assert failures(replace(two, earlier_words=(one.words,))) == {}
    assert failures(replace(other, earlier_words=(one.words,))) == {}
    # The same words without a key, or under another one, are another matter.
    for scope in (None, "0" * 32):
        words = {use: replace(stream, scope=scope) for use, stream in one.words.items()}
        assert WORDS in failures(replace(two, earlier_words=(words,)))


def of_counts(drawing: Drawing, table: np.ndarray, secret: Alphabet | None = None) -> Drawing:
    """The same with other counts of what was drawn, shape (c + 1, a + 1, b)."""
    known, probe = drawing.draws.secret.alphabet(), drawing.draws.probe
    return replace(drawing, draws=draws_document(DrawnCounts.of(table), known if secret is None else secret, probe))


def table_of(drawing: Drawing) -> np.ndarray:
    counts = drawing.draws.counts
    table = np.zeros(counts.shape, dtype=np.int64)
    table.reshape(-1)[counts.cells] = counts.records
    return table


def test_counts_by_secret_have_to_agree_with_all_else_that_is_known(clean: Drawing) -> None:
    table, secret = table_of(clean), clean.draws.secret.alphabet()
    fewer = table.copy()
    fewer[tuple(np.argwhere(fewer)[0])] = 0
    one_a_record = r"draws are not one a record for \d+ combinations of secret and input"
    assert re.match(one_a_record, failures(of_counts(clean, fewer))[INDEPENDENCE])
    other = Alphabet(secret.columns, (("nobody's",), *secret.symbols[1:]))
    assert "by other secrets" in failures(of_counts(clean, table, other))[INDEPENDENCE]
    turned = Alphabet(secret.columns, secret.symbols[::-1])
    assert re.match(one_a_record, failures(of_counts(clean, table, turned))[INDEPENDENCE])
    # The order of the spec may be another than that of the recount, as long as the counts are in it.
    places = np.r_[np.arange(len(secret))[::-1], len(secret)]
    halves = [clean.words["order"].halves[place] for place in places]
    assert failures(with_halves(of_counts(clean, table[places], turned), halves)) == {}
    # All records of one secret are said to be of another: pairs stay, and so do all draws.
    table[0] += table[1]
    table[1] = 0
    assert re.match(one_a_record, failures(of_counts(clean, table))[INDEPENDENCE])


def with_halves(drawing: Drawing, halves: list[tuple[int, int]]) -> Drawing:
    """The same with other notes of which half of the file the records of each secret came to."""
    order = replace(drawing.words["order"], halves=tuple(map(tuple, halves)))
    return replace(drawing, words={**drawing.words, "order": order})


def test_a_secret_that_leans_to_one_end_of_the_file_is_found(clean: Drawing) -> None:
    halves = [list(one) for one in clean.words["order"].halves]
    most = max(range(len(halves)), key=lambda s: sum(halves[s]))
    rest = [s for s in range(len(halves)) if s != most]
    # What one secret has more in the first half the others have more in the second.
    moved = sum(halves[most]) // 5
    assert halves[most][1] >= moved
    halves[most] = [halves[most][0] + moved, halves[most][1] - moved]
    for s in rest:
        own = min(halves[s][0], moved)
        halves[s], moved = [halves[s][0] - own, halves[s][1] + own], moved - own
    found = failures(with_halves(clean, [(first, second) for first, second in halves]))
    assert re.match("order tells something: records of a secret lean to one end of the file: p-value", found[ORDER])
    short = [(0, 0), *clean.words["order"].halves[1:-1], (0, 0)]
    missing = clean.words["order"].words - sum(map(sum, short))
    found = failures(with_halves(clean, [*short[:-1], (missing, 0)]))
    assert "order was not noted for every record by its secret" in found[ORDER]


def test_an_output_that_an_input_never_gives_is_told_by_its_secret(clean: Drawing) -> None:
    table = table_of(clean)
    y, x = np.argwhere(clean.published.weights == 0)[0]
    s = int(table[:, x].sum(axis=1).argmax())
    drawn = int(table[s, x].argmax())
    table[s, x, drawn] -= 1
    table[s, x, y] += 1
    secret, label = clean.joint.secret.labels[s], clean.published.inputs.labels[x]
    said = (
        f"outputs of 1 records are never given for their input, most of them with secret {secret!r} and input {label!r}"
    )
    assert said in failures(of_counts(clean, table))[INDEPENDENCE]


def test_a_p_value_that_is_no_number_fails() -> None:
    assert _likely("outputs", math.nan, 1e-9, "depend").failure is not None
    assert _likely("outputs", 1e-9, 1e-9, "depend").failure is None
    assert _likely("outputs", 1e-10, 1e-9, "depend").failure == "depend: p-value 1e-10 is below 1e-09"


def test_histories_of_rows_that_are_taken_over_are_added_up(clean: Drawing) -> None:
    """The snapshot at hand does not say which channel an earlier version drew each record from."""
    public = clean.published
    symbols = tuple((history, *symbol) for history in "01" for symbol in public.inputs.symbols)
    inputs = Alphabet(("history channel", *public.inputs.columns), symbols)
    pairs = clean.channel.drawn.pairs
    some = pairs[:-1] // 3
    drawn = DrawnCounts.of_pairs(np.vstack([some, pairs[:-1] - some, pairs[-1:]]))
    drawn_with = Channel(replace(public, weights=np.tile(public.weights, 2), inputs=inputs), clean.joint, drawn)
    found = drawing_claims.in_snapshot(cast(Any, replace(clean, channel=drawn_with, taken_over=True)))
    assert (found.drawn.pairs == pairs).all()
    assert drawing_claims.in_snapshot(cast(Any, replace(clean, channel=drawn_with))) is drawn_with


def test_a_protocol_that_reads_the_secret_is_judged_on_secret_and_input(case: Case) -> None:
    protocol = funnel.fit("conditional-reporting", case.joint, funnel.LIP(1.0))
    distribution = case.joint.read_by(protocol.inputs.columns).counts
    channel = Channel(protocol, case.joint, DrawnCounts.of(np.zeros((1, 1, 1), dtype=np.int64)))
    assert channel.records.tolist() == [[*row, 0] for row in distribution.tolist()]


def test_of_too_many_labels_the_commonest_have_lines_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "_MAX_OUTPUTS", 2)
    monkeypatch.setattr(ordering, "_MAX_TABLE", 6)
    labels, outputs = np.array([5, 1, 7, 3]), np.array([2, 9, 5])
    table = ordering._Table(labels, outputs)
    assert table.counts.shape == (3, 2)
    # Every label with every output, so often: the third label is the commonest, and so is the second output.
    for label, times in enumerate(labels.tolist()):
        table.add(np.full(3 * times, label), np.tile([0, 1, 2], times))
    assert table.counts.tolist() == [[7, 14], [5, 10], [4, 8]]
    # As many as there is room for stay as they are.
    assert [part.tolist() if isinstance(part, np.ndarray) else part for part in ordering._folded(labels, 4)] == [
        [0, 1, 2, 3],
        4,
    ]
    assert ordering._folded(labels, 3)[0].tolist() == [1, 2, 0, 2]


def test_blocks_of_rows_are_of_whole_rows(tmp_path: Path) -> None:
    one = Alphabet(("x",), (("a",),))
    pq.write_table(pa.table({"x": ["a"] * 100}), tmp_path / "rows.parquet")
    rows = Placed(tmp_path / "rows.parquet", one, np.array([100, 0]))
    tables = ordering.order_tables(rows, rows, rows)
    # 100 rows in 64 blocks: the k-th one ends with row 100 (k + 1) / 64, rounded down.
    assert tables[ordering.BY_BLOCK][:, 0].tolist() == [100 * (k + 1) // 64 - 100 * k // 64 for k in range(64)]
    assert tables[ordering.BY_ROW_BEFORE].tolist() == [[50, 0], [0, 0]]
    assert tables[ordering.BY_INPUT].tolist() == tables[ordering.SORTED_BY_INPUT].tolist() == [[100, 0], [0, 0]]


@pytest.mark.parametrize("kept", [1.0, 0.75])
@pytest.mark.parametrize("leaning", [(0.6, 0.4), (0.4, 0.6), (0.6, 0.6)])
def test_rows_that_lean_to_one_end_by_the_secret_are_noticed(
    tmp_path: Path, kept: float, leaning: tuple[float, float]
) -> None:
    """3,000 rows of two secrets, of which the first half has 60 % of one and 40 % of the other; of both, nothing."""
    random, n = np.random.default_rng(3), 3000
    secret = random.random(n) < 0.5
    drawn = np.where(random.random(n) < kept, secret, random.random(n) < 0.5).astype(int)
    first = random.random(n) < np.where(secret, *leaning)
    order = np.argsort(random.random(n) + ~first)
    values = Alphabet(("x",), (("0",), ("1",)))
    for name, column in (("released", drawn[order]), ("source", secret.astype(int))):
        pq.write_table(pa.table({"x": column.astype(str)}), tmp_path / name)
    counts = [np.append(np.bincount(column, minlength=2), 0) for column in (drawn, secret.astype(int))]
    source = Placed(tmp_path / "source", values, counts[1])
    tables = ordering.order_tables(Placed(tmp_path / "released", values, counts[0]), source, source)
    p = association(tables[ordering.BY_HALF]).p_value
    if leaning[0] == leaning[1]:
        assert p > 1e-3
    else:
        assert p * len(ordering.FAILURES) < SHARES["order"]
        assert association(tables[ordering.BY_BLOCK]).p_value > SHARES["order"] or kept == 1


@pytest.mark.parametrize("rows", [1, 3, 7])
def test_rows_are_coded_whatever_their_types_and_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr("funnel.pipeline.expectations.drawing_claims.CHUNK_ROWS", rows)
    alphabet = Alphabet(("n", "t"), (("1", "a"), ("2", "a"), ("1", "b")))
    numbers, texts = [1, 2, 1, 2, None, 3, 1], ["a", "a", "b", "b", "a", "a", None]
    table = pa.table({"n": pa.array(numbers), "t": pa.array(texts).dictionary_encode(), "other": texts})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=2)
    chunks = list(coded(tmp_path / "rows.parquet", alphabet))
    assert [len(chunk) for chunk in chunks] == [rows] * (7 // rows) + [7 % rows] * bool(7 % rows)
    assert np.concatenate(chunks).tolist() == [0, 1, 2, 3, 3, 3, 3]
