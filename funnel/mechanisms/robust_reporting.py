"""The two reporting mechanisms of RLDP, calibrated to the true worst case, and what its paper knows of F."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np

from funnel.guarantees.base import Guarantee
from funnel.guarantees.reading import rows_by_secret
from funnel.guarantees.rldp import RLDP
from funnel.guarantees.worst_case import Neighbourhood, pair_ratios
from funnel.joint import FloatArray, Joint
from funnel.measures.information import information_of
from funnel.mechanisms.false_position import parameter_at
from funnel.mechanisms.family import Fitted, Mechanism, strongest
from funnel.mechanisms.grr import grr_matrix
from funnel.mechanisms.instead import of_the_paper
from funnel.mechanisms.memory import table_memory
from funnel.progress import Progress, quiet
from funnel.rounding import integer_weights
from funnel.solver.budget import Budget
from funnel.solver.work import levels_work, require_decision


def spread(near: Neighbourhood) -> FloatArray:
    """``a_s = ((√(1+B) + P̂_s - 1) / P̂_s)² - 1``, shape (c,): how far the distribution given s alone can deviate."""
    return np.asarray(((near.deviation + near.prior) / near.prior) ** 2 - 1)


def least_conditionals(near: Neighbourhood) -> FloatArray:
    """``P^min_{u|s}``, the smallest P(u|s) over F, shape (c, u) (RLDP (5))."""
    a, distribution = spread(near)[:, None], near.distribution
    root = np.sqrt(a**2 + 4 * a * distribution - 4 * a * distribution**2)
    return np.asarray(np.clip((a + 2 * distribution - root) / (2 * a + 2), 0.0, distribution))


def distances(near: Neighbourhood) -> FloatArray:
    """d_s, shape (c,): bounds on ``‖P_{U|s} - P̂_{U|s}‖₁`` over F (RLDP (11), which bounds the l1 norm)."""
    a, rarest = spread(near), near.distribution.min(axis=1)
    root = np.sqrt(a**2 + 4 * a * rarest - 4 * a * rarest**2)
    return np.asarray(np.where(a >= 1, (a * (1 - 2 * rarest) + root) / (a + 1), np.sqrt(a)))


def diameter(near: Neighbourhood) -> float:
    """d of RLDP (12): a bound on ``‖P_{U|s} - P_{U|s'}‖₁`` over F and all pairs."""
    apart = np.abs(near.distribution[:, None] - near.distribution[None]).sum(axis=2).max()
    return float(min(2.0, 2 * distances(near).max() + apart))


# Shares of the budget that the input gets, tried in turn; the best is then calibrated to the last.
_SHARES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
_ROUGH = 0.03
# Of the budget: for the last calibration, and for the proportion that the papers' conditions favour. Decisions that
# must fit in any case; units of making an entry of a channel and of its information.
_FINISHING, _PUBLISHED, _LEAST, _BY_ENTRY = 0.5, 0.2, 4, 60.0


class RobustReporting(Mechanism):
    """A mechanism with a budget ε1 for the secret and ε2 for the input, in the proportion of highest I((S,X);Y).

    The papers' conditions for RLDP leave much of the budget unused; here the parameters are the strongest for which the
    exact worst case over F is within it.
    """

    reads_secret: ClassVar[bool] = True

    @abstractmethod
    def matrix(self, near: Neighbourhood, secret: float, inputs: float) -> FloatArray:
        """Channel (b, c·u) over (s, u) for two budgets, nats."""

    def as_published(self, joint: Joint, guarantee: RLDP, budget: Budget | None = None) -> tuple[FloatArray, float]:
        """The papers' own version: budgets that add up to ε, in the best proportion; its channel, and its ε2.

        Proportions are tried while a budget allows it, the smallest ε2 first.
        """
        read = joint.with_secret()
        near = guarantee.neighbourhood(read)
        best, found, share = -1.0, self.matrix(near, guarantee.epsilon, 0.0), 0.0
        making = _BY_ENTRY * len(read.inputs) ** 2
        for k in range(41):
            if budget is not None:
                if not budget.allows(making):
                    break
                budget.spend(making)
            inputs = guarantee.epsilon * k / 40
            channel = self.matrix(near, guarantee.epsilon - inputs, inputs)
            utility = information_of((channel * read.p_input).T)
            if utility > best:
                best, found, share = utility, channel, inputs
        return found, share

    def fitted(self, joint: Joint, guarantee: Guarantee, budget: Budget, progress: Progress = quiet) -> Fitted:
        """The best calibrated proportion.

        Raises
        ------
        SpecError
            If the guarantee is not RLDP over the χ² set.
        """
        guarantee = of_the_paper(self.name, guarantee, "grr")
        read = joint.with_secret()
        near = guarantee.neighbourhood(read)
        level_work = levels_work(read, guarantee, len(read.inputs))
        # One level to choose by, and for the last parameter a level and a decision.
        require_decision(read, guarantee, len(read.inputs), budget, _LEAST)
        finishing = budget.reserve(_FINISHING)

        unseen = read.p_input == 0

        def family(share: float, total: float) -> FloatArray:
            channel = self.matrix(near, (1 - share) * total, share * total)
            # A cell that was never seen says what the average record says.
            channel[:, unseen] = (channel @ read.p_input)[:, None]
            return channel

        best, total, utility = 0.0, guarantee.epsilon, -1.0
        # The proportion that the papers' conditions favour is tried too: calibrated, it is never worse than theirs.
        published = 0.0
        if guarantee.epsilon > 0:
            published = self.as_published(joint, guarantee, budget.part(_PUBLISHED))[1] / guarantee.epsilon
        found, best_known = guarantee.epsilon, False
        for share in sorted({*_SHARES, published}):

            def level_at(total: float, share: float = share) -> float:
                budget.spend(level_work)
                # What some distribution attains is close enough to choose by; the bounds come last.
                return math.log(pair_ratios(rows_by_secret(read, family(share, total)), near).found.max())

            if best_known and not budget.allows(level_work):
                break
            found = parameter_at(level_at, guarantee.epsilon, _ROUGH, found, budget=budget, work=level_work)
            told = information_of((family(share, found) * read.p_input).T)
            if told > utility:
                best, total, utility = share, found, told
            best_known = True
        start = total or None
        last = strongest(lambda total: integer_weights(family(best, total)), read, guarantee, finishing, start=start)
        finished = last.finished and not budget.expired and not budget.fell_short
        return Fitted(self.protocol(joint, guarantee, last.weights, read.inputs), None, finished)

    def memory(self, joint: Joint, guarantee: Guarantee) -> float:
        """What a table from (S, X) to itself takes; 0 under another guarantee, where none is made."""
        cells = joint.counts.size if isinstance(guarantee, RLDP) and not guarantee.over_boxes else 0
        return table_memory(cells, cells)


class IndependentReporting(RobustReporting):
    """Independent Reporting of RLDP, its two budgets searched and calibrated to the true worst case."""

    name: ClassVar[str] = "independent-reporting"
    summary: ClassVar[str] = "randomised response on the secret and on the published columns, told together"

    def matrix(self, near: Neighbourhood, secret: float, inputs: float) -> FloatArray:
        """``(GRR_ε1(s), GRR_δ2(u))`` with ``δ2 = ln(1 + 2(e^ε2 - 1)/d)``, (c·u, c·u) (RLDP protocol 1, theorem 3).

        By theorem 3 it is (ε1 + ε2, F)-RLDP; its true level is lower.

        Parameters
        ----------
        near : Neighbourhood
        secret, inputs : float
            ε1 and ε2, nats.
        """
        c, u = near.distribution.shape
        delta = np.log1p(2 * np.expm1(inputs) / diameter(near))
        return np.asarray(np.kron(grr_matrix(c, secret), grr_matrix(u, float(delta))), dtype=np.float64)


class RobustConditionalReporting(RobustReporting):
    """Conditional Reporting of RLDP, its two budgets searched and calibrated to the true worst case."""

    name: ClassVar[str] = "robust-conditional-reporting"
    summary: ClassVar[str] = "randomise the secret, then the published columns, where the secret was told as it is"

    def matrix(self, near: Neighbourhood, secret: float, inputs: float) -> FloatArray:
        """Channel (c·u, c·u) of ``s̃ = GRR_ε1(s)``; ``(s̃, R^s̃(u))`` if s̃ = s, else ``(s̃, R^s̃(ũ))``, ũ from P̂_{U|s̃}.

        ``R^s`` is GRR with ``δ_s = ln(1 + 2(e^ε2 - 1)/d_s)`` (RLDP protocol 2, theorem 5; an e is missing in print).

        Parameters
        ----------
        near : Neighbourhood
        secret, inputs : float
            ε1 and ε2, nats.
        """
        c, u = near.distribution.shape
        first = grr_matrix(c, secret)
        deltas = np.log1p(2 * np.expm1(inputs) / np.maximum(distances(near), 1e-12))
        channel = np.zeros((c, u, c, u))
        for told in range(c):
            second = grr_matrix(u, float(min(deltas[told], 64.0)))
            drawn = second @ near.distribution[told]
            for s in range(c):
                channel[told, :, s, :] = first[told, s] * (second if told == s else drawn[:, None])
        return channel.reshape(c * u, c * u)
