"""What a channel reads, by secret: counts and rows of (secret, input) whether or not it reads the secret."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.joint import FloatArray, IntArray, Joint


def secret_by_input(joint: Joint) -> tuple[IntArray, bool]:
    """Counts (c, u) of secret and input, and whether the channel reads the secret, from what it reads."""
    if not reads_secret(joint):
        return joint.counts, False
    return by_secret(joint.counts), True


def reads_secret(joint: Joint) -> bool:
    """Whether this is the joint distribution of a channel that reads (secret, input)."""
    return joint.inputs.columns[: len(joint.secret.columns)] == joint.secret.columns


def by_secret(table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The entries (c, u) of a table (c, c·u) over (secret, input) where both name the same secret."""
    c, a = table.shape
    return np.asarray(table.reshape(c, c, a // c)[np.arange(c), np.arange(c)])


def rows_by_secret(joint: Joint, rows: FloatArray) -> FloatArray:
    """``T_{s,u}``, shape (k, c, u), of rows (k, a) over what the channel reads."""
    counts, both = secret_by_input(joint)
    if both:
        return rows.reshape(len(rows), *counts.shape)
    return np.ascontiguousarray(np.broadcast_to(rows[:, None, :], (len(rows), *counts.shape)))


def stacked(joint: Joint, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """`rows_by_secret` without copies: shape (k, c, u), or (k, 1, u) where every secret has the same row."""
    if reads_secret(joint):
        c = len(joint.secret)
        return np.asarray(rows.reshape(len(rows), c, -1))
    return np.asarray(rows[:, None, :])
