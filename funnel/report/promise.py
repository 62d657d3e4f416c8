"""What a guarantee promises about one record, as limits on beliefs, on lifts and on ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from funnel.guarantees import LDP, LIP, Guarantee
from funnel.guarantees.exact import capped_exp
from funnel.guarantees.published import meaning_for


@dataclass(frozen=True)
class Promise:
    """The limits that a guarantee sets whatever the data are.

    Attributes
    ----------
    kind : str
        Which words fit: ``"lip"``, ``"ldp"``, or ``"other"`` for the words the guarantee has for itself.
    meaning : str
        Those words.
    factor : float
        e^budget, or a factor that no protocol can reach where that is smaller.
    lift_limits : tuple of two floats, or None
        Least and largest lift P(s|y)/P(s) allowed, where the guarantee limits lifts one by one.
    ratio_limit : float or None
        Largest P(y|s)/P(y|s') allowed, where the guarantee compares secrets.
    """

    kind: str
    meaning: str
    factor: float
    lift_limits: tuple[float, float] | None
    ratio_limit: float | None


def promised_by(guarantee: Guarantee, read: Sequence[str] = (), secret: Sequence[str] = ()) -> Promise:
    """The limits that a guarantee sets for a protocol that reads these columns.

    Limits and words are those of the guarantee itself, so that adding one needs no change here. LIP and LDP, and what
    derives from them, have longer words in the templates of the report, with an example from the data.
    """
    kind = "lip" if isinstance(guarantee, LIP) else "ldp" if isinstance(guarantee, LDP) else "other"
    factor = capped_exp(guarantee.budget)
    return Promise(kind, meaning_for(guarantee, read, secret), factor, guarantee.lift_limits, guarantee.ratio_limit)
