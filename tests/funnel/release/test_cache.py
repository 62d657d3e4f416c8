"""Results that are kept: found whole or not at all, under all that they depend on, the code included."""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from funnel.mechanisms import _MECHANISMS
from funnel.mechanisms.identity import Identity
from funnel.release.cache import Cache
from funnel.release.provenance import code_digest, installed, software

MINE = """
from funnel.mechanisms.identity import Identity


class Mine(Identity):
    \'\'\'{}\'\'\'

    name = "mine"
"""
FILES = {"a.json": b"one", "b.json": b"two"}


def test_what_is_kept_is_found_whole_or_not_at_all(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "work" / "joints")
    key = cache.key("x", ["y"], 1)
    assert cache.find(key) is None
    cache.keep(key, FILES)
    assert cache.find(key) == FILES
    folder = next(cache.folder.iterdir())
    assert folder.stat().st_mode & 0o077 == 0
    for damage in (
        lambda: (folder / "a.json").write_bytes(b"ONE"),
        lambda: (folder / "a.json").unlink(),
        lambda: (folder / "manifest.json").write_text("[]"),
        lambda: (folder / "manifest.json").write_text("{"),
        lambda: (folder / "manifest.json").unlink(),
    ):
        damage()
        assert cache.find(key) is None
        cache.keep(key, FILES)
        assert cache.find(key) == FILES
    # A folder that was renamed by hand holds the result of something else.
    other = cache.key("x", ["y"], 2)
    folder.rename(folder.with_name(other[:32]))
    assert cache.find(other) is None


def test_keys_tell_apart_what_differs(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    asked = [("a",), ("a", None), ("a", "b"), (["a", "b"],), ("ab",), (1,), ("1",), (True,), (1.0, "a"), ()]
    assert len({cache.key(*one) for one in asked}) == len(asked)


def test_what_is_under_other_keys_is_forgotten(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "joints")
    keys = [cache.key(i) for i in range(3)]
    for key in keys:
        cache.keep(key, FILES)
    cache.forget_others(keys[1])
    assert [cache.find(key) for key in keys] == [None, FILES, None]
    Cache(tmp_path / "nothing").forget_others(keys[1])


def test_what_was_used_longest_ago_is_forgotten_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "fits")
    keys = [cache.key(i) for i in range(4)]
    for second, key in enumerate(keys):
        cache.keep(key, FILES)
        os.utime(cache.folder / key[:32], (second, second))
    # What is found was used.
    assert cache.find(keys[0]) == FILES
    one = sum(file.stat().st_size for file in (cache.folder / keys[0][:32]).iterdir())
    cache.forget_oldest(2 * one)
    assert [cache.find(key) for key in keys] == [FILES, None, None, FILES]
    cache.forget_oldest(2 * one - 1)
    assert sum(cache.find(key) is not None for key in keys) == 1
    Cache(tmp_path / "nothing").forget_oldest(0)


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path)
    key = cache.key("x")
    cache.keep(key, FILES)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        cache.keep(key, {"a.json": b"new"})
    assert cache.find(key) == FILES
    assert len(list(tmp_path.iterdir())) == 1


def test_a_newly_registered_mechanism_is_other_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before, key = code_digest(), Cache(tmp_path).key("x")
    assert code_digest() == before
    digests = {before}
    for said in ("one", "another"):
        (tmp_path / "mine.py").write_text(MINE.format(said))
        spec = importlib.util.spec_from_file_location("mine", tmp_path / "mine.py")
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "mine", module)
            spec.loader.exec_module(module)
            patch.setitem(_MECHANISMS, "mine", module.Mine())
            digests.add(code_digest())
            assert Cache(tmp_path).key("x") != key
    assert len(digests) == 3
    assert code_digest() == before


def test_what_computes_is_named_with_its_version() -> None:
    assert {"funnel", "numpy", "scipy", "highspy"} <= set(software())


def test_a_package_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "numba":
            raise PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr("funnel.release.provenance.version", version)
    monkeypatch.setattr("funnel.release.provenance.installed", installed.__wrapped__)
    found = software()
    assert "numba" not in found
    assert {"funnel", "numpy"} <= set(found)


def test_a_mechanism_made_at_a_prompt_is_known_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no file of it."""
    before = code_digest()
    made = type("Mine", (Identity,), {"name": "mine", "__module__": "__nowhere__"})
    monkeypatch.setitem(_MECHANISMS, "mine", made())
    assert code_digest() not in (before, "")
