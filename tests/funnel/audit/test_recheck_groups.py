"""Auditing a published release of groups: an honest one passes, and whatever is changed in it is noticed by name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import funnel
from funnel.audit.check import State, overall
from funnel.audit.recheck import Told
from funnel.release.document import dump
from funnel.release.layout import ReleaseFolder
from funnel.source import file_digest
from tests.audits import recheck
from tests.groups import grouped_release, redigested

Change = Callable[[ReleaseFolder], None]


@pytest.fixture
def folder(tmp_path: Path) -> ReleaseFolder:
    """A copy with its workspace."""
    shutil.copytree(grouped_release().root.parents[2], tmp_path / "project", symlinks=True)
    return ReleaseFolder(tmp_path / "project" / "releases" / "people" / "1.0.0")


def failed(folder: ReleaseFolder, public: bool = False) -> set[str]:
    return {check.name for check in recheck(folder, Told(public=public)) if check.failed}


def test_an_honest_release_of_groups_passes_every_check() -> None:
    checks = recheck(grouped_release())
    assert overall(checks) is State.PASSED
    assert len({check.name for check in checks}) == len(checks)
    public = recheck(grouped_release(), Told(public=True))
    assert {check.name for check in public} < {check.name for check in checks}


def test_without_what_is_internal_it_could_not_be_checked_in_full(tmp_path: Path) -> None:
    shutil.copytree(grouped_release().root, tmp_path / "copy", ignore=shutil.ignore_patterns("audit"))
    found = recheck(ReleaseFolder(tmp_path / "copy"))
    assert [check.name for check in found if check.state is State.UNCHECKED] == ["evidence"]
    assert overall(recheck(ReleaseFolder(tmp_path / "copy"), Told(public=True))) is State.PASSED


def _protocol(change: Callable[[dict[str, Any]], None]) -> Change:
    def changed(folder: ReleaseFolder) -> None:
        content = json.loads(folder.protocol.read_bytes())
        change(content)
        folder.protocol.write_bytes(redigested(content))

    return changed


def _document(path: str, change: Callable[[dict[str, Any]], None]) -> Change:
    def changed(folder: ReleaseFolder) -> None:
        content = json.loads((folder.root / path).read_bytes())
        change(content)
        (folder.root / path).write_bytes(dump(content))

    return changed


def _parquet(path: str, change: Callable[[pa.Table], pa.Table]) -> Change:
    def changed(folder: ReleaseFolder) -> None:
        pq.write_table(change(pq.read_table(folder.root / path)), folder.root / path)

    return changed


def _spoken(content: dict[str, Any]) -> dict[str, Any]:
    """The first channel with more than one output."""
    return next(one for stage in content["stages"] for one in stage["channels"] if len(one["labels"]) > 1)


def _one_unit(content: dict[str, Any]) -> None:
    """A unit of the weight of an input goes from one of its outputs to another."""
    for channel in (one for stage in content["stages"] for one in stage["channels"]):
        places = [(y, x) for y, inputs in enumerate(channel["inputs"]) for x in inputs]
        twice = [x for _, x in places if sum(x == other for _, other in places) > 1]
        if twice:
            first, second = [y for y, x in places if x == twice[0]][:2]
            channel["weights"][first][channel["inputs"][first].index(twice[0])] -= 1
            channel["weights"][second][channel["inputs"][second].index(twice[0])] += 1
            return


def _swapped(content: dict[str, Any]) -> None:
    labels = _spoken(content)["labels"]
    y = next(y for y, label in enumerate(labels) if label != labels[0])
    labels[0], labels[y] = labels[y], labels[0]


def _idle(content: dict[str, Any]) -> None:
    channels = content["stages"][-1]["channels"]
    channels.append({**channels[0], "marginal": channels[0]["marginal"]})


def _of_fewer(content: dict[str, Any]) -> None:
    content["people"] = 40


def _better(content: dict[str, Any]) -> None:
    content["told"][0]["plain"] = 1.0


def _lower(content: dict[str, Any]) -> None:
    content["guarantee"]["level"] = 0.5


def _in_furlongs(content: dict[str, Any]) -> None:
    content["resources"][0]["schema"]["fields"][-1]["funnel:numbers"]["intervals"]["30 to under 50"] = [50, 30]


def _rolled(table: pa.Table) -> pa.Table:
    column = table.column(1).combine_chunks()
    return table.set_column(1, table.field(1), pa.concat_arrays([column[1:], column[:1]]))


def _sorted(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.lexsort([c.combine_chunks().indices.to_numpy() for c in table.columns])))


def _alike(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.zeros(len(table), dtype=np.int64)))


def _another_text(table: pa.Table) -> pa.Table:
    texts = table.column(0).cast(pa.string()).to_pylist()
    return table.set_column(0, table.field(0).name, pa.array(["nothing", *texts[1:]]).dictionary_encode())


def _surer(table: pa.Table) -> pa.Table:
    j = table.schema.get_field_index("probability")
    values = table.column(j).to_numpy().copy()
    values[0], values[1] = values[1], values[0]
    return table.set_column(j, "probability", pa.array(values))


def _one_more(table: pa.Table) -> pa.Table:
    j = table.num_columns - 1
    values = table.column(j).to_numpy().copy()
    values[0] += 1
    return table.set_column(j, table.field(j), pa.array(values))


def _redrawn(folder: ReleaseFolder) -> None:
    """Two records at the last stage drew each other's outputs, under digests that fit."""
    table = pq.read_table(folder.cells)
    columns = {name: table.column(name).to_numpy().copy() for name in table.column_names}
    columns["class"][-1] = 0 if columns["class"][-1] else 1
    pq.write_table(pa.table(columns, schema=table.schema), folder.cells)
    _document("audit/draws.json", lambda content: content.update(cells_sha256=file_digest(folder.cells)))(folder)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (_protocol(_one_unit), "record"),
        (_protocol(_of_fewer), "people"),
        (_protocol(_better), "law"),
        (_parquet("channels.parquet", _surer), "channels"),
        (_parquet("audit/records.parquet", _one_more), "counts"),
        (_redrawn, "drawing"),
        (_parquet("audit/draws.parquet", _one_more), "evidence"),
        (_document("audit/findings.json", lambda content: content.update(level=0.1)), "findings"),
        (_document("audit/findings.json", lambda content: content.update(decided=1)), "findings"),
        (_parquet("data/records.parquet", _rolled), "rows"),
    ],
)
def test_what_is_changed_is_noticed(change: Change, name: str, folder: ReleaseFolder) -> None:
    change(folder)
    assert name in failed(folder)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda folder: folder.citation.write_text("cff-version: 1.2.0\n"), "handouts"),
        (lambda folder: folder.readme.write_text("# Another\n"), "handouts"),
        (lambda folder: folder.channel.write_text(folder.channel.read_text().replace("0.", "1.", 1)), "handouts"),
        (lambda folder: folder.citation.unlink(), "files"),
        (lambda folder: folder.catalogue.unlink(), "handouts"),
        (_protocol(_swapped), "labels"),
        (_protocol(_idle), "groups"),
        (_protocol(_lower), "guarantee"),
        (_protocol(_better), "report figures"),
        (_parquet("data/records.parquet", _sorted), "order"),
        (_parquet("data/records.parquet", _alike), "frequencies"),
        (_parquet("data/records.parquet", _another_text), "values"),
        (_parquet("data/records.parquet", lambda table: table), "parquet"),
        (_document("datapackage.json", lambda content: content["funnel:privacy"].update(madeFor=500)), "package"),
        (_document("datapackage.json", _in_furlongs), "package"),
        (_document("report.json", lambda content: content.update(made_for=500)), "report page"),
        (lambda folder: (folder.root / "more.json").write_text("{}"), "files"),
    ],
)
def test_what_public_files_tell_is_noticed_by_them_alone(change: Change, name: str, folder: ReleaseFolder) -> None:
    change(folder)
    assert name in failed(folder, public=True)


def test_rows_that_no_way_leads_to_are_noticed(folder: ReleaseFolder) -> None:
    content = json.loads(folder.protocol.read_bytes())
    # After the first text that is published of the first group nothing more is said.
    content["stages"][0]["classes"][0][1][0] = -1
    folder.protocol.write_bytes(redigested(content))
    assert "records" in failed(folder, public=True)


def test_releases_from_before_there_were_more_handouts_are_read_and_lack_nothing(
    folder: ReleaseFolder,
) -> None:
    for path in (folder.readme, folder.channel, folder.catalogue):
        path.unlink()
    content = json.loads(folder.package.read_bytes())
    block = content["funnel:privacy"]
    for key in ("schema", "meaning", "estimation"):
        del block[key]
    block["frequencies"] = {key: value for key, value in block["frequencies"].items() if value is not None}
    folder.package.write_bytes(dump(content))
    assert not failed(folder, public=True) & {"files", "handouts", "package"}
    opened = funnel.open_release(folder.root)
    assert opened.privacy.estimation.path == "protocol.csv"
    # What says that it is of today has all of today.
    folder.package.write_bytes(dump({**content, "funnel:privacy": {**block, "schema": "funnel/grouped-privacy/1"}}))
    assert "package" in failed(folder, public=True)


def test_rules_are_asked_again_where_the_report_says_that_weights_keep_them(folder: ReleaseFolder) -> None:
    stated = {"minimum_cell": 10, "dominance": 0.95, "unique_share": 0.0}
    _document("report.json", lambda content: content.update(rules=stated))(folder)
    (found,) = [check for check in recheck(folder) if check.name == "rules"]
    assert found.failed
    assert "weights that follow from" in found.detail
