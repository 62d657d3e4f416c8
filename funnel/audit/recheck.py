"""Checking a published release again, from its files alone."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from funnel.audit.consistency import draw_consistency
from funnel.errors import DataError, FunnelError
from funnel.guarantees import parse_guarantee
from funnel.protocol import Protocol
from funnel.release.csv_copy import csv_difference
from funnel.release.documents import JointDocument, ProtocolDocument, read_draws
from funnel.release.layout import ReleaseFolder
from funnel.tables import open_paged

# A release that was drawn as declared fails this at most once in a thousand million audits.
SIGNIFICANCE = 1e-9


@dataclass(frozen=True)
class Check:
    """One thing checked: its name, whether it holds, and what was seen."""

    name: str
    passed: bool
    detail: str


def recheck(folder: ReleaseFolder) -> list[Check]:
    """Check digests, released values, weights and, where the internal evidence is there, leakage and draws.

    Raises
    ------
    DataError
        If a public document of the release cannot be read at all.
    """
    package = _read_json(folder.package)
    protocol = ProtocolDocument.read(folder.protocol).protocol
    checks = [
        *_files(folder, package),
        Check("weights", True, f"every column of {protocol.size[0]} × {protocol.size[1]} weights sums to exactly 2^63"),
    ]
    declared = str(package.get("funnel:privacy", {}).get("guarantee"))
    checks.append(Check("bound", declared == protocol.guarantee, f"datapackage.json and protocol.json: {declared}"))
    counted = _count(folder, protocol)
    if isinstance(counted, str):
        return [*checks, Check("values", False, counted)]
    checks.append(Check("values", True, f"{int(counted.sum()):,} records, all of them outputs of the protocol"))
    if folder.csv.is_file():
        differs = csv_difference(folder.data, folder.csv)
        checks.append(Check("csv", differs is None, differs or "the rows of the parquet file, in their order"))
    if not folder.joint.is_file():
        detail = "not checked: the internal folder audit/ is not here, so the joint law is unknown"
        return [*checks, Check("leakage", True, detail)]
    return [*checks, *_internal(folder, protocol, counted)]


def _files(folder: ReleaseFolder, package: dict[str, Any]) -> list[Check]:
    checks = []
    privacy = package.get("funnel:privacy", {})
    listed = {str(resource["path"]): str(resource["hash"]) for resource in package.get("resources", [])}
    if "protocol" in privacy:
        listed[str(privacy["protocol"]["path"])] = str(privacy["protocol"]["hash"])
    for path, declared in listed.items():
        file = folder.root / path
        # A path that leads outside the release must not be followed.
        if not file.resolve().is_relative_to(folder.root.resolve()) or not file.is_file():
            checks.append(Check(f"file {path}", False, "is missing"))
            continue
        with file.open("rb") as opened:
            found = f"sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()}"
        same = found == declared
        checks.append(Check(f"file {path}", same, "digest as declared" if same else f"{found}, declared {declared}"))
    if not listed:
        checks.append(Check("files", False, "datapackage.json lists no file"))
    return checks


def _count(folder: ReleaseFolder, protocol: Protocol) -> np.ndarray[tuple[int], np.dtype[np.int64]] | str:
    """Records per output symbol, shape (b,), or what is wrong with the released table."""
    seen: Counter[tuple[str | None, ...]] = Counter()
    try:
        with open_paged(folder.data) as file:
            if tuple(file.schema_arrow.names) != protocol.outputs.columns:
                return (
                    f"the columns are {', '.join(file.schema_arrow.names)}, not {', '.join(protocol.outputs.columns)}"
                )
            for batch in file.iter_batches():
                groups = pa.Table.from_batches([batch]).group_by(batch.schema.names).aggregate([([], "count_all")])
                for row in groups.to_pylist():
                    count = row.pop("count_all")
                    seen[tuple(row[name] for name in batch.schema.names)] += count
    except (OSError, pa.ArrowException) as error:
        return f"the table cannot be read ({type(error).__name__})"
    positions = {symbol: y for y, symbol in enumerate(protocol.outputs.symbols)}
    strange = sum(count for symbol, count in seen.items() if symbol not in positions)
    if strange:
        return f"{strange:,} records have values that the protocol cannot produce"
    counts = np.zeros(len(positions), dtype=np.int64)
    for symbol, count in seen.items():
        counts[positions[symbol]] = count  # type: ignore[index]
    return counts if counts.sum() else "there is no record"


def _internal(
    folder: ReleaseFolder, protocol: Protocol, counted: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> list[Check]:
    try:
        joint = JointDocument.read(folder.joint).joint
        pairs = read_draws(folder.draws.read_bytes(), protocol, str(folder.draws))
        guarantee = parse_guarantee(protocol.guarantee)
        level = guarantee.level(joint, protocol)
        holds = guarantee.holds(joint, protocol)
    except (OSError, FunnelError) as error:
        return [Check("internal evidence", False, str(error))]
    consistency = draw_consistency(pairs, protocol)
    same = bool(np.array_equal(pairs.sum(axis=0), counted))
    return [
        Check("leakage", holds, f"level {level.value:.12g} nats, declared {guarantee}, {guarantee.arithmetic}"),
        Check("records", int(counted.sum()) == joint.n, f"{int(counted.sum()):,} released, {joint.n:,} in the source"),
        Check("counts", same, "as drawn" if same else "the released counts are not those that were drawn"),
        Check(
            "draws",
            bool(consistency.p_value >= SIGNIFICANCE),
            f"p = {consistency.p_value:.3g} over {consistency.tests} tests, input by input",
        ),
    ]


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as JSON; the release is damaged") from error
    if not isinstance(content, dict):
        raise DataError(f"{path} is not a Data Package; the release is damaged")
    return content
