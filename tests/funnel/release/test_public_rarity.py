"""Rarity in public: no finer than the published shares, in words beyond that, and blind to one person."""

from __future__ import annotations

import numpy as np
import pytest

from funnel import LIP, Joint, fit
from funnel.release.public.public_distributions import PublicDistributions, PublicRarity
from tests.public import counted


def _rarity(counts: list[list[int]]) -> PublicRarity:
    joint = Joint.from_counts(counts)
    return PublicRarity.of(counted(joint), PublicDistributions.of(counted(joint), fit("grr", joint, LIP(1.0))))


def test_values_of_one_step_are_rare() -> None:
    found = _rarity([[40_000, 3], [60_000, 7]])
    # A step is a thousandth of the records; what is rounded to one is below one and a half.
    assert (found.inputs, found.secrets) == (1, 0)
    assert 150 <= found.records <= 151


@pytest.mark.parametrize(
    ("rare", "words"),
    [(0, "hardly any"), (1, "hardly any"), (2, "some"), (5, "some"), (6, "many"), (10, "many"), (11, "most")],
)
def test_combinations_are_told_in_four_words(rare: int, words: str) -> None:
    counts = np.full(20, 1000)
    counts[:rare] = 3
    assert _rarity(counts.reshape(2, 10).tolist()).combinations == words


def test_a_combination_of_nine_is_as_rare_as_one_of_none() -> None:
    assert _rarity([[0, 900], [900, 900]]) == _rarity([[9, 900], [900, 900]])
