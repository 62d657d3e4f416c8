"""Who the people are has to be said before a further draw about them: what is refused, in which words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from funnel.errors import SpecError
from funnel.release.decision import Draw, TakeOver, Unchanged, Waiting, decide, origin_of
from funnel.release.earlier import Earlier, Submitted
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.record import History, Origin
from funnel.release.snapshot import Snapshot
from funnel.spec import ReleaseSpec
from tests.funnel.release.test_decision import PROTOCOL, SECRET, SNAPSHOTS
from tests.projects import spec_of
from tests.public import OPEN_COUNTS
from tests.records import SHA, record_of

SAME = {"people": "same", "register": "panel"}
KEYED = {"record_key": ["id"]}


def spec_with(history: dict[str, Any] | None, **more: Any) -> ReleaseSpec:
    return spec_of("x.parquet", "/", history=history, **KEYED, **more)


def run(spec: ReleaseSpec, before: list[Earlier], **flags: Any) -> Any:
    return decide(spec, origin_of(spec, SNAPSHOTS[True], PROTOCOL, SECRET), before, protection=OPEN_COUNTS, **flags)


def origin(spec: ReleaseSpec, snapshot: Snapshot = SNAPSHOTS[True]) -> Origin:
    found = run(spec, [])
    assert isinstance(found, Draw)
    return found.origin.model_copy(update={"snapshot": snapshot.content_sha256})


def followed(register: str = "panel") -> History:
    block: dict[str, Any] = {"register": register, "name": "test/1.0.0", "target": SHA(8), "drawing": SHA(9)}
    block |= {"ordinal": 0, "entry": SHA(7), "head": SHA(6)}
    return History(people="same", histories=1, level=0.5, moved=0, outside=0, reserve=1.0, **block)


def before(origin: Origin, history: History | None = None, published: bool = True, withdrawn: bool = False) -> Earlier:
    record = record_of(origin=origin, history=history)
    return Earlier(record, ReleaseFolder(Path("1.0.0")), published, SHA(1), withdrawn)


def other(spec: ReleaseSpec) -> Origin:
    """Of another source."""
    return origin(spec).model_copy(update={"snapshot": SHA(13), "source": SHA(12)})


def refusal(spec: ReleaseSpec, before: list[Earlier], **flags: bool) -> str:
    with pytest.raises(SpecError) as caught:
        run(spec, before, **flags)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3
    return str(caught.value)


@pytest.mark.parametrize(("published", "withdrawn"), [(True, False), (True, True), (False, False)])
def test_a_second_draw_without_a_history_is_refused(published: bool, withdrawn: bool) -> None:
    """Also if the first was withdrawn, or did not get to its place in full: it may have been seen."""
    spec = spec_with(None)
    assert isinstance(run(spec, []), Draw)
    said = refusal(spec, [before(other(spec), None, published, withdrawn)])
    for words in ("version 1.0.0", 'people = "same"', "record_key", 'people = "different"', "nothing was drawn"):
        assert words in said
    # The same source with another draw is one about the same people.
    assert refusal(spec, [before(origin(spec))], again=True) == refusal(spec, [before(other(spec))])


def test_what_draws_nothing_needs_no_choice() -> None:
    spec = spec_with(None)
    assert isinstance(run(spec, [before(origin(spec))]), Unchanged)
    described = before(origin(spec).model_copy(update={"spec": SHA(11)}))
    assert isinstance(run(spec, [described]), TakeOver)


def test_other_people_are_drawn_as_ever() -> None:
    spec = spec_with({"people": "different"})
    assert isinstance(run(spec, [before(other(spec))]), Draw)
    assert isinstance(run(spec, [before(other(spec), followed())]), Draw)


def test_the_same_people_are_followed_in_one_register() -> None:
    spec = spec_with(SAME)
    assert isinstance(run(spec, []), Draw)
    assert isinstance(run(spec, [before(other(spec), followed())]), Draw)
    assert isinstance(run(spec, [before(origin(spec), followed())], again=True), Draw)
    for history in (None, History(people="different"), followed("another")):
        said = refusal(spec, [before(other(spec), history)])
        assert all(words in said for words in ("'panel'", "version 1.0.0", 'people = "different"'))


def test_a_secret_that_the_register_rests_on_is_not_rotated() -> None:
    spec = spec_with(SAME)
    assert "cannot be rotated" in refusal(spec, [before(other(spec), followed())], rotate=True)


def test_rows_are_taken_over_within_a_register_and_under_its_guarantee_only() -> None:
    spec = spec_with(SAME)
    described = origin(spec).model_copy(update={"spec": SHA(11)})
    assert isinstance(run(spec, [before(described, followed())]), TakeOver)
    stricter = described.model_copy(update={"guarantee": "lip:2.0"})
    assert isinstance(run(spec, [before(stricter, followed())]), Draw)
    # Rows that were drawn given a register are not published as if nobody had been known.
    assert isinstance(run(spec_with({"people": "different"}), [before(described, followed())]), Draw)


def test_what_waits_was_drawn_given_the_register_as_it_is_or_is_drawn_again() -> None:
    spec = spec_with(SAME)
    given = followed().model_copy(update={"ordinal": None, "entry": None, "head": None, "given": SHA(6)})
    waiting = before(origin(spec), given, published=False)
    mine = Submitted(Earlier(waiting.record, ReleaseFolder(Path(".held-1.0.0")), False, SHA(1), False))
    found = run(spec, [], submitted=[mine], head=SHA(6))
    assert isinstance(found, Waiting)
    assert found.release.version == Version(1, 0, 0)
    # Another series published about the same people since; the number that was looked at is used.
    for head in (SHA(5), None):
        found = run(spec, [], submitted=[mine], head=head)
        assert isinstance(found, Draw)
        assert found.version == Version(1, 0, 1)
