"""What the probe of a sampler of groups has to be: outputs on both sides of every threshold, by searching sums."""

from __future__ import annotations

from bisect import bisect_right
from hashlib import blake2b
from itertools import accumulate

from funnel.recount.grouped_text import BITS, GroupedText

# Words have so many bits that decide.
_WORD = 63


def expected_probe(text: GroupedText) -> str:
    """The digest (hex) that a probe of an exact sampler has.

    For every stage, channel, input that has weights, rising, and then the marginal, and every output: the outputs of
    the words below and at the threshold where it gives way to the next, as little-endian numbers of 32 bits, digested
    by BLAKE2b. Whole numbers of Python throughout.
    """
    digest, whole = blake2b(digest_size=16), 1 << _WORD
    for stage in text.stages:
        for channel in stage.channels:
            laws = [[weights.get(x, 0) for weights in channel.outputs] for x in sorted(channel.inputs)]
            for law in [*laws, channel.marginal]:
                sums = list(accumulate(weight << (_WORD - BITS) for weight in law))
                asked = (u for t in sums for u in (max(t - 1, 0), min(t, whole - 1)))
                digest.update(b"".join(bisect_right(sums, u).to_bytes(4, "little") for u in asked))
    return digest.hexdigest()
