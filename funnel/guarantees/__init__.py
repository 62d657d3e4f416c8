"""Guarantees: what is promised about every released record; one file each, read by name from a spec or a command."""

from __future__ import annotations

import difflib

from funnel.errors import SpecError
from funnel.guarantees.base import Guarantee, Level, Witness
from funnel.guarantees.ldp import LDP
from funnel.guarantees.lip import LIP

_KINDS: dict[str, type[Guarantee]] = {kind.name: kind for kind in (LIP, LDP)}


def names() -> tuple[str, ...]:
    """Names of all guarantees, as a spec and the command line spell them."""
    return tuple(_KINDS)


def guarantee(kind: str, epsilon: float) -> Guarantee:
    """The guarantee of this name with a budget of ε nats.

    Raises
    ------
    SpecError
        If there is no such guarantee (the nearest name is suggested) or ε is not a finite number >= 0.
    """
    if kind not in _KINDS:
        near = difflib.get_close_matches(kind, _KINDS, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise SpecError(f"unknown guarantee {kind!r}{hint} Known: {', '.join(_KINDS)}")
    return _KINDS[kind](epsilon)


def parse_guarantee(text: str) -> Guarantee:
    """Read a guarantee such as ``"lip:1.0"``: its name, a colon, and its budget in nats.

    Raises
    ------
    SpecError
        If the text has another form.
    """
    kind, colon, value = text.strip().partition(":")
    if not colon:
        raise SpecError(f"guarantee {text!r} lacks its budget; write for instance 'lip:1.0'")
    try:
        epsilon = float(value)
    except ValueError as error:
        raise SpecError(f"guarantee {text!r} needs a number after the colon, for instance 'lip:1.0'") from error
    return guarantee(kind.strip().lower(), epsilon)


__all__ = ["LDP", "LIP", "Guarantee", "Level", "Witness", "guarantee", "names", "parse_guarantee"]
