"""Public frequencies as a document: read back as they were, and refused where they contradict themselves."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from funnel import DataError, Joint, SpecError
from funnel.frequencies.moves import Moves, NoisyMoves
from funnel.frequencies.noise import Noise
from funnel.frequencies.public_counts import Frequencies, of_noisy, protect
from funnel.frequencies.unit_tables import NoisyRows
from funnel.release.frequencies_document import FrequenciesDocument, frequencies_document
from funnel.settings.protection_settings import FrequencySettings
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


def with_tables() -> Frequencies:
    """Frequencies of a second version in which units have several rows."""
    secrets, stayed, left = [[30, -1], [2, 90]], [[9, 5], [40, 3]], [[1, 0], [-2, 8]]
    moves = Moves("people/1.0.0", np.array(secrets), np.array(stayed), np.array(left))
    stayed, left = [[3, 0, 1], [40, 60, 0]], [[1, 2, 0], [7, 5, -1]]
    rows = NoisyRows(0.125, np.array(stayed), np.array(left), np.array([90, 12, -1]))
    return replace(made(), changes=NoisyMoves(0.125, (moves,)), epsilon=1.0, spent=2.5, rows=rows)


def test_tables_of_changes_and_rows_are_read_back_as_they_were() -> None:
    document = frequencies_document(with_tables())
    assert validated(document.content()) == "frequencies"
    again = FrequenciesDocument.from_json(document.to_bytes())
    assert again == document
    changes, rows = again.frequencies.changes, again.frequencies.rows
    assert (changes.since[0].since, changes.since[0].left.tolist()) == ("people/1.0.0", [[1, 0], [-2, 8]])
    assert (rows.sizes.tolist(), rows.scale) == ([90, 12, -1], 16.0)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("changes", "scale"), 4.0, "the scale of the noise in its changes"),
        (("changes", "since", 0, "secrets"), [[1, 2, 3], [4, 5, 6]], "not to the secrets"),
        (("changes", "since", 0, "stayed"), [[9, 5], [40]], "rows of several lengths"),
        (("changes", "since", 0, "stayed"), [[9, 5]], "do not fit one another"),
        (("rows", "scale"), 4.0, "the scale of the noise in its rows"),
        (("rows", "sizes"), [], "rows"),
    ],
)
def test_tables_that_contradict_themselves_are_refused(path: tuple[Any, ...], value: object, said: str) -> None:
    content = json.loads(frequencies_document(with_tables()).to_bytes())
    place = content
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(DataError, match=said):
        FrequenciesDocument.from_json(json.dumps(content))


def test_changes_since_a_version_are_told_once_and_rows_are_of_the_values() -> None:
    content = json.loads(frequencies_document(with_tables()).to_bytes())
    content["changes"]["since"] *= 2
    with pytest.raises(DataError, match="one version twice"):
        FrequenciesDocument.from_json(json.dumps(content))
    content = json.loads(frequencies_document(with_tables()).to_bytes())
    content["rows"].update(stayed=[[1, 2], [3, 4]], left=[[1, 2], [3, 4]])
    with pytest.raises(DataError, match="not of the values that it counts"):
        FrequenciesDocument.from_json(json.dumps(content))


def test_the_first_form_tells_nothing_of_changes() -> None:
    content = json.loads(frequencies_document(made()).to_bytes())
    for name in ("changes", "rows"):
        assert content.pop(name, None) is None
    again = FrequenciesDocument.from_json(json.dumps({**content, "schema": "funnel/frequencies/1"}))
    assert (again.changes, again.rows) == (None, None)
    assert again == frequencies_document(made())
    with pytest.raises(DataError, match="was made by a newer funnel"):
        FrequenciesDocument.from_json(json.dumps({**content, "schema": "funnel/frequencies/7"}))
    # There was never one that did not say what it is.
    del content["schema"]
    with pytest.raises(DataError, match="the public frequencies is damaged: it does not name its schema"):
        FrequenciesDocument.from_json(json.dumps(content))
