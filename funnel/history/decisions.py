"""Decisions: what is drawn about a person in one version, as digests; a word is derived for a record and a decision."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Final

import numpy as np

from funnel.alphabet import Alphabet
from funnel.protocol import WeightArray
from funnel.sampling.keyed import DIGEST_BYTES, DigestArray

History = tuple[tuple[str, int], ...]
"""What was published about a person: (name of a version, output index) pairs, in the order of publication."""

DECISION_PURPOSE: Final = "decisions of a history"
"""What the key of `decision_keys` is derived for."""

_HISTORY, _CHANNEL, _DECISION = b"funnel history 1", b"funnel channel 1", b"funnel decision1"
EMPTY: Final = blake2b(digest_size=DIGEST_BYTES, person=_HISTORY).digest()
"""The digest of the empty history."""


def extended_digest(history: bytes, version: str, output: int) -> bytes:
    """The digest of a history that goes on with an output of a version, from the digest of the history."""
    # The digest before is of one length and the output too, so a name cannot be read as a part of another one.
    content = history + output.to_bytes(8, "little") + version.encode()
    return blake2b(content, digest_size=DIGEST_BYTES, person=_HISTORY).digest()


def channel_digest(weights: WeightArray, inputs: Alphabet, outputs: Alphabet) -> bytes:
    """What tells a channel apart: its weights (b, a) and what its columns and rows stand for; 16 bytes."""
    header = [[list(one.columns), [list(symbol) for symbol in one.symbols]] for one in (inputs, outputs)]
    text = json.dumps(header, ensure_ascii=True, separators=(",", ":")).encode()
    digest = blake2b(digest_size=DIGEST_BYTES, person=_CHANNEL)
    # Its length first: no header and weights can be read as another header and other weights.
    digest.update(len(text).to_bytes(8, "little"))
    digest.update(text)
    digest.update(np.ascontiguousarray(weights, dtype="<u8").tobytes())
    return digest.digest()


def numbered(outputs: Alphabet) -> Alphabet:
    """Outputs by their numbers, as decisions about rows of units know them: their names are known after all draws."""
    symbols = tuple((str(y),) * len(outputs.columns) for y in range(len(outputs)))
    return Alphabet(outputs.columns, symbols)


def decision_digest(history: bytes, channel: bytes) -> bytes:
    """What tells a decision apart: what was published before, and the channel that is drawn from now.

    Parameters
    ----------
    history : bytes
        From `extended_digest`, one version after the other.
    channel : bytes
        From `channel_digest`, of R_t(·|·, h).

    Returns
    -------
    bytes
        16 of them (BLAKE2b). The same for the same decision, wherever it is made again.
    """
    return blake2b(history + channel, digest_size=DIGEST_BYTES, person=_DECISION).digest()


def decision_array(digests: list[bytes]) -> DigestArray:
    """Digests of decisions as numbers, shape (k, 2)."""
    return np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 2).astype(np.uint64)
