"""Tables of levels, read a second time: the groups that a spec was made with are those that they say."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.recount.bins import hierarchy_complaints
from funnel.spec import ReleaseSpec
from tests.projects import SPEC

LEVELS = {"job": ["a, b", 'c "d"', "e", "f", "7"], "wide": ["one", "one", "two", "", "two"]}


def spec_with(folder: Path, told: str) -> ReleaseSpec:
    (folder / "levels.csv").write_text('job,wide\n"a, b",one\n"c ""d""",one\ne,two\nf,\n7,two\n', encoding="utf-8-sig")
    pq.write_table(pa.table(LEVELS), folder / "levels.parquet")
    text = SPEC + f'\n[recode.relationship]\nhierarchy = {told}\nlevel = "wide"\n'
    return ReleaseSpec.parse(text, folder / "people.toml")


@pytest.mark.parametrize("told", ['"levels.csv"', '"levels.parquet"', '{path = "levels.parquet"}'])
def test_what_the_tables_say_is_found_again(tmp_path: Path, told: str) -> None:
    spec = spec_with(tmp_path, told)
    assert spec.recode["relationship"].groups == {"one": ("a, b", 'c "d"'), "two": ("e", "7")}
    assert list(hierarchy_complaints(spec)) == []


@pytest.mark.parametrize(
    ("groups", "wrong"),
    [
        ({"one": ("a, b",), "two": ("e", "7")}, 1),
        ({"one": ("a, b", "e"), "two": ('c "d"', "7")}, 2),
        ({"one": ("a, b", 'c "d"'), "two": ("e", "7", "f")}, 1),
        ({"two": ("a, b", 'c "d"'), "one": ("e", "7")}, 4),
    ],
)
def test_other_groups_are_noticed(tmp_path: Path, groups: dict[str, tuple[str, ...]], wrong: int) -> None:
    spec = spec_with(tmp_path, '"levels.csv"')
    recode = {**spec.recode, "relationship": spec.recode["relationship"].model_copy(update={"groups": groups})}
    found = list(hierarchy_complaints(spec.model_copy(update={"recode": recode})))
    assert found == [f"group {wrong} values of relationship otherwise than the table of levels"]
