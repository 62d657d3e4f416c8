"""Estimates from the files of a release: what is published of rare values settles what records alone leave open."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel import LIP, Alphabet, Joint, Protocol, SpecError, estimate, fit
from funnel.analysis import estimated
from funnel.analysis.estimated import estimate_numbers_of, estimate_release, noisy_shares, published_limits
from funnel.frequencies.noise import Noise
from funnel.frequencies.public_counts import of_noisy
from funnel.frequencies.unit_tables import NoisyRows
from funnel.protocol import DENOMINATOR
from funnel.release.frequencies_document import frequencies_document
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import protocol_document
from tests.public import UNPROTECTED, protection_of, public_of

_NOISY = np.array([[5_000, 100, 2, 2], [100, 4_000, 3, 1]])
# "d" is published like a record of which nothing is known, "c" always as itself.
_COLUMNS = np.array([[0.75, 0.25, 0.0, 0.5], [0.25, 0.75, 0.0, 0.5], [0.0, 0.0, 1.0, 0.0]])


def _release(root: Path, protection: str, noisy: np.ndarray = _NOISY) -> tuple[ReleaseFolder, Protocol]:
    names = {"secret": ["ill", "well"], "inputs": ["a", "b", "c", "d"][: noisy.shape[1]]}
    joint = Joint.from_counts(np.maximum(noisy, 0), **names)
    rows = np.array([[int(w * DENOMINATOR) for w in row] for row in _COLUMNS[:, : noisy.shape[1]]], dtype=np.uint64)
    outputs = replace(joint.inputs, symbols=joint.inputs.symbols[:3])
    protocol = Protocol(rows, rows[:, -1], joint.inputs, outputs, "given", "lip:8.0")
    folder = ReleaseFolder(root)
    said = UNPROTECTED
    if protection == "noise":
        frequencies = of_noisy(noisy, joint.secret, joint.inputs, Noise(1.0, 0.0, 0.01), 1.0, 1.0)
        said = protection_of(frequencies)
        folder.frequencies.write_bytes(frequencies_document(frequencies).to_bytes())
    document = protocol_document(protocol, LIP(8.0), public_of(joint, protocol, LIP(8.0)), said)
    folder.protocol.write_bytes(document.to_bytes())
    folder.data.parent.mkdir()
    texts = ["a"] * 4_810 + ["b"] * 4_380 + ["c"] * 10
    pq.write_table(pa.table({joint.inputs.columns[0]: texts}), folder.data)
    return folder, protocol


def test_values_that_hardly_occur_are_taken_to_be_as_rare_as_is_published_and_no_others(tmp_path: Path) -> None:
    folder, protocol = _release(tmp_path, "none")
    alone = estimate(np.array([4_810, 4_380, 10]), protocol)
    found = estimate_release(folder)
    assert np.isnan(alone.frequencies).tolist() == [True, True, False, True]
    assert np.isnan(found.frequencies).tolist() == [False, False, False, True]
    # "c" is rare as well, but the records tell it.
    assert [symbol for symbol, _ in found.rare] == [("d",)]
    assert found.lower[0] <= 5_100 / 9_200 <= found.upper[0] < found.lower[0] + 0.1
    assert found.upper[3] <= 0.005


def test_limits_are_those_of_the_noise_cell_by_cell_and_of_the_records_here(tmp_path: Path) -> None:
    folder, protocol = _release(tmp_path, "noise")
    # Of 8 cells together: P(|Z| > t) = 2 q^(t + 1) / (1 + q) <= 0.01 / (2 · 8), q = 1 / e.
    within = next(t for t in range(99) if 2 * math.exp(-t - 1) / (1 + math.exp(-1)) <= 0.01 / 16)
    most = published_limits(folder, protocol, 9_200)
    assert most[3] == pytest.approx((3 + within + within) / 9_200)
    assert published_limits(folder, protocol, 920)[3] == pytest.approx(10 * most[3])


def test_limits_of_rounded_shares_are_above_the_true_ones(tmp_path: Path) -> None:
    folder, protocol = _release(tmp_path, "none")
    most = published_limits(folder, protocol, 9_209)
    assert (most > np.maximum(_NOISY, 0).sum(axis=0) / 9_209).all()
    assert most[3] < 0.005


def test_noisy_counts_tell_what_records_leave_open(tmp_path: Path) -> None:
    folder, protocol = _release(tmp_path, "noise", np.array([[5_000, 100, 3, 300], [100, 4_000, 3, 300]]))
    found = estimate_release(folder)
    assert (found.method, found.rare) == ("combined", ())
    # 606 noisy records of "d", with a standard deviation of two.
    assert np.abs(found.frequencies * 9_200 - [4_870, 3_724, 6, 600]).max() < 800
    assert found.errors.max() * 9_200 < 10
    cells = estimate_release(folder, method="em")
    assert int(np.isnan(cells.frequencies).sum()) == 3
    noisy = noisy_shares(folder, protocol, 9_200)
    assert noisy is not None
    assert noisy.shares * 9_200 == pytest.approx([5_100, 4_100, 6, 600])
    # Two counts each, of noise of scale 1.
    assert noisy.variances * 9_200**2 == pytest.approx([4 * math.exp(-1) / (1 - math.exp(-1)) ** 2] * 4)
    folder.frequencies.unlink()
    assert estimate_release(folder).method == "em"


def test_where_records_tell_everything_nothing_else_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, protocol = _release(tmp_path, "none", _NOISY[:, :3])
    monkeypatch.setattr(estimated, "published_limits", lambda *_: pytest.fail("nothing is untold"))
    found, alone = estimate_release(folder), estimate(np.array([4_810, 4_380, 10]), protocol)
    assert found.rare == ()
    assert np.isfinite(found.errors).all()
    np.testing.assert_array_equal(found.frequencies, alone.frequencies)


def test_counts_of_first_rows_limit_no_share_of_all_rows(tmp_path: Path) -> None:
    folder, protocol = _release(tmp_path, "noise")
    assert (published_limits(folder, protocol, 9_200) < 1).any()
    joint = Joint.from_counts(np.maximum(_NOISY, 0), ["ill", "well"], ["a", "b", "c", "d"])
    first = of_noisy(_NOISY, joint.secret, joint.inputs, Noise(1.0, 0.0, 0.01), 2.0, 2.0)
    rows = NoisyRows(1.0, np.ones_like(_NOISY), np.ones_like(_NOISY), np.array([9_000, 100]))
    folder.frequencies.write_bytes(frequencies_document(replace(first, rows=rows)).to_bytes())
    assert published_limits(folder, protocol, 9_200).tolist() == [1.0] * 4


def test_shares_of_published_values_limit_no_input_that_has_a_secret(tmp_path: Path) -> None:
    joint = Joint.from_counts([[500, 400, 3], [300, 600, 2]])
    protocol = fit("conditional-reporting", joint, LIP(1.0))
    assert protocol.inputs.columns != joint.inputs.columns
    folder = ReleaseFolder(tmp_path)
    document = protocol_document(protocol, LIP(1.0), public_of(joint, protocol, LIP(1.0)), UNPROTECTED)
    folder.protocol.write_bytes(document.to_bytes())
    assert published_limits(folder, protocol, joint.n).tolist() == [1.0] * len(protocol.inputs)


def test_means_are_of_the_noisy_counts_as_well(tmp_path: Path) -> None:
    folder, protocol = _release(tmp_path, "noise")
    (name,) = protocol.inputs.columns
    intervals = dict(zip("abcd", ([0, 10], [10, 20], [20, 30], [30, 40]), strict=True))
    field = {"name": name, "funnel:numbers": {"intervals": intervals}}
    folder.package.write_text(json.dumps({"resources": [{"schema": {"fields": [field]}}]}))
    found, alone = estimate_numbers_of(folder, name), estimate_numbers_of(folder, name, method="em")
    assert 0 < 5 * found.mean_errors[0] < alone.mean_errors[0]
    assert found.means[0] == pytest.approx(5 + 10 * 4_100 / 9_200, abs=0.02)


def test_means_that_records_tell_are_asked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, protocol = _release(tmp_path, "none", _NOISY[:, :3])
    folder.package.write_text('{"resources": []}')
    monkeypatch.setattr(estimated, "published_limits", lambda *_: pytest.fail("nothing is untold"))
    found = estimate_numbers_of(folder, *protocol.inputs.columns, numbers={"a": 1.0, "b": 2.0, "c": (2.0, 4.0)})
    shares = estimate_release(folder).frequencies
    assert found.means[0] == pytest.approx(shares @ [1, 2, 3])


def test_records_of_an_invariant_release_are_counted_and_nothing_is_taken_to_be_rare(tmp_path: Path) -> None:
    cells = Alphabet(("sex", "age"), (("f", "20"), ("f", "40"), ("m", "20"), ("m", "40")))
    joint = Joint.from_counts([[3_000, 800, 1, 200], [1_000, 3_200, 1, 1_800]], inputs=cells)
    protocol = fit("invariant", joint, LIP(0.5))
    folder = ReleaseFolder(tmp_path)
    document = protocol_document(protocol, LIP(0.5), public_of(joint, protocol, LIP(0.5)), UNPROTECTED)
    folder.protocol.write_bytes(document.to_bytes())
    folder.data.parent.mkdir()
    # A part without records leaves its shares open, and no share that is published settles them.
    texts = [["f", "20"]] * 4_010 + [["f", "40"]] * 5_992
    pq.write_table(pa.table(dict(zip(cells.columns, map(list, zip(*texts, strict=True)), strict=True))), folder.data)
    found = estimate_release(folder, "age", within="sex")
    assert found.method == "count"
    assert found.rare == ()
    assert np.isnan(found.frequencies).tolist() == [False, False, True, True]
    assert found.frequencies[0] == 4_010 / 10_002
    folder.package.write_text("{}")
    numbers = estimate_numbers_of(folder, "age", "sex")
    assert numbers.means[0] == pytest.approx((4_010 * 20 + 5_992 * 40) / 10_002)
    assert np.isnan(numbers.means[1])
    assert estimate_release(folder, "age", sampling=True).frequencies.tolist() == [4_010 / 10_002, 5_992 / 10_002]
    with pytest.raises(SpecError, match="unknown method 'best'"):
        estimate_release(folder, "age", method="best")  # type: ignore[arg-type]
