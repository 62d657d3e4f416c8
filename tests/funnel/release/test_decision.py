"""What a run does, over all that may have changed and all that may have been published: against the rules in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.alphabet import Alphabet
from funnel.protocol import DENOMINATOR, Protocol
from funnel.release.decision import Draw, TakeOver, Unchanged, decide, origin_of
from funnel.release.earlier import Earlier, fresh_draws, secret_before, warning_of_withdrawn
from funnel.release.files import FileRef
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.record import Origin
from funnel.release.snapshot import Snapshot
from tests.projects import spec_of
from tests.public import OPEN_COUNTS
from tests.records import SHA, made_from, record_of

SECRET, OTHER_SECRET = "aa" * 16, "bb" * 16
# What the spec and the data of this run are, with and without record keys.
SPECS = {keyed: spec_of("x.parquet", "/", **({"record_key": ["id"]} if keyed else {})) for keyed in (False, True)}
SNAPSHOT = Snapshot(FileRef("x", SHA(1)), FileRef("y", SHA(2)), SHA(3), SHA(4), (10,), 0)
KINDS: tuple[Literal["text", "number"], ...] = ("text",)
SNAPSHOTS = {False: SNAPSHOT, True: replace(SNAPSHOT, key_kinds=KINDS)}
PROTOCOL = Protocol(
    np.array([[DENOMINATOR]], dtype=np.uint64),
    np.array([DENOMINATOR], dtype=np.uint64),
    Alphabet(("x",), (("a",),)),
    Alphabet(("x",), (("a",),)),
    "identity",
    "lip:1.0",
)
OTHERS: dict[str, Any] = {
    "spec": SHA(11),
    "source": SHA(12),
    "snapshot": SHA(13),
    "protocol": SHA(14),
    "fields": ("z",),
    "guarantee": "lip:2.0",
    "shuffle": False,
}


def expected_origin(keyed: bool) -> Origin:
    """The origin of this run."""
    spec = SPECS[keyed]
    keys = {"record_key": ("id",), "secret": SECRET, "key_kinds": KINDS} if keyed else {}
    of = {"source": SNAPSHOT.source_sha256, "snapshot": SNAPSHOT.content_sha256, "protocol": PROTOCOL.digest}
    return made_from(spec=spec.digest, **of, **keys)


def origins(keyed: bool) -> Iterator[Origin]:
    """All origins that differ from this run's in any of their parts."""
    keys: list[tuple[tuple[str, ...] | None, str | None]] = (
        [(("id",), SECRET), (("id",), OTHER_SECRET), (("other",), SECRET), (None, None)] if keyed else [(None, None)]
    )
    for changed in product((False, True), repeat=len(OTHERS)):
        update = {name: value for (name, value), other in zip(OTHERS.items(), changed, strict=True) if other}
        for record_key, secret in keys:
            kinds = None if secret is None else KINDS
            said = {"record_key": record_key, "secret": secret, "key_kinds": kinds}
            yield expected_origin(keyed).model_copy(update={**update, **said})


def earlier(
    origin: Origin,
    version: str = "1.0.0",
    published: bool = True,
    fresh: bool = True,
    rows: int = 1,
    withdrawn: bool = False,
    kept: bool = True,
) -> Earlier:
    record = record_of(version, origin=origin, fresh=fresh)
    return Earlier(record, ReleaseFolder(Path(version)) if kept else None, published, SHA(rows), withdrawn)


def run(keyed: bool, before: Sequence[Earlier], **flags: bool) -> Any:
    secret = SECRET if keyed else None
    origin = origin_of(SPECS[keyed], SNAPSHOTS[keyed], PROTOCOL, secret)
    return decide(SPECS[keyed], origin, before, protection=OPEN_COUNTS, **flags)


@pytest.mark.parametrize("keyed", [False, True])
def test_one_version_before_whatever_has_changed(keyed: bool) -> None:
    mine = expected_origin(keyed)
    for origin, published, again in product(origins(keyed), (True, False), (False, True)):
        found = run(keyed, [earlier(origin, published=published)], again=again)
        if published and not again and origin == mine:
            assert found == Unchanged(Version(1, 0, 0))
            continue
        if not published:
            assert found.version == Version(1, 0, 0)
        elif origin.fields != mine.fields:
            assert found.version == Version(2, 0, 0)
        elif origin.snapshot != mine.snapshot:
            assert found.version == Version(1, 1, 0)
        else:
            assert found.version == Version(1, 0, 1)
        assert found.origin == mine
        assert found.rotated is None
        drawn_alike = (
            origin.snapshot == mine.snapshot
            and origin.protocol == mine.protocol
            and origin.shuffle == mine.shuffle
            and origin.secret == mine.secret
        )
        if drawn_alike and not again:
            assert isinstance(found, TakeOver)
            assert found.rows_of.folder == ReleaseFolder(Path("1.0.0"))
            # Rows of a version that never got to its place in full are published for the first time.
            assert found.fresh is not published
        else:
            assert isinstance(found, Draw)
            keeps = (
                published
                and keyed
                and origin.fields == mine.fields
                and origin.protocol == mine.protocol
                and origin.secret == mine.secret
                and origin.record_key == mine.record_key
            )
            assert found.fresh is not keeps


@pytest.mark.parametrize("keyed", [False, True])
def test_a_version_that_was_withdrawn_counts_as_if_it_were_there(keyed: bool) -> None:
    """But it is not what is published, and its rows are taken over only where they still are."""
    mine = expected_origin(keyed)
    for origin, kept, again in product(origins(keyed), (True, False), (False, True)):
        found = run(keyed, [earlier(origin, withdrawn=True, kept=kept)], again=again)
        there = run(keyed, [earlier(origin)], again=again)
        assert not isinstance(found, Unchanged)
        if isinstance(there, Unchanged):
            # This very release, but nobody can read it any more.
            assert found.version == Version(1, 0, 1)
            assert isinstance(found, TakeOver) is kept
            assert found.fresh is not (kept or keyed)
            continue
        assert found.version == there.version > Version(1, 0, 0)
        if isinstance(there, TakeOver) and not kept:
            assert isinstance(found, Draw)
            keeps = keyed and (origin.fields, origin.record_key) == (mine.fields, mine.record_key)
            assert found.fresh is not keeps
        else:
            assert type(found) is type(there)
            assert found.fresh is there.fresh


def test_a_number_is_not_used_twice_and_an_older_version_may_be_this_release() -> None:
    mine = expected_origin(False)
    other = mine.model_copy(update={"snapshot": SHA(13)})
    gone = earlier(other, "1.1.0", withdrawn=True, kept=False)
    assert run(False, [earlier(mine), gone]) == Unchanged(Version(1, 0, 0))
    assert run(False, [earlier(other), gone]).version == Version(1, 2, 0)
    assert run(False, [earlier(mine), gone], again=True).version == Version(1, 2, 0)


def test_it_is_told_which_versions_were_withdrawn() -> None:
    mine = expected_origin(False)
    before = [earlier(mine), earlier(mine, "1.10.0", withdrawn=True), earlier(mine, "1.9.0", withdrawn=True)]
    assert warning_of_withdrawn(before[:1]) is None
    assert warning_of_withdrawn(before[:2]) == (
        "version 1.10.0 was withdrawn: its number is not used again, and its draw still counts"
    )
    assert warning_of_withdrawn(before) == (
        "versions 1.9.0, 1.10.0 were withdrawn: their numbers are not used again, and their draws still count"
    )


def test_keys_of_another_kind_are_other_keys() -> None:
    """7 as a number and as a text: every record is drawn afresh, and that is said."""
    other = expected_origin(True).model_copy(update={"snapshot": SHA(13), "key_kinds": ("number",)})
    assert run(True, [earlier(other)]).fresh is True
    assert run(True, [earlier(other.model_copy(update={"key_kinds": KINDS}))]).fresh is False


def test_another_protocol_gives_every_record_another_answer() -> None:
    other = expected_origin(True).model_copy(update={"snapshot": SHA(13)})
    assert run(True, [earlier(other)]).fresh is False
    assert run(True, [earlier(other.model_copy(update={"protocol": SHA(15)}))]).fresh is True
    assert run(True, [earlier(other.model_copy(update={"guarantee": "lip:2.0"}))]).fresh is False


def test_rows_that_are_gone_have_no_place() -> None:
    assert earlier(expected_origin(False)).place == ReleaseFolder(Path("1.0.0"))
    with pytest.raises(ValueError, match="rows of a version are gone"):
        _ = earlier(expected_origin(False), kept=False).place


def test_the_first_version_is_drawn_and_fresh() -> None:
    for keyed, again in product((False, True), repeat=2):
        found = run(keyed, [], again=again)
        assert isinstance(found, Draw)
        assert (found.version, found.fresh, found.rotated) == (Version(1, 0, 0), True, None)


ANY = st.sampled_from(list(origins(True)))
VERSIONS = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 12), st.integers(0, 3)), min_size=1, max_size=4, unique=True
)


@st.composite
def histories(draw: st.DrawFn) -> list[Earlier]:
    found = []
    for v in draw(VERSIONS):
        published = draw(st.booleans())
        withdrawn = published and draw(st.booleans())
        kept = not withdrawn or draw(st.booleans())
        found.append(
            earlier(
                draw(ANY),
                f"{v[0]}.{v[1]}.{v[2]}",
                published,
                draw(st.booleans()),
                draw(st.integers(1, 2)),
                withdrawn,
                kept,
            )
        )
    return found


@given(histories(), st.booleans(), st.booleans())
def test_many_versions_before(before: list[Earlier], again: bool, rotate: bool) -> None:
    found = run(True, before, again=again, rotate=rotate)
    published = [one for one in before if one.published]
    newest = max((one for one in published if not one.withdrawn), key=lambda one: one.version, default=None)
    if isinstance(found, Unchanged):
        assert not again
        assert found.version == newest.version
        assert newest.record.origin == expected_origin(True)
        return
    assert all(found.version > one.version for one in published)
    if isinstance(found, TakeOver):
        assert not again
        chosen = found.rows_of
        assert chosen in before
        assert chosen.folder is not None
        alike = [
            one
            for one in published
            if one.folder is not None
            and (
                one.record.origin.snapshot,
                one.record.origin.protocol,
                one.record.origin.shuffle,
                one.record.origin.secret,
            )
            == (SNAPSHOT.content_sha256, PROTOCOL.digest, True, SECRET)
        ]
        assert chosen == max(alike, key=lambda one: one.version) if alike else not chosen.published
    expected = None
    if rotate:
        for one in sorted(published, key=lambda one: one.version):
            expected = one.record.origin.secret or expected
    assert found.rotated == expected
    assert secret_before(before) == (expected if rotate else secret_before(published))
    # Nothing counts as fresh that records with this key and secret had answered in these columns.
    assert not (found.fresh and any(one.record.origin == expected_origin(True) for one in published))


@given(histories(), st.integers(1, 3))
def test_fresh_draws_are_counted_but_for_these_very_rows(before: list[Earlier], rows: int) -> None:
    counted = 0
    for one in before:
        if one.record.fresh and (one.published or one.rows_sha256 != SHA(rows)):
            counted += 1
    assert fresh_draws(before, SHA(rows)) == counted


def test_a_secret_goes_with_a_record_key() -> None:
    with pytest.raises(ValueError, match="goes with a record key"):
        origin_of(SPECS[True], SNAPSHOT, PROTOCOL, None)
    with pytest.raises(ValueError, match="goes with a record key"):
        origin_of(SPECS[False], SNAPSHOT, PROTOCOL, SECRET)
