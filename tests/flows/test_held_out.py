"""Held-out records: whole records under a bound for a population, from the true records one by one."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import beta

from funnel.recount.classes import PlainClasses
from funnel.release.document import dump
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import ProtocolDocument
from tests.audits import recheck
from tests.projects import SPEC, adult_rows, make_project
from tests.releases import make_release

ROWS = 6_000
COLUMNS = ["education", "relationship", "race", "workclass", "occupation", "sex"]
RLIP, ALPHA, SHARE = 1.2, 0.1, 0.4
SPEC_OF_POPULATION = (
    SPEC.replace('["marital-status"]', '["income"]')
    .replace('["relationship"]', json.dumps(COLUMNS))
    .replace('"lip:1.0"', f'["rlip:{RLIP},{ALPHA}", "srlip:3.0"]')
    .replace(
        "[source]",
        f'mechanism = "invariant"\n\n[groups]\nknown = "pairs"\nheld_out = {SHARE}\nmin_records = 100\n\n[source]',
    )
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return make_release(make_project(tmp_path_factory.mktemp("held out"), SPEC_OF_POPULATION, adult_rows(rows=ROWS)))


def test_no_share_of_a_secret_that_held_out_records_leave_open_changes_a_belief_by_more(folder: ReleaseFolder) -> None:
    """By a linear programme over all shares within their limits, for every record, secret and direction."""
    plain = PlainClasses.parse(folder.classes.read_bytes())
    protocol = ProtocolDocument.read(folder.protocol).protocol
    source = adult_rows(rows=ROWS).select([*COLUMNS, "income"]).to_pydict()
    names = [symbol[-1] for symbol in protocol.inputs.symbols]
    part = np.array([names.index(plain.of(one)) for one in zip(*(source[name] for name in COLUMNS), strict=True)])
    _, of_part = np.unique([name.split(".")[0] for name in names], return_inverse=True)
    classes = of_part[part]
    rich = np.array(source["income"]) == ">50K"
    bits = [hashlib.sha256(f"funnel held out {i}".encode()).hexdigest()[:16] for i in range(ROWS)]
    held_out = np.array([int(one, 16) / 2**64 for one in bits]) < SHARE
    people, trials = np.bincount(classes), np.bincount(classes, held_out)
    assert 0.35 * ROWS < trials.sum() < 0.45 * ROWS
    sizes = np.bincount(part)
    come = np.zeros((len(protocol.outputs), len(people)))
    np.add.at(come.T, of_part, (protocol.matrix * sizes).T)
    come /= come.sum(axis=1, keepdims=True)
    tail, worst = ALPHA / (2 * 2 * len(people)), 0.0
    for has in (rich, ~rich):
        found, share = np.bincount(classes, has & held_out), np.bincount(classes, has) / people
        low = np.minimum(np.nan_to_num(beta.ppf(tail, found, trials - found + 1)), share)
        high = np.maximum(np.nan_to_num(beta.ppf(1 - tail, found + 1, trials - found), nan=1.0), share)
        for row in come:
            worst = max(worst, *(abs(np.log(extreme(row, people / ROWS, low, high, sign))) for sign in (1, -1)))
    assert worst <= RLIP + 1e-7
    assert worst == pytest.approx(RLIP, rel=1e-4)


def extreme(after: np.ndarray, before: np.ndarray, low: np.ndarray, high: np.ndarray, sign: int) -> float:
    """The largest, or smallest, ``after q / before q`` over ``low <= q <= high``: of t q with ``before (t q) = 1``."""
    g = len(low)
    # By variables (t q, t): t q between t low and t high.
    limits = np.block([[-np.eye(g), low[:, np.newaxis]], [np.eye(g), -high[:, np.newaxis]]])
    equal = np.append(before, 0.0)[np.newaxis]
    found = linprog(-sign * np.append(after, 0.0), limits, np.zeros(2 * g), equal, [1.0])
    assert found.status == 0
    return float(-sign * found.fun)


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        (lambda rows: None, "leakage"),
        (lambda rows: [[0] * len(row) for row in rows], "leakage"),
        (lambda rows: [row[::-1] for row in rows], "evidence"),
        (lambda rows: [[10 * number for number in row] for row in rows], "evidence"),
        (lambda rows: rows[1:], "evidence"),
        (lambda rows: [row[1:] for row in rows], "evidence"),
    ],
)
def test_evidence_of_held_out_records_that_is_changed_fails_an_audit(
    change: Callable[[list[list[int]]], object], failed: str, folder: ReleaseFolder, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(folder.root.parents[2], tmp_path / "copy"))
    copy = ReleaseFolder(root / folder.root.relative_to(folder.root.parents[2]))
    document = json.loads(copy.parts.read_bytes())
    document["held_out"] = change(document["held_out"])
    copy.parts.write_bytes(dump(document))
    assert failed in {check.name for check in recheck(copy) if not check.passed}
