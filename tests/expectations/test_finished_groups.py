"""A finished folder of groups is judged file by file: whatever is forged, the right claim says so, and only that."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from funnel.pipeline.expectations.finished_groups import FinishedGroups
from funnel.release.document import dump
from funnel.release.grouped_report import GroupedReport
from funnel.release.layout import ReleaseFolder
from funnel.release.snapshot import take_snapshot
from funnel.report.grouped import render_grouped
from funnel.sampling import RecordKey
from funnel.spec import ReleaseSpec
from tests.groups import asked, grouped_release, redigested
from tests.projects import make_project
from tests.sabotage.scenes import KEYED_GROUPS

Change = Callable[[dict[str, Any]], Any]
REPORT = "expect_report_to_follow_recount"


@pytest.fixture(scope="module")
def honest() -> FinishedGroups:
    folder = grouped_release()
    project = folder.root.parents[2]
    spec = ReleaseSpec.load(project / "people.toml")
    snapshot = take_snapshot(spec, project / ".funnel" / "people", None, lambda *_: None)
    return FinishedGroups(spec, folder, "1.0.0", snapshot)


@pytest.fixture
def finished(honest: FinishedGroups, tmp_path: Path) -> FinishedGroups:
    """A copy of it that may be forged."""
    root = tmp_path / "incoming"
    shutil.copytree(honest.folder.root, root)
    # What is signed was judged before.
    ReleaseFolder(root).signature.unlink()
    return replace(honest, folder=ReleaseFolder(root))


def failures(finished: FinishedGroups, table: str) -> dict[str, str]:
    """Claims of one table that do not hold."""
    lines = finished.table(table).to_dict("records")
    return {line["claim"]: line["failure"] for line in lines if isinstance(line["failure"], str)}


def edit(path: Path, change: Change) -> None:
    content = json.loads(path.read_bytes())
    change(content)
    path.write_bytes(dump(content))


def test_a_whole_folder_meets_everything(finished: FinishedGroups) -> None:
    assert asked(finished).failed == ()


def test_what_is_not_expected_cannot_be_asked_for(finished: FinishedGroups) -> None:
    with pytest.raises(ValueError, match="nothing called expect_report_to_follow_recounts is expected"):
        asked(finished, "expect_report_to_follow_recounts")


def test_a_crash_is_no_refusal_and_evidence_that_is_gone_is_one(
    finished: FinishedGroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished.folder.numbers.write_text("{")
    (failed,) = asked(finished, REPORT).failed
    assert failed.failure == "its evidence could not be gathered: report.json is not JSON"
    monkeypatch.setattr(FinishedGroups, "_report", lambda self: [][0])
    with pytest.raises(IndexError):
        asked(finished, REPORT)


def _put(*way: str | int, value: Any) -> Change:
    """Set what is at a place, or change it by a function."""

    def changed(content: dict[str, Any]) -> None:
        *steps, last = way
        part: Any = content
        for step in steps:
            part = part[step]
        new = value(part[last]) if callable(value) else value
        assert part[last] != new
        part[last] = new

    return changed


def _example(kind: str, /, **changes: Any) -> Change:
    def changed(content: dict[str, Any]) -> None:
        (one,) = [one for one in content["texts"] if one["kind"] == kind]
        one.update(changes)

    return changed


LOWER = {"level": 0.4, "level_factor": 1.5}
NOISE = {
    **{"protection": "noise", "epsilon": 1.0, "spent": 1.0, "beta": 1e-6, "covers_noise": True, "delta": 0.0},
    "unprotected": 0,
}
RULES = {"dominance": 0.95, "minimum_cell": 10, "unique_share": 0.0}
# What is forged, the claim that says so, and how.
REPORTED: list[tuple[Change, str, str]] = [
    (_put("title", value="Another"), "texts", "title is 'Another' instead of 'People of a test'"),
    (_put("made_for", value=500), "texts", "made_for is 500 instead of 50"),
    (_put("guarantee", value="lip:0.5"), "bound", "is 'lip:0.5', which is not the bound of the spec"),
    (_put("judged", value=lambda told: told[1:]), "checks", "are not those that the release is judged by"),
    (
        _put("figures", value=lambda told: told | LOWER),
        "level",
        "the level is 0.4, which is less than the protocol leaks",
    ),
    (_put("groups", 1, "columns", value=["race", "age"]), "groups", "they are not those of the protocol"),
    (_put("groups", value=lambda told: told[:-1]), "groups", "they are not those of the protocol"),
    *(
        (_put("groups", 1, key, value=28), "groups", "ways to draw relationship, race are not those of the protocol")
        for key in ("combinations", "channels")
    ),
    (_put("groups", 2, "kept", value=0.9), "groups", "what is kept of age is told as 0.9, which it is not"),
    (_put("columns", value=lambda told: told[::-1]), "columns", "they are not the published ones"),
    (_put("columns", 3, "plain", value=0.95), "columns", "plain of age is told as 0.95, which is not what follows"),
    *(
        (_put("columns", 2, key, value=9), "columns", "numbers of values and texts of race are not those of the prot")
        for key in ("values", "texts")
    ),
    (_put("figures", "utility", value=3.9), "figures", "utility is told as 3.9, which is not what follows"),
    (_put("figures", "entropy", value=3.4), "figures", "entropy is told as 3.4, which is not what follows"),
    (_put("figures", "share", value=1.0), "figures", "share is told as 1.0, which is not what follows"),
    (_put("figures", "rows", value=2999), "figures", "records are not as many as the source has"),
    (_put("source", "records", value=3001), "figures", "records are not as many as the source has"),
    (_put("figures", "holds", value=False), "figures", "or the bound is not said to hold"),
    (_put("figures", "level_factor", value=1.6), "figures", "the factor of the level is told as 1.6"),
    (_put("figures", "level_factor", value=1.85), "figures", "the factor of the level is told as 1.85"),
    (_put("error", value=0.05), "figures", "the error of a share of one half is told as 0.05"),
    (_put("frequencies", value=NOISE), "figures", "the frequencies are not said to be protected as the spec asks"),
    (_put("rules", value=RULES), "texts", "rules is {'dominance': 0.95, 'minimum_cell': 10, 'unique_share': 0.0}"),
    (_put("groups", 2, "shared", value=0.9), "groups", "how many people age shares weights is told as 0.9"),
    (_put("groups", 2, "shared", value=None), "groups", "how many people age shares weights is told as None"),
    (_put("beliefs", 0, "label", value="Male"), "beliefs", "they are not about the values of the secret that occur"),
    (_put("beliefs", value=lambda told: told[:1]), "beliefs", "they are not about the values of the secret that occur"),
    (_put("beliefs", 0, "prior", value=0.5), "beliefs", "the share of 'Female' is told as 0.5, which it is not"),
    (_put("beliefs", 0, "error", value=0.01), "beliefs", "the error of the share of 'Female' is told as 0.01"),
    (_put("beliefs", 1, "least", value=None), "beliefs", "only one limit of 'Male' is told"),
    (_put("beliefs", 0, "most", value=0.4), "beliefs", "a record goes beyond what is allowed of 'Female'"),
    (_put("beliefs", 0, "least", value=0.3), "beliefs", "a record goes beyond what is allowed of 'Female'"),
    (_put("beliefs", 0, "most", value=0.7), "beliefs", "limits of 'Female' are not those that the bound sets"),
    (_put("beliefs", 0, "least", value=0.1), "beliefs", "limits of 'Female' are not those that the bound sets"),
    (
        _put("estimated", 0, "rows", 0, "error", value=0.0012),
        "estimates",
        "the error of 'Private' is told as 0.0012, which does not follow, of workclass",
    ),
    (_put("estimated", 0, "rows", 0, "error", value=None), "estimates", "the error of 'Private' is not told of workc"),
    (_put("estimated", 0, "rows", 0, "label", value="Nobody"), "estimates", "'Nobody' is no value of workclass"),
    (_put("estimated", 0, "rows", value=[]), "estimates", "errors are not told of the most common values of workclass"),
    (_put("estimated", value=lambda told: told[1:]), "estimates", "not told of every column and every two of them"),
    *(
        (_put("estimated", 4, key, value=0.9), "estimates", f"the {key} error is told as 0.9, which does not follow")
        for key in ("typical", "largest")
    ),
    (_put("estimated", 4, "unknown", value=20), "estimates", "20 cells cannot be told, it says, of workclass × relat"),
    (_put("estimated", 4, "cells", value=2), "estimates", "of workclass × relationship 2 cells are told of, and there"),
    (_put("estimated", 0, "sums", value=[["Private"]]), "estimates", "are not those that cannot be told of workclass"),
    (_put("texts", value=[]), "examples", "there is none, or two of a kind"),
    (_put("texts", value=lambda told: [*told, told[0]]), "examples", "there is none, or two of a kind"),
    (_example("a value", column="sex"), "examples", "'(missing)' is no text of a published column"),
    (_example("anything", text="everything"), "examples", "'everything' is no text of a published column"),
    (_example("anything", values=["White"]), "examples", "'any' is said to stand for other values than it does"),
    (_example("a set", kind="a value"), "examples", "there is none, or two of a kind (and 1 more)"),
    (
        _example("all but some", values=["Asian-Pac-Islander", "Black", "Black", "Other"]),
        "examples",
        "'any but Amer-Indian-Eskimo or White' is said to stand for other values than it does",
    ),
]


@pytest.mark.parametrize(("change", "claim", "sentence"), REPORTED)
def test_a_report_of_other_figures_is_refused_though_its_page_fits(
    finished: FinishedGroups, change: Change, claim: str, sentence: str
) -> None:
    edit(finished.folder.numbers, change)
    finished.folder.report.write_text(render_grouped(GroupedReport.read(finished.folder.numbers)), encoding="utf-8")
    found = failures(finished, "report")
    assert set(found) == {claim}
    assert sentence in found[claim]


def test_a_page_that_acts_or_a_document_with_spaces_is_refused(finished: FinishedGroups) -> None:
    page = finished.folder.report.read_text(encoding="utf-8")
    finished.folder.report.write_text(page.replace("</main>", "<script>1</script></main>"), encoding="utf-8")
    finished.folder.numbers.write_bytes(finished.folder.numbers.read_bytes() + b" ")
    assert set(failures(finished, "report")) == {"page", "nothing active", "canonical text"}


def test_rows_that_no_way_leads_to_are_refused(finished: FinishedGroups) -> None:
    content = json.loads(finished.folder.protocol.read_bytes())
    # After the first text that is published of the first group nothing more is said.
    content["stages"][0]["classes"][0][1][0] = -1
    finished.folder.protocol.write_bytes(redigested(content))
    found = failures(finished, "plain_level")["published records"]
    assert "published records are such that nobody of the source can be published as them" in found


def test_words_for_other_rows_are_refused(finished: FinishedGroups) -> None:
    edit(finished.folder.words, _put("streams", "draw", "words", value=lambda words: words + 3))
    found = failures(finished, "grouped_words")
    assert found["uniform"] == "are {'draw': 9003, 'order': 3000} and not {'draw': 9000, 'order': 3000}"
    assert found["never again"] == "cannot be told"


def test_keys_are_derived_where_there_is_a_secret_and_words_are_derived_as_now(
    honest: FinishedGroups, tmp_path: Path
) -> None:
    """Rows that were drawn without keys have other answers than their keys would give them."""
    source = honest.folder.root.parents[2] / "people.parquet"
    path = make_project(tmp_path, KEYED_GROUPS, pq.read_table(source))
    spec, key = ReleaseSpec.load(path), RecordKey(("id",), bytes(range(32)))
    snapshot = take_snapshot(spec, tmp_path / "workspace", key, lambda *_: None)
    keyed = replace(honest, spec=spec, snapshot=snapshot)
    unknown = "cannot be derived: the run hands on no release secret"
    assert failures(keyed, "keys") == dict.fromkeys(("digests", "answers", "draws"), unknown)
    found = failures(replace(keyed, key=key), "keys")
    assert set(found) == {"answers", "draws"}
    assert "are not those that their keys and the secret give" in found["answers"]
    # Words of an earlier derivation are not derived again; whose digests the snapshot has is asked all the same.
    assert failures(replace(keyed, key=key, derivation=2), "keys") == {}
    other = RecordKey(("id",), bytes(31) + b"x")
    assert set(failures(replace(keyed, key=other, derivation=2), "keys")) == {"digests"}


def test_answers_are_derived_where_a_stage_has_nothing_to_say_to_anybody(
    honest: FinishedGroups, finished: FinishedGroups, tmp_path: Path
) -> None:
    """As under robust bounds and few people: of the last groups everybody's text is `any`."""
    source = honest.folder.root.parents[2] / "people.parquet"
    spec = ReleaseSpec.load(make_project(tmp_path, KEYED_GROUPS, pq.read_table(source)))
    key = RecordKey(("id",), bytes(range(32)))
    snapshot = take_snapshot(spec, tmp_path / "workspace", key, lambda *_: None)
    content = json.loads(finished.folder.protocol.read_bytes())
    for of_class in content["stages"][0]["classes"]:
        of_class[1] = [-1] * len(of_class[1])
    finished.folder.protocol.write_bytes(redigested(content))
    found = failures(replace(finished, spec=spec, snapshot=snapshot, key=key), "keys")
    assert set(found) == {"answers", "draws"}
    assert "are counted otherwise than the keys" in found["draws"]
