"""Conditional Reporting of the Privacy Funnel: randomise the secret, then report x or a draw for the other secret."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from funnel.errors import InfeasibleGuarantee
from funnel.guarantees.base import Guarantee
from funnel.joint import FloatArray, Joint
from funnel.mechanisms.family import Fitted, Mechanism, strongest
from funnel.mechanisms.memory import table_memory
from funnel.progress import Progress, quiet
from funnel.rounding import integer_weights
from funnel.solver.budget import Budget


def conditional_reporting_matrix(joint: Joint, alpha: float) -> FloatArray:
    """Channel over (s, x), shape (a, c·a), s varying slowest (PF section VI).

    ``s̃`` is GRR_α of s; y = x if s̃ = s, else y is drawn from p(·|s̃):
    ``Q[y|x, s] = (e^α [x = y] + Σ_{s' ≠ s} p(y|s')) / (e^α + c - 1)``. PF equation (43) lacks the delta.
    """
    c, a = joint.counts.shape
    given = joint.input_given_secret
    lie = np.exp(-alpha)
    others = given.sum(axis=0) - given
    blocks = (np.eye(a)[None] + lie * others[:, :, None]) / (1 + (c - 1) * lie)
    return np.asarray(blocks.transpose(1, 0, 2).reshape(a, c * a))


class ConditionalReporting(Mechanism):
    """Conditional Reporting with the largest α whose exact level meets the guarantee; reads the secret."""

    name: ClassVar[str] = "conditional-reporting"
    summary: ClassVar[str] = "randomise the secret, then report the truth or a typical value for another secret"
    reads_secret: ClassVar[bool] = True

    def fitted(self, joint: Joint, guarantee: Guarantee, budget: Budget, progress: Progress = quiet) -> Fitted:
        """Calibrated Conditional Reporting.

        Raises
        ------
        InfeasibleGuarantee
            For ε = 0, where integers cannot carry the exact equality.
        """
        seen = joint.counts.sum(axis=1) > 0
        if not seen.all():
            if joint.bounds is not None:
                raise InfeasibleGuarantee(
                    "conditional-reporting reports typical values of other secrets, and of a secret that may occur no "
                    "record is known through the noise; group rare secrets, or use another mechanism"
                )
            # A secret that never occurs has no p(·|s) to draw from.
            joint = _only(joint, seen)
        read = joint.with_secret()
        found = strongest(
            lambda alpha: integer_weights(conditional_reporting_matrix(joint, alpha)), read, guarantee, budget
        )
        return Fitted(self.protocol(joint, guarantee, found.weights, read.inputs), None, found.finished)

    def memory(self, joint: Joint, guarantee: Guarantee) -> float:
        """What a table over (S, X) takes."""
        c, a = joint.counts.shape
        return table_memory(a, c * a)


def _only(joint: Joint, seen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Joint:
    symbols = [symbol for symbol, there in zip(joint.secret.symbols, seen, strict=True) if there]
    return Joint(joint.counts[seen], type(joint.secret)(joint.secret.columns, tuple(symbols)), joint.inputs)
