"""Hierarchies: a table of levels is as good as the groups it comes to, and a wrong one is told of in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from funnel.errors import SpecError
from funnel.spec import ReleaseSpec
from tests.projects import spec_of

TABLE = "\ufeffcode,name,part\n01,Utrecht,west\n02,Gouda,west\n03,Emmen,east\n04,,\n\n"
GROUPS = {"west": ["01", "02"], "east": ["03"]}


def spec(folder: Path, **recode: Any) -> ReleaseSpec:
    return spec_of("t.csv", folder, recode={"x": recode})


def test_a_level_is_the_groups_it_comes_to(tmp_path: Path) -> None:
    (tmp_path / "places.csv").write_text(TABLE)
    made = spec(tmp_path, hierarchy="places.csv", level="part", minimum_count=5)
    assert made == spec(tmp_path, groups=GROUPS, minimum_count=5)
    assert made.digest == spec(tmp_path, groups=GROUPS, minimum_count=5).digest
    # A value map: every value has a name of its own.
    named = spec(tmp_path, hierarchy="places.csv", level="name")
    assert named.recode["x"].group_of == {"01": "Utrecht", "02": "Gouda", "03": "Emmen"}
    (tmp_path / "places.csv").write_text(TABLE.replace("02,Gouda,west", "02,Gouda,south"))
    assert spec(tmp_path, hierarchy="places.csv", level="part", minimum_count=5).digest != made.digest


@pytest.mark.parametrize(
    ("table", "said", "told"),
    [
        (TABLE, {"hierarchy": "none.csv", "level": "part"}, "cannot be read: No such file"),
        (
            TABLE,
            {"hierarchy": "places.csv", "level": "prt"},
            "'prt' is no column of places.csv after its first;",
        ),
        (TABLE, {"hierarchy": "places.csv", "level": "code"}, "no column of places.csv"),
        (TABLE, {"hierarchy": "places.csv"}, "must have both"),
        (TABLE, {"level": "part"}, "must have both"),
        (TABLE, {"hierarchy": "places.csv", "level": "part", "groups": GROUPS}, "give one of the two"),
        (
            TABLE + "01,Utrecht,east\n",
            {"hierarchy": "places.csv", "level": "part"},
            "the value '01' into two groups",
        ),
        (TABLE + "05,Ede\n", {"hierarchy": "places.csv", "level": "part"}, "another number of values"),
        ("", {"hierarchy": "places.csv", "level": "part"}, "it has none"),
        ('a,b\n"1,2', {"hierarchy": "places.csv", "level": "b"}, "not csv in UTF-8"),
    ],
)
def test_a_wrong_one_is_told_of(tmp_path: Path, table: str, said: dict[str, Any], told: str) -> None:
    (tmp_path / "places.csv").write_text(table)
    with pytest.raises(SpecError) as caught:
        spec(tmp_path, **said)
    assert told in str(caught.value)
    assert str(caught.value).startswith("[recode.x]")
