"""Drawing from a sparse protocol: for every word the output of the whole table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel.errors import DataError
from funnel.findings.probe import expected_probe
from funnel.protocol import DENOMINATOR, Protocol
from funnel.sampling.answers import sampler_of
from funnel.sampling.draw import ChannelSampler, SparseSampler
from funnel.sampling.probe import probe_digest
from funnel.sparse_weights import SparseWeights


@st.composite
def protocols(draw: st.DrawFn) -> Protocol:
    b, a = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    cut = st.lists(st.sampled_from([0, 1, 5, 2**62, 2**62 + 1, 2**63 - 1, 2**63]), min_size=b - 1, max_size=b - 1)
    columns = []
    for _ in range(a + 1):
        ends = [0, *sorted(draw(cut)), DENOMINATOR]
        columns.append([high - low for low, high in itertools.pairwise(ends)])
    weights = np.array(columns, dtype=np.uint64).T
    names = [funnel.Alphabet.of(None, size, column) for size, column in ((a, "X"), (b, "Y"))]
    return Protocol.of_sparse(SparseWeights.of(weights[:, :a]), weights[:, a].copy(), *names)


@settings(max_examples=60)
@given(protocols(), st.integers(0, 2**32 - 1))
def test_it_draws_what_the_table_draws(protocol: Protocol, seed: int) -> None:
    table = ChannelSampler(protocol.weights, protocol.marginal)
    random = np.random.default_rng(seed)
    edges = np.unique(np.cumsum(protocol.weights, axis=0, dtype=np.uint64)).astype(object)
    near = [int(e) + step for e in edges for step in (-1, 0, 1) if 0 <= int(e) + step < DENOMINATOR]
    uniform = np.concatenate([np.array(near, dtype=np.uint64), random.integers(0, 2**63, 20, dtype=np.uint64)])
    words = (uniform << np.uint64(1)) | np.uint64(1)
    for code in range(-1, protocol.size[1]):
        codes = np.full(len(words), code)
        sparse = sampler_of(protocol)
        assert isinstance(sparse, SparseSampler)
        drawn = sparse.draw(codes, words)
        assert drawn.dtype == table.draw(codes, words).dtype
        assert (drawn == table.draw(codes, words)).all()
    plain = Protocol(protocol.weights, protocol.marginal, protocol.inputs, protocol.outputs)
    for one in (protocol, plain):
        assert probe_digest(one) == expected_probe(one)


def test_codes_outside_the_alphabet_are_refused() -> None:
    joint = funnel.Joint.from_counts([[3, 1], [1, 3]])
    plain = funnel.fit("grr", joint, funnel.LIP(0.5))
    protocol = Protocol.of_sparse(SparseWeights.of(plain.weights), plain.marginal, plain.inputs, plain.outputs)
    sampler = SparseSampler(protocol)
    for codes in ([2], [-2], [0.5]):
        with pytest.raises(DataError, match="input codes"):
            sampler.draw(np.array(codes), np.zeros(1, dtype=np.uint64))
    assert len(sampler.draw(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64))) == 0
