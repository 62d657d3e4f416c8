"""A register of versions that are bounded for both observers: decided by funnel, and judged by the recount.

And lines of what makes and keeps it changed, each of which is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from funnel.errors import FunnelError
from funnel.guarantees import LIP, Guarantee, parse_guarantee
from funnel.history.following import VersionTerms
from funnel.history.observed import Secrets
from funnel.history.observers import OBSERVERS, observers_of
from funnel.history.step import Step, drawing_protocol
from funnel.joint import Joint
from funnel.recount.found_histories import RegisterHistories
from funnel.recount.histories import recount_histories
from funnel.recount.movers import observer_complaints
from funnel.register.following import drawn_people, follow_snapshot
from funnel.register.look_up import observe
from funnel.register.preparing import EntryTerms, prepare_entry
from funnel.register.register import Register
from funnel.sampling.row_words import KeyedWords, WordKeys
from tests import plain_registers
from tests.funnel.recount.test_histories import COMING, LEAVING
from tests.panels import KEY, REGISTER, SECRET, Wave
from tests.sabotage.patching import Patch, patched

GUARANTEE = LIP(0.5)
Made = tuple[list[Step], RegisterHistories]
PEOPLE = 300
# In seconds, as work: what is decided has to hold for both observers, and need not be the best.
BUDGET = 0.02
# Enough for channels that tell so much that they leave the bound for an observer whom nothing is bounded for.
AMPLE = 1.0
# What the second version publishes; the others publish the town.
JOB = 1


@dataclass(frozen=True)
class OtherColumn(Wave):
    """A version that publishes the job."""

    def table(self) -> pa.Table:
        table = super().table()
        return table.append_column("job", pa.array(self.people["job"].tolist(), pa.string()).dictionary_encode())

    def joint(self) -> Joint:
        return Joint.from_table(self.table(), SECRET, ["job"])


def panel(seed: int, count: int = 4, people: int = PEOPLE) -> list[Wave]:
    """A half never change; the others are drawn anew in every wave, and nine in ten are in a wave."""
    random = np.random.default_rng(seed)

    def drawn() -> dict[str, np.ndarray]:
        town = random.choice(list("abc"), people, p=[0.5, 0.3, 0.2])
        ill = random.random(people) < np.select([town == "a", town == "b"], [0.2, 0.5], 0.8)
        poor = random.choice(["no", "yes"], people, p=[0.9, 0.1])
        job = np.where(random.random(people) < 0.7, np.where(ill, "none", "some"), "part")
        return {"ill": np.where(ill, "yes", "no"), "poor": poor, "town": town, "job": job}

    stays, values, made = random.random(people) < 0.5, drawn(), []
    for number in range(count):
        if number:
            values = {name: np.where(stays, values[name], column) for name, column in drawn().items()}
        here = random.random(people) < 0.9
        frame = pd.DataFrame({"id": np.arange(people)[here], **{name: one[here] for name, one in values.items()}})
        made.append(OtherColumn(frame) if number == JOB else Wave(frame))
    return made


WAVES = panel(1)


@dataclass(frozen=True)
class Terms:
    """What versions are bounded for, and how."""

    observers: tuple[str, ...] | None = None
    budget: float = BUDGET
    secrets: Secrets = "all"
    guarantee: Guarantee = GUARANTEE
    reserve: float = 0.9


BOUNDED = Terms()
ALONE = Terms(("transitions",), AMPLE)


def publish(register: Register, wave: Wave, version: str, folder: Path, terms: Terms) -> Step:
    """Publish a wave as a release without noise does."""
    snapshot, joint, work = wave.snapshot(folder / version), wave.joint(), folder / version / "work"
    people = observe(register, snapshot, joint, work, bucket_rows=64)
    observed = replace(people.observed, observers=register.observers(terms.observers), secrets=terms.secrets)
    step = VersionTerms(terms.guarantee, f"panel/{version}", reserve=terms.reserve, budget=terms.budget).decide(
        register.past, observed
    )
    followed = follow_snapshot(snapshot, people, step, KEY, work)
    words = KeyedWords(WordKeys.of(KEY, drawing_protocol(step), decided=True))
    noted = drawn_people(snapshot, followed, people, step, words, None, work, bucket_rows=64)
    of_entry = EntryTerms(
        series="panel",
        version=version,
        reserve=terms.reserve,
        key_columns=KEY.columns,
        key_kinds=("number",),
        fingerprint=KEY.fingerprint,
        observers=observed.observers,
        secrets=terms.secrets,
    )
    prepared = prepare_entry(register, noted, of_entry)
    register.commit(prepared)
    return step


def published(folder: Path, terms: Terms = BOUNDED, waves: Sequence[Wave] = WAVES) -> Made:
    """The waves as a register, and what the recount finds in it."""
    register = Register.of(folder, REGISTER)
    steps = [publish(register, wave, f"1.{number}.0", folder, terms) for number, wave in enumerate(waves)]
    return steps, recount_histories(register.root)


def near(one: float | None, other: float | None) -> bool:
    """Whether two levels are the same; None where there are no people that they are of."""
    return one == other if one is None or other is None else one == other or abs(one - other) <= 1e-7


def complaints(steps: list[Step], found: RegisterHistories) -> Iterator[str]:
    """All that is wrong with it, and all figures that are others than the maker's."""
    yield from found.complaints
    yield from observer_complaints(found.entries, None)
    for step, version in zip(steps, found.versions, strict=True):
        yield from (*version.complaints, *version.broken)
        if len(step.by_observer) != len(version.observers):
            yield f"{version.name} is of other observers or secrets"
        for told, one in zip(step.by_observer, version.observers, strict=False):
            named = (told.observer, told.secret_of, told.bounded, told.moved, told.outside)
            same = named == (one.observer, one.secret_of, one.bounded, one.moved, one.outside)
            if not same or not near(told.level, one.level) or not near(told.moved_level, one.moved_level):
                yield f"{version.name} is otherwise for {one.observer} and the secret of {one.secret_of}"


def wrong(made: Made) -> list[str]:
    """What is wrong with a register but that it is bounded for one observer, by intention."""
    return [one for one in complaints(*made) if "the spec asks for" not in one]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The waves, published by the lines as they are."""
    return published(tmp_path_factory.mktemp("observers"))


def test_what_is_decided_for_both_observers_is_judged_the_same(made: Made) -> None:
    steps, found = made
    assert not list(complaints(steps, found))
    for step, version in zip(steps, found.versions, strict=True):
        versions = [None, *(earlier.name for earlier in found.versions if earlier.name < version.name)]
        assert [(one.observer, one.secret_of) for one in version.observers] == [*product(OBSERVERS, versions)]
        assert version.level == max(one.level for one in version.observers)
        assert version.moved == max(one.moved for one in version.observers) == step.moved
    # The two are not one and the same: from three versions on it matters who changed.
    assert len({one.level for one in found.versions[3].observers if one.secret_of is None}) == 2


def test_a_register_that_is_bounded_for_one_observer_is_not_for_both(tmp_path: Path) -> None:
    steps, found = published(tmp_path, ALONE)
    register = Register.of(tmp_path, REGISTER)
    assert not any(version.broken or version.complaints for version in found.versions)
    assert {one.observer for version in found.versions for one in version.bounded_for} == {"transitions"}
    # How far it goes for the other one is told all the same, and is as much as the maker tells.
    assert not wrong((steps, found))
    second = next(one for one in found.versions[-1].observers if not one.bounded)
    assert (second.observer, second.secret_of) == ("mover-stayer", None)
    assert second.level > GUARANTEE.epsilon
    assert second.outside > second.moved
    first = next(one for one in found.versions[-1].observers if one.secret_of is None)
    assert (first.observer, first.bounded) == ("transitions", True)
    assert first.outside < second.outside
    assert list(observer_complaints(found.entries, None))
    assert not list(observer_complaints(found.entries, ["transitions"]))
    # Whatever it was bounded for, who changed is kept: it can be for both from the next version on.
    assert register.observers(None) == register.observers(("mover-stayer", "transitions")) == OBSERVERS


def test_beliefs_in_whole_numbers_are_those_in_doubles(made: Made) -> None:
    step = made[0][-1]
    for observer in observers_of(step.past, step.observed):
        distributions = observer.distributions(step.followed)
        for place, node in enumerate(step.followed.tolist()):
            exact = observer.exact_distribution(node)
            total = sum(exact.reshape(-1).tolist())
            shares = np.array([[value / total for value in row] for row in exact.tolist()])
            assert distributions.values[place] == pytest.approx(shares, rel=1e-12, abs=1e-300)


LINES = {
    "who kept their values changed": (
        "funnel.history.mover_stayer",
        "names(earlier)[before] != names",
        "names(earlier)[before] == names",
    ),
    "only the secret is compared": (
        "funnel.history.mover_stayer",
        "for s in distribution.secret.symbols for x in values",
        "for s in distribution.secret.symbols for x in [()] * len(values)",
    ),
    "one class alone": ("funnel.history.mover_stayer", "+ changed * inputs +", "+ 0 * changed * inputs +"),
    "new people have changed": (
        "funnel.history.mover_stayer",
        "[joint.counts, np.zeros_like(joint.counts)]",
        "[np.zeros_like(joint.counts), joint.counts]",
    ),
    "changed before, or just now alone": (
        "funnel.register.look_up",
        "had[there] |= had_changed | differs",
        "had[there] = differs",
    ),
    "the last version decides": (
        "funnel.register.look_up",
        "had[there] |= had_changed | differs",
        "had[there] = had_changed | differs",
    ),
    "changed before alone": (
        "funnel.register.look_up",
        "had[there] |= had_changed | differs(distribution, cell, self._joint, cells[there])",
        "had[there] |= had_changed",
    ),
    "who changed is forgotten": (
        "funnel.register.following",
        'rows["changed"] = histories.column("changed").to_numpy()[kept]',
        'rows["changed"] = 0',
    ),
    "who changed is of other people": (
        "funnel.register.following",
        'histories.column("changed").to_numpy()[kept]',
        'histories.column("changed").to_numpy()[kept][::-1]',
    ),
    "classes before are of now": (
        "funnel.register.look_up",
        "was.append((there, class_cells(cell, had_changed,",
        "was.append((there, class_cells(cell, had[there],",
    ),
    "classes are not kept": ("funnel.history.step", "            self.observed.by_class,", "            None,"),
    "classes written the other way": (
        "funnel.register.chapters",
        "after, now = without_class(after",
        "after, was = without_class(after",
    ),
    "classes read the other way": (
        "funnel.register.chapters",
        'table["changed_before"][here] > 0',
        'table["changed_after"][here] > 0',
    ),
    "channels of other inputs": (
        "funnel.history.observers",
        "np.tile(chapter.library, (1, 1, len(CLASSES)))",
        "np.repeat(chapter.library, len(CLASSES), axis=2)",
    ),
    "beliefs of one class": (
        "funnel.history.observers",
        "inputs // self.classes).sum(axis=2)",
        "inputs // self.classes)[:, :, 0]",
    ),
    "the second observer left out": ("funnel.history.observers", "if bounded or counted else", "if False else"),
    "the second observer not asked for": (
        "funnel.register.register",
        "OBSERVERS if self.past.has_classes else",
        "OBSERVERS if not self.past.has_classes else",
    ),
    "conditions of the first observer alone": (
        "funnel.history.history_status",
        "return (self, *self.others)",
        "return (self,)",
    ),
    "changes of the last version for all": (
        "funnel.history.observers",
        "changes=chapter.by_class or {},",
        "changes=dict.fromkeys(chapter.by_class or {}, next(iter((chapter.by_class or {0: 0}).values()))),",
    ),
}


UNBOUNDED = {
    "the bound is told for who is left out": (
        "funnel.history.reached",
        "            reached.bounded,",
        "            True,",
    ),
    "who is left out is not told of": (
        "funnel.history.prove",
        "(*status.everybody, *status.reported)",
        "status.everybody",
    ),
    "only people who are moved count as outside": (
        "funnel.history.prove",
        "may = status.moved | (not bounded)",
        "may = status.moved",
    ),
    "the level of who is left out is within the bound": (
        "funnel.history.prove",
        "level = Level(float(nats[place]) + above, Witness",
        "level = Level(min(status.guarantee.budget, float(nats[place]) + above), Witness",
    ),
}


@pytest.mark.parametrize("name", UNBOUNDED)
def test_a_changed_line_about_who_is_left_out_is_noticed(name: str, tmp_path: Path) -> None:
    with patched(Patch(*UNBOUNDED[name])):
        made = published(tmp_path, ALONE)
    assert wrong(made)


def made_with(line: tuple[str, str, str], make: Callable[[], Made]) -> Made | None:
    """What a register is with a line changed; None where funnel itself refuses it."""
    with patched(Patch(*line)):
        try:
            return make()
        except FunnelError:
            return None


@pytest.mark.parametrize("name", LINES)
def test_a_changed_line_is_noticed(name: str, tmp_path: Path) -> None:
    made = made_with(LINES[name], lambda: published(tmp_path))
    assert made is None or list(complaints(*made))


CHANGING = plain_registers.waves(100, 4, seed=3)
# A value that some had is one that nobody of those who stay had.
GONE = [CHANGING[0], {p: now for p, now in CHANGING[1].items() if CHANGING[0].get(p) != (1, 2)}, CHANGING[2]]
WHO = {"changing": CHANGING, "coming": COMING, "leaving": LEAVING, "gone": GONE}


def waves_of(people: Sequence[plain_registers.Wave]) -> list[Wave]:
    """Waves of people whose secret and value are numbers."""
    columns = ["id", "ill", "poor", "town"]
    rows = [[(person, f"s{s}", "no", f"x{x}") for person, (s, x) in wave.items()] for wave in people]
    return [Wave(pd.DataFrame(wave, columns=columns)) for wave in rows]


@pytest.mark.parametrize(
    ("guarantee", "reserve", "who"),
    [
        *(("lip:0.5", 1.0, who) for who in WHO),
        *(("lip:0.2", 0.8, who) for who in WHO),
        ("alip:0.3,0.5", 1.0, "changing"),
        ("pml:0.4", 0.9, "coming"),
        ("ldp:0.6", 0.9, "gone"),
    ],
)
def test_every_bound_is_judged_the_same_whoever_comes_and_goes(
    guarantee: str, reserve: float, who: str, tmp_path: Path
) -> None:
    terms = Terms(guarantee=parse_guarantee(guarantee), reserve=reserve)
    assert not list(complaints(*published(tmp_path, terms, waves_of(WHO[who]))))


BELIEFS = {
    "changes the other way round": (
        "funnel.history.distributions",
        "self._table[before, after] = values",
        "self._table[after, before] = values",
    ),
    "changes since another version": (
        "funnel.history.distributions",
        "kernel = Kernel(past.chapters[number].joint.counts.size, joint, changes[number])",
        "kernel = Kernel(past.chapters[number].joint.counts.size, joint, changes[max(changes)])",
    ),
    "nothing for what nobody in both had": (
        "funnel.history.distributions",
        "+ unseen[:, None] * self._otherwise",
        "+ 0 * unseen[:, None] * self._otherwise",
    ),
    "prior of all people": (
        "funnel.history.history_status",
        "priors.append(cells_of(joint, came))",
        "priors.append(joint.counts)",
    ),
}
_SEEN_OF = {"nothing for what nobody in both had": GONE, "prior of all people": COMING}


@pytest.mark.parametrize("terms", [replace(ALONE, secrets="current"), BOUNDED], ids=["one observer", "both observers"])
@pytest.mark.parametrize("name", BELIEFS)
def test_a_wrong_belief_is_noticed(name: str, terms: Terms, tmp_path: Path) -> None:
    people = waves_of(_SEEN_OF.get(name, CHANGING))
    made = made_with(BELIEFS[name], lambda: published(tmp_path, terms, people))
    assert made is None or wrong(made)


_BY_PROGRAMMES = "declared.with_budget(declared.budget * reserve * (1 - INSIDE))"
SOLVED = Patch("funnel.history.following", _BY_PROGRAMMES, _BY_PROGRAMMES.replace("* reserve * ", "* "))
PROVEN = Patch("funnel.history.allowed", "smaller = guarantee.budget * reserve", "smaller = guarantee.budget")


def test_a_reserve_that_is_used_up_is_noticed(tmp_path: Path) -> None:
    people, terms = waves_of(CHANGING), Terms(reserve=0.8)
    with patched(SOLVED):
        kept = published(tmp_path / "kept", terms, people)
    # What programmes use up is mended where it is proven.
    assert not list(complaints(*kept))
    with patched(SOLVED, PROVEN):
        _, found = published(tmp_path / "used up", terms, people)
    broken = [said for version in found.versions for said in version.broken]
    assert all("uses up the reserve" in said for said in broken)
    assert {said.endswith("for who knows who changed") for said in broken} == {False, True}


def test_people_who_are_moved_are_counted_and_not_their_histories(tmp_path: Path) -> None:
    counted = Patch("funnel.history.reached", "observed.people(float(people @ share))", "int(share.sum())")
    terms = Terms(("transitions",), guarantee=LIP(0.1), reserve=1.0)
    with patched(counted):
        made = published(tmp_path, terms, waves_of(CHANGING))
    assert any("is otherwise for transitions" in one for one in complaints(*made))
