"""The probe of a sampler: right for every protocol, and wrong for a sampler that is off by one anywhere."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel.alphabet import Alphabet
from funnel.findings.probe import expected_probe
from funnel.protocol import DENOMINATOR, Protocol
from funnel.recount.donors import PlainDonors
from funnel.sampling import probe
from funnel.sampling.donors import Donors
from funnel.sampling.draw import ChannelSampler


@st.composite
def protocols(draw: st.DrawFn) -> Protocol:
    a, b = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    columns = []
    for _ in range(a + 1):
        cuts = draw(st.lists(st.integers(0, DENOMINATOR), min_size=b - 1, max_size=b - 1))
        ends = [0, *sorted(cuts), DENOMINATOR]
        columns.append([stop - start for start, stop in pairwise(ends)])
    weights = np.array(columns, dtype=np.uint64).T
    return Protocol(weights[:, :a].copy(), weights[:, a].copy(), Alphabet.of(None, a, "X"), Alphabet.of(None, b, "Y"))


@given(protocols())
def test_an_exact_sampler_answers_as_it_has_to(protocol: Protocol) -> None:
    assert probe.probe_digest(protocol) == expected_probe(protocol)


@settings(max_examples=30)
@given(protocols(), st.data())
def test_one_word_of_2_to_the_63_that_moves_is_seen(protocol: Protocol, data: st.DataObject) -> None:
    b, a = protocol.size
    x = data.draw(st.integers(0, a))
    distribution = protocol.weights[:, x].copy() if x < a else protocol.marginal.copy()
    y = int(distribution.argmax())
    if b == 1:
        return
    distribution[y] -= np.uint64(1)
    distribution[(y + 1) % b] += np.uint64(1)
    weights, marginal = protocol.weights.copy(), protocol.marginal
    if x < a:
        weights[:, x] = distribution
    else:
        marginal = distribution
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "sampler_of", lambda _: ChannelSampler(weights, marginal))
        assert probe.probe_digest(protocol) != expected_probe(protocol)


@st.composite
def lines(draw: st.DrawFn) -> Donors:
    """A dozen different records at most, of two columns, in classes of which some may be empty."""
    codes = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=12, unique=True))
    size, names = len(codes), tuple("abcd"[: draw(st.integers(1, 4))])
    of_record = draw(st.lists(st.integers(0, len(names) - 1), min_size=size, max_size=size))
    counts = draw(st.lists(st.integers(1, 50), min_size=size, max_size=size))
    # Texts that sort otherwise than their numbers.
    categories = (("q", "p", "z", "a"), ("2", "10", "1"))
    return Donors(("x", "z"), categories, np.array(codes, dtype=np.int32), names, np.array(of_record), np.array(counts))


def plain_digest(donors: Donors, classes: tuple[str, ...]) -> str:
    people = {
        ((), tuple(texts[code] for texts, code in zip(donors.categories, codes, strict=True)), donors.classes[of]): n
        for codes, of, n in zip(donors.codes, donors.of_record, donors.counts.tolist(), strict=True)
    }
    categories = dict(zip(donors.columns, donors.categories, strict=True))
    return PlainDonors(donors.columns, people, {}, categories).taken_digest(classes)


@given(lines())
def test_donors_are_those_that_they_have_to_be(donors: Donors) -> None:
    assert probe.donors_digest(donors) == plain_digest(donors, donors.classes)


def test_donors_that_do_not_depend_on_words_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.array([[i, 0] for i in range(40)], dtype=np.int32)
    of_record, counts = np.arange(40) % 4 // 3, np.full(40, 3)
    donors = Donors(("x", "z"), (tuple(map(str, range(40))), ("1",)), codes, ("g", "h"), of_record, counts)
    assert probe.donors_digest(donors) == plain_digest(donors, donors.classes)
    monkeypatch.setattr("funnel.sampling.donors.uniform_below", lambda limits, *_: np.zeros_like(limits))
    assert probe.donors_digest(donors) != plain_digest(donors, donors.classes)
