"""Weights for people without Python: they undo the channel, are judged by that, and are what R and pandas take."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel import LIP, Joint, Protocol, estimate, fit
from funnel.alphabet import Alphabet
from funnel.estimation.linear import aimed_weights
from funnel.recount.estimator import estimator_complaints
from funnel.release.csv_cells import guarded
from funnel.release.handouts import documentation
from funnel.release.handouts.channel_tables import estimator_table
from funnel.release.layout import ReleaseFolder
from funnel.rounding import integer_weights


def told_of(protocol: Protocol, prior: list[float] | None = None) -> dict[str, Any]:
    """What of protocol.json matters here."""
    inputs, outputs = protocol.inputs, protocol.outputs
    shares = prior if prior is not None else [1 / len(inputs)] * len(inputs)
    return {
        "inputs": {"columns": list(inputs.columns), "symbols": [list(symbol) for symbol in inputs.symbols]},
        "outputs": {"columns": list(outputs.columns), "symbols": [list(symbol) for symbol in outputs.symbols]},
        "denominator": str(int(protocol.weights[:, 0].sum())),
        "weights": [[str(int(weight)) for weight in row] for row in protocol.weights],
        "prior": {
            "columns": list(inputs.columns),
            "symbols": [list(symbol) for symbol in inputs.symbols],
            "probabilities": shares,
        },
    }


def complaints(text: str, document: dict[str, Any]) -> list[str]:
    return list(estimator_complaints(text.encode(), document))


@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=2, max_size=4), st.data())
def test_weights_undo_every_channel_and_the_judge_agrees(rows: list[list[int]], data: st.DataObject) -> None:
    matrix = np.array(rows, dtype=float) + 1e-3
    weights = integer_weights(matrix / matrix.sum(axis=0))
    inputs = Alphabet(("x",), (("a",), ("b",), ("c",)))
    outputs = Alphabet(("x",), tuple((f"y{y}",) for y in range(len(rows))))
    protocol = Protocol(weights, weights[:, 0], inputs, outputs, "test", "lip:9")
    document = told_of(protocol)
    text = estimator_table(document)
    assert complaints(text, document) == []
    lines = list(csv.DictReader(io.StringIO(text)))
    shares = np.array(data.draw(st.lists(st.integers(1, 9), min_size=3, max_size=3)), dtype=float)
    shares /= shares.sum()
    seen = dict(zip((symbol[0] for symbol in outputs.symbols), protocol.matrix @ shares, strict=True))
    for x, value in enumerate("abc"):
        parts = [float(line["weight"]) * seen[line["published x"]] for line in lines if line["true x"] == value]
        if parts:
            size = sum(abs(float(line["weight"])) for line in lines if line["true x"] == value)
            # Nine digits of a weight are off by at most half a unit of the ninth: 5e-9 of it, where it begins with 1.
            assert sum(parts) == pytest.approx(shares[x], abs=5.001e-9 * size)


def test_a_value_that_hardly_occurs_does_not_keep_others_from_being_told() -> None:
    weights = integer_weights(np.array([[0.75, 0.25, 0.5], [0.25, 0.75, 0.5]]))
    inputs = Alphabet(("x",), (("a",), ("b",), ("Other",)))
    protocol = Protocol(weights, weights[:, 0], inputs, Alphabet(("x",), (("a",), ("b",))), "test", "lip:9")
    assert len(estimator_table(told_of(protocol, [0.4, 0.4, 0.2])).splitlines()) == 1
    document = told_of(protocol, [0.5, 0.499, 0.001])
    text = estimator_table(document)
    lines = list(csv.DictReader(io.StringIO(text)))
    assert [line["weight"] for line in lines if line["true x"] == "Other"] == ["0.001", "0.001"]
    seen = {"a": 0.75 * 0.3 + 0.25 * 0.699 + 0.0005, "b": 0.25 * 0.3 + 0.75 * 0.699 + 0.0005}
    found = {
        value: sum(float(line["weight"]) * seen[line["published x"]] for line in lines if line["true x"] == value)
        for value in ("a", "b", "Other")
    }
    assert found == pytest.approx({"a": 0.3, "b": 0.699, "Other": 0.001})
    assert complaints(text, document) == []


def test_values_that_are_rare_are_left_open_where_others_are_not_told_by_that() -> None:
    # "a" and "b" have the same answers: whatever "Other" has, they stay one.
    weights = integer_weights(np.array([[0.75, 0.75, 0.5], [0.25, 0.25, 0.5]]))
    inputs = Alphabet(("x",), (("a",), ("b",), ("Other",)))
    protocol = Protocol(weights, weights[:, 0], inputs, Alphabet(("x",), (("a",), ("b",))), "test", "lip:9")
    document = told_of(protocol, [0.5, 0.499, 0.001])
    lines = list(csv.DictReader(io.StringIO(estimator_table(document))))
    assert {line["true x"] for line in lines} == {"Other"}
    assert {line["weight"] for line in lines} != {"0.001"}


def test_tables_that_would_take_too_long_have_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    document = told_of(GRR)
    lines = estimator_table(document).splitlines()
    monkeypatch.setattr(sys.modules[estimator_table.__module__], "LARGEST", 3 * 3 * 3 - 1)
    assert estimator_table(document).splitlines() == lines[:1]


JOINT = Joint.from_counts([[300, 60, 40], [100, 300, 200]], secret=["s", "t"], inputs=["=1+1", "v", "w"])
GRR = replace(fit("grr", JOINT, LIP(0.5)), outputs=JOINT.inputs)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"v","v",', '"v","v",1', "do not give it back"),
        ('"true ', '"', "other columns"),
        ('"v","w"', '"v","x"', "no table"),
        ('"w","w"', '"w","v"', "twice, out of order"),
        ("1.3", "nan 1.3", "no table"),
        ("1.3", "inf,1.3", "no table"),
    ],
)  # fmt: skip
def test_the_judge_notices_what_is_wrong(old: str, new: str, said: str) -> None:
    document = told_of(GRR)
    text = estimator_table(document)
    assert complaints(text, document) == []
    assert old in text
    (complaint,) = complaints(text.replace(old, new, 1), document)
    assert said in complaint


@pytest.mark.parametrize(
    "hide",
    [
        lambda text: re.sub(r"[0-9]$", lambda m: str(9 - int(m[0])), text, flags=re.M),
        lambda text: re.sub(r",(-?)([0-9.]+)$", r",\1\g<2>0", text, flags=re.M),
        lambda text: re.sub(r",(-?)([0-9.]+)$", lambda m: f",{m[1]}{float(m[2]) * (1 + 3e-9)!r}", text, flags=re.M),
        lambda text: re.sub(r",(-?)([0-9.]+)$", lambda m: f",{m[1]}{float(m[2]) * (1 + 5e-8):.9g}", text, flags=re.M),
        lambda text: text.replace('"v"', "v"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text + "\n",
    ],
    ids=["last digits", "zeros after them", "further digits", "the eighth digit", "quotes", "ends of lines", "a line"],
)
def test_nothing_is_hidden_in_how_weights_are_written(hide: Callable[[str], str]) -> None:
    document = told_of(GRR)
    text = estimator_table(document)
    assert hide(text) != text
    assert len(complaints(hide(text), document)) == 1


def test_the_judge_notices_a_value_that_is_left_out_and_one_that_is_taken_as_given_though_common() -> None:
    document = told_of(GRR)
    head, *lines = estimator_table(document).splitlines(keepends=True)
    without = [line for line in lines if not line.startswith('"v"')]
    assert complaints(head + "".join(without), document) == ["a value that the records can tell is missing"]
    share = document["prior"]["probabilities"][1]
    constant = [
        f"{line.rsplit(',', 1)[0]},{share!r}\n" if line.startswith('"v"') else line for line in lines
    ]  # fmt: skip
    assert "do not give it back" in complaints(head + "".join(constant), document)[0]


def test_the_judge_notices_weights_that_are_best_for_other_shares() -> None:
    # With more outputs than values many weights undo the channel; those by the true shares would tell of them.
    weights = integer_weights(np.array([[0.5, 0.1], [0.3, 0.3], [0.2, 0.6]]))
    inputs = Alphabet(("x",), (("a",), ("b",)))
    protocol = Protocol(weights, weights[:, 0], inputs, Alphabet(("x",), (("u",), ("v",), ("w",))), "test", "lip:9")
    document, channel = told_of(protocol), protocol.matrix / protocol.matrix.sum(axis=0)
    outputs = channel @ np.array([0.9, 0.1])
    best, _ = aimed_weights(channel, outputs, np.array([0.5, 0.5]), np.eye(2))
    assert np.allclose(best @ channel, np.eye(2))
    head = estimator_table(document).splitlines()[0]
    lines = [f'"{x}","{y}",{float(best[i, j])!r}' for i, x in enumerate("ab") for j, y in enumerate("uvw")]
    (complaint,) = complaints("\n".join([head, *lines, ""]), document)
    assert "least squares with all values alike" in complaint


def test_a_release_has_the_weights_that_follow_from_its_protocol_alone(published: ReleaseFolder) -> None:
    document = json.loads(published.protocol.read_bytes())
    kept = {key: document[key] for key in ("inputs", "outputs", "denominator", "weights", "prior")}
    text = published.estimator.read_text()
    assert text == estimator_table(kept)
    assert len(text.splitlines()) > 1
    assert complaints(text, kept) == []


@pytest.fixture(scope="module")
def folder(published: ReleaseFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Released records as csv, README.md and estimator.csv."""
    root = tmp_path_factory.mktemp("release")
    package, protocol = (json.loads(path.read_bytes()) for path in (published.package, published.protocol))
    told = documentation(package, {**protocol, **told_of(GRR)})
    for name in ("README.md", "estimator.csv"):
        (root / name).write_bytes(told[name])
    column = GRR.outputs.columns[0]
    texts = [symbol[0] for symbol, n in zip(GRR.outputs.symbols, (390, 365, 245), strict=True) for _ in range(n)]
    (root / "data").mkdir()
    with (root / "data" / "records.csv").open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([[column], *([guarded(text)] for text in texts)])
    pq.write_table(pa.table({column: texts}), root / "data" / "records.parquet")
    return root


@pytest.mark.parametrize("language", ["python", "r"])
def test_what_the_readme_says_runs_and_estimates(folder: Path, language: str) -> None:
    code = (folder / "README.md").read_text().split(f"```{language}\n")[1].split("```")[0]
    program = [sys.executable, "-c", code] if language == "python" else [str(shutil.which("Rscript")), "-e", code]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = estimate(np.array([390, 365, 245]), GRR, method="inverse").frequencies
    numbers = [float(word) for word in done.stdout.replace("'=1+1", "").split() if word.replace(".", "").isdigit()]
    assert numbers == pytest.approx(expected.tolist(), abs=1e-6)
