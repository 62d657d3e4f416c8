"""The JSON documents of a release: the joint law, the drawn pairs, and the protocol as its users need it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from funnel import measures
from funnel.alphabet import Alphabet
from funnel.errors import DataError
from funnel.guarantees import Guarantee
from funnel.joint import IntArray, Joint
from funnel.protocol import Protocol
from funnel.release.document import dump

__all__ = ["dump", "joint_document", "protocol_document", "read_draws", "read_joint"]

_DIGITS = 4


def joint_document(joint: Joint) -> dict[str, Any]:
    """A joint law as JSON-ready values."""
    return {
        "counts": joint.counts.tolist(),
        "secret": {"columns": list(joint.secret.columns), "symbols": [list(s) for s in joint.secret.symbols]},
        "inputs": {"columns": list(joint.inputs.columns), "symbols": [list(s) for s in joint.inputs.symbols]},
    }


def read_joint(text: str) -> Joint:
    """Read back `joint_document`.

    Raises
    ------
    DataError
        If the text is damaged.
    """
    try:
        content = json.loads(text)
        alphabets = [
            Alphabet(tuple(content[part]["columns"]), tuple(tuple(s) for s in content[part]["symbols"]))
            for part in ("secret", "inputs")
        ]
        return Joint.from_counts(content["counts"], *alphabets)
    except (ValueError, KeyError, TypeError) as error:
        raise DataError("a stored joint law is damaged; estimate it again from the source") from error


def read_draws(text: str, protocol: Protocol) -> IntArray:
    """Counts of drawn (input, output) pairs, shape (a + 1, b), stored as ``{"pairs": [[…]]}``.

    Raises
    ------
    DataError
        If the text is damaged or does not fit the protocol.
    """
    b, a = protocol.size
    try:
        pairs = np.array(json.loads(text)["pairs"], dtype=np.int64)
    except (ValueError, KeyError, TypeError) as error:
        raise DataError("the stored counts of drawn pairs are damaged") from error
    if pairs.shape != (a + 1, b):
        raise DataError(f"the stored counts of drawn pairs have shape {pairs.shape}, not {(a + 1, b)}")
    return pairs


def protocol_document(joint: Joint, protocol: Protocol, guarantee: Guarantee) -> dict[str, Any]:
    """What a user of the release needs to know of the protocol.

    Beside the exact weights: the bound and the level, the law of the published columns, and for every output its
    probability and its posterior over the values of the published columns, to four decimals.
    """
    level = guarantee.level(joint, protocol)
    # Rounded to what a user can need: exact shares would be exact counts, and two versions a difference of counts.
    posterior = np.round(measures.posterior(joint, protocol), _DIGITS)
    law = np.round(measures.input_output_law(joint, protocol).sum(axis=0), _DIGITS)
    return {
        **protocol.to_dict(),
        "bound": {
            "guarantee": guarantee.name,
            "title": guarantee.title,
            "declared": str(guarantee),
            "unit": "nats",
            "level": level.value,
            "secret": list(joint.secret.columns),
        },
        "utility": {
            "mutual_information_nats": round(measures.mutual_information(joint, protocol), _DIGITS),
            "entropy_nats": round(joint.entropy, _DIGITS),
            "share": round(measures.normalised_mutual_information(joint, protocol), _DIGITS),
            "columns": list(joint.inputs.columns),
        },
        "prior": {
            "columns": list(joint.inputs.columns),
            "symbols": [list(symbol) for symbol in joint.inputs.symbols],
            "probabilities": np.round(joint.p_input, _DIGITS).tolist(),
        },
        "posterior": [
            {
                "output": list(symbol),
                "probability": float(mass),
                "inputs": {
                    label: float(share)
                    for label, share in zip(joint.inputs.labels, row, strict=True)
                    if np.isfinite(share) and share > 0
                },
            }
            for symbol, mass, row in zip(protocol.outputs.symbols, law, posterior, strict=True)
        ],
    }
