"""Releases with everything fixed that is drawn or told by a clock are, to the byte, those that are stored."""

from __future__ import annotations

import json

import pytest

from tests import golden

STORED = json.loads(golden.STORED.read_text(encoding="utf-8"))


def test_every_release_is_stored() -> None:
    assert [*STORED] == sorted(golden.RELEASES)


@pytest.mark.parametrize("name", golden.RELEASES)
def test_files_are_as_they_were(name: str) -> None:
    found = golden.digests(name)
    changed = [path for path in sorted({*found, *STORED[name]}) if found.get(path) != STORED[name].get(path)]
    assert not changed, f"{changed} changed: if they are meant to, run python -m tests.golden and say why in the commit"
