"""What the two reporting mechanisms of RLDP share: a split of the budget, calibrated to the true worst case."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

from funnel.guarantees.base import Guarantee
from funnel.guarantees.reading import rows_by_secret
from funnel.guarantees.rldp import RLDP
from funnel.guarantees.worst_case import Neighbourhood, pair_ratios
from funnel.joint import FloatArray, Joint
from funnel.measures.information import information_of
from funnel.mechanisms.false_position import parameter_at
from funnel.mechanisms.family import Fitted, Mechanism, strongest
from funnel.mechanisms.instead import of_the_paper
from funnel.mechanisms.memory import table_memory
from funnel.progress import Progress, quiet
from funnel.rounding import integer_weights
from funnel.solver.budget import Budget
from funnel.solver.work import levels_work, require_decision

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
                # What some law attains is close enough to choose by; the bounds come last.
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
