"""Followed donors: the bound on every version's secret by a second computation and by counting; what is refused."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import funnel
from funnel.alphabet import Alphabet
from funnel.errors import DataError, SpecError
from funnel.guarantees.base import Guarantee
from funnel.history.donor_channels import nearest_classes
from funnel.history.donor_draws import StandIns, draw_outputs
from funnel.history.donor_step import read_distributions
from funnel.history.followed_donors import FollowedDonors
from funnel.history.library import balanced
from funnel.history.panel_people import words_of
from funnel.joint import Joint
from funnel.sampling.draw import ChannelSampler
from funnel.sampling.keyed import RecordKey
from funnel.sampling.random_words import WordStream
from tests import chance
from tests.donor_panels import SECRET, ByLetter, judged, panel, published, records_of, with_few


@pytest.mark.parametrize(
    "guarantee", [funnel.LIP(0.5), funnel.LDP(1.0), funnel.PML(0.5), funnel.ALIP(lower=0.6, upper=0.4)], ids=str
)
def test_the_second_computation_finds_the_same_and_nothing_wrong(guarantee: Guarantee) -> None:
    tables = panel(700, 4, seed=3)
    steps = published(tables, guarantee)
    for step, found in zip(steps, judged(steps, tables, guarantee), strict=True):
        assert found.complaints == ()
        assert found.figures.level == pytest.approx(step.step.level.value, abs=1e-9)
        assert 0 < step.step.level.value <= guarantee.budget
        assert found.off < 1e-6
    kept = [found.figures.unchanged for found in judged(steps, tables, guarantee)]
    assert kept == sorted(kept, reverse=True)
    # No version is empty of own records, and none has them alone.
    assert 0.3 < kept[-1] < kept[0] < 1


def test_people_whom_frequencies_move_are_told_no_more() -> None:
    tables = panel(700, 3, seed=5)
    # In the first version the class tells nothing of the secret, so that records stay, and later it tells nearly all.
    random = np.random.default_rng(5)
    for number, rates in enumerate(({"a": 0.4, "b": 0.4, "c": 0.4}, {"a": 0.03, "b": 0.4, "c": 0.97})):
        ill = ["yes" if random.random() < rates[job[0]] else "no" for job in tables[number]["job"].to_pylist()]
        tables[number] = tables[number].set_column(1, "ill", pa.array(ill))
    steps = published(tables, funnel.LIP(0.4))
    assert steps[1].step.moved > 100
    assert all(found.complaints == () for found in judged(steps, tables, funnel.LIP(0.4)))


@pytest.mark.parametrize("number", [0, 1])
def test_a_class_may_have_nobody_in_a_version(number: int) -> None:
    tables = panel(500, 3, seed=3)
    tables[number] = tables[number].filter(pc.invert(pc.starts_with(tables[number]["job"], "c")))
    steps = published(tables, funnel.LIP(0.5))
    assert all(found.complaints == () for found in judged(steps, tables, funnel.LIP(0.5)))
    assert {row["job"][0] for row in records_of(steps[number])} == {"a", "b"}


@pytest.mark.parametrize("people", [1, 2])
def test_of_a_class_with_one_or_two_people_no_record_begins(people: int) -> None:
    for seed in range(3):
        tables = with_few(panel(400, 3, seed=seed), 1, people)
        steps = published(tables, funnel.LIP(0.5))
        found = judged(steps, tables, funnel.LIP(0.5))
        assert all(one.complaints == () for one in found)
        assert max(one.off for one in found) < 1e-6
        # Who had a record before goes on in it, or begins in another class; new people may keep their own.
        known = {*tables[0]["id"].to_pylist()}
        begins = [key for key, y in zip(tables[1]["id"].to_pylist(), steps[1].outputs.tolist(), strict=True) if y == 5]
        assert not known & {*begins}


def test_a_class_is_joined_with_the_one_whose_lifts_are_nearest() -> None:
    # Of the first secret 1/10, 2/10, 1/2 and nobody; a lift of it counts more than one of the other, which is common.
    secret, classes = Alphabet(("ill",), (("yes",), ("no",))), Alphabet(("class",), (("a",), ("b",), ("c",), ("d",)))
    joint = Joint(np.array([[10, 20, 1, 0], [90, 80, 1, 0]]), secret, classes)
    assert nearest_classes(joint, np.array([100, 100, 2, 0]), 3).tolist() == [0, 1, 1, 3]
    assert nearest_classes(joint, np.array([100, 2, 2, 0]), 3).tolist() == [0, 0, 0, 3]
    assert nearest_classes(joint, np.array([100, 2, 0, 0]), 1).tolist() == [0, 1, 0, 3]
    with pytest.raises(DataError, match="no class of records has 3 people"):
        nearest_classes(joint, np.array([2, 2, 2, 0]), 3)


def test_a_secret_that_only_new_people_have_comes_from_nobody_else() -> None:
    tables = panel(500, 2, seed=3, leaves=0.0)
    rare = np.arange(500) < 25
    ill = np.where(rare, "rarely", np.array(tables[0]["ill"].to_pylist()))
    tables[0] = tables[0].set_column(1, "ill", pa.array(ill))
    # In the second version other people have it, and those who had it are gone.
    tables[1] = tables[1].set_column(0, "id", pa.array(np.where(rare, 1_000, 0) + np.arange(500)))
    tables[1] = tables[1].set_column(1, "ill", pa.array(np.where(rare, "rarely", tables[1]["ill"].to_pylist())))
    steps = published(tables, funnel.LIP(0.5))
    assert all(found.complaints == () for found in judged(steps, tables, funnel.LIP(0.5)))
    people, read = read_distributions(steps[1].step)
    place = steps[1].step.joint.secret.index(("rarely",))
    assert people.sum() == 500
    assert (read[0, place].sum() > 0, read[1:, place].sum()) == (True, 0)


def test_counted_people_with_what_was_published_have_no_other_secrets_than_the_bound_allows() -> None:
    tables = panel(24_000, 3, seed=11)
    steps, epsilon = published(tables, funnel.LIP(0.5)), 0.5
    seen: dict[int, tuple[str, ...]] = defaultdict(tuple)
    outputs: dict[int, tuple[tuple[int, int], ...]] = defaultdict(tuple)
    for number, (step, table) in enumerate(zip(steps, tables, strict=True)):
        for key, ill, output in zip(
            table["id"].to_pylist(), table["ill"].to_pylist(), step.outputs.tolist(), strict=True
        ):
            seen[key] += (ill,)
            outputs[key] += ((number, output),)
    everywhere = [key for key in seen if len(seen[key]) == 3]
    by_output: dict[tuple[tuple[int, int], ...], list[int]] = defaultdict(list)
    for key in everywhere:
        by_output[outputs[key]].append(key)
    looked_at = 0
    for u in range(3):
        rate = Counter(seen[key][u] for key in everywhere)["yes"] / len(everywhere)
        for keys in by_output.values():
            if len(keys) < 200:
                continue
            looked_at += 1
            ill = sum(seen[key][u] == "yes" for key in keys)
            for count, share in ((ill, rate), (len(keys) - ill, 1 - rate)):
                # Hoeffding: further away by chance less often than 1e-12, of fewer than a hundred that are looked at.
                away = math.sqrt(math.log(2e12) / (2 * len(keys)))
                assert share * math.exp(-epsilon) - away <= count / len(keys) <= share * math.exp(epsilon) + away
    assert 10 < looked_at < 200


def test_a_record_goes_on_as_the_same_person_or_begins_as_another() -> None:
    tables = panel(500, 3, seed=2)
    steps = published(tables, funnel.LIP(0.7))
    followed: dict[int, int] = {}
    for step, table in zip(steps, tables, strict=True):
        keys = table["id"].to_pylist()
        records = list(zip(table["job"].to_pylist(), table["town"].to_pylist(), strict=True))
        rows = [tuple(row.values()) for row in records_of(step)]
        for row, (key, output) in enumerate(zip(keys, step.outputs.tolist(), strict=True)):
            of = int(step.stands_for[row])
            assert rows[row] == (*records[of], records[of][0][0])
            assert "abc"[output % 3] == rows[row][-1]
            if key in followed:
                assert (output < 3) == (keys[of] == followed[key])
                assert output < 3 or keys[of] != key
            followed[key] = keys[of]


def test_the_same_secret_draws_the_same_whatever_the_order_of_the_table() -> None:
    tables = panel(300, 3, seed=4)
    order = np.random.default_rng(1).permutation
    others = [table.take(order(table.num_rows)) for table in tables]
    one, other = published(tables, funnel.LIP(0.7)), published(others, funnel.LIP(0.7))
    for mine, its, table, shuffled in zip(one, other, tables, others, strict=True):
        by_key = dict(zip(shuffled["id"].to_pylist(), records_of(its), strict=True))
        assert [by_key[key] for key in table["id"].to_pylist()] == records_of(mine)
    # Drawn as in every run, also where draws are fresh.
    with chance.same_draws():
        fresh = published(tables, funnel.LIP(0.7), secret_bytes=None)
    assert records_of(fresh[0]) != records_of(one[0])


def test_published_tables_are_right_on_average() -> None:
    tables = panel(600, 3, seed=8)
    draws = 20
    found: list[Counter[str]] = [Counter() for _ in tables]
    for number in range(draws):
        steps = published(tables, funnel.LIP(0.6), secret_bytes=bytes([number, *range(40)]))
        for counts, step in zip(found, steps, strict=True):
            counts.update(row["job"] for row in records_of(step))
    for counts, table in zip(found, tables, strict=True):
        for job, true in Counter(table["job"].to_pylist()).items():
            # A published count varies by less than twice what records of a table vary by; eight standard errors.
            assert abs(counts[job] / draws - true) < 8 * math.sqrt(2 * true / draws)


def test_what_cannot_be_kept_is_refused() -> None:
    with pytest.raises(SpecError, match="cannot be kept by followed donors"):
        FollowedDonors(funnel.SRLIP(1.0), ByLetter())
    with pytest.raises(SpecError, match="between 0 and 1"):
        FollowedDonors(funnel.LIP(1.0), ByLetter(), budget_fraction=1.0)
    tables = panel(200, 2, seed=1)
    followed = FollowedDonors(funnel.LIP(1.0), ByLetter())

    def extend(table: pa.Table, version: str, secret: str = "ill", key: str = "id") -> None:
        followed.extend(table, key=[key], secret=[secret], version=version)

    with pytest.raises(SpecError, match="'town' is published and a secret"):
        extend(tables[0], "one", secret="town")
    extend(tables[0], "one")
    with pytest.raises(SpecError, match="name of its own"):
        extend(tables[1], "one")
    with pytest.raises(SpecError, match="same secret"):
        extend(tables[1], "two", key="town")
    with pytest.raises(DataError, match="1 values that the first version has not"):
        extend(tables[1].set_column(1, "ill", pa.array(["perhaps"] * tables[1].num_rows)), "two")
    # A call that fails leaves everything as it was; one column may be named as a text.
    followed.extend(tables[1], key="id", secret="ill", version="two")
    assert len(followed.steps) == 2


def stand_ins(of_class: list[int]) -> StandIns:
    """Of rows in order, with fresh words."""
    return StandIns(np.array(of_class), np.arange(len(of_class)), lambda _: WordStream().words(len(of_class)))


def test_a_class_of_one_person_has_no_donor() -> None:
    begins, later = np.array([1, -1, -1, -1]), np.zeros(4, dtype=bool)
    donors = stand_ins([0, 0, 0, 1])
    assert donors.drawn(np.arange(4), begins, later).tolist() == [3, 1, 2, 3]
    with pytest.raises(DataError, match="nobody but the person"):
        donors.drawn(np.arange(4), begins[::-1].copy(), later)


def test_who_begins_later_is_one_who_is_not_published_otherwise() -> None:
    donors, later = stand_ins([0, 0, 0, 0]), np.ones(4, dtype=bool)
    # The first two go on as the first one; of the others, each is left, and nobody begins as themselves.
    standing, begins = np.array([0, 0, 2, 3]), np.array([-1, -1, 0, 0])
    for _ in range(20):
        assert set(donors.drawn(standing, begins, later).tolist()[2:]) <= {1, 2, 3}
        assert donors.drawn(standing, begins, later).tolist()[2] in (1, 3)
    # Where nobody is left but themselves, it is anybody else.
    assert donors.drawn(np.arange(4), np.array([-1, -1, -1, 0]), later).tolist()[3] in (0, 1, 2)


def test_whose_record_may_not_begin_is_no_donor() -> None:
    donors = StandIns(np.zeros(4, dtype=np.int64), np.array([0, 1, 3]), lambda _: WordStream().words(4))
    found = {donors.drawn(np.arange(4), np.array([0, -1, -1, -1]), np.zeros(4, bool)).tolist()[0] for _ in range(60)}
    assert found == {1, 3}


def test_an_output_is_of_the_class_that_the_same_word_gives_where_the_two_are_one() -> None:
    random = np.random.default_rng(2)
    rows = balanced((random.dirichlet(np.ones(6), size=5).T * 2.0**63).astype(np.uint64)[None])[0]
    codes, words = random.integers(0, 5, 4_000), random.integers(0, 2**64, 4_000, dtype=np.uint64)
    outputs = draw_outputs(rows, codes, words)
    of_class = rows[:3] + rows[3:]
    assert (outputs % 3 == ChannelSampler(np.ascontiguousarray(of_class), of_class[:, -1]).draw(codes, words)).all()
    shares = np.bincount(outputs[codes == 0], minlength=6) / (codes == 0).sum()
    assert np.abs(shares - rows[:, 0] / 2.0**63).max() < 0.1


def test_another_decision_has_unrelated_words() -> None:
    tables = panel(300, 1, seed=1)
    one, other = (published(tables, guarantee)[0] for guarantee in (funnel.LIP(0.7), funnel.LIP(0.699)))
    nodes, key = np.zeros(tables[0].num_rows, dtype=np.int64), RecordKey(("id",), SECRET)
    words = words_of(one.step, nodes, tables[0], key, "draws")
    assert (words == words_of(one.step, nodes, tables[0], key, "draws")).all()
    assert (words != words_of(other.step, nodes, tables[0], key, "draws")).all()
    assert (words != words_of(one.step, nodes, tables[0], key, "donors")).all()
