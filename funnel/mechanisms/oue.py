"""Optimised unary encoding: publish a random set of values, more likely to hold the true one than any other."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from funnel.alphabet import Alphabet
from funnel.errors import SolverError
from funnel.guarantees.base import Guarantee
from funnel.joint import Joint
from funnel.mechanisms.base import Mechanism, calibrate_weights
from funnel.mechanisms.unary import (
    UnaryEncoding,
    draw_sets,
    listed_sets,
    listed_weights,
    parse_set,
    parse_sets,
    set_label,
    set_labels,
    to_table,
    unary_encoding,
    unary_level,
    unary_utility,
)
from funnel.mechanisms.unary.limits import COMPARING
from funnel.protocol import Protocol, WeightArray
from funnel.rounding import marginal_weights, silence_unseen


class OUE(Mechanism):
    """OUE(α) (PF equations (27)-(28)) with the largest α whose exact level meets the guarantee.

    Its outputs are sets of input symbols, written ``{Bachelors, Masters}`` (`set_labels`; `parse_sets` reads them
    back). All 2^a of them are listed, so at most 10 symbols are encoded this way. For more, use `unary_encoding`, whose
    level and utility need no list and whose sets are drawn bit by bit.

    Its utility tends to H(X)/2 as α grows: half of all sets lack the true value.
    """

    name: ClassVar[str] = "oue"
    summary: ClassVar[str] = "a random set of values, more likely to hold the true one; for at most 10 values"

    def fit(self, joint: Joint, guarantee: Guarantee, time_limit: float | None = None) -> Protocol:
        """Calibrated OUE with all its outputs; always feasible, since α = 0 is pure noise.

        Raises
        ------
        SpecError
            If there are more than 10 input symbols, with what to use instead.
        SolverError
            If the proof of the guarantee fails for the rounded weights, which it cannot.
        """
        sets = listed_sets(len(joint.inputs))
        weights = _strongest(joint, guarantee)
        # Sets whose probability rounds to zero are no outputs.
        drawable = np.flatnonzero(weights.any(axis=1)).tolist()
        weights = weights[drawable]
        width = len(joint.inputs.columns)
        symbols = tuple(set_labels([joint.inputs.symbols[x] for x in sets[y]], width) for y in drawable)
        return Protocol(
            weights,
            marginal_weights(joint, weights),
            joint.inputs,
            Alphabet(joint.inputs.columns, symbols),
            self.name,
            str(guarantee),
        )


def _strongest(joint: Joint, guarantee: Guarantee) -> WeightArray:
    """Weights (2^a, a) of all sets: α in closed form where there is one, which no set exceeds by its rounding."""
    if not isinstance(guarantee, COMPARING):
        return calibrate_weights(lambda alpha: listed_weights(UnaryEncoding.at(joint, alpha)), joint, guarantee)[1]
    weights = silence_unseen(joint, listed_weights(unary_encoding(joint, guarantee)))
    if not guarantee.holds_for(joint, weights):
        raise SolverError(f"unary encoding does not meet {guarantee}; this is a defect, please report it")
    return weights


__all__ = [
    "OUE",
    "UnaryEncoding",
    "draw_sets",
    "parse_set",
    "parse_sets",
    "set_label",
    "set_labels",
    "to_table",
    "unary_encoding",
    "unary_level",
    "unary_utility",
]
