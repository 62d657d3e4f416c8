"""What a release keeps of its origin: the spec to the letter, wherever its folders are."""

from __future__ import annotations

from pathlib import Path

import pytest

from funnel.errors import SpecError
from funnel.release.internal_evidence import read_spec, write_spec
from funnel.release.layout import ReleaseFolder
from funnel.spec import ReleaseSpec
from tests.projects import SPEC


def test_a_spec_is_kept_in_the_output_folder_that_it_names(tmp_path: Path) -> None:
    text = f'{SPEC}\n[output]\nfolder = "{tmp_path}/releases"\nworkspace = "{tmp_path}/.funnel"\n'
    (tmp_path / "people.toml").write_text(text, encoding="utf-8")
    spec = ReleaseSpec.load(tmp_path / "people.toml")
    folder = ReleaseFolder(tmp_path / "releases" / "people" / "1.0.0")
    folder.internal.mkdir(parents=True)
    write_spec(spec, folder)
    kept = read_spec(folder, folder.spec.read_text(encoding="utf-8"), None)
    assert kept.text == text
    assert kept.output_folder == spec.output_folder
    # Whoever would release by that copy publishes it.
    with pytest.raises(SpecError, match="must not hold the"):
        ReleaseSpec.load(folder.spec)
