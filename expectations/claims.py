"""Claims: what the finished files of a release state, each held against what follows from the source and the spec."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from funnel.recount.plain_distributions import mismatch, nats_mismatch


@dataclass(frozen=True)
class Claim:
    """One thing that a file states.

    Attributes
    ----------
    name : str
        What is stated, such as ``"guarantee.level"``.
    failure : str or None
        Why it is not true, as a part of a sentence without any record in it; None if it is.
    """

    name: str
    failure: str | None = None


def claim(name: str, holds: bool, failure: str) -> Claim:
    """A claim that holds, or does not for this reason."""
    return Claim(name, None if holds else failure)


def same(name: str, stated: object, expected: object) -> Claim:
    """That something is stated to be what it is; both may be shown."""
    return claim(name, stated == expected and type(stated) is type(expected), f"is {stated!r} instead of {expected!r}")


def near(name: str, stated: object, exact: float, step: float) -> Claim:
    """That a figure is the exact one, told as a multiple of a step; what is not nothing may be told as one step."""
    return Claim(name, mismatch(stated, exact, step))


def near_nats(name: str, stated: object, exact: float, step: float) -> Claim:
    """The same for an entropy, which is told to hundredths at least."""
    return Claim(name, nats_mismatch(stated, exact, step))


def all_of(name: str, claims: Iterable[Claim]) -> Claim:
    """One claim that holds if all of these do; the first failure is told, with how many there are."""
    failed = [one for one in claims if one.failure is not None]
    if not failed:
        return Claim(name)
    more = f" (and {len(failed) - 1:,} more)" if len(failed) > 1 else ""
    return Claim(name, f"{failed[0].name} {failed[0].failure}{more}")
