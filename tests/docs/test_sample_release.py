"""The README shows the figures of the sample that the benchmark has kept, and these are within the bound."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import sample_release
from benchmarks.rows import RESULTS, Row
from funnel import Attribute, Joint, fit

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def kept() -> list[Row]:
    rows: list[Row] = json.loads((RESULTS / "sample-release.json").read_text(encoding="utf-8"))
    return rows


def test_the_readme_and_the_page_show_what_was_kept(kept: list[Row]) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert sample_release.with_tables(readme, kept) == readme
    assert (RESULTS / "sample-release.md").read_text(encoding="utf-8") == sample_release.page(kept)


def test_beliefs_that_were_kept_are_within_the_bound(kept: list[Row]) -> None:
    beliefs = [row for row in kept if "knows" in row]
    assert len(beliefs) == 1 + (6 + 2 + 2) + (12 + 12 + 4) + 24
    # Beliefs are kept to four digits.
    low, high, digits = math.exp(-1), math.exp(1), 1e-4
    for row in beliefs:
        before, least, most = (row[key] for key in ("before", "least", "most"))
        assert before * low - digits <= least <= before <= most <= before * high + digits, row
        assert (1 - before) * low - digits <= 1 - most, row
        assert 1 - least <= (1 - before) * high + digits, row


def test_counts_that_were_kept_are_near_the_truth(kept: list[Row]) -> None:
    cells = [row for row in kept if "income" in row]
    assert sum(row["true"] for row in cells) == sum(row["published"] for row in cells) == 48_842
    # Noise of scale one in four cells each is little beside the errors of the random changes.
    assert all(abs(row["published"] - row["true"]) < 6.5 * row["error"] + 40 for row in cells)


def test_figures_are_those_of_the_protocol() -> None:
    """Against a loop over all records, values and outputs of a small table."""
    columns = {"education": ["Bachelors", "HS-grad"], "sex": ["Female", "Male"]}
    people = pd.DataFrame(
        [(i, e, x) for i in ("<=50K", ">50K") for e in columns["education"] for x in columns["sex"]],
        columns=["income", *columns],
    )
    counts = [30, 20, 40, 10, 15, 35, 5, 45]
    table = people.loc[np.repeat(np.arange(8), counts)]
    joint = Joint.from_table(table, ["income"], list(columns))
    protocol = fit("invariant", joint.with_secret(), Attribute(1.0))
    channel, symbols = protocol.matrix, protocol.inputs.symbols
    number = {tuple(row): n for row, n in zip(people.itertuples(index=False), counts, strict=True)}

    for row in sample_release.cells(joint, protocol, table):
        inside = [y for y, symbol in enumerate(symbols) if symbol[:2] == (row["income"], row["education"])]
        ends = {x: channel[inside, x].sum() for x in range(8)}
        variance = sum(number[symbols[x]] * ends[x] * (1 - ends[x]) for x in range(8))
        true = sum(n for x, n in number.items() if x[:2] == (row["income"], row["education"]))
        assert row["true"] == row["published"] == true
        assert row["error"] == pytest.approx(math.sqrt(variance), abs=0.051)

    found = sample_release.beliefs(joint, protocol)
    assert len(found) == 1 + 4 + 4
    for row in found:
        those = [x for x, symbol in enumerate(symbols) if set(row["knows"].values()) <= set(symbol[1:])]
        high = [x for x in those if symbols[x][0] == ">50K"]
        after = []
        for y in range(8):
            mass = {x: number[symbols[x]] * channel[y, x] for x in those}
            if sum(mass.values()) > 0:
                after.append(sum(mass[x] for x in high) / sum(mass.values()))
        before = sum(number[symbols[x]] for x in high) / sum(number[symbols[x]] for x in those)
        assert (row["before"], row["least"], row["most"]) == pytest.approx((before, min(after), max(after)), abs=1e-4)
