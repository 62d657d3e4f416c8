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
from funnel.sampling import ChannelSampler, probe


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
    law = protocol.weights[:, x].copy() if x < a else protocol.marginal.copy()
    y = int(law.argmax())
    if b == 1:
        return
    law[y] -= np.uint64(1)
    law[(y + 1) % b] += np.uint64(1)
    weights, marginal = protocol.weights.copy(), protocol.marginal
    if x < a:
        weights[:, x] = law
    else:
        marginal = law
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "sampler_of", lambda _: ChannelSampler(weights, marginal))
        assert probe.probe_digest(protocol) != expected_probe(protocol)
