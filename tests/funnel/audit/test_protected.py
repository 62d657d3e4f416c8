"""An audit of a release with protected frequencies: what a reader can tell, and what only the publisher can."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from funnel.audit.arithmetic import Interval
from funnel.audit.check import State
from funnel.audit.protected import check_drawn_counts, check_frequencies, mean_limits, read_frequencies
from funnel.audit.recheck import Told, is_excused, recheck
from funnel.errors import DataError
from funnel.frequencies.noise import scale_of
from funnel.recount.noisy_moves import RECORD, NoisyChanges, NoisyDepartures, NoisyMeans
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import ProtocolDocument
from tests.copies import copied
from tests.expectations.test_finished import edit

# What the digests and the signature tell besides.
SEALS = {"signature", "package", "record"}


@pytest.fixture
def folder(noisy: ReleaseFolder, tmp_path: Path) -> ReleaseFolder:
    """A copy, away from the workspace."""
    return copied(noisy, tmp_path / noisy.root.name)


def _failed(folder: ReleaseFolder, public: bool = True) -> set[str]:
    if public:
        shutil.rmtree(folder.internal, ignore_errors=True)
    return {check.name for check in recheck(folder, Told(public=public, fetched=public)) if check.state == "failed"}


def test_a_reader_can_tell_the_bound_over_all_that_the_noise_leaves_possible(folder: ReleaseFolder) -> None:
    shutil.rmtree(folder.internal)
    checks = {check.name: check for check in recheck(folder, Told(public=True, fetched=True))}
    assert {name for name, check in checks.items() if check.state == "failed"} == set()
    assert {"protected frequencies", "leakage", "distribution"} <= set(checks)
    document = ProtocolDocument.read(folder.protocol)
    public = read_frequencies(folder, document)
    assert public is not None
    assert "noise" not in checks
    assert "1 nats for this version" in checks["protected frequencies"].detail


def test_the_publisher_can_tell_the_noise_too(noisy: ReleaseFolder) -> None:
    checks = {check.name: check for check in recheck(noisy)}
    assert {name for name, check in checks.items() if check.state == "failed"} == set()
    assert "p = " in checks["noise"].detail


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        (lambda said: said.update(scale=said["scale"] * 2), {"protected frequencies"}),
        (lambda said: said.update(cells_within=said["cells_within"] - 3), {"protected frequencies"}),
        (lambda said: said.update(spent=3.0), {"protected frequencies"}),
        (lambda said: said.update(beta=0.5), {"protected frequencies"}),
        (lambda said: said.update(noisy=[[2 * n for n in row] for row in said["noisy"][::-1]]), {"distribution"}),
    ],
)
def test_frequencies_that_are_not_those_of_the_other_documents(
    folder: ReleaseFolder, change: Callable[[Any], None], failed: set[str]
) -> None:
    edit(folder.frequencies, change)
    assert failed <= _failed(folder) - SEALS


def test_counts_that_make_the_bound_false(folder: ReleaseFolder) -> None:
    def apart(said: Any) -> None:
        # All records of a secret have one value, and no other record has it.
        noisy = np.array(said["noisy"])
        s, x = noisy.sum(axis=1).argmax(), noisy.sum(axis=0).argmax()
        noisy[:, x] -= noisy[:, x]
        noisy[s] = 0
        noisy[s, x] = 5000
        said["noisy"] = noisy.tolist()

    edit(folder.frequencies, apart)
    assert "leakage" in _failed(folder)


def test_exact_counts_are_no_noisy_ones(noisy: ReleaseFolder, folder: ReleaseFolder) -> None:
    def exact(said: Any) -> None:
        said["noisy"] = [[0 if n < 30 else n for n in row] for row in said["noisy"]]

    edit(folder.frequencies, exact)
    assert "noise" not in _failed(folder)
    from funnel.audit.protected import check_noise
    from funnel.release.documents import JointDocument

    joint = JointDocument.read(noisy.joint).joint
    evidence = SimpleNamespace(first_rows=None, joint=joint)
    document = ProtocolDocument.read(folder.protocol)
    honest = read_frequencies(noisy, document)
    assert honest is not None
    assert check_noise(SimpleNamespace(noisy=honest, evidence=evidence)).state == "passed"
    edit(folder.frequencies, lambda said: said.update(noisy=[[n + 40 for n in row] for row in said["noisy"]]))
    spoilt = read_frequencies(folder, document)
    assert spoilt is not None
    assert check_noise(SimpleNamespace(noisy=spoilt, evidence=evidence)).state == "failed"


def test_frequencies_of_other_values_cannot_be_judged(folder: ReleaseFolder) -> None:
    edit(folder.frequencies, lambda said: said["inputs"]["symbols"][0].__setitem__(0, "Cousin"))
    with pytest.raises(DataError, match="of other published values"):
        recheck(folder, Told(public=True, fetched=True))


def test_a_release_without_its_counts_is_damaged(folder: ReleaseFolder) -> None:
    folder.frequencies.unlink()
    with pytest.raises(DataError, match=r"frequencies\.json is missing"):
        recheck(folder, Told(public=True, fetched=True))


def test_true_shares_are_within_their_limits(noisy: ReleaseFolder) -> None:
    folder = noisy
    document = ProtocolDocument.read(folder.protocol)
    public = read_frequencies(folder, document)
    assert public is not None
    limits = mean_limits(public, document, sum(map(sum, public.counts)))
    shares = np.array(document.prior.probabilities)
    for expected, mean in zip((document.protocol.matrix @ (shares / shares.sum())).tolist(), limits, strict=True):
        assert mean.low - 0.02 <= expected <= mean.high + 0.02
        assert mean.high - mean.low < 0.2


def test_records_are_held_to_the_channel_with_its_departures(noisy: ReleaseFolder) -> None:
    """What these explain passes; what they do not is no proof, since people's parts are shortened."""
    folder = noisy
    document = ProtocolDocument.read(folder.protocol).model_copy(update={"rounded": 0.0})
    public = read_frequencies(folder, document)
    assert public is not None
    n, b = sum(map(sum, public.counts)), len(document.entries)
    counts = np.zeros(b, dtype=np.int64)
    counts[0] = n
    limits = mean_limits(public, document, n)
    off = [
        round((share - (one.low + one.high) / 2) * n) * RECORD for share, one in zip(counts / n, limits, strict=True)
    ]
    length = 3 * RECORD
    explained = NoisyDepartures(0.25, float(scale_of(0.25, length)), tuple(off), length)
    moved, means = NoisyChanges(0.25, 8.0, ()), NoisyMeans(0.25, 8.0, (1,))
    for blocks, state in (
        ({}, State.FAILED),
        ({"changes": moved, "means": means}, State.FAILED),
        ({"changes": moved, "departures": replace(explained, counts=(0,) * b)}, State.UNCHECKED),
        ({"changes": moved, "departures": explained}, State.PASSED),
    ):
        known: Any = SimpleNamespace(
            public=replace(public, **blocks),
            document=document,
            privacy={"people": "same"},
            table=SimpleNamespace(rows=n, counts=counts),
        )
        found = check_drawn_counts(known)
        assert found.state is state
        assert is_excused(found, False) is (state is State.UNCHECKED)


@pytest.mark.parametrize(("off", "state"), [(0.0, "failed"), (1 / 64, "passed")])
def test_counts_are_held_to_a_channel_within_what_it_is_rounded_by(
    noisy: ReleaseFolder, off: float, state: str
) -> None:
    """An effective channel says 1/64 where almost nobody draws that; it says by how much it is off, too."""
    document = ProtocolDocument.read(noisy.protocol).model_copy(update={"rounded": off})
    counts = np.array([30_000, 0], dtype=np.int64)
    means = [Interval(63 / 64, 63 / 64), Interval(1 / 64, 1 / 64)]
    assert check_frequencies(document, counts, means).state == state
    # What is further off is no rounding.
    assert check_frequencies(document, counts[::-1], means).state == "failed"
