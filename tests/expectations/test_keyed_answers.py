"""Answers of records with keys are derived again, by other code, and no other secret or key gives them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from funnel.errors import ReleaseRefused
from funnel.pipeline.expectations.keyed_answers import derived, key_digests, values_of_first_rows
from funnel.sampling import keyed
from funnel.sampling.keyed import RecordKey
from funnel.sampling.unit_order import first_rows
from funnel.spec import ReleaseSpec
from tests.projects import SPEC, adult_rows, make_project
from tests.releases import make_release

SECRET = bytes(range(32))
KEYS = [
    (RecordKey(("id",), SECRET), ["text"]),
    (RecordKey(("id",), SECRET, "people"), ["text"]),
    (RecordKey(("id",), SECRET, "people"), ["number"]),
    (RecordKey(("id", "b"), SECRET, "people"), ["text", "number"]),
]
TABLES = {
    ("text",): (pa.table({"id": ["", "a", "é", "7"]}), [("",), ("a",), ("é",), ("7",)]),
    ("number",): (pa.table({"id": [0, 7, -1, 2**62]}), [("0",), ("7",), ("-1",), (str(2**62),)]),
    ("text", "number"): (pa.table({"id": ["a", "ab"], "b": [-5, 5]}), [("a", "-5"), ("ab", "5")]),
}


@pytest.mark.parametrize(("key", "kinds"), KEYS)
def test_digests_and_keys_are_those_of_the_sampler(key: RecordKey, kinds: list[str]) -> None:
    table, rows = TABLES[tuple(kinds)]
    found = keyed.key_digests(table, key)
    assert [row.astype("<u8").tobytes() for row in found] == key_digests(key, rows, kinds)
    assert keyed.word_key(key, "release") == derived(key, "word", "release", 32)
    assert derived(replace(key, secret=bytes(32)[:-1] + b"x"), "word", "release", 32) != keyed.word_key(key, "release")


@pytest.mark.parametrize("on_missing", ["category", "drop"])
def test_first_rows_of_units_are_those_of_the_sampler(tmp_path: Path, on_missing: str) -> None:
    random = np.random.default_rng(8)
    units = random.integers(0, 60, 200)
    values = random.choice(["a", "b", "c", "NA"], 200)
    names = [f"unit {unit}" if unit else "NA" for unit in units]
    content = "".join(
        f"{name},{s},{x}\n" for name, s, x in zip(names, random.choice(["n", "y"], 200), values, strict=True)
    )
    (tmp_path / "rows.csv").write_text("id,s,x\n" + content, encoding="utf-8")
    spec = ReleaseSpec.parse(
        f"""
        name = "rows"
        title = "Rows"
        secret = ["s"]
        publish = ["x"]
        unit = ["id"]
        guarantee = "lip:1.0"
        [source]
        path = "rows.csv"
        missing = ["NA"]
        on_missing = "{on_missing}"
        [history]
        people = "same"
        [metadata]
        licence = "CC0-1.0"
        """,
        tmp_path / "rows.toml",
    )
    key = RecordKey(("id",), SECRET, "people")
    batch = pa.record_batch({"id": names})
    first = first_rows([batch], key, ("NA",))
    there = values[first] if on_missing == "category" else values[first][values[first] != "NA"]
    found, missing = values_of_first_rows(spec, key, ["text"])
    assert found["x"] == Counter(value for value in there if value != "NA")
    assert missing["x"] == np.count_nonzero(there == "NA")
    assert first.sum() == len({*names} - {"NA"}) > 50


def people(folder: Path, ids: pa.Array) -> Path:
    text = SPEC.replace('publish = ["relationship"]', 'publish = ["relationship"]\nrecord_key = ["id"]')
    table = adult_rows(0, 1000).append_column("id", ids)
    return make_project(folder, text + '\n[mechanism]\nname = "grr"\n', table)


IDS = {
    "text": pa.array([f"person {i * 7919 % 10007}" for i in range(1000)]),
    "number": pa.array([i * 7919 % 10007 - 5000 for i in range(1000)], pa.int32()),
}


@pytest.mark.parametrize("kind", IDS)
def test_a_release_with_record_keys_is_judged_by_them(tmp_path: Path, kind: str) -> None:
    release = make_release(people(tmp_path, IDS[kind]))
    assert "Every record has the published value that its key" in release.report.read_text()


@pytest.mark.parametrize("name", ["word_key", "_hashed"])
def test_keys_without_the_secret_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """As if the secret did not enter: an observer who knows a record's key could then undo its protection."""
    if name == "word_key":
        monkeypatch.setattr("funnel.sampling.row_words.word_key", lambda key, purpose: bytes(32))
    else:
        real = keyed._hashed
        monkeypatch.setattr(keyed, "_hashed", lambda messages, key, rows: real(messages, bytes(64), rows))
    claim = "answers" if name == "word_key" else "digests"
    with pytest.raises(ReleaseRefused, match=rf"answers by key: {claim} "):
        make_release(people(tmp_path, IDS["text"]))
