"""The examples of every public name: run, and compared with what they say they print."""

from __future__ import annotations

import doctest
import inspect
import re
import types
from pathlib import Path
from typing import Any

import pytest

import funnel

ROOT = Path(__file__).parents[2]


def examined(text: str, name: str, shared: dict[str, Any]) -> int:
    """Run the examples of a text, which must print what it says; how many there are."""
    examples = doctest.DocTestParser().get_doctest(text, shared, name, name, 0)
    failures: list[str] = []
    doctest.DocTestRunner(verbose=False).run(examples, out=failures.append, clear_globs=False)
    shared.update(examples.globs)
    assert not failures, "".join(failures)
    return len(examples.examples)


def public(room: types.ModuleType) -> list[str]:
    """Functions and classes; the kinds of errors differ in nothing but their exit status and share one example."""
    found = {name: getattr(room, name) for name in room.__all__}
    return sorted(
        name
        for name, value in found.items()
        if (inspect.isfunction(value) or inspect.isclass(value))
        and not (inspect.isclass(value) and issubclass(value, funnel.FunnelError) and value is not funnel.FunnelError)
    )


@pytest.mark.parametrize("name", public(funnel))
def test_public_names_have_an_example_that_stands_alone(name: str) -> None:
    assert examined(inspect.getdoc(getattr(funnel, name)) or "", name, {})


@pytest.mark.parametrize("name", public(funnel.measures))
def test_measures_have_an_example_about_the_distribution_of_their_room(name: str) -> None:
    shared: dict[str, Any] = {}
    assert examined(inspect.getdoc(funnel.measures) or "", "funnel.measures", shared)
    assert examined(inspect.getdoc(getattr(funnel.measures, name)) or "", name, shared)


def test_the_plans_of_the_guide_list_every_mechanism() -> None:
    """Of one bound and of several."""
    page = ROOT / "docs" / "guides" / "steward.md"
    tables = re.findall(r"^mechanism  .*\n((?:[a-z-]+  .*\n)+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(tables) == 2
    for table in tables:
        assert sorted(line.split()[0] for line in table.splitlines()) == sorted(funnel.mechanisms.names())


def test_the_readme_counts_the_mechanisms() -> None:
    numbers = {16: "Sixteen", 17: "Seventeen", 18: "Eighteen"}
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert f"{numbers[len(funnel.mechanisms.names())]} mechanisms are compared" in readme
