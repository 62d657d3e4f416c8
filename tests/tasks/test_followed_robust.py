"""The same people under noise, with a bound also for an observer who knows the true counts: released and judged."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from funnel.audit.history import recount_histories
from funnel.errors import SpecError
from funnel.guarantees import parse_guarantee
from funnel.history.past import Past
from funnel.planning import plan
from funnel.preview.counted import preview
from funnel.preview.version_plan import plan_version
from funnel.progress import quiet
from funnel.recount import left_open
from funnel.recount.move_distribution import MoveDistribution, distribution_since
from funnel.recount.noise import cell_limit
from funnel.recount.noisy_moves import Since
from funnel.register.register import Register
from funnel.release import secret
from funnel.release.findings import FindingsDocument
from funnel.release.layout import ReleaseFolder
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.informed import Reader
from tests.tasks.test_followed_noise import PANEL, SAME_SECRET
from tests.tasks.test_neighbours import Released, released
from tests.waves import WAVES, wave

ROBUST = PANEL.replace('people = "same"', 'people = "same"\nrobust = true').replace("epsilon = 2.0", "epsilon = 8.0")


@dataclass(frozen=True)
class ByHand:
    """What people were and what was published about them, counted and multiplied out one person at a time.

    ``cells`` and ``said`` are of every wave: by the digest of a person their cell, and the history before and after.
    """

    past: Past
    cells: list[dict[object, int]]
    said: list[dict[object, tuple[int, int]]]

    @classmethod
    def of(cls, register: Register) -> ByHand:
        """All waves of a register."""
        cells, said = [], []
        for entry, chapter in zip(register.entries, register.past.chapters, strict=True):
            people = pq.read_table(register.people(entry.ordinal)[0]).to_pylist()
            named = {(one["high"], one["low"]): one for one in people}
            cells.append({name: one["cell"] for name, one in named.items()})
            said.append({n: (int(chapter.parents[o["node"] - chapter.first]), o["node"]) for n, o in named.items()})
        return cls(register.past, cells, said)

    def _counts(self, wave: int) -> list[int]:
        chapter = self.past.chapters[wave]
        found = Counter(self.cells[wave].values())
        return [found[cell] for cell in range(chapter.joint.counts.size)]

    def _distribution(self, v: int, t: int) -> MoveDistribution:
        """By the second computation, of tables that are counted here."""
        c, a = self.past.chapters[t].joint.counts.shape
        # By secret alone, as the published tables are.
        secrets, stayed, left = ([[0] * n for _ in range(c)] for n in (c, 1, 1))
        for person, cell in self.cells[t].items():
            waves = [wave for wave in range(t) if person in self.cells[wave]]
            if waves and waves[-1] == v:
                before = self.cells[v][person]
                secrets[before // a][cell // a] += 1
                (stayed if before % a == cell % a else left)[before // a][0] += 1
        values = [
            tuple(one.symbols for one in (chapter.joint.secret, chapter.joint.inputs))
            for chapter in (self.past.chapters[v], self.past.chapters[t])
        ]
        tables = (tuple(map(tuple, one)) for one in (secrets, stayed, left))
        return distribution_since(Since("before", *tables), *values, self._counts(t), alike=True)

    def _before(self, node: int, t: int) -> tuple[list[Fraction], list[int]]:
        """P(s, x | h) before a wave, by cell, and how common secrets are, for an observer who knows the true tables."""
        c, a = self.past.chapters[t].joint.counts.shape
        if node == 0:
            counts = self._counts(t)
            return list(map(Fraction, counts)), [sum(counts[s * a : (s + 1) * a]) for s in range(c)]
        v = int(self.past.versions_of(np.array([node]))[0])
        after, distribution = self._after(node, v), self._distribution(v, t)
        found = [Fraction(0)] * (c * a)
        for cell, share in enumerate(after):
            row, total = distribution.row(cell)
            for to, records in row.items():
                found[to] += share * Fraction(records, total)
        return found, list(distribution.by_secret)

    def _after(self, node: int, v: int) -> list[Fraction]:
        chapter = self.past.chapters[v]
        parent, output = (int(of[node - chapter.first]) for of in (chapter.parents, chapter.outputs))
        row = chapter.library[int(chapter.channels_of(np.array([parent]))[0]), output].tolist()
        return [share * row[cell % len(row)] for cell, share in enumerate(self._before(parent, v)[0])]

    def reader(self, t: int) -> Reader:
        """What a reader finds in a wave."""
        chapter = self.past.chapters[t]
        c, a = chapter.joint.counts.shape
        level, beyond, moved, outside = 0.0, 0.0, 0, 0
        for node, people in Counter(before for before, _ in self.said[t].values()).items():
            distribution, prior = self._before(node, t)
            rows = chapter.library[int(chapter.channels_of(np.array([node]))[0])].tolist()
            found = []
            for row in ([1] * a, *rows):
                told = [sum(distribution[s * a + x] * row[x] for x in range(a)) for s in range(c)]
                lifts = [one * sum(prior) / (sum(told) * n) for one, n in zip(told, prior, strict=True) if any(told)]
                found.append((sum(told), max((abs(math.log(lift)) for lift in lifts), default=0.0)))
            (_, alone), *answers = found
            above = [share for share, nats in answers if nats > 1 + 1e-9]
            level = max(level, *(nats for _, nats in answers))
            beyond += people * float(sum(above) / sum(share for share, _ in answers))
            moved += people if alone > 1 + 1e-9 else 0
            outside += people if above else 0
        return Reader(level, beyond / len(self.cells[t]), moved, outside)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Released]]:
    """Three waves, released one after the other."""
    folder = tmp_path_factory.mktemp("robust")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secret, "secrets", SAME_SECRET)
        return folder, [released(folder, ROBUST, wave(year, 2000), patch) for year in WAVES[:3]]


def test_whoever_knows_the_true_tables_finds_nobody_outside(made: tuple[Path, list[Released]]) -> None:
    register, kept = Register.of(made[0] / ".funnel", "panel"), []
    known = ByHand.of(register)
    for number, one in enumerate(made[1]):
        found = FindingsDocument.read(one.folder.findings).history
        kept.append(found.share)
        reader = known.reader(number)
        assert reader.people == reader.moved == 0
        assert reader.level <= 1 + 1e-9
    assert kept[1] > 0.1
    assert [entry.limits is not None for entry in register.entries] == [True] * 3
    for entry in register.entries[1:]:
        assert {len(one.stayed[0]) for one in entry.changes.since} == {1}


def test_both_computations_find_that(made: tuple[Path, list[Released]]) -> None:
    register = Register.of(made[0] / ".funnel", "panel")
    found = recount_histories(register.root)
    assert not found.complaints
    assert [(version.complaints, version.broken) for version in found.versions] == [((), ())] * 3
    for one in made[1]:
        assert [check for check in recheck(ReleaseFolder(one.folder.root)) if check.failed] == []


def test_the_second_computation_refuses_what_more_noise_would_leave_open(
    made: tuple[Path, list[Released]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if noise were many times as wide as it is said to be: channels that say much are beyond the bound then.
    register = Register.of(made[0] / ".funnel", "panel")
    monkeypatch.setattr(left_open, "cell_limit", lambda scale, tail: 60 * cell_limit(scale, tail))
    found = recount_histories(register.root)
    assert not found.versions[0].broken
    assert any(
        "true tables that are not ruled out" in said for version in found.versions[1:] for said in version.broken
    )


def test_pages_say_for_whom_the_bound_holds(made: tuple[Path, list[Released]]) -> None:
    for number, one in enumerate(made[1]):
        page = one.folder.report.read_text(encoding="utf-8")
        assert ("over all versions together it is proven for every set of such tables" in page) is (number > 0)
        assert "not proven" not in page
        found = FindingsDocument.read(one.folder.findings).history
        assert found.expected.open_people is not None
        assert (found.expected.open_people > 0) <= (number > 0)


def test_a_plan_is_made_for_the_same_tables(made: tuple[Path, list[Released]], tmp_path: Path) -> None:
    place = tmp_path / "panel"
    shutil.copytree(made[0], place, symlinks=True)
    spec = ReleaseSpec.load(place / "people.toml")
    found = preview(spec, quiet)
    rows = plan(found.protected.frequencies.joint, parse_guarantee("lip:1.0"), time_limit=0.2)
    (outlook,) = plan_version(spec, found, (("lip:1.0", tuple(rows)),))
    limits = outlook.costs[0].step.observed.limits
    assert limits is not None
    assert sorted(limits) == [0, 1, 2]


def test_robust_is_asked_for_from_the_first_version_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret, "secrets", SAME_SECRET)
    released(tmp_path, PANEL, wave(WAVES[0], 240), monkeypatch)
    with pytest.raises(SpecError, match="begin another register"):
        released(tmp_path, ROBUST, wave(WAVES[1], 240), monkeypatch)


@pytest.mark.parametrize(
    "text",
    [ROBUST.replace("epsilon = 8.0", 'protection = "none"'), ROBUST.replace('people = "same"', 'people = "different"')],
)
def test_robust_is_refused_where_it_means_nothing(text: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="robust"):
        ReleaseSpec.parse(text, tmp_path / "people.toml")
