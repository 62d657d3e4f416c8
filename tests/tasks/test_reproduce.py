"""Pages of papers in a folder of documentation: what was drawn, and an index of all papers that are there."""

from __future__ import annotations

import json
from pathlib import Path

from funnel_papers.experiment import Size
from funnel_papers.steps import Reproduction, document, draw, measure, write

ADULT = Path(__file__).parents[2] / "data" / "adult.parquet"


def test_what_two_workers_measure_goes_into_a_folder_of_documentation(tmp_path: Path) -> None:
    two = Reproduction("pf", Size(1), ADULT, tmp_path / "reproduced", 2)
    found = measure(two, "3")
    # A figure that is measured and not drawn is on no page.
    two.folder.mkdir()
    before = write(two)
    assert Path(draw(two, "3", found)).name == "pf-3.svg"
    numbers = write(two)
    assert numbers != before
    docs = tmp_path / "docs"
    assert document(two, str(docs)) == ["index.md", "pf-3.svg", "pf-numbers.json", "pf.md"]
    assert json.loads((docs / "pf-numbers.json").read_text()) == numbers
    assert (docs / "pf-3.svg").read_bytes() == (two.folder / "pf-3.svg").read_bytes()
    index = (docs / "index.md").read_text()
    assert "pf.md" in index
    assert "alip.md" not in index
    # Another paper joins those that are there.
    (docs / "alip-numbers.json").write_text(json.dumps(numbers))
    assert "alip-numbers.json" not in document(two, str(docs))
    assert "alip.md" in (docs / "index.md").read_text()
