"""Values of several spellings are one value in a draft, which says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from funnel.drafting.choice import Answers
from funnel.drafting.command import GivenSource, draft_file
from funnel.drafting.look import look_at
from funnel.drafting.spellings import spellings_of
from funnel.progress import quiet
from funnel.source.counting import count_joint
from funnel.spec import ReleaseSpec

ANSWERS = ("strongly disagree", "disagree", "agree", "strongly agree")


def answered(n: int = 3000) -> pd.DataFrame:
    """A question, answered in five spellings; a secret in two; and a third column of many values."""
    rng = np.random.default_rng(3)
    spelt = (str, str.title, str.upper, lambda text: f" {text} ", lambda text: text.replace(" ", "_"))
    ways = rng.choice(5, n, p=[0.6, 0.2, 0.1, 0.09, 0.01])
    trust = [spelt[way](ANSWERS[k]) for way, k in zip(ways, rng.choice(4, n), strict=True)]
    ill = rng.choice(["yes", "Yes", "no"], n, p=[0.15, 0.05, 0.8])
    return pd.DataFrame({"trust": trust, "ill": ill, "region": rng.choice(list("ABCDEF"), n)})


def drafted(folder: Path, table: pd.DataFrame, publish: str, **more: Any) -> tuple[ReleaseSpec, list[str]]:
    table.to_csv(folder / "t.csv", index=False)
    answers = Answers(("ill",), tuple(publish.split(",")), **more)
    said = draft_file(GivenSource(str(folder / "t.csv")), folder / "s.toml", True, quiet, answers=answers)
    return ReleaseSpec.load(folder / "s.toml"), said["notes"]


def test_values_that_differ_in_capitals_spaces_and_underscores_are_one() -> None:
    counts = {"Not known": 5, "not_known": 7, " NOT  KNOWN": 1, "known": 3, "Known!": 2, "a": 1}
    assert spellings_of(counts) == {"not_known": (" NOT  KNOWN", "Not known", "not_known")}


def test_listed_values_have_all_their_spellings_and_one_category(tmp_path: Path) -> None:
    table = answered()
    spec, notes = drafted(tmp_path, table, "trust,region")
    joint = count_joint(spec, quiet)
    assert joint.n == len(table)
    assert set(spec.categories["trust"]) == set(table["trust"])
    assert {secret for (secret,) in joint.secret.symbols} == {"no", "yes"}
    # Whatever the groups, all spellings of an answer are in one category.
    group_of = spec.recode["trust"].group_of
    column = joint.inputs.columns.index("trust")
    plain = table["trust"].str.replace("_", " ").str.strip().str.lower()
    for answer in ANSWERS:
        spelt = set(table["trust"][plain == answer])
        assert len({group_of.get(one, one) for one in spelt}) == 1
    for category in {symbol[column] for symbol in joint.inputs.symbols}:
        here = [symbol[column] == category for symbol in joint.inputs.symbols]
        wanted = [group_of.get(one, one) == category for one in table["trust"]]
        assert joint.counts[:, here].sum() == sum(wanted) > 0
    assert any("trust has values of several spellings" in note and "'STRONGLY DISAGREE'" in note for note in notes)
    assert any("ill has values of several spellings: 'Yes' is taken for 'yes'" in note for note in notes)


def test_so_have_the_values_of_a_group_and_those_of_whole_records(tmp_path: Path) -> None:
    table = answered()
    # So few combinations that answers are grouped.
    for k in range(8):
        table[f"c{k}"] = np.random.default_rng(k).choice(list("uvwxyz"), len(table))
    spec, _ = drafted(tmp_path, table, ",".join(["trust", "region", *(f"c{k}" for k in range(8))]))
    assert spec.groups.min_records == 20
    assert {name: set(values) for name, values in (spec.recode["trust"].groups or {}).items()}.keys() == set(ANSWERS)
    spec, _ = drafted(tmp_path, table[:250], "trust,region,c0")
    groups = spec.recode["trust"].groups or {}
    grouped = {value for values in groups.values() for value in values}
    assert any(len({value.strip().lower().replace("_", " ") for value in values}) > 1 for values in groups.values())
    for value in grouped:
        alike = {
            one for one in set(table["trust"][:250]) if one.strip().lower().replace("_", " ") == value.strip().lower()
        }
        assert alike <= grouped


def test_a_column_of_one_spelling_is_as_it_was(tmp_path: Path) -> None:
    table = answered().assign(trust=lambda given: given["trust"].str.strip().str.lower().str.replace("_", " "))
    spec, notes = drafted(tmp_path, table, "trust,region")
    assert all(" or " in name for name in (spec.recode["trust"].groups or {}))
    assert not any("trust has values" in note for note in notes)
    look = look_at({"path": "t.csv"}, tmp_path, quiet)
    assert not look.columns[0].spellings


def test_an_accent_of_its_own_is_part_of_a_letter(tmp_path: Path) -> None:
    table = answered().assign(town=[("Orl\u00e9ans", "Orle\u0301ans", "Tours")[k % 3] for k in range(len(answered()))])
    _, notes = drafted(tmp_path, table, "town,region")
    assert any("town has values of several spellings" in note for note in notes)
