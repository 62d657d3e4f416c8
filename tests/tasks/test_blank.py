"""Columns that a release would tell nothing of: refused with the line that accepts it, and published with that line."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from funnel.audit.check import State
from funnel.audit.recheck import recheck
from funnel.errors import ReleaseRefused
from funnel.pipeline.flows.pipeline import run_release
from funnel.pipeline.tasks import optimise
from funnel.release.layout import find_release
from funnel.spec import ReleaseSpec
from tests import chance
from tests.projects import SPEC, make_project

# A side that decides the secret, and a town that has nothing to do with it: 500 people each.
_PEOPLE = [(side, town) for side in ("left", "right") for town in ("north", "south") for _ in range(500)]
_TABLE = pa.table({"secret": [s for s, _ in _PEOPLE], "side": [s for s, _ in _PEOPLE], "town": [t for _, t in _PEOPLE]})
_TEXT = SPEC.replace('["marital-status"]', '["secret"]').replace("[source]", 'mechanism = "{}"\n\n[source]', 1)
_LISTED = """
complete = ["secret", "side"]

[categories]
secret = ["left", "right"]
side = ["left", "right"]
"""
CASES = {
    # Independent by the counts: the town stays as it is, and of the side nothing may be told.
    "one of two": (_TEXT.format("optimal").replace("lip:1.0", "perfect"), '["side", "town"]', "side"),
    # Whatever the noise is, only a constant is independent of two secrets with two sides.
    "all, under noise": (
        _TEXT.format("optimal")
        .replace("lip:1.0", "perfect")
        .replace('protection = "none"', 'protection = "noise"\nfrequencies.epsilon = 1.0')
        .replace('on_breach = "report"', "")
        .replace("\n[source]", _LISTED.partition("\n\n")[0] + "\n\n[source]", 1)
        + "\n"
        + _LISTED.partition("\n\n")[2],
        '["side"]',
        "side",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_column_that_nothing_is_told_of_is_refused_unless_the_spec_accepts_it(case: str, tmp_path: Path) -> None:
    chance.begin(f"blank: {case}")
    text, published, blank = CASES[case]
    path = make_project(tmp_path, text.replace('["relationship"]', published), _TABLE)
    with pytest.raises(ReleaseRefused, match=f"no share of any value of {blank} could be estimated") as refused:
        run_release(ReleaseSpec.load(path), again=False, rotate=False)
    assert not (tmp_path / "releases" / "people" / "1.0.0").exists()
    (line,) = re.findall(r"write (blank = \[.*\]) in \[disclosure\]", str(refused.value))
    path.write_text(path.read_text().replace("[disclosure]", f"[disclosure]\n{line}"))
    found, _ = run_release(ReleaseSpec.load(path), again=False, rotate=False)
    assert found["status"] == "published"
    assert any("no share" in one for one in found["warnings"])
    # The noise that was drawn is used, and spent once.
    assert found["frequencies"]["spent"] == (1.0 if "noise" in case else None)
    release = find_release(Path(found["folder"]))
    assert f'In every record "{blank}" stands as' in (release.package.parent / "README.md").read_text()
    assert [check.name for check in recheck(release) if check.state is State.FAILED] == []


def test_no_column_is_refused_of_which_something_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is one whose values are told in groups alone."""
    found: list[tuple[str, ...]] = []
    untold = optimise.untold_columns
    monkeypatch.setattr(optimise, "untold_columns", lambda *a: found.append(untold(*a)) or found[-1])
    people = [(s, f"{s}{k}") for s in ("left", "right") for k in range(3) for _ in range(200)]
    table = pa.table({"secret": [s for s, _ in people], "side": [s for _, s in people]})
    text = _TEXT.format("optimal").replace('["relationship"]', '["side"]')
    run_release(ReleaseSpec.load(make_project(tmp_path, text, table)), again=False, rotate=False)
    assert found == [()]
