"""What `make clean` removes: what can be made again, and neither a record of what was published nor a secret."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
MADE = (
    ".venv/bin/python",
    "build/lib/funnel.py",
    "dist/funnel.whl",
    "funnel.egg-info/PKG-INFO",
    "funnel/__pycache__/joint.pyc",
    ".mutants/rounding.json",
    ".hypothesis/examples/1",
    ".coverage",
)
KEPT = (
    ".funnel/people/release-secret",
    ".funnel/internal/people/1.0.0/release.json",
    "data/.funnel/people/release-secret",
    "releases/people/1.0.0/report.html",
    "data/adult.parquet",
    "funnel/joint.py",
)


def test_clean_keeps_releases_records_and_secrets(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in (*MADE, *KEPT):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True, capture_output=True)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"Makefile", *KEPT}
