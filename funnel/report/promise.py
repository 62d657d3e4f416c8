"""What a guarantee promises about one record, as limits on beliefs, on lifts and on ratios."""

from __future__ import annotations

from dataclasses import dataclass

from funnel.guarantees import LDP, LIP, Guarantee
from funnel.guarantees.exact import capped_exp
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
        e^budget, or a factor that no protocol can reach where that is smaller.
    belief : tuple of two ndarrays of shape (c,), or None
        Least and largest P(s|y) that the guarantee allows, for an observer whose prior is the estimated one.
    lift_limits : tuple of two floats, or None
        Least and largest lift P(s|y)/P(s) allowed, where the guarantee limits lifts one by one.
    ratio_limit : float or None
        Largest P(y|s)/P(y|s') allowed, where the guarantee compares secrets.
    level_name : str
        What its levels are called in public, where they are told as upper bounds.
    """

    kind: str
    meaning: str
    factor: float
    belief: tuple[FloatArray, FloatArray] | None
    lift_limits: tuple[float, float] | None
    ratio_limit: float | None
    level_name: str


def promise(guarantee: Guarantee, prior: FloatArray) -> Promise:
    """The limits that a guarantee sets for a prior of the secret, shape (c,).

    Limits and words are those of the guarantee itself, so that adding one needs no change here. LIP and LDP, and what
    derives from them, have longer words in the templates of the report, with an example from the data.
    """
    kind = "lip" if isinstance(guarantee, LIP) else "ldp" if isinstance(guarantee, LDP) else "other"
    factor = capped_exp(guarantee.budget)
    belief = guarantee.posterior_limits(prior)
    level_name = "level at most" if guarantee.precision == 0 else "proven level at most"
    return Promise(kind, guarantee.meaning, factor, belief, guarantee.lift_limits, guarantee.ratio_limit, level_name)
