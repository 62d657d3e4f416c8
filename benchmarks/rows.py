"""Rows of figures as benchmarks keep them: as JSON, a row on a line, and as a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
Row = dict[str, Any]


def save(rows: Iterable[Row], path: Path) -> None:
    """Write all rows, so that a change of one is a change of one line."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    path.write_text(f"[\n{lines}\n]\n")


def save_as_they_come(rows: Iterable[Row], name: str, page: Callable[[list[Row]], str]) -> None:
    """Print every row as it is measured, and write what there is to ``name.json`` and ``name.md`` of the results."""
    found: list[Row] = []
    for row in rows:
        print(row, flush=True)
        found.append(row)
        save(found, RESULTS / f"{name}.json")
        (RESULTS / f"{name}.md").write_text(page(found))


def saved(name: str) -> list[Row]:
    """The rows that were written to ``name.json`` of the results."""
    rows: list[Row] = json.loads((RESULTS / f"{name}.json").read_text())
    return rows


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """The lines of a table in Markdown."""
    return [f"| {' | '.join(map(str, cells))} |" for cells in (head, ["---"] * len(head), *rows)]
