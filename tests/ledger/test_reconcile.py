"""Reconciling: wherever runs are killed, no version is published without its entry, and none entered without it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from funnel.errors import LedgerError
from funnel.pipeline.ledger.entry import Digests, Event
from funnel.pipeline.ledger.reconcile import Found, missing_entries, newest_of_each
from tests.ledger.events import event

PLACE = "0123456789abcdef"


@dataclass
class World:
    """A series, its workspace and its ledger, as far as reconciling sees them.

    Effects of a run happen one after the other; one that is killed leaves those that happened.
    """

    entries: list[Event] = field(default_factory=list)
    there: dict[str, str] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    announced: set[str] = field(default_factory=set)
    incoming: set[str] = field(default_factory=set)
    drawn: int = 0

    def start(self) -> Iterator[None]:
        """What every run begins with: the series is put right, then the ledger."""
        for version in list(self.incoming):
            self.announced.discard(version)
            yield
            self.incoming.remove(version)
            yield
        for version in list(self.announced):
            # Its folder is in its place, or was withdrawn from there since.
            self.announced.remove(version)
            self.known.add(version)
            yield
        self.known |= set(self.there)
        yield
        found = self.missing()
        # All of them or none.
        self.entries += [entered(one, self.there) for one in found]
        yield

    def release(self) -> Iterator[None]:
        """Publish the next version."""
        yield from self.start()
        self.drawn += 1
        version, record = f"1.{len(self.known)}.0", f"{self.drawn:064x}"
        self.incoming.add(version)
        yield
        self.entries.append(event("publishing", version, place=PLACE, digests=Digests(record=record)))
        yield
        self.announced.add(version)
        yield
        self.incoming.remove(version)
        self.there[version] = record
        yield
        self.announced.remove(version)
        self.known.add(version)
        yield
        self.entries.append(event("published", version, place=PLACE, digests=Digests(record=record)))
        yield

    def refuse(self) -> Iterator[None]:
        """A run that its validation refuses."""
        yield from self.start()
        self.entries.append(event("refused", "1.9.0", place=PLACE))
        yield

    def missing(self) -> tuple[Found, ...]:
        newest = newest_of_each(self.entries, "people", PLACE)
        # All of them are from this workspace.
        return missing_entries(newest, self.there, self.known, set(self.there))

    def agrees(self) -> bool:
        """Whether what the ledger says is published is what is there, with the very records."""
        newest = newest_of_each(self.entries, "people", PLACE)
        said = {version: one.digests.record for version, one in newest.items() if one.kind in ("published", "restored")}
        return said == self.there and all(one.kind != "publishing" for one in newest.values())


def entered(found: Found, there: dict[str, str]) -> Event:
    if found.before is not None:
        return found.before.followed_by(found.kind, found.verdict, "ada@host")
    return event(found.kind, found.version, place=PLACE, digests=Digests(record=there.get(found.version)))


ACTIONS = ("release", "refuse", "withdraw", "put back", "forget the ledger")
steps = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 12)), max_size=12)


@given(steps)
@example([("release", 12), ("release", 4), ("withdraw", 0)])
@example([("release", 12), ("release", 6), ("withdraw", 0), ("put back", 0)])
def test_after_a_kill_anywhere_ledger_and_folders_agree(done: list[tuple[str, int]]) -> None:
    world, removed = World(), {}
    for action, lasts in done:
        if action == "withdraw" and world.there:
            version, record = world.there.popitem()
            removed[version] = record
        elif action == "put back" and removed:
            world.there.update([removed.popitem()])
        elif action == "forget the ledger":
            world.entries = []
        elif action in ("release", "refuse"):
            effects = world.release() if action == "release" else world.refuse()
            for _ in range(lasts):
                next(effects, None)
        # At every moment: what is there was announced before, unless the ledger is another one since.
        if "forget the ledger" not in [name for name, _ in done]:
            assert set(world.there) <= {one.version for one in world.entries}
    for _ in world.start():
        pass
    assert world.agrees()
    assert world.missing() == ()


def test_every_prefix_of_two_releases() -> None:
    """Exhaustively: killed after every effect of a first run, and of the one that follows it."""
    lengths = len(list(World().release()))
    for first in range(lengths + 1):
        for second in range(lengths + 4):
            world = World()
            for lasts in (first, second):
                effects = world.release()
                for _ in range(lasts):
                    next(effects, None)
            for _ in world.start():
                pass
            assert world.agrees(), (first, second)
            # Of a version that is there, at most two runs that were killed are noted as unfinished.
            kinds = [one.kind for one in world.entries]
            assert kinds.count("publishing") == kinds.count("published") + kinds.count("unfinished")


def decided(newest: dict[str, Event], there: dict[str, str], known: set[str], own: set[str]) -> list[tuple[str, str]]:
    return [(one.kind, one.version) for one in missing_entries(newest, there, known, own)]


def said(kind: str, record: str = "a" * 64) -> Event:
    return event(kind, place=PLACE, digests=Digests(record=record))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("newest", "there", "known", "expected"),
    [
        ("publishing", "a", True, ["published"]),
        ("publishing", None, False, ["unfinished"]),
        # Published, and withdrawn by hand before anybody looked.
        ("publishing", None, True, ["published", "withdrawn"]),
        ("unfinished", None, False, []),
        # The run that was taken for dead was only slow.
        ("unfinished", "a", True, ["published"]),
        ("published", "a", True, []),
        ("published", None, True, ["withdrawn"]),
        ("restored", None, True, ["withdrawn"]),
        ("withdrawn", None, True, []),
        ("withdrawn", None, False, []),
        ("withdrawn", "a", True, ["restored"]),
        (None, "a", True, ["restored"]),
        (None, None, True, ["withdrawn"]),
    ],
)
def test_each_case(newest: str | None, there: str | None, known: bool, expected: list[str]) -> None:
    found = decided(
        {} if newest is None else {"1.0.0": said(newest)},
        {} if there is None else {"1.0.0": there * 64},
        {"1.0.0"} if known else set(),
        {"1.0.0"},
    )
    assert found == [(kind, "1.0.0") for kind in expected]


@pytest.mark.parametrize("kind", ["publishing", "published", "unfinished", "withdrawn", "restored"])
def test_another_record_than_the_one_that_was_entered_is_refused(kind: str) -> None:
    with pytest.raises(LedgerError, match=r"record of version 1\.0\.0 .* not the one that the ledger names"):
        decided({"1.0.0": said(kind)}, {"1.0.0": "b" * 64}, {"1.0.0"}, {"1.0.0"})


def test_an_old_copy_of_the_ledger_is_refused() -> None:
    older = {"1.0.0": said("published")}
    there = {"1.0.0": "a" * 64, "1.1.0": "b" * 64}
    with pytest.raises(LedgerError, match=r"does not know version 1\.1\.0.* would forget"):
        decided(older, there, set(there), set(there))
    # What another workspace published is news, and no loss.
    assert decided(older, there, set(there), {"1.0.0"}) == [("restored", "1.1.0")]


@pytest.mark.parametrize("kind", ["published", "restored"])
def test_an_old_copy_of_the_workspace_is_refused(kind: str) -> None:
    with pytest.raises(LedgerError, match="neither its folder nor its record is here"):
        decided({"1.0.0": said(kind)}, {}, set(), set())


def test_versions_of_another_folder_or_series_are_nobodys_business_here() -> None:
    others = [event(place="f" * 16), event(place=PLACE, series="others"), event("refused", place=PLACE)]
    assert newest_of_each(others, "people", PLACE) == {}
    mine = said("published")
    assert newest_of_each([mine, *others], "people", PLACE) == {"1.0.0": mine}


def test_versions_are_entered_in_their_order() -> None:
    there = {version: "a" * 64 for version in ("1.10.0", "1.9.0", "1.0.0")}
    assert [version for _, version in decided({}, there, set(there), set(there))] == ["1.0.0", "1.9.0", "1.10.0"]
