"""Whole records: many columns, drawn by class of record; judged, audited, and right on average in every table."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from funnel.audit.check import State, overall
from funnel.audit.told import Told
from funnel.errors import SpecError
from funnel.pipeline.flows import way
from funnel.release.classes_document import ClassesDocument
from funnel.release.documents import ProtocolDocument
from funnel.release.estimated import estimate_release
from funnel.release.layout import ReleaseFolder
from funnel.release.public_report import PublicReport
from funnel.sampling.published import CLASS_COLUMN
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.projects import SPEC, adult_rows, make_project
from tests.releases import make_release

pytestmark = pytest.mark.usefixtures("in_process")

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
    assert told is not None
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
    assert found.r is not None
    assert found.r.max() < 0.5


def test_the_same_again_is_unchanged(folder: ReleaseFolder) -> None:
    spec = ReleaseSpec.load(next(folder.root.parents[2].glob("*.toml")))
    told, done = way.go(spec, again=False, rotate=False)
    assert (told["status"], done) == ("unchanged", None)


def test_a_record_that_says_another_class_fails_an_audit(folder: ReleaseFolder, tmp_path: Path) -> None:
    copy = ReleaseFolder(Path(shutil.copytree(folder.root, tmp_path / folder.root.name)))
    document = json.loads(copy.classes.read_bytes())
    first = document["questions"][0]
    first["then"], first["otherwise"] = first["otherwise"], first["then"]
    from funnel.release.document import dump

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
        ('"lip:1.0"', '"attribute:1.0"', "not be right on average"),
    ],
)
def test_what_classes_cannot_be_chosen_for_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in WHOLE
    spec = WHOLE.replace(old, new)
    if "noise" in new:
        spec += '\n[categories]\nincome = ["<=50K", ">50K"]\nsex = ["Female", "Male"]\n'
    if "attribute" in new:
        spec = spec.replace('publish = ["', 'publish = ["income", "')
    project = make_project(tmp_path, spec, adult_rows(rows=3_000))
    with pytest.raises(SpecError, match=said):
        way.go(ReleaseSpec.load(project), again=False, rotate=False)
