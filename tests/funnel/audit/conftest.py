"""What tests of audits share: a copy of the release of a module, with the private folder that it came from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from funnel.release.layout import ReleaseFolder


@pytest.fixture
def project(honest: ReleaseFolder, tmp_path: Path) -> ReleaseFolder:
    """A copy of the release `honest` of a module, with its workspace."""
    shutil.copytree(honest.root.parents[2], tmp_path / "project", symlinks=True)
    return ReleaseFolder(tmp_path / "project" / "releases" / "people" / "1.0.0")
