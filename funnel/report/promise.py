"""What a guarantee promises about one record, as limits on beliefs, on lifts and on ratios."""

from __future__ import annotations

import math
from dataclasses import dataclass

from funnel.guarantees import LDP, LIP, Guarantee
from funnel.joint import FloatArray


@dataclass(frozen=True, eq=False)
class Promise:
    """The limits that a guarantee sets.

    Attributes
    ----------
    kind : str
        Which words fit: ``"lip"``, ``"ldp"``, or ``"other"`` for the words the guarantee has for itself.
    meaning : str
        Those words.
    factor : float
        e^budget.
    belief : tuple of two ndarrays of shape (c,), or None
        Least and largest P(s|y) that the guarantee allows, for an observer whose prior is the estimated one.
    lift_limits : tuple of two floats, or None
        Least and largest lift P(s|y)/P(s) allowed, where the guarantee limits lifts one by one.
    ratio_limit : float or None
        Largest P(y|s)/P(y|s') allowed, where the guarantee compares secrets.
    """

    kind: str
    meaning: str
    factor: float
    belief: tuple[FloatArray, FloatArray] | None
    lift_limits: tuple[float, float] | None
    ratio_limit: float | None


def promise(guarantee: Guarantee, prior: FloatArray) -> Promise:
    """The limits that a guarantee sets for a prior of the secret, shape (c,).

    All of it is told by the guarantee itself, so that adding one needs no change here.
    """
    kind = guarantee.name if isinstance(guarantee, (LIP, LDP)) else "other"
    factor = math.exp(min(guarantee.budget, 700.0))
    belief = guarantee.posterior_limits(prior)
    return Promise(kind, guarantee.meaning, factor, belief, guarantee.lift_limits, guarantee.ratio_limit)
