"""Any columns: whole records under a bound for observers of any one or two of these; judged and audited."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from funnel.alphabet import CLASS_COLUMN
from funnel.analysis.release import load_release
from funnel.audit.check import State, overall
from funnel.audit.recheck import Told
from funnel.errors import InfeasibleGuarantee, SpecError
from funnel.pipeline.flows import pipeline
from funnel.recount.classes import PlainClasses
from funnel.recount.part_beliefs import people_by_part
from funnel.release.document import dump
from funnel.release.documents import JointDocument, PartsDocument
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.public_report import PublicReport
from funnel.settings.groups import AT_ONCE, AtOnce
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.funnel.audit.statements import passes
from tests.projects import SPEC, adult_rows, make_project
from tests.releases import make_release

ROWS = 6_000
COLUMNS = ["education", "relationship", "race", "workclass", "occupation", "sex"]
LIP, SRLIP = 1.0, 2.0
ANY = (
    SPEC.replace('["marital-status"]', '["income"]')
    .replace('["relationship"]', json.dumps(COLUMNS))
    .replace('"lip:1.0"', f'["lip:{LIP}", "srlip:{SRLIP}"]')
    .replace("[source]", 'mechanism = "invariant"\n\n[groups]\nknown = "single"\nmin_records = 100\n\n[source]')
)


@dataclass(frozen=True)
class Case:
    """A spec: what observers know, their budget, the other bound; and secrets that are published."""

    known: AtOnce
    budget: float
    other: str = "lip"

    @property
    def spec(self) -> str:
        spec = ANY.replace('"single"', f'"{self.known}"').replace(f"srlip:{SRLIP}", f"srlip:{self.budget}")
        return spec.replace("lip:1.0", f"{self.other}:1.0", 1).replace(json.dumps(COLUMNS), json.dumps(self.columns))

    @property
    def columns(self) -> list[str]:
        return ["income", *COLUMNS] if self.other == "attribute" else COLUMNS


CASES = {"single": Case("single", SRLIP), "pairs": Case("pairs", 3.0), "secret": Case("single", 2.5, "attribute")}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def folder(case: Case, tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return make_release(make_project(tmp_path_factory.mktemp("any"), case.spec, adult_rows(rows=ROWS)))


def test_an_audit_passes_with_and_without_internal_evidence(folder: ReleaseFolder, case: Case) -> None:
    for checks in (recheck(folder), recheck(folder, Told(public=True))):
        assert overall(checks) == State.PASSED, [check for check in checks if not check.passed]
    (leakage,) = (check for check in recheck(folder) if check.name == "leakage")
    assert f"declared {case.other}:{LIP} & srlip:{case.budget}" in leakage.detail


def test_who_knows_values_of_a_person_is_within_the_bound(folder: ReleaseFolder, case: Case) -> None:
    """From the true records one by one, whom each is published as, and how common the secret is in every class."""
    plain = PlainClasses.parse(folder.classes.read_bytes())
    protocol = ProtocolDocument.read(folder.protocol).protocol
    rows = adult_rows(rows=ROWS).select([*COLUMNS, "income"]).to_pydict()
    records = list(zip(*(rows[column] for column in COLUMNS), strict=True))
    names = list(dict.fromkeys(symbol[-1] for symbol in protocol.inputs.symbols))
    part = np.array([names.index(plain.of(record)) for record in records])
    classes = np.array([plain.of(record).split(".")[0] for record in records])
    rich = np.array(rows["income"]) == ">50K"
    share = {name: rich[classes == name].mean() for name in set(classes)}
    believed = np.array([[1 - share[name], share[name]] for name in classes]).T
    assert min(np.unique(classes, return_counts=True)[1]) >= 100
    # P(published secret and part | secret and part); of one secret where none is read and published.
    sizes, read = np.bincount(part), len(protocol.inputs) // len(names)
    moves = protocol.matrix.reshape(read, len(names), read, len(names))
    of_one = [np.array(rows[column]) for column in COLUMNS]
    sets = [[column == value for value in sorted(set(column.tolist()))] for column in of_one]
    if case.known == "pairs":
        sets += [[a & b for a in one for b in other] for one, other in combinations(sets, 2)]
    # P(secret, published as one record of k, that agrees or not) by the part of a person, times the people of k.
    of_part, numbers = believed[:, [*map(part.tolist().index, range(len(names)))]], np.arange(len(names))
    rates = {
        (published, k): np.broadcast_to(moves[published, k], of_part.shape) * of_part
        for published, k in np.ndindex(read, len(sizes))
    }
    worst = 0.0
    for having in [np.ones(ROWS, bool), *(one for some in sets for one in some if one.any())]:
        bound = LIP if having.all() else case.budget
        prior, there = believed[:, having].mean(axis=1), np.bincount(part[having], minlength=len(names))
        for (_, k), rate in rates.items():
            come, agreeing = (np.where(numbers == k, 0.0, rate) * there).sum(axis=1), int(there[k])
            # Of those who stay the record is that of one person.
            own = [np.zeros(2), rate[:, k] * sizes[k]] if agreeing else [np.zeros(2)]
            for mine in own if agreeing < sizes[k] else own[1:]:
                seen = come + mine
                if seen.sum() > 1e-9:
                    change = float(np.abs(np.log(seen / seen.sum() / prior)).max())
                    worst = max(worst, change * case.budget / bound)
    assert worst == pytest.approx(case.budget, rel=1e-3)
    assert worst <= case.budget + 1e-9


def test_records_are_true_ones_and_most_of_them_stay(folder: ReleaseFolder, case: Case) -> None:
    table, source = pq.read_table(folder.data), adult_rows(rows=ROWS)
    assert table.column_names == [*case.columns, CLASS_COLUMN]
    true = set(zip(*(source[column].to_pylist() for column in COLUMNS), strict=True))
    assert set(zip(*(table[column].to_pylist() for column in COLUMNS), strict=True)) <= true
    told = PublicReport.read(folder.numbers).unchanged
    assert 0.5 < told.share < 0.95
    sizes = range(1, AT_ONCE[case.known] + 1)
    assert {one.columns for one in told.known} == {some for size in sizes for some in combinations(COLUMNS, size)}
    assert told.at_once == AT_ONCE[case.known]
    assert all(one.outside == 0 for one in told.known)
    assert [(one.known, one.level) for one in told.observers] == [(0, LIP), (1, LIP)]
    released = load_release(folder.root)
    shares = [released.unchanged(column) for column in case.columns]
    assert min(shares) >= released.unchanged() == pytest.approx(told.share, abs=0.02)
    assert released.shares(("sex", "race")).r is not None


def test_tables_are_right_and_those_of_a_published_secret_are_off_by_what_is_said(
    folder: ReleaseFolder, case: Case
) -> None:
    """Means of all tables of one and two columns, from the protocol and who the donors are."""
    plain = PlainClasses.parse(folder.classes.read_bytes())
    protocol = ProtocolDocument.read(folder.protocol).protocol
    rows = adult_rows(rows=ROWS).select([*COLUMNS, "income"]).to_pydict()
    records = list(zip(*(rows[column] for column in COLUMNS), strict=True))
    names = list(dict.fromkeys(symbol[-1] for symbol in protocol.inputs.symbols))
    part, rich = np.array([names.index(plain.of(record)) for record in records]), np.array(rows["income"]) == ">50K"
    read = len(protocol.inputs) // len(names)
    moves = protocol.matrix.reshape(read, len(names), read, len(names))
    secret = rich.astype(int) if read > 1 else np.zeros(ROWS, dtype=int)
    counts = np.zeros((read, len(names)))
    np.add.at(counts, (secret, part), 1)
    into = np.einsum("tksh,sh->tk", moves, counts) - np.einsum("tksk,sk->tk", moves, counts)
    off = 0.0
    for cell in (
        a & b
        for one, other in combinations([_flags(rows[column]) for column in COLUMNS], 2)
        for a in one
        for b in other
    ):
        within = np.bincount(part[cell], minlength=len(names)) / np.bincount(part)
        stays = np.array([moves[t, part[cell], secret[cell], part[cell]].sum() for t in range(read)])
        mean = stays + into @ within
        assert mean.sum() == pytest.approx(cell.sum(), abs=1e-6)
    for cell in (flags for column in COLUMNS for flags in _flags(rows[column])):
        within = np.bincount(part[cell], minlength=len(names)) / np.bincount(part)
        stays = np.array([moves[t, part[cell], secret[cell], part[cell]].sum() for t in range(read)])
        off = max(off, float(np.abs(stays + into @ within - np.bincount(secret[cell], minlength=read)).max()))
    told = PublicReport.read(folder.numbers).unchanged
    assert (told.off is None) == (read == 1)
    assert off < 1e-6 if told.off is None else off <= told.off.records <= off * 1.1


def _flags(values: list[str]) -> list[np.ndarray]:
    return [np.array(values) == value for value in sorted(set(values))]


def test_the_report_says_who_is_bounded_and_who_is_not(folder: ReleaseFolder, case: Case) -> None:
    page = " ".join(folder.report.read_text().split())
    summary = page[: page.index("What stays as it is")]
    published = "other published columns" if case.other == "attribute" else "published columns"
    which, more = {
        "single": (f"one of the {published} of a person, whichever it is", "two"),
        "pairs": (f"one or two of the {published} of a person, whichever these are", "three"),
    }[case.known]
    assert which in summary
    assert f"For an observer who knows {more} or more and not all of them nothing is proven." in summary
    assert ("the odds between any two values change by at most this factor" in summary) == (case.other == "attribute")
    assert ("of 15 pairs of columns the worst" in page) == (case.known == "pairs")
    assert which in folder.annex.read_text()


def test_observers_of_other_columns_than_there_are_fail_an_audit(folder: ReleaseFolder) -> None:
    report = json.loads(folder.numbers.read_bytes())
    assert passes(folder, report)
    for size in {len(one["columns"]) for one in report["unchanged"]["known"]}:
        for other in (lambda column: f"{column}s", lambda _: "education"):
            changed = json.loads(folder.numbers.read_bytes())
            one = next(one for one in changed["unchanged"]["known"][::-1] if len(one["columns"]) == size)
            one["columns"][0] = other(one["columns"][0])
            assert not passes(folder, changed)


def test_evidence_of_people_of_values_that_is_changed_fails_an_audit(folder: ReleaseFolder, tmp_path: Path) -> None:
    """An audit decides the bound by it: people of the rarest value put into the part whose class tells most."""
    root = Path(shutil.copytree(folder.root.parents[2], tmp_path / "copy"))
    copy = ReleaseFolder(root / folder.root.relative_to(folder.root.parents[2]))
    document = json.loads(copy.parts.read_bytes())
    for table in document["known"]:
        table["people"] = [*table["people"][1:], table["people"][0]]
    copy.parts.write_bytes(dump(document))
    failed = {check.name for check in recheck(copy) if not check.passed}
    assert failed & {"evidence", "leakage"}


def test_the_evidence_is_what_is_counted_again(folder: ReleaseFolder) -> None:
    plain, stored = PlainClasses.parse(folder.classes.read_bytes()), PartsDocument.read(folder.parts).parts
    source = adult_rows(rows=ROWS)
    records = zip(*(source[column].to_pylist() for column in COLUMNS), strict=True)
    counts = {((str(number),), record): 1 for number, record in enumerate(records)}
    having = people_by_part(counts, COLUMNS, lambda record: (plain.of(record),), plain.at_once)
    parts = JointDocument.from_json(folder.joint.read_bytes()).joint.inputs.symbols
    assert having == {
        one: {part: n for part, n in zip(parts, row, strict=True) if n}
        for one, row in zip(stored.known, stored.people.tolist(), strict=True)
    }
    assert folder.parts.stat().st_size < 300_000


def test_a_budget_that_no_exchange_of_records_keeps_is_refused(tmp_path: Path) -> None:
    spec = ANY.replace(f"srlip:{SRLIP}", "srlip:0.01")
    project = make_project(tmp_path, spec, adult_rows(rows=ROWS))
    with pytest.raises(InfeasibleGuarantee, match="raise its budget, or publish fewer columns"):
        pipeline.run_release(ReleaseSpec.load(project), again=False, rotate=False)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (f'"srlip:{SRLIP}"', '"attribute:1.0"', "is for srlip, with lip or without"),
        (json.dumps(COLUMNS), json.dumps(["income", *COLUMNS]), "is for srlip, with attribute or without"),
        ('protection = "none"', 'protection = "noise"', "which noise would not protect"),
        ("min_records = 100", 'min_records = 100\nclasses = "classes.json"', "those of other people"),
        ('mechanism = "invariant"', 'mechanism = "grr"', "draws values"),
        ('mechanism = "invariant"', 'mechanism = {name = "invariant", weights = "share"}', "weights has no effect"),
        (
            'people = "different"',
            'people = "same"',
            "one bound on what is learned of the secret is kept over them, and not several",
        ),
    ],
)
def test_what_goes_not_with_any_one_column_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in ANY
    spec = ANY.replace(old, new).replace('secret = ["income"]', 'secret = ["income"]\nrecord_key = ["fnlwgt"]')
    with pytest.raises(SpecError, match=said):
        ReleaseSpec.load(make_project(tmp_path, spec, adult_rows(rows=100)))
