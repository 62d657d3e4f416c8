"""A version that is held, after something else was published about its people: it waits no more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from funnel.pipeline.flows import look as looking
from funnel.release.layout import Version
from tests.projects import spec_of

SAME = {"record_key": ["id"], "history": {"people": "same"}, "approval": {"required": True}}


@pytest.mark.parametrize(("given", "moved_on"), [("0" * 64, True), (None, False)])
def test_what_is_held_given_another_register_waits_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None, moved_on: bool
) -> None:
    spec = spec_of("people.parquet", tmp_path, **SAME)
    history = SimpleNamespace(given=given)
    waiting = SimpleNamespace(held=SimpleNamespace(record=SimpleNamespace(history=history)))
    series = SimpleNamespace(held=SimpleNamespace(waiting=waiting))

    @contextmanager
    def opened(_: Any) -> Iterator[Any]:
        yield series

    for name, value in (
        ("open_series", opened),
        ("release_secret", lambda *_, **__: None),
        ("committed_version", lambda *_: Version(1, 0, 0)),
        ("people_known", lambda *_: True),
        ("waits", lambda *_: {"status": "held"}),
    ):
        monkeypatch.setattr(looking, name, value)
    assert looking.look(spec) == (None if moved_on else {"status": "held"})
