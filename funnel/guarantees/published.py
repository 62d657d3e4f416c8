"""What is published beside other columns, a secret or whole records: which guarantees protect it, and for whom."""

from __future__ import annotations

from collections.abc import Sequence

from funnel.alphabet import CLASS_COLUMN
from funnel.errors import SpecError
from funnel.guarantees.base import Guarantee
from funnel.guarantees.by_event import SideChannels
from funnel.guarantees.reading import reads_secret
from funnel.guarantees.several import parts_of
from funnel.guarantees.srlip import SRLIP
from funnel.joint import Joint
from funnel.wording import listed


def protects_published_secret(guarantee: Guarantee) -> bool:
    """Whether it bounds what the secret of a record discloses to an observer who knows all its other columns."""
    return any(isinstance(part, SideChannels) and part.bounds_labels for part in parts_of(guarantee))


def check_published_secret(guarantee: Guarantee, joint: Joint) -> None:
    """Refuse to publish the secret's columns under a bound that an observer of the other columns gets around.

    Parameters
    ----------
    guarantee : Guarantee
    joint : Joint
        Over what is published; its inputs begin with the secret's columns where these are published.

    Raises
    ------
    SpecError
        With the columns, why, and what to ask for.
    """
    if not reads_secret(joint) or protects_published_secret(guarantee):
        return
    secret = ", ".join(joint.secret.columns)
    ask = f"attribute:{guarantee.budget or 1.0!r}"
    raise SpecError(
        f"{guarantee} does not protect {secret} as a published column: an observer who finds a record by its other "
        f'columns would read {secret} in it; ask for {ask}, alone or as "{guarantee} & {ask}", or do not publish '
        f"{secret}"
    )


def check_every_pair(guarantee: Guarantee, joint: Joint) -> None:
    """Refuse pairs of secret and input that never occur, where their channel is bounded but left to the marginal.

    Raises
    ------
    SpecError
        With what to do.
    """
    if not (reads_secret(joint) and protects_published_secret(guarantee)) or joint.counts.any(axis=0).all():
        return
    raise SpecError(
        f"{guarantee} bounds pairs of {', '.join(joint.secret.columns)} and published values that never occur, which "
        "an optimum by information leaves to the marginal; group rare values, or use invariant"
    )


def meaning_for(
    guarantee: Guarantee, read: Sequence[str], secret: Sequence[str], at_once: int, several: bool = False
) -> str:
    """What a guarantee promises, with the observers it is for where a protocol reads the class of whole records.

    Parameters
    ----------
    guarantee : Guarantee
    read : sequence of str
        The columns that the protocol reads: of whole records those that observers may know, and the class.
    secret : sequence of str
    at_once : int
        How many columns of a whole record observers may know, whichever they are; 0 where these are named.
    several : bool, optional
        Whether a person may have several records, rows or versions, that follow one another.
    """
    if not any(isinstance(part, SideChannels) for part in parts_of(guarantee)):
        return guarantee.meaning
    if several:
        return f"{guarantee.meaning} Of a person with several records they know columns of one, whichever it is."
    if tuple(read[-1:]) != (CLASS_COLUMN,):
        return guarantee.meaning
    known = [column for column in read[:-1] if column not in secret]
    if at_once:
        publishes = set(secret) <= set(read)
        return " ".join(
            part.meaning_at_once(at_once, publishes) if isinstance(part, SRLIP) else part.meaning
            for part in parts_of(guarantee)
        )
    who = f"{'any of ' if len(known) > 1 else ''}{listed(known)}" if known else "none of the other columns"
    return (
        f"{guarantee.meaning} That holds only for observers who know {who}, or all columns of a person; for an "
        "observer who knows others nothing is proven but what the report states."
    )
