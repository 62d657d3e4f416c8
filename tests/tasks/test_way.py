"""The whole way without the orchestrator: record keys and their secret, warnings, and what is not worth a draw."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from funnel.errors import InfeasibleGuarantee, LedgerError, ReleaseRefused, SpecError
from funnel.pipeline.flows.answer import silent
from funnel.pipeline.flows.look import look
from funnel.pipeline.flows.pipeline import run_release
from funnel.pipeline.tasks import optimise as optimise_module
from funnel.pipeline.tasks.secret_blocks import read_secret_block
from funnel.pipeline.tasks.step import listening
from funnel.release.layout import ReleaseFolder, find_release
from funnel.release.secret import FILE, NEXT
from funnel.release.verdict import Verdict
from funnel.sampling.row_words import FreshWords
from funnel.spec import ReleaseSpec
from tests import chance
from tests.projects import PLAIN, adult_rows, make_project

KEYED = PLAIN.replace('publish = ["relationship"]', 'publish = ["relationship"]\nrecord_key = ["id"]')


def people(folder: Path) -> Path:
    ids = pa.array([f"person {i * 7919 % 10007}" for i in range(3000)])
    return make_project(folder, KEYED, adult_rows().append_column("id", ids))


def gone(spec: Path, again: bool = False, rotate: bool = False) -> dict[str, Any]:
    return run_release(ReleaseSpec.load(spec), again, rotate)[0]


def test_answers_stay_until_the_secret_is_rotated(tmp_path: Path) -> None:
    spec = people(tmp_path)
    work = tmp_path / ".funnel" / "people"

    def rows(told: dict[str, Any]) -> bytes:
        return (Path(told["folder"]) / "data" / "records.parquet").read_bytes()

    first = gone(spec)
    secret = (work / FILE).read_text()
    assert first["fresh"]
    assert (look(ReleaseSpec.load(spec)) or {})["version"] == "1.0.0"
    again = gone(spec, again=True)
    assert (again["drawn"], again["fresh"]) == (True, False)
    assert rows(again) == rows(first)
    assert (work / FILE).read_text() == secret
    rotated = gone(spec, rotate=True)
    assert (rotated["drawn"], rotated["fresh"]) == (True, True)
    assert chance.of_equal_releases(find_release(Path(first["folder"]))) < 1e-9
    assert rows(rotated) != rows(first)
    # The new secret is the secret now, and nothing of a run is left.
    assert (work / FILE).read_text() != secret
    assert not (work / NEXT).exists()
    assert not (work / "rows").exists()
    assert len(list((work / "snapshots").iterdir())) == 1
    assert (look(ReleaseSpec.load(spec)) or {})["version"] == rotated["version"]
    (work / FILE).write_text(secret)
    with pytest.raises(LedgerError, match="is not the one that the newest version was drawn with"):
        look(ReleaseSpec.load(spec))


def test_there_is_no_secret_to_rotate_without_record_keys(tmp_path: Path) -> None:
    spec = make_project(tmp_path, PLAIN)
    with pytest.raises(SpecError, match="names no record_key"):
        gone(spec, rotate=True)
    assert gone(spec)["version"] == "1.0.0"


def test_doubts_about_the_estimate_are_told_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funnel.pipeline.flows.pipeline.doubts", lambda joint, guarantee: ("a doubt", "another"))
    heard: list[str] = []
    with listening(lambda what, done, total: heard.append(what)):
        told, _ = run_release(ReleaseSpec.load(make_project(tmp_path, PLAIN)), False, False)
    assert told["warnings"] == ["a doubt", "another"]
    assert [what for what in heard if what in ("warning: a doubt", "warning: another")] == [
        "warning: a doubt",
        "warning: another",
    ]


def test_a_draw_that_would_be_of_no_use_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimise_module, "too_few", lambda *_: "the data are too few")
    spec = make_project(tmp_path, PLAIN)
    for _ in range(2):
        # Nor is it kept as a result.
        with pytest.raises(InfeasibleGuarantee, match="the data are too few"):
            gone(spec)
    assert list((tmp_path / "releases" / "people").iterdir()) == []


def test_a_search_that_time_ended_says_so_beside_what_the_data_are_blamed_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose = optimise_module.choose
    monkeypatch.setattr(optimise_module, "too_few", lambda *_: "the data are too few")
    monkeypatch.setattr(optimise_module, "choose", lambda rows: replace(choose(rows), finished=False))
    with pytest.raises(InfeasibleGuarantee, match="too few; the search had not ended either"):
        gone(make_project(tmp_path, PLAIN))


def test_the_vault_knows_files_and_the_environment_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNNEL_TEST_SECRET", "a phrase")
    assert read_secret_block("environment:FUNNEL_TEST_SECRET") == "a phrase"
    (tmp_path / "secret").write_text("another")
    (tmp_path / "secret").chmod(0o600)
    assert read_secret_block(str(tmp_path / "secret")) == "another"


def test_the_drawing_of_every_version_is_judged_and_its_words_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = make_project(tmp_path, PLAIN)

    def seeded(self: FreshWords, use: str, count: int) -> Any:
        # Of one seed, for which nothing here depends on chance.
        generator = self.__dict__.setdefault(use, np.random.default_rng(len(use)))
        return generator.integers(0, 2**64, count, dtype=np.uint64)

    with monkeypatch.context() as patch:
        patch.setattr(FreshWords, "_words", seeded)
        first = ReleaseFolder(Path(gone(spec)["folder"]))
        # Good words, in one partition: nothing shows before they are used again.
        with pytest.raises(ReleaseRefused, match="words that rows were drawn with were used in an earlier version"):
            gone(spec, again=True)
    judged = {one.name for one in Verdict.read(first.verdict).results}
    assert judged >= {"drawn by input", "random order", "random words", "sampler", "draws"}
    # Whatever these words were: rows that are taken over were judged when they were drawn.
    spec.write_text(spec.read_text().replace("People of a test", "The same people"))
    assert not gone(spec)["drawn"]
    assert gone(spec, again=True)["drawn"]


@pytest.mark.parametrize(
    ("typical", "warns"),
    [
        ((), ""),
        ((0.1, 0.2), ""),
        ((0.1, None), "no share of any value of c1 "),
        ((None,), "no share can be"),
        ((None, None), "no share can be"),
    ],
)
def test_a_release_that_tells_no_share_says_so_where_it_is_made(typical: tuple[float | None, ...], warns: str) -> None:
    # Of two columns together some combination may be told where no value of either is.
    alone = [{"columns": [f"c{k}"], "typical": e} for k, e in enumerate(typical)]
    said = silent([*alone, {"columns": ["c0", "c1"], "typical": 0.1}])
    assert [warns in one for one in said] == [True] * bool(warns)
