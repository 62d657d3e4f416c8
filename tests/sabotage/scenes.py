"""Scenes: small real releases that are made with a changed line, and what was there before."""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from funnel.audit import encoding
from funnel.findings import of_release as findings
from funnel.history import following
from funnel.pipeline.flows.pipeline import run_release
from funnel.progress import quiet
from funnel.protocol import Protocol
from funnel.readers.source_files import file_digest
from funnel.release import snapshot
from funnel.release.classified import write_classes
from funnel.release.documents import JointDocument
from funnel.sampling import partitions
from funnel.spec import ReleaseSpec
from tests.projects import adult_rows, make_project
from tests.sabotage import tools
from tests.tasks.test_units_noise import SPEC as ENCOUNTERS
from tests.tasks.test_units_noise import encounters
from tests.unit_panels import VISITS, waves_as_rows
from tests.waves import FOLLOWED, WAVES, wave

SPEC = """
name = "people"
title = "People of a test"
secret = ["marital-status", "sex"]
publish = ["workclass", "age"]
guarantee = "lip:1.0"
frequencies.protection = "none"

[source]
path = "people.parquet"
missing = ["?"]

[history]
people = "different"

[disclosure]
on_breach = "report"

[recode.workclass]
minimum_count = 100

[recode.age]
bins = [30, 50]

[output]
csv = true

[metadata]
licence = "CC-BY-4.0"
"""
# Where a protocol has to be fitted anew and no sabotage is about the search for the best one.
QUICK = SPEC.replace("guarantee", 'mechanism = "grr"\nguarantee', 1)
KEYED = SPEC.replace("guarantee", 'record_key = ["id"]\nguarantee', 1)
FOLLOWED_SPEC = (
    QUICK.replace("guarantee", 'record_key = ["id"]\nguarantee', 1)
    .replace('people = "different"', 'people = "same"\nbudget_fraction = 0.9', 1)
    .replace('["marital-status", "sex"]', '["sex"]')
    # A row for every history and a programme for every row: fewer values take a third of the time.
    .replace('["workclass", "age"]', '["workclass"]')
    .replace("[recode.age]\nbins = [30, 50]\n\n", "")
    .replace("lip:1.0", "lip:0.2")
)
NOISY = (
    SPEC.replace('protection = "none"', 'protection = "noise"')
    .replace("[recode.workclass]\nminimum_count = 100\n\n", "")
    .replace('["marital-status", "sex"]', '["marital-status"]')
    .replace("lip:1.0", "lip:2.0")
    .replace("bins = [30, 50]", "bins = [17, 30, 50, 85]")
    .replace("[output]", '[limits]\nset_aside = 0.5\n\n[mechanism]\nname = "grr"\n\n[output]')
)
# Many values that are about as rare as what noisy counts name.
NOISY_NAMES = NOISY.replace('"workclass"', '"native-country"').replace(
    "guarantee", "frequencies.delta = 0.2\nguarantee", 1
)
YEARS = FOLLOWED.replace('"panel"', '"people"').replace("epsilon = 2.0", "epsilon = 0.5")
RIGHT_YEARS = (
    YEARS.replace("lip:1.0", "lip:0.3")
    .replace('name = "grr"', 'name = "invariant"')
    .replace("epsilon = 0.5", 'protection = "none"')
)
"""The same without noise, of values that are right on average."""
RIGHT_INCOMES = RIGHT_YEARS.replace('publish = ["kids"]', 'publish = ["income"]').replace(
    'kids = ["no", "yes"]', f"income = {[f'fifth {1 + fifth}' for fifth in range(5)]}"
)
"""The same of five values: of two a table often happens to be right before it is put right."""
DONOR_YEARS = (
    RIGHT_YEARS.replace('publish = ["kids"]', 'publish = "auto"')
    .replace("[source]", "[groups]\nmin_records = 100\n\n[source]", 1)
    .replace('people = "same"', 'people = "same"\nbudget_fraction = 0.8', 1)
)
"""The same of whole records, of donors who are followed."""
DONOR_ROWS = VISITS.replace('"visits"', '"people"')
"""Whole records of several rows of people."""
NOISY_RIGHT_YEARS = RIGHT_YEARS.replace('protection = "none"', "epsilon = 0.5")
EXPLAINED_SPEC = (
    SPEC.replace('["marital-status", "sex"]', '["income"]')
    .replace('["workclass", "age"]', '["age"]')
    .replace("[recode.workclass]\nminimum_count = 100\n\n", "")
    .replace("bins = [30, 50]", 'bins = "auto"\n\n[numbers.age]\nrange = [17, 90]\nwhole = true')
    .replace("guarantee", 'utility = "variance"\nguarantee', 1)
)
DRAWN_SPEC = EXPLAINED_SPEC.replace("whole = true", 'whole = true\ndraw = "within"').replace(
    'utility = "variance"\n', "", 1
)
INVARIANT_SPEC = SPEC.replace("guarantee", 'mechanism = "invariant"\nguarantee', 1)
WHOLE_SPEC = (
    KEYED.replace('["marital-status", "sex"]', '["income"]')
    .replace('["workclass", "age"]', '["education", "relationship", "race", "workclass", "age"]')
    .replace("guarantee", 'mechanism = "invariant"\nguarantee', 1)
)
WITH_SECRET_SPEC = WHOLE_SPEC.replace('publish = ["', 'publish = ["income", "').replace('"lip:', '"attribute:')
KNOWN_SPEC = WITH_SECRET_SPEC.replace("[output]", '[groups]\nknown = ["age"]\n\n[output]', 1)
ANY_COLUMN_SPEC = WHOLE_SPEC.replace("[output]", '[groups]\nknown = "single"\n\n[output]', 1).replace(
    '"lip:1.0"', '["lip:1.0", "srlip:2.0"]'
)
ANY_TWO_SPEC = ANY_COLUMN_SPEC.replace('"single"', '"pairs"').replace('"srlip:2.0"', '"srlip:3.0"')
HELD_OUT_SPEC = ANY_TWO_SPEC.replace('"lip:1.0"', '"rlip:1.5,0.05"').replace(
    'known = "pairs"', 'known = "pairs"\nheld_out = 0.5', 1
)
ANY_OF_SECRET_SPEC = (
    ANY_COLUMN_SPEC.replace('publish = ["', 'publish = ["income", "')
    .replace('"lip:', '"attribute:')
    .replace('"srlip:2.0"', '"srlip:2.5"')
)
GIVEN_SPEC = WHOLE_SPEC.replace("[output]", '[groups]\nclasses = "classes.json"\nmin_records = 100\n\n[output]', 1)
LEVELLED_SPEC = QUICK.replace("minimum_count = 100", 'hierarchy = "levels.csv"\nlevel = "kind"')
WEIGHTED_SPEC = QUICK.replace("guarantee", 'weight = "age"\nguarantee', 1).replace(
    "[output]", "[numbers.age]\nrange = [17, 90]\nmeans = [24, 39, 60]\n\n[output]"
)
DROPPED = QUICK.replace('missing = ["?"]', 'missing = ["?"]\non_missing = "drop"')
UNSHUFFLED = SPEC.replace("csv = true", "csv = true\nshuffle = false")
# Rows of a row group of the snapshot and of a partition, where a scene has several.
GROUP = 700
# People of the panel.
_PANEL = 2000
# And of those who have several rows.
_VISITORS = 600


@dataclass(frozen=True)
class Scene:
    """A release to be made.

    Attributes
    ----------
    name : str
    spec : str
    fresh : bool
        Whether nothing was made before; else snapshot, counts and protocol are in the private folder, whole.
    earlier : bool
        Whether a version was published before.
    years : bool
        Whether it is of a panel, of which two waves were published before.
    change : callable, optional
        Done to the folder of the project before the sabotaged run.
    partitioned : bool
        Whether records are drawn in several partitions.
    again : bool
        Whether another draw for the same people is asked for.
    """

    name: str
    spec: str = SPEC
    fresh: bool = False
    earlier: bool = False
    years: bool = False
    change: Callable[[Path], None] | None = None
    partitioned: bool = False
    again: bool = False


@functools.cache
def source(start: int = 0) -> pa.Table:
    """A few thousand records of the Adult data, with a key, and a value that a spreadsheet takes for a formula."""
    table = adult_rows(start)
    workclass = pc.replace_substring(table["workclass"].cast(pa.string()), "State-gov", "+State-gov")
    table = table.set_column(table.column_names.index("workclass"), "workclass", workclass)
    return table.append_column("id", pa.array([f"person {i * 7919 % 10007}" for i in range(len(table))]))


def run(folder: Path, scene: Scene) -> dict[str, object]:
    """Make the release of a scene, by the way itself."""
    # The worst case over the confidence set takes longest in an audit, the best rows in a later version. No sabotage
    # is about them.
    brief = mock.patch.object(following, "_SECONDS", 0.05)
    with _cut(scene.partitioned), mock.patch.object(findings, "_LARGEST", 0), brief:
        told, _ = run_release(ReleaseSpec.load(folder / "people.toml"), again=scene.again, rotate=False)
    return told


def prepared(folder: Path, scene: Scene) -> Path:
    """A project in which the release of the scene can be made."""
    if scene.fresh:
        make_project(folder, scene.spec, source())
    else:
        made = _made_of_panel(scene.spec) if scene.years else _made(scene.spec, scene.partitioned)
        shutil.copytree(made, folder, symlinks=True)
        if not scene.earlier:
            shutil.rmtree(folder / "releases")
            shutil.rmtree(folder / ".funnel" / "internal")
            shutil.rmtree(folder / ".funnel" / "people" / "records")
            (folder / ".funnel" / "people" / "settled.json").unlink()
            for kept in (folder / ".funnel").glob("ledger*"):
                kept.unlink()
    if scene.change is not None:
        scene.change(folder)
    return folder


@functools.cache
def _made(spec: str, partitioned: bool) -> Path:
    """A project with an honest release, made once in a process."""
    keeper = tempfile.TemporaryDirectory()
    _KEPT.append(keeper)
    folder = Path(keeper.name) / "project"
    make_project(folder, spec, source())
    run(folder, Scene("honest", spec, partitioned=partitioned))
    return folder


@functools.cache
def _made_of_panel(spec: str) -> Path:
    """A project with honest releases of two waves."""
    keeper = tempfile.TemporaryDirectory()
    _KEPT.append(keeper)
    folder = Path(keeper.name) / "project"
    for year in WAVES[:2]:
        make_project(folder, spec, wave(year, _PANEL))
        run(folder, Scene("honest", spec))
    return folder


# Folders that are removed when the process ends.
_KEPT: list[tempfile.TemporaryDirectory[str]] = []


@contextmanager
def _cut(partitioned: bool) -> Iterator[None]:
    """Row groups and partitions of a few hundred records."""
    if not partitioned:
        yield
        return
    defaults = {**(partitions.plan_rows.__kwdefaults__ or {}), "partition_rows": GROUP}
    with (
        mock.patch.object(snapshot, "GROUP_ROWS", GROUP),
        mock.patch.object(encoding, "_GROUP_ROWS", GROUP),
        mock.patch.object(partitions.plan_rows, "__kwdefaults__", defaults),
    ):
        yield


def change_source(folder: Path) -> None:
    """Other people, and not as many."""
    pq.write_table(source(len(source())).slice(300), folder / "people.parquet")


def next_year(folder: Path) -> None:
    """The same people a year later: a tenth is gone, a third has other work, and of some the secret is another one."""
    table = source()
    n = len(table)
    for name, every in (("workclass", 3), ("sex", 40)):
        changed = pa.array([i % every == 0 for i in range(n)])
        before = table[name].combine_chunks()
        column = pc.if_else(changed, before[::-1], before)
        table = table.set_column(table.column_names.index(name), name, column)
    pq.write_table(table.filter(pa.array([i % 10 != 0 for i in range(n)])), folder / "people.parquet")


def write_encounters(folder: Path) -> None:
    """Several rows of everybody, in no order."""
    pq.write_table(encounters(0), folder / "people.parquet")


def write_visits(folder: Path) -> None:
    """Some waves of the panel as rows of its people, and a number of rows that is rare."""
    pq.write_table(waves_as_rows(_VISITORS), folder / "people.parquet")


def write_days(folder: Path) -> None:
    """The same with a day, which goes with the secret in every ward."""
    table = encounters(0)
    days = ["weekend" if (i % 4 > 0) == (ill == "yes") else "week" for i, ill in enumerate(table["ill"].to_pylist())]
    pq.write_table(table.append_column("day", pa.array(days)), folder / "people.parquet")


def third_wave(folder: Path) -> None:
    """The third wave of the panel, with some who were not in the second."""
    pq.write_table(wave(WAVES[2], _PANEL), folder / "people.parquet")


def tighten(folder: Path) -> None:
    """A smaller bound for the same people."""
    spec = folder / "people.toml"
    spec.write_text(spec.read_text(encoding="utf-8").replace("lip:1.0", "lip:0.4"), encoding="utf-8")


def write_levels(folder: Path) -> None:
    """A table of what is public work and what is not."""
    values = sorted({str(value) for value in source()["workclass"].to_pylist()} - {"?"})
    lines = [f"{value},{'public' if 'gov' in value else 'other work'}" for value in values]
    (folder / "levels.csv").write_text("\n".join(["workclass,kind", *lines, ""]), encoding="utf-8")


def doubt(folder: Path) -> None:
    """Noise of another scale, about the same people."""
    spec = folder / "people.toml"
    spec.write_text(
        spec.read_text(encoding="utf-8").replace("frequencies.", "frequencies.epsilon = 0.9\nfrequencies.", 1)
    )


def forget_protocol(folder: Path) -> None:
    """The protocol is not there any more; snapshot and counts are."""
    for made in ("protocols", "fits"):
        shutil.rmtree(folder / ".funnel" / "people" / made)


def exchange_counts(folder: Path) -> None:
    """Somebody has put other counts into the private folder."""
    (place,) = (folder / ".funnel" / "people" / "joints").glob("*/joint.json")
    place.write_bytes(
        JointDocument.like(tools.moved(JointDocument.from_json(place.read_bytes()).joint, 300)).to_bytes()
    )


def exchange_protocol(folder: Path) -> None:
    """Somebody has put another protocol into the private folder, one that publishes nearly all as they are."""
    (counts,) = (folder / ".funnel" / "people" / "joints").glob("*/joint.json")
    (place,) = (folder / ".funnel" / "people" / "protocols").glob("*/protocol.json")
    protocol = Protocol.from_json(place.read_text(encoding="utf-8"))
    place.write_text(
        tools.nearly_identity(JointDocument.from_json(counts.read_bytes()).joint, protocol).to_json(), encoding="utf-8"
    )


def forge_protocol(folder: Path) -> None:
    """As `exchange_protocol`, with digests that fit."""
    exchange_protocol(folder)
    (place,) = (folder / ".funnel" / "people" / "protocols").glob("*/protocol.json")
    digest = file_digest(place)
    tools.edit(place.with_name("manifest.json"), lambda said: said["files"].update({place.name: digest}))


def exchange_snapshot(folder: Path) -> None:
    """Somebody has put other records into the snapshot: the workclass of somebody else."""
    (place,) = (folder / ".funnel" / "people" / "snapshots").glob("*/snapshot.parquet")
    table = pq.read_table(place)
    at = table.column_names.index("workclass")
    pq.write_table(table.set_column(at, table.field(at), table["workclass"].combine_chunks()[::-1]), place)


def exchange_rows(folder: Path) -> None:
    """Somebody has put other rows into the version that was published; the spec has another title since."""
    version = folder / "releases" / "people" / "1.0.0"
    tools.turn_rows(version / "data" / "records.parquet")
    spec = folder / "people.toml"
    spec.write_text(spec.read_text(encoding="utf-8").replace("of a test", "of another test"), encoding="utf-8")


def forget_frequencies(folder: Path) -> None:
    """Nothing is there any more that was made of the source."""
    for kept in ("noise-secret", "values", "snapshots", "joints", "protocols", "fits"):
        place = folder / ".funnel" / "people" / kept
        place.unlink() if place.is_file() else shutil.rmtree(place)


def make_questions(folder: Path) -> None:
    """Classes of records follow from other people's."""
    pq.write_table(source(3000), folder / "others.parquet")
    spec = ReleaseSpec.load(folder / "people.toml")
    write_classes(spec, str(folder / "others.parquet"), None, False, quiet)


FRESH = Scene("nothing was made before", QUICK, fresh=True)
DROPPING = Scene("incomplete records are left out", DROPPED, fresh=True)
PLAIN = Scene("a first release")
COUNTED = Scene("a first release of counts that are there", change=forget_protocol)
EXPLAINED = Scene("a first release of numbers by variance", EXPLAINED_SPEC, fresh=True)
DRAWN = Scene("a first release with numbers drawn within intervals", DRAWN_SPEC, fresh=True)
WHOLE = Scene("whole records", WHOLE_SPEC)
WITH_SECRET = Scene("whole records with their secret", WITH_SECRET_SPEC)
CLASSED = Scene("whole records with their secret that are counted", WITH_SECRET_SPEC, change=forget_protocol)
ESTIMATED = Scene(
    "whole records for estimates",
    WHOLE_SPEC.replace("guarantee", 'utility = "estimation"\nguarantee', 1),
    fresh=True,
)
KNOWN = Scene("whole records for observers of known columns", KNOWN_SPEC, fresh=True)
ANY_OF_SECRET = Scene("a published secret, for observers of any one column", ANY_OF_SECRET_SPEC, fresh=True)
ANY_COLUMN = Scene("whole records for observers of any one column", ANY_COLUMN_SPEC, fresh=True)
ANY_TWO = Scene("whole records for observers of any two columns", ANY_TWO_SPEC, fresh=True)
HELD_OUT = Scene("whole records under a bound for a population", HELD_OUT_SPEC, fresh=True)
GIVEN = Scene("whole records in classes from other people", GIVEN_SPEC, fresh=True, change=make_questions)
INVARIANT = Scene("a first release that is counted as usual", INVARIANT_SPEC, fresh=True)
WEIGHTED = Scene("a first release with classes of weights", WEIGHTED_SPEC, fresh=True)
PARTITIONED = Scene("a first release in several partitions", partitioned=True)
PROTECTED = Scene("a first release of frequencies with noise", NOISY, change=forget_frequencies)
PROTECTED_NAMES = Scene("a first release of values that noisy counts name", NOISY_NAMES, fresh=True)
LEVELLED = Scene(
    "a first release of values grouped by a table of levels", LEVELLED_SPEC, fresh=True, change=write_levels
)
PROTECTED_AGAIN = Scene("other noise about the same source", NOISY, earlier=True, change=doubt, again=True)
KEPT = Scene("a first release with record keys", KEYED)
UNORDERED = Scene("a first release in the order of the source", UNSHUFFLED)
UNORDERED_PARTS = Scene("a first release in the order of the source, in parts", UNSHUFFLED, partitioned=True)
OTHER_SOURCE = Scene("another source after a release", QUICK, earlier=True, change=change_source)
OTHER_BOUND = Scene("a smaller bound after a release", QUICK, earlier=True, change=tighten, again=True)
SECOND_YEAR = Scene("a second version about the same people", FOLLOWED_SPEC, earlier=True, change=next_year)
THIRD_YEAR = Scene(
    "a third version about the same people, under noise", YEARS, earlier=True, years=True, change=third_wave
)
RIGHT_YEAR = Scene(
    "a third version about the same people, right on average", RIGHT_YEARS, earlier=True, years=True, change=third_wave
)
RIGHT_INCOME = Scene(
    "a third version about the same people, of incomes that are right on average",
    RIGHT_INCOMES,
    earlier=True,
    years=True,
    change=third_wave,
)
DONOR_YEAR = Scene(
    "a third version of whole records about the same people", DONOR_YEARS, earlier=True, years=True, change=third_wave
)
DONOR_VISITS = Scene(
    "a first release of whole records of several rows of people", DONOR_ROWS, fresh=True, change=write_visits
)
NOISY_RIGHT_YEAR = Scene(
    "a third version about the same people, right on average by noisy means",
    NOISY_RIGHT_YEARS,
    earlier=True,
    years=True,
    change=third_wave,
)
UNITS = Scene(
    "a first release of several rows of people, under noise",
    ENCOUNTERS.replace('"encounters"', '"people"'),
    fresh=True,
    change=write_encounters,
)
KNOWN_UNITS = Scene(
    "a first release of several rows of people, for who knows a column of one",
    ENCOUNTERS.replace('"encounters"', '"people"')
    .replace('["ward"]', '["ward", "day"]')
    .replace("lip:1.0", "srlip:0.5")
    .replace("epsilon = 4.0", 'protection = "none"')
    .replace("[categories]", '[disclosure]\non_breach = "report"\n\n[categories]\nday = ["week", "weekend"]'),
    fresh=True,
    change=write_days,
)
HONEST = (
    UNITS,
    KNOWN_UNITS,
    ANY_COLUMN,
    ANY_OF_SECRET,
    ANY_TWO,
    HELD_OUT,
    FRESH,
    DROPPING,
    PLAIN,
    COUNTED,
    INVARIANT,
    PROTECTED_NAMES,
    LEVELLED,
    WHOLE,
    WITH_SECRET,
    GIVEN,
    KNOWN,
    PROTECTED,
    PARTITIONED,
    KEPT,
    UNORDERED,
    UNORDERED_PARTS,
    OTHER_SOURCE,
    OTHER_BOUND,
    SECOND_YEAR,
    THIRD_YEAR,
    RIGHT_YEAR,
    RIGHT_INCOME,
    DONOR_YEAR,
    DONOR_VISITS,
    NOISY_RIGHT_YEAR,
)
"""Scenes in which an honest run publishes."""

BREACHING = Scene("frequencies that break a rule", QUICK.replace('"report"', '"refuse"'), fresh=True)
FOUND_BINS = Scene(
    "bins found from records that are held out", HELD_OUT_SPEC.replace("bins = [30, 50]", 'bins = "auto"'), fresh=True
)
EXCHANGED_COUNTS = Scene("other counts in the private folder", change=exchange_counts)
EXCHANGED_PROTOCOL = Scene("another protocol in the private folder", change=exchange_protocol)
FORGED_PROTOCOL = Scene("a forged protocol in the private folder", change=forge_protocol)
EXCHANGED_SNAPSHOT = Scene("other records in the snapshot", change=exchange_snapshot)
EXCHANGED_ROWS = Scene("other rows in the version before", earlier=True, change=exchange_rows)
