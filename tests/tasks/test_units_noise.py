"""Units of several rows under noise: judged, audited, and no public byte of a version tells of one unit."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from funnel.audit.history import recount_histories
from funnel.errors import ReleaseRefused
from funnel.frequencies import unit_tables
from funnel.frequencies.averages import NoisyAverages
from funnel.frequencies.noise import NoiseSecret
from funnel.frequencies.unit_tables import NoisyRows, UnitCounts
from funnel.joint import IntArray
from funnel.pipeline.expectations import Finished
from funnel.pipeline.flows.pipeline import run_release
from funnel.preview.counted import preview
from funnel.progress import quiet
from funnel.recount import expected
from funnel.recount.frequencies import PublicFrequencies
from funnel.register.register import Register
from funnel.release import learned, protected_tables, secret
from funnel.release.frequencies_document import FrequenciesDocument, RowsPart
from funnel.release.layout import ReleaseFolder
from funnel.sampling.unit_order import first_rows
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.projects import make_project
from tests.tasks.test_followed_noise import SAME_SECRET, history_told
from tests.tasks.test_neighbours import Released, released, require_the_same
from tests.waves import FOLLOWED

UNITS = 220
SPEC = (
    FOLLOWED.replace('"panel"', '"encounters"')
    .replace("A panel", "Encounters of a test")
    .replace('record_key = ["id"]', 'unit = ["patient"]')
    .replace("epsilon = 2.0", "epsilon = 4.0")
    .replace('kids = ["no", "yes"]', 'ward = ["a", "b", "c"]')
    .replace('outwork = ["in", "out"]', 'ill = ["no", "yes"]')
    .replace("outwork", "ill")
    .replace("kids", "ward")
)


def encounters(version: int) -> pa.Table:
    """Rows of patients in no order; in a later version some are gone, some are new, and wards change."""
    random = np.random.default_rng(3)
    ill = random.random(UNITS) < 0.35
    patient = np.repeat(np.arange(UNITS), 1 + random.binomial(2, 0.2 + 0.2 * ill))
    usual = np.where(random.random(UNITS) < 0.5, 2 * ill, random.integers(0, 3, UNITS))
    ward = np.where(random.random(len(patient)) < 0.6, usual[patient], random.integers(0, 3, len(patient)))
    if version:
        ward = np.where(random.random(len(patient)) < 0.3, random.integers(0, 3, len(patient)), ward)
    table = pa.table(
        {
            "patient": patient + 1000 * (patient > 200) * version,
            "ill": np.array(["no", "yes"])[ill.astype(int)][patient],
            "ward": np.array(list("abc"))[ward],
        }
    )
    table = table.filter(pa.array((patient >= 15) | (version == 0)))
    return table.take(random.permutation(table.num_rows))


def with_another_secret(table: pa.Table, patient: int) -> pa.Table:
    """The same rows, but all those of one patient have another secret."""
    turned = pc.if_else(pc.equal(table["ill"], "yes"), "no", "yes")
    changed = pc.if_else(pc.equal(table["patient"], patient), turned, table["ill"])
    return table.set_column(1, "ill", changed)


def without(table: pa.Table, patient: int) -> pa.Table:
    return table.filter(pc.not_equal(table["patient"], patient))


def tables_of(one: Released) -> NoisyRows:
    rows = one.done.protected.frequencies.rows
    assert rows is not None
    return rows


def all_released(
    folder: Path, tables: Sequence[pa.Table], patch: pytest.MonkeyPatch, like: Sequence[Released] | None = None
) -> list[Released]:
    """Some versions, with noise of their own or with such noise that noisy tables are those of others."""
    patch.setattr(secret, "secrets", SAME_SECRET)
    found = []
    for number, table in enumerate(tables):
        if like is None:
            found.append(released(folder, SPEC, table, patch))
            continue
        one = like[number]
        with patch.context() as inner:
            inner.setattr(UnitCounts, "with_noise", lambda *_, one=one: tables_of(one))
            found.append(released(folder, SPEC, table, patch, one.noisy, one.changes, None, one.departures))
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Released]]:
    """Two versions of the same patients, with noise of their own."""
    folder = tmp_path_factory.mktemp("units")
    with pytest.MonkeyPatch.context() as patch:
        return folder, all_released(folder, [encounters(0), encounters(1)], patch)


def test_epsilon_is_split_between_first_rows_and_tables(made: tuple[Path, list[Released]]) -> None:
    for number, one in enumerate(made[1]):
        public = PublicFrequencies.parse(one.folder.frequencies.read_bytes())
        assert (public.epsilon, public.epsilon_counts) == (4.0, 1.0 if number else 2.0)
        assert (public.rows.epsilon, public.rows.scale, len(public.rows.sizes)) == (1.0, 2.0, 100)
        assert (public.changes is None) is (number == 0)
        assert public.departures.epsilon == 1.0
        # First rows are counted, not all rows.
        assert abs(sum(map(sum, public.noisy)) - encounters(number)["patient"].to_pandas().nunique()) < 40


def test_a_second_computation_and_an_audit_find_the_same(made: tuple[Path, list[Released]]) -> None:
    folder, ones = made
    found = recount_histories(Register.of(folder / ".funnel", "encounters").root)
    assert not found.complaints
    assert [(one.complaints, one.broken) for one in found.versions] == [((), ())] * 2
    assert all(one.level <= 1 for one in found.versions)
    for one in ones:
        assert [check for check in recheck(one.folder) if check.failed] == []


def test_departures_of_others_are_found_by_a_second_computation(made: tuple[Path, list[Released]]) -> None:
    register = Register.of(made[0] / ".funnel", "encounters").root
    for one in recount_histories(register).versions:
        ((scale, noise),) = [(scale, tables) for scale, tables in one.noise if "departures" in tables]
        # Of a few numbers of that noise none is beyond this but with a probability below 1e-9.
        assert max(map(abs, noise["departures"])) < 30 * scale
    (entry,) = register.glob("0001-*/entry.json")
    whole = entry.read_bytes()
    for changed, complaint in (
        ({"counts": 1}, "its departures are further from those of its people than their noise is"),
        ({"length": 1}, "the scale of noise on departures is not the least one that costs no more than its epsilon"),
        ({"length": 2}, "what one person may add to the departures is "),
    ):
        said = json.loads(whole)
        told = said["departures"]
        if "counts" in changed:
            told["counts"][0] += 40 * int(told["scale"])
        else:
            told["length"] *= 2
            told["scale"] *= 2 if changed["length"] == 2 else 1
        entry.write_text(json.dumps(said), encoding="utf-8")
        assert any(one.startswith(complaint) for one in recount_histories(register).versions[1].complaints), complaint
    entry.write_bytes(whole)


def test_departures_without_noise_are_not_taken_for_noisy_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exact(_: str, counts: IntArray, length: int, epsilon: float, *__: object) -> NoisyAverages:
        return NoisyAverages(epsilon, counts, length)

    monkeypatch.setattr(protected_tables, "noisy_averages", exact)
    spec = ReleaseSpec.load(make_project(tmp_path, SPEC, encounters(0)))
    with pytest.raises(ReleaseRefused, match="noise"):
        run_release(spec, again=False, rotate=False)


def test_a_row_that_noise_makes_up_is_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred noisy numbers of units by their rows one is large by chance: nobody is in the waves before it."""
    for module in (unit_tables, expected):
        monkeypatch.setattr(module, "CHANCE", 0.5)
    spec = ReleaseSpec.load(make_project(tmp_path, SPEC.replace("lip:1.0", "pml:1.0"), encounters(0)))
    workspace, drawn, asked = tmp_path / ".funnel" / "encounters", UnitCounts.with_noise, []

    def noted(counts: UnitCounts, epsilon: float, noise: NoiseSecret | None = None) -> NoisyRows:
        asked.append((counts, epsilon, noise.source))
        return drawn(counts, epsilon, noise)

    with monkeypatch.context() as patch:
        patch.setattr(UnitCounts, "with_noise", noted)
        preview(spec, quiet)
    ((counts, epsilon, source),) = asked
    (deepest,) = np.flatnonzero(counts.sizes)[-1:] + 1
    # More than one secret in 20 does that: not one of these does with a probability below 1e-20.
    for number in range(1000):
        (workspace / secret.NOISE).write_text(hashlib.sha256(b"%d" % number).hexdigest())
        tables = counts.with_noise(epsilon, NoiseSecret(secret.noise_root(workspace, "encounters"), source))
        if deepest < len(tables.waves) < 40:
            break
    else:
        pytest.fail("noise is never large")
    told, _ = run_release(spec, again=False, rotate=False)
    assert [check for check in recheck(ReleaseFolder(Path(told["folder"]))) if check.failed] == []
    found = recount_histories(Register.of(tmp_path / ".funnel", "encounters").root)
    assert [(one.complaints, one.broken) for one in found.versions] == [((), ())]


def test_what_the_register_expects_is_read_back(made: tuple[Path, list[Released]]) -> None:
    register = Register.of(made[0] / ".funnel", "encounters")
    counted = [one.done.protected.frequencies.joint.n for one in made[1]]
    assert float(register.expected.people.sum() + register.expected.lost.sum()) >= max(counted) - 1
    assert [entry.units == entry.counts for entry in register.entries] == [True, True]
    assert all(entry.rows is not None for entry in register.entries)


def test_another_secret_of_a_unit_changes_no_public_byte_of_any_version(
    made: tuple[Path, list[Released]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, ones = made
    several = int(encounters(1)["patient"].to_pandas().value_counts().index[0])
    tables = [with_another_secret(encounters(version), several) for version in (0, 1)]
    others = all_released(tmp_path, tables, monkeypatch, ones)
    for one, other in zip(ones, others, strict=True):
        require_the_same(one, other)
    registers = [Register.of(place / ".funnel", "encounters") for place in (folder, tmp_path)]
    for entry in registers[0].entries:
        for name in ("expected.parquet", "effective.parquet", "changes.parquet"):
            assert len({(one.root / entry.folder / name).read_bytes() for one in registers}) == 1, name


def test_a_unit_less_changes_nothing_but_the_rows(
    made: tuple[Path, list[Released]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ones = made[1]
    several = int(encounters(1)["patient"].to_pandas().value_counts().index[0])
    tables = [without(encounters(version), several) for version in (0, 1)]
    others = all_released(tmp_path, tables, monkeypatch, ones)
    for one, other, table in zip(ones, others, tables, strict=True):
        assert one.told["rows"] > other.told["rows"] == table.num_rows
        for name in ("frequencies.json", "protocol.json"):
            assert one.public[name] == other.public[name]
        assert history_told(one) == history_told(other)
        reports = [json.loads(run.public["report.json"]) for run in (one, other)]
        # Of the rows of both versions.
        assert [report.pop("change") is None for report in reports] == [one is ones[0]] * 2
        for report, rows in zip(reports, (one.told["rows"], other.told["rows"]), strict=True):
            assert report["source"].pop("records") == report["figures"].pop("rows") == rows
            # Errors of estimates follow from how many rows there are and what is equal here.
            for table in (report["accuracy"], *report["estimated"]):
                errors = [
                    table.pop("typical", None),
                    table.pop("largest", None),
                    *(row.pop("error") for row in table["rows"]),
                ]
                assert any(errors)
            for expectation in report["judged"]:
                expectation["description"] = expectation["description"].replace(f"{rows:,}", "N")
        assert reports[0] == reports[1]


def test_a_plan_and_then_the_release_have_the_same_first_rows_and_the_same_noise(tmp_path: Path) -> None:
    spec = ReleaseSpec.load(make_project(tmp_path, SPEC, encounters(0)))
    looked = [preview(spec, quiet).protected.frequencies for _ in range(2)]
    told, _ = run_release(spec, again=False, rotate=False)
    document = FrequenciesDocument.read(ReleaseFolder(Path(told["folder"])).frequencies)
    for found in looked:
        assert found.rows is not None
        assert document.noisy == tuple(map(tuple, found.noisy.tolist()))
        assert document.rows == RowsPart.like(found.rows)


def test_rows_that_are_taken_over_keep_first_rows_and_noise(
    made: tuple[Path, list[Released]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "units"
    shutil.copytree(made[0], place, symlinks=True)
    spec = place / "people.toml"
    # Nothing is spent once more, so that what is spent already may be all that is allowed.
    text = spec.read_text(encoding="utf-8").replace("epsilon = 4.0", "epsilon = 4.0\nmax_epsilon = 8.0")
    spec.write_text(text.replace('"Encounters of a test"', '"Other words"'), encoding="utf-8")
    judged: list[Finished] = []
    as_it_is = Finished.table

    def table(self: Finished, name: str) -> Any:
        judged.append(self)
        return as_it_is(self, name)

    monkeypatch.setattr(Finished, "table", table)
    told, _ = run_release(ReleaseSpec.load(spec), again=False, rotate=False)
    assert told["version"] == "1.1.1"
    first, one, other = (ReleaseFolder(place / "releases" / "encounters" / f"1.{v}") for v in ("0.0", "1.0", "1.1"))
    assert one.data.read_bytes() == other.data.read_bytes()
    assert one.frequencies.read_bytes() == other.frequencies.read_bytes()
    assert [check for check in recheck(other) if check.failed] == []
    # Its channel is held to the register's for the version whose rows these are.
    assert judged[0].taken_over
    assert first.protocol.read_bytes() != other.protocol.read_bytes()
    other.protocol.write_bytes(first.protocol.read_bytes())
    found = recheck(other)
    assert "histories" in {check.name for check in found if check.failed}


def test_values_are_named_by_the_first_rows_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eleven rows of a unit have a ward: one of them names it in 1 of 10^10 draws, and all do not in 1 of 10^12."""
    learned_wards = SPEC.replace('ward = ["a", "b", "c"]\n', "").replace(
        "epsilon = 4.0", "epsilon = 20.0\ndelta = 1e-10\n\n[limits]\nset_aside = 0.05"
    )
    alone = pa.table({"patient": [9999] * 11, "ill": ["no"] * 11, "ward": ["alone"] * 11})
    table = pa.concat_tables([encounters(0), alone])
    one = released(tmp_path / "one", learned_wards, table, monkeypatch)
    assert PublicFrequencies.parse(one.folder.frequencies.read_bytes()).labels["ward"][:4] == ("a", "b", "c", "Other")
    for number, wrong in enumerate((np.ones_like, np.logical_not)):
        monkeypatch.setattr(learned, "first_rows", lambda *asked, wrong=wrong: wrong(first_rows(*asked)))
        with pytest.raises(ReleaseRefused, match=r"ward has 1 names that are not what its counts and the secret"):
            released(tmp_path / str(number), learned_wards, table, monkeypatch)
