"""PublicDistributions: frequencies and what follows from them, as they are published."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from funnel import measures
from funnel.alphabet import Alphabet
from funnel.frequencies.public_counts import Frequencies
from funnel.guarantees import Guarantee
from funnel.joint import FloatArray, IntArray
from funnel.protocol import DENOMINATOR, Protocol
from funnel.release.public.comparison import compared
from funnel.release.public.rounding import (
    RECORDS,
    distribution_of_rare,
    lift_step,
    nats_step,
    public_shares,
    share_step,
    to_multiple,
)
from funnel.sparse_weights import SparseWeights

# A lift that could only be told to more than this is not told at all.
_COARSEST_LIFT = 0.5


@dataclass(frozen=True, eq=False)
class SparsePosterior:
    """P(x|y) of a wide table, output by output, without its zeros.

    Attributes
    ----------
    weights : SparseWeights
        Which inputs an output may come from.
    shares : ndarray, shape (entries,)
        P(x|y) of each entry; zero where the input has no share.
    """

    weights: SparseWeights
    shares: FloatArray

    @classmethod
    def of(cls, weights: SparseWeights, shares: FloatArray) -> tuple[SparsePosterior, FloatArray]:
        """The posterior and the distribution of the outputs, for shares of the inputs that add up to one."""
        joint = weights.values / np.float64(DENOMINATOR) * shares[weights.inputs]
        outputs = np.bincount(weights.outputs, weights=joint, minlength=weights.shape[0]).astype(np.float64)
        whole = outputs[weights.outputs]
        return cls(weights, np.divide(joint, whole, out=np.zeros_like(joint), where=whole > 0)), outputs

    def row(self, y: int) -> tuple[IntArray, FloatArray]:
        """The inputs that an output may come from, rising, and P(x|y) of each."""
        here = slice(int(self.weights.starts[y]), int(self.weights.starts[y + 1]))
        there = self.shares[here] > 0
        return self.weights.inputs[here][there], self.shares[here][there]


def posterior_of(
    protocol: Protocol, inputs: Alphabet, shares: FloatArray, step: float
) -> tuple[FloatArray | SparsePosterior, FloatArray]:
    """P(x|y) and P(y) of a protocol that reads what is published, from public shares (a,) of these inputs."""
    if protocol.is_sparse:
        return SparsePosterior.of(protocol.sparse_for(inputs), distribution_of_rare(shares, step))
    weights = protocol.weights_for(inputs).astype(np.float64) / float(protocol.denominator)
    return _given_output(weights.T * (shares / shares.sum())[:, np.newaxis])


def _given_output(distribution: FloatArray) -> tuple[FloatArray, FloatArray]:
    """P(x|y) and P(y) of shares (a, b) of input and output."""
    p_output = distribution.sum(axis=0)
    posterior = np.full(distribution.T.shape, np.nan)
    np.divide(distribution.T, p_output[:, np.newaxis], out=posterior, where=p_output[:, np.newaxis] > 0)
    return posterior, p_output


def sources_of(posterior: FloatArray | SparsePosterior, y: int) -> tuple[IntArray, FloatArray]:
    """The inputs that an output may come from, rising, and P(x|y) of each."""
    if isinstance(posterior, SparsePosterior):
        return posterior.row(y)
    row = np.nan_to_num(posterior[y])
    inputs = np.flatnonzero(row > 0)
    return inputs, row[inputs]


@dataclass(frozen=True, eq=False)
class PublicDistributions:
    """The frequencies as they are published.

    Attributes
    ----------
    secret, inputs : Alphabet
        Symbols of the secret and of the published columns.
    n : int
        Number of records.
    p_secret, p_input : ndarray, shapes (c,) and (a,)
        Multiples of the step; at least one step for what occurs. They need not sum to one.
    p_output : ndarray, shape (b,)
        P(y), as it follows from the weights and ``p_input``; for a protocol that reads the secret, from shares of
        (x, y) that are multiples of the step.
    posterior : ndarray, shape (b, a), or SparsePosterior
        P(x|y), likewise; nan where y never occurs. Of a wide table the entries that are not zero.
    step : float
    """

    secret: Alphabet
    inputs: Alphabet
    n: int
    p_secret: FloatArray
    p_input: FloatArray
    p_output: FloatArray
    posterior: FloatArray | SparsePosterior
    step: float

    @classmethod
    def of(cls, frequencies: Frequencies, protocol: Protocol) -> PublicDistributions:
        """Of public frequencies and a protocol.

        Raises
        ------
        DataError
            If the protocol reads other columns.
        """
        joint = frequencies.joint.over_published(protocol.outputs.columns)
        step = share_step(joint.n)
        p_input = public_shares(joint.p_input, step)
        p_secret = public_shares(joint.p_secret, step)
        if protocol.inputs.columns == joint.inputs.columns:
            posterior, p_output = posterior_of(protocol, joint.inputs, p_input, step)
        else:
            distribution = public_shares(measures.input_output_distribution(joint, protocol), step)
            posterior, p_output = _given_output(distribution / distribution.sum())
        return cls(joint.secret, joint.inputs, joint.n, p_secret, p_input, p_output, posterior, step)

    def sources(self, y: int) -> tuple[IntArray, FloatArray]:
        """The inputs that an output may come from, rising, and P(x|y) of each."""
        return sources_of(self.posterior, y)

    def nats(self, value: float) -> float:
        """An entropy, or a share of one, as a multiple of the step of shares."""
        return to_multiple(value, nats_step(value, self.step))

    def share(self, value: float) -> float:
        """A share of records as a multiple of the step, at most 1."""
        return min(1.0, to_multiple(value, self.step))

    def share_above(self, value: float) -> float:
        """The same, never below it; nothing stays nothing."""
        return min(1.0, round(math.ceil(value / self.step - 1e-9) * self.step, 12))

    def compared(self, row: dict[str, Any], guarantee: Guarantee) -> dict[str, Any]:
        """A row of the comparison of mechanisms, as `funnel.planning.PlanRow.to_dict` has it, rounded."""
        return compared(row, self.step, guarantee)

    def lifts(self, lift: FloatArray) -> FloatArray:
        """Lifts (c, b) to two digits, and no finer than RECORDS of the records they are about; nan where not told.

        Zero stays zero: that a published value rules a secret out is the worst that can be said of it. Nothing else
        becomes zero.
        """
        expected = self.n * np.outer(self.p_secret, self.p_output)
        told = np.full(lift.shape, np.nan)
        for (s, y), value in np.ndenumerate(lift):
            if value == 0:
                told[s, y] = 0.0
            elif value == value and expected[s, y] > 0:
                step = lift_step(float(value), float(expected[s, y]))
                if step <= _COARSEST_LIFT:
                    told[s, y] = max(step, to_multiple(float(value), step))
        return told

    def belief_limits(self, guarantee: Guarantee) -> tuple[FloatArray, FloatArray] | None:
        """Least and largest P(s|y) that the guarantee allows under any prior that is rounded to the published one."""
        below = np.clip(self.p_secret - self.step / 2, 0.0, 1.0)
        # What was lifted to one step may be as rare as one record.
        below = np.where(self.p_secret <= self.step, np.minimum(1 / self.n, self.p_secret), below)
        above = np.where(self.p_secret > 0, np.clip(self.p_secret + self.step / 2, 0.0, 1.0), 0.0)
        least, most = guarantee.posterior_limits(below), guarantee.posterior_limits(above)
        if least is None or most is None:
            return None
        highest, lifts = most[1], guarantee.lift_limits
        if lifts is not None and math.isinf(lifts[1]):
            # What is certain of the rarest secret would limit the others by a share that is known only roughly.
            highest = 1 - lifts[0] * (1 - above)
        return np.clip(least[0], 0.0, 1.0), np.clip(highest, 0.0, 1.0)


Words = Literal["hardly any", "some", "many", "most"]


@dataclass(frozen=True)
class PublicRarity:
    """Rare values and combinations.

    Attributes
    ----------
    records : int
        A published share of one step stands for about this many records, or fewer.
    inputs, secrets : int
        Values with such a share.
    combinations : str
        Of the combinations of secret and published values, how many have fewer than ten records, none included: up to a
        twentieth, up to a quarter, up to half, or more.
    """

    records: int
    inputs: int
    secrets: int
    combinations: Words

    @classmethod
    def of(cls, frequencies: Frequencies, distributions: PublicDistributions) -> PublicRarity:
        """Of public frequencies and their published distributions."""
        share = float((frequencies.joint.by_class.counts < RECORDS).mean())
        words: Words = (
            "hardly any" if share <= 1 / 20 else "some" if share <= 1 / 4 else "many" if share <= 1 / 2 else "most"
        )
        return cls.from_words(distributions, words)

    @classmethod
    def from_words(cls, distributions: PublicDistributions, combinations: Words) -> PublicRarity:
        """Of published distributions, and what is said of combinations."""
        inputs, secrets = (
            int(((p > 0) & (p <= distributions.step * (1 + 1e-9))).sum())
            for p in (distributions.p_input, distributions.p_secret)
        )
        return cls(int(np.ceil(1.5 * distributions.step * distributions.n)), inputs, secrets, combinations)
