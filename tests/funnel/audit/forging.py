"""A forger of releases: changes what is wanted, then makes every digest fit and signs with a key of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from funnel.protocol import Protocol
from funnel.readers.source_files import file_digest
from funnel.release.document import dump
from funnel.release.handouts import documentation
from funnel.release.layout import INDEX, ReleaseFolder
from funnel.release.series_index import ListedVersion, SeriesIndex, VersionList
from funnel.release.signature import SignatureDocument, manifest_of
from funnel.rendering import page_renderer
from funnel.sampling.output_columns import OutputColumns, ReleaseWriter
from tests.projects import SPEC

# Of a release with noise, whose secrets are declared.
TEXT = (
    SPEC.replace('protection = "none"', 'protection = "noise"')
    + '\n[limits]\nset_aside = 0.1\n\n[mechanism]\nname = "grr"\n\n[categories]\n'
    + 'marital-status = ["Divorced", "Married-civ-spouse", '
    + '"Never-married", "Separated", "Widowed", "Other"]\n'
)
PUBLIC = ("data/records.parquet", "data/records.csv", "protocol.json", "report.html", "datapackage.json")


@dataclass(frozen=True)
class Forger:
    """Has a copy of a release, and everything that funnel has but, unless it is given, the publisher's key."""

    folder: ReleaseFolder
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    def read(self, path: Path) -> Any:
        """A document."""
        return json.loads(path.read_bytes())

    def edit(self, path: Path, change: Callable[[Any], None]) -> None:
        """Change a document in place, written as funnel writes it."""
        content = self.read(path)
        change(content)
        path.write_bytes(dump(content))

    def protocol(self, change: Callable[[Any], None]) -> None:
        """Change protocol.json, with the digest that fits."""
        self.edit(self.folder.protocol, change)

        def digested(content: Any) -> None:
            plain = {**content, "guarantee": content["guarantee"]["declared"]}
            content["digest"] = _digest_of(plain)

        self.edit(self.folder.protocol, digested)

    def package(self, change: Callable[[Any], None]) -> None:
        """Change datapackage.json."""
        self.edit(self.folder.package, change)

    def privacy(self, **values: Any) -> None:
        """Change the block on privacy in datapackage.json."""
        self.package(lambda content: content["funnel:privacy"].update(values))

    def report(self, old: str, new: str) -> None:
        """Replace a text in the report."""
        page = self.folder.report.read_text(encoding="utf-8")
        assert old in page
        self.folder.report.write_text(page.replace(old, new), encoding="utf-8")

    def codes(self) -> Any:
        """The released rows as positions of outputs."""
        outputs = Protocol.from_json(self.folder.protocol.read_bytes()).outputs
        rows = zip(*pq.read_table(self.folder.data).to_pydict().values(), strict=True)
        return np.array([outputs.index(row) for row in rows])

    def rows(self, change: Callable[[Any], Any]) -> None:
        """Change the rows, written as funnel writes them, in the csv too."""
        self.write(change(self.codes()))

    def write(self, codes: Any) -> None:
        """Write rows as funnel writes them, in the csv too."""
        protocol = Protocol.from_json(self.folder.protocol.read_bytes())
        with ReleaseWriter(self.folder.data, OutputColumns(protocol)) as writer:
            writer.write(np.asarray(codes))
        self.copy(OutputColumns(protocol).batch(np.asarray(codes)))

    def copy(self, rows: pa.RecordBatch) -> None:
        """Write the csv of some rows."""
        table = pa.table([column.cast(pa.string()) for column in rows.columns], names=rows.schema.names)
        pacsv.write_csv(table, self.folder.csv)

    def table(self, change: Callable[[pa.Table], pa.Table], **settings: Any) -> None:
        """Change the table, written as somebody else writes it."""
        table = change(pq.read_table(self.folder.data))
        pq.write_table(table, self.folder.data, **{"compression": "zstd", **settings})

    def cover(self) -> None:
        """Make every digest and size fit, and sign."""
        root = self.folder.root
        facts = {name: root / name for name in PUBLIC if (root / name).is_file()}

        def fit(content: Any) -> None:
            for resource in content["resources"]:
                if (path := facts.get(resource["path"])) is not None:
                    resource["hash"] = f"sha256:{file_digest(path)}"
                    if "bytes" in resource:
                        resource["bytes"] = path.stat().st_size
            protocol = self.read(self.folder.protocol)
            content["funnel:privacy"]["protocol"]["hash"] = f"sha256:{file_digest(self.folder.protocol)}"
            content["funnel:privacy"]["protocolDigest"] = protocol["digest"]

        self.package(fit)
        self.handouts()
        self.sign()

    def pages(self) -> None:
        """Make the pages of the report again, and have the data package name it."""
        render = page_renderer()
        assert render is not None
        for page, text in render(self.folder.numbers.read_bytes(), self.folder.protocol.read_bytes()).items():
            (self.folder.root / page).write_text(text, encoding="utf-8")
        stated = self.read(self.folder.package)["funnel:privacy"]["report"]
        self.privacy(report={**stated, "hash": f"sha256:{file_digest(self.folder.numbers)}"})

    def handouts(self) -> None:
        """Write what is told to people and portals again, as far as the documents still make any."""
        with suppress(KeyError, TypeError, ValueError, IndexError, AttributeError, StopIteration):
            for name, content in documentation(self.read(self.folder.package), self.read(self.folder.protocol)).items():
                if (path := self.folder.root / name).is_file():
                    path.write_bytes(content)

    def handout(self, name: str, old: str, new: str) -> None:
        """Replace a text in one of these, and sign."""
        path = self.folder.root / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        self.sign()

    def sign(self) -> None:
        """Sign what is there with a key of the forger's own, and note it in the record."""
        package = self.read(self.folder.package)
        root = self.folder.root
        files = {
            path.relative_to(root).as_posix(): file_digest(path)
            for path in root.rglob("*")
            if path.is_file() and not path.is_symlink()
        }
        files.pop("signature.json", None)
        manifest = manifest_of(package["name"], package["version"], package["created"], files, self.folder)
        self.folder.signature.write_bytes(SignatureDocument.signed(manifest, self.key).to_bytes())
        index = root.parent / INDEX
        if index.is_file() and root.name == package["version"]:
            here = ListedVersion(
                version=package["version"], signature=file_digest(self.folder.signature), withdrawn=False
            )
            index.write_bytes(
                SeriesIndex.signed(VersionList(series=package["name"], versions=(here,)), self.key).to_bytes()
            )
        if self.folder.record.is_file():
            noted = {name: file_digest(root / name) for name in [*files, "signature.json"]}
            self.edit(self.folder.record, lambda content: content.update(files=noted))


def _digest_of(plain: dict[str, Any]) -> str:
    """The digest that a channel has, whatever is wrong with it otherwise."""
    import hashlib

    keys = ("format", "denominator", "inputs", "outputs", "weights", "marginal")
    text = json.dumps({key: plain[key] for key in keys}, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
