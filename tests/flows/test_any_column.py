"""Any columns: whole records under a bound for observers of any one or two of these; judged and audited."""

from __future__ import annotations

import json
import shutil
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
LIP, SRLIP, SRLIP_TWO = 1.0, 2.0, 3.0
ANY = (
    SPEC.replace('["marital-status"]', '["income"]')
    .replace('["relationship"]', json.dumps(COLUMNS))
    .replace('"lip:1.0"', f'["lip:{LIP}", "srlip:{SRLIP}"]')
    .replace("[source]", 'mechanism = "invariant"\n\n[groups]\nknown = "single"\nmin_records = 100\n\n[source]')
)


SPECS = {"single": ANY, "pairs": ANY.replace('"single"', '"pairs"').replace(f"srlip:{SRLIP}", f"srlip:{SRLIP_TWO}")}
BUDGETS = {"single": SRLIP, "pairs": SRLIP_TWO}


@pytest.fixture(scope="module", params=AT_ONCE)
def known(request: pytest.FixtureRequest) -> AtOnce:
    return request.param


@pytest.fixture(scope="module")
def folder(known: AtOnce, tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return make_release(make_project(tmp_path_factory.mktemp("any"), SPECS[known], adult_rows(rows=ROWS)))


def test_an_audit_passes_with_and_without_internal_evidence(folder: ReleaseFolder, known: AtOnce) -> None:
    for checks in (recheck(folder), recheck(folder, Told(public=True))):
        assert overall(checks) == State.PASSED, [check for check in checks if not check.passed]
    (leakage,) = (check for check in recheck(folder) if check.name == "leakage")
    assert f"declared lip:{LIP} & srlip:{BUDGETS[known]}" in leakage.detail


def test_who_knows_values_of_a_person_is_within_the_bound(folder: ReleaseFolder, known: AtOnce) -> None:
    """From the true records one by one, whom each is published as, and how common the secret is in every class."""
    plain = PlainClasses.parse(folder.classes.read_bytes())
    protocol = ProtocolDocument.read(folder.protocol).protocol
    rows = adult_rows(rows=ROWS).select([*COLUMNS, "income"]).to_pydict()
    records = list(zip(*(rows[column] for column in COLUMNS), strict=True))
    part = np.array([protocol.inputs.index((plain.of(record),)) for record in records])
    classes = np.array([plain.of(record).split(".")[0] for record in records])
    rich = np.array(rows["income"]) == ">50K"
    share = {name: rich[classes == name].mean() for name in set(classes)}
    believed = np.array([share[name] for name in classes])
    sizes, moves = np.bincount(part), protocol.matrix
    assert min(np.unique(classes, return_counts=True)[1]) >= 100
    of_one = [np.array(rows[column]) for column in COLUMNS]
    sets = [[column == value for value in sorted(set(column.tolist()))] for column in of_one]
    if known == "pairs":
        sets += [[a & b for a in one for b in other] for one, other in combinations(sets, 2)]
    worst = 0.0
    for having in [np.ones(ROWS, bool), *(one for some in sets for one in some if one.any())]:
        bound = LIP if having.all() else BUDGETS[known]
        prior = believed[having].mean()
        for k, size in enumerate(sizes):
            # P(published as one record of k, that agrees or not) by person, times the people of k.
            come = np.where(part == k, 0.0, moves[k, part]) * having
            agreeing = int(having[part == k].sum())
            # Of those who stay the record is that of one person.
            own = [0.0, moves[k, k] * size] if agreeing else [0.0]
            for mine in own if agreeing < size else own[1:]:
                seen = come.sum() + mine
                if seen > 1e-9:
                    posterior = (come @ believed + mine * believed[part == k][0]) / seen
                    change = max(
                        abs(np.log(after / before))
                        for after, before in ((posterior, prior), (1 - posterior, 1 - prior))
                    )
                    worst = max(worst, change * BUDGETS[known] / bound)
    assert worst == pytest.approx(BUDGETS[known], rel=1e-3)
    assert worst <= BUDGETS[known] + 1e-9


def test_records_are_true_ones_and_most_of_them_stay(folder: ReleaseFolder, known: AtOnce) -> None:
    table, source = pq.read_table(folder.data), adult_rows(rows=ROWS)
    assert table.column_names == [*COLUMNS, CLASS_COLUMN]
    true = set(zip(*(source[column].to_pylist() for column in COLUMNS), strict=True))
    assert set(zip(*(table[column].to_pylist() for column in COLUMNS), strict=True)) <= true
    told = PublicReport.read(folder.numbers).unchanged
    assert told is not None
    assert 0.5 < told.share < 0.95
    sizes = range(1, AT_ONCE[known] + 1)
    assert {one.columns for one in told.known} == {some for size in sizes for some in combinations(COLUMNS, size)}
    assert told.at_once == AT_ONCE[known]
    assert all(one.outside == 0 for one in told.known)
    assert [(one.known, one.level) for one in told.observers] == [(0, LIP), (1, BUDGETS[known])]
    released = load_release(folder.root)
    shares = [released.unchanged(column) for column in COLUMNS]
    assert min(shares) >= released.unchanged() == pytest.approx(told.share, abs=0.02)
    assert released.shares(("sex", "race")).r is not None


def test_the_report_says_who_is_bounded_and_who_is_not(folder: ReleaseFolder, known: AtOnce) -> None:
    page = " ".join(folder.report.read_text().split())
    summary = page[: page.index("What stays as it is")]
    which, more = {
        "single": ("one of the published columns of a person, whichever it is", "two"),
        "pairs": ("one or two of the published columns of a person, whichever these are", "three"),
    }[known]
    assert which in summary
    assert f"For an observer who knows {more} or more and not all of them nothing is proven." in summary
    assert ("of 15 pairs of columns the worst" in page) == (known == "pairs")
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
        ('protection = "none"', 'protection = "noise"', "which noise would not protect"),
        ("min_records = 100", 'min_records = 100\nclasses = "classes.json"', "those of other people"),
        ('mechanism = "invariant"', 'mechanism = "grr"', "draws values"),
        ('mechanism = "invariant"', 'mechanism = {name = "invariant", weights = "share"}', "weights has no effect"),
        ('people = "different"', 'people = "same"', "link"),
    ],
)
def test_what_goes_not_with_any_one_column_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in ANY
    spec = ANY.replace(old, new).replace('secret = ["income"]', 'secret = ["income"]\nrecord_key = ["fnlwgt"]')
    with pytest.raises(SpecError, match=said):
        ReleaseSpec.load(make_project(tmp_path, spec, adult_rows(rows=100)))
