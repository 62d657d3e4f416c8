"""Transition matrices of others: read in any order, checked as by hand, and beside the best of all invariant ones."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from funnel import LIP, MutualInformation, parse_guarantee
from funnel.alphabet import Alphabet
from funnel.cli import main
from funnel.errors import SpecError
from funnel.joint import FloatArray, Joint
from funnel.preview import transition_matrix
from funnel.preview.transition_matrix import CheckedMatrix, check_matrix, read_transitions
from funnel.progress import quiet
from tests.projects import make_project

NAMES = ["low", "middle", "high, or more"]
ROWS = np.array([[0.7, 0.2, 0.1], [0.05, 0.9, 0.05], [0.3, 0.1, 0.6]])
COUNTS = np.array([[300, 80, 20], [100, 200, 50]])


def table(counts: list[list[int]] | FloatArray = COUNTS) -> Joint:
    counts = np.asarray(counts)
    inputs = Alphabet(("size",), tuple((name,) for name in NAMES[: counts.shape[1]]))
    return Joint.from_counts(counts, secret=["ill", "well"], inputs=inputs)


def written(path: Path, matrix: FloatArray, rows: list[str] = NAMES, columns: list[str] = NAMES) -> Path:
    """As ``write.csv`` of R does, whose first column has an empty name."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
        lines.writerow(["", *columns])
        lines.writerows([name, *map(float, row)] for name, row in zip(rows, matrix, strict=True))
    return path


def checked(path: Path, joint: Joint, bound: str = "lip:1.0") -> CheckedMatrix:
    return check_matrix([path], joint, parse_guarantee(bound), None, quiet)


def test_rows_and_columns_are_read_by_their_names(tmp_path: Path) -> None:
    values = table().inputs
    plain = read_transitions(written(tmp_path / "m.csv", ROWS), values)
    assert plain.tolist() == ROWS.tolist()
    rows, columns = [2, 0, 1], [1, 2, 0]
    other = written(
        tmp_path / "o.csv", ROWS[np.ix_(rows, columns)], [NAMES[k] for k in rows], [NAMES[k] for k in columns]
    )
    assert read_transitions(other, values).tolist() == ROWS.tolist()
    # A matrix of R without a name above its rows, as write.table writes it, and a mark of the byte order.
    (tmp_path / "t.csv").write_text("\ufeff" + "a,b\na,0.9,0.1\n\nb,0.3,0.7\n", encoding="utf-8")
    two = Alphabet(("size",), (("a",), ("b",)))
    assert read_transitions(tmp_path / "t.csv", two).tolist() == [[0.9, 0.1], [0.3, 0.7]]


def test_what_a_matrix_discloses_and_keeps_is_what_bayes_says(tmp_path: Path) -> None:
    found = checked(written(tmp_path / "m.csv", ROWS), table())
    p = COUNTS / COUNTS.sum()
    both = p @ ROWS
    lifts = both / both.sum(axis=0) / p.sum(axis=1, keepdims=True)
    s, y = np.unravel_index(np.abs(np.log(lifts)).argmax(), lifts.shape)
    assert found.level == pytest.approx(abs(math.log(lifts[s, y])), rel=1e-12)
    assert (found.secret, found.output) == (["ill", "well"][s], NAMES[y])
    assert found.upward is bool(lifts[s, y] > 1)
    assert found.factor == pytest.approx(max(lifts[s, y], 1 / lifts[s, y]), rel=1e-12)
    assert found.unchanged == pytest.approx(p.sum(axis=0) @ np.diag(ROWS), rel=1e-12)
    counts = COUNTS.sum(axis=0)
    assert found.off == pytest.approx(np.abs(counts @ ROWS - counts).max(), rel=1e-12)
    assert found.holds
    assert not checked(tmp_path / "m.csv", table(), f"lip:{found.level * (1 - 1e-9)}").holds
    assert checked(tmp_path / "m.csv", table(), f"lip:{found.level * (1 + 1e-9)}").holds


@pytest.mark.parametrize("bound", [0.05, 0.1, 0.2])
def test_the_best_of_two_values_is_that_of_all_invariant_matrices(tmp_path: Path, bound: float) -> None:
    """Invariant matrices of two values have one number: the share of records that become the other value."""
    counts = np.array([[300, 100], [100, 300]])
    joint, p = table(counts), counts / counts.sum()
    share = float(p[:, 0].sum())
    matrix = np.array([[0.9, 0.1], [0.1, 0.9]])
    found = checked(written(tmp_path / "m.csv", matrix, NAMES[:2], NAMES[:2]), joint, f"lip:{bound}")

    def level(moved: float) -> float:
        rows = np.array([[1 - moved / share, moved / share], [moved / (1 - share), 1 - moved / (1 - share)]])
        both = p @ rows
        return float(np.abs(np.log(both / both.sum(axis=0) / p.sum(axis=1, keepdims=True))).max())

    def least_moved(limit: float) -> float:
        low, high = 0.0, 0.25
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if level(middle) <= limit else (middle, high)
        return high

    for one, limit in zip(found.better, (bound, found.level), strict=True):
        assert one.unchanged is not None
        assert one.at_most is not None
        best = 1 - 2 * least_moved(limit)
        assert best - 1e-4 <= one.unchanged <= best + 1e-9
        assert best - 1e-9 <= one.at_most <= best + 2e-4
    # At its own level this one is the best already.
    assert found.better[1].own_level
    assert found.better[1].unchanged == pytest.approx(found.unchanged, abs=1e-4)


def test_what_no_matrix_of_its_kind_can_meet_is_said(tmp_path: Path) -> None:
    path = written(tmp_path / "m.csv", ROWS)
    (under, at_level) = checked(path, table(), str(MutualInformation(0.01))).better
    assert under.unchanged is None
    assert "not linear" in under.sentence
    assert at_level.reason is not None
    # What rules a secret out has no level that another could be made for.
    certain = checked(written(tmp_path / "i.csv", np.eye(2), NAMES[:2], NAMES[:2]), table([[10, 0], [5, 9]]))
    assert certain.level == math.inf
    assert [one.guarantee for one in certain.better] == ["lip:1.0"]
    assert certain.to_dict()["level"] is None
    assert "the level is infinite" in next(certain.lines())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no transition matrix"),
        (",low,middle\nlow,1,0\nmiddle,x,1\n", "no transition matrix"),
        (",low,middle\nlow,1,0\nmiddle,1\n", "no transition matrix"),
        (',low,middle\n"low,1,0\n', "no transition matrix"),
        (",low,middle\nlow,1,0\nmiddle,0,1\n", "rows of .* are not the 3 published values .* high, or more; .*"),
        (
            ',low,middle,"high, or more",x\nlow,1,0,0,0\nmiddle,0,1,0,0\n"high, or more",0,0,1,0\n',
            "columns of .* by x;",
        ),
        (
            ',low,middle,"high, or more"\nlow,1,0,0\nlow,1,0,0\nmiddle,0,1,0\n"high, or more",0,0,1\n',
            "names some row twice",
        ),
    ],
)
def test_what_is_no_matrix_of_these_values_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "m.csv").write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match=said):
        read_transitions(tmp_path / "m.csv", table().inputs)


def test_no_file_and_columns_that_are_no_distributions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"cannot read .*none\.csv: No such file"):
        checked(tmp_path / "none.csv", table())
    with pytest.raises(SpecError, match="no distribution"):
        checked(written(tmp_path / "m.csv", ROWS.T), table())
    two = Joint.from_counts([[3, 4], [5, 6]], inputs=Alphabet(("size", "sex"), (("a", "f"), ("b", "m"))))
    with pytest.raises(SpecError, match="the spec publishes size, sex; give --matrix once for each of these, in this"):
        check_matrix([tmp_path / "m.csv"], two, LIP(1.0), None, quiet)


def test_matrices_of_several_columns_change_each_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand, over all combinations: two of which nobody has, and one that is not published without being changed."""
    symbols = (("low", "f"), ("middle", "m"), ("high, or more", "f"), ("low", "m"))
    counts = np.array([[300, 80, 20, 40], [100, 200, 50, 60]])
    joint = Joint.from_counts(counts, secret=["ill", "well"], inputs=Alphabet(("size", "sex"), symbols))
    sexes = np.array([[0.9, 0.1], [0.2, 0.8]])
    files = [written(tmp_path / "size.csv", ROWS), written(tmp_path / "sex.csv", sexes, ["f", "m"], ["f", "m"])]
    found = check_matrix(files, joint, LIP(1.0), None, quiet)
    p, seen = counts / counts.sum(), np.zeros((2, 3, 2))
    for x, (size, sex) in enumerate(symbols):
        seen += np.einsum("s,y,z->syz", p[:, x], ROWS[NAMES.index(size)], sexes["fm".index(sex)])
    lifts = seen / seen.sum(axis=0) / p.sum(axis=1)[:, np.newaxis, np.newaxis]
    assert found.level == pytest.approx(np.abs(np.log(lifts)).max(), rel=1e-12)
    stays = [
        ROWS[NAMES.index(size), NAMES.index(size)] * sexes["fm".index(sex), "fm".index(sex)] for size, sex in symbols
    ]
    assert found.unchanged == pytest.approx(float(p.sum(axis=0) @ stays), rel=1e-12)
    own = np.zeros((3, 2))
    for x, (size, sex) in enumerate(symbols):
        own[NAMES.index(size), "fm".index(sex)] = counts[:, x].sum()
    assert found.off == pytest.approx(np.abs(seen.sum(axis=0) * counts.sum() - own).max(), rel=1e-12)
    assert found.better[0].unchanged is not None
    assert next(found.lines()).startswith("size.csv and sex.csv: lip:1.0 ")
    with pytest.raises(SpecError, match=r"sex\.csv are not the 3 published values"):
        check_matrix(files[::-1], joint, LIP(1.0), None, quiet)
    monkeypatch.setattr(transition_matrix, "_LARGEST", 23)
    with pytest.raises(SpecError, match="make 6 combinations of values out of 4"):
        check_matrix(files, joint, LIP(1.0), None, quiet)


def test_the_command_checks_before_it_compares(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p")
    plain = json.loads(CliRunner().invoke(main, ["plan", str(project), "--json"]).stdout)
    assert plain["matrix"] is None
    failed = CliRunner().invoke(main, ["plan", str(project), "--no-page", "--matrix", str(tmp_path / "none.csv")])
    assert failed.exit_code == SpecError.exit_code
    assert "fitting" not in failed.stderr
    names = ["Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried", "Wife"]
    matrix = np.full((6, 6), 0.04)
    np.fill_diagonal(matrix, 0.8)
    file = written(tmp_path / "pram.csv", matrix, names, names)
    told = CliRunner().invoke(main, ["plan", str(project), "--json", "--matrix", str(file)])
    found = json.loads(told.stdout)["matrix"]
    assert found["unchanged"] == pytest.approx(0.8)
    assert [one["own_level"] for one in found["better"]] == [False, True]
    shown = CliRunner().invoke(main, ["plan", str(project), "--no-page", "--matrix", str(file)]).stdout
    assert f"pram.csv: lip:1.0 {'holds' if found['holds'] else 'does not hold'}, the level is" in shown
    assert "pram.csv: at the same level an invariant matrix" in shown
