"""What the pages say of several observers is what the benchmark found."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import noisy_observers, observers

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
FIGURES = json.loads((RESULTS / "observers.json").read_text(encoding="utf-8"))


def test_pages_say_what_was_found() -> None:
    assert (RESULTS / "observers.md").read_text(encoding="utf-8") == observers.page_of(FIGURES)
    guide = (ROOT / "docs" / "history-figures.md").read_text(encoding="utf-8")
    for table in (observers.short_table(FIGURES), observers.released_table(FIGURES)):
        assert "\n".join(table) in guide
    said = " ".join((ROOT / "docs" / "limitations-figures.md").read_text(encoding="utf-8").split())
    for sentence in observers.quoted(FIGURES):
        assert sentence in said, sentence


def test_pages_say_what_was_found_under_noise() -> None:
    found = json.loads((RESULTS / "noisy-observers.json").read_text(encoding="utf-8"))
    assert (RESULTS / "noisy-observers.md").read_text(encoding="utf-8") == noisy_observers.page_of(found)
    assert "\n".join(noisy_observers.short_table(found)) in (ROOT / "docs" / "history-figures.md").read_text(
        encoding="utf-8"
    )
    people = found["movers and stayers"]
    one, both = (people[which][-1]["beyond"]["mover-stayer"] for which in ("transitions", "both"))
    # Nearer to the bound, and not within it; and in a small panel dearer.
    assert 1 < both["level"] < one["level"]
    assert both["share"] > 0.01
    one, both = (found["married given age and outwork"][which][1]["kept"] for which in ("transitions", "both"))
    assert both < one


def test_who_is_bounded_finds_nobody_outside_where_people_are_as_their_observer_expects() -> None:
    for family in observers.FAMILIES:
        found = FIGURES[f"{observers.SYNTHETIC.name}, {family}, both"]["by"]
        assert [found[name]["outside"] for name in observers.OBSERVERS] == [0, 0]
        alone = FIGURES[f"{observers.SYNTHETIC.name}, {family}, transitions"]["by"]
        assert alone["transitions"]["outside"] == 0 < alone["mover-stayer"]["outside"]


def test_releases_of_a_spec_are_within_the_bound_for_all_who_are_not_moved() -> None:
    for case in (observers.OUTWORK, observers.MARRIED):
        waves = FIGURES[observers.RELEASED][case.name]
        assert len(waves) == 5
        for wave in waves:
            # Each of the secret of this wave, and of all before it.
            assert {one["observer"] for one in wave["by"]} == set(observers.OBSERVERS)
            assert all(one["bounded"] for one in wave["by"])
            for one in wave["by"]:
                assert one["level"] <= case.guarantee.epsilon + 1e-9
                assert one["outside"] <= one["moved"]
