"""Releases to judge: a real one of the Adult data, a small one of two columns, and ways to spoil their files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import funnel
from funnel.alphabet import Alphabet
from funnel.pipeline.expectations import Evidence, Finished, Verdict
from funnel.pipeline.flows.pipeline import run_release
from funnel.protocol import DENOMINATOR, Protocol
from funnel.readers.source_files import file_digest
from funnel.release.layout import ReleaseFolder
from funnel.release.snapshot import Snapshot
from funnel.sampling.engine import release_rows
from funnel.sampling.keyed import RecordKey
from funnel.sampling.partitions import plan_rows
from funnel.spec import ReleaseSpec
from tests.copies import copied
from tests.verdicts import judge_evidence

SOURCE = Path(__file__).parents[2] / "data" / "adult.parquet"
Spoil = Callable[[Evidence, Callable[[pa.Table], pa.Table]], Evidence]


@dataclass(frozen=True)
class Made:
    """A release that was made, with what it was made from."""

    spec: Path
    folder: Path
    snapshot: Snapshot
    key: RecordKey | None = None

    @classmethod
    def of(cls, spec: Path) -> Self:
        """Make the release of a spec."""
        told, done = run_release(ReleaseSpec.load(spec), False, False)
        assert done is not None
        return cls(spec, Path(told["folder"]), done.snapshot)


@pytest.fixture
def finished(made: Made, tmp_path: Path) -> Finished:
    """A copy of the release `made` of a module that may be spoilt."""
    folder = copied(ReleaseFolder(made.folder), tmp_path / "incoming")
    # What is signed was judged before.
    folder.signature.unlink()
    return Finished(ReleaseSpec.load(made.spec), folder, "1.0.0", made.snapshot, key=made.key)


def drawn_release(path: Path, source: Path, protocol: Protocol) -> np.ndarray:
    """Write a release as the pipeline does, and return the counts of the drawn pairs."""
    work = path.with_suffix("")
    work.mkdir()
    return release_rows(plan_rows(source, file_digest(source), protocol, work, shuffle=True), path).counts.pairs


@pytest.fixture(scope="session")
def adult(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Education of the Adult data, released by the optimal protocol within LIP(1) of marital status."""
    joint = funnel.Joint.from_table(SOURCE, secret=["marital-status"], inputs=["education"])
    protocol = funnel.optimal(joint, funnel.LIP(1.0)).protocol
    path = tmp_path_factory.mktemp("adult") / "adult.parquet"
    pairs = drawn_release(path, SOURCE, protocol)
    return Evidence(path, protocol, ("education",), pairs.sum(axis=0).tolist())


@pytest.fixture(scope="session")
def adult_verdict(adult: Evidence) -> Verdict:
    """The verdict on the untouched release."""
    return judge_evidence(adult)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Two published columns, three of whose four combinations are outputs; the fourth is outside the inputs too."""
    colours = Alphabet(("colour", "size"), (("red", "S"), ("red", "L"), ("blue", "S")))
    half = DENOMINATOR // 2
    weights = np.array([[half, 0, half], [half, half, 0], [0, half, half]], dtype=np.uint64)
    marginal = np.array([half, half // 2, half // 2], dtype=np.uint64)
    protocol = Protocol(weights, marginal, colours, colours, "by hand", "ldp:2.0")
    rows = [("red", "S", "yes"), ("red", "L", "no"), ("blue", "S", "no"), ("blue", "L", "yes"), ("red", "S", "no")] * 60
    columns = [pa.array(list(values)) for values in zip(*rows, strict=True)]
    table = pa.table(columns, names=["colour", "size", "smoker"])
    path = tmp_path_factory.mktemp("small") / "small.parquet"
    pq.write_table(table, path.with_name("source.parquet"))
    pairs = drawn_release(path, path.with_name("source.parquet"), protocol)
    return Evidence(path, protocol, ("colour", "size"), pairs.sum(axis=0).tolist())


@pytest.fixture
def spoil(tmp_path: Path) -> Spoil:
    """Evidence on a changed copy of the released file, written as funnel writes it; everything else as it was."""

    def spoiled(evidence: Evidence, change: Callable[[pa.Table], pa.Table]) -> Evidence:
        path = tmp_path / "spoiled.parquet"
        pq.write_table(change(pq.read_table(evidence.released)), path, compression="zstd", write_batch_size=1 << 16)
        return replace(evidence, released=path)

    return spoiled
