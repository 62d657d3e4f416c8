"""People who are the same, and frequencies with noise: what is published, what it says of changes, what is judged."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from funnel.analysis.estimated import estimate_release
from funnel.audit.history import recount_histories
from funnel.console import frequencies_line
from funnel.errors import ReleaseRefused, SpecError
from funnel.frequencies.noise import draw_noise
from funnel.history.corrected import PARTS
from funnel.joint import IntArray
from funnel.pipeline.flows.pipeline import run_release
from funnel.recount.frequencies import PublicFrequencies, own_draws, spent_complaints
from funnel.register.register import Register
from funnel.release import protected, secret
from funnel.release.findings import FindingsDocument
from funnel.release.frequencies_document import FrequenciesDocument
from funnel.release.layout import ReleaseFolder
from funnel.release.protection import Protection
from funnel.release.record import Record
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.tasks.test_neighbours import Released, released, require_the_same
from tests.waves import FOLLOWED, WAVES, wave

VERSIONS = ("1.0.0", "1.1.0", "1.2.0")
PANEL = FOLLOWED + "\n[output]\ncsv = true\n"


@dataclass(frozen=True)
class Panel:
    """Waves of some people; one who is in all of them, and one who is in the first and the last one alone."""

    tables: tuple[pa.Table, ...]
    constant: int
    skipping: int

    @classmethod
    def of(cls, people: int = 240) -> Panel:
        """Three waves."""
        tables = [wave(year, people) for year in WAVES[:3]]
        secrets = [dict(zip(*(table[name].to_pylist() for name in ("id", "outwork")), strict=True)) for table in tables]
        constant, *others = sorted(set.intersection(*map(set, secrets)))
        # What both have is alike, so that no count stays as it is when both have something else.
        skipping = next(one for one in others if all(had[one] == had[constant] for had in secrets[::2]))
        tables[1] = tables[1].filter(pc.not_equal(tables[1]["id"], skipping))
        return cls(tuple(tables), constant, skipping)

    def with_other_secrets(self) -> Panel:
        """The same people, but these two have another secret wherever they are."""
        found = []
        for table in self.tables:
            secrets = [
                {"in": "out", "out": "in"}[secret] if person in (self.constant, self.skipping) else secret
                for person, secret in zip(table["id"].to_pylist(), table["outwork"].to_pylist(), strict=True)
            ]
            found.append(table.set_column(table.column_names.index("outwork"), "outwork", pa.array(secrets)))
        return replace(self, tables=tuple(found))

    def without_one(self) -> Panel:
        """Neighbours in the sense of differential privacy: one of them is in no wave, and nobody else changes."""
        return replace(self, tables=tuple(one.filter(pc.not_equal(one["id"], self.constant)) for one in self.tables))

    def released(
        self,
        folder: Path,
        patch: pytest.MonkeyPatch,
        like: Sequence[Released] | None = None,
        waves: int = 3,
        mechanism: str = "grr",
    ) -> list[Released]:
        """Some waves, with noise of their own or with such noise that noisy tables are those of others."""
        patch.setattr(secret, "secrets", SAME_SECRET)
        found = []
        for number, table in enumerate(self.tables[:waves]):
            noise = ()
            if like is not None:
                one = like[number]
                noise = (one.noisy, one.changes, one.means, one.departures)
            found.append(released(folder, PANEL.replace('"grr"', f'"{mechanism}"'), table, patch, *noise))
        return found


# The same release secret: what people's answers are derived from.
SAME_SECRET = SimpleNamespace(token_hex=lambda size: hashlib.shake_256(b"secret").hexdigest(size))


def history_told(one: Released) -> dict[str, object]:
    """What a run tells of histories, but for shares of expected people times the number of rows, which is public."""
    assert all(isinstance(one.told["history"][name], int) for name in ("moved", "outside"))
    return {name: value for name, value in one.told["history"].items() if name not in ("moved", "outside")}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Released]]:
    """All waves, released one after the other, with noise of their own."""
    folder = tmp_path_factory.mktemp("panel")
    with pytest.MonkeyPatch.context() as patch:
        return folder, Panel.of().released(folder, patch)


@pytest.fixture(scope="module")
def panel(made: tuple[Path, list[Released]]) -> Path:
    """The folder of the project whose waves are released."""
    return made[0]


def test_counts_in_the_register_are_the_published_ones(panel: Path) -> None:
    register = Register.of(panel / ".funnel", "panel")
    for entry, version in zip(register.entries, VERSIONS, strict=True):
        folder = ReleaseFolder(panel / "releases" / "panel" / version)
        public = PublicFrequencies.parse(folder.frequencies.read_bytes())
        assert entry.counts == public.counts
        assert entry.noise == public.epsilon_counts == (2.0 if version == "1.0.0" else 1.0)
        people = pq.read_metadata(register.root / entry.folder / "people.parquet").num_rows
        assert people == Record.read(folder.record).rows
    # Both computations take them for the distribution, and no history leaves the bound.
    found = recount_histories(register.root)
    assert not found.complaints
    assert [(version.complaints, version.broken) for version in found.versions] == [((), ())] * 3
    assert all(version.level <= 1 for version in found.versions)
    assert found.versions[0].histories == 1 < found.versions[1].histories


@pytest.mark.parametrize("version", VERSIONS)
def test_an_audit_passes_though_nobody_has_some_values(panel: Path, version: str) -> None:
    checks = recheck(ReleaseFolder(panel / "releases" / "panel" / version))
    assert [check for check in checks if check.failed] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_no_public_file_says_that_something_is_exact(panel: Path, version: str) -> None:
    folder = ReleaseFolder(panel / "releases" / "panel" / version)
    page = folder.report.read_text(encoding="utf-8")
    assert "not protected by the noise" not in page
    assert ("counts of how people changed" in page) is (version != "1.0.0")
    package = json.loads(folder.package.read_bytes())
    assert package["funnel:privacy"]["frequencies"]["meaning"].endswith("never from the exact ones")
    record = Record.read(folder.record).frequencies
    assert "beside the records and their number nothing public is made from exact ones" in frequencies_line(
        Protection.model_validate(record.public.model_dump())
    )


def test_another_secret_of_people_changes_no_public_byte_of_any_wave(
    made: tuple[Path, list[Released]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, ones = made
    others = Panel.of().with_other_secrets().released(tmp_path, monkeypatch, ones)
    for number, (one, other) in enumerate(zip(ones, others, strict=True)):
        assert (one.changes is not None) is (number > 0)
        require_the_same(one, other)
    # Nor does anything that later versions are decided by, though their histories and cells are other people's.
    registers = [Register.of(place / ".funnel", "panel") for place in (folder, tmp_path)]
    for entry in registers[0].entries:
        for name in ("expected.parquet", "channels.parquet", "effective.parquet", "changes.parquet"):
            assert len({(one.root / entry.folder / name).read_bytes() for one in registers}) == 1, name


def test_versions_of_unchanged_values_pass_their_audits_and_tell_of_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ones = Panel.of().released(tmp_path / "ones", monkeypatch, waves=2, mechanism="invariant")
    for one, version in zip(ones, VERSIONS[:2], strict=True):
        assert [check for check in recheck(one.folder) if check.failed] == []
        # As it is under noise where a spec does not declare a column complete.
        assert set(pq.read_table(one.folder.data)["kids"].to_pylist()) <= {"no", "yes", "Other", "(missing)"}
        package = json.loads(one.folder.package.read_bytes())["funnel:privacy"]
        assert package["mechanism"] == "invariant"
        page = " ".join(one.folder.report.read_text(encoding="utf-8").split())
        assert (one.means is not None) is (version != "1.0.0")
        assert ("however they changed" in page) is (version != "1.0.0")
        assert estimate_release(one.folder).method == "count"
        assert ("however they changed" in one.folder.readme.read_text(encoding="utf-8")) is (version != "1.0.0")
    register = tmp_path / "ones" / ".funnel" / "registers" / "panel"
    (_, later) = recount_histories(register).versions
    assert later.complaints == () == later.broken
    ((_, noise),) = [one for one in later.noise if "means" in one[1]]
    # What is published without noise is what people with these histories are published as, to parts of a record.
    assert max(map(abs, noise["means"])) < 30 * 4 * PARTS
    (entry,) = register.glob("0001-*/entry.json")
    said = json.loads(entry.read_text(encoding="utf-8"))
    said["means"]["counts"][0] += 1000 * PARTS
    whole = entry.read_bytes()
    entry.write_text(json.dumps(said), encoding="utf-8")
    assert (
        "its means are further from those of its people than their noise is"
        in recount_histories(register).versions[1].complaints
    )
    entry.write_bytes(whole)
    others = Panel.of().with_other_secrets().released(tmp_path / "others", monkeypatch, ones, 2, "invariant")
    for one, other in zip(ones, others, strict=True):
        require_the_same(one, other)


def test_one_person_less_changes_nothing_but_the_number_of_records(
    made: tuple[Path, list[Released]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ones = made[1][:2]
    others = Panel.of().without_one().released(tmp_path, monkeypatch, ones, 2)
    for one, other in zip(ones, others, strict=True):
        assert one.told["rows"] == other.told["rows"] + 1
        for name in ("frequencies.json", "protocol.json"):
            assert one.public[name] == other.public[name]
        assert history_told(one) == history_told(other)


def test_findings_tell_how_many_people_were_not_expected(made: tuple[Path, list[Released]]) -> None:
    for one, found in zip(
        made[1], recount_histories(made[0] / ".funnel" / "registers" / "panel").versions, strict=True
    ):
        history = FindingsDocument.read(one.folder.findings).history
        assert history.expected is not None
        assert found.expected is not None
        stated, counted = history.expected, found.expected
        assert (stated.unpredicted, stated.silent) == (counted.unpredicted, counted.silent)
        # What runs tell is of expected people alone.
        told = one.told["history"]
        assert (told["histories"], told["level"]) == (stated.histories, stated.level)
        assert told["people_known"] is None


@pytest.mark.parametrize("mechanism", ["grr", "invariant"], ids=["departures", "means"])
def test_no_two_versions_of_a_series_share_the_noise_on_what_follows_from_other_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    """Its key has no exact number of what it is added to; of the same source, drawn again, it must be another one too.

    The last version is of the source of the first one, whose noisy counts are used again, and cost nothing.
    """
    keys = list[bytes]()

    def noted(size: int, epsilon: float, sensitivity: int, key: bytes) -> IntArray:
        keys.append(key)
        return draw_noise(size, epsilon, sensitivity, key)

    monkeypatch.setattr("funnel.frequencies.averages.draw_noise", noted)
    spec, source = tmp_path / "panel.toml", tmp_path / "people.parquet"
    text = PANEL.replace('"grr"', f'"{mechanism}"')
    for number, (year, bound) in enumerate(((1984, 1.0), (1985, 1.0), (1985, 1.0), (1985, 0.9), (1984, 0.9))):
        pq.write_table(wave(year, 240), source)
        spec.write_text(text.replace("lip:1.0", f"lip:{bound}"), encoding="utf-8")
        told, _ = run_release(ReleaseSpec.load(spec), number == 2, False)
        assert told["drawn"]
    said = FrequenciesDocument.read(ReleaseFolder(Path(told["folder"])).frequencies)
    assert said.spent < 5 * said.epsilon
    # Of a first version nothing follows from earlier ones.
    assert len(keys) == len(set(keys)) == 4


def test_rows_that_are_taken_over_keep_the_noise_of_their_changes(panel: Path, tmp_path: Path) -> None:
    place = tmp_path / "panel"
    shutil.copytree(panel, place, symlinks=True)
    spec = place / "people.toml"
    text = spec.read_text(encoding="utf-8")
    # Nothing is spent once more, so that what is spent already may be all that is allowed.
    all_spent = text.replace("epsilon = 2.0", "epsilon = 2.0\nmax_epsilon = 6.0")
    spec.write_text(all_spent.replace('title = "A panel"', 'title = "The panel"'), encoding="utf-8")
    told, _ = run_release(ReleaseSpec.load(spec), again=False, rotate=False)
    assert told["version"] == "1.2.1"
    one, other = (ReleaseFolder(place / "releases" / "panel" / version) for version in ("1.2.0", "1.2.1"))
    assert one.data.read_bytes() == other.data.read_bytes()
    assert one.frequencies.read_bytes() == other.frequencies.read_bytes()
    assert [check for check in recheck(other) if check.failed] == []
    # Drawn once more, people changed since this version too: other tables, which cost what they cost.
    spec.write_text(text.replace("epsilon = 2.0", "epsilon = 2.0\nmax_epsilon = 6.2"), encoding="utf-8")
    with pytest.raises(SpecError, match=r"max_epsilon"):
        run_release(ReleaseSpec.load(spec), again=True, rotate=False)
    assert not (place / "releases" / "panel" / "1.2.2").exists()


def test_a_series_that_leaves_out_what_others_of_the_register_spent_is_refused(
    panel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "panel"
    shutil.copytree(panel, place, symlinks=True)
    first = ReleaseFolder(place / "releases" / "panel" / "1.0.0")
    workspace, register = place / ".funnel", next((place / ".funnel" / "registers").iterdir())
    record, content = Record.read(first.record), json.loads(first.frequencies.read_bytes())
    # By the digests of the records too, each draw is counted once.
    for version in VERSIONS:
        folder = ReleaseFolder(place / "releases" / "panel" / version)
        said = json.loads(folder.frequencies.read_bytes())
        its = Record.read(folder.record)
        assert own_draws(said) == {noisy: cost for (_, noisy), cost in its.frequencies.draws.items()}
        assert list(spent_complaints(said, its.content(), register, workspace, its.created)) == []
    assert [one for one in spent_complaints(content, record.content(), register, workspace) if "spent 6.0" in one]
    # A record of an earlier version is gone.
    gone = next(workspace.glob("*/records/*/1.1.0.json"))
    gone.rename(gone.with_suffix(".gone"))
    newest = ReleaseFolder(place / "releases" / "panel" / "1.2.0")
    last, its = json.loads(newest.frequencies.read_bytes()), Record.read(newest.record)
    assert [one for one in spent_complaints(last, its.content(), register, workspace) if "panel/1.1.0" in one]
    gone.with_suffix(".gone").rename(gone)
    # Another series about the same people, whose maker looks at its own versions alone.
    spec = place / "people.toml"
    text = spec.read_text(encoding="utf-8")
    assert record.history.register_name == "panel"
    other = text.replace('name = "panel"', 'name = "others"').replace(
        'people = "same"', 'people = "same"\nregister = "panel"'
    )
    spec.write_text(other, encoding="utf-8")
    monkeypatch.setattr(protected, "_before", lambda *_: [])
    monkeypatch.setattr("funnel.pipeline.tasks.protect.require_records", lambda *_: None)
    with pytest.raises(ReleaseRefused, match=r"spent: is 2\.0, and all series of the register have spent 8\.0"):
        run_release(ReleaseSpec.load(spec), again=False, rotate=False)
    assert not (place / "releases" / "others" / "1.0.0").exists()
