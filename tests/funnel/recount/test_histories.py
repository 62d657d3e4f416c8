"""Histories recounted: distributions between limits, levels by definition, and every slip of a maker noticed."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.errors import DataError, SpecError
from funnel.recount.chapters import Chapter, Tree
from funnel.recount.found_histories import RegisterHistories
from funnel.recount.histories import recount_histories
from funnel.recount.history_bounds import judge_history
from funnel.recount.packed import BITS, packed, scaled_up, unpacked, width_for
from funnel.recount.path_distributions import ExactDistributions, HistoryDistribution, PathDistributions
from funnel.recount.promise import read_promise
from funnel.recount.ratios import sides_of
from funnel.recount.run_results import results_remembered
from tests.plain_registers import (
    VALUES,
    WHOLE,
    Distribution,
    History,
    Made,
    Wave,
    Weights,
    digest,
    effective,
    rows_of,
    seal,
    silent,
    telling,
    waves,
    write_table,
)

PEOPLE = waves(160, 4, seed=3)


def published(history: History, people: list[Wave] = PEOPLE) -> History:
    for wave in people:
        history.publish(wave)
    return history


@pytest.fixture(scope="module")
def honest() -> History:
    return published(History())


def judged(history: History, folder: Path) -> RegisterHistories:
    history.write(folder / "register")
    return recount_histories(folder / "register")


# Numbers side by side.


@given(st.lists(st.integers(0, 2**70), min_size=1, max_size=8), st.integers(0, 2**40))
def test_numbers_side_by_side_are_multiplied_each(numbers: list[int], factor: int) -> None:
    width = width_for(max(numbers) * factor)
    width = max(width, width_for(max(numbers)))
    assert unpacked(packed(numbers, width) * factor, len(numbers), width) == [n * factor for n in numbers]


def test_a_number_that_leaves_its_slot_is_an_error() -> None:
    with pytest.raises(OverflowError):
        packed([256], 1)
    with pytest.raises(OverflowError):
        unpacked(packed([1, 255], 1) * 2, 2, 1)


@given(st.lists(st.integers(0, 2**90), min_size=1, max_size=6).filter(any))
def test_numbers_are_scaled_up_by_one_power_of_two(numbers: list[int]) -> None:
    scaled = scaled_up(numbers, 40)
    factor = Fraction(2) ** (40 - max(numbers).bit_length())
    assert scaled == [math.ceil(n * factor) for n in numbers]
    assert [bool(n) for n in scaled] == [bool(n) for n in numbers]


# Distributions.


def tree_of(history: History) -> Tree:
    """The chapters of a history, without any file."""
    chapters = []
    for number, made in enumerate(history.made):
        channels = {
            k: tuple(tuple((x, w) for x, w in enumerate(row) if w) for row in rows)
            for k, rows in enumerate(made.channels)
        }
        chapters.append(
            Chapter(
                ordinal=number,
                name=made.name,
                secret=(("s0",), ("s1",)),
                inputs=tuple((f"x{x}",) for x in range(VALUES)),
                outputs=tuple((f"y{y}",) for y in range(VALUES)),
                counts=tuple(made.counts[one] for one in range(2 * VALUES)),
                changes=made.changes,
                channels=channels,
                followed=made.followed,
                first=made.first,
                parents=tuple(made.parents),
                drawn=tuple(made.outputs),
                guarantee=history.guarantee,
            )
        )
    return Tree(chapters)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.integers(12, 60), st.floats(0, 0.6))
def test_distributions_are_those_of_the_definition_within_their_limits(seed: int, people: int, moving: float) -> None:
    history = published(History(seed=seed), waves(people, 4, seed, moving))
    tree = tree_of(history)
    exact = ExactDistributions(tree)
    for chapter, distributions in PathDistributions(tree).versions():
        met = set()
        for distribution in distributions:
            met.add(distribution.node)
            again = exact.distribution(distribution.node, chapter.ordinal, distribution.secret_of)
            known = history.made[chapter.ordinal].distributions[distribution.node]
            # Of the secret in an earlier version the definition is gone through in tests/funnel/history/test_book.py.
            true = (
                [known.get(one, Fraction()) for one in range(2 * VALUES)] if distribution.secret_of is None else again
            )
            assert [bool(n) for n in distribution.cells] == [bool(p) for p in true]
            factors = [p / n for p, n in zip(true, distribution.cells, strict=True) if n]
            # One factor that is common to all cells makes every number at most too large by its excess.
            assert min(factors) >= max(factors) * (1 - Fraction(distribution.excess, 1 << BITS))
            assert len({p / q for p, q in zip(true, again, strict=True) if q}) == 1
            assert [bool(q) for q in again] == [bool(p) for p in true]
        assert met == set(chapter.followed)


# Levels and people.


@pytest.mark.parametrize(("kind", "epsilon"), [("lip", 1.0), ("lip", 0.3), ("ldp", 1.2)])
def test_levels_and_people_are_those_of_the_definition(kind: str, epsilon: float, tmp_path: Path) -> None:
    history = published(History(epsilon, kind))
    found = judged(history, tmp_path)
    assert not found.complaints
    moved_at_all = 0
    for number, (made, version) in enumerate(zip(history.made, found.versions, strict=True)):
        people = Counter(made.parents[node - made.first] for node in made.people.values())
        level, moved, outside = 0.0, 0, 0
        for node, channel in made.followed.items():
            distribution, prior = made.distributions[node], history.prior(node, number)
            most = max(history.level(distribution, prior, row) for row in made.channels[channel])
            if history.level(distribution, prior) > epsilon:
                moved += people[node]
                outside += people[node] * (most > epsilon)
            else:
                level = max(level, most)
        moved_at_all += moved
        assert (version.moved, version.outside, version.people) == (moved, outside, len(made.wave))
        assert version.histories == len(made.followed)
        assert version.level == pytest.approx(level, abs=1e-12)
        assert version.level <= epsilon
        assert not version.complaints
        assert not version.broken
    if epsilon < 1:
        assert moved_at_all, "no history was moved, so that nothing was seen of those"


def distribution_of(cells: list[int]) -> HistoryDistribution:
    return HistoryDistribution(1, cells, 0)


def plain(rows: Weights) -> tuple[tuple[tuple[int, int], ...], ...]:
    return tuple(tuple((x, w) for x, w in enumerate(row) if w) for row in rows)


def test_a_moved_history_may_go_on_as_it_is_and_not_further() -> None:
    sides = sides_of(read_promise("lip:0.2"))
    moved = distribution_of([80, 10, 10, 10, 5, 5])
    for rows in (silent(), tuple(tuple(WHOLE // 4 if y < 2 else WHOLE // 2 for _ in range(3)) for y in range(3))):
        found = judge_history(sides, sides, moved, plain(rows), [50, 50])
        assert found.moved
        assert found.outside
        assert found.holds
    further = judge_history(sides, sides, moved, plain(rows_of(4)), [50, 50])
    assert further.moved
    assert not further.holds
    # Back into the bound is further on neither side, but posteriors average to where the history is.
    assert not judge_history(sides, sides, moved, plain(telling()), [50, 50]).holds


@pytest.mark.parametrize("text", ["lip:0.2", "alip:0.2,0.2", "alip:inf,0.1", "pml:0.1", "ldp:0.4", "perfect"])
@pytest.mark.parametrize("step", [2**20, -(2**20)])
def test_moved_histories_have_room_for_rounding_alone(text: str, step: int) -> None:
    sides = sides_of(read_promise(text))
    for further, holds in ((step, True), (step * 2**20, False)):
        rows = tuple((WHOLE // 2 + sign * further, WHOLE // 2, WHOLE // 2) for sign in (1, -1))
        found = judge_history(sides, sides, distribution_of([80, 10, 10, 10, 5, 5]), plain(rows), [50, 50])
        assert found.moved
        assert found.holds is holds


def test_perfect_privacy_is_decided_without_any_room() -> None:
    sides = sides_of(read_promise("perfect"))
    even = distribution_of([30, 20, 50, 30, 20, 50])
    assert judge_history(sides, sides, even, plain(telling()), [50, 50]).holds
    uneven = distribution_of([30, 20, 50, 30, 21, 49])
    assert judge_history(sides, sides, uneven, plain(silent()), [50, 50]).holds
    found = judge_history(sides, sides, uneven, plain(telling()), [50, 50])
    assert not found.moved
    assert not found.holds


def test_an_output_that_rules_out_a_secret_has_an_infinite_level(tmp_path: Path) -> None:
    history = History()
    history.publish({i: (i % 2, i % 2) for i in range(20)}, lambda *_: telling())
    (version,) = judged(history, tmp_path).versions
    assert version.level == math.inf
    assert version.broken


def test_a_bound_on_something_else_is_no_bound_on_all_versions(honest: History, tmp_path: Path) -> None:
    honest.write(tmp_path / "register")
    with pytest.raises(SpecError, match="everything that was published"):
        recount_histories(tmp_path / "register", promise=read_promise("mi:0.1"))


def told(i: int) -> tuple[int, int]:
    """Somebody whose value tells nearly always who they are."""
    return i % 2, 1 if i % 5 == 0 else 2 * (i % 2)


# The prior of those who stay is another than that of all: only people with one secret come.
COMING = [{i: told(i) for i in range(120)}, {i: told(i) if i < 120 else (0, i % 3) for i in range(160)}]
# All people with the commonest value of one secret leave, so that nobody knows what would have become of them.
LEAVING = [
    {i: told(i) for i in range(120)},
    {i: told(i) for i in range(200) if i >= 120 or told(i) != (1, 2)},
]


@pytest.mark.parametrize("people", [PEOPLE, COMING, LEAVING], ids=["changing", "coming", "leaving"])
def test_a_register_that_keeps_the_bound_is_not_broken(people: list[Wave], tmp_path: Path) -> None:
    found = judged(published(History(0.5), people), tmp_path)
    assert not any(version.broken or version.complaints for version in found.versions)


class Careless(History):
    """Histories that are outside by themselves may get anything."""

    def bounded(self, made: Made, node: int, distribution: Distribution, prior: Mapping[int, Fraction]) -> Weights:
        if self.level(distribution, prior) > self.epsilon:
            return rows_of(1 << 14)
        return super().bounded(made, node, distribution, prior)


def test_moved_histories_that_go_further_are_broken(tmp_path: Path) -> None:
    found = judged(published(Careless(0.5)), tmp_path)
    assert not any(version.complaints for version in found.versions)
    broken = [said for version in found.versions for said in version.broken]
    assert broken
    assert all("an output tells more than it does" in said for said in broken)


# Files that do not say what happened.


def rewritten(folder: Path, name: str, change: Callable[[list[list[int]]], object]) -> None:
    """Change a table of the last entry, and the digests that name it."""
    rows = [list(row.values()) for row in pq.read_table(folder / name).to_pylist()]
    change(rows)
    write_table(folder / name, rows)
    resealed(folder)


def resealed(folder: Path) -> None:
    said = json.loads((folder / "entry.json").read_text())
    seal(folder, said)
    now = {"entry": digest(folder / "entry.json"), "people": digest(folder / "people.parquet")}
    changed_head(folder.parent, lambda head: head["entries"][-1].update(now))


def said(folder: Path, **changes: object) -> None:
    content = json.loads((folder / "entry.json").read_text())
    (folder / "entry.json").write_text(json.dumps({**content, **changes}))
    resealed(folder)


def exchange_nodes(rows: list[list[int]]) -> None:
    other = next(k for k, row in enumerate(rows) if row[4] != rows[0][4])
    rows[0][4], rows[other][4] = rows[other][4], rows[0][4]


def one_more(rows: list[list[int]]) -> None:
    rows[0][-1] += 1


def same_person_twice(rows: list[list[int]]) -> None:
    rows.insert(1, list(rows[0]))


def other_order(rows: list[list[int]]) -> None:
    rows[0], rows[1] = rows[1], rows[0]


def other_secret(rows: list[list[int]]) -> None:
    rows[0][2] = (rows[0][2] + VALUES) % (2 * VALUES)


def other_class(rows: list[list[int]]) -> None:
    rows[0][3] = 1 - rows[0][3]


def another_class_moves(rows: list[list[int]]) -> None:
    before, after = next((k, k + 1) for k, row in enumerate(rows[:-1]) if row[:3] == rows[k + 1][:3])
    rows[before][-1] += 1
    rows[after][-1] -= 1
    rows[:] = [row for row in rows if row[-1]]


def moved_weight(rows: list[list[int]]) -> None:
    by_input: dict[int, list[list[int]]] = {}
    for row in rows:
        by_input.setdefault(row[-3], []).append(row)
    one, other = next(found for found in by_input.values() if len(found) > 1)[:2]
    one[-1] += 1 << 50
    other[-1] -= 1 << 50


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "node of another person": (lambda f: rewritten(f, "people.parquet", exchange_nodes), "does not go on"),
    "a person twice": (lambda f: rewritten(f, "people.parquet", same_person_twice), "there twice"),
    "people in another order": (lambda f: rewritten(f, "people.parquet", other_order), "not in the order"),
    "a person left out": (lambda f: rewritten(f, "people.parquet", lambda rows: rows.pop()), "counts of secret"),
    "another secret": (lambda f: rewritten(f, "people.parquet", other_secret), "counts of secret"),
    "a change more": (lambda f: rewritten(f, "changes.parquet", one_more), "its changes from version"),
    "a change less": (lambda f: rewritten(f, "changes.parquet", lambda rows: rows.pop()), "its changes from version"),
    "who changed and did not": (lambda f: rewritten(f, "people.parquet", other_class), "said to have changed"),
    "changes of another class": (lambda f: rewritten(f, "changes.parquet", another_class_moves), "changed before"),
    "another channel published": (lambda f: rewritten(f, "effective.parquet", moved_weight), "not the mean"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_do_not_say_what_happened_are_noticed(honest: History, tmp_path: Path, name: str) -> None:
    honest.write(tmp_path / "register")
    change, complaint = FILES[name]
    with results_remembered():
        versions = recount_histories(tmp_path / "register").versions
        # As long as no file changes, what is remembered is used.
        assert recount_histories(tmp_path / "register").versions is versions
        change(sorted(tmp_path.glob("register/0003-*"))[0])
        found = recount_histories(tmp_path / "register")
    assert not any(version.complaints for version in found.versions[:-1])
    assert any(complaint in said for said in found.versions[-1].complaints), found.versions[-1].complaints


def doubled(rows: list[list[int]]) -> None:
    rows[1] = list(rows[0])


DAMAGED: dict[str, tuple[Callable[[Path], object], str]] = {
    "a table that was changed": (lambda f: write_table(f / "nodes.parquet", [[0, 0]]), "was changed since"),
    "a table that is gone": (lambda f: (f / "changes.parquet").unlink(), "is gone or cannot be read"),
    "weights that do not sum up": (lambda f: rewritten(f, "channels.parquet", one_more), "do not add up"),
    "a history twice": (lambda f: rewritten(f, "nodes.parquet", doubled), "a history is there twice"),
    "a history of nobody": (
        lambda f: rewritten(f, "followed.parquet", lambda rows: rows.append([10**6, 0])),
        "did not exist before",
    ),
    "nodes with a gap": (lambda f: said(f, first=1000), "does not follow"),
    "an output of no alphabet": (lambda f: rewritten(f, "nodes.parquet", lambda r: r.append([0, 9])), "does not exist"),
    "counts of another shape": (lambda f: said(f, counts=[[1, 2]]), "does not fit"),
    "no entry": (lambda f: (f / "entry.json").write_text("[]"), "no entry of a register"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_register_is_one_clear_sentence(honest: History, tmp_path: Path, name: str) -> None:
    honest.write(tmp_path / "register")
    change, complaint = DAMAGED[name]
    change(sorted(tmp_path.glob("register/0003-*"))[0])
    with pytest.raises(DataError, match=complaint) as caught:
        recount_histories(tmp_path / "register")
    assert "\n" not in str(caught.value)


def test_an_old_backup_of_an_entry_is_noticed(honest: History, tmp_path: Path) -> None:
    honest.write(tmp_path / "register")
    (second,) = tmp_path.glob("register/0001-*")
    said(second, mechanism="another")
    found = recount_histories(tmp_path / "register")
    assert any("does not follow" in complaint for complaint in found.complaints)
    assert any("not the one that the head" in complaint for complaint in found.complaints)


def test_a_prepared_entry_is_judged_with_those_before_it(tmp_path: Path) -> None:
    history = published(History(0.5))
    coming = history.write(tmp_path / "register", prepared=True)
    found = recount_histories(tmp_path / "register", coming)
    assert [version.name for version in found.versions] == ["panel/1.3.0"]
    assert not found.complaints
    assert not found.versions[0].complaints
    assert not found.versions[0].broken
    # Half the budget is another promise: of the spec's text, not of what the entry says.
    (less,) = recount_histories(tmp_path / "register", coming, read_promise("lip:0.25")).versions
    assert less.broken


def forgotten(register: Path, count: int = 5) -> None:
    """Erase the first people of the last version from all tables, as a request of theirs wants it."""
    head = json.loads((register / "head.json").read_text())
    folders = sorted(register.glob("000*"))
    rows = [[list(row.values()) for row in pq.read_table(f / "people.parquet").to_pylist()] for f in folders]
    gone = [(row[0], row[1]) for row in rows[-1][:count]]
    for place, (folder, table) in enumerate(zip(folders, rows, strict=True)):
        kept = [row for row in table if (row[0], row[1]) not in gone]
        write_table(folder / "people.parquet", kept)
        head["entries"][place].update(people=digest(folder / "people.parquet"), missing=len(table) - len(kept))
    write_table(register / "forgotten.parquet", gone)
    head["forgotten"] = digest(register / "forgotten.parquet")
    (register / "head.json").write_text(json.dumps(head))


@pytest.fixture
def erased(honest: History, tmp_path: Path) -> Path:
    """A register that five people were forgotten from."""
    honest.write(tmp_path / "register")
    forgotten(tmp_path / "register")
    return tmp_path / "register"


def changed_head(register: Path, change: Callable[[dict[str, Any]], object]) -> None:
    head = json.loads((register / "head.json").read_text())
    change(head)
    (register / "head.json").write_text(json.dumps(head))


def test_people_who_are_forgotten_are_in_the_counts_alone(honest: History, erased: Path, tmp_path: Path) -> None:
    before, found = judged(honest, tmp_path / "before"), recount_histories(erased)
    assert not found.complaints
    assert not any(version.complaints or version.broken for version in found.versions)
    # What was published is published: the level stays.
    assert [version.level for version in found.versions] == [version.level for version in before.versions]
    assert found.versions[-1].missing == 5
    assert found.versions[-1].people == before.versions[-1].people - 5


def test_another_effective_channel_is_noticed_although_some_are_forgotten(erased: Path) -> None:
    """What five people drew from is not known any more; two inputs swapped is more than they could do."""

    def swapped(rows: list[list[int]]) -> None:
        most = max(row[0] for row in rows)
        for row in rows:
            row[0] = most - row[0] if row[0] >= 0 else row[0]

    rewritten(sorted(erased.glob("000*"))[-1], "effective.parquet", swapped)
    complaints = recount_histories(erased).versions[-1].complaints
    assert any("are not the mean of what people drew from" in complaint for complaint in complaints)


def test_people_who_are_forgotten_and_still_there_are_noticed(erased: Path) -> None:
    people = [
        pq.read_table(path) for path in (erased / "forgotten.parquet", *sorted(erased.glob("000*/people.parquet")))
    ]
    gone, last = ([tuple(row.values())[:2] for row in table.to_pylist()] for table in (people[0], people[-1]))
    write_table(erased / "forgotten.parquet", [*gone, last[0]])
    changed_head(erased, lambda head: head.update(forgotten=digest(erased / "forgotten.parquet")))
    assert any("who are forgotten are still in" in complaint for complaint in recount_histories(erased).complaints)


def test_people_left_out_who_were_not_forgotten_are_noticed(erased: Path) -> None:
    changed_head(erased, lambda head: head["entries"][-1].update(missing=head["entries"][-1]["missing"] - 1))
    complaints = recount_histories(erased).versions[-1].complaints
    assert any("counts of secret and input" in complaint for complaint in complaints)


def test_the_effective_channel_is_of_the_people_and_not_of_their_distributions(tmp_path: Path) -> None:
    """W by P(h | x) of the distributions is another one: what the people really have counts."""
    history = published(History(0.5))
    made = history.made[-1]
    history.write(tmp_path / "register")
    people = Counter(made.parents[node - made.first] for node in made.people.values())
    (last,) = tmp_path.glob("register/0003-*")
    table = effective(made)
    for x in range(VALUES):
        shares = {
            node: people[node]
            * sum(p for one, p in distribution.items() if one % VALUES == x)
            / sum(distribution.values())
            for node, distribution in made.distributions.items()
        }
        for y in range(VALUES):
            mean = sum(shares[node] * made.channels[made.followed[node]][y][x] for node in shares)
            table[y][x] = math.floor(mean / sum(shares.values()))
        table[0][x] += WHOLE - sum(table[y][x] for y in range(VALUES))
    rows = [[x, y, table[y][x]] for x in range(VALUES) for y in range(VALUES)]
    rewritten(last, "effective.parquet", lambda old: old.__setitem__(slice(None), rows))
    complaints = recount_histories(tmp_path / "register").versions[-1].complaints
    assert any("not the mean" in complaint for complaint in complaints)


def noisy(folder: Path, more: int, epsilon: float | None) -> None:
    """Say of an entry that its counts have noise, and add some to one of them."""
    said = json.loads((folder / "entry.json").read_text())
    said["noise"] = epsilon
    said["counts"][0][0] += more
    seal(folder, said)


@pytest.mark.parametrize(("more", "epsilon", "told"), [(3, 1.0, False), (3, None, True), (200, 1.0, True)])
def test_counts_differ_from_people_by_what_noise_may_be(
    tmp_path: Path, more: int, epsilon: float | None, told: bool
) -> None:
    published(History(0.5)).write(tmp_path / "register")
    (last,) = tmp_path.glob("register/0003-*")
    noisy(last, more, epsilon)
    complaints = recount_histories(tmp_path / "register").versions[-1].complaints
    assert any("counts of secret and input" in said for said in complaints) is told
