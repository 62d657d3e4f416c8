"""What the book of histories decides, decided again by the recount; and lines of the book changed, which it notices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import pyarrow as pa
import pytest

import funnel
from funnel.errors import DataError
from funnel.history.changes import Changes
from funnel.history.past import Past
from funnel.recount.chapters import Chapter, Rows, State, Tree
from funnel.recount.history_bounds import HistoryFinding, Undecided, judge_history
from funnel.recount.movers import MOVER_STAYER, TRANSITIONS, told_apart
from funnel.recount.path_distributions import ExactDistributions, PathDistributions
from funnel.recount.promise import Promise, read_promise
from funnel.recount.ratios import Side, level_above, sides_of
from tests.funnel.recount.test_histories import COMING, LEAVING
from tests.plain_registers import Wave, waves
from tests.sabotage.patching import Patch, patched

SECRET_BYTES = bytes(range(32))
BOTH = (TRANSITIONS, MOVER_STAYER)
CHANGING = waves(100, 4, seed=3)
# A value that some had is one that nobody of those who stay had.
GONE = [CHANGING[0], {p: now for p, now in CHANGING[1].items() if CHANGING[0].get(p) != (1, 2)}, CHANGING[2]]


def published(
    guarantee: str,
    people: list[Wave],
    reserve: float = 1.0,
    observers: Sequence[str] = BOTH,
    secrets: Literal["all", "current"] = "all",
) -> funnel.History:
    bound = funnel.parse_guarantee(guarantee)
    book = funnel.History(bound, budget_fraction=reserve, observers=observers, secrets=secrets)
    for number, wave in enumerate(people):
        table = pa.table(
            {
                "id": list(wave),
                "ill": [f"s{s}" for s, _ in wave.values()],
                "size": [f"x{x}" for _, x in wave.values()],
            }
        )
        names = {"key": ["id"], "secret": ["ill"], "inputs": ["size"]}
        book.extend(table, **names, version=f"v{number}", secret_bytes=SECRET_BYTES)
    return book


def tree_of(past: Past) -> Tree:
    """The chapters of a book, as plain whole numbers."""
    chapters = []
    for number, one in enumerate(past.chapters):
        channels: dict[int, Rows] = {
            k: tuple(tuple((x, w) for x, w in enumerate(row) if w) for row in weights)
            for k, weights in enumerate(one.library.tolist())
        }
        chapters.append(
            Chapter(
                ordinal=number,
                name=one.version,
                secret=one.joint.secret.symbols,
                inputs=one.joint.inputs.symbols,
                outputs=one.channel.outputs.symbols,
                counts=tuple(one.joint.counts.ravel().tolist()),
                changes={
                    ordinal: {
                        (before, after): count
                        for before, after, count in zip(
                            table.before.tolist(), table.after.tolist(), table.records.tolist(), strict=True
                        )
                    }
                    for ordinal, table in one.changes.items()
                },
                channels=channels,
                followed=dict(zip(one.followed.tolist(), one.drawn_from.tolist(), strict=True)),
                first=one.first,
                parents=tuple(one.parents.tolist()),
                drawn=tuple(one.outputs.tolist()),
                guarantee=one.guarantee,
                classes={
                    ordinal: _states(table, len(past.chapters[ordinal].joint.inputs), len(one.joint.inputs))
                    for ordinal, table in (one.by_class or {}).items()
                },
            )
        )
    return Tree(chapters)


def _states(table: Changes, before: int, after: int) -> dict[tuple[State, State], int]:
    """Changes by class, as pairs of cell and whether people had changed till then."""

    def state(cell: int, inputs: int) -> State:
        s, rest = divmod(cell, 2 * inputs)
        return s * inputs + rest % inputs, rest >= inputs

    columns = (table.before.tolist(), table.after.tolist(), table.records.tolist())
    return {(state(was, before), state(now, after)): count for was, now, count in zip(*columns, strict=True)}


@dataclass(frozen=True)
class Found:
    """What the recount finds of a version."""

    level: float
    moved: int
    outside: int
    broken: int
    used_up: int


def found_in(book: funnel.History, observer: str = TRANSITIONS) -> list[dict[str | None, Found]]:
    """By version: what is found of the secret of each version so far; None is for its own."""
    tree = tree_of(book.past)
    if observer == MOVER_STAYER:
        tree = told_apart(tree.chapters)
    exact = ExactDistributions(tree)
    results = []
    for chapter, distributions in PathDistributions(tree).versions():
        step = book.steps[chapter.ordinal]
        promise = read_promise(chapter.guarantee)
        sides, inner = sides_of(promise), sides_of(promise, Fraction(str(book.budget_fraction)))
        observed = step.observed
        people: dict[int, int] = {}
        for node, records in zip(observed.nodes.tolist(), observed.records.tolist(), strict=True):
            people[node] = people.get(node, 0) + records
        by_secret: dict[int | None, dict[int, HistoryFinding]] = {of: {} for of in (None, *range(chapter.ordinal))}
        for distribution in distributions:
            begun = chapter.ordinal if distribution.secret_of is None else distribution.secret_of
            shares = tree.chapters[begun].shares(tree.origin(tree.until(distribution.node, begun), begun))
            rows, findings = chapter.channels[chapter.followed[distribution.node]], by_secret[distribution.secret_of]
            try:
                findings[distribution.node] = judge_history(sides, inner, distribution, rows, shares)
            except Undecided:
                whole = exact.exactly(distribution, chapter.ordinal)
                findings[distribution.node] = judge_history(sides, inner, whole, rows, shares)
        results.append(
            {
                None if of is None else tree.chapters[of].name: _found(promise, sides, findings, people)
                for of, findings in by_secret.items()
            }
        )
    return results


def all_in(book: funnel.History, observer: str = TRANSITIONS) -> list[Found]:
    """The same in one list."""
    return [found for of_version in found_in(book, observer) for found in of_version.values()]


def _found(
    promise: Promise, sides: Sequence[Side], findings: Mapping[int, HistoryFinding], people: Mapping[int, int]
) -> Found:
    inside = [one for one in findings.values() if not one.moved]
    return Found(
        level=max((level_above(promise, sides, one.worst) for one in inside), default=0.0),
        moved=sum(people[node] for node, one in findings.items() if one.moved),
        outside=sum(people[node] for node, one in findings.items() if one.moved and one.outside),
        broken=sum(not one.holds for one in findings.values()),
        used_up=sum(not one.reserved for one in findings.values()),
    )


@pytest.mark.parametrize("people", [CHANGING, COMING, LEAVING, GONE], ids=["changing", "coming", "leaving", "gone"])
@pytest.mark.parametrize(
    ("guarantee", "reserve"),
    [("lip:0.5", 1.0), ("lip:0.2", 0.8), ("alip:0.3,0.5", 1.0), ("pml:0.4", 0.9), ("ldp:0.6", 0.9)],
)
def test_the_book_is_believed(guarantee: str, reserve: float, people: list[Wave]) -> None:
    book = published(guarantee, people, reserve)
    for observer in BOTH:
        for step, of_version in zip(book.steps, found_in(book, observer), strict=True):
            told_of = {one.secret_of: one for one in step.by_observer if one.observer == observer}
            assert list(told_of) == list(of_version)
            for of, found in of_version.items():
                told = told_of[of]
                assert found.level == pytest.approx(told.level, abs=1e-9)
                assert (found.moved, found.outside) == (told.moved, told.outside)
                assert not found.broken
                assert not found.used_up


LINES = {
    "answers forgotten": (
        "funnel.history.distributions",
        "values = (by_cell * rows[:, None, None, :])",
        "values = (by_cell * np.ones_like(rows)[:, None, None, :])",
        CHANGING,
    ),
    "changes the other way round": (
        "funnel.history.distributions",
        "self._table[before, after] = values",
        "self._table[after, before] = values",
        CHANGING,
    ),
    "changes since another version": (
        "funnel.history.distributions",
        "kernel = Kernel(past.chapters[number].joint.counts.size, joint, changes[number])",
        "kernel = Kernel(past.chapters[number].joint.counts.size, joint, changes[max(changes)])",
        CHANGING,
    ),
    "nothing for what nobody in both had": (
        "funnel.history.distributions",
        "+ unseen[:, None] * self._otherwise",
        "+ 0 * unseen[:, None] * self._otherwise",
        GONE,
    ),
    "prior of all people": (
        "funnel.history.history_status",
        "priors.append(cells_of(joint, came))",
        "priors.append(joint.counts)",
        COMING,
    ),
    "one channel for all": (
        "funnel.history.prove",
        "return described(status, library, drawn_from)",
        "return described(status, library, drawn_from * 0)",
        CHANGING,
    ),
}


def is_noticed(book: funnel.History, observer: str) -> bool:
    """Whether the recount finds a history that breaks the bound, or other figures than the book has."""
    for step, of_version in zip(book.steps, found_in(book, observer), strict=True):
        for told in step.by_observer:
            if told.observer == observer:
                found = of_version[told.secret_of]
                same = (told.moved, told.outside) == (found.moved, found.outside)
                if found.broken or not same or abs(told.level - found.level) > 1e-7:
                    return True
    return False


@pytest.mark.parametrize("both", [False, True], ids=["one observer", "both observers"])
@pytest.mark.parametrize("name", LINES)
def test_a_changed_line_of_the_book_is_noticed(name: str, both: bool) -> None:
    module, old, new, people = LINES[name]
    with patched(Patch(module, old, new)):
        try:
            # Rows that the secrets of all versions allow may keep the bound although beliefs were wrong.
            book = published("lip:0.5", people, observers=BOTH[: 1 + both], secrets="all" if both else "current")
        except DataError:
            # What the other observer concludes is computed as well, and wrong beliefs can rule out what was drawn.
            return
    if both:
        # So may rows that two observers allow: their levels tell.
        assert any(is_noticed(book, observer) for observer in BOTH)
    else:
        assert any(found.broken for found in all_in(book))


def test_a_bound_for_one_observer_is_none_for_the_other() -> None:
    waves_ = waves(2_000, 3, seed=4, moving=0.1)
    alone = published("lip:0.5", waves_, observers=[TRANSITIONS])
    assert not any(found.broken for found in all_in(alone))
    assert any(found.broken for found in all_in(alone, MOVER_STAYER))


def test_a_reserve_that_is_used_up_is_noticed() -> None:
    old = "declared.with_budget(declared.budget * reserve * (1 - INSIDE))"
    solved = Patch("funnel.history.following", old, old.replace("* reserve * ", "* "))
    proven = Patch("funnel.history.allowed", "smaller = guarantee.budget * reserve", "smaller = guarantee.budget")
    with patched(solved):
        kept = all_in(published("lip:0.5", CHANGING, reserve=0.8))
    # What programmes use up is mended where it is proven.
    assert not any(one.used_up or one.broken for one in kept)
    with patched(solved), patched(proven):
        found = all_in(published("lip:0.5", CHANGING, reserve=0.8))
    assert any(one.used_up for one in found)
    assert not any(one.broken for one in found)


def test_the_reserve_is_kept_for_both_observers() -> None:
    # The first observer's reserve is kept, and the other one's is used up.
    alone = published("lip:0.5", waves(2_000, 3, seed=4, moving=0.1), reserve=0.9, observers=[TRANSITIONS])
    assert not any(one.used_up for one in all_in(alone))
    assert any(one.used_up or one.broken for one in all_in(alone, MOVER_STAYER))


def test_people_who_are_moved_are_counted_and_not_their_histories() -> None:
    old = "observed.people(float(people @ share))"
    with patched(Patch("funnel.history.reached", old, "int(share.sum())")):
        book = published("lip:0.1", CHANGING)
    assert [one[None].moved for one in found_in(book)] != [step.by_observer[0].moved for step in book.steps]
