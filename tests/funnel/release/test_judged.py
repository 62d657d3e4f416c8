"""What is published is what a passing verdict is about: every file, byte for byte, and no other."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from funnel.errors import ReleaseRefused
from funnel.release.layout import ReleaseFolder, Version, versions
from funnel.release.series import open_series
from funnel.release.validated import public_digests, require_validated
from funnel.release.verdict import Judgement, Verdict
from tests.projects import spec_of
from tests.releases import judged

FILES = ("data/records.parquet", "protocol.json", "report.html", "datapackage.json")
FAILED = Judgement(name="expect_b", description="B holds.", passed=False, failure="3 instead of 2")


@pytest.fixture
def folder(tmp_path: Path) -> ReleaseFolder:
    root = tmp_path / "incoming"
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (tmp_path / "kept").mkdir(mode=0o700)
    return ReleaseFolder(root, tmp_path / "kept")


def test_every_file_is_noted(folder: ReleaseFolder) -> None:
    assert public_digests(folder.root) == {name: sha256(name.encode()).hexdigest() for name in FILES}
    (folder.root / "audit").mkdir()
    (folder.root / "audit" / ".hidden").write_text("x")
    assert set(public_digests(folder.root)) == {*FILES, "audit/.hidden"}


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("protocol.json"), os.mkfifo])
def test_what_is_no_file_is_refused(folder: ReleaseFolder, make: Callable[[Path], None]) -> None:
    verdict = judged(folder)
    make(folder.root / "data" / "more")
    for call in (lambda: public_digests(folder.root), lambda: require_validated(folder, verdict)):
        with pytest.raises(ReleaseRefused, match=r"^'data/more' in the release is neither a file nor a folder"):
            call()


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" ")


def flip(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(("touch", "what"), [(append, "was changed"), (flip, "was changed"), (Path.unlink, "is gone")])
def test_a_file_that_is_not_the_judged_one_is_refused(
    folder: ReleaseFolder, name: str, touch: Callable[[Path], None], what: str
) -> None:
    verdict = judged(folder)
    require_validated(folder, verdict)
    touch(folder.root / name)
    with pytest.raises(ReleaseRefused, match=rf"'{name}' {what} after the release was judged"):
        require_validated(folder, verdict)


def test_a_file_that_came_is_refused_but_for_the_signature_as_it_was_written(folder: ReleaseFolder) -> None:
    verdict = judged(folder)
    (folder.internal / "verdict.json").write_text("{}")
    require_validated(folder, verdict)
    (folder.root / "signature.json").write_text("{}")
    require_validated(folder, verdict, sha256(b"{}").hexdigest())
    for signature, what in ((None, "came"), (sha256(b"{ }").hexdigest(), "was changed")):
        with pytest.raises(ReleaseRefused, match=rf"'signature\.json' {what} after"):
            require_validated(folder, verdict, signature)
    (folder.root / "signature.json").unlink()
    (folder.root / "joint.json").write_text("{}")
    with pytest.raises(ReleaseRefused, match=r"'joint\.json' came after"):
        require_validated(folder, verdict)


def test_a_verdict_that_is_negative_or_about_no_file_is_refused(folder: ReleaseFolder) -> None:
    good = judged(folder)
    for verdict, words in (
        (Verdict.of((FAILED,), good.files), "expect_b: 3 instead of 2"),
        (Verdict.of((), good.files), "no expectation was evaluated"),
        (Verdict.of(good.results), "names no file"),
    ):
        with pytest.raises(ReleaseRefused, match=f"^nothing was published: .*{words}"):
            require_validated(folder, verdict)


@pytest.mark.parametrize("mode", [0o750, 0o705, 0o710, 0o701])
def test_evidence_that_others_may_read_is_not_published(folder: ReleaseFolder, mode: int) -> None:
    verdict = judged(folder)
    require_validated(folder, verdict)
    folder.internal.chmod(mode)
    with pytest.raises(ReleaseRefused, match="others than its owner may read its internal evidence"):
        require_validated(folder, verdict)


def test_a_series_publishes_nothing_that_was_not_judged(tmp_path: Path) -> None:
    spec = spec_of("x.parquet", tmp_path, output={"folder": "out", "workspace": "work"})
    with open_series(spec) as series:
        with series.incoming() as incoming:
            incoming.internal.mkdir(mode=0o700)
            incoming.record.write_text("{}")
            incoming.protocol.write_text("judged")
            verdict = judged(incoming)
            incoming.protocol.write_text("exchanged")
            with pytest.raises(ReleaseRefused, match="was changed after the release was judged"):
                series.publish(incoming, Version(1, 0, 0), verdict, lambda *_: None)
        assert versions(series.root) == []
        assert list(series.records.announced) == []
