"""Public frequencies are made once for a table and its settings, wherever that is kept, and what they cost adds up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from funnel.errors import DataError, LedgerError, SpecError
from funnel.joint import Joint
from funnel.readers.source_files import file_digest
from funnel.release.decision import Draw, TakeOver, Unchanged, decide, origin_of
from funnel.release.earlier import Earlier
from funnel.release.files import remove_tree
from funnel.release.frequencies_document import FrequenciesDocument, frequencies_document
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.protected import Protected, ProtectionContext, public_frequencies, require_records
from funnel.release.protection import ProtectedCounts, Protection
from funnel.release.record import History, Records
from funnel.spec import ReleaseSpec
from tests import chance
from tests.funnel.release.test_decision import PROTOCOL, SNAPSHOT
from tests.projects import spec_of
from tests.records import SHA, record_of

COUNTED = Joint.from_counts([[300, 100, 0], [100, 500, 20]])
OTHER = Joint.from_counts([[300, 100, 0], [100, 500, 21]])
NOISE = {"frequencies": {"protection": "noise", "epsilon": 0.5}}
# Of which other noise is hardly ever the same.
SMALL = {"frequencies": {"protection": "noise", "epsilon": 0.02}}
SAME = {"history": {"people": "same"}, "record_key": ["id"]}
FOLLOWED = History(
    people="same",
    register="test",
    ordinal=0,
    name="test/1.0.0",
    entry=SHA(1),
    head=SHA(2),
    target=SHA(3),
    drawing=SHA(4),
    histories=1,
    level=0.5,
    moved=0,
    outside=0,
    reserve=1.0,
)


@pytest.fixture
def seeded() -> Iterator[None]:
    """Noise is the same in every run, also where draws are fresh."""
    with chance.same_noise():
        yield


def spec_in(folder: Path, **changes: Any) -> ReleaseSpec:
    return spec_of("x.parquet", folder, **{**NOISE, **changes})


def made(
    spec: ReleaseSpec, counted: Joint = COUNTED, earlier: tuple[Earlier, ...] = (), held: Earlier | None = None
) -> Protected:
    return public_frequencies(ProtectionContext(spec, earlier, held), counted)


def published(
    found: Protected, folder: Path, version: str = "1.0.0", history: History | None = None, **changes: Any
) -> Earlier:
    """A version that was made of public frequencies, in its folder."""
    place = ReleaseFolder(folder / version)
    place.root.mkdir(parents=True)
    files = {"data/records.parquet": SHA(9)}
    if found.frequencies.protection == "noise":
        place.frequencies.write_bytes(frequencies_document(found.frequencies).to_bytes())
        files |= {"frequencies.json": file_digest(place.frequencies)}
    record = record_of(version, files=files, history=history, frequencies=found.record)
    return Earlier(record, place, True, SHA(9), **changes)


def noisy(found: Protected) -> list[list[int]]:
    counts: list[list[int]] = found.frequencies.noisy.tolist()
    return counts


def test_the_same_counts_have_the_same_noise_and_others_have_their_own(tmp_path: Path) -> None:
    assert 4 * chance.of_equal_noise(COUNTED.counts.size, 0.02) < 1e-9
    spec = spec_in(tmp_path, **SMALL)
    first = made(spec)
    assert (first.reused, first.frequencies.spent, first.frequencies.epsilon) == (False, 0.02, 0.02)
    again = made(spec)
    assert noisy(again) == noisy(first)
    assert again.record == first.record
    # What says nothing about the noise changes nothing; what does is another draw, or another account of the same.
    assert made(spec_in(tmp_path, **SMALL, title="Another", guarantee="lip:2.0")).record == first.record
    assert made(spec_in(tmp_path, frequencies={**SMALL["frequencies"], "max_epsilon": 3.0})).record == first.record
    for changes in ({"epsilon": 0.025}, {"beta": 0.02}, {"delta": 1e-8}):
        other = made(spec_in(tmp_path, frequencies={**SMALL["frequencies"], **changes}))
        assert (noisy(other) == noisy(first)) == ("epsilon" not in changes)
        assert other.record.counted != first.record.counted
    other, plain = made(spec, OTHER), made(spec)
    assert (np.array(noisy(other)) - OTHER.counts).tolist() != (np.array(noisy(plain)) - COUNTED.counts).tolist()
    # What nobody has seen may be other noise.
    remove_tree(spec.workspace_folder)
    assert noisy(made(spec)) != noisy(first)


def test_where_the_workspace_lost_it_the_published_noise_is_taken(tmp_path: Path) -> None:
    assert chance.of_equal_noise(COUNTED.counts.size, 0.02) < 1e-9
    spec = spec_in(tmp_path, **SMALL)
    first = made(spec)
    before = published(first, tmp_path / "releases")
    remove_tree(spec.workspace_folder)
    found = made(spec, earlier=(before,))
    assert found.reused
    assert noisy(found) == noisy(first)
    # As is that of a version that waits for approval, for which nothing was spent yet.
    waits = made(spec, held=before)
    assert waits.reused
    assert waits.record == first.record
    # Of a version whose folder is gone it is not known any more, where the secret is gone too.
    assert noisy(made(spec, earlier=(replace(before, folder=None, withdrawn=True),))) != noisy(first)


def test_published_noise_that_was_changed_or_is_gone_is_not_drawn_again(tmp_path: Path) -> None:
    spec = spec_in(tmp_path)
    first = made(spec)
    before = published(first, tmp_path / "releases")
    path = before.folder.frequencies
    document = FrequenciesDocument.read(path)
    counts = np.array(document.noisy) + 1
    path.write_bytes(document.model_copy(update={"noisy": tuple(map(tuple, counts.tolist()))}).to_bytes())
    with pytest.raises(LedgerError, match="was changed since it was published; restore it from a backup"):
        made(spec, earlier=(before,))
    silent = replace(before, record=before.record.model_copy(update={"files": {}}))
    with pytest.raises(LedgerError, match=r"is not what version 1\.0\.0 was made from"):
        made(spec, earlier=(silent,))
    path.unlink()
    with pytest.raises(LedgerError, match="restore it from a backup: other noise on the same counts"):
        made(spec, earlier=(before,))


def test_frequencies_of_other_values_are_not_taken_for_these(tmp_path: Path) -> None:
    spec = spec_in(tmp_path)
    first = made(spec)
    other = Joint.from_counts(COUNTED.counts, secret=["ill", "well"])
    forged = first.record.model_copy(update={"counted": made(spec, other).record.counted})
    remove_tree(spec.workspace_folder)
    before = published(replace(first, record=forged), tmp_path / "releases")
    with pytest.raises(DataError, match="are of other values than the counted ones"):
        made(spec, other, earlier=(before,))


def test_what_versions_about_the_same_people_spend_adds_up(tmp_path: Path) -> None:
    spec = spec_in(tmp_path, **SAME)
    one = published(made(spec), tmp_path / "releases", "1.0.0", FOLLOWED)
    second = made(spec, OTHER, (one,))
    assert (second.frequencies.spent, second.record.unprotected) == (1.0, 0)
    two = published(second, tmp_path / "releases", "1.1.0", FOLLOWED)
    # The counts of the first version again: its noise is known already, and is paid for once.
    third = made(spec, COUNTED, (one, two))
    assert third.reused
    assert third.frequencies.spent == 1.0
    three = published(third, tmp_path / "releases", "1.2.0", FOLLOWED)
    assert made(spec, OTHER, (one, two, three)).frequencies.spent == 1.0
    # Withdrawn versions were seen.
    gone = replace(one, folder=None, withdrawn=True)
    assert made(spec, OTHER, (gone, two)).frequencies.spent == 1.0
    # Of other people nothing was spent.
    assert made(spec_in(tmp_path), COUNTED, (one, two)).frequencies.spent == 0.5


@pytest.mark.usefixtures("seeded")
def test_noise_that_is_the_same_by_chance_is_paid_for_each_time_that_it_is_drawn(tmp_path: Path) -> None:
    """Of a large epsilon nearly all noise is zero, here all, in every run: the same counts have the same noisy ones."""
    spec = spec_in(tmp_path, **SAME, frequencies={"protection": "noise", "epsilon": 20.0})
    earlier: tuple[Earlier, ...] = ()
    for number in range(3):
        context = ProtectionContext(spec, earlier, source=SHA(number))
        found = public_frequencies(context, COUNTED)
        assert found.record.noisy == public_frequencies(ProtectionContext(spec), COUNTED).record.noisy
        assert found.frequencies.spent == 20.0 * (number + 1)
        name = f"1.{number}.0"
        history = FOLLOWED.model_copy(update={"ordinal": number, "name": f"test/{name}"})
        earlier = (*earlier, published(found, tmp_path / "releases", name, history))
        # Once more for the same source it costs nothing.
        again = public_frequencies(ProtectionContext(spec, earlier, source=SHA(number)), COUNTED)
        assert (again.reused, again.frequencies.spent) == (True, 20.0 * (number + 1))


def test_people_of_one_source_are_the_same_whatever_the_spec_says(tmp_path: Path) -> None:
    """Another beta, another epsilon, another series of values: each is a further look at the same people."""
    spec = spec_in(tmp_path)
    source = SHA(6)
    one = published(public_frequencies(ProtectionContext(spec, source=source), COUNTED), tmp_path / "releases")

    def again(source: str, **changes: Any) -> float:
        other = spec_in(tmp_path, frequencies={**NOISE["frequencies"], **changes})
        found = public_frequencies(ProtectionContext(other, (one,), source=source), COUNTED).frequencies.spent
        assert found is not None
        return found

    assert again(source, beta=0.011) == 1.0
    assert again(source, epsilon=0.25) == 0.75
    # Noise that is used again is spent once; another source is other people, as the spec says.
    assert again(source) == 0.5
    assert again(SHA(99), beta=0.011) == 0.5
    # The same counts in another source have noise of their own, or it would tell that no count has changed.
    assert not public_frequencies(ProtectionContext(spec, (one,), source=SHA(98)), COUNTED).reused
    assert public_frequencies(ProtectionContext(spec, (one,), source=source), COUNTED).reused
    with pytest.raises(SpecError, match=r"have spent 0\.5 of max_epsilon = 0\.9"):
        again(source, beta=0.012, max_epsilon=0.9)


def test_other_series_of_the_same_register_are_counted(tmp_path: Path) -> None:
    elsewhere = spec_in(tmp_path, name="elsewhere", **SAME)
    record = published(made(elsewhere), tmp_path / "releases", "1.0.0", FOLLOWED).record
    Records(elsewhere.workspace_folder / "elsewhere" / "records" / "place").learn(record)
    spec = spec_in(tmp_path, **SAME)
    assert made(spec, OTHER).frequencies.spent == 1.0
    assert made(spec_in(tmp_path, **SAME, name="alone"), OTHER).frequencies.spent == 0.5


def test_what_another_series_has_spent_is_not_guessed(tmp_path: Path) -> None:
    """Its record was lost: nothing more is drawn until it is found, under noise; without noise nothing is summed."""
    elsewhere = spec_in(tmp_path, name="elsewhere", **SAME)
    history = FOLLOWED.model_copy(update={"name": "elsewhere/1.0.0"})
    record = published(made(elsewhere), tmp_path / "releases", "1.0.0", history).record
    spec = spec_in(tmp_path, **SAME)
    with pytest.raises(LedgerError, match=r"knows elsewhere/1\.0\.0, whose record is not in .*; restore the record"):
        require_records(ProtectionContext(spec), ["test/1.0.0", "elsewhere/1.0.0"])
    require_records(
        ProtectionContext(spec_in(tmp_path, **SAME, frequencies={"protection": "none"})), ["elsewhere/1.0.0"]
    )
    Records(elsewhere.workspace_folder / "elsewhere" / "records" / "place").learn(record)
    require_records(ProtectionContext(spec), ["test/1.0.0", "elsewhere/1.0.0"])


def test_more_than_the_total_is_refused_before_anything_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_in(tmp_path, **SAME, frequencies={**NOISE["frequencies"], "max_epsilon": 0.9})
    one = published(made(spec), tmp_path / "releases", "1.0.0", FOLLOWED)
    drawn: list[int] = []
    monkeypatch.setattr("funnel.frequencies.public_counts.draw_noise", lambda size, epsilon, **_: drawn.append(size))
    with pytest.raises(SpecError, match=r"have spent 0\.5 of max_epsilon = 0\.9 in \[frequencies\]"):
        made(spec, OTHER, (one,))
    assert not drawn
    # The same counts again spend nothing.
    assert made(spec, COUNTED, (one,)).frequencies.spent == 0.5


def test_ten_times_a_tenth_is_one(tmp_path: Path) -> None:
    tenth = {"protection": "noise", "epsilon": 0.1, "max_epsilon": 1.0}
    spec = spec_in(tmp_path, **SAME, frequencies=tenth)
    earlier: tuple[Earlier, ...] = ()
    for number in range(10):
        found = made(spec, Joint.from_counts(COUNTED.counts + number), earlier)
        earlier += (published(found, tmp_path / "releases", f"1.{number}.0", FOLLOWED),)
    assert earlier[-1].record.frequencies.spent == 1.0
    with pytest.raises(SpecError, match=r"would spend 0\.1 more"):
        made(spec, Joint.from_counts(COUNTED.counts + 10), earlier)


def test_versions_without_noise_are_counted_as_such(tmp_path: Path) -> None:
    open_spec = spec_in(tmp_path, **SAME, frequencies={"protection": "none"})
    plain = made(open_spec)
    assert (plain.frequencies.joint is COUNTED, plain.reused) == (True, False)
    assert (plain.record.protection, plain.record.spent, plain.record.noisy) == ("none", None, None)
    one = published(plain, tmp_path / "releases", "1.0.0", FOLLOWED)
    two = replace(one, record=one.record.model_copy(update={"version": "1.0.1"}))
    assert made(spec_in(tmp_path, **SAME), COUNTED, (one, two)).record.unprotected == 2
    assert made(open_spec, COUNTED, (one,)).protection.unprotected == 1


def run(protected: Protected, before: list[Earlier], **flags: Any) -> Any:
    spec = spec_of("x.parquet", "/")
    return decide(spec, origin_of(spec, SNAPSHOT, PROTOCOL, None), before, protection=protected.record, **flags)


def test_other_protection_or_other_noise_is_another_version(tmp_path: Path) -> None:
    """Also where the spec says the same: what it leaves at its default may have been protected otherwise before."""
    spec = spec_in(tmp_path)
    first, other = made(spec), made(spec, OTHER)
    drawn = run(first, [])
    assert isinstance(drawn, Draw)

    def before(frequencies: ProtectedCounts) -> list[Earlier]:
        record = record_of(origin=drawn.origin, frequencies=frequencies)
        return [Earlier(record, ReleaseFolder(tmp_path), True, SHA(1))]

    assert run(first, before(first.record)) == Unchanged(Version(1, 0, 0))
    # What was spent, and on whom, says nothing about which frequencies these are.
    assert run(first, before(first.record.model_copy(update={"spent": 3.0}))) == Unchanged(Version(1, 0, 0))
    plain = made(spec_in(tmp_path, frequencies={"protection": "none"}))
    for frequencies in (other.record, plain.record):
        # The protocol is the same, so rows are taken over.
        found = run(first, before(frequencies))
        assert isinstance(found, TakeOver)
        assert found.version == Version(1, 0, 1)
    assert run(plain, before(plain.record)) == Unchanged(Version(1, 0, 0))
    assert isinstance(run(plain, before(first.record)), TakeOver)


NUMBERS: dict[str, Any] = {"epsilon": 0.5, "delta": 0.0, "beta": 0.01, "spent": 1.0}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"protection": "none"}, "tells of noise where there is none"),
        ({"beta": None}, "or not all of it"),
        ({"spent": 0.4}, "all versions together spent less than this one"),
    ],
)
def test_protection_that_contradicts_itself_is_damaged(changes: dict[str, Any], said: str) -> None:
    assert Protection(protection="noise", **NUMBERS, unprotected=0).spent == 1.0
    with pytest.raises(ValueError, match=said):
        Protection.model_validate({"protection": "noise", **NUMBERS, "unprotected": 0, **changes})


def test_a_record_names_noise_where_there_is_some() -> None:
    said: dict[str, Any] = {"protection": "noise", **NUMBERS, "unprotected": 0, "counted": SHA(1), "values": None}
    assert ProtectedCounts.model_validate({**said, "noisy": SHA(2)}).public.epsilon == 0.5
    with pytest.raises(ValueError, match="names noisy counts where there are none, or does not where there are"):
        ProtectedCounts.model_validate({**said, "noisy": None})
    plain = {**said, **dict.fromkeys(NUMBERS), "protection": "none", "noisy": None}
    assert ProtectedCounts.model_validate(plain).public == Protection(
        protection="none", **dict.fromkeys(NUMBERS), unprotected=0
    )
    with pytest.raises(ValueError, match="says that values were learned under noise, and there is none"):
        ProtectedCounts.model_validate({**plain, "values": SHA(3)})
