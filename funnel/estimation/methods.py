"""Methods of estimation, and which of them is meant where none is named."""

from __future__ import annotations

from typing import Literal, get_args

from funnel.errors import SpecError
from funnel.protocol import Protocol

Method = Literal["count", "em", "inverse"]
METHODS: tuple[Method, ...] = get_args(Method)


def method_for(protocol: Protocol, given: tuple[str, ...], asked: Method | None) -> Method:
    """The method asked for, or the usual one: plain counts where these are right on average, else the likeliest shares.

    Parameters
    ----------
    protocol : Protocol
    given : tuple of str
        Columns that make groups and that the protocol does not read. Counts in such a group are not right on average:
        what is balanced is the whole table.
    asked : Method, optional

    Raises
    ------
    SpecError
        If there is no such method, or plain counts are asked for where they are biased.
    """
    if asked is not None and asked not in METHODS:
        raise SpecError(f"unknown method {asked!r} of estimation; choose one of {', '.join(METHODS)}")
    counts = protocol.is_invariant and not given
    if asked == "count" and not counts:
        where = f"groups of {given[0]!r}, which was not published" if given else "a protocol that is not invariant"
        raise SpecError(f"plain counts are biased in {where}; estimate by method='em'")
    return asked or ("count" if counts else "em")
