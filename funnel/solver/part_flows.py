"""Flows between parts of classes as variables of a programme: who moves where, and who stays with which secret."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from funnel.guarantees.any_column import AnyColumn
from funnel.joint import FloatArray, IntArray

# Newton steps that put flows in balance; and people who are none where a secret is published.
_STEPS, _DUST = 4, 1e-7


@dataclass(frozen=True, eq=False)
class PartFlows:
    """The variables of all flows, in one array.

    First people who move from part h to part k and are published there with the secret t, M_t(k, h), as a table
    (t, k, h) in which k = h is not used; then those who would stay if all of a part had the secret s, G_t(s, k), as a
    table (t, s, k). Without a published secret there is one t and one s.

    Attributes
    ----------
    sizes : ndarray of int, shape (k,)
        People of every part.
    mass : ndarray, shape (c, k), or (1, k)
        The share of the people of a part who are read as each secret.
    """

    sizes: IntArray
    mass: FloatArray

    @classmethod
    def of(cls, known: AnyColumn) -> Self:
        """Those between the parts whose observers these are."""
        return cls(known.sizes, known.given if known.publishes else np.ones((1, len(known.sizes))))

    @property
    def secrets(self) -> int:
        """Values of the secret that are read and published."""
        return len(self.mass)

    @property
    def outputs(self) -> int:
        """Parts, each with every published secret."""
        return self.secrets * len(self.sizes)

    @property
    def moves(self) -> int:
        """How many variables are of people who move; those who stay come after them."""
        return self.outputs * len(self.sizes)

    def stay(self, published: IntArray, secret: IntArray, part: IntArray) -> IntArray:
        """The variables G_t(s, k)."""
        return self.moves + (published * self.secrets + secret) * len(self.sizes) + part

    def split(self, flows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """M, as (t·k, h), and G, as (t, s, k), of some flows."""
        shape = self.secrets, self.secrets, len(self.sizes)
        return flows[: self.moves].reshape(self.outputs, -1), flows[self.moves :].reshape(shape)

    @cached_property
    def unchanged(self) -> FloatArray:
        """How much of each variable leaves records as they are."""
        own = np.arange(self.secrets)[:, np.newaxis]
        gains = np.zeros(self.moves + self.secrets * self.outputs)
        gains[self.stay(own, own, np.arange(len(self.sizes)))] = self.mass
        return gains

    @cached_property
    def balance(self) -> tuple[Any, FloatArray]:
        """All of a part go somewhere, whatever their secret, and to each output come as many as are there."""
        from scipy.sparse import csr_array

        size, secrets, outputs = len(self.sizes), self.secrets, self.outputs
        t, k, h = (one.ravel() for one in np.indices((secrets, size, size)))
        moves, every = np.flatnonzero(k != h), np.arange(secrets)[:, np.newaxis]
        to, of, part = (one.ravel() for one in np.indices((secrets, secrets, size)))
        stays = self.moves + np.arange(len(to))
        from_moves = (every * size + h[moves]).ravel()
        rows = [from_moves, outputs + (t * size + k)[moves], of * size + part, outputs + to * size + part]
        columns = [np.tile(moves, secrets), moves, stays, stays]
        entries = [np.ones(len(from_moves)), np.ones(len(moves)), np.ones(len(stays)), self.mass[of, part]]
        where = np.concatenate(rows), np.concatenate(columns)
        equations = csr_array((np.concatenate(entries), where), shape=(2 * outputs, self.moves + len(stays)))
        return equations, np.concatenate([np.tile(self.sizes, secrets), (self.mass * self.sizes).ravel()])

    def largest(self) -> FloatArray:
        """What each variable is at most."""
        moves = np.minimum((self.mass * self.sizes).ravel()[:, np.newaxis], self.sizes)
        moves[np.arange(self.outputs), np.arange(self.outputs) % len(self.sizes)] = 0.0
        every = np.tile(self.sizes, (self.secrets, self.secrets, 1))
        return np.concatenate([moves.ravel(), np.where(self.mass[:, np.newaxis] > 0, every, 0.0).ravel()])

    @cached_property
    def label_pairs(self) -> tuple[IntArray, IntArray]:
        """Variables of which label LDP lets the first be at most e^ε times the second."""
        t, s, other, part = (one.ravel() for one in np.indices((*(self.secrets,) * 3, len(self.sizes))))
        apart = (s != other) & (self.mass[t, part] > 0)
        return self.stay(t, s, part)[apart], self.stay(t, other, part)[apart]

    def labels(self, ratio: float) -> Any:
        """Rows of label LDP."""
        from scipy.sparse import csr_array

        high, low = self.label_pairs
        rows = np.tile(np.arange(len(high)), 2)
        entries = np.repeat([1.0, -ratio], len(high))
        return csr_array((entries, (rows, np.concatenate([high, low]))), shape=(len(high), len(self.unchanged)))

    def channel(self, flows: FloatArray, ratio: float) -> FloatArray:
        """P(output | input), (o, o): label LDP holds, and sums are right as nearly as floats can tell."""
        if self.secrets > 1:
            moved, stays = self.split(flows)
            most = stays.max(axis=1, keepdims=True)
            stays = np.where(most > _DUST, np.maximum(stays, most / ratio), 0.0)
            flows = np.concatenate([moved.ravel(), stays.ravel()])
        moved, stays = (one / self.sizes for one in self.split(_balanced(flows, *self.balance)))
        channel = np.repeat(moved[:, np.newaxis], self.secrets, axis=1)
        output = np.arange(self.outputs)
        published, part = np.divmod(output, len(self.sizes))
        channel[output, :, part] = stays[published, :, part]
        return channel.reshape(self.outputs, -1)


def _balanced(flows: FloatArray, equations: Any, values: FloatArray) -> FloatArray:
    """Flows that meet equations as nearly as floats can tell; what is 0 stays so."""
    for _ in range(_STEPS):
        system = ((equations * flows) @ equations.T).toarray()
        factors = np.linalg.lstsq(system, values - equations @ flows)[0]
        flows = flows * (1 + equations.T @ factors)
    return flows
