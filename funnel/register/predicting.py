"""Predicting: who is expected in the next version of a register, by what is public."""

from __future__ import annotations

from funnel.frequencies import Frequencies
from funnel.history import Observed
from funnel.history.expected import Attending, attending, expected_people
from funnel.register.chapters import laws_of_changes
from funnel.register.register import Register


def predicted_people(register: Register, frequencies: Frequencies) -> tuple[Attending, Observed]:
    """Who is expected to have which history, and what they are expected to be.

    Parameters
    ----------
    register : Register
        Before the version.
    frequencies : Frequencies
        Of the version, with noise and with the changes since all versions of the register.

    Raises
    ------
    SpecError
        If the changes are not those since all versions of the register.
    LedgerError
        If a file of the register is gone or was changed.
    """
    joint, changes = frequencies.joint, frequencies.changes
    laws = {} if changes is None else laws_of_changes(changes, register.laws, joint)
    known = (
        {}
        if changes is None
        else {register.chapters_of(ordinal)[0]: float(moves.people) for ordinal, moves in enumerate(changes.since)}
    )
    who = attending(register.past, register.expected, known, float(joint.n))
    since = {chapter: one for ordinal, one in laws.items() for chapter in register.chapters_of(ordinal)}
    return who, expected_people(register.past, who, joint, since)
