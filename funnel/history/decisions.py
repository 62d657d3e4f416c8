"""Decisions: what is drawn about a person in one version, as digests; a word is derived for a record and a decision."""

from __future__ import annotations

import json
from hashlib import blake2b

import numpy as np

from funnel.alphabet import Alphabet
from funnel.history.past import History
from funnel.protocol import WeightArray
from funnel.sampling.keyed import DIGEST_BYTES, DigestArray, encrypted_blocks

_PERSON = b"funnel decision1"


def decision_digest(history: History, weights: WeightArray, inputs: Alphabet, outputs: Alphabet) -> bytes:
    """What tells apart two decisions: what was published before, and the channel that is drawn from now.

    Parameters
    ----------
    history : tuple of (str, int)
        Names of versions and output indices, in the order of publication.
    weights : ndarray of uint64, shape (b, a)
        R_t(·|·, h).
    inputs, outputs : Alphabet
        Of its columns and rows.

    Returns
    -------
    bytes
        16 of them (BLAKE2b). The same for the same decision, wherever it is made again.
    """
    header = {
        "history": [[version, output] for version, output in history],
        "inputs": [list(inputs.columns), [list(symbol) for symbol in inputs.symbols]],
        "outputs": [list(outputs.columns), [list(symbol) for symbol in outputs.symbols]],
    }
    text = json.dumps(header, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()
    digest = blake2b(digest_size=DIGEST_BYTES, person=_PERSON)
    # Its length first: no header and weights can be read as another header and other weights.
    digest.update(len(text).to_bytes(8, "little"))
    digest.update(text)
    digest.update(np.ascontiguousarray(weights, dtype="<u8").tobytes())
    return digest.digest()


def decision_keys(digests: DigestArray, decisions: DigestArray, key: bytes) -> DigestArray:
    """128 bits per record and decision, to be put in the place of the digest of the record's key.

    ``AES_key(record) XOR decision``: what draws encrypts it once more under its own key, so that a word is
    ``AES_k2(AES_k1(record) XOR decision)``, the CBC-MAC of two blocks. For messages of one length that is a
    pseudo-random function of record and decision (Bellare, Kilian and Rogaway 1994): another decision about the same
    record has an unrelated word, the same decision has the same.

    Parameters
    ----------
    digests : ndarray of uint64, shape (rows, 2)
        From `funnel.sampling.key_digests`.
    decisions : ndarray of uint64, shape (rows, 2)
        From `decision_digest`, as two little-endian numbers.
    key : bytes
        Of AES-256, from `funnel.sampling.word_key` for a purpose of its own.

    Returns
    -------
    ndarray of uint64, shape (rows, 2)
    """
    return np.asarray(encrypted_blocks(digests, key) ^ decisions)


def decision_array(digests: list[bytes]) -> DigestArray:
    """Digests of decisions as numbers, shape (k, 2)."""
    return np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 2).astype(np.uint64)
