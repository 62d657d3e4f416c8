"""The release secret: made once, private, and never lost or exchanged in silence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from funnel.errors import LedgerError, OutputError, SpecError
from funnel.release.secret import FILE, NEXT, REGISTER_FILE, commit_secret, find_register_secret, find_secret


def test_a_file_is_made_on_first_use_and_found_again(tmp_path: Path) -> None:
    made = find_secret("file", tmp_path / "work", None, False)
    path = tmp_path / "work" / FILE
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(bytes.fromhex(path.read_text())) == 32
    assert find_secret("file", tmp_path / "work", made.fingerprint, False) == made
    assert made.record_key(("id",)).secret.hex() == path.read_text()
    assert path.read_text() not in repr(made)


def test_of_two_runs_that_make_a_secret_one_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def later(source: Path, target: Path) -> None:
        target.write_text("ab" * 31 + "cd")
        target.chmod(0o600)
        link(source, target)

    monkeypatch.setattr(os, "link", later)
    assert find_secret("file", tmp_path, None, False).record_key(("id",)).secret.hex() == "ab" * 31 + "cd"
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_secret_that_is_gone_or_another_is_refused(tmp_path: Path) -> None:
    made = find_secret("file", tmp_path, None, False)
    (tmp_path / FILE).write_text("ab" * 31 + "cd")
    with pytest.raises(LedgerError, match=r"is not the one .* --rotate-secret"):
        find_secret("file", tmp_path, made.fingerprint, False)
    with pytest.raises(LedgerError, match="changed during the release"):
        made.record_key(("id",))
    (tmp_path / FILE).unlink()
    with pytest.raises(LedgerError, match=r"is gone; restore it from a backup"):
        find_secret("file", tmp_path, made.fingerprint, False)
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize("published", [False, True])
def test_a_rotation_counts_once_it_is_published(tmp_path: Path, published: bool) -> None:
    made = find_secret("file", tmp_path, None, False)
    rotated = find_secret("file", tmp_path, made.fingerprint, True)
    assert rotated.fingerprint != made.fingerprint
    # The run is killed here; whether its version had appeared decides.
    found = find_secret("file", tmp_path, (rotated if published else made).fingerprint, False)
    assert found.fingerprint == (rotated if published else made).fingerprint
    assert Path(found.place).name == FILE
    assert not (tmp_path / NEXT).exists()


def test_a_rotation_is_settled_after_publication(tmp_path: Path) -> None:
    made = find_secret("file", tmp_path, None, False)
    rotated = find_secret("file", tmp_path, made.fingerprint, True)
    commit_secret(rotated)
    assert find_secret("file", tmp_path, rotated.fingerprint, False).fingerprint == rotated.fingerprint
    commit_secret(find_secret("file", tmp_path, rotated.fingerprint, False))


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    find_secret("file", tmp_path, None, False)
    (tmp_path / FILE).chmod(0o640)
    with pytest.raises(SpecError, match="chmod 600"):
        find_secret("file", tmp_path, None, False)


def test_a_secret_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpecError, match="FUNNEL_TEST_SECRET, which is not set"):
        find_secret("environment:FUNNEL_TEST_SECRET", tmp_path, None, False)
    monkeypatch.setenv("FUNNEL_TEST_SECRET", "short")
    with pytest.raises(SpecError, match="has 5 bytes") as caught:
        find_secret("environment:FUNNEL_TEST_SECRET", tmp_path, None, False)
    assert "short" not in str(caught.value)
    monkeypatch.setenv("FUNNEL_TEST_SECRET", "0123456789abcdef" * 4)
    found = find_secret("environment:FUNNEL_TEST_SECRET", tmp_path, None, False)
    assert found.record_key(("id",)).secret == bytes.fromhex("0123456789abcdef" * 4)
    with pytest.raises(SpecError, match="put a new one there"):
        find_secret("environment:FUNNEL_TEST_SECRET", tmp_path, found.fingerprint, True)
    monkeypatch.setenv("FUNNEL_TEST_SECRET", "a long phrase from a vault, kept for years")
    with pytest.raises(LedgerError, match="is not the one"):
        find_secret("environment:FUNNEL_TEST_SECRET", tmp_path, found.fingerprint, False)
    assert find_secret("environment:FUNNEL_TEST_SECRET", tmp_path, found.fingerprint, True) != found


def test_a_secret_that_cannot_be_written_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OutputError, match=r"cannot be written to .*: No space left on device"):
            find_secret("file", tmp_path, None, False)
    assert list(tmp_path.iterdir()) == []


def test_a_block_of_the_orchestrator_needs_the_pipeline(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="which only the pipeline can read"):
        find_secret("prefect:people", tmp_path, None, False)
    asked: list[str] = []

    def read(place: str) -> str:
        asked.append(place)
        return "0123456789abcdef" * 4

    found = find_secret("prefect:people", tmp_path, None, False, read)
    assert found.record_key(("id",), read).secret == bytes.fromhex("0123456789abcdef" * 4)
    assert asked == ["prefect:people"] * 2


def test_a_secret_that_is_no_text_is_refused_without_showing_it(tmp_path: Path) -> None:
    find_secret("file", tmp_path, None, False)
    (tmp_path / FILE).write_bytes(b"\xff" * 64)
    with pytest.raises(SpecError, match=r"cannot be read \(UnicodeDecodeError\)"):
        find_secret("file", tmp_path, None, False)


def test_a_secret_that_waits_for_approval_with_its_version_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = find_secret("file", tmp_path, None, False)
    rotated = find_secret("file", tmp_path, made.fingerprint, True)
    for _ in range(2):
        assert find_secret("file", tmp_path, made.fingerprint, False, waiting=rotated.fingerprint) == rotated
    # Rejected or superseded, it is forgotten; published, it is the one.
    assert find_secret("file", tmp_path, made.fingerprint, False).fingerprint == made.fingerprint
    assert not (tmp_path / NEXT).exists()

    monkeypatch.setenv("FUNNEL_TEST_SECRET", "0123456789abcdef" * 4)
    found = find_secret("environment:FUNNEL_TEST_SECRET", tmp_path, None, False)
    place = "environment:FUNNEL_TEST_SECRET"
    assert find_secret(place, tmp_path, made.fingerprint, False, waiting=found.fingerprint) == found
    with pytest.raises(LedgerError, match="is not the one"):
        find_secret(place, tmp_path, made.fingerprint, False, waiting=rotated.fingerprint)


def test_the_people_of_a_register_are_known_by_one_secret(tmp_path: Path) -> None:
    made = find_register_secret("file", tmp_path, "panel", None)
    path = tmp_path / REGISTER_FILE
    assert path.stat().st_mode & 0o777 == 0o600
    assert find_register_secret("file", tmp_path, "panel", None) == made
    assert find_register_secret("file", tmp_path, "panel", made.fingerprint) == made
    # The same secret in another register stands for other people.
    other = find_register_secret("environment:X", tmp_path, "another", made.fingerprint, lambda _: path.read_text())
    assert (other.fingerprint, other.series == made.series) == (made.fingerprint, False)
    # One that is kept elsewhere is read there, and no file is made for it.
    assert other.place == "environment:X"
    find_register_secret("environment:X", tmp_path / "elsewhere", "another", None, lambda _: path.read_text())
    assert not (tmp_path / "elsewhere").exists()
    path.write_text("ab" * 31 + "cd")
    with pytest.raises(LedgerError, match=r"is not the one that the register was written with: nobody in .* panel"):
        find_register_secret("file", tmp_path, "panel", made.fingerprint)
    path.unlink()
    with pytest.raises(LedgerError, match=r"is gone: nobody in the register panel could be known again.* from a backu"):
        find_register_secret("file", tmp_path, "panel", made.fingerprint)
    assert not path.exists()
