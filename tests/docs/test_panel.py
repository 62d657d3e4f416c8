"""What the pages say of the panel and of schedules is what the benchmarks found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import panel_page, past_secrets, schedules
from benchmarks.panel import TWO_SERIES

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
RESERVES = (1.0, 0.95, 0.9, 0.8)


def results_of(name: str) -> Any:
    found: Any = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def text_of(page: str) -> str:
    return (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")


def test_the_pages_of_results_are_those_of_the_results() -> None:
    page = (RESULTS / "panel.md").read_text(encoding="utf-8")
    assert page == panel_page.page_of(results_of("panel"), RESERVES)
    page = (RESULTS / "past-secrets.md").read_text(encoding="utf-8")
    assert page == past_secrets.page_of(results_of("past-secrets"))
    page = (RESULTS / "schedules.md").read_text(encoding="utf-8")
    assert page == schedules.page_of(results_of("schedules"))


def test_the_guide_shows_the_tables_of_the_results() -> None:
    page = text_of("history-figures")
    assert "\n".join(panel_page.short_table(results_of("panel"))) in page
    assert "\n".join(panel_page.reserve_table(results_of("panel"), RESERVES)) in page
    assert "\n".join(panel_page.linked_table(results_of("panel"))) in page
    assert "\n".join(schedules.short_table(results_of("schedules"))) in page


def test_the_guides_quote_the_results() -> None:
    for page, sentences in panel_page.quoted(results_of("panel")).items():
        said = " ".join(text_of(page).split())
        for sentence in sentences:
            assert sentence in said, sentence
    said = " ".join((text_of("history") + text_of("history-figures")).split())
    for sentence in [past_secrets.quoted(results_of("past-secrets")), *schedules.quoted(results_of("schedules"))]:
        assert sentence in said, sentence


def test_nobody_is_outside_for_a_second_reader_but_those_whom_the_frequencies_moved() -> None:
    figures = results_of("panel")
    ours = [(name, rows) for name, rows in figures.items() if "reserve" in name]
    assert len(ours) == 2 * len(RESERVES) + len(TWO_SERIES)
    for name, rows in ours:
        for row in rows:
            assert row["level"] <= (0.5 if name.startswith("married") else 1.0)
            assert row["second"]["moved"] == row["moved"]
            assert row["second"]["outside"] <= row["outside"] <= row["moved"]
            assert row["kept"] <= row["bound"] + 1e-9
