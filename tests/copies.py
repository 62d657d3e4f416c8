"""Copies of releases: of a version's folder with its internal evidence beside it, as an auditor may have it."""

from __future__ import annotations

import shutil
from pathlib import Path

from funnel.release.layout import ReleaseFolder


def copied(folder: ReleaseFolder, target: Path) -> ReleaseFolder:
    """A copy of a version with all its files; `shutil.copytree` of its folder copies the public ones alone."""
    copy = ReleaseFolder(target)
    shutil.copytree(folder.internal, target.with_name(f"{target.name}.internal"))
    shutil.copytree(folder.root, target)
    return copy
