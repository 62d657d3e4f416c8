"""What an audit tells of tables of changes and rows from public files alone."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from funnel.audit.check import Result
from funnel.audit.protected import check_protected
from funnel.pipeline.flows.pipeline import run_release
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.noise import limits_of, scale_of
from funnel.release.protocol_document import ProtocolDocument
from funnel.spec import ReleaseSpec
from tests.projects import SPEC, make_project

NUMBERS = {"epsilon": 1.0, "delta": 0.0, "beta": 0.05, "spent": 2.0}
RNG = np.random.default_rng(2)


def drawn(table: np.ndarray, scale: float) -> list[list[int]]:
    success = -math.expm1(-1 / scale)
    shape = table.shape
    return (table + RNG.geometric(success, shape) - RNG.geometric(success, shape)).tolist()


def frequencies(rows: bool = False) -> dict[str, Any]:
    """A second version of some hundred people, of whom most were in the first and are what they were."""
    counts = np.array([[200, 100, 50], [90, 120, 60]])
    stayed, left = counts * 6 // 10, counts // 10
    parts = 0.5 if rows else 0.75
    secrets = np.diag((stayed + left).sum(axis=1))
    cells, totals = limits_of(scale_of(parts), Fraction(0.05), 2, 3)
    block = {"epsilon": 0.25, "scale": 8.0}
    said: dict[str, Any] = {
        "schema": "funnel/frequencies/2",
        "protection": "noise",
        **NUMBERS,
        "epsilon_counts": parts,
        "scale": scale_of(parts),
        "cells_within": cells,
        "totals_within": totals,
        "secret": {"columns": ["ill"], "symbols": [["no"], ["yes"]]},
        "inputs": {"columns": ["town"], "symbols": [["a"], ["b"], ["c"]]},
        "noisy": drawn(counts, scale_of(parts)),
        "changes": {
            **block,
            "since": [
                {
                    "version": "people/1.0.0",
                    "secrets": drawn(secrets, 8.0),
                    "stayed": drawn(stayed, 8.0),
                    "left": drawn(left, 8.0),
                }
            ],
        },
        "rows": None,
        "means": None,
        "departures": None,
        "impossible": None,
    }
    if rows:
        second = counts // 4
        sizes = [int(counts.sum() - 2 * second.sum()), 2 * int(second.sum()), *[0] * 98]
        told = {"stayed": drawn(second, 8.0), "left": drawn(second, 8.0), "sizes": drawn(np.array([sizes]), 8.0)[0]}
        said["rows"] = {**block, **told}
    return said


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> ProtocolDocument:
    """A protocol that says the same numbers of its noise."""
    text = SPEC.replace("[source]", '[mechanism]\nname = "grr"\n\n[source]', 1)
    told, _ = run_release(ReleaseSpec.load(make_project(tmp_path_factory.mktemp("plain"), text)), False, False)
    found = ProtocolDocument.read(Path(told["folder"]) / "protocol.json")
    said = found.frequencies.model_copy(update={**NUMBERS, "protection": "noise"})
    return found.model_copy(update={"frequencies": said})


def checked(said: dict[str, Any], document: ProtocolDocument) -> Result:
    public = PublicFrequencies.parse(json.dumps(said))
    privacy, columns = {"frequencies": NUMBERS}, SimpleNamespace(classes=None)
    named = {"name": "panel", "version": "1.2.0"}
    return check_protected(SimpleNamespace(noisy=public, document=document, privacy=privacy, columns=columns, **named))


@pytest.mark.parametrize("rows", [False, True])
def test_tables_with_noise_as_it_is_said_pass(document: ProtocolDocument, rows: bool) -> None:
    check = checked(frequencies(rows), document)
    assert check.passed, check.detail


def _thrice(said: dict[str, Any]) -> None:
    since = said["changes"]["since"][0]
    since["stayed"] = [[3 * n for n in row] for row in since["stayed"]]


def _of_more(said: dict[str, Any]) -> None:
    said["changes"]["since"] *= 3
    for number, since in enumerate(said["changes"]["since"]):
        said["changes"]["since"][number] = {**since, "version": f"people/1.{number}.0"}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda said: said["changes"].update(scale=4.0), "not the least one"),
        (lambda said: said["changes"].update(epsilon=0.3, scale=2 / 0.3), "is not split"),
        (lambda said: said["rows"].update(epsilon=0.2, scale=10.0), "is not split"),
        (lambda said: said.update(changes=None), "is not split"),
        (lambda said: said["changes"]["since"][0].update(secrets=[[1], [2]]), "do not lead to its values"),
        (lambda said: said["rows"].update(sizes=[3]), "100 rows"),
        (_thrice, "not of the same people"),
        (_of_more, "not of the same people"),
        (lambda said: said["rows"].update(stayed=[[900] * 3] * 2), "not of the same people"),
    ],
)
def test_tables_that_are_not_as_they_are_said_to_be_fail(
    document: ProtocolDocument, change: Callable[[dict[str, Any]], object], complaint: str
) -> None:
    said = frequencies(rows=True)
    change(said)
    check = checked(said, document)
    assert check.failed
    assert complaint in check.detail


def test_parts_beyond_the_whole_fail(document: ProtocolDocument) -> None:
    said = frequencies()
    said["epsilon"] = 0.9
    assert "do not follow each other" in checked(said, document).detail
