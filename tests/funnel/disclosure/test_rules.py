"""Rules of disclosure control on tables whose breaches are counted by hand or one cell at a time."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel.disclosure import Disclosure, Rules
from funnel.disclosure.rule_texts import breaches_sentence, disclosure_content, public_sentence, refusal, rules_sentence
from funnel.errors import SpecError
from funnel.joint import Joint

TABLES = st.integers(2, 4).flatmap(
    lambda c: st.integers(1, 5).flatmap(
        lambda a: st.lists(st.lists(st.integers(0, 30), min_size=a, max_size=a), min_size=c, max_size=c)
    )
)
RULES = st.builds(
    Rules,
    st.integers(1, 12),
    st.sampled_from([0.5, 0.6, 0.75, 0.95, 1.0]),
    st.sampled_from([0.0, 0.01, 0.1, 1.0]),
    st.booleans(),
)


def test_an_example_by_hand() -> None:
    joint = Joint.from_counts(
        [[40, 9, 0, 1, 0], [20, 11, 30, 0, 0]], secret=["ill", "well"], inputs=["a", "b", "c", "d", "e"]
    )
    found = Disclosure(joint, Rules())
    assert found.small.tolist() == [[False, True, False, True, False], [False] * 5]
    assert found.dominated.tolist() == [[False, False, False, True, False], [False, False, True, False, False]]
    assert found.n_alone == 1
    assert found.too_unique
    assert found.n_below == 1
    assert found.combinations == 4
    assert found.broken == ("minimum_cell", "dominance", "unique_share")
    assert not found.passes
    assert found.values() == {"S": {"ill": 2, "well": 1}, "X": {"b": 1, "c": 1, "d": 1}}
    assert breaches_sentence(found) == (
        "2 of 6 combinations of secret and published values have fewer than 10 records; in 2 of 4 published "
        "combinations more than 95 % of the records share one value of S; 1 of 111 records are alone in their "
        "published combination"
    )


@given(TABLES, RULES)
def test_rules_cell_by_cell(counts: list[list[int]], rules: Rules) -> None:
    if not any(map(any, counts)):
        return
    found = Disclosure(Joint.from_counts(counts), rules)
    n, share = sum(map(sum, counts)), Fraction(str(rules.dominance))
    totals = [sum(row[x] for row in counts) for x in range(len(counts[0]))]
    for s, row in enumerate(counts):
        for x, count in enumerate(row):
            assert found.small[s, x] == (0 < count < rules.minimum_cell)
            of_all = Fraction(sum(row), n)
            if rules.by_class:
                most = Fraction(floor((of_all + share * (1 - of_all)) * 10_000), 10_000)
            else:
                most = share if of_all <= share else Fraction(1)
            dominant = count > 0 and Fraction(count, totals[x]) > most
            assert found.dominated[s, x] == dominant
    alone = totals.count(1)
    assert found.too_unique == (alone > Fraction(str(rules.unique_share)) * n)
    assert found.passes == (not found.broken)


def test_a_secret_that_everybody_has_is_no_news_of_a_combination() -> None:
    common = Disclosure(Joint.from_counts([[990, 990], [10, 10]]), Rules(minimum_cell=1))
    assert common.passes
    assert not Disclosure(Joint.from_counts([[990, 400], [10, 600]]), Rules(minimum_cell=1)).passes


def test_a_class_takes_away_a_share_of_the_doubt() -> None:
    """Of a value that 94 of 100 have a class may leave 5 % of the doubt, and the whole table leaves 6 %."""
    rules = Rules(minimum_cell=1, by_class=True)
    kept = Disclosure(Joint.from_counts([[9970, 8830], [30, 1170]]), rules)
    assert kept.passes
    broken = Disclosure(Joint.from_counts([[9971, 8829], [29, 1171]]), rules)
    assert broken.broken == ("dominance",)
    assert not Disclosure(Joint.from_counts([[9970, 8830], [30, 1170]]), Rules(minimum_cell=1)).passes
    # Whatever all records have, no class is certain.
    assert not Disclosure(Joint.from_counts([[50, 9930], [0, 20]]), rules).passes
    assert "at least 5 % as frequent" in rules_sentence(rules)
    assert "in 1 of 2 classes of records" in breaches_sentence(broken)


def test_an_exact_share_is_not_above_itself() -> None:
    # 0.95 is not a binary fraction: in floats 19 of 20 could be either side of it.
    assert not Rules().above(np.array([19]), np.array([20]))[0]
    assert Rules().above(np.array([1901]), np.array([2000]))[0]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"minimum_cell": 0}, "minimum_cell must be at least 1"),
        ({"dominance": 1.5}, "dominance must be a share between 0 and 1"),
        ({"unique_share": -0.1}, "unique_share must be a share between 0 and 1"),
    ],
)
def test_numbers_out_of_range(settings: dict[str, float], expected: str) -> None:
    with pytest.raises(SpecError, match=expected):
        Rules(**settings)  # type: ignore[arg-type]


def test_what_is_told_names_no_value() -> None:
    joint = Joint.from_counts([[40, 3], [40, 30]], secret=["hidden-a", "hidden-b"], inputs=["common-x", "rare-x"])
    found = Disclosure(joint, Rules())
    for told in (breaches_sentence(found), public_sentence(found, "none"), refusal(found, "/private/disclosure.json")):
        assert not any(value in told for value in ("hidden-a", "hidden-b", "common-x", "rare-x"))
    assert "group values of S, X (funnel plan --suggest" in refusal(found, "/private/disclosure.json")
    assert disclosure_content(found, "none")["values"] == {"S": {"hidden-a": 1}, "X": {"rare-x": 1}}


def test_what_holds_is_said_as_well() -> None:
    found = Disclosure(Joint.from_counts([[40, 30], [40, 30]]), Rules())
    assert public_sentence(found, "none").endswith("no record is alone in a published combination; all of this holds.")
    assert "do not put it beyond doubt that any of this is broken." in public_sentence(found, "noise")
    assert rules_sentence(Rules(1, 1.0, 1.0)) == "no rule is set"
    assert "at most 5 % of the records are alone" in rules_sentence(Rules(unique_share=0.05))
