"""Whole records: many columns, drawn by class of record; judged, audited, and right on average in every table."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from scipy.optimize import linprog

from funnel.alphabet import CLASS_COLUMN
from funnel.analysis.estimated import estimate_release
from funnel.analysis.question import ColumnShares, Question
from funnel.analysis.release import Release, load_release
from funnel.audit.check import State, overall
from funnel.audit.context import Told
from funnel.console import unchanged_lines
from funnel.errors import LedgerError, SpecError
from funnel.pipeline.flows import pipeline
from funnel.recount.classes import PlainClasses
from funnel.recount.released import ReleasedProtocol
from funnel.release.classes_document import ClassesDocument
from funnel.release.document import dump
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.public_report import PublicReport
from funnel.release.record import Record
from funnel.release.validated import require_same_spec
from funnel.report.public import render_public
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.projects import SPEC, adult_rows, make_project
from tests.releases import make_release

ROWS = 6_000
COLUMNS = ["education", "relationship", "race", "workclass", "occupation", "sex"]
WHOLE = (
    SPEC.replace('["marital-status"]', '["income"]')
    .replace('["relationship"]', json.dumps(COLUMNS))
    .replace("[source]", 'mechanism = "invariant"\n\n[output]\ncsv = true\n\n[source]')
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return make_release(make_project(tmp_path_factory.mktemp("whole"), WHOLE, adult_rows(rows=ROWS)))


def test_an_audit_passes_with_and_without_internal_evidence(folder: ReleaseFolder) -> None:
    for checks in (recheck(folder), recheck(folder, Told(public=True))):
        assert overall(checks) == State.PASSED, [check for check in checks if not check.passed]
        assert "classes" in {check.name for check in checks}


@pytest.fixture(scope="module")
def for_estimates(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    columns = [column for column in (*COLUMNS, "income") if column != "relationship"]
    spec = WHOLE.replace('"income"', '"relationship"', 1).replace(json.dumps(COLUMNS), json.dumps(columns))
    spec = spec.replace("[output]", 'utility = "estimation"\n\n[output]', 1)
    return make_release(make_project(tmp_path_factory.mktemp("estimates"), spec, adult_rows(rows=ROWS)))


def test_whole_records_for_estimates_pass_an_audit_with_and_without_internal_evidence(
    for_estimates: ReleaseFolder,
) -> None:
    for checks in (recheck(for_estimates), recheck(for_estimates, Told(public=True))):
        assert overall(checks) == State.PASSED, [check for check in checks if not check.passed]


def test_whole_records_for_estimates_leave_as_many_unchanged_as_any_exchange_of_classes_can(
    for_estimates: ReleaseFolder,
) -> None:
    """By a programme of its own, whose conditions are those of lip:1.0, from the files alone."""
    counts = Counter(
        zip(
            *(
                pq.read_table(for_estimates.root.parents[2] / "people.parquet")[column].to_pylist()
                for column in ("relationship", *(c for c in (*COLUMNS, "income") if c != "relationship"))
            ),
            strict=True,
        )
    )
    classes = PlainClasses.parse(for_estimates.classes.read_bytes())
    protocol = ReleasedProtocol.parse(for_estimates.protocol.read_bytes())
    secrets, names = sorted({one[0] for one in counts}), [name for (name,) in protocol.inputs]
    table = np.zeros((len(secrets), len(names)))
    for (secret, *record), count in counts.items():
        table[secrets.index(secret), names.index(classes.of(tuple(record)))] += count
    shares = table.sum(axis=0) / table.sum()
    given, prior = table / table.sum(axis=0), table.sum(axis=1)[:, np.newaxis] / table.sum()
    cone = np.vstack([given - np.e * prior, prior / np.e - given])
    k = len(names)
    sums = np.vstack([np.kron(np.ones(k), np.eye(k)), np.kron(np.eye(k), np.ones(k))])
    best = linprog(
        -np.eye(k).ravel(), A_ub=np.kron(np.eye(k), cone), b_ub=np.zeros(k * len(cone)), A_eq=sums, b_eq=[*shares] * 2
    )
    matrix = np.array(protocol.weights, dtype=np.float64) / protocol.denominator
    told = PublicReport.read(for_estimates.numbers).compared[0].certificate
    assert (told.of, told.weights) == ("classes", "share")
    stays = float(shares @ np.diag(matrix))
    assert 0.5 < stays <= -best.fun + 1e-7
    assert stays == pytest.approx(-best.fun, abs=told.gap + 1e-4)


def test_all_columns_of_the_source_are_published_where_the_spec_says_auto(tmp_path: Path) -> None:
    rows = adult_rows(rows=1_500).select(["relationship", "income", "sex"])
    folder = make_release(make_project(tmp_path, WHOLE.replace(json.dumps(COLUMNS), '"auto"'), rows))
    assert pq.read_table(folder.data).column_names == ["relationship", "sex", CLASS_COLUMN]
    assert overall(recheck(folder)) == State.PASSED


def test_the_same_release_again_is_told_to_be_unchanged(folder: ReleaseFolder) -> None:
    spec = ReleaseSpec.load(folder.root.parents[2] / "people.toml")
    require_same_spec(spec, Record.read(folder.record))
    fewer = Record.read(folder.record)
    fewer = fewer.model_copy(update={"origin": fewer.origin.model_copy(update={"fields": tuple(COLUMNS[1:])})})
    with pytest.raises(LedgerError, match="it has other columns;"):
        require_same_spec(spec, fewer)


def test_records_have_the_columns_and_values_of_the_source(folder: ReleaseFolder) -> None:
    table, source = pq.read_table(folder.data), adult_rows(rows=ROWS)
    assert table.column_names == [*COLUMNS, CLASS_COLUMN]
    assert table.num_rows == source.num_rows
    true = set(zip(*(source[column].to_pylist() for column in COLUMNS), strict=True))
    shown = set(zip(*(table[c].to_pylist() for c in COLUMNS), strict=True))
    assert shown <= true
    written = pacsv.read_csv(folder.csv)
    assert written.column_names == table.column_names


def test_every_record_is_of_the_class_that_it_says(folder: ReleaseFolder) -> None:
    table = pq.read_table(folder.data)
    classes = ClassesDocument.read(folder.classes).classes
    protocol = ProtocolDocument.read(folder.protocol).protocol
    assert protocol.inputs.columns == protocol.outputs.columns == (CLASS_COLUMN,)
    assert tuple(symbol[0] for symbol in protocol.inputs.symbols) == classes.names
    from funnel.recount.classes import PlainClasses

    plain = PlainClasses.parse(folder.classes.read_bytes())
    rows = zip(*(table[column].to_pylist() for column in table.column_names), strict=True)
    assert all(plain.of(row[:-1]) == row[-1] for row in rows)


def test_most_records_are_true_and_shares_are_close(folder: ReleaseFolder) -> None:
    """No share of a value is off by more than so many standard errors of drawing, at most those of sampling."""
    table, source = pq.read_table(folder.data), adult_rows(rows=ROWS)
    told = PublicReport.read(folder.numbers).unchanged
    assert told.share > 0.8
    for column in COLUMNS:
        texts = source[column].to_pylist()
        shown = table[column].to_pylist()
        for value in set(texts):
            share = texts.count(value) / ROWS
            # Seven standard errors: by Bernstein below 1e-9 for all values together.
            assert abs(shown.count(value) / ROWS - share) <= 7 * np.sqrt(share * (1 - share) / ROWS) + 7 / ROWS


def test_shares_of_any_columns_are_counted_with_their_errors(folder: ReleaseFolder) -> None:
    found = estimate_release(folder, ("sex", "race"))
    table = pq.read_table(folder.data)
    rows = list(zip(table["sex"].to_pylist(), table["race"].to_pylist(), strict=True))
    assert found.frequencies.tolist() == pytest.approx([rows.count(cell) / ROWS for cell in found.cells])
    assert found.r.max() < 0.5


def test_r_of_any_statistic_of_the_records_is_told(folder: ReleaseFolder) -> None:
    """Of all columns crossed, of odds, of means and of chi-square tests, and of a regression by its influence."""
    released = load_release(folder.root)
    table = released.table()
    every = released.shares(COLUMNS)
    assert len(every.cells) == len(set(zip(*(table[column].to_pylist() for column in COLUMNS), strict=True)))
    assert every.r is not None
    women = np.array(table["sex"].to_pylist()) == "Female"
    shares = released.shares("sex", sampling=True)
    r = shares.r[[cell[0] for cell in shares.cells].index("Female")]
    assert float(released.variance_ratio(women)) == pytest.approx(float(r))
    numbers = {name: float(k) for k, name in enumerate(sorted(set(table["education"].to_pylist())))}
    years = np.array([numbers[name] for name in table["education"].to_pylist()])
    means = released.mean("education", "sex", numbers=numbers, quantiles=(0.5,), sampling=True)
    assert means.means.tolist() == pytest.approx([years[women].mean(), years[~women].mean()])
    design = np.column_stack([np.ones(ROWS), women])
    residuals = years - design @ np.linalg.lstsq(design, years, rcond=None)[0]
    slopes = released.variance_ratio(np.linalg.solve(design.T @ design, design.T) * residuals)
    assert slopes.shape == (2,)
    # The constant is the mean of men.
    assert slopes[0] == pytest.approx(means.r[1])
    odds = released.odds("sex", "race")
    assert ((odds.r >= 0) & (odds.r <= 1)).all()
    assert released.chi_square_ratio("sex", "race") == pytest.approx(
        released.shares(("sex", "race")).chi_square_r, abs=1e-12
    )


def test_most_values_of_every_column_are_expected_to_stay(folder: ReleaseFolder) -> None:
    """In every column at least as many as whole records, and of these as many as the report says, nearly."""
    released = load_release(folder.root)
    whole, told = released.unchanged(), PublicReport.read(folder.numbers).unchanged
    assert whole == pytest.approx(told.share, abs=0.02)
    shares = [released.unchanged(column) for column in COLUMNS]
    assert min(shares) >= released.unchanged(COLUMNS) >= whole
    assert max(shares) < 1
    with pytest.raises(SpecError, match="'region' is no column"):
        released.unchanged("region")


def test_nothing_is_told_of_combinations_that_is_true_of_classes(folder: ReleaseFolder) -> None:
    told = PublicReport.read(folder.numbers).unchanged
    lines = list(unchanged_lines(told.model_dump(mode="json")))
    assert "education" in lines[0]
    assert CLASS_COLUMN not in lines[0]
    for text in ("\n".join(lines), folder.report.read_text()):
        assert "in combinations" not in text
    readme = folder.readme.read_text()
    assert "as often as `protocol.json` says for their classes" in readme
    assert "by=…" not in readme


def test_what_changes_nothing_is_not_told_as_random_and_what_changes_most_is_said(folder: ReleaseFolder) -> None:
    report = PublicReport.read(folder.numbers)
    still = report.unchanged.model_copy(update={"share": 1.0, "exact_records": 1.0})
    page = " ".join(render_public(report.model_copy(update={"unchanged": still})).split())
    summary = page[: page.index('id="toc"') if 'id="toc"' in page else page.index("What stays as it is")]
    assert "No record was changed: the true values tell no more than the bound allows about" in summary
    assert "Published values are the true ones of their records." in summary
    assert "need not be the true one" not in summary
    for share, exact in ((1.0, 0.9), (0.99, 1.0)):
        some = report.unchanged.model_copy(update={"share": share, "exact_records": exact})
        assert "No record was changed" not in render_public(report.model_copy(update={"unchanged": some}))
    few = report.unchanged.model_copy(update={"share": 0.49}).model_dump(mode="json")
    assert "Most records are changed" in list(unchanged_lines(few))[1]
    assert "Most records" not in "".join(unchanged_lines(report.unchanged.model_dump(mode="json")))


def test_columns_of_whole_records_are_told_with_what_stays(folder: ReleaseFolder) -> None:
    """Every column's share, and the unique records, as the records themselves tell them."""
    told = PublicReport.read(folder.numbers).unchanged
    assert [one.column for one in told.whole.columns] == COLUMNS
    released, table = load_release(folder.root), pq.read_table(folder.data)
    for one in told.whole.columns:
        # Rounded to a thousandth twice.
        agree = released.unchanged(one.column) - released.unchanged()
        assert one.share == pytest.approx(told.share + agree, abs=1.1e-3)
        assert told.share <= one.share < 1
    rows = Counter(zip(*(table[column].to_pylist() for column in table.column_names), strict=True))
    assert told.whole.unique == sum(count == 1 for count in rows.values()) > 0
    assert f"{told.whole.unique:,} published records are like no other" in " ".join(folder.report.read_text().split())


def test_the_report_has_a_line_for_observers_of_each_column(folder: ReleaseFolder) -> None:
    report = PublicReport.read(folder.numbers)
    known = report.unchanged.known
    assert sorted(one.columns for one in known) == sorted((column,) for column in COLUMNS)
    page = " ".join(render_public(report).split())
    shown = page[page.index('id="observers-caption"') :]
    assert shown.count(" alone</th>") == len(known)
    beyond = [one for one in known if one.outside]
    assert shown.count("none</td>") == len(known) - len(beyond) + sum(
        one.outside == 0 for one in report.unchanged.observers
    )
    told = list(unchanged_lines(report.unchanged.model_dump(mode="json")))[-1]
    assert f"one other column ({known[0].columns[0]}" in told
    assert (f"the worst of {len(beyond)} that are beyond the bound" in told) == (len(beyond) > 1)


def test_an_audit_finds_another_share_of_a_column(folder: ReleaseFolder, tmp_path: Path) -> None:
    copy = ReleaseFolder(Path(shutil.copytree(folder.root, tmp_path / folder.root.name)))
    report = json.loads(copy.numbers.read_bytes())
    share = report["unchanged"]["whole"]["columns"][2]
    share["share"] = round(share["share"] + 0.002, 4)
    copy.numbers.write_bytes(dump(report))
    failed = {check.name for check in recheck(copy, Told(public=True)) if check.failed}
    assert "whole records" in failed


def test_what_is_not_there_for_whole_records_is_refused(folder: ReleaseFolder) -> None:
    with pytest.raises(SpecError, match="take the method 'em' out"):
        Question(by=("sex",), method="em").answer([folder.root])
    with pytest.raises(SpecError, match="take the method 'em' out"):
        Question(of="education", method="em").answer([folder.root])
    with pytest.raises(SpecError, match="'region' is no column"):
        Question(by=("region", "sex"), odds=True).answer([folder.root])


def test_each_column_is_counted_where_none_is_named(folder: ReleaseFolder) -> None:
    found = Question().answer([folder.root])
    release = Release(folder)
    assert isinstance(found, ColumnShares)
    assert [one.columns for one in found.columns] == [(name,) for name in release.columns[:-1]]
    assert found.columns[0].to_dict() == release.shares(release.columns[0]).to_dict() == found.to_dict()["columns"][0]
    text = str(found)
    assert text.count("counted as usual") == 1
    assert text.count("share   error") == len(found.columns)
    within = Question(within=("sex",)).answer([folder.root])
    assert isinstance(within, ColumnShares)
    assert [one.columns for one in within.columns] == [("sex", n) for n in release.columns[:-1] if n != "sex"]


def test_the_same_again_is_unchanged(folder: ReleaseFolder) -> None:
    spec = ReleaseSpec.load(next(folder.root.parents[2].glob("*.toml")))
    told, done = pipeline.run_release(spec, again=False, rotate=False)
    assert (told["status"], done) == ("unchanged", None)


def test_the_secret_is_published_under_a_bound_for_who_knows_all_the_rest(tmp_path: Path) -> None:
    """Records keep class and columns as the protocol says; tables of the secret are off by what the report says."""
    spec = WHOLE.replace('"lip:1.0"', '"attribute:1.0"').replace('publish = ["', 'publish = ["income", "')
    folder = make_release(make_project(tmp_path, spec, adult_rows(rows=ROWS)))
    checks = recheck(folder)
    assert overall(checks) == State.PASSED, [check for check in checks if not check.passed]
    table, source = pq.read_table(folder.data), adult_rows(rows=ROWS)
    assert table.column_names == ["income", *COLUMNS, CLASS_COLUMN]
    told = PublicReport.read(folder.numbers).unchanged
    assert told.off is not None
    assert told.share > 0.6
    protocol = ProtocolDocument.read(folder.protocol).protocol
    assert protocol.inputs.columns == ("income", CLASS_COLUMN)
    # Label LDP given the class, in whole numbers: e is above 27182/10000.
    for y, row in enumerate(protocol.weights_for(protocol.inputs)):
        of: dict[str, list[int]] = {}
        for x, weight in zip(protocol.inputs.symbols, row.tolist(), strict=True):
            of.setdefault(x[-1], []).append(int(weight))
        assert all(max(weights) * 10_000 <= 27_183 * min(weights) for weights in of.values()), y
    for column in COLUMNS:
        true = list(zip(source["income"].to_pylist(), source[column].to_pylist(), strict=True))
        shown = list(zip(table["income"].to_pylist(), table[column].to_pylist(), strict=True))
        for cell in set(true):
            count = true.count(cell)
            # Seven standard errors and what the report says: by Bernstein below 1e-9 for all cells together.
            assert abs(shown.count(cell) - count) <= told.off.records + 7 * np.sqrt(count) + 25


def test_a_record_that_says_another_class_fails_an_audit(folder: ReleaseFolder, tmp_path: Path) -> None:
    copy = ReleaseFolder(Path(shutil.copytree(folder.root, tmp_path / folder.root.name)))
    document = json.loads(copy.classes.read_bytes())
    first = document["questions"][0]
    first["then"], first["otherwise"] = first["otherwise"], first["then"]
    copy.classes.write_bytes(dump(document))
    failed = {check.name for check in recheck(copy, Told(public=True)) if check.failed}
    assert "values" in failed


def test_a_missing_document_of_classes_fails_an_audit(folder: ReleaseFolder, tmp_path: Path) -> None:
    copy = ReleaseFolder(Path(shutil.copytree(folder.root, tmp_path / folder.root.name)))
    copy.classes.unlink()
    assert "values" in {check.name for check in recheck(copy, Told(public=True)) if check.failed}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"lip:1.0"', '"rlip:1.0,0.05"', "about a population"),
        ('protection = "none"', 'protection = "noise"', "read off exact counts"),
        ('"lip:1.0"', '"srlip:1.0"', "no bound on what a class"),
    ],
)
def test_what_classes_cannot_be_chosen_for_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in WHOLE
    spec = WHOLE.replace(old, new)
    if "noise" in new:
        spec += '\n[categories]\nincome = ["<=50K", ">50K"]\nsex = ["Female", "Male"]\n\n[limits]\nset_aside = 1.0\n'
    project = make_project(tmp_path, spec, adult_rows(rows=3_000))
    with pytest.raises(SpecError, match=said):
        pipeline.run_release(ReleaseSpec.load(project), again=False, rotate=False)


def test_observers_of_known_columns_are_within_the_bound(tmp_path: Path) -> None:
    text = WHOLE.replace('"lip:1.0"', '["lip:1.0", "srlip:1.0"]').replace(
        "[source]", '[groups]\nknown = ["sex"]\n\n[source]', 1
    )
    assert "srlip" in text
    folder = make_release(make_project(tmp_path, text, adult_rows(rows=ROWS)))
    for checks in (recheck(folder), recheck(folder, Told(public=True))):
        assert overall(checks) == State.PASSED, [check for check in checks if not check.passed]
    protocol, classes = ProtocolDocument.read(folder.protocol), ClassesDocument.read(folder.classes).classes
    assert protocol.inputs.columns == ("sex", CLASS_COLUMN)
    table = pq.read_table(folder.data, columns=["sex", CLASS_COLUMN])
    values = dict(zip(classes.names, classes.known_values, strict=True))
    assert all((row["sex"],) == values[row[CLASS_COLUMN]] for row in table.to_pylist())
    opened = load_release(folder.root)
    sex = {cell["values"][0]: cell for cell in opened.shares("sex").to_dict()["cells"]}
    assert sex["Male"]["frequency"] == pytest.approx(table["sex"].to_pylist().count("Male") / ROWS)
    content = json.loads(folder.classes.read_bytes())
    content["known_values"][0] = ["Male" if content["known_values"][0] == ["Female"] else "Female"]
    folder.classes.write_bytes(dump(content))
    failed = {check.name for check in recheck(folder, Told(public=True)) if check.state == State.FAILED}
    assert "classes" in failed
