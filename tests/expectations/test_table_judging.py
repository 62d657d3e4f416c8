"""Somebody who has a released table and its protocol.json, and nothing else, can judge them and see what was judged."""

from __future__ import annotations

import html
import json
import re
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.alphabet import Alphabet
from funnel.errors import DataError
from funnel.pipeline.expectations import TableEvidence, data_docs, judge_table
from funnel.pipeline.expectations.custom.stated_law import ExpectOutputsToFollowStatedLaw
from funnel.pipeline.expectations.table_judging import StatedEvidence
from funnel.protocol import DENOMINATOR, Protocol
from funnel.release.layout import ReleaseFolder
from tests.projects import SPEC, make_project
from tests.releases import make_release

LAW = "expect_outputs_to_follow_stated_law"


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    text = SPEC + '\n[mechanism]\nname = "grr"\n'
    return make_release(make_project(tmp_path_factory.mktemp("table"), text))


@pytest.fixture
def alone(released: ReleaseFolder, tmp_path: Path) -> Path:
    """A folder with a copy of the two files."""
    shutil.copy(released.data, tmp_path / "t.parquet")
    shutil.copy(released.protocol, tmp_path / "p.json")
    return tmp_path


def judged(folder: Path) -> dict[str, str]:
    verdict = judge_table(folder / "t.parquet", folder / "p.json")
    return {result.name: str(result.failure) for result in verdict.failed}


def test_a_released_table_passes_by_its_protocol_alone(alone: Path) -> None:
    assert judge_table(str(alone / "t.parquet"), str(alone / "p.json")).sentence() == "all 7 expectations hold"


def test_true_values_instead_of_drawn_ones_are_seen(alone: Path, released: ReleaseFolder) -> None:
    """The source's own column: each category and type is right, and only the frequencies give it away."""
    source = pq.read_table(released.root.parents[2] / "people.parquet", columns=["relationship"])
    (column,) = pq.read_table(alone / "t.parquet").columns
    names = column.combine_chunks().dictionary
    plain = {name.split(" or ")[0]: i for i, name in enumerate(names.to_pylist())}
    codes = [plain[value] for value in source.column(0).to_pylist()]
    values = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), names)
    pq.write_table(pa.table({"relationship": values}), alone / "t.parquet")
    assert set(judged(alone)) == {LAW}


def test_files_that_do_not_belong_together_are_refused(alone: Path) -> None:
    content = json.loads((alone / "p.json").read_text())
    content["weights"][0][0] = str(int(content["weights"][0][0]) - 1)
    (alone / "p.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match="protocol"):
        judged(alone)
    with pytest.raises(DataError, match="is missing"):
        judge_table(alone / "t.parquet", alone / "none.json")


def test_a_table_that_cannot_be_read_fails_everything(alone: Path) -> None:
    (alone / "t.parquet").write_bytes(b"PAR1")
    found = judged(alone)
    assert len(found) == 7
    assert all("cannot be read back as parquet" in words for words in found.values())


@pytest.mark.parametrize(
    ("shares", "law"),
    [
        # To steps of 0.05: 3/4 of 0.25 and 1/4 of 0.75, each by half a step less or more.
        ((0.25, 0.75), [(0.35, 0.4), (0.6, 0.65)]),
        # A share of one step may be of a single record, and one of zero is of none.
        ((0.05, 0.95), [(0.25 * 0.925, 0.75 * 0.075 + 0.25 * 0.975), (0.75 * 0.925, 0.25 * 0.075 + 0.75 * 0.975)]),
        ((0.0, 1.0), [(0.25 * 0.75, 0.25 * 1.25), (0.75 * 0.75, 0.75 * 1.25)]),
    ],
)
def test_the_stated_law_is_what_rounded_shares_leave_open(
    shares: tuple[float, float], law: list[tuple[float, float]]
) -> None:
    inputs, quarter = Alphabet(("x",), (("u",), ("v",))), DENOMINATOR // 4
    weights = np.array([[3 * quarter, quarter], [quarter, 3 * quarter]], dtype=np.uint64)
    protocol = Protocol(weights, np.array([2 * quarter] * 2, dtype=np.uint64), inputs, inputs)
    prior = SimpleNamespace(columns=inputs.columns, symbols=inputs.symbols, probabilities=shares)
    document: Any = SimpleNamespace(protocol=protocol, prior=prior)
    found = StatedEvidence.of(Path("t.parquet"), document).law
    assert found is not None
    np.testing.assert_allclose(found, law, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 100, 10**8])
def test_the_law_of_outputs_is_held_to_what_chance_allows(n: int) -> None:
    expectation = ExpectOutputsToFollowStatedLaw(
        labels=["a", "b"], least=[0.3, 0.6], most=[0.4, 0.7], significance=1e-9
    )

    def found(first: int) -> str | None:
        return expectation.find([{"output": 0, "records": first}, {"output": 1, "records": n - first}]).failure

    for share in (0.3, 0.35, 0.4):
        assert found(round(share * n)) is None
    # Not even ten standard deviations beyond are believed, where there are enough records to tell.
    if n > 1000:
        reach = 10 * int(np.sqrt(0.24 * n))
        for first in (int(0.3 * n) - reach, int(0.4 * n) + reach, 0, n):
            assert str(found(first)).endswith("not as often as the protocol gives them: a, b")


def test_pages_say_in_sentences_what_was_expected_and_found(
    alone: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    # Folders above it are made too.
    pages = tmp_path / "some" / "pages"
    verdict = judge_table(alone / "t.parquet", alone / "p.json", pages)
    texts = {path.stem: plain(path.read_text()) for path in pages.iterdir()}
    assert verdict.passed
    assert set(texts) == {"index", "file", "columns", "categories", "outputs"}
    for result in verdict.results:
        assert result.description in texts["index"]
        assert any(result.description in text for name, text in texts.items() if name != "index")
    assert "all 7 expectations hold" in texts["index"]
    for path in pages.iterdir():
        page = path.read_text()
        assert "default-src 'none'" in page
        assert not re.search(r"""<script|(src|href)=["']?https?:|url\(["']?https?:""", page)


def plain(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<style.*?</style>", "", page, flags=re.S))).split())


def test_names_are_no_markup_on_any_page(alone: Path, tmp_path: Path) -> None:
    name = "=$a ${b} <script>alert(1)</script>"
    protocol = Protocol.from_json((alone / "p.json").read_text())
    named = replace(protocol, outputs=Alphabet((name,), protocol.outputs.symbols))
    verdict = data_docs(TableEvidence(alone / "t.parquet", named), tmp_path / "pages")
    assert not verdict.passed
    for path in (tmp_path / "pages").iterdir():
        assert "<script" not in path.read_text()
        assert path.stem in ("file", "outputs") or name in plain(path.read_text())


def with_null(table: pa.Table) -> pa.Table:
    column = table.column(0).combine_chunks()
    indices = pa.array([None, *column.indices.to_pylist()[1:]], column.indices.type)
    return pa.table({table.column_names[0]: pa.DictionaryArray.from_arrays(indices, column.dictionary)})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (with_null, "1 column with nulls: 'relationship' has 1 null"),
        (lambda table: table.rename_columns(["=$a ${b} <script>"]), "column too many: '=$a ${b} <script>'"),
    ],
)
def test_pages_say_by_how_much_an_expectation_fails(
    alone: Path, tmp_path: Path, change: Callable[[pa.Table], pa.Table], words: str
) -> None:
    pq.write_table(change(pq.read_table(alone / "t.parquet")), alone / "t.parquet")
    protocol = Protocol.from_json((alone / "p.json").read_text())
    verdict = data_docs(TableEvidence(alone / "t.parquet", protocol), tmp_path / "pages")
    assert not verdict.passed
    assert words in plain((tmp_path / "pages" / "index.html").read_text())
    page = (tmp_path / "pages" / "columns.html").read_text()
    assert words in plain(page)
    assert "<script" not in page
