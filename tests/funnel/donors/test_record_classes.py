"""Classes of records: questions that anybody can ask, the same by the second computation, within the rules."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from funnel.alphabet import Alphabet
from funnel.donors import growing
from funnel.donors.composition import Composition, _largest
from funnel.donors.growing import pooled, record_classes
from funnel.donors.points import _frequent, _Records, scales
from funnel.donors.record_classes import Question, RecordClasses, Scale, Term
from funnel.errors import DataError
from funnel.estimation.by_class import donor_chances, record_channel
from funnel.guarantees import Attribute
from funnel.joint import Joint
from funnel.protocol import INVARIANT, Protocol
from funnel.recount.classes import PlainClasses
from funnel.recount.part_beliefs import _change
from funnel.recount.published_classes import PublishedByClass
from funnel.release.classes_document import ClassesDocument, classes_document
from funnel.rounding import integer_weights, marginal_weights
from funnel.sampling.donors import Donors
from funnel.settings.disclosure_rules import Rules
from funnel.solver.optimum import optimal

COLUMNS = ("size", "colour", "shape")
RULES = Rules(5, 0.9, 1.0)
SCALE = Scale(("yes",), (Term(("a",), ("x",), 7),))


def everything(tables: np.ndarray) -> np.ndarray:
    return np.ones(tables.shape[1], dtype=np.bool_)


def prevailing(tables: np.ndarray) -> np.ndarray:
    return np.asarray(~RULES.above(tables, tables.sum(axis=0)).any(axis=0))


@st.composite
def joints(draw: st.DrawFn) -> Joint:
    """Records of three columns, with a secret of two or three values that depends on the first two."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = [draw(st.integers(2, 4)) for _ in COLUMNS]
    secrets = draw(st.integers(2, 3))
    symbols = tuple((f"s{i}", f"c{j}", f"f{k}") for i, j, k in np.ndindex(*sizes))
    tells = random.dirichlet(np.full(secrets, 0.5), (sizes[0], sizes[1]))
    counts = [random.multinomial(random.integers(1, 80), tells[int(s[1:]), int(c[1:])]) for s, c, _ in symbols]
    return Joint.from_counts(np.array(counts).T, inputs=Alphabet(COLUMNS, symbols))


def grown(joint: Joint, least: int = 20, allowed: Any = everything) -> RecordClasses:
    return record_classes(joint, least, 30, RULES.minimum_cell, allowed)


@given(joints())
def test_classes_are_large_enough_and_keep_the_rules(joint: Joint) -> None:
    classes = grown(joint)
    counted = classes.counted(joint)
    assert counted.n == joint.n
    assert np.array_equal(counted.counts.sum(axis=1), joint.counts.sum(axis=1))
    if len(classes.names) > 1:
        assert counted.counts.sum(axis=0).min() >= 20
        assert not RULES.small(counted.counts).any()


@given(joints())
def test_the_second_computation_asks_the_same_questions(joint: Joint) -> None:
    classes = grown(joint, allowed=prevailing)
    plain = PlainClasses.parse(classes_document(classes).to_bytes())
    of = classes.of_records(joint.inputs)
    assert [plain.of(symbol) for symbol in joint.inputs.symbols] == [classes.names[number] for number in of]
    # Of values that nobody has, too.
    strange = Alphabet(COLUMNS, (("unknown", "c0", "f1"),))
    assert plain.of(strange.symbols[0]) == classes.names[classes.of_records(strange)[0]]


@given(joints())
def test_the_document_says_the_classes(joint: Joint) -> None:
    document = classes_document(grown(joint))
    assert ClassesDocument.from_json(document.to_bytes()).classes == grown(joint)


def test_what_tells_by_chance_alone_is_one_question() -> None:
    """Records of which no column tells the secret can be published: two classes, that tell next to nothing."""
    random = np.random.default_rng(5)
    joint = Joint.from_counts(np.stack([random.poisson(40, 12), random.poisson(90, 12)]))
    classes = grown(joint)
    assert len(classes.names) == 2
    found = Composition.of(joint, classes).people
    assert np.abs(found[0] / found.sum(axis=0) - joint.p_secret[0]).max() < 0.1


@given(joints())
def test_nothing_is_asked_that_tells_nothing(joint: Joint) -> None:
    """A secret that has one distribution everywhere leaves one class."""
    totals = np.maximum(joint.counts.sum(axis=0), 1)
    same = Joint.from_counts(np.stack([3 * totals, totals]), inputs=joint.inputs)
    assert len(grown(same).names) == 1


@given(joints())
def test_parts_are_pooled_until_all_may_be_classes(joint: Joint) -> None:
    of = pooled(joint.counts, prevailing)
    tables = np.stack([joint.counts[:, of == number].sum(axis=1) for number in range(of.max() + 1)], axis=1)
    assert set(of.tolist()) == set(range(of.max() + 1))
    assert prevailing(tables).all() or tables.shape[1] == 1


def test_columns_of_values_that_hardly_anybody_has_are_named() -> None:
    records = Alphabet(("height", "sex"), tuple((str(k), "fm"[k % 2]) for k in range(90)))
    joint = Joint.from_counts(np.ones((2, 90), dtype=np.int64), inputs=records)
    with pytest.raises(DataError, match=r"no value of height has 20 records, .*\[recode\]"):
        growing.grown(joint, 20, RULES)


def test_a_secret_that_one_column_tells_is_found() -> None:
    inputs = Alphabet(("a", "b"), (("x", "p"), ("x", "q"), ("y", "p"), ("y", "q")))
    joint = Joint.from_counts([[80, 90, 20, 30], [20, 10, 80, 70]], inputs=inputs)
    classes = record_classes(joint, 50, 2, 1, everything)
    assert len(classes.names) == 2
    of = classes.of_records(inputs)
    assert of[0] == of[1] != of[2] == of[3]
    (scale,) = classes.scales
    # log(100 · 150 / (50 · 150)) = 1.25 nats between the values of a, in hundredths, a little less by the ridge.
    points = {term.values: term.points for term in scale.terms if term.columns == ("a",)}
    assert points["y",] - points["x",] == pytest.approx(100 * np.log(150 * 170 / (50 * 30)), abs=10)


@pytest.mark.parametrize(
    "questions",
    [
        (Question(0, 5, 0, "1"),),
        (Question(0, 5, 2, "1"),),
        (Question(0, 5, "1", "3"),),
        (Question(1, 5, "1", "2"),),
        (Question(0, 5, 1, 1), Question(0, 9, "1", "2")),
    ],
    ids=["leads back", "leads nowhere", "another name", "another scale", "two ways"],
)
def test_what_is_no_tree_is_refused(questions: tuple[Question, ...]) -> None:
    with pytest.raises(DataError, match="no tree"):
        RecordClasses(("a", "b"), (SCALE,), questions, ("1", "2"))


def test_points_for_a_column_that_is_not_published_are_refused() -> None:
    with pytest.raises(DataError, match="no tree"):
        RecordClasses(("b",), (SCALE,), (), ("1",))


def test_a_document_that_says_more_is_refused() -> None:
    classes = RecordClasses(("a",), (SCALE,), (Question(0, 7, "1", "2"),), ("1", "2"))
    content = json.loads(classes_document(classes).to_bytes())
    with pytest.raises(DataError, match="and no more"):
        PlainClasses.parse(json.dumps({**content, "rows": [1]}).encode())
    content["questions"][0]["then"] = "7"
    with pytest.raises(DataError, match="no class"):
        PlainClasses.parse(json.dumps(content).encode()).of(("x",))


@given(joints(), st.integers(0, 2**32))
def test_points_make_tables_of_the_secret_and_a_column_agree(joint: Joint, seed: int) -> None:
    """What the regression expects of every value that gets points is what there is, up to its ridge and rounding."""
    most = Joint.from_counts(joint.counts * 20, inputs=joint.inputs)
    found = scales(most, 5)
    assert len(found) == (1 if len(most.secret) == 2 else len(most.secret))
    for scale in found:
        having = most.counts[most.secret.index(scale.secret)]
        people = most.counts.sum(axis=0)
        odds = scale.of_records(most.inputs) / 100
        # The constant is not in the points: that for which all records together agree.
        low, high = -40.0, 40.0
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if (people * expit(odds + middle)).sum() < having.sum() else (low, middle)
        expected = people * expit(odds + low)
        for term in scale.terms:
            meets = np.array(
                [
                    all(symbol[COLUMNS.index(c)] == v for c, v in zip(term.columns, term.values, strict=True))
                    for symbol in most.inputs.symbols
                ]
            )
            # Half a record for every nat of a coefficient, and half a point of every record.
            allowed = 0.5 * abs(term.points) / 100 + 0.03 * people[meets].sum() + 1
            assert abs((having - expected)[meets].sum()) <= allowed


@given(joints(), st.integers(0, 2**32))
def test_the_curve_of_a_regression_is_the_product_of_its_terms(joint: Joint, seed: int) -> None:
    """Single values by tables of two columns, and pairs by a sparse product: as the whole design says it."""
    random = np.random.default_rng(seed)
    records = _Records.of(joint)
    alone = [np.flatnonzero(random.random(len(texts)) < 0.8) for texts in records.values]
    cells = [((j,), int(value)) for j, values in enumerate(alone) for value in values]
    cells += [((0, 2), 1), ((1, 2), 2), ((0, 1), 3)]
    terms = records._terms([records._feature(*cell) for cell in cells])
    spread = random.random(len(records.people))
    whole = terms.toarray()
    assert [set(row) <= {0.0, 1.0} for row in whole] == [True] * len(whole)
    curve = records._curve(terms.T.tocsr(), terms, spread, alone)
    assert np.allclose(curve, whole @ np.diag(spread) @ whole.T, rtol=1e-12, atol=1e-12)


def test_values_that_few_have_with_the_secret_or_without_it_get_no_points() -> None:
    having, people = np.array([0.0, 4, 5, 9, 10, 2]), np.array([3.0, 20, 20, 10, 10, 4])
    assert _frequent(having, people, 5).tolist() == [False, False, True, False, True, False]


def test_how_far_classes_are_is_told_for_every_value_of_the_secret() -> None:
    random = np.random.default_rng(8)
    inputs = Alphabet(("a", "b"), tuple((f"a{i}", f"b{k}") for i, k in np.ndindex(4, 5)))
    joint = Joint.from_counts(random.integers(20, 400, (3, 20)), inputs=inputs)
    told: list[tuple[str, int, int | None]] = []
    record_classes(joint, 50, 30, 5, everything, progress=lambda *one: told.append(one))
    assert {what for what, _, _ in told} == {"finding classes of records"}
    assert {total for _, _, total in told} == {30}
    assert {done // 10 for _, done, _ in told} == {0, 1, 2}


def test_points_are_shifted_until_tables_agree_with_classes() -> None:
    """Points of a regression are no shares of classes: values that go with each other are off together."""
    random = np.random.default_rng(3)
    table = random.integers(0, 6, (20_000, 5))
    odds = (
        0.9 * (table[:, 0] > 2)
        + 0.7 * (table[:, 1] > 3)
        + 0.4 * table[:, 2]
        - 0.5 * (table[:, 0] * table[:, 3] > 9)
        - 2
    )
    secret = (random.random(len(table)) < expit(odds)).astype(int)
    records, of = np.unique(table, axis=0, return_inverse=True)
    counts = np.array([np.bincount(of[secret == s], minlength=len(records)) for s in (0, 1)])
    inputs = Alphabet(tuple("abcde"), tuple(tuple(map(str, record)) for record in records))
    joint = Joint.from_counts(counts, inputs=inputs)

    def off(classes: RecordClasses) -> float:
        found = Composition.of(joint, classes)
        given = found.people / found.people.sum(axis=0)
        return float(np.abs(found.counts.sum(axis=1) - given @ found.counts.sum(axis=0)).max())

    with mock.patch.object(growing, "_SHIFTS", 0):
        before = record_classes(joint, 50, 100, 10, everything)
    after = record_classes(joint, 50, 100, 10, everything)
    assert after.questions == before.questions
    assert off(after) < 0.7 * off(before)


@settings(max_examples=30, deadline=None)
@given(joints(), st.sampled_from([0.5, 1.0]))
def test_tables_of_a_published_secret_are_off_by_what_is_said_and_others_right(joint: Joint, epsilon: float) -> None:
    """Against the probability of every published record given every true one, donors along their lines."""
    classes = grown(joint)
    counted = classes.counted(joint).with_secret()
    protocol = optimal(counted, Attribute(epsilon), utility="unchanged", gap=1e-6).protocol
    composition = Composition.of(joint, classes)
    off = composition.off(protocol)
    of, people = classes.of_records(joint.inputs), joint.counts.sum(axis=0)
    order = np.array([r for r in np.argsort(of, kind="stable") if people[r]])
    c, k = len(joint.secret), len(classes.names)
    places = [joint.secret.index(x[:-1]) * k + classes.names.index(x[-1]) for x in counted.inputs.symbols]
    moves = np.eye(c * k)
    moves[np.ix_(places, places)] = protocol.matrix
    channel = record_channel(moves.reshape(c, k, c, k), of[order], people[order])
    mean = (channel @ joint.counts[:, order].ravel()).reshape(c, -1)
    for j, (column, value) in enumerate(composition.cells):
        having = [joint.inputs.symbols[r][COLUMNS.index(column)] == value for r in order]
        true = joint.counts[:, order][:, having].sum(axis=1)
        assert mean[:, having].sum(axis=1) - true == pytest.approx(off[:, j], abs=1e-6)
        assert mean[:, having].sum() == pytest.approx(true.sum(), abs=1e-6)
    assert mean.sum(axis=0) == pytest.approx(people[order], abs=1e-6)
    counts = {
        (s, r): int(n)
        for s, row in zip(joint.secret.symbols, joint.counts, strict=True)
        for r, n in zip(joint.inputs.symbols, row, strict=True)
        if n
    }
    plain = PlainClasses.parse(classes_document(classes).to_bytes())
    matrix, symbols = protocol.matrix, counted.inputs.symbols
    of_moves = {(x, y): float(matrix[j, i]) for i, x in enumerate(symbols) for j, y in enumerate(symbols)}
    found = PublishedByClass(plain, counts, {}, of_moves)
    again = found.off()
    said = [[again.get((secret, *cell), 0.0) for cell in composition.cells] for secret in joint.secret.symbols]
    assert np.array(said) == pytest.approx(np.abs(off), abs=1e-6)
    assert found.moved_by_secret <= 1e-9


def true_levels(
    joint: Joint, classes: RecordClasses, read: Joint, protocol: Protocol, by_line: bool, budget: float
) -> dict[str, tuple[float, float]]:
    """By column: the level, and the share of people beyond, by every person, published record and belief."""
    of, people, matrix = classes.of_records(joint.inputs), joint.counts.sum(axis=0), protocol.matrix
    secrets, records = joint.secret.symbols, joint.inputs.symbols
    counted, published = classes.counted(joint), len(read.inputs.columns) > 1
    lines = {k: [r for r in range(len(records)) if of[r] == k and people[r]] for k in set(of.tolist())}
    chances = np.zeros((len(records), len(records)))
    for k, h in itertools.product(lines, lines):
        if k == h:
            chances[lines[k], lines[k]] = 1.0
        elif by_line:
            shares, donors, takers = donor_chances(people[lines[k]], people[lines[h]])
            for share, donor, taker in zip(shares, donors, takers, strict=True):
                chances[lines[h][donor], lines[k][taker]] += share
        else:
            chances[np.ix_(lines[h], lines[k])] = (people[lines[h]] / people[lines[h]].sum())[:, np.newaxis]
    most = {}
    for j, column in enumerate(COLUMNS):
        level = outside = 0.0
        for value in {record[j] for record in records}:
            shown = np.zeros((len(read.inputs), len(records), len(secrets)))
            prior = np.zeros(len(secrets))
            for r in (r for r, record in enumerate(records) if record[j] == value and people[r]):
                for s, secret in enumerate(secrets):
                    belief = people[r] * counted.counts[s, of[r]] / counted.counts[:, of[r]].sum()
                    prior[s] += belief
                    x = read.inputs.index((*(secret if published else ()), classes.names[of[r]]))
                    for y, symbol in enumerate(read.inputs.symbols):
                        there = of == classes.names.index(symbol[-1])
                        shown[y, :, s] += belief * matrix[y, x] * np.where(there, chances[:, r], 0.0)
            for masses in shown.reshape(-1, len(secrets)):
                if prior.sum() and (total := masses.sum()) > 1e-6:
                    there = prior > 0
                    with np.errstate(divide="ignore"):
                        change = np.abs(np.log(masses[there] / total * prior.sum() / prior[there])).max()
                    level = max(level, change)
                    outside += total if change > budget + 1e-6 else 0.0
        most[column] = level, outside / people.sum()
    return most


@settings(max_examples=30, deadline=None)
@given(joints(), st.integers(0, 2**32), st.booleans(), st.booleans())
def test_observers_of_one_column_conclude_no_more_than_is_said_whoever_the_donors(
    joint: Joint, seed: int, published: bool, by_line: bool
) -> None:
    """Against every person, published record and belief, one by one; and against the second computation."""
    classes = grown(joint)
    read = classes.counted(joint).with_secret() if published else classes.counted(joint)
    n, budget = len(read.inputs), 0.5
    weights = integer_weights(np.random.default_rng(seed).dirichlet(np.full(n, 0.3), n).T)
    protocol = Protocol(weights, marginal_weights(read, weights), read.inputs, read.inputs, INVARIANT, "lip:1")
    found = Composition.of(joint, classes).concluded(protocol, budget)
    counts = {
        (secret, record): int(joint.counts[s, r])
        for (s, secret), (r, record) in itertools.product(
            enumerate(joint.secret.symbols), enumerate(joint.inputs.symbols)
        )
        if joint.counts[s, r]
    }
    matrix = protocol.matrix
    moves = {
        (x, y): float(matrix[b, a])
        for (a, x), (b, y) in itertools.product(enumerate(read.inputs.symbols), enumerate(read.inputs.symbols))
    }
    said = PublishedByClass(PlainClasses.parse(classes_document(classes).to_bytes()), counts, {}, moves).observed(
        budget
    )
    assert {one.columns for one in found} == {*said}
    for one in found:
        assert (one.level, one.outside) == pytest.approx(said[one.columns], abs=1e-6)
    shares = [one.outside for one in found]
    assert shares == sorted(shares, reverse=True)
    for column, (level, outside) in true_levels(joint, classes, read, protocol, by_line, budget).items():
        assert level <= said[column,][0] + 1e-6
        assert outside <= said[column,][1] + 1e-6


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(0, 6), st.booleans())
def test_the_largest_change_is_that_of_some_arrangement_of_donors(seed: int, c: int, k: int, moved_only: bool) -> None:
    random = np.random.default_rng(seed)
    come, own = random.dirichlet(np.ones(c + 1), k).T[:c], random.random(c) * (not moved_only)
    prior = random.dirichlet(np.ones(c))
    some = [
        own + come[:, list(those)].sum(axis=1) for r in range(k + 1) for those in itertools.combinations(range(k), r)
    ]
    changes = [np.abs(np.log(one / one.sum() / prior)).max() for one in some if one.sum() > 0]
    assert _largest(come, own, prior) == pytest.approx(max(changes, default=0.0), abs=1e-9)
    whole = [[round(float(mass) * 2**52) for mass in of] for of in (prior, own, *come.T)]
    above, below = _change(whole[0], whole[1], whole[2:], 0.0)
    assert math.log(above / below) == pytest.approx(max(changes, default=0.0), abs=1e-9)


def test_a_move_that_reads_the_secret_is_seen() -> None:
    moves = {
        (("a", "1"), ("a", "1")): 0.9,
        (("a", "1"), ("b", "2")): 0.1,
        (("b", "1"), ("a", "1")): 0.8,
        (("b", "1"), ("a", "2")): 0.2,
    }
    plain = PlainClasses("funnel/classes/1", "class", ("a",), (), (), ("1", "2"), (), (), 0, "same", None)
    assert PublishedByClass(plain, {}, {}, moves).moved_by_secret == pytest.approx(0.1)
    alike = {**moves, (("b", "1"), ("a", "1")): 0.9, (("b", "1"), ("a", "2")): 0.1}
    assert PublishedByClass(plain, {}, {}, alike).moved_by_secret == pytest.approx(0.0)


def test_records_that_are_gone_are_those_that_the_protocol_lets_go() -> None:
    """Of 4,000 records like no other; and none are where those who change class take back their own records."""
    names, size = ("1", "2", "3"), 4000
    records = [(f"{i:04d}",) for i in range(size)]
    of = np.arange(size) % 3
    matrix = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    random = np.random.default_rng(3)
    drawn = (random.random(size) > np.cumsum(matrix, axis=0)[:-1, of]).sum(axis=0)
    donors = Donors(
        ("x",), ([x for (x,) in records],), np.arange(size)[:, np.newaxis], names, of, np.ones(size, dtype=np.int64)
    )
    taken = donors.taken(np.arange(size), drawn, lambda _: random.integers(0, 2**64, size, dtype=np.uint64))
    terms = [{"columns": ["x"], "values": list(x), "points": int(k)} for x, k in zip(records, of, strict=True)]
    content = {
        "schema": "funnel/classes/1",
        "column": "class",
        "columns": ["x"],
        "names": names,
        "people": "same",
        "source": None,
        "known": [],
        "known_values": [],
        "at_once": 0,
        "scales": [{"secret": ["s"], "terms": terms}],
        "questions": [
            {"scale": 0, "at_least": 1, "then": 1, "otherwise": "1"},
            {"scale": 0, "at_least": 2, "then": "3", "otherwise": "2"},
        ],
    }
    moves = {((x,), (y,)): matrix[j, i] for i, x in enumerate(names) for j, y in enumerate(names)}
    true = {(("s",), record): 1 for record in records}

    def gone(shown: np.ndarray) -> tuple[int, float, float]:
        published = Counter(((), records[i], names[of[i]]) for i in shown.tolist())
        return PublishedByClass(PlainClasses.parse(json.dumps(content).encode()), true, published, moves).gone

    number, least, most = gone(taken)
    # About 0.2 leave, and nobody takes their places with a probability of about e^-0.2.
    assert least < number < most
    assert (least + most) / 2 == pytest.approx(size * 0.2 * np.exp(-0.2), rel=0.01)
    assert gone(np.arange(size))[0] == 0 < least
    assert gone(np.arange(size) // 2)[0] == size / 2 > most
