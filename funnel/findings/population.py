"""What a bound that is proven for some records is worth among everybody whom they are a sample of: an estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from funnel.guarantees import Guarantee
from funnel.guarantees.base import PosteriorGuarantee
from funnel.guarantees.robust_guarantee import Robust
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import Protocol

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DRAWS = 40
_SEED = 1
_HALF = 0.5
# Relative: posteriors at an end of what is allowed are inside, and floats a hair off.
_NEAR = 1e-9
# ln of the weights between which that of the prior is looked for.
_LEAST, _MOST = -7.0, 9.0


Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class InPopulation:
    """Estimates of what holds among everybody, from records that are a random sample of them.

    Attributes
    ----------
    unseen : float
        Share of all people whose published values no record has (Good and Turing): the protocol says nothing of them.
    unseen_cells : float
        The same of secret and published values together: the distribution of the sample calls these impossible.
    outside : float
        Mean share of the released records whose published value says more about the secret than the bound allows, for
        an observer who knows the distribution of the population.
    least, most : float
        The smallest and the largest share over all distributions that were drawn.
    weight : float
        So many records the prior of a combination counts for.
    """

    unseen: Share
    unseen_cells: Share
    outside: Share
    least: Share
    most: Share
    weight: Annotated[float, Field(gt=0)]

    @property
    def sentence(self) -> str:
        """What that means for whoever releases it."""
        return (
            f"the bound is proven for these records as if they were everybody; if they are a sample, about "
            f"{self.outside:.0%} of them are estimated to be outside it in the population, and about {self.unseen:.0%} "
            "of the people there have a combination of published values that no record has; a robust bound (rlip, "
            "rpml, ralip, rldp), fewer columns or fewer values keep it"
        )


def in_population(joint: Joint, protocol: Protocol, guarantee: Guarantee) -> InPopulation | None:
    """Estimate how much of a release leaves its bound among everybody.

    Distributions of the population are drawn given the counts: P(x) from a Dirichlet distribution of the counts of x
    and a half, P(S|x) from one of ``n[·, x] + κ p_S``. κ, how alike the secrets of combinations are, is that under
    which the counts are likeliest (a Dirichlet-multinomial distribution for every x), so the data decide how far a
    combination of few records can be off. Under every distribution that is drawn the posterior of each output is held
    against the bound.

    Parameters
    ----------
    joint : Joint
        Exact counts (c, a).
    protocol : Protocol
        One that reads the published columns.
    guarantee : Guarantee
        Of a robust one its nominal kind is held against every distribution.

    Returns
    -------
    InPopulation or None
        None where the guarantee is about more than the posterior of the secret, or the protocol reads that.

    Notes
    -----
    The same figure for the same counts: draws are by a fixed seed. It is an estimate, no bound, and rests on
    combinations being alike before they are counted; `benchmarks.population_wide` measures it with Adult as the
    population. O(c) for every weight that is not zero, for each of 40 distributions.
    """
    nominal = guarantee.nominal if isinstance(guarantee, Robust) else guarantee
    if not isinstance(nominal, PosteriorGuarantee) or protocol.inputs.columns != joint.inputs.columns:
        return None
    seen = joint.counts.any(axis=1)
    counts = joint.counts[seen]
    prior = joint.p_secret[seen]
    channel = _channel(joint, protocol)
    released = (channel @ (counts / joint.n).T).sum(axis=1)
    weight = prior_weight(counts, prior) if len(prior) > 1 else 1.0
    generator = np.random.Generator(np.random.PCG64(_SEED))
    occurring = counts.any(axis=0)
    shares = np.zeros(DRAWS)
    for k in range(DRAWS):
        given = generator.standard_gamma(counts + weight * prior[:, np.newaxis])
        given /= np.maximum(given.sum(axis=0), np.finfo(float).tiny)
        inputs = np.where(occurring, generator.standard_gamma(counts.sum(axis=0) + _HALF), 0.0)
        distribution = given * (inputs / inputs.sum())
        outside = _outside((channel @ distribution.T).T, nominal.posterior_cone(distribution.sum(axis=1)))
        shares[k] = released[outside].sum()
    return InPopulation(
        unseen=float((counts.sum(axis=0) == 1).sum() / joint.n),
        unseen_cells=float((counts == 1).sum() / joint.n),
        outside=min(1.0, float(shares.mean())),
        least=min(1.0, float(shares.min())),
        most=min(1.0, float(shares.max())),
        weight=weight,
    )


def prior_weight(counts: IntArray, prior: FloatArray) -> float:
    """κ under which counts (c, a) are likeliest: secrets of every x are Dirichlet-multinomial of mean prior."""
    from scipy.optimize import minimize_scalar
    from scipy.special import gammaln

    columns, times = np.unique(counts, axis=1, return_counts=True)
    sizes = columns.sum(axis=0)

    def unlikely(log_weight: float) -> float:
        weight = np.exp(log_weight)
        base = weight * prior[:, np.newaxis]
        of_column = gammaln(weight) - gammaln(weight + sizes) + (gammaln(base + columns) - gammaln(base)).sum(axis=0)
        return -float(times @ of_column)

    found = minimize_scalar(unlikely, bounds=(_LEAST, _MOST), method="bounded", options={"xatol": 1e-4})
    # It is found to no more digits; those would be the processor's.
    return float(f"{np.exp(found.x):.3g}")


def _channel(joint: Joint, protocol: Protocol) -> csr_array:
    """Q(y|x), shape (b, a), as the entries that are not zero."""
    from scipy.sparse import csr_array

    entries = protocol.sparse_for(joint.inputs)
    shares = entries.values / np.float64(protocol.denominator)
    return csr_array((shares, (entries.outputs, entries.inputs)), shape=(len(protocol.outputs), len(joint.inputs)))


def _outside(distribution: FloatArray, cone: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Outputs whose posterior of the secret is outside a cone, for P(s, y), shape (c, b); to (b,)."""
    least = _NEAR * np.abs(cone).max(axis=1, keepdims=True) * distribution.sum(axis=0)
    return np.asarray((cone @ distribution > least).any(axis=0))
