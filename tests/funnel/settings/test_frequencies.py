"""The sections of a spec about frequencies: what they may say, and what changes a digest."""

from __future__ import annotations

from typing import Any

import pytest

from funnel import SpecError
from funnel.settings.protection_settings import FrequencySettings
from funnel.spec import ReleaseSpec
from tests.projects import spec_of


def spec(**changes: Any) -> ReleaseSpec:
    return spec_of("people.csv", ".", **changes)


def test_what_is_said_is_kept() -> None:
    made = spec(
        frequencies={"protection": "noise", "epsilon": 2, "beta": 0.05, "delta": 1e-6, "max_epsilon": 5},
        categories={"x": ["b", "a"]},
    )
    assert made.frequencies == FrequencySettings(
        protection="noise", epsilon=2.0, beta=0.05, delta=1e-6, max_epsilon=5.0
    )
    assert made.categories == {"x": ("b", "a")}
    assert spec(frequencies={"protection": "threshold", "threshold": 5}).frequencies.threshold == 5


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"frequencies": {"protection": "nois"}}, "[frequencies] protection must be"),
        ({"frequencies": {"protection": "noise", "epsilon": 0}}, "[frequencies] epsilon must be at least 0.0001"),
        ({"frequencies": {"protection": "noise", "epsilon": 21}}, "[frequencies] epsilon must be at most 20"),
        ({"frequencies": {"protection": "noise", "epsilon": "1"}}, "[frequencies] epsilon must be a number"),
        ({"frequencies": {"protection": "noise", "beta": 1.0}}, "[frequencies] beta must be below 1"),
        ({"frequencies": {"protection": "noise", "delta": 0.0}}, "[frequencies] delta must be at least 1e-100"),
        ({"frequencies": {"protection": "noise", "delta": 5e-324}}, "[frequencies] delta must be at least 1e-100"),
        ({"frequencies": {"protection": "noise", "beta": 5e-324}}, "[frequencies] beta must be at least 1e-100"),
        ({"frequencies": {"protection": "noise", "max_epsilon": 0.5}}, "max_epsilon 0.5 is below epsilon 1"),
        ({"frequencies": {"protection": "noise", "threshold": 5}}, 'threshold, which is for protection = "threshold"'),
        ({"frequencies": {"protection": "none", "epsilon": 1.0}}, 'epsilon, which is for protection = "noise"'),
        ({"frequencies": {"protection": "threshold", "beta": 0.1}}, 'beta, which is for protection = "noise"'),
        ({"frequencies": {"protection": "threshold", "threshold": 1}}, "threshold must be at least 2"),
        ({"frequencies": {"protektion": "none"}}, "protektion: unknown setting; did you mean protection?"),
        ({"categories": {"y": ["a"]}}, "[categories] 'y' is neither secret nor published"),
        ({"categories": {"x": ["a", "a"]}}, "lists 'a' twice"),
        ({"categories": {"x": []}}, "must list at least one value"),
        ({"categories": {"x": "a"}}, "must be a list of texts in quotes"),
        ({"categories": {"x": [" "]}}, "texts of 1 to 200 characters"),
        ({"categories": {"x": ["a" * 201]}}, "texts of 1 to 200 characters"),
        ({"categories": {"x": ["1"]}, "recode": {"x": {"bins": [1]}}}, "that [recode] puts into bins"),
        ({"recode": {"x": {"other": "rest"}}}, "gives no minimum_count"),
        ({"recode": {"x": {"other": "(missing)"}}, "categories": {"x": ["a"]}}, "set missing_label to another text"),
        (
            {"recode": {"x": {"bins": [1], "other": "rest"}}, "frequencies": {"protection": "noise"}},
            "gives no minimum_count",
        ),
    ],
)
def test_a_wrong_setting_is_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec(**changes)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_others_have_a_name_where_there_can_be_others() -> None:
    assert spec(categories={"x": ["a"]}).other_label("x") == "Other"
    assert spec(categories={"x": ["a"]}, recode={"x": {"other": "rest"}}).other_label("x") == "rest"
    noise = {"protection": "noise"}
    assert spec(frequencies=noise, recode={"x": {"other": "rest"}}).other_label("x") == "rest"


def test_digests_change_with_what_decides_over_the_counts() -> None:
    plain = spec()
    noise = {"protection": "noise"}
    coded = [
        plain,
        spec(categories={"x": ["a", "b"]}),
        spec(categories={"x": ["b", "a"]}),
        spec(frequencies=noise),
        spec(frequencies={**noise, "epsilon": 2.0}),
        spec(frequencies={**noise, "delta": 0.1}),
    ]
    assert len({one.coding_digest for one in coded}) == len(coded)
    assert len({one.digest for one in coded}) == len(coded)
    # What decides over nothing but the bounds and the budget makes no other counts, but another release.
    for said in ({"beta": 0.2}, {"max_epsilon": 3.0}):
        other = spec(frequencies={**noise, **said})
        assert other.coding_digest == coded[3].coding_digest
        assert other.digest != coded[3].digest
    threshold = spec(frequencies={"protection": "threshold"})
    # Grouping is a part of how values are coded.
    assert threshold.coding_digest != plain.coding_digest
    # A setting that is left at its default changes nothing.
    assert spec(categories={}).digest == plain.digest
    assert spec(frequencies={}).digest == spec(frequencies={"protection": "noise"}).digest
    assert spec(frequencies={}).coding_digest == coded[3].coding_digest
