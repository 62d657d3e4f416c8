"""Whole records: what becomes of each, enumerated and drawn; counts, errors and r of any statistic of these."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import funnel
from funnel.alphabet import CLASS_COLUMN, Alphabet
from funnel.errors import DataError, SpecError
from funnel.estimation import by_class
from funnel.estimation.by_class import _moves, donor_chances, record_channel, whole_records
from funnel.estimation.means import plain_numbers
from funnel.estimation.odds import plain_odds
from funnel.estimation.plain_shares import plain_shares
from funnel.estimation.variance_ratios import influence_ratio, rows_of, table_ratio
from funnel.joint import IntArray, Joint
from funnel.protocol import Protocol
from funnel.sampling.donors import Donors

CODES = np.array([[i, j] for i in range(4) for j in range(3)], dtype=np.int32)
OF = np.array([0, 0, 1, 0, 1, 1, 2, 2, 1, 2, 2, 0])
COUNTS = np.array([60, 30, 80, 20, 70, 30, 50, 40, 60, 90, 30, 40])
VALUES = (("d", "c", "b", "a"), ("5", "10", "20"))
DONORS = Donors(("one", "two"), VALUES, CODES, ("1", "2", "3"), OF, COUNTS)
CLASSES = Alphabet((CLASS_COLUMN,), (("1",), ("2",), ("3",)))
SECRETS = [[20, 120, 190], [130, 120, 20]]
PEOPLE = np.repeat(np.arange(len(COUNTS)), COUNTS)
# Records of the table in the order of `whole_records`: class by class along the lines.
LINES = np.lexsort((CODES[:, 1], CODES[:, 0], OF))
LINE_COUNTS = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def protocol() -> Protocol:
    return funnel.fit("invariant", Joint.from_counts(SECRETS, inputs=CLASSES), funnel.LIP(0.3))


def published(records: IntArray) -> pa.Table:
    codes = np.column_stack([CODES, OF])[records].astype(np.int8)
    columns = zip((*DONORS.columns, CLASS_COLUMN), (*VALUES, DONORS.classes), codes.T, strict=True)
    return pa.table({name: pa.DictionaryArray.from_arrays(pa.array(c), list(texts)) for name, texts, c in columns})


def drawn(random: np.random.Generator, channel: Protocol) -> IntArray:
    """The record that is published for everybody, by the code that releases."""
    cumulated = np.cumsum(channel.matrix, axis=0)[:, OF[PEOPLE]]
    classes = (random.random(len(PEOPLE)) > cumulated).sum(axis=0)
    words = random.integers(0, 2**64, (8, len(PEOPLE)), dtype=np.uint64)
    return DONORS.taken(PEOPLE, classes, words.__getitem__)


@given(LINE_COUNTS, LINE_COUNTS)
def test_donors_stand_where_records_stand_on_their_line(line: list[int], other: list[int]) -> None:
    """Every person of both lines, one by one, in fractions."""
    found = np.zeros((len(other), len(line)))
    chances, donors, records = donor_chances(np.array(line), np.array(other))
    np.add.at(found, (donors, records), chances)
    size, width = sum(line), sum(other)
    people, takers = ([k for k, n in enumerate(counts) for _ in range(n)] for counts in (line, other))
    exact = [[Fraction(0)] * len(line) for _ in other]
    for i, record in enumerate(people):
        for j, donor in enumerate(takers):
            common = min(Fraction(i + 1, size), Fraction(j + 1, width)) - max(Fraction(i, size), Fraction(j, width))
            exact[donor][record] += max(Fraction(0), common) * size / line[record]
    assert found == pytest.approx(np.array(exact, dtype=float))


def test_the_channel_is_that_which_records_are_drawn_by() -> None:
    """All whole numbers that words can stand for, for every record and every class that is drawn for it."""
    channel = protocol()
    expected = np.zeros((len(COUNTS), len(COUNTS)))
    for x in range(len(COUNTS)):
        for h in range(3):
            if h == OF[x]:
                expected[x, x] += channel.matrix[h, h]
                continue
            words = np.arange(COUNTS[x] * COUNTS[h == OF].sum(), dtype=np.uint64)
            rows = np.full(len(words), x)
            taken = DONORS.taken(rows, np.full(len(words), h), lambda _, words=words: words)
            expected[:, x] += channel.matrix[h, OF[x]] * np.bincount(taken, minlength=len(COUNTS)) / len(words)
    found = record_channel(channel.matrix[None, :, None], OF[LINES], COUNTS[LINES]).toarray()
    assert found == pytest.approx(expected[np.ix_(LINES, LINES)])


def test_a_published_secret_is_drawn_with_the_class() -> None:
    """Every secret and record, by the donors of the code that releases and the probabilities of the protocol."""
    joint = Joint.from_counts(SECRETS, inputs=CLASSES, secret=["ill", "well"]).with_secret()
    channel = funnel.fit("invariant", joint, funnel.Attribute(1.0))
    a = len(COUNTS)
    expected = np.zeros((2 * a, 2 * a))
    for (s, secret), x in itertools.product(enumerate(("ill", "well")), range(a)):
        column = channel.matrix[:, channel.inputs.index((secret, DONORS.classes[OF[x]]))]
        for (t, shown), h in itertools.product(enumerate(("ill", "well")), range(3)):
            probability = column[channel.outputs.index((shown, DONORS.classes[h]))]
            words = np.arange(COUNTS[x] * COUNTS[h == OF].sum(), dtype=np.uint64)
            taken = DONORS.taken(np.full(len(words), x), np.full(len(words), h), lambda _, words=words: words)
            shares = np.bincount(taken, minlength=a) / len(words)
            expected[t * a : (t + 1) * a, s * a + x] += probability * shares
    found = record_channel(_moves(channel)[2], OF[LINES], COUNTS[LINES]).toarray()
    lines = np.concatenate([LINES, a + LINES])
    assert found == pytest.approx(expected[np.ix_(lines, lines)])
    secrets = np.array(["ill", "well"])[np.arange(len(PEOPLE)) % 2]
    table = published(PEOPLE).add_column(0, joint.inputs.columns[0], pa.array(secrets).dictionary_encode())
    plain, row_of = whole_records(table, channel)
    assert plain.values.columns == (joint.inputs.columns[0], "one", "two", CLASS_COLUMN)
    assert [plain.values.symbols[row][0] for row in row_of] == secrets.tolist()
    shares = plain_shares(plain, ("one",))
    assert shares.frequencies.sum() == pytest.approx(1)
    assert (shares.r <= 1).all()


def test_r_of_a_published_secret_counts_records_with_the_other_one() -> None:
    """In a table in which every record has one secret, what is drawn still has both: influence is asked of these."""
    joint = Joint.from_counts(SECRETS, inputs=CLASSES, secret=["ill", "well"]).with_secret()
    channel = funnel.fit("invariant", joint, funnel.Attribute(1.0))
    secrets = np.array(["ill", "well"])[PEOPLE % 2]
    table = published(PEOPLE).add_column(0, joint.inputs.columns[0], pa.array(secrets).dictionary_encode())
    plain, places = whole_records(table, channel)
    every = rows_of(plain, table)
    assert list(zip(*(column.to_pylist() for column in every.columns), strict=True)) == list(plain.values.symbols)
    cells = plain_shares(plain, (joint.inputs.columns[0], "one"))

    def inside(rows: pa.Table) -> npt.NDArray[np.float64]:
        shown = list(zip(rows[joint.inputs.columns[0]].to_pylist(), rows["one"].to_pylist(), strict=True))
        return np.array([[cell == own for own in shown] for cell in cells.cells], dtype=float)

    assert influence_ratio(plain, inside(every)) == pytest.approx(cells.r)
    with pytest.raises(SpecError, match="a function of a table"):
        influence_ratio(plain, inside(table), places)


def test_everybody_of_a_class_is_as_likely_a_donor() -> None:
    moves, of, counts = protocol().matrix, OF[LINES], COUNTS[LINES]
    found = record_channel(moves[None, :, None], of, counts).toarray()
    assert found.sum(axis=0) == pytest.approx(np.ones(len(counts)))
    sizes = np.bincount(of, counts)
    for g in range(3):
        taken = found[:, of == g] @ counts[of == g]
        for h in range(3):
            if g != h:
                assert taken[of == h] == pytest.approx(moves[h, g] * sizes[g] * counts[of == h] / sizes[h])
    # Published classes are as many as they are expected to be, so every record is.
    assert found @ counts == pytest.approx(counts)


def test_what_would_go_to_a_class_that_nobody_published_stays() -> None:
    moves, there = protocol().matrix, OF[LINES] != 2
    of, counts = OF[LINES][there], COUNTS[LINES][there]
    found = record_channel(moves[None, :, None], of, counts).toarray()
    assert found.sum(axis=0) == pytest.approx(np.ones(len(counts)))
    assert np.diag(found)[of == 0] == pytest.approx(np.full((of == 0).sum(), moves[0, 0] + moves[2, 0]))


@settings(max_examples=25)
@given(st.lists(st.integers(-3, 3), min_size=12, max_size=12))
def test_variances_are_those_of_what_every_record_becomes(psi: list[int]) -> None:
    channel = record_channel(protocol().matrix[None, :, None], OF[LINES], COUNTS[LINES]).toarray()
    plain, _ = whole_records(published(PEOPLE), protocol())
    numbers = np.array(psi, dtype=float)
    given_records, whole = plain.both_variances(numbers[np.newaxis])
    of_record = [
        sum(channel[y, x] * numbers[y] ** 2 for y in range(12))
        - sum(channel[y, x] * numbers[y] for y in range(12)) ** 2
        for x in range(12)
    ]
    assert given_records[0] == pytest.approx(float(COUNTS[LINES] @ of_record) / COUNTS.sum(), abs=1e-9)
    assert whole[0] == pytest.approx(np.var(np.repeat(numbers, COUNTS[LINES])), abs=1e-9)


def test_shares_are_plain_counts_and_errors_those_of_many_draws() -> None:
    """The spread of 600 seeded draws is the estimated one; nothing is wider or narrower than chance makes it."""
    random, channel, draws = np.random.default_rng(1), protocol(), 600
    shares, errors, held, same = [], [], [], []
    truth = np.array([COUNTS[CODES[:, 0] == i].sum() for i in range(4)]) / COUNTS.sum()
    for _ in range(draws):
        records = drawn(random, channel)
        plain, _ = whole_records(published(records), channel)
        same.append([(CODES[records, 0] == CODES[PEOPLE, 0]).mean(), plain.stays(("one",))])
        found = plain_shares(plain, ("one",))
        assert [cell for (cell,) in found.cells] == list(VALUES[0])
        assert found.r is not None
        assert ((found.r >= 0) & (found.r <= 1)).all()
        shares.append(found.frequencies)
        errors.append(found.errors)
        held.append((found.lower <= truth) & (truth <= found.upper))
    spread, claimed = np.var(shares, axis=0, ddof=1), np.mean(np.square(errors), axis=0)
    assert (abs(np.mean(shares, axis=0) - truth) < 5 * np.sqrt(spread / draws)).all()
    low, up = chi2.ppf([1e-5, 1 - 1e-5], draws - 1) / (draws - 1)
    # What is claimed is estimated itself, to a few parts in a hundred.
    assert ((spread / claimed > low * 0.97) & (spread / claimed < up * 1.03)).all()
    assert 0.92 <= np.mean(held) <= 0.98
    # The share of records whose value stays, too, is what the published records make of it, on average.
    expected = whole_records(published(PEOPLE), channel)[0].stays(("one",))
    assert (abs(np.mean(same, axis=0) - expected) < 5 * np.std(same, axis=0) / np.sqrt(draws)).all()


@pytest.mark.parametrize("with_secret", [False, True])
def test_errors_of_every_value_of_every_column_are_those_of_many_draws(with_secret: bool) -> None:
    """The spread of each value's share over 400 seeded draws; of a secret that is published its shares, too."""
    random, draws, names = np.random.default_rng(5), 400, ("ill", "well")
    joint = Joint.from_counts(SECRETS, inputs=CLASSES, secret=list(names))
    channel = funnel.fit("invariant", joint.with_secret(), funnel.Attribute(1.0)) if with_secret else protocol()
    columns = (*(joint.secret.columns if with_secret else ()), "one", "two")
    # The secrets of the people of each class, in any order.
    secret = np.zeros(len(PEOPLE), dtype=np.int64)
    for g, ill in enumerate(SECRETS[0]):
        secret[random.permutation(np.flatnonzero(OF[PEOPLE] == g))[ill:]] = 1
    people = zip(secret, OF[PEOPLE], strict=True)
    symbols = [(*([names[s]] if with_secret else []), DONORS.classes[g]) for s, g in people]
    cumulated = np.cumsum(channel.matrix, axis=0)[:, [channel.inputs.index(symbol) for symbol in symbols]]
    class_of = np.array([DONORS.classes.index(symbol[-1]) for symbol in channel.outputs.symbols])
    secret_of = np.array([names.index(symbol[0]) if with_secret else 0 for symbol in channel.outputs.symbols])
    shares, errors = [], []
    for _ in range(draws):
        answers = (random.random(len(PEOPLE)) > cumulated).sum(axis=0)
        words = random.integers(0, 2**64, (8, len(PEOPLE)), dtype=np.uint64)
        table = published(DONORS.taken(PEOPLE, class_of[answers], words.__getitem__))
        if with_secret:
            shown = pa.array(secret_of[answers].astype(np.int8))
            table = table.add_column(0, columns[0], pa.DictionaryArray.from_arrays(shown, list(names)))
        plain, _ = whole_records(table, channel)
        cells = [plain.cells((column,)) for column in columns]
        shares.append(np.concatenate([np.bincount(of, plain.shares, len(of_column)) for of_column, of in cells]))
        errors.append(np.concatenate([plain.drawing_errors(of, len(of_column)) for of_column, of in cells]))
    spread, claimed = np.var(shares, axis=0, ddof=1), np.mean(np.square(errors), axis=0)
    assert len(spread) == (9 if with_secret else 7)
    low, up = chi2.ppf([1e-5, 1 - 1e-5], draws - 1) / (draws - 1)
    # What is claimed is estimated itself, to a few parts in a hundred.
    assert ((spread / claimed > low * 0.97) & (spread / claimed < up * 1.03)).all()


def test_figures_are_those_of_the_table() -> None:
    random, channel = np.random.default_rng(3), protocol()
    table = published(drawn(random, channel))
    plain, row_of = whole_records(table, channel)
    one, two = (np.array(table[name].to_pylist()) for name in DONORS.columns)
    assert [plain.values.symbols[row] for row in row_of] == list(
        zip(one, two, table[CLASS_COLUMN].to_pylist(), strict=True)
    )
    assert plain.counts.sum() == len(PEOPLE)
    numbers = plain_numbers(plain, "two", ("one",))
    assert numbers.means.tolist() == pytest.approx([two[one == a].astype(float).mean() for a in VALUES[0]])
    assert numbers.r is not None
    assert numbers.r[0] == pytest.approx(
        float(influence_ratio(plain, (one == "d") * (two.astype(float) - numbers.means[0]), row_of))
    )
    assert "random changes alone" in numbers.about
    assert str(numbers).splitlines()[0].split()[-1] == "r"
    odds = plain_odds(plain, "one", "two", sampling=True)
    i, j = (max(sorted(set(texts)), key=list(texts).count) for texts in (one, two))
    assert odds.reference == (i, j)
    for (a, b), found, error, r in zip(odds.cells, odds.odds, odds.log_errors, odds.r, strict=True):
        corners = [((one == k) & (two == m)) for k, m in ((a, b), (i, j), (a, j), (i, b))]
        n = np.array([corner.sum() for corner in corners])
        assert found == pytest.approx(n[0] * n[1] / (n[2] * n[3]))
        assert error == pytest.approx(np.sqrt((1 + r) * (1 / n).sum()))
        psi = corners[0] / n[0] + corners[1] / n[1] - corners[2] / n[2] - corners[3] / n[3]
        assert r == pytest.approx(float(influence_ratio(plain, psi, row_of)))
    assert 0 < table_ratio(plain, "one", "two") < 1


def test_what_cannot_be_told_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table, channel = published(np.arange(len(COUNTS))), protocol()
    plain, _ = whole_records(table, channel)
    with pytest.raises(SpecError, match="'three' is no column"):
        plain_shares(plain, ("three",))
    with pytest.raises(SpecError, match="folder of the release"):
        funnel.estimate(table, channel, "one")
    with pytest.raises(DataError, match="not those of this release"):
        whole_records(table.select(["one", "two"]), channel)
    texts = table.set_column(0, "one", table["one"].cast(pa.string()))
    with pytest.raises(DataError, match="not those of this release"):
        whole_records(texts, channel)
    with pytest.raises(DataError, match="no records"):
        whole_records(table.slice(0, 0), channel)
    other = pa.DictionaryArray.from_arrays(pa.array(OF.astype(np.int8)), ["1", "2", "4"])
    with pytest.raises(DataError, match="classes that the protocol does not know"):
        whole_records(table.set_column(2, CLASS_COLUMN, other), channel)
    monkeypatch.setattr(by_class, "MOST_PAIRS", 10)
    with pytest.raises(SpecError, match="10 are the most"):
        whole_records(table, channel)
