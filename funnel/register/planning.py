"""Planning a version of a register: its people with their histories, read and neither noted nor drawn."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from funnel.errors import SpecError
from funnel.guarantees import parse_guarantee
from funnel.history import Observed, Past
from funnel.history.outlook import Outlook, first_people, outlook
from funnel.joint import Joint
from funnel.planning import PlanRow, choose
from funnel.progress import Progress
from funnel.progress import quiet as silent
from funnel.register.following import observe
from funnel.register.register import Register
from funnel.release.coarse import coarsened
from funnel.release.learned import learned_codings
from funnel.release.secret import Reader, find_register_secret
from funnel.release.snapshot import take_snapshot
from funnel.source import Codings, Source
from funnel.spec import ReleaseSpec


def plan_version(
    spec: ReleaseSpec,
    counted: Joint,
    public: Joint,
    compared: tuple[tuple[str, tuple[PlanRow, ...]], ...],
    progress: Progress = silent,
    read: Reader | None = None,
) -> tuple[Outlook | None, ...]:
    """What the next version would keep given the histories of its people, under each bound that was planned for.

    Parameters
    ----------
    spec : ReleaseSpec
    counted, public : Joint
        Counts of (secret, published columns) of the source: exact ones, for who has which history, and those that are
        published, for all else.
    compared : tuple of (guarantee, rows)
        The plans for the version alone; the mechanism that a release would take is aimed at.
    progress : callable
    read : callable, optional
        As in `funnel.release.secret.find_secret`.

    Returns
    -------
    tuple of Outlook or None
        One for each plan; None where the spec does not say that people are the same, or no mechanism can be used.

    Raises
    ------
    SpecError
        If the guarantee or the mechanism is none that histories can keep, or the register is about another secret or
        other keys.
    LedgerError
        If the secret, or a file of the register, is gone or was changed.
    DataError
        If the source is no longer the one that was counted.
    """
    if spec.register is None or spec.history is None:
        return tuple(None for _ in compared)
    past, observed = _people(spec, counted, progress, read)
    observed = observed.known_by(public)
    found: list[Outlook | None] = []
    for guarantee, rows in compared:
        row = _chosen(spec, rows)
        if row is None or row.protocol is None:
            found.append(None)
            continue
        if row.protocol.inputs.columns != public.inputs.columns:
            raise SpecError(
                'a protocol that reads the secret cannot be drawn given histories; with [history] people = "same" '
                "leave reads_secret out of [mechanism]"
            )
        bound = parse_guarantee(guarantee)
        # As a release makes it, so that the plan is about what would be drawn.
        target = coarsened(public, bound, row.protocol)
        limit = spec.mechanism.time_limit
        found.append(outlook(past, observed, bound, target, spec.history.reserve, time_limit=limit, progress=progress))
    return tuple(found)


def _chosen(spec: ReleaseSpec, rows: tuple[PlanRow, ...]) -> PlanRow | None:
    usable = [row for row in rows if row.reason is None and row.protocol is not None]
    named = [row for row in usable if row.mechanism == spec.mechanism.name]
    if named or spec.mechanism.name != "auto":
        return named[0] if named else None
    return choose(usable) if usable else None


def _people(spec: ReleaseSpec, joint: Joint, progress: Progress, read: Reader | None) -> tuple[Past, Observed]:
    """What was published about the people of the source, and who of them has which history."""
    if spec.register is None or spec.record_key is None:
        raise ValueError("there is no register")
    register = Register.of(spec.workspace_folder, spec.register)
    register.require_fitting(spec.secret, spec.record_key)
    if not register.entries:
        return Past(), first_people(joint)
    secret = find_register_secret(spec.record_secret, register.root, register.name, register.fingerprint, read)
    key = secret.record_key(spec.record_key, read)
    workspace = spec.workspace_folder / spec.name

    def codings(source: Source, digest: str) -> Codings:
        return learned_codings(spec, source, digest, workspace, progress)

    with TemporaryDirectory() as name:
        # Where a release would leave files behind; a plan does not.
        folder = Path(name)
        snapshot = take_snapshot(spec, folder, key, progress, codings)
        register.require_fitting(spec.secret, spec.record_key, snapshot.key_kinds)
        people = observe(register, snapshot, joint, folder, progress)
    return register.past, people.observed
