"""Predicting: who is expected in the next version of a register, by what is public."""

from __future__ import annotations

from funnel.errors import SpecError
from funnel.frequencies.limits import moves_limit
from funnel.frequencies.moves import NoisyMoves
from funnel.frequencies.public_counts import Frequencies
from funnel.history.changes import MoveLimits
from funnel.history.expected import Attending, attending, expected_people
from funnel.history.observed import Observed, Secrets
from funnel.register.chapters import distributions_of_changes
from funnel.register.register import Register


def predicted_people(
    register: Register, frequencies: Frequencies, secrets: Secrets, *, robust: bool = False
) -> tuple[Attending, Observed]:
    """Who is expected to have which history, and what they are expected to be.

    Parameters
    ----------
    register : Register
        Before the version.
    frequencies : Frequencies
        Of the version, with noise and with the changes since all versions of the register.
    secrets : "all" or "current"
        Of which versions secrets are to be bounded.
    robust : bool
        Whether the bound is to hold under every set of tables that the noise leaves open.

    Raises
    ------
    SpecError
        If the changes are not those since all versions of the register.
    LedgerError
        If a file of the register is gone or was changed.
    """
    if robust and (other := next((entry for entry in register.entries if entry.left_open is None), None)):
        raise SpecError(
            f"version {other.version} of {other.series} was published without robust in [history], so that nobody can "
            "say what all versions tell an observer who knows the true counts; take robust out, or begin another "
            "register"
        )
    joint, changes = frequencies.joint, frequencies.changes
    distributions = {} if changes is None else distributions_of_changes(changes, register.distributions, joint)
    known = (
        {}
        if changes is None
        else {register.chapters_of(ordinal)[0]: float(moves.people) for ordinal, moves in enumerate(changes.since)}
    )
    who = attending(register.past, register.expected, known, float(joint.n))
    since = {chapter: one for ordinal, one in distributions.items() for chapter in register.chapters_of(ordinal)}
    limits = None
    if robust:
        limits = {} if changes is None else limits_of_changes(changes, frequencies)
        limits = {chapter: one for ordinal, one in limits.items() for chapter in register.chapters_of(ordinal)}
    return who, expected_people(register.past, who, joint, since, limits, secrets)


def limits_of_changes(changes: NoisyMoves, frequencies: Frequencies) -> dict[int, MoveLimits]:
    """What the noise leaves open of changes, by the ordinals of the entries before a version."""
    if frequencies.noise is None:
        raise SpecError("changes have limits where there is noise on the frequencies")
    most = moves_limit(changes.counts, changes.scale, frequencies.noise.beta)
    return {ordinal: moves.limits(most) for ordinal, moves in enumerate(changes.since)}
