"""What the probe of a sampler has to be: the outputs on both sides of every threshold, by searching sums of weights."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate

from funnel.protocol import DENOMINATOR, Protocol


def expected_probe(protocol: Protocol) -> str:
    """The digest (hex) that a probe of an exact sampler has; see `funnel.sampling.probe`, which it shares no code with.

    Notes
    -----
    Whole numbers of Python throughout: O(a b log b), half a second for 500 inputs and outputs; of a protocol without
    its zeros as many steps as it has weights.
    """
    digest = blake2b(digest_size=16)
    for outputs, distribution in _distinct_columns(protocol):
        sums = list(accumulate(distribution))
        asked = (u for t in sums for u in (max(t - 1, 0), min(t, DENOMINATOR - 1)))
        answers = [outputs[bisect_right(sums, u)] for u in asked]
        digest.update(b"".join(answer.to_bytes(4, "little") for answer in answers))
    return digest.hexdigest()


def _distinct_columns(protocol: Protocol) -> Iterator[tuple[Sequence[int], list[int]]]:
    """The outputs that are asked for, and their weights, of every input and of those outside the alphabet."""
    if not protocol.is_sparse:
        every = range(len(protocol.outputs))
        yield from (
            (every, distribution) for distribution in [*protocol.weights.T.tolist(), protocol.marginal.tolist()]
        )
        return
    of_inputs: list[list[tuple[int, int]]] = [[] for _ in range(len(protocol.inputs))]
    sparse = protocol.sparse
    for y, x, weight in zip(sparse.outputs.tolist(), sparse.inputs.tolist(), sparse.values.tolist(), strict=True):
        of_inputs[x].append((y, weight))
    of_inputs.append([(y, weight) for y, weight in enumerate(protocol.marginal.tolist()) if weight])
    for some in of_inputs:
        yield [y for y, _ in some], [weight for _, weight in some]
