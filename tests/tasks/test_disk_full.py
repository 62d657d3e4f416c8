"""Files that really cannot grow: every write of a release fails somewhere, and nothing half-written is ever visible."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from funnel.errors import LedgerError, OutputError
from funnel.release.layout import versions
from tests.projects import adult_rows, make_project
from tests.releases import make_release


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """The system refuses to let any file grow beyond this many bytes, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_release_is_whole_or_absent_whatever_a_file_may_hold(tmp_path: Path) -> None:
    spec = make_project(tmp_path, table=adult_rows(0, 6000))
    limits = [0, 100, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000]
    for limit in limits:
        with files_of_at_most(limit), pytest.raises((OutputError, LedgerError), match="make room") as caught:
            make_release(spec)
        assert "\n" not in str(caught.value)
        assert versions(tmp_path / "releases" / "people") == []
        assert not (tmp_path / "releases" / "people" / "latest").exists()
    release = make_release(spec)
    assert (release.root.parent / "latest").resolve() == release.root
    assert [path.name for path in release.root.parent.iterdir() if path.name.startswith(".")] == []
