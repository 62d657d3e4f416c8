"""Noisy tables beside the counts: drawn once for what was counted, found again where they were published, paid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from funnel.errors import LedgerError, SpecError
from funnel.frequencies.moves import Moves
from funnel.frequencies.unit_tables import UnitCounts
from funnel.release.earlier import Earlier
from funnel.release.files import remove_tree
from funnel.release.frequencies_document import (
    ChangesPart,
    DeparturesPart,
    FrequenciesDocument,
    MeansPart,
    NoisyPart,
    RowsPart,
)
from funnel.release.protected import Protected, ProtectionContext, public_frequencies
from funnel.release.protected_tables import changes_of, public_averages, public_changes, public_rows
from funnel.release.protection import ProtectedCounts
from funnel.spec import ReleaseSpec
from tests.funnel.release.test_decision import SHA
from tests.funnel.release.test_protected import COUNTED, FOLLOWED, NUMBERS, SAME, published, spec_in
from tests.public import OPEN_COUNTS

MOVES = Moves(
    "test/1.0.0", np.array([[390, 10], [20, 600]]), np.array([[250, 90, 0], [90, 480, 20]]), np.full((2, 3), 11)
)
OTHER_MOVES = replace(MOVES, secrets=MOVES.secrets + 1)
UNITS = UnitCounts(COUNTED, np.array([[20, 9, 0], [8, 40, 2]]), np.full((2, 3), 5), np.array([930, 60, 30, 0]))
OTHER_UNITS = replace(UNITS, sizes=UNITS.sizes + 1)


@dataclass(frozen=True)
class Tables:
    """Changes or rows: how they are made public, and where it is said."""

    name: str
    exact: Any
    others: Any
    add: Callable[..., Protected]
    options: dict[str, int]

    def made(
        self,
        spec: ReleaseSpec,
        earlier: tuple[Earlier, ...] = (),
        held: Earlier | None = None,
        *,
        others: bool = False,
    ) -> Protected:
        """Public counts, and these tables beside them."""
        context = ProtectionContext(spec, earlier, held)
        counts = public_frequencies(context, COUNTED, **self.options)
        return self.add(context, counts, self.others if others else self.exact)

    def told(self, found: Protected) -> Any:
        """The noisy tables, as documents hold them."""
        noisy = getattr(found.frequencies, self.name)
        return None if noisy is None else _PARTS[self.name](noisy).model_dump(mode="json")

    def of_record(self, found: Protected) -> Any:
        return getattr(found.record, self.name)


_PARTS: dict[str, Callable[[Any], NoisyPart]] = {
    "changes": ChangesPart.of,
    "rows": RowsPart.like,
    "means": MeansPart.like,
    "departures": DeparturesPart.like,
}
CHANGES = Tables(
    "changes",
    MOVES,
    OTHER_MOVES,
    lambda context, counts, exact: public_changes(context, counts, [exact], [COUNTED]),
    {"tables": 1},
)
ROWS = Tables(
    "rows",
    UNITS,
    OTHER_UNITS,
    public_rows,
    {"tables": 1},
)
MEANS = Tables(
    "means",
    np.array([5 << 20, 7 << 20, 9 << 20]),
    np.array([6 << 20, 6 << 20, 9 << 20]),
    lambda context, counts, exact: public_averages(context, counts, "means", lambda _: (exact, 1 << 20)),
    {"tables": 1},
)
DEPARTURES = Tables(
    "departures",
    np.array([5 << 20, -7 << 20, 2 << 20]),
    np.array([6 << 20, -8 << 20, 2 << 20]),
    lambda context, counts, exact: public_averages(context, counts, "departures", lambda _: (exact, 3 << 20)),
    {"tables": 1},
)
both = pytest.mark.parametrize("tables", [CHANGES, ROWS, MEANS, DEPARTURES], ids=lambda one: one.name)


@both
def test_the_same_tables_have_the_same_noise_and_others_have_their_own(tables: Tables, tmp_path: Path) -> None:
    """Other noise is the same once in 10^20 runs: on sixteen counts of the scale 16, or on three of a million."""
    spec = spec_in(tmp_path, **SAME)
    first = tables.made(spec)
    assert (first.frequencies.epsilon, first.frequencies.spent, first.frequencies.part) == (0.5, 0.5, 0.75)
    again = tables.made(spec)
    assert tables.told(again) == tables.told(first)
    assert again.record == first.record
    other = tables.made(spec, others=True)
    assert tables.told(other) != tables.told(first)
    assert tables.of_record(other).counted != tables.of_record(first).counted
    # What nobody has seen may be other noise.
    remove_tree(spec.workspace_folder)
    assert tables.told(tables.made(spec)) != tables.told(first)


@both
def test_where_the_workspace_lost_them_the_published_ones_are_taken(tables: Tables, tmp_path: Path) -> None:
    spec = spec_in(tmp_path, **SAME)
    first = tables.made(spec)
    before = published(first, tmp_path / "releases", history=FOLLOWED)
    remove_tree(spec.workspace_folder)
    for earlier, held in (((before,), None), ((), before)):
        found = tables.made(spec, earlier, held)
        assert found.reused
        assert tables.told(found) == tables.told(first)
        assert found.record == first.record
    # Not those of other tables, though the counts are the same; nor of a version that is gone.
    assert tables.told(tables.made(spec, (before,), others=True)) != tables.told(first)
    remove_tree(spec.workspace_folder)
    gone = replace(before, folder=None, withdrawn=True)
    assert tables.told(tables.made(spec, (gone,))) != tables.told(first)


@both
def test_published_tables_that_were_changed_or_are_gone_are_not_drawn_again(tables: Tables, tmp_path: Path) -> None:
    spec = spec_in(tmp_path, **SAME)
    first = tables.made(spec)
    before = published(first, tmp_path / "releases")
    path = before.folder.frequencies
    document = FrequenciesDocument.read(path)
    silent = replace(before, record=before.record.model_copy(update={"files": {}}))
    part = getattr(document, tables.name)
    assert part is not None
    if isinstance(part, RowsPart):
        edited: Any = part.model_copy(update={"sizes": (part.sizes[0] + 1, *part.sizes[1:])})
    elif isinstance(part, MeansPart | DeparturesPart):
        edited = part.model_copy(update={"counts": (part.counts[0] + 1, *part.counts[1:])})
    else:
        (one,) = part.since
        edited = part.model_copy(update={"since": (one.model_copy(update={"version": "test/1.0.1"}),)})
    for changed in (edited, None):
        path.write_bytes(document.model_copy(update={tables.name: changed}).to_bytes())
        # The counts are what they were.
        with pytest.raises(LedgerError, match=r"is not what version 1\.0\.0 was made from; restore it"):
            tables.made(spec, (silent,))
        with pytest.raises(LedgerError, match="was changed since it was published; restore it from a backup"):
            tables.made(spec, (before,))


@both
def test_a_version_before_of_other_counts_or_of_none_has_none_of_them(tables: Tables, tmp_path: Path) -> None:
    """The last version that has them is looked for, past those that do not."""
    spec = spec_in(tmp_path, **SAME)
    first = tables.made(spec)
    one = published(first, tmp_path / "releases", "1.0.0", FOLLOWED)
    plain = public_frequencies(ProtectionContext(spec, (one,)), COUNTED)
    two = published(plain, tmp_path / "releases", "1.1.0", FOLLOWED)
    three = published(tables.made(spec, (one,), others=True), tmp_path / "releases", "1.2.0", FOLLOWED)
    open_spec = spec_in(tmp_path, **SAME, frequencies={"protection": "none"})
    bare = public_frequencies(ProtectionContext(open_spec), COUNTED)
    four = published(bare, tmp_path / "releases", "1.3.0", FOLLOWED)
    remove_tree(spec.workspace_folder)
    assert tables.told(tables.made(spec, (one, two, three, four))) == tables.told(first)


@both
def test_more_than_the_total_is_refused_before_any_table_is_drawn(
    tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is spent on tables of their own comes to the counts, whose noise is known: 0.375 + 0.125 + 0.125.
    one = published(tables.made(spec_in(tmp_path, **SAME)), tmp_path / "releases", "1.0.0", FOLLOWED)
    spec = spec_in(tmp_path, **SAME, frequencies={"protection": "noise", "epsilon": 0.5, "max_epsilon": 0.6})
    for module in ("moves", "unit_tables", "averages"):
        monkeypatch.setattr(f"funnel.frequencies.{module}.draw_noise", lambda *_: pytest.fail("noise was drawn"))
    with pytest.raises(SpecError, match=r"have spent 0\.5 of max_epsilon = 0\.6 .* would spend 0\.125 more"):
        tables.made(spec, (one,), others=True)
    # The same tables again cost nothing more.
    assert tables.made(spec, (one,)).frequencies.spent == 0.5


@both
def test_tables_beside_counts_that_were_drawn_alone_are_paid_for_besides(tables: Tables, tmp_path: Path) -> None:
    """The counts keep the noise that they have; what is told is the least double at or above the true sum."""
    for epsilon in (0.5, 0.1, 0.7):
        spec = spec_in(tmp_path, **SAME, frequencies={"protection": "noise", "epsilon": epsilon})
        alone = public_frequencies(ProtectionContext(spec), COUNTED)
        found = tables.made(spec, held=published(alone, tmp_path / str(epsilon)))
        assert found.frequencies.noise == alone.frequencies.noise
        exact = Fraction(alone.frequencies.noise.epsilon) + Fraction(tables.of_record(found).epsilon)
        told = found.frequencies.epsilon
        assert Fraction(np.nextafter(told, 0)) < exact <= Fraction(told)
        assert found.frequencies.spent == found.record.epsilon == told
        assert float(sum(found.record.draws.values())) == told


def test_without_noise_or_earlier_versions_there_are_no_tables(tmp_path: Path) -> None:
    spec = spec_in(tmp_path, **SAME, frequencies={"protection": "none"})
    for tables in (CHANGES, ROWS, MEANS, DEPARTURES):
        assert tables.told(tables.made(spec)) is None
        assert tables.of_record(tables.made(spec)) is None
    noisy = spec_in(tmp_path, **SAME)
    context = ProtectionContext(noisy)
    counts = public_frequencies(context, COUNTED)
    assert public_changes(context, counts, [], []) is counts


def test_changes_and_rows_together_are_one_version(tmp_path: Path) -> None:
    # All that is allowed is spent by it.
    spec = spec_in(tmp_path, **SAME, frequencies={"protection": "noise", "epsilon": 0.5, "max_epsilon": 0.5})

    def together(earlier: tuple[Earlier, ...], units: UnitCounts = UNITS, moves: Moves = MOVES) -> Protected:
        context = ProtectionContext(spec, earlier)
        counts = public_frequencies(context, COUNTED, tables=2)
        return public_changes(context, public_rows(context, counts, units), [moves], [COUNTED])

    found = together(())
    assert (found.frequencies.epsilon, found.frequencies.part) == (0.5, 0.5)
    assert sorted(map(float, found.record.draws.values())) == [0.125, 0.125, 0.25]
    before = (published(found, tmp_path / "releases", history=FOLLOWED),)
    assert together(before).record == found.record
    # One more table of either kind is too much, whichever is asked for first.
    for others in ({"units": OTHER_UNITS}, {"moves": OTHER_MOVES}):
        with pytest.raises(SpecError, match=r"have spent 0\.5 of max_epsilon = 0\.5 .* would spend 0\.125 more"):
            together(before, **others)


class TestTakingOver:
    """Rows that are taken over were drawn by the changes of their version."""

    def test_they_come_with_the_changes_of_their_version(self, tmp_path: Path) -> None:
        spec = spec_in(tmp_path, **SAME)
        first = CHANGES.made(spec)
        before = published(first, tmp_path / "releases", history=FOLLOWED)
        counts = public_frequencies(ProtectionContext(spec, (before,)), COUNTED)
        found = changes_of(ProtectionContext(spec, (before,)), counts, before)
        assert CHANGES.told(found) == CHANGES.told(first)
        assert (found.frequencies.epsilon, found.frequencies.spent) == (0.5, 0.5)
        assert found.record == first.record

    def test_a_version_without_them_or_of_other_counts_gives_none(self, tmp_path: Path) -> None:
        spec = spec_in(tmp_path, **SAME)
        counts = public_frequencies(ProtectionContext(spec), COUNTED)
        before = published(counts, tmp_path / "releases", history=FOLLOWED)
        assert changes_of(ProtectionContext(spec, (before,)), counts, before) is counts
        bare = replace(before, record=before.record.model_copy(update={"frequencies": OPEN_COUNTS}))
        assert changes_of(ProtectionContext(spec, (bare,)), counts, bare) is counts
        changing = published(CHANGES.made(spec), tmp_path / "releases", "1.1.0", FOLLOWED)
        other = replace(counts, record=counts.record.model_copy(update={"noisy": SHA(3)}))
        assert changes_of(ProtectionContext(spec, (changing,)), other, changing) is other

    def test_changes_that_are_not_those_of_the_record_are_refused(self, tmp_path: Path) -> None:
        spec = spec_in(tmp_path, **SAME)
        before = published(CHANGES.made(spec), tmp_path / "releases", history=FOLLOWED)
        counts = public_frequencies(ProtectionContext(spec, (before,)), COUNTED)
        path = before.folder.frequencies
        document = FrequenciesDocument.read(path)
        silent = replace(before, record=before.record.model_copy(update={"files": {}}))
        (one,) = document.changes.since
        renamed = document.changes.model_copy(update={"since": (one.model_copy(update={"version": "test/9.0.0"}),)})
        for changed in (renamed, None):
            path.write_bytes(document.model_copy(update={"changes": changed}).to_bytes())
            with pytest.raises(LedgerError, match=r"is not what version 1\.0\.0 was made from"):
                changes_of(ProtectionContext(spec, (silent,)), counts, silent)


@pytest.mark.parametrize("name", ["changes", "rows"])
def test_a_record_names_tables_where_there_is_noise(name: str) -> None:
    part = {"epsilon": 0.1, "counted": SHA(3), "noisy": SHA(4)}
    said: dict[str, Any] = {"protection": "noise", **NUMBERS, "unprotected": 0, "counted": SHA(1), "values": None}
    found = ProtectedCounts.model_validate({**said, "noisy": SHA(2), name: part})
    assert {draw: str(cost) for draw, cost in found.draws.items()} == {
        (SHA(1), SHA(2)): "0.4",
        (SHA(3), SHA(4)): "0.1",
    }
    plain = {**said, **dict.fromkeys(NUMBERS), "protection": "none", "noisy": None}
    with pytest.raises(ValueError, match="names noisy tables where there is no noise"):
        ProtectedCounts.model_validate({**plain, name: part})
