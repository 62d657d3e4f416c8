"""Signature: a version's manifest signed with the publisher's Ed25519 key, made on first use and kept private."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, ClassVar, Literal, Self

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from pydantic import Field, model_validator

from funnel.errors import DataError, OutputError, SpecError
from funnel.release.document import Count, Document, Part, Sha256
from funnel.release.files import make_secret_file, private_folder, require_secret, write_whole
from funnel.release.layout import ReleaseFolder
from funnel.spec import ReleaseSpec

_VERSION = r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$"


class ManifestFile(Part):
    """One public file.

    Attributes
    ----------
    path : str
        In the folder of the version, with slashes.
    sha256 : str
        Hexadecimal digest of its bytes.
    bytes : int
    """

    path: str = Field(min_length=1, max_length=1000)
    sha256: Sha256
    bytes: Count

    @model_validator(mode="after")
    def _stays_in_the_folder(self) -> ManifestFile:
        path = PurePosixPath(self.path)
        if path.is_absolute() or ".." in path.parts or str(path) != self.path or not self.path.isprintable():
            raise ValueError("names a file outside the release")
        return self


class Manifest(Part):
    """All public files of a version but the signature itself.

    Attributes
    ----------
    series : str
    version : str
    created : str
        Time of publication, ISO 8601 with time zone.
    files : tuple of ManifestFile
        In the order of their paths, each once.
    """

    series: str = Field(min_length=1)
    version: Annotated[str, Field(pattern=_VERSION)]
    created: str
    files: tuple[ManifestFile, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _in_order(self) -> Manifest:
        paths = [file.path for file in self.files]
        if paths != sorted(set(paths)):
            raise ValueError("does not list every file once, in the order of their paths")
        return self


def manifest_of(series: str, version: str, created: str, files: Mapping[str, str], folder: ReleaseFolder) -> Manifest:
    """The manifest of files whose digests were judged; the sizes are those of the files in the folder.

    Parameters
    ----------
    series, version, created : str
    files : mapping of str to str
        SHA-256 (hex) by path in the folder.
    folder : ReleaseFolder

    Raises
    ------
    OutputError
        If a file is not there.
    DataError
        If a path leads out of the folder.
    """
    try:
        listed = tuple(
            ManifestFile(path=path, sha256=files[path], bytes=(folder.root / path).stat().st_size)
            for path in sorted(files)
        )
        return Manifest(series=series, version=version, created=created, files=listed)
    except OSError as error:
        raise OutputError(
            f"a public file is gone before it was signed ({error.strerror}); run the release again"
        ) from error
    except ValueError as error:
        raise DataError("the list of public files cannot be signed: a path is not one inside the release") from error


KEY_FILE = "signing-key"
_HEX = re.compile(r"[0-9a-fA-F]{64}")
# A public key as text is short; anything longer is another file.
_LONGEST = 10_000


class SignedDocument(Document):
    """A document with the public half of the key that signed what is in it, and the signature; public.

    With the key that is inside it proves that nothing was changed by accident; who signed is known only by a key that
    came another way.

    Attributes
    ----------
    signs : str
        Name of the field with what is signed.
    line : bytes
        Before that, so that a signature cannot be taken for one of anything else that the key may sign.
    algorithm : str
    public_key, signature : str
        Hexadecimal: 32 and 64 bytes.
    """

    signs: ClassVar[str]
    line: ClassVar[bytes]
    algorithm: Literal["Ed25519"] = "Ed25519"
    # As long as a digest, and written as one.
    public_key: Sha256
    signature: str = Field(pattern=r"^[0-9a-f]{128}$")

    @classmethod
    def bytes_of(cls, part: Part) -> bytes:
        """The bytes that are signed: the line, then JSON with sorted keys, ASCII, no spaces."""
        content = part.model_dump(mode="json")
        return cls.line + json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode("ascii")

    @classmethod
    def signed(cls, part: Part, key: Ed25519PrivateKey) -> Self:
        """Sign a part."""
        public_key, signature = key.public_key().public_bytes_raw(), key.sign(cls.bytes_of(part))
        said = {"public_key": public_key.hex(), "signature": signature.hex()}
        return cls.model_validate({**said, cls.signs: part})

    def holds(self) -> bool:
        """Whether it was signed with the key that is inside."""
        try:
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.public_key))
            key.verify(bytes.fromhex(self.signature), self.bytes_of(getattr(self, self.signs)))
        except (InvalidSignature, ValueError):
            return False
        return True


class SignatureDocument(SignedDocument):
    """The manifest of a version, the public half of the key that signed it, and the signature; public.

    The signature is of the line ``funnel/manifest/1`` and the manifest as JSON with sorted keys, in ASCII, without
    spaces.

    Attributes
    ----------
    manifest : Manifest
    """

    described: ClassVar[str] = "the signature"
    signs, line = "manifest", b"funnel/manifest/1\n"
    schema_: Literal["funnel/signature/1"] = Field(default="funnel/signature/1", alias="schema")
    manifest: Manifest


def sign_release(
    spec: ReleaseSpec, folder: ReleaseFolder, version: str, created: str, files: Mapping[str, str]
) -> dict[str, str]:
    """Sign the public files of a coming version with the key of its workspace, and write ``signature.json``.

    Parameters
    ----------
    spec : ReleaseSpec
    folder : ReleaseFolder
    version, created : str
    files : mapping of str to str
        SHA-256 (hex) by path, as they were judged.

    Returns
    -------
    dict of str to str
        The same with the digest of the signature's own file.

    Raises
    ------
    SpecError
        If others may read the key, or it is damaged.
    OutputError
        If the key or the signature cannot be written.
    """
    key = signing_key(spec.workspace_folder)
    document = SignatureDocument.signed(manifest_of(spec.name, version, created, files, folder), key)
    return {**files, folder.signature.name: write_whole(folder.signature, document.to_bytes()).sha256}


def signing_key(workspace: Path) -> Ed25519PrivateKey:
    """The key of a workspace; made on first use, readable by its owner alone, and never written over.

    Raises
    ------
    SpecError
        If others may read it, or it is no Ed25519 key.
    OutputError
        If it cannot be made.
    """
    path = private_folder(workspace) / KEY_FILE
    if not path.exists():
        content = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        make_secret_file(path, content, "the signing key")
    return _read(path)


def public_key_of(workspace: Path) -> str | None:
    """The public half (hex) of the key of a workspace; None where there is none yet.

    Raises
    ------
    SpecError
        As in `signing_key`.
    """
    path = workspace / KEY_FILE
    return _read(path).public_key().public_bytes_raw().hex() if path.exists() else None


def signer_of(folder: ReleaseFolder) -> str | None:
    """The public key (hex) in the signature of a version; None where it is not signed."""
    return SignatureDocument.read(folder.signature).public_key if folder.signature.is_file() else None


def parse_public_key(text: str) -> str:
    """A public key as 64 hexadecimal digits, from such, from base64, from PEM, or from a file with one of them.

    Raises
    ------
    SpecError
        If it is none of these.
    """
    given = text.strip()
    found = _public_key(given)
    if found is None and (path := Path(given)).is_file() and path.stat().st_size <= _LONGEST:
        try:
            found = _public_key(path.read_text(encoding="ascii").strip())
        except (OSError, UnicodeDecodeError):
            found = None
    if found is None:
        raise SpecError(
            "the key is no Ed25519 public key: give 64 hexadecimal digits, base64, PEM, or a file with one of them"
        )
    return found


def _public_key(text: str) -> str | None:
    if _HEX.fullmatch(text):
        return text.lower()
    if text.startswith("-----BEGIN PUBLIC KEY-----"):
        try:
            key = load_pem_public_key(text.encode())
        except (ValueError, UnsupportedAlgorithm):
            return None
        return key.public_bytes_raw().hex() if isinstance(key, Ed25519PublicKey) else None
    try:
        raw = base64.b64decode(text.translate(str.maketrans("-_", "+/")) + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw.hex() if len(raw) == 32 else None


def _read(path: Path) -> Ed25519PrivateKey:
    try:
        require_secret(path, "the signing key")
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise SpecError(
            f"the signing key {path} cannot be read ({type(error).__name__}); restore it from a backup"
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise SpecError(f"the signing key {path} is not an Ed25519 key; restore it from a backup")
    return key
