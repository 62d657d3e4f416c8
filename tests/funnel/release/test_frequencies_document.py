"""Public frequencies as a document: read back as they were, and refused where they contradict themselves."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from funnel import DataError, Joint, SpecError
from funnel.frequencies import Frequencies, Noise, protect
from funnel.frequencies.frequencies import of_noisy
from funnel.frequency_settings import FrequencySettings
from funnel.release.frequencies_document import FrequenciesDocument, frequencies_document
from tests.schemas import validated

OVER = Joint.from_counts(np.ones((2, 3)), secret=["ill", "well"], inputs=["a", "b", "c"])


def made() -> Frequencies:
    noisy = np.array([[31, 3, -5], [200, 3002, 7]])
    return of_noisy(noisy, OVER.secret, OVER.inputs, Noise(0.75, 1e-9, 0.01), 1.0, 2.5)


@settings(max_examples=25)
@given(
    arrays.arrays(np.int64, (2, 3), elements=st.integers(-50, 10**6)),
    st.floats(0.1, 5),
    st.floats(1e-4, 0.4),
)
def test_it_is_read_back_as_it_was(noisy: Any, epsilon: float, beta: float) -> None:
    noisy[0, 0] = max(1, noisy[0, 0])
    frequencies = of_noisy(noisy, OVER.secret, OVER.inputs, Noise(epsilon, 0.0, beta), epsilon, 2 * epsilon)
    document = frequencies_document(frequencies)
    assert validated(document.content()) == "frequencies"
    again = FrequenciesDocument.from_json(document.to_bytes()).frequencies
    assert (again.noise, again.epsilon, again.spent) == (frequencies.noise, epsilon, 2 * epsilon)
    assert (again.joint.secret, again.joint.inputs) == (OVER.secret, OVER.inputs)
    assert told(again) == told(frequencies)


def told(frequencies: Frequencies) -> list[object]:
    bounds, noisy = frequencies.joint.bounds, frequencies.noisy
    assert bounds is not None
    assert noisy is not None
    tables = (noisy, frequencies.joint.counts, bounds.lower, bounds.upper, bounds.totals)
    return [bounds.beta, *(table.tolist() for table in tables)]


def test_it_says_what_was_spent_and_how_far_the_noise_goes() -> None:
    content = json.loads(frequencies_document(made()).to_bytes())
    assert content["noisy"] == [[31, 3, -5], [200, 3002, 7]]
    assert (content["epsilon"], content["epsilon_counts"], content["spent"]) == (1.0, 0.75, 2.5)
    assert (content["delta"], content["beta"], content["protection"]) == (1e-9, 0.01, "noise")
    assert content["cells_within"] == 9
    assert content["totals_within"] >= content["cells_within"]
    assert content["inputs"]["symbols"] == [["a"], ["b"], ["c"]]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("noisy", [[1, 2, 3]], "do not fit its alphabets"),
        ("noisy", [[1, 2], [3, 4]], "do not fit its alphabets"),
        ("noisy", [[0, -1, 0], [0, 0, -4]], "nothing is left"),
        ("cells_within", 8, "not those of its noise"),
        ("totals_within", 3, "not those of its noise"),
        ("scale", 1.0, "not those of its noise"),
        ("epsilon_counts", 1.5, "cannot be used"),
        ("spent", 0.5, "cannot be used"),
        ("protection", "none", "protection"),
        ("beta", 0.0, "beta"),
        ("exact", 1, "exact is not known"),
    ],
)
def test_a_document_that_contradicts_itself_is_damaged(key: str, value: object, said: str) -> None:
    content = json.loads(frequencies_document(made()).to_bytes()) | {key: value}
    with pytest.raises(DataError, match="the public frequencies is damaged") as caught:
        FrequenciesDocument.from_json(json.dumps(content))
    assert said in str(caught.value)


def test_what_is_not_protected_is_not_told_exactly() -> None:
    with pytest.raises(SpecError, match="only frequencies that are protected by noise"):
        frequencies_document(protect(OVER, FrequencySettings(protection="none")))
