"""Weighted shares from the files of a release: values that hardly occur keep nothing from being told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel import LIP, Alphabet, Joint, Protocol
from funnel.analysis import weighted
from funnel.analysis.weighted import estimate_release_weighted, weight_classes
from funnel.errors import DataError, SpecError
from funnel.protocol import DENOMINATOR
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import protocol_document
from funnel.release.public_weighted import ClassWeights, public_weighted
from tests.projects import spec_of
from tests.public import UNPROTECTED, public_of

SYMBOLS = (("a", "low"), ("a", "high"), ("b", "low"), ("b", "high"))
CLASSES = {"low": [0, 2], "high": [2, 4]}


def release(
    root: Path, counts: list[list[int]], symbols: tuple[tuple[str, str], ...], columns: np.ndarray
) -> ReleaseFolder:
    """Records of the first four symbols, as the true ones become on average."""
    joint = Joint.from_counts(counts, inputs=Alphabet(("x", "weight"), symbols))
    rows = np.array([[int(weight * DENOMINATOR) for weight in row] for row in columns], dtype=np.uint64)
    outputs = replace(joint.inputs, symbols=SYMBOLS)
    marginal = np.full(4, DENOMINATOR // 4, dtype=np.uint64)
    protocol = Protocol(rows, marginal, joint.inputs, outputs, "given", "lip:8.0")
    folder = ReleaseFolder(root)
    document = protocol_document(protocol, LIP(8.0), public_of(joint, protocol, LIP(8.0)), UNPROTECTED)
    folder.protocol.write_bytes(document.to_bytes())
    drawn = np.rint(columns @ np.array(counts).sum(axis=0)).astype(int)
    published = [symbol for symbol, n in zip(SYMBOLS, drawn.tolist(), strict=True) for _ in range(n)]
    folder.data.parent.mkdir()
    pq.write_table(pa.table(dict(zip(("x", "weight"), zip(*published, strict=True), strict=True))), folder.data)
    numbers = {"surveyWeight": True, "intervals": CLASSES, "means": {"low": 1, "high": 3}}
    fields = [{"name": "x"}, {"name": "weight", "funnel:numbers": numbers}]
    folder.package.write_text(json.dumps({"resources": [{"schema": {"fields": fields}}]}))
    return folder


# Answers that are true three times in four, and a fifth value that is published like all.
TOLD = np.full((4, 4), 1 / 8) + np.eye(4) / 2
FIFTH = np.full((4, 1), 0.25)


@pytest.mark.parametrize("people", [2, 3_000])
def test_a_fifth_value_keeps_others_from_being_told_unless_it_is_published_as_rare(tmp_path: Path, people: int) -> None:
    counts = [[3_000, 1_000, 2_000, 500, people // 2], [1_000, 1_000, 2_000, 1_500, people // 2]]
    folder = release(tmp_path, counts, (*SYMBOLS, ("c", "low")), np.hstack([TOLD, FIFTH]))
    found = estimate_release_weighted(folder, "x")
    told = dict(zip((cell[0] for cell in found.cells), found.errors, strict=True))
    assert np.isnan([told["a"], told["b"]]).tolist() == [people > 2] * 2
    if people == 2:
        place = found.cells.index(("a",))
        assert found.lower[place] < (4_000 + 3 * 2_000) / (8_000 + 3 * 4_000) < found.upper[place]


def test_where_rare_values_are_all_there_are_or_help_nothing_it_stays_open(tmp_path: Path) -> None:
    # Both values of x are answered alike: what is rare settles classes of weights, not values.
    alike = np.hstack([TOLD[:, :2], TOLD[:, :2], FIFTH])
    counts = [[3_000, 1_000, 2_000, 500, 1], [1_000, 1_000, 2_000, 1_500, 1]]
    found = estimate_release_weighted(release(tmp_path, counts, (*SYMBOLS, ("c", "low")), alike), "x")
    assert np.isnan(found.errors[: len(found.cells) - 1]).all()


def test_a_release_that_tells_everything_is_asked_once(tmp_path: Path) -> None:
    counts = [[3_000, 1_000, 2_000, 500], [1_000, 1_000, 2_000, 1_500]]
    found = estimate_release_weighted(release(tmp_path, counts, SYMBOLS, TOLD))
    assert np.isfinite(found.errors).all()


def test_a_damaged_package_is_one_sentence(tmp_path: Path) -> None:
    folder = ReleaseFolder(tmp_path)
    folder.package.write_text('{"resources": [')
    with pytest.raises(DataError, match=r"data package of .* cannot be read"):
        weight_classes(folder)


def test_without_weights_there_are_no_weighted_frequencies() -> None:
    assert ClassWeights.of(spec_of("t.csv", ".")) is None
    assert public_weighted(Joint.from_counts([[30, 10], [10, 30]]), None) is None


def test_whole_records_are_not_weighted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ReleaseFolder(tmp_path)
    folder.classes.write_text("{}")
    monkeypatch.setattr(weighted, "weight_classes", lambda _: ("weight", {}))
    with pytest.raises(SpecError, match="not weighted of whole records"):
        weighted.estimate_release_weighted(folder)
