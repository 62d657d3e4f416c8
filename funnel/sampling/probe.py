"""Probe: what the sampler answers at every place where one output gives way to the next, as a digest.

A threshold that is off by one moves a probability by 2^-63: no number of draws shows that. The words on both sides of
it do. For every input x, the one outside the alphabet last, and every output y, let t = Σ_{y' ≤ y} weights[y', x]; the
probe asks for the outputs of u = t - 1 (0 for t = 0) and of u = t (2^63 - 1 for t = 2^63), in this order, and is the
BLAKE2b digest of the answers as little-endian 32-bit numbers. Of a protocol without its zeros it asks for the outputs
only that an input can become: at any other one nothing gives way. `funnel.findings.probe` says what it has to be.

Of donors it asks whom every record takes the place of. The i-th record, in the order of their texts, of the g-th of k
classes with people, goes to the class g + 1 + (i mod (k - 1)), counted on from the first after the last, with the word
i · `SPREAD` mod 2^64; the digest is of the numbers of the donors in that order. `funnel.recount.donors` says what it
has to be.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from funnel.protocol import DENOMINATOR, Protocol
from funnel.sampling.answers import sampler_of
from funnel.sampling.donors import Donors

# Odd, so that words of different records differ.
SPREAD = 0x9E3779B97F4A7C15


def probe_digest(protocol: Protocol) -> str:
    """The digest (hex) of what the sampler of this process answers."""
    if protocol.is_sparse:
        distributions = [protocol.conditional(x)[1] for x in range(len(protocol.inputs) + 1)]
    else:
        distributions = list(np.column_stack([protocol.weights, protocol.marginal]).T)
    thresholds = np.concatenate([np.cumsum(distribution, dtype=np.uint64) for distribution in distributions])
    asked = np.stack(
        [
            np.maximum(thresholds, np.uint64(1)) - np.uint64(1),
            np.minimum(thresholds, np.uint64(DENOMINATOR - 1)),
        ],
        axis=-1,
    )
    # The lowest bit of a word is not used: it is set here, so that it shows if it is.
    words = (asked.reshape(-1) << np.uint64(1)) | np.uint64(1)
    codes = np.repeat([*range(len(distributions) - 1), -1], [2 * len(distribution) for distribution in distributions])
    return blake2b(sampler_of(protocol).draw(codes, words).astype("<u4").tobytes(), digest_size=16).hexdigest()


def donors_digest(donors: Donors) -> str:
    """The digest (hex) of whose place every record takes."""
    texts = [
        np.array(names, dtype=object)[codes] for names, codes in zip(donors.categories, donors.codes.T, strict=True)
    ]
    symbols = list(zip(*texts, strict=True))
    order = np.array(sorted(range(len(donors)), key=symbols.__getitem__), dtype=np.int64)
    numbers = np.arange(len(order))
    there = np.flatnonzero(donors.sizes)
    place = np.searchsorted(there, donors.of_record[order])
    into = there[(place + (1 + numbers % (len(there) - 1) if len(there) > 1 else 0)) % len(there)]
    words = numbers.astype(np.uint64) * np.uint64(SPREAD)
    taken = donors.taken(order, into, lambda attempt: words + np.uint64(attempt))
    position = np.empty_like(order)
    position[order] = numbers
    return blake2b(position[taken].astype("<u4").tobytes(), digest_size=16).hexdigest()
