"""Documents and tables of grouped releases: read back as they were written, rounded by records, refused if damaged."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel.errors import DataError, ReleaseRefused
from funnel.groups import GroupedSolution, Schedule, Shown
from funnel.release import effective_channels
from funnel.release.counted_records import read_records, records_file
from funnel.release.effective_channels import channels_table
from funnel.release.files import FileRef
from funnel.release.grouped_draws import GroupedDraws
from funnel.release.grouped_findings import FoundColumn, GroupedFindings, GroupedSolved
from funnel.release.grouped_protocol_document import GroupedProtocolDocument, grouped_protocol_document
from funnel.release.grouped_public import GroupedPublic
from funnel.release.grouped_publication import write_grouped_documents, write_grouped_package
from funnel.release.grouping import found_columns, share
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.protection import UNPROTECTED, Protection
from funnel.release.public.rounding import share_step
from funnel.source import file_digest
from tests.funnel.groups.conftest import tabled
from tests.projects import spec_of

LIP = funnel.LIP(0.7)


@pytest.fixture(scope="module")
def joint() -> funnel.Joint:
    return tabled(2, (5, 3, 4), seed=3, n=6000)


@pytest.fixture(scope="module")
def made(joint: funnel.Joint) -> GroupedSolution:
    return funnel.publish_groups(joint, [["x"], ["y", "z"]], LIP, people=50, schedule=Schedule(0.8, 4))


@pytest.fixture(scope="module")
def shown(joint: funnel.Joint, made: GroupedSolution) -> Shown:
    return Shown.of(joint, made.protocol)


def found(joint: funnel.Joint, made: GroupedSolution, columns: tuple[FoundColumn, ...]) -> GroupedFindings:
    solved = GroupedSolved.of(made)
    return GroupedFindings(
        guarantee=str(LIP),
        rows=joint.n,
        dropped=0,
        records=int(joint.counts.any(axis=0).sum()),
        published=5,
        people=50,
        groups=made.groups,
        choice="given",
        share=share(made.utility / made.entropy),
        columns=columns,
        consistency={"p_value": 1.0, "tests": 3, "impossible": 0},  # type: ignore[arg-type]
        **{name: getattr(solved, name) for name in type(solved).model_fields if name != "schema_"},
    )


def test_counted_records_are_read_back_in_the_order_that_is_asked_for(joint: funnel.Joint, tmp_path: Path) -> None:
    content = records_file(joint)
    (tmp_path / "records.parquet").write_bytes(content)
    for file in (content, tmp_path / "records.parquet"):
        read = read_records(file, joint.secret.columns)
        assert read.secret == joint.secret
        there = joint.counts.any(axis=0)
        assert np.array_equal(read.counts, joint.counts[:, there])
        assert read.inputs.symbols == tuple(s for s, some in zip(joint.inputs.symbols, there, strict=True) if some)
    (column,) = joint.secret.columns
    values = [symbol[0] for symbol in joint.secret.symbols]
    turned = read_records(content, joint.secret.columns, {column: values[::-1]})
    assert np.array_equal(turned.counts, read.counts[::-1])
    # Without the code that made it: the same file for the same counts.
    assert records_file(read) == content
    with pytest.raises(DataError, match="missing or damaged"):
        read_records(tmp_path / "none.parquet", joint.secret.columns)
    with pytest.raises(DataError, match="missing or damaged"):
        read_records(content, ["nobody"])


def test_channels_are_those_of_all_records_told_by_tens_of_them(
    joint: funnel.Joint, made: GroupedSolution, shown: Shown
) -> None:
    told = channels_table(shown, 50).to_pylist()
    columns = made.protocol.columns
    wanted: list[tuple[str, ...]] = [(column,) for column in columns]
    for some in [*wanted, *combinations(columns, 2)]:
        first, second = some[0], some[1] if len(some) > 1 else None
        rows = [row for row in told if (row["first"], row["second"]) == (first, second)]
        effective = shown.channel(some)
        people = np.rint(effective.law * joint.n).astype(int)
        known = {x for x, n in zip(effective.inputs, people.tolist(), strict=True) if n >= effective_channels.FEWEST}
        inputs = {tuple(row[f"true_{place}"] for place in ("first", "second")[: len(some)]) for row in rows}
        others = (None,) * len(some)
        pooled = [n for x, n in zip(effective.inputs, people.tolist(), strict=True) if x not in known]
        assert inputs == known | ({others} if sum(pooled) >= effective_channels.FEWEST else set())
        for x in inputs:
            of_input = [row for row in rows if tuple(row[f"true_{p}"] for p in ("first", "second")[: len(some)]) == x]
            assert sum(row["probability"] for row in of_input) == pytest.approx(1, abs=1e-9)
            places = [i for i, one in enumerate(effective.inputs) if one == x or (x == others and one not in known)]
            n = int(people[places].sum())
            law = effective.matrix[:, places] @ people[places] / n
            step = share_step(n)
            named = {}
            for row in of_input:
                text = tuple(row[f"published_{place}"] for place in ("first", "second")[: len(some)])
                assert row["share"] == pytest.approx(n / joint.n, abs=share_step(joint.n) / 2 + 1e-9)
                if text != others:
                    named[text] = row["probability"]
                    assert row["probability"] / step == pytest.approx(round(row["probability"] / step), abs=1e-6)
            over = max(0.0, float(np.round(law / step).sum()) - round(1 / step))
            for output, probability in zip(effective.outputs, law.tolist(), strict=True):
                lowered = step / 2 if over > 0 else 0.0
                assert abs(named.get(output, 0.0) - probability) <= step / 2 + lowered + 1e-9


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=40), st.sampled_from([0.001, 0.02, 0.1]))
def test_no_probability_is_told_off_by_a_step(weights: list[float], step: float) -> None:
    law = np.array(weights) / sum(weights)
    told = effective_channels._multiples(law, step)
    assert told.min() >= 0
    assert told.sum() <= round(1 / step)
    assert np.abs(told * step - law).max() < step * (1 + 1e-9)
    if np.round(law / step).sum() <= round(1 / step):
        assert np.abs(told * step - law).max() <= step / 2 * (1 + 1e-9)


def test_a_sum_above_one_lowers_what_was_rounded_up_most() -> None:
    told = effective_channels._multiples(np.array([0.36, 0.36, 0.28]), 0.1)
    assert sorted(told.tolist()) == [3, 3, 4]
    told = effective_channels._multiples(np.array([0.51, 0.26, 0.23]), 0.1)
    assert told.tolist() == [5, 3, 2]
    told = effective_channels._multiples(np.array([0.45, 0.46, 0.09]), 0.1)
    assert told.tolist() == [4, 5, 1]
    assert effective_channels._multiples(np.array([0.04] * 25), 0.1).sum() == 0


def test_the_protocol_of_groups_is_read_back_and_a_change_is_noticed(
    joint: funnel.Joint, made: GroupedSolution, shown: Shown
) -> None:
    public = GroupedPublic.of(found(joint, made, found_columns(shown)), LIP)
    protection = Protection.model_validate(UNPROTECTED)
    document = grouped_protocol_document(made.protocol, LIP, joint.secret.columns, public, protection)
    read = GroupedProtocolDocument.from_json(document.to_bytes())
    assert read == document
    assert read.protocol == made.protocol
    assert read.guarantee.level == 0.7
    content = json.loads(document.to_bytes())
    stage = content["stages"][0]["channels"][0]
    stage["labels"][0] = ["x0"] if stage["labels"][0] != ["x0"] else ["x1"]
    with pytest.raises(DataError, match="changed: its digest is not the one it states"):
        GroupedProtocolDocument.from_json(json.dumps(content))
    for key, value in (("denominator", 2**43), ("mechanism", "grr"), ("told", [])):
        with pytest.raises(DataError, match="protocol of groups"):
            GroupedProtocolDocument.from_json(json.dumps({**json.loads(document.to_bytes()), key: value}))
    content = json.loads(document.to_bytes())
    content["guarantee"]["kind"] = "ldp"
    with pytest.raises(DataError, match="declares a guarantee of another kind"):
        GroupedProtocolDocument.from_json(json.dumps(content))


def test_public_figures_of_groups_are_multiples_of_the_step_and_levels_budgets(
    joint: funnel.Joint, made: GroupedSolution, shown: Shown
) -> None:
    findings = found(joint, made, found_columns(shown))
    public = GroupedPublic.of(findings, LIP)
    assert public.level == 0.7 >= findings.level
    figures = [public.utility, public.entropy, public.share, *(f for c in public.columns for f in (c.plain, c.kept))]
    for figure in figures:
        assert figure / public.step == pytest.approx(round(figure / public.step), abs=1e-6)
    over = findings.model_copy(update={"holds": False, "level": 0.713})
    assert GroupedPublic.of(over, LIP).level > 0.713


def test_draws_are_read_back_and_a_change_is_noticed(joint: funnel.Joint, tmp_path: Path) -> None:
    folder = ReleaseFolder(tmp_path)
    folder.audit.mkdir()
    cells = np.array([[0, 0, 1, 0, 0], [0, 0, 1, 1, 1], [1, 2, 0, 0, 1]])
    draws = GroupedDraws(joint.secret, cells, np.array([4, 3, 2]), "0" * 32)
    draws.write(folder)
    read = GroupedDraws.read(folder)
    assert (read.n, read.secret, read.probe) == (7, joint.secret, "0" * 32)
    assert np.array_equal(read.cells, cells)
    assert read.records.tolist() == [4, 3, 2]
    folder.cells.write_bytes(folder.cells.read_bytes() + b" ")
    with pytest.raises(DataError, match=r"draws\.parquet are missing or damaged"):
        GroupedDraws.read(folder)
    folder.cells.unlink()
    with pytest.raises(DataError, match=r"draws\.parquet are missing or damaged"):
        GroupedDraws.read(folder)


@pytest.mark.parametrize("csv", [True, False])
def test_documents_are_written_of_the_rows_that_were_drawn_and_of_finite_figures_alone(
    joint: funnel.Joint, made: GroupedSolution, shown: Shown, tmp_path: Path, csv: bool
) -> None:
    folder = ReleaseFolder(tmp_path)
    folder.data.parent.mkdir()
    rows = pa.table({column: ["any", "=1"] for column in made.protocol.columns})
    pq.write_table(rows, folder.data)
    drawn = FileRef(str(folder.data), file_digest(folder.data))
    public = GroupedPublic.of(found(joint, made, found_columns(shown)), LIP)
    protection = Protection.model_validate(UNPROTECTED)
    spec = spec_of("people.csv", tmp_path, publish=["x", "y", "z"], output={"csv": csv})
    channels = channels_table(shown, 50)

    def write(drawn: FileRef) -> None:
        write_grouped_documents(spec, made.protocol, LIP, public, channels, protection, drawn, folder)

    with pytest.raises(ReleaseRefused, match=r"^the rows were changed after they were drawn; run the release again$"):
        write(replace(drawn, sha256="0" * 64))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [folder.data]
    write(drawn)
    folder.numbers.write_text("{}")
    assert GroupedProtocolDocument.read(folder.protocol).protocol == made.protocol
    assert pq.read_table(folder.channels).equals(channels)
    assert folder.csv.is_file() == csv
    if csv:
        assert folder.csv.read_text().split() == ['"x","y","z"', '"any","any","any"', *[",".join(['"\'=1"'] * 3)]]

    def package(public: GroupedPublic) -> None:
        at = "2025-03-04T05:06:07Z"
        write_grouped_package(spec, made.protocol, public, protection, Version(1, 0, 0), at, folder)

    with pytest.raises(ReleaseRefused, match=r"a figure of datapackage\.json is not a finite number$"):
        package(replace(public, level=math.inf))
    assert not folder.package.exists()
    assert not folder.citation.exists()
    package(public)
    paths = [resource["path"] for resource in json.loads(folder.package.read_bytes())["resources"]]
    assert len(paths) == 1 + csv
