"""What tests of audits share: a copy of the release of a module, with the private folder that it came from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from funnel.release.layout import ReleaseFolder
from tests.copies import copied
from tests.funnel.audit.forging import TEXT
from tests.projects import make_project
from tests.releases import make_release


@pytest.fixture(scope="session")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    """A release with noise; not to be changed."""
    return make_release(make_project(tmp_path_factory.mktemp("noisy"), TEXT))


@pytest.fixture
def project(honest: ReleaseFolder, tmp_path: Path) -> ReleaseFolder:
    """A copy of the release `honest` of a module, with its workspace."""
    shutil.copytree(honest.root.parents[2], tmp_path / "project", symlinks=True)
    return ReleaseFolder(tmp_path / "project" / "releases" / "people" / "1.0.0")


@pytest.fixture
def copy(honest: ReleaseFolder, tmp_path: Path) -> ReleaseFolder:
    """A copy of it away from the workspace, with its internal evidence."""
    return copied(honest, tmp_path / honest.root.name)
