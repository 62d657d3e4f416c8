"""Numbers drawn within what published values stand for: exactly uniform, from public files and fresh words alone."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import funnel
from funnel import load_release
from funnel.analysis.within import Interval, below, draw_within
from funnel.errors import DataError, SpecError
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import protocol_document
from funnel.sampling.random_words import WordArray, WordStream
from tests.public import UNPROTECTED, public_of

LABELS = ["under 10", "10 to under 20", "20 and over", "(missing)"]
INTERVALS = {"under 10": [0, 9], "10 to under 20": [10, 19], "20 and over": [20, 24]}


def words(number: int) -> WordArray:
    return STREAM.words(number)


STREAM = WordStream.with_known_key_for_tests(bytes(32), bytes(16))


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    """The public files of a release of bins, without what nobody reads here."""
    joint = funnel.Joint.from_counts([[300, 100, 50, 20], [100, 300, 200, 30]], inputs=LABELS)
    protocol = funnel.fit("grr", joint, funnel.LIP(0.5))
    folder = ReleaseFolder(tmp_path_factory.mktemp("numbers") / "1.0.0")
    folder.data.parent.mkdir(parents=True)
    public = public_of(joint, protocol, funnel.LIP(0.5))
    folder.protocol.write_bytes(protocol_document(protocol, funnel.LIP(0.5), public, UNPROTECTED).to_bytes())
    column = [text for (text,) in protocol.outputs.symbols for _ in range(2000)]
    pq.write_table(pa.table({"X": column}), folder.data)
    numbers = {"range": [0, 24], "whole": True, "intervals": INTERVALS}
    fields = [{"name": "X", "funnel:numbers": numbers}]
    folder.package.write_text(json.dumps({"resources": [{"schema": {"fields": fields}}]}))
    return folder


def posteriors_of(folder: ReleaseFolder) -> dict[str, dict[str, float]]:
    """By published value and true one, by Bayes' rule."""
    content = json.loads(folder.protocol.read_text())
    labels = [text for (text,) in content["prior"]["symbols"]]
    found = {}
    for (text,), row in zip(content["outputs"]["symbols"], content["weights"], strict=True):
        joint = [share * int(weight) for share, weight in zip(content["prior"]["probabilities"], row, strict=True)]
        found[text] = {label: part / sum(joint) for label, part in zip(labels, joint, strict=True)}
    return found


def test_numbers_follow_the_posterior_and_are_alike_within_an_interval(release: ReleaseFolder) -> None:
    table = draw_within(release, words=words)
    assert table.column_names == ["X", "X (drawn)"]
    assert table["X"].to_pylist() == pq.read_table(release.data)["X"].to_pylist()
    posterior = posteriors_of(release)
    for text, shares in posterior.items():
        rows = [n for t, n in zip(table["X"].to_pylist(), table["X (drawn)"].to_pylist(), strict=True) if t == text]
        for label, (low, high) in INTERVALS.items():
            inside = [n for n in rows if n is not None and low <= n <= high]
            assert len(inside) / len(rows) == pytest.approx(shares[label], abs=0.06)
            assert set(inside) <= set(range(low, high + 1))
        assert sum(n is None for n in rows) / len(rows) == pytest.approx(shares["(missing)"], abs=0.06)
    counts = Counter(n for n in table["X (drawn)"].to_pylist() if n is not None and n < 10)
    expected = sum(counts.values()) / 10
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < 35


def test_whole_numbers_are_exactly_uniform() -> None:
    # Words near 2^64 would favour the first numbers, and are drawn again.
    given = iter([np.array([2**64 - 1, 5, 2**64 - 2], dtype=np.uint64), np.array([7, 1, 8], dtype=np.uint64)])
    assert below(3, 3, lambda _: next(given)).tolist() == [7 % 3, 5 % 3, (2**64 - 2) % 3]
    assert below(1, 4, words).tolist() == [0, 0, 0, 0]
    # Of a power of two no word is drawn again.
    assert below(2**63, 1, lambda _: np.array([2**64 - 1], dtype=np.uint64)).tolist() == [2**63 - 1]


def test_numbers_of_all_kinds_lie_in_their_interval() -> None:
    for interval in (Interval(-3, 4, True), Interval(0.5, 0.75, False)):
        drawn = interval.drawn(4000, words)
        assert (drawn >= interval.low).all()
        assert (drawn <= interval.high).all()
        assert drawn.mean() == pytest.approx((interval.low + interval.high) / 2, abs=0.2)
    assert set(Interval(-3, 4, True).drawn(4000, words)) == set(range(-3, 5))


def test_values_that_are_numbers_are_drawn_as_they_are_also_where_one_is_never_published(
    tmp_path: Path,
) -> None:
    """Without intervals, in a table where nobody is published as the last value."""
    joint = funnel.Joint.from_counts([[300, 100, 20], [100, 300, 30]], inputs=["0.5", "-7", "(missing)"])
    protocol = funnel.fit("grr", joint, funnel.LIP(0.5))
    folder = ReleaseFolder(tmp_path / "1.0.0")
    folder.data.parent.mkdir(parents=True)
    public = public_of(joint, protocol, funnel.LIP(0.5))
    folder.protocol.write_bytes(protocol_document(protocol, funnel.LIP(0.5), public, UNPROTECTED).to_bytes())
    shown = [text for (text,) in protocol.outputs.symbols[:2]]
    pq.write_table(pa.table({"X": shown * 1000}), folder.data)
    folder.package.write_text(json.dumps({"resources": [{"schema": {"fields": [{"name": "X"}]}}]}))
    table = draw_within(folder, words=words)
    posterior = posteriors_of(folder)
    assert len(posterior) == 3
    drawn = Counter(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
    for text in shown:
        for label, number in (("0.5", 0.5), ("-7", -7.0), ("(missing)", None)):
            assert drawn.pop((text, number)) / 1000 == pytest.approx(posterior[text][label], abs=0.07)
    assert not drawn


def test_what_cannot_be_drawn_is_one_sentence(release: ReleaseFolder, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="one of X"):
        draw_within(release, "Z")
    other = ReleaseFolder(tmp_path / "1.0.0")
    other.data.parent.mkdir(parents=True)
    other.protocol.write_bytes(release.protocol.read_bytes())
    with pytest.raises(DataError, match=r"lacks protocol\.json or datapackage\.json"):
        load_release(other.root)
    other.package.write_text("{")
    with pytest.raises(DataError, match=r"data package of 1\.0\.0 cannot be read"):
        draw_within(other)
    other.package.write_text(json.dumps({"resources": [{"schema": {"fields": [{"name": "X"}]}}]}))
    with pytest.raises(DataError, match="stand for no numbers"):
        draw_within(other)


def test_a_published_value_that_the_protocol_does_not_know_is_named(release: ReleaseFolder, tmp_path: Path) -> None:
    folder = ReleaseFolder(shutil.copytree(release.root, tmp_path / "1.0.0"))
    texts = pq.read_table(folder.data)["X"].to_pylist()
    pq.write_table(pa.table({"X": [*texts[:-1], "5 to under 6"]}), folder.data)
    with pytest.raises(DataError, match="tells nothing of the published value '5 to under 6'"):
        draw_within(folder, words=words)
