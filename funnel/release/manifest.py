"""Manifest: which public files a version has, with digest and size of each, as bytes that can be signed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import Field, model_validator

from funnel.errors import DataError, OutputError
from funnel.release.document import Count, Part, Sha256
from funnel.release.layout import ReleaseFolder

_VERSION = r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$"
# A signature of these bytes cannot be taken for one of anything else that the key may sign.
_PREFIX = b"funnel/manifest/1\n"


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

    def signed_bytes(self) -> bytes:
        """The bytes that are signed: one line that says what they are, then JSON with sorted keys, ASCII, no spaces."""
        return bytes_to_sign(_PREFIX, self)


def bytes_to_sign(prefix: bytes, part: Part) -> bytes:
    """A line that says what is signed, then the part as JSON with sorted keys, ASCII, no spaces."""
    content = part.model_dump(mode="json")
    return prefix + json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode("ascii")


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
