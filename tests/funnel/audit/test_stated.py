"""False and hidden figures in the report of a later version: the owner of the key makes all else fit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from funnel.audit.context import AuditContext
from funnel.audit.page import check_numbers
from funnel.audit.recheck import Told
from funnel.errors import DataError
from funnel.pipeline.flows.pipeline import run_release
from funnel.release.document import dump
from funnel.release.layout import ReleaseFolder
from funnel.spec import ReleaseSpec
from tests.copies import copied
from tests.funnel.audit.test_forgeries import Change, half, hidden, other, put, to
from tests.projects import SPEC, make_project
from tests.waves import FOLLOWED, wave

Path_ = tuple[str | int, ...]
HISTORY = ("figures", "history")
OBSERVER = (*HISTORY, "observers", 1)
FALSE: dict[str, tuple[Path_, Change]] = {
    "a level of all versions below the bound": ((*OBSERVER, "level"), half),
    "a level of everybody below the bound": ((*OBSERVER, "level_of_all"), half),
    "fewer people outside, of one observer": ((*OBSERVER, "outside_at_most"), half),
    "nobody outside, of one observer": ((*OBSERVER, "outside_at_most"), to(0.0)),
    "fewer people outside": ((*HISTORY, "outside_at_most"), half),
    "a level above the bound that holds": ((*OBSERVER, "level"), lambda level: round(level + 0.1, 6)),
    "an observer less for one secret": ((*HISTORY, "observers"), lambda rows: rows[:-1]),
    "observers in another order": ((*HISTORY, "observers"), lambda rows: rows[::-1]),
    "a time before that of the version before": (("created",), to("2026-03-01T12:00:00+00:00")),
    "information without its last digit": (("compared", 0, "utility"), lambda nats: round(nats + 0.001, 6)),
    "no information of a mechanism": (("compared", 0, "utility"), to(None)),
    "guesses between two steps": (("figures", "prior_guess_accuracy"), lambda share: round(share + 0.001, 6)),
    "what is bounded": ((*HISTORY, "observers", 0, "bounded"), other),
    "an observer twice": ((*HISTORY, "observers"), lambda rows: [*rows, rows[0]]),
    "a time that hides digits": (("change", "created"), lambda time: time.replace("+", ".123456+")),
    "a guarantee that there is not": (("change", "guarantee"), lambda text: f"{text}x"),
    "a version that there is not": (("kept", 0, "version"), lambda text: f"{text}x"),
    "versions in another order": (("kept",), lambda rows: rows[::-1]),
    "what guesses get right": (("figures", "guess_accuracy"), half),
    "what guesses get right before": (("figures", "prior_guess_accuracy"), half),
    "left out in other words": (("source", "dropped"), to("Jane Doe")),
}


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    """The second version about the same people, without noise, under a bound of seven digits."""
    folder = tmp_path_factory.mktemp("later")
    spec = folder / "panel.toml"
    text = FOLLOWED.replace("epsilon = 2.0", 'protection = "none"').replace("lip:1.0", "lip:1.098612")
    spec.write_text(f'{text}\n[disclosure]\non_breach = "report"\n', encoding="utf-8")
    for year in (1984, 1985):
        pq.write_table(wave(year, 300), folder / "people.parquet")
        told, _ = run_release(ReleaseSpec.load(spec), False, False)
    return ReleaseFolder(Path(told["folder"]))


def passes(folder: ReleaseFolder, content: Any) -> bool:
    folder.numbers.write_bytes(dump(content))
    try:
        return check_numbers(AuditContext(folder, Told())).passed
    except DataError:
        return False


def floats(value: Any, place: Path_ = ()) -> Iterator[Path_]:
    """The places of all numbers that are no whole ones."""
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(part, float):
            yield (*place, key)
        elif isinstance(part, dict | list):
            yield from floats(part, (*place, key))


def test_a_bound_of_many_digits_is_told_as_it_is_declared(later: ReleaseFolder) -> None:
    told = json.loads(later.numbers.read_bytes())
    assert told["guarantee"] == "lip:1.098612"
    assert told["figures"]["level"] == 1.098612
    assert {one["level"] for one in told["figures"]["history"]["observers"]} == {1.098612}


@pytest.mark.parametrize("name", FALSE)
def test_what_no_report_of_versions_states_is_found(later: ReleaseFolder, tmp_path: Path, name: str) -> None:
    folder = copied(later, tmp_path / "copy")
    content = json.loads(folder.numbers.read_bytes())
    assert passes(folder, content)
    assert put(content, *FALSE[name])
    assert not passes(folder, content)


def test_no_figure_has_hidden_digits(later: ReleaseFolder, tmp_path: Path) -> None:
    """Of figures that do not follow from public files too, since these counts are not public."""
    folder = copied(later, tmp_path / "copy")
    honest = folder.numbers.read_bytes()
    tried, passed = 0, []
    for place in list(floats(json.loads(honest))):
        content = json.loads(honest)
        if put(content, place, hidden):
            tried += 1
            passed += [place] if passes(folder, content) else []
    assert tried > 30
    assert passed == []


def test_a_bound_that_is_a_logarithm_can_be_released(tmp_path: Path) -> None:
    spec = make_project(tmp_path, SPEC.replace("lip:1.0", "alip:1.098612289,0.693147181") + '[mechanism]\nname = "grr"')
    assert run_release(ReleaseSpec.load(spec), False, False)[0]["status"] == "published"
