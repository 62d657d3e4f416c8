"""Probe: what the sampler of groups answers at every place where one output gives way to the next, as a digest.

As `funnel.sampling.probe`. For every stage, every channel of it, every input that an output of the channel lists,
rising, and then the marginal, and every output y in order: with t = Σ_{y' ≤ y} weights · 2^19 out of 2^63, the outputs
of u = t - 1 (0 for t = 0) and of u = t (2^63 - 1 for t = 2^63), as little-endian 32-bit numbers one after the other;
the probe is their BLAKE2b digest of 16 bytes.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from funnel.groups.drawing import Sampler
from funnel.groups.protocol import GroupedProtocol
from funnel.protocol import DENOMINATOR
from funnel.sampling.codes import OUTSIDE


def probe_digest(protocol: GroupedProtocol) -> str:
    """The digest (hex) of what the sampler of this process answers."""
    sampler = Sampler(protocol)
    digest = blake2b(digest_size=16)
    for stage, of_stage in zip(protocol.stages, sampler.stages, strict=True):
        for number, channel in enumerate(stage.channels):
            weights, marginal = channel.words(stage.size)
            listed = sorted({place for inputs in channel.inputs for place in inputs})
            for place in (*listed, OUTSIDE):
                column = marginal if place == OUTSIDE else weights[:, place]
                thresholds = np.cumsum(column, dtype=np.uint64)
                asked = np.stack(
                    [
                        np.maximum(thresholds, np.uint64(1)) - np.uint64(1),
                        np.minimum(thresholds, np.uint64(DENOMINATOR - 1)),
                    ],
                    axis=-1,
                ).reshape(-1)
                # The lowest bit of a word is not used: it is set here, so that it shows if it is.
                words = (asked << np.uint64(1)) | np.uint64(1)
                digest.update(of_stage.answer(number, place, words).astype("<u4").tobytes())
    return digest.hexdigest()
