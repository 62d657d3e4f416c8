"""The signature of a release: the key of a workspace, what it signs, and that nothing else can be verified."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from funnel.errors import DataError, OutputError, SpecError
from funnel.readers.source_files import file_digest
from funnel.release import signature
from funnel.release.layout import ReleaseFolder
from funnel.release.signature import (
    KEY_FILE,
    Manifest,
    ManifestFile,
    SignatureDocument,
    manifest_of,
    parse_public_key,
    public_key_of,
    sign_release,
    signer_of,
    signing_key,
)
from tests.projects import spec_of
from tests.schemas import validated_file

DIGEST = "ab" * 32


def manifest(*paths: str, **other: str) -> Manifest:
    told = {"series": "people", "version": "1.0.0", "created": "2026-01-01T00:00:00+00:00", **other}
    return Manifest(files=tuple(ManifestFile(path=path, sha256=DIGEST, bytes=5) for path in paths), **told)


def test_the_key_is_made_once_private_and_never_written_over(tmp_path: Path) -> None:
    workspace = tmp_path / "a" / ".funnel"
    assert public_key_of(workspace) is None
    key = signing_key(workspace)
    path = workspace / KEY_FILE
    assert (path.stat().st_mode & 0o777, workspace.stat().st_mode & 0o777) == (0o600, 0o700)
    before = path.read_bytes()
    assert public_key_of(workspace) == key.public_key().public_bytes_raw().hex()
    assert signing_key(workspace).private_bytes_raw() == key.private_bytes_raw()
    assert path.read_bytes() == before
    assert [entry.name for entry in workspace.iterdir()] == [KEY_FILE]
    # One a workspace, and another in every other.
    assert signing_key(tmp_path / "b").private_bytes_raw() != key.private_bytes_raw()


def test_of_two_runs_that_make_a_key_one_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = Ed25519PrivateKey.generate()
    content = theirs.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    link = os.link

    def later(source: Path, target: Path) -> None:
        target.write_bytes(content)
        target.chmod(0o600)
        link(source, target)

    monkeypatch.setattr(os, "link", later)
    assert signing_key(tmp_path).private_bytes_raw() == theirs.private_bytes_raw()
    assert [entry.name for entry in tmp_path.iterdir()] == [KEY_FILE]


def test_a_key_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"the signing key cannot be written to .*: No space left on device"):
        signing_key(tmp_path)
    assert list(tmp_path.iterdir()) == []


def foreign() -> bytes:
    return generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.write_bytes(b""), "cannot be read"),
        (lambda path: path.write_bytes(b"\xff"), "cannot be read"),
        (lambda path: path.write_bytes(foreign()), "is not an Ed25519 key"),
        (lambda path: path.mkdir(), "cannot be read"),
        (lambda path: path.write_bytes(foreign()) and path.chmod(0o644), "others may read the signing key"),
    ],
)
def test_a_key_that_is_damaged_or_open_is_refused(tmp_path: Path, make: Callable[[Path], object], said: str) -> None:
    make(tmp_path / KEY_FILE)
    if said != "others may read the signing key":
        (tmp_path / KEY_FILE).chmod(0o700 if (tmp_path / KEY_FILE).is_dir() else 0o600)
    for use in (signing_key, public_key_of):
        with pytest.raises(SpecError, match=said):
            use(tmp_path)


def test_a_release_is_signed_with_the_key_of_its_workspace(tmp_path: Path) -> None:
    spec = spec_of("people.parquet", tmp_path)
    folder = ReleaseFolder(tmp_path / "1.0.0")
    folder.root.mkdir()
    assert signer_of(folder) is None
    folder.protocol.write_text("{}")
    judged = {"protocol.json": file_digest(folder.protocol)}
    files = sign_release(spec, folder, "1.0.0", "2026-01-01T00:00:00+00:00", judged)
    assert files == {**judged, "signature.json": file_digest(folder.signature)}
    assert validated_file(folder.signature) == "signature"
    document = SignatureDocument.read(folder.signature)
    assert document.holds()
    assert document.public_key == public_key_of(spec.workspace_folder) == signer_of(folder)
    assert [(file.path, file.sha256, file.bytes) for file in document.manifest.files] == [
        ("protocol.json", judged["protocol.json"], 2)
    ]
    # As somebody else would verify it, with nothing of funnel.
    said = json.loads(folder.signature.read_text())
    text = json.dumps(said["manifest"], sort_keys=True, separators=(",", ":"))
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(said["public_key"]))
    key.verify(bytes.fromhex(said["signature"]), b"funnel/manifest/1\n" + text.encode())
    with pytest.raises(InvalidSignature):
        key.verify(bytes.fromhex(said["signature"]), text.encode())
    with pytest.raises(OutputError, match="a public file is gone before it was signed"):
        sign_release(spec, folder, "1.0.0", "2026-01-01T00:00:00+00:00", {"gone.json": DIGEST})
    with pytest.raises(DataError, match="a path is not one inside the release"):
        manifest_of("people", "1.0.0", "", {"../1.0.0/protocol.json": DIGEST}, folder)


@pytest.mark.parametrize("path", ["../a", "/a", "a/../b", "a//b", "./a", "", "a\nb", "a\x1b"])
def test_a_manifest_lists_files_of_the_release_alone(path: str) -> None:
    with pytest.raises(ValueError, match="files"):
        Manifest.model_validate(
            {**manifest("a").model_dump(mode="python"), "files": ({"path": path, "sha256": DIGEST, "bytes": 1},)}
        )


@pytest.mark.parametrize("paths", [("b", "a"), ("a", "a"), ()])
def test_a_manifest_lists_every_file_once_and_in_order(paths: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"files|order"):
        manifest(*paths)


names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=5)


@given(names, names, st.integers(0, 127))
def test_nothing_but_what_was_signed_holds(series: str, other: str, bit: int) -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    document = SignatureDocument.signed(manifest("a", "b", series=series), key)
    assert document.holds()
    assert document.model_copy(update={"manifest": manifest("a", "b", series=other)}).holds() is (other == series)
    assert not document.model_copy(update={"manifest": manifest("a", series=series)}).holds()
    flipped = bytearray.fromhex(document.signature)
    flipped[bit // 2] ^= 1 << bit % 8
    assert not document.model_copy(update={"signature": flipped.hex()}).holds()
    theirs = Ed25519PrivateKey.generate().public_key().public_bytes_raw().hex()
    assert not document.model_copy(update={"public_key": theirs}).holds()


def test_a_public_key_of_another_kind_is_none(tmp_path: Path) -> None:
    other = generate_private_key(SECP256R1()).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "large").write_bytes(b"0" * 20_000)
    (tmp_path / "binary").write_bytes(b"\xff" * 32)
    for text in (
        other.decode(),
        "-----BEGIN PUBLIC KEY-----\nx",
        str(tmp_path / "large"),
        str(tmp_path / "binary"),
        "",
    ):
        with pytest.raises(SpecError, match="is no Ed25519 public key"):
            parse_public_key(text)
    assert signature.KEY_FILE == KEY_FILE
