"""Mechanisms: how a protocol is made; one file per family, found by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

from funnel.errors import SpecError
from funnel.protocol import INVARIANT

if TYPE_CHECKING:
    from funnel.certificate import Weighting
    from funnel.guarantees.base import Guarantee
    from funnel.joint import Joint
    from funnel.mechanisms.family import Mechanism
    from funnel.protocol import Protocol
    from funnel.solver.budget import Budget

# Modules and classes of families, best known first: one is imported when it is first asked for, since a spec that names
# one, and a release that has not changed, need none of the solvers.
_MECHANISMS: dict[str, str | Mechanism] = {
    "optimal": "optimal.Optimal",
    "invariant": "invariant.Invariant",
    "subset-random-response": "subset_random_response.SubsetRandomResponse",
    "subset-merging": "merging.SubsetMerging",
    "watchdog": "merging.Watchdog",
    "watchdog-uniform": "merging.UniformWatchdog",
    "agglomeration": "agglomeration.Agglomeration",
    "side-channel-product": "side_channel_product.SideChannelProduct",
    "grr": "grr.GRR",
    "oue": "oue.OUE",
    "optimal-with-secret": "optimal.OptimalWithSecret",
    "robust-optimal": "robust_optimal.RobustOptimal",
    "polyopt": "polyopt.PolyOpt",
    "conditional-reporting": "conditional_reporting.ConditionalReporting",
    "robust-conditional-reporting": "robust_reporting.RobustConditionalReporting",
    "independent-reporting": "robust_reporting.IndependentReporting",
    "identity": "identity.Identity",
}


def __getattr__(name: str) -> ModuleType:
    """A module of a family, as `funnel.mechanisms.oue`, before any protocol was made."""
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def names() -> tuple[str, ...]:
    """Names of all mechanisms, best known first."""
    return tuple(_MECHANISMS)


def mechanism(name: str, weights: Weighting = "root") -> Mechanism:
    """The mechanism of this name.

    Parameters
    ----------
    name : str
        One of `names()`.
    weights : "root", "share" or "uniform"
        What values count that an invariant protocol leaves as they are; other mechanisms have no weights.

    Raises
    ------
    SpecError
        If there is none; the nearest name is suggested.
    """
    if name not in _MECHANISMS:
        near = difflib.get_close_matches(name, _MECHANISMS, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise SpecError(f"unknown mechanism {name!r}{hint} Known: {', '.join(_MECHANISMS)}")
    found = _MECHANISMS[name]
    if isinstance(found, str):
        module, kind = found.split(".")
        made: Callable[..., Mechanism] = getattr(import_module(f"{__name__}.{module}"), kind)
        if name == INVARIANT:
            return made(weights)
        found = _MECHANISMS[name] = made()
    return found


def registered() -> tuple[Mechanism, ...]:
    """Mechanisms that others than this package have registered."""
    return tuple(
        found
        for found in _MECHANISMS.values()
        if not isinstance(found, str) and not type(found).__module__.startswith("funnel.")
    )


def fit(
    name: str, joint: Joint, guarantee: Guarantee | Sequence[Guarantee], time_limit: float | Budget | None = None
) -> Protocol:
    """Protocol of a registered mechanism, calibrated to a guarantee, which it meets exactly.

    Parameters
    ----------
    name : str
        One of `names()`.
    joint : Joint
        Counts of (S, X), shape (c, a).
    guarantee : Guarantee or sequence of Guarantee
        One, or several that all hold.
    time_limit : float or Budget, optional
        Seconds, as work that is counted; what is found by then is returned.

    Raises
    ------
    SpecError
        If there is no mechanism of this name, it does not apply to this guarantee or joint distribution, or it would
        need too much memory.
    InfeasibleGuarantee
        If the mechanism cannot meet the guarantee; carries the best level it can reach where known.
    SolverError
        If the optimiser fails.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> protocol = funnel.fit("grr", joint, funnel.LIP(0.5))
    >>> protocol.matrix.round(4).tolist()
    [[0.8166, 0.1834], [0.1834, 0.8166]]
    """
    # Imported here, as all that makes protocols.
    from funnel.guarantees.several import as_guarantee
    from funnel.mechanisms.memory import LARGEST, check_size, require_memory

    chosen, guarantee = mechanism(name), as_guarantee(guarantee)
    needed = chosen.memory(joint, guarantee)
    if needed > LARGEST:
        # Where no table of all inputs by all outputs fits, that says more than what this mechanism would need.
        check_size(joint, guarantee)
    require_memory(name, needed, joint, _instead(joint, guarantee))
    return chosen.fit(joint, guarantee, time_limit)


def _instead(joint: Joint, guarantee: Guarantee) -> str:
    """The mechanism that needs no table, where there is one."""
    from funnel.mechanisms.memory import LARGEST
    from funnel.solver.wide import is_wide, needs_no_table

    optimal = mechanism("optimal")
    fits = is_wide(joint, guarantee) and needs_no_table(joint) and optimal.memory(joint, guarantee) <= LARGEST
    return "; or use optimal, which needs no table" if fits else ""
