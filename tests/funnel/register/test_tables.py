"""Tables of a register are read back as they were written, or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from funnel.errors import LedgerError
from funnel.protocol import Protocol
from funnel.readers.source_files import file_digest
from funnel.register.entry import CHANNELS, EFFECTIVE, ENTRY, HEAD, NODES, PEOPLE, RegisterEntry, RegisterHead
from funnel.register.entry_files import dense, dense_channel, read_table, sparse, write_table
from tests.registers import write_example


def test_an_example_is_read_back(tmp_path: Path) -> None:
    root = write_example(tmp_path)
    head = RegisterHead.read(root / HEAD)
    previous = None
    for known in head.entries:
        folder = root / known.folder
        entry = RegisterEntry.read(folder / ENTRY)
        assert (entry.folder, file_digest(folder / ENTRY), entry.previous) == (known.folder, known.entry, previous)
        previous = known.entry
        people = read_table(folder, PEOPLE, known.people)
        together = people["high"].astype(object) * 2**64 + people["low"].astype(object)
        assert list(together) == sorted(set(together))
        assert np.bincount(people["cell"], minlength=4).tolist() == entry.joint.counts.ravel().tolist()
        b, a = len(entry.outputs.symbols), len(entry.inputs.symbols)
        weights, marginal = dense_channel(read_table(folder, EFFECTIVE, entry.files[EFFECTIVE]), b, a)
        effective = Protocol(weights, marginal, entry.inputs.alphabet(), entry.outputs.alphabet())
        assert effective.digest == entry.channel
        library = dense(read_table(folder, CHANNELS, entry.files[CHANNELS]), b, a)
        assert (library.sum(axis=1) == 2**63).all()
        nodes = read_table(folder, NODES, entry.files[NODES])
        assert (nodes["parent"] < entry.first).all()
        assert people["node"].max() < entry.first + len(nodes["parent"])


def test_channels_are_the_same_again() -> None:
    library = np.random.default_rng(3).integers(0, 3, (4, 3, 5)).astype(np.uint64)
    library[3, 0, 0] = 2**63
    np.testing.assert_array_equal(dense(sparse(library), 3, 5), library)


def test_a_changed_table_is_refused(tmp_path: Path) -> None:
    digest = write_table(tmp_path, NODES, {"parent": np.array([0]), "output": np.array([2])})
    assert read_table(tmp_path, NODES, digest)["output"].tolist() == [2]
    with pytest.raises(LedgerError, match=r"channels\.parquet was written by another version"):
        read_table(_renamed(tmp_path, NODES, CHANNELS), CHANNELS, digest)
    (tmp_path / NODES).write_bytes((tmp_path / NODES).read_bytes() + b"x")
    with pytest.raises(LedgerError, match=r"nodes\.parquet was changed since it was written; what was published"):
        read_table(tmp_path, NODES, digest)
    (tmp_path / NODES).unlink()
    with pytest.raises(LedgerError, match=r"nodes\.parquet is gone"):
        read_table(tmp_path, NODES, digest)


def test_numbers_that_do_not_fit_are_never_others(tmp_path: Path) -> None:
    for parent, output in (([0.5], [1]), ([0], [2**31]), ([2**63], [0])):
        with pytest.raises(ValueError, match="do not fit int"):
            write_table(tmp_path, NODES, {"parent": np.array(parent), "output": np.array(output)})


def _renamed(folder: Path, name: str, other: str) -> Path:
    (folder / other).write_bytes((folder / name).read_bytes())
    return folder
