"""Records that are held out, counted again from the source, against its rows one by one."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.errors import DataError
from funnel.recount import held_out as module
from funnel.recount.classes import PlainClasses, Question, Scale, Term
from funnel.recount.held_out import held_out_counts, place_of
from funnel.recount.source import recount
from funnel.spec import ReleaseSpec
from tests.funnel.recount.test_source import spec_of

Row = tuple[str | None, str | None, str]
ROWS = 900
HALF, THIRD = Fraction(1, 2), Fraction(0.3)


def rows(seed: int, count: int = ROWS) -> list[Row]:
    """A secret, a value that is rare or missing at times, and a year."""
    random = np.random.default_rng(seed)
    values = ["a"] * 6 + ["b"] * 5 + ["c", None]
    return [
        (("no", "yes")[int(random.integers(2))], values[int(random.integers(13))], ("old", "new")[i % 3 % 2])
        for i in range(count)
    ]


def write(folder: Path, some: Sequence[Row], name: str = "t.parquet") -> None:
    table = pa.table(dict(zip(("s", "u", "year"), zip(*some, strict=True), strict=True)))
    pq.write_table(table, folder / name, row_group_size=100)


def expected(some: Sequence[Row], share: Fraction) -> Counter[tuple[tuple[str, ...], tuple[str, ...]]]:
    """By hand: the records that are held out, of those that are counted in their order."""
    found: Counter[tuple[tuple[str, ...], tuple[str, ...]]] = Counter()
    for number, (s, u, _) in enumerate(some):
        bits = int(hashlib.sha256(f"funnel held out {number}".encode()).hexdigest()[:16], 16)
        if Fraction(bits, 2**64) < share:
            found[(str(s),), (str(u),)] += 1
    return found


def counted(spec: ReleaseSpec, share: Fraction) -> dict[Any, int]:
    return dict(held_out_counts(spec, recount(spec), share))


@pytest.mark.parametrize("share", [HALF, THIRD, Fraction(0.999), Fraction(1e-9)])
def test_those_whose_numbers_say_so_are_counted(share: Fraction, tmp_path: Path) -> None:
    some = [(s, u or "(missing)", year) for s, u, year in rows(1)]
    write(tmp_path, rows(1))
    assert counted(spec_of(tmp_path, "t.parquet"), share) == expected(some, share)


def test_records_that_are_not_counted_have_no_number(tmp_path: Path) -> None:
    write(tmp_path, rows(2))
    spec = spec_of(tmp_path, "t.parquet", source={"on_missing": "drop", "where": {"year": ["new"]}})
    some = [row for row in rows(2) if row[1] is not None and row[2] == "new"]
    assert 0 < len(some) < ROWS / 2
    assert counted(spec, HALF) == expected(some, HALF)


def test_values_are_those_after_recoding(tmp_path: Path) -> None:
    write(tmp_path, rows(3))
    spec = spec_of(tmp_path, "t.parquet", recode={"u": {"minimum_count": 100}})
    some = [(s, u if u in ("a", "b") else "Other", year) for s, u, year in rows(3)]
    assert counted(spec, HALF) == expected(some, HALF)


def test_files_follow_each_other(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    some = [(s, u or "(missing)", year) for s, u, year in rows(4)]
    for number, first in enumerate(range(0, ROWS, 350)):
        write(tmp_path / "parts", rows(4)[first : first + 350], f"{number}.parquet")
    assert counted(spec_of(tmp_path, "parts/*.parquet"), HALF) == expected(some, HALF)


def test_a_text_file_is_read_in_its_order(tmp_path: Path) -> None:
    lines = [f"{s},{u or ''},{year}" for s, u, year in rows(5)]
    (tmp_path / "t.csv").write_text("\n".join(["s,u,year", *lines]), encoding="utf-8")
    some = [(s, u or "(missing)", year) for s, u, year in rows(5)]
    assert counted(spec_of(tmp_path, "t.csv"), HALF) == expected(some, HALF)


def test_about_the_share_is_held_out() -> None:
    """Of a hundred thousand numbers, which are always the same."""
    for share in (0.5, 0.2):
        found = sum(place_of(number) < share * 2**64 for number in range(100_000))
        assert found == pytest.approx(share * 100_000, abs=700)


def test_another_source_than_was_counted_is_refused(tmp_path: Path) -> None:
    write(tmp_path, rows(6))
    spec = spec_of(tmp_path, "t.parquet")
    before = recount(spec)
    write(tmp_path, [*rows(6)[:-1], ("yes", "a", "old")])
    assert recount(spec).counts != before.counts
    with pytest.raises(DataError, match="changed while it was counted again"):
        held_out_counts(spec, before, HALF)


def test_one_record_more_or_less_and_another_order_are_other_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of rows that differ in every place."""
    write(tmp_path, rows(7))
    spec = spec_of(tmp_path, "t.parquet")
    right = counted(spec, HALF)
    with monkeypatch.context() as changed:
        changed.setattr(module, "place_of", lambda number: place_of(number + 1))
        assert counted(spec, HALF) != right
    write(tmp_path, rows(7)[::-1])
    assert counted(spec, HALF) != right


def test_they_are_counted_by_class_whatever_the_part(tmp_path: Path) -> None:
    some = [(s, u or "(missing)", year) for s, u, year in rows(8)]
    write(tmp_path, rows(8))
    spec = spec_of(tmp_path, "t.parquet", publish=["u", "year"])
    scale = Scale((), (Term(("u",), ("a",), 2), Term(("u",), ("b",), 1)))
    questions = (Question(0, 1, 1, "2.1"), Question(0, 2, "1.1", "1.2"))
    names = ("1.1", "1.2", "2.1")
    classes = PlainClasses(
        "funnel/classes/1", "record_class", ("u", "year"), (scale,), questions, names, (), (), 1, "part", None
    )
    whole = recount(spec)
    found = classes.counted(whole, held_out_counts(spec, whole, HALF))
    by_hand = {(s,): {"1": 0, "2": 0} for s in ("no", "yes")}
    for (s, (u,)), count in expected(some, HALF).items():
        by_hand[s]["1" if u in ("a", "b") else "2"] += count
    assert found.held_out == by_hand
    assert replace(found, held_out=None) == classes.counted(whole)
