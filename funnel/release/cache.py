"""Cache: results of slow steps, kept in the private workspace under a digest of all that they depend on."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from funnel.release.document import dump
from funnel.release.files import private_folder, remove_tree, sync_folder, sync_tree, write_new
from funnel.release.provenance import code_digest

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Cache:
    """Results of one step.

    Attributes
    ----------
    folder : Path
        ``<workspace>/<name of the release>/<step>``; it holds counts of people, as the source does.
    """

    folder: Path

    def key(self, *depends_on: object) -> str:
        """Digest (hex) of what a result depends on, and of the code that makes it.

        Parameters
        ----------
        depends_on : JSON values
            Texts, numbers, truth values and lists of them; the order counts.
        """
        return hashlib.sha256(json.dumps([code_digest(), *depends_on]).encode()).hexdigest()

    def find(self, key: str) -> dict[str, bytes] | None:
        """Files of the result under a key, each read once; None if there is none that is whole."""
        folder = self.folder / key[:32]
        try:
            manifest = json.loads((folder / _MANIFEST).read_bytes())
            files = {name: (folder / name).read_bytes() for name in manifest["files"]}
            whole = manifest["key"] == key and manifest["files"] == {
                name: hashlib.sha256(content).hexdigest() for name, content in files.items()
            }
            if whole:
                os.utime(folder)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return files if whole else None

    def keep(self, key: str, files: Mapping[str, bytes]) -> None:
        """Keep a result, all of it or nothing.

        Raises
        ------
        OSError, OutputError
            If it cannot be written.
        """
        private_folder(self.folder)
        incoming = private_folder(self.folder / f".{secrets.token_hex(8)}")
        try:
            for name, content in files.items():
                write_new(incoming / name, content)
            digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
            write_new(incoming / _MANIFEST, dump({"key": key, "files": digests}))
            sync_tree(incoming)
            target = self.folder / key[:32]
            # Of a run that was killed, or damaged.
            remove_tree(target)
            incoming.replace(target)
            sync_folder(self.folder)
        finally:
            remove_tree(incoming)

    def forget_others(self, key: str) -> None:
        """Remove what is under other keys: counts of earlier sources are needed no more."""
        for folder in self.folder.iterdir() if self.folder.is_dir() else ():
            if folder.name != key[:32]:
                remove_tree(folder)

    def forget_oldest(self, most: int) -> None:
        """Remove results, those used longest ago first, until all together have at most so many bytes."""
        kept = list(self.folder.iterdir()) if self.folder.is_dir() else []
        for folder in sorted(kept, key=lambda folder: folder.stat().st_mtime_ns, reverse=True):
            most -= sum(file.stat().st_size for file in folder.iterdir())
            if most < 0:
                remove_tree(folder)
