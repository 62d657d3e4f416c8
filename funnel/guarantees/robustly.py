"""The robust guarantee of a nominal one: the same promise for every law in boxes, not for the counts alone."""

from __future__ import annotations

from funnel.guarantees.alip import ALIP, RALIP
from funnel.guarantees.base import Guarantee
from funnel.guarantees.ldp import LDP
from funnel.guarantees.lip import LIP, RLIP
from funnel.guarantees.pml import PML, RPML
from funnel.guarantees.rldp import RLDP
from funnel.guarantees.robust_guarantee import Robust


def robustly(guarantee: Guarantee, alpha: float = 0.05) -> Robust | None:
    """A guarantee over boxes of significance α whose nominal one this is; itself if it is robust; None without one.

    Examples
    --------
    >>> import funnel
    >>> from funnel.guarantees.robustly import robustly
    >>> str(robustly(funnel.LIP(1.0), 0.01)), robustly(funnel.MutualInformation(0.1))
    ('rlip:1.0,0.01', None)
    """
    if isinstance(guarantee, Robust):
        return guarantee
    if isinstance(guarantee, LIP):
        return RLIP(guarantee.epsilon, alpha)
    if isinstance(guarantee, ALIP):
        return RALIP(guarantee.lower, guarantee.upper, alpha)
    if isinstance(guarantee, LDP):
        return RLDP(guarantee.epsilon, alpha)
    if isinstance(guarantee, PML):
        return RPML(guarantee.epsilon, alpha)
    return None
