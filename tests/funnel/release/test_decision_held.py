"""What a run does where versions were held for approval: against the rules in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from funnel.release.decision import Draw, Rejected, TakeOver, Unchanged, Waiting, decide, origin_of
from funnel.release.earlier import Earlier, Submitted, fresh_draws
from funnel.release.layout import Version
from funnel.release.record import Origin
from tests.funnel.release.test_decision import (
    OTHER_SECRET,
    PROTOCOL,
    SECRET,
    SNAPSHOTS,
    SPECS,
    earlier,
    expected_origin,
    origins,
)
from tests.projects import spec_of
from tests.public import OPEN_COUNTS
from tests.records import SHA

ASKING = {
    keyed: spec_of("x.parquet", "/", **({"record_key": ["id"]} if keyed else {}), **{"approval": {"required": True}})
    for keyed in (False, True)
}
ONE = earlier(expected_origin(False).model_copy(update={"snapshot": SHA(13)}), "1.0.0")


def held(origin: Origin, version: str = "1.1.0", waits: bool = True, rejected: bool = False) -> Submitted:
    one = earlier(origin, version, published=False, kept=waits)
    return Submitted(replace(one, folder=Path(f".held-{version}")) if waits else one, rejected)


def run(
    before: Sequence[Earlier], submitted: Sequence[Submitted], keyed: bool = False, asks: bool = True, **flags: bool
) -> Any:
    spec = (ASKING if asks else SPECS)[keyed]
    secret = SECRET if keyed else None
    origin = origin_of(spec, SNAPSHOTS[keyed], PROTOCOL, secret)
    return decide(spec, origin, before, protection=OPEN_COUNTS, submitted=submitted, **flags)


def test_asking_for_approval_changes_no_digest() -> None:
    assert [ASKING[keyed].digest for keyed in ASKING] == [SPECS[keyed].digest for keyed in SPECS]


def test_what_waits_is_neither_drawn_again_nor_published_by_itself() -> None:
    mine = held(expected_origin(False))
    for asks in (True, False):
        # Even beside a published version of this very origin: it was drawn again on demand.
        for before in ([], [ONE], [earlier(expected_origin(False), "1.0.0")]):
            assert run(before, [mine], asks=asks) == Waiting(
                TakeOver(Version(1, 1, 0), expected_origin(False), mine.held, True, None)
            )
    # Asked for, a draw is made, and has a number of its own.
    for flags in ({"again": True},):
        assert run([ONE], [mine], **flags) == Draw(Version(1, 1, 1), expected_origin(False), True)


def test_what_waits_from_another_source_or_spec_is_not_it() -> None:
    for origin in origins(False):
        if origin == expected_origin(False):
            continue
        found = run([ONE], [held(origin)])
        assert found.version > Version(1, 1, 0)
        same_rows = (origin.snapshot, origin.protocol, origin.shuffle) == (
            expected_origin(False).snapshot,
            expected_origin(False).protocol,
            True,
        )
        # Rows that nobody outside saw are a first draw still, when they are published after all.
        assert isinstance(found, TakeOver if same_rows else Draw)
        assert found.fresh


def test_what_was_rejected_is_not_drawn_until_somebody_likes_it() -> None:
    gone = held(expected_origin(False), waits=False, rejected=True)
    assert run([ONE], [gone]) == Rejected(Version(1, 1, 0))
    drawn = Draw(Version(1, 1, 1), expected_origin(False), True)
    assert run([ONE], [gone], again=True) == drawn
    assert run([ONE], [gone], asks=False) == drawn
    assert run([ONE], [replace(gone, rejected=False)]) == drawn
    other = held(expected_origin(False).model_copy(update={"source": SHA(12)}), waits=False, rejected=True)
    assert run([ONE], [other]) == drawn
    # What is published since, or was before, is what it is.
    assert run([earlier(expected_origin(False), "1.0.0")], [gone]) == Unchanged(Version(1, 0, 0))
    newer = earlier(expected_origin(False).model_copy(update={"source": SHA(12)}), "1.2.0")
    assert isinstance(run([newer], [gone]), TakeOver)


def test_a_first_version_that_was_rejected_has_used_its_number() -> None:
    gone = held(expected_origin(False).model_copy(update={"guarantee": "lip:2.0"}), "1.0.0", waits=False, rejected=True)
    assert run([], [gone]) == Draw(Version(1, 0, 1), expected_origin(False), True)


def test_a_secret_that_was_rotated_for_what_waits_is_told_when_it_is_published() -> None:
    before = earlier(expected_origin(True).model_copy(update={"secret": OTHER_SECRET}), "1.0.0")
    waiting = held(expected_origin(True))
    record = waiting.held.record.model_copy(update={"rotated": OTHER_SECRET})
    waiting = Submitted(replace(waiting.held, record=record))
    found = run([before], [waiting], keyed=True)
    assert isinstance(found, Waiting)
    assert (found.release.rotated, found.release.fresh) == (OTHER_SECRET, True)
    assert isinstance(run([before], [waiting], keyed=True, rotate=True), TakeOver)


@given(
    before=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4)), max_size=4, unique=True),
    tried=st.lists(
        st.tuples(st.integers(1, 3), st.integers(5, 9), st.booleans()), max_size=4, unique_by=lambda v: v[:2]
    ),
    origin=st.sampled_from(list(origins(True))),
    flags=st.sampled_from([{}, {"again": True}, {"rotate": True}]),
)
def test_no_number_is_used_twice_and_no_held_draw_counts(
    before: list[tuple[int, int]], tried: list[tuple[int, int, bool]], origin: Origin, flags: dict[str, bool]
) -> None:
    published = [earlier(origin, f"{major}.{minor}.0") for major, minor in before]
    ordered = sorted(tried)
    submitted = [
        held(origin, f"{major}.{minor}.0", waits=one == len(ordered) - 1, rejected=rejected and one < len(ordered) - 1)
        for one, (major, minor, rejected) in enumerate(ordered)
    ]
    found = run(published, submitted, keyed=True, **flags)
    used = {one.version for one in (*published, *submitted)}
    if isinstance(found, Unchanged | Rejected):
        assert found.version in used
    elif isinstance(found, Waiting):
        assert found.release.version == submitted[-1].version
    else:
        assert all(found.version > version for version in used)
        # What was held changes nothing about whether a draw is a fresh one.
        assert (
            not isinstance(found, Draw)
            or found.fresh is run(published, [], keyed=True, **{**flags, "again": True}).fresh
        )
    assert fresh_draws(published, SHA(99)) == len(published)
