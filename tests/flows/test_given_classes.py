"""Whole records in classes that follow from other people: under noise, and under bounds in a population."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from funnel.alphabet import CLASS_COLUMN
from funnel.audit.check import State, overall
from funnel.audit.context import Told
from funnel.cli import main
from funnel.errors import DataError, ReleaseRefused, SpecError
from funnel.estimation.plain_counts import PlainCounts
from funnel.frequencies.noise import discrete_laplace_variance
from funnel.pipeline.flows import pipeline
from funnel.preview.counted import preview
from funnel.progress import quiet
from funnel.recount.frequencies import PublicFrequencies
from funnel.release.classes_document import ClassesDocument
from funnel.release.classified import make_classes, write_classes
from funnel.release.counted_as_usual import counted_as_usual
from funnel.release.document import dump
from funnel.release.frequencies_document import FrequenciesDocument
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import ProtocolDocument
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.flows.test_whole_records import COLUMNS, WHOLE
from tests.projects import adult_rows, make_project
from tests.releases import make_release

ROWS = 6_000
GIVEN = WHOLE.replace("[source]", '[groups]\nclasses = "classes.json"\nmin_records = 500\n\n[source]')
ADULT = adult_rows(rows=48_842)
VALUES = {column: sorted(ADULT[column].unique().to_pylist()) for column in ("income", *COLUMNS)}
CATEGORIES = "\n".join(f"{column} = {json.dumps(values)}" for column, values in VALUES.items())
NOISY = GIVEN.replace('protection = "none"', 'protection = "noise"') + f"\n[categories]\n{CATEGORIES}\n"
ROBUST = GIVEN.replace("lip:1.0", "rlip:1.0,0.05")
KNOWN = NOISY.replace('"lip:1.0"', '["rlip:1.0,0.05", "rsrlip:1.0,0.05"]')
KNOWN = KNOWN.replace("[groups]", '[groups]\nknown = ["sex"]', 1)


def project(folder: Path, spec: str, rows: int = ROWS) -> Path:
    """Some records, and questions that follow from others."""
    path = make_project(folder, spec, adult_rows(rows=rows))
    pq.write_table(adult_rows(30_000, 10_000), folder / "others.parquet")
    write_classes(ReleaseSpec.load(path), str(folder / "others.parquet"), None, False, quiet)
    return path


@pytest.fixture(
    scope="module",
    params=[NOISY, ROBUST, KNOWN],
    ids=["noise", "population", "known columns"],
)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return make_release(project(tmp_path_factory.mktemp("given"), request.param))


def test_an_audit_passes_with_and_without_internal_evidence(folder: ReleaseFolder) -> None:
    for checks in (recheck(folder), recheck(folder, Told(public=True))):
        assert overall(checks) == State.PASSED, [check for check in checks if not check.passed]


def test_questions_are_those_of_the_file_without_its_source(folder: ReleaseFolder) -> None:
    given = ClassesDocument.read(folder.root.parents[2] / "classes.json")
    published = ClassesDocument.read(folder.classes)
    assert (published.people, published.source) == ("different", None)
    assert given.source.records == 10_000
    assert published.questions == given.questions
    assert given.source.sha256 not in folder.classes.read_text(encoding="utf-8")


def test_tables_of_published_columns_have_the_means_that_follow(folder: ReleaseFolder) -> None:
    """Every cell of two columns is within seven standard errors of the sum, over classes, of what its donors bring.

    Where noise protects the counts of classes these means are not the true counts: the noise that is left is.
    """
    table, source = pq.read_table(folder.data), adult_rows(rows=ROWS)
    channel = ProtocolDocument.read(folder.protocol).protocol
    numbers = {symbol[-1]: x for x, symbol in enumerate(channel.inputs.symbols)}
    classes = ClassesDocument.read(folder.classes).classes
    rows = list(zip(*(source[column].to_pylist() for column in COLUMNS), strict=True))
    from funnel.alphabet import Alphabet

    records = Alphabet(tuple(COLUMNS), tuple(dict.fromkeys(rows)))
    at = dict(zip(records.symbols, classes.of_records(records).tolist(), strict=True))
    of = np.array([numbers[classes.names[at[row]]] for row in rows])
    sizes = np.bincount(of, minlength=len(numbers))
    coming = channel.matrix @ sizes - np.diag(channel.matrix) * sizes
    for a, b in combinations(range(len(COLUMNS)), 2):
        true: dict[tuple[str, str], np.ndarray] = {}
        for row, number in zip(rows, of, strict=True):
            true.setdefault((row[a], row[b]), np.zeros(len(sizes)))[number] += 1
        shown = Counter(zip(table[COLUMNS[a]].to_pylist(), table[COLUMNS[b]].to_pylist(), strict=True))
        assert shown.keys() <= true.keys()
        for cell, counts in true.items():
            stays = np.diag(channel.matrix) * counts
            brought = coming * counts / sizes
            # Of independent zeros and ones: at most those that leave, and those that come.
            variance = (counts - stays).sum() + brought.sum()
            assert abs(shown[cell] - (stays + brought).sum()) <= 7 * np.sqrt(variance) + 7


def test_errors_of_whole_records_have_the_noise_of_their_classes(folder: ReleaseFolder) -> None:
    plain, _ = counted_as_usual(folder)
    of = np.array([symbol[-1] for symbol in plain.values.symbols])
    aims = (of == of[0]).astype(float)[np.newaxis]
    protocol = ProtocolDocument.read(folder.protocol).protocol
    alone = PlainCounts.of(protocol, np.array([plain.counts[of == x].sum() for *_, x in protocol.inputs.symbols]))
    first = (np.array([x for *_, x in protocol.inputs.symbols]) == of[0]).astype(float)
    added = plain.aimed(aims, False).covariance[0, 0] - alone.aimed(first[np.newaxis], False).covariance[0, 0]
    if not folder.frequencies.exists():
        assert added == pytest.approx(0, abs=1e-12)
        return
    public = FrequenciesDocument.read(folder.frequencies).frequencies
    each = len(public.joint.secret) * discrete_laplace_variance(public.noise.scale)
    assert added == pytest.approx(each * ((first @ protocol.matrix - first) ** 2).sum() / ROWS**2, rel=1e-6)


def test_known_columns_are_those_of_the_file(tmp_path: Path) -> None:
    path = project(tmp_path, KNOWN, 3_000)
    path.write_text(NOISY, encoding="utf-8")
    with pytest.raises(SpecError, match=r'known names no column, .* was made for sex; write known = \["sex"\]'):
        preview(ReleaseSpec.load(path), quiet)


def test_counts_of_known_columns_are_of_all_classes_and_of_no_more(tmp_path: Path) -> None:
    """Known values are public with the classes, and which class has which of them tells of nobody."""
    folder = make_release(project(tmp_path, KNOWN))
    document, classes = FrequenciesDocument.read(folder.frequencies), ClassesDocument.read(folder.classes)
    assert document.inputs.columns == ("sex", CLASS_COLUMN)
    assert document.inputs.symbols == tuple(
        (*values, name) for values, name in zip(classes.known_values, classes.names, strict=True)
    )
    public, every = PublicFrequencies.parse(folder.frequencies.read_bytes()), document.inputs.symbols
    assert public.is_whole(every)
    assert not public.is_whole(every[:-1])
    assert not public.is_whole((*every, ("Male", "nobody")))
    # A class is of people of one sex.
    assert not public.is_whole()


def test_questions_of_the_same_people_fail_an_audit(folder: ReleaseFolder, tmp_path: Path) -> None:
    copy = ReleaseFolder(Path(shutil.copytree(folder.root, tmp_path / folder.root.name)))
    document = json.loads(copy.classes.read_bytes())
    copy.classes.write_bytes(dump({**document, "people": "same"}))
    assert "classes" in {check.name for check in recheck(copy, Told(public=True)) if check.failed}


def test_a_plan_has_the_same_classes(tmp_path: Path) -> None:
    spec = ReleaseSpec.load(project(tmp_path, ROBUST, 3_000))
    found = preview(spec, quiet, lambda *_: None)
    names = ClassesDocument.read(tmp_path / "classes.json").names
    assert found.counted.inputs.symbols == tuple((name,) for name in names)
    assert found.spec.publish == (CLASS_COLUMN,)


def test_a_file_is_made_by_the_command_line(tmp_path: Path) -> None:
    path = project(tmp_path, NOISY, 3_000)
    asked = ["classes", str(path), str(tmp_path / "others.parquet")]
    refused = CliRunner().invoke(main, asked)
    assert refused.exit_code == SpecError.exit_code
    assert "there is a file" in refused.output
    before = (tmp_path / "classes.json").read_bytes()
    made = CliRunner().invoke(main, [*asked, "--output", str(tmp_path / "again.json"), "--json"])
    assert made.exit_code == 0, made.output
    assert (tmp_path / "again.json").read_bytes() == before
    with pytest.raises(SpecError, match="no file is named"):
        write_classes(ReleaseSpec.load(make_project(tmp_path, WHOLE)), "others.parquet", None, False, quiet)


def test_the_same_records_again_are_refused(tmp_path: Path) -> None:
    path = make_project(tmp_path, ROBUST, adult_rows(rows=3_000))
    write_classes(ReleaseSpec.load(path), str(tmp_path / "people.parquet"), None, False, quiet)
    with pytest.raises(SpecError, match="made from this very source"):
        pipeline.run_release(ReleaseSpec.load(path), again=False, rotate=False)
    assert not (tmp_path / "releases" / "people" / "latest").exists()


def test_a_class_that_nobody_has_is_refused(tmp_path: Path) -> None:
    path = project(tmp_path, ROBUST, 3_000)
    document = json.loads((tmp_path / "classes.json").read_bytes())
    last = len(document["questions"])
    document["questions"].append({"scale": 0, "at_least": -(10**6), "then": "01", "otherwise": "nobody's"})
    end = next(
        (one, key) for one in document["questions"] for key in ("then", "otherwise") if one[key] == document["names"][0]
    )
    document["questions"][-1]["then"] = document["names"][0]
    end[0][end[1]] = last
    document["names"].append("nobody's")
    (tmp_path / "classes.json").write_bytes(dump(document))
    with pytest.raises(DataError, match=r"no record is of 1 of the [0-9]+ classes of classes.json, and a record that"):
        pipeline.run_release(ReleaseSpec.load(path), again=False, rotate=False)
    assert not (tmp_path / "releases" / "people" / "latest").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "[source]",
            '[recode.relationship.groups]\nspouse = ["Husband", "Wife"]\nother = ["Not-in-family", "Own-child", '
            '"Unmarried", "Other-relative"]\n\n[source]',
            "have points for values of 'relationship'",
        ),
        ('"workclass", ', "", "are about education, relationship, race, workclass, occupation, sex"),
    ],
)
def test_a_file_for_other_columns_or_values_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = project(tmp_path, ROBUST, 3_000)
    path.write_text(ROBUST.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataError, match=said):
        pipeline.run_release(ReleaseSpec.load(path), again=False, rotate=False)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"rlip:1.0,0.05"', '["rlip:1.0,0.05", "rsrlip:1.0,0.05"]', "no bound on what a class"),
        ('"invariant"', '"optimal"', "draws values"),
        ('"classes.json"', '"elsewhere.json"', "is missing"),
    ],
)
def test_what_a_file_does_not_help_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in ROBUST
    path = make_project(tmp_path, ROBUST.replace(old, new), adult_rows(rows=3_000))
    with pytest.raises((SpecError, DataError), match=said):
        pipeline.run_release(ReleaseSpec.load(path), again=False, rotate=False)


@pytest.mark.parametrize(
    ("protection", "said"),
    [
        ('frequencies = {protection = "threshold", threshold = 40}', "break minimum_cell.* under the threshold"),
        ('frequencies.protection = "none"', "nothing was published: the frequencies break minimum_cell"),
    ],
)
def test_classes_that_are_too_small_here_are_refused(tmp_path: Path, protection: str, said: str) -> None:
    path = project(tmp_path, ROBUST, 3_000)
    strict = ROBUST.replace('frequencies.protection = "none"', protection)
    if "threshold" not in protection:
        strict = strict.replace('on_breach = "report"', "minimum_cell = 300")
    path.write_text(strict, encoding="utf-8")
    with pytest.raises((DataError, ReleaseRefused), match=f"{said}.*larger min_records"):
        pipeline.run_release(ReleaseSpec.load(path), again=False, rotate=False)
    assert not (tmp_path / "releases" / "people" / "latest").exists()


def test_questions_need_records_enough(tmp_path: Path) -> None:
    path = make_project(tmp_path, NOISY, adult_rows(rows=150))
    with pytest.raises(DataError, match="too few"):
        make_classes(ReleaseSpec.load(path), str(tmp_path / "people.parquet"), quiet)
