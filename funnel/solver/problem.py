"""Problem: what is optimised over, the presolved joint distribution and the region of its posteriors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from funnel.errors import SolverError
from funnel.guarantees.base import ConeGuarantee, PosteriorGuarantee
from funnel.joint import FloatArray, Joint
from funnel.measures.utilities import INFORMATION, Utility
from funnel.protocol import WeightArray
from funnel.rounding import silence_unseen
from funnel.solver.budget import CALL, Budget
from funnel.solver.goal import ENTROPY, goal_of
from funnel.solver.presolve import MergedInputs, keep_inputs, merge_inputs, split_rows
from funnel.solver.region import Region
from funnel.solver.split import Split, best_split
from funnel.solver.vertices import without_rounding

# Units of work of an entry of a channel that is made from a split.
_BY_CELL = 15.0


@dataclass(frozen=True, eq=False)
class Problem:
    """The best channel for a joint distribution under a guarantee that is a cone.

    Attributes
    ----------
    joint : Joint
        Counts of (S, X).
    read : Joint
        The given joint distribution, or that over (S, X) where the protocol reads both.
    guarantee : ConeGuarantee
    merged : MergedInputs
    rows : ndarray, shape (m, merged inputs)
        The cone in posterior coordinates.
    region : Region
    utility : Utility
        What is maximised.
    """

    joint: Joint
    read: Joint
    guarantee: ConeGuarantee
    merged: MergedInputs
    rows: FloatArray
    region: Region
    utility: Utility = INFORMATION

    @classmethod
    def of(
        cls,
        joint: Joint,
        guarantee: ConeGuarantee,
        reads_secret: bool,
        presolve: bool = True,
        utility: Utility = INFORMATION,
        counts_all: bool = False,
    ) -> Problem:
        """Presolve, unless that is not wanted or the channel reads the secret, and the region.

        counts_all: whether the utility of a channel that reads the secret counts that too.

        Inputs that the guarantee cannot tell apart are one to information alone, which has a nat for each of them
        whatever it is; numbers differ.
        """
        if not reads_secret:
            presolve = presolve and utility == INFORMATION
            merged = merge_inputs(joint, guarantee) if presolve else keep_inputs(joint)
            distribution = merged.joint.p_input
            rows = without_rounding(merged.cone(guarantee) / distribution, merged.joint, guarantee)
            places = np.array([group[0] for group in merged.members])
            region = Region.of(rows, distribution, None, goal_of(utility, joint, places, distribution))
            return cls(joint, joint, guarantee, merged, rows, region, utility)
        read = joint.with_secret()
        merged = keep_inputs(read)
        distribution = merged.joint.p_input
        rows = without_rounding(merged.cone(guarantee) / distribution, merged.joint, guarantee)
        # What counts is x, unless all does: the posterior of (s, x), summed over s (METHOD section 3).
        inputs = np.array([group[0] % joint.counts.shape[1] for group in merged.members])
        seen = np.flatnonzero(joint.counts.any(axis=0))
        goal = goal_of(utility, joint, inputs, distribution)
        image = (seen[:, None] == inputs).astype(np.float64) if goal is ENTROPY and not counts_all else None
        return cls(joint, read, guarantee, merged, rows, Region.of(rows, distribution, image, goal), utility)

    @property
    def reads_secret(self) -> bool:
        """Whether the channel reads the secret as well."""
        return self.read is not self.joint

    @property
    def distribution(self) -> FloatArray:
        """Probabilities of the merged inputs."""
        return self.merged.joint.p_input

    @cached_property
    def priced(self) -> Region:
        """The region, by the conditions that pricing takes: those with a level, if they are fewer."""
        if not isinstance(self.guarantee, PosteriorGuarantee):
            return self.region
        joint = self.merged.joint
        levelled = self.guarantee.levelled_cone(joint.p_secret)
        if levelled is None:
            return self.region
        rows = np.hstack([levelled[:, :-1] @ joint.secret_given_input, levelled[:, -1:]])
        return Region.with_levels(rows, self.region.distribution, 1, self.region.image, self.region.goal)

    def tightened(self, margin: float) -> FloatArray:
        """`rows` for a budget smaller by a relative margin."""
        return np.asarray(self.merged.cone(self.guarantee.tightened(margin)) / self.distribution)

    def lifted(self, weights: WeightArray) -> WeightArray:
        """Weights (b, a) that read X only, as they read (S, X) too: the same output distribution given every secret."""
        return silence_unseen(self.read, np.tile(weights, len(self.read.secret)))

    def posteriors(self, weights: WeightArray) -> FloatArray:
        """Posteriors over the merged inputs of outputs with these weights over what is read; shape (b, m).

        Where inputs are merged, each posterior is that of all their members together.
        """
        masses = weights.astype(np.float64) * self.read.p_input
        summed = np.stack([masses[:, list(group)].sum(axis=1) for group in self.merged.members], axis=1)
        return np.asarray(summed / summed.sum(axis=1, keepdims=True))

    def channel(self, split: Split, budget: Budget | None = None) -> FloatArray:
        """The channel (b, inputs read) of a split over merged inputs; with at most as many outputs as inputs if it
        reads X only.

        Raises
        ------
        SolverError
            If the split is not one of the input distribution, or the budget does not allow to make the channel.
        """
        budget = Budget.of(budget)
        work = 40 * CALL + _BY_CELL * len(split.mass) * (len(self.distribution) + len(self.read.p_input))
        if not budget.allows(work):
            raise SolverError("the time limit does not allow to make the protocol that was found; raise it")
        budget.spend(work)
        if not self.reads_secret and len(split.mass) > len(self.distribution):
            split = best_split(split.posteriors, self.distribution, budget, self.region.goal)
        posteriors, mass = split_rows(self.merged, split.posteriors, split.mass)
        distribution = self.read.p_input
        seen = distribution > 0
        matrix = np.zeros_like(posteriors)
        np.divide(posteriors * mass[:, None], distribution, out=matrix, where=seen)
        # Inputs that never occur get the marginal; the rounding makes that exact.
        matrix[:, ~seen] = (mass / mass.sum())[:, None]
        sums = matrix.sum(axis=0)
        if np.abs(sums - 1).max() > 1e-6:
            raise SolverError(
                "the optimiser's split of the input distribution does not add up; change epsilon slightly"
            )
        return np.asarray(matrix / sums)
