"""The robust guarantee of a nominal one: the same promise for every distribution in boxes, not for the counts alone."""

from __future__ import annotations

from funnel.guarantees.alip import RALIP
from funnel.guarantees.base import Guarantee
from funnel.guarantees.lip import RLIP
from funnel.guarantees.pml import RPML
from funnel.guarantees.rldp import RLDP
from funnel.guarantees.robust_guarantee import Robust

_KINDS: tuple[type[Robust], ...] = (RLIP, RALIP, RLDP, RPML)


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
    kind = next((kind for kind in _KINDS if isinstance(guarantee, kind.of)), None)
    return None if kind is None else kind(**vars(guarantee), alpha=alpha)
