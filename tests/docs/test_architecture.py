"""The map of the project says what its packages and modules say of themselves."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("architecture_map", ROOT / "scripts" / "architecture_map.py")
assert _SPEC is not None
assert _SPEC.loader is not None
architecture_map = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(architecture_map)


def test_the_map_is_that_of_the_code() -> None:
    page = architecture_map.PAGE.read_text(encoding="utf-8")
    assert architecture_map.with_map(page) == page, "run python scripts/architecture_map.py"
    assert "`funnel/joint.py`" in page


def test_every_module_says_in_one_line_what_it_is(tmp_path: Path) -> None:
    listing = architecture_map.listing()
    assert "- `run.py`: " in listing
    (tmp_path / "unclear.py").write_text('"""It is\nunclear."""')
    with pytest.raises(ValueError, match="first line of the docstring"):
        architecture_map.first_line(tmp_path / "unclear.py")
