"""Follow: what is drawn of the people of a version, given everything that was published about them before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from funnel.errors import ReleaseRefused, SpecError
from funnel.frequencies.public_counts import Frequencies
from funnel.guarantees import parse_guarantee
from funnel.history.donor_step import over_classes
from funnel.history.expected import Expected
from funnel.history.following import VersionTerms
from funnel.history.step import HISTORY_COLUMN, Step, drawing_protocol
from funnel.measures.utilities import INFORMATION, Utility
from funnel.naming import name_outputs
from funnel.pipeline.tasks.decided import FOLDER, decided, registered
from funnel.pipeline.tasks.drift import drift_of_others, public_drift, reported
from funnel.pipeline.tasks.estimate import count_snapshot
from funnel.pipeline.tasks.found_history import found_history
from funnel.pipeline.tasks.run import Draft, Followed, Run
from funnel.pipeline.tasks.step import step, tell
from funnel.protocol import Protocol
from funnel.register.following import FORGOTTEN_CHANNEL, drawn_people, follow_snapshot
from funnel.register.journal import Prepared
from funnel.register.look_up import People, observe
from funnel.register.preparing import EntryTerms, prepare_entry
from funnel.register.register import Register
from funnel.register.units import Units, drawn_units, observe_units
from funnel.release.classes_document import chosen_by, classes_document
from funnel.release.coarse import rounded_channel
from funnel.release.decision import Draw, TakeOver
from funnel.release.drawn_from import DrawnFrom
from funnel.release.files import remove_tree
from funnel.release.inside import steps_off
from funnel.release.protected import Protected
from funnel.release.record import History
from funnel.sampling.donors import STANDING_COLUMN
from funnel.sampling.row_words import WordKeys, words_for
from funnel.solver.invariant import counted as counted_worth
from funnel.tradeoff.fitted import FittedRows


@step
def follow(
    run: Run,
    decision: Draw | TakeOver,
    protected: Protected,
    protocol: Protocol,
    people: People | Units | None = None,
    useful: Utility = INFORMATION,
) -> Followed:
    """Decide what is drawn of everybody, given their histories; nothing of it where versions are about other people.

    Parameters
    ----------
    run : Run
    decision : Draw or TakeOver
    protected : Protected
        The public frequencies, which the prior of everybody and every document is made from.
    protocol : Protocol
        Of this version alone: what is aimed at.
    people : People or Units, optional
        From `look_up`: who has which history.
    useful : Utility
        That the protocol was chosen by.

    Raises
    ------
    SpecError
        If the register is about another secret or other keys.
    ReleaseRefused
        If frequencies drifted and the spec refuses that, or what was held can no longer be drawn.
    LedgerError
        If a file of the register is gone or was changed.
    """
    if (known := _not_followed(run, decision, protected, protocol)) is not None:
        return known
    spec, snapshot, frequencies, (register, _) = run.spec, run.snapshot, protected.frequencies, registered(run)
    key = run.record_key
    if key is None or snapshot.key_kinds is None:
        raise ValueError("people who are followed have record keys")
    if protocol.inputs.columns != run.estimated.joint.inputs.columns:
        raise ValueError("a protocol that is followed reads the published columns alone")
    work = run.workspace / FOLDER
    terms = _terms(run, decision, frequencies, protocol, useful)
    chosen = decided(run, protected, terms, people, key)
    found, people, expected, donors = chosen.step, chosen.people, chosen.expected, chosen.donors
    if donors is None:
        effective = found.channel
        public = _public(frequencies, found, effective)
        # What an output may come from is more than it is under the protocol of this version alone; its name says it.
        found = replace(found, channel=replace(found.channel, outputs=public.outputs))
        drawing = drawing_protocol(found)
    else:
        effective, drawing = over_classes(found.channel), donors.drawing
        public = _public(frequencies, found, effective)
    followed = follow_snapshot(snapshot, people, found, key, work, tell, donors)
    record = History.like(
        found,
        people="same",
        register=register.name,
        name=found.version,
        given=register.head_sha256,
        target=protocol.digest,
        drawing=drawing.digest,
        # Of the people of the version; what is followed besides is expected and nobody has it.
        histories=found.histories if expected is None else len(np.unique(found.observed.nodes)),
        level=found.level.value,
    )
    if isinstance(decision, TakeOver):
        _require_same(decision, record)
    values = {HISTORY_COLUMN: [*map(str, range(len(found.library))), FORGOTTEN_CHANNEL]}
    values |= {} if donors is None else {STANDING_COLUMN: [*donors.standing]}
    drawn = DrawnFrom(
        public,
        drawing,
        count_snapshot(spec, followed, drawing.inputs.columns, values),
        followed,
        protocol,
        found_history(register, people, found, expected),
        record,
        steps_off(public.weights, effective.weights),
    )
    return Followed(drawn, chosen.drift, found, people, chosen.units, chosen.forecast, chosen.protected, donors)


def _not_followed(run: Run, decision: Draw | TakeOver, protected: Protected, protocol: Protocol) -> Followed | None:
    """What is drawn where versions are about other people, or taken over with its entry; None elsewhere."""
    spec, snapshot, earlier = run.spec, run.snapshot, run.earlier
    if run.register is None:
        record = None if spec.history is None else History(people=spec.history.people)
        drift = None
        if spec.history is not None and isinstance(decision, Draw):
            exact = drift_of_others(earlier, run.estimated.joint)
            drift = reported(spec, exact, public_drift(earlier, protected.frequencies))
        return Followed(DrawnFrom.alone(protocol, snapshot, record), drift)
    if isinstance(decision, Draw) or (known := in_register(decision)) is None:
        return None
    return Followed(DrawnFrom.taken_over(decision.rows_of.place, snapshot, known))


def _terms(
    run: Run, decision: Draw | TakeOver, frequencies: Frequencies, protocol: Protocol, useful: Utility
) -> VersionTerms:
    """What is asked of the version, whoever its people are."""
    spec, (_, history) = run.spec, registered(run)
    return VersionTerms(
        parse_guarantee(spec.guarantee.canonical),
        f"{spec.name}/{decision.version}",
        protocol,
        history.budget_fraction,
        useful,
        worth=counted_worth(frequencies.joint, spec.mechanism.weights) if protocol.is_invariant else None,
        right=frequencies.noise is None,
        progress=tell,
        kept=FittedRows.within(run.workspace),
    )


def look_up(run: Run, decision: Draw | TakeOver) -> People | Units | None:
    """Who has which history, and how people changed; None where nobody is followed.

    Raises
    ------
    SpecError
        If the register is about another secret or other keys.
    LedgerError
        If a file of the register is gone or was changed.
    """
    spec, snapshot, register, key = run.spec, run.snapshot, run.register, run.record_key
    if register is None or key is None or spec.record_key is None:
        return None
    if isinstance(decision, TakeOver) and in_register(decision) is not None:
        return None
    register.require_fitting(spec.secret, spec.record_key, snapshot.key_kinds)
    register.require_alike(whole=run.estimated.donors is not None)
    several = spec.follows_units or any(entry.units is not None for entry in register.entries)
    if several and register.entries and run.estimated.donors is not None:
        raise SpecError(
            f"the register {register.name} has a version about these people, and a later one of whole records of "
            "several rows of a person is not there yet: a donor may come again with another number of rows; keep the "
            "version that is there, or release one of other people under another name and register"
        )
    if spec.follows_units:
        return observe_units(register, snapshot, run.estimated.joint, key, run.spec.one_secret, tell)
    return observe(register, snapshot, run.estimated.joint, run.workspace / FOLDER, tell)


def entry_of(run: Run, draft: Draft) -> Prepared | None:
    """Write what is about to be published about everybody beside the register; None where nothing new is.

    Answers are derived once more from the secret and what was decided, and have to be those that were drawn.

    Raises
    ------
    DataError
        If they are not.
    """
    spec, snapshot, register, secret = run.spec, run.snapshot, run.register, run.secret
    followed, rows, frequencies = draft.followed, draft.rows, draft.protected.frequencies
    if register is None or secret is None or followed.step is None or followed.people is None:
        return None
    key, work = run.record_key, run.workspace / FOLDER
    if key is None or spec.record_key is None or snapshot.key_kinds is None:
        raise ValueError("people who are followed have record keys")
    tell("noting what is published about whom")
    drawn, found = followed.drawn, followed.step
    words = words_for(WordKeys.of(key, drawn.drawing, decided=True))
    composition = run.estimated.composition
    if followed.donors is not None:
        noted = followed.donors.noted(rows.pairs.pairs, work)
    elif followed.units is not None:
        noted = drawn_units(*followed.units, found, rows.pairs.pairs, work)
    else:
        forecast = followed.forecast
        noted = drawn_people(
            snapshot,
            drawn.snapshot,
            followed.people,
            found,
            words,
            rows.pairs.pairs,
            work,
            tell,
            predicted=None if forecast is None else (forecast.nodes, forecast.outputs),
        )
    terms = EntryTerms(
        series=spec.name,
        version=str(draft.decision.version),
        reserve=found.reserve,
        key_columns=spec.record_key,
        key_kinds=snapshot.key_kinds,
        fingerprint=secret.fingerprint,
        people_counted=None if frequencies.noise is None else found.observed.counted_joint.n,
        expected=_expected_after(followed, noted.chapter.first),
        is_robust=spec.is_robust_over_versions and frequencies.noise is not None,
        observers=found.observed.observers,
        secrets=found.observed.secrets,
        classes=None if composition is None else classes_document(composition.classes, people=chosen_by(spec.groups)),
    )
    return prepare_entry(register, noted, terms, frequencies)


def _expected_after(followed: Followed, first: int) -> Expected | None:
    """Who is expected to have which history once a version is published whose first history has this number."""
    if followed.units is not None:
        return followed.units[1].expected
    return None if followed.forecast is None else followed.forecast.after(first)


@contextmanager
def pending(register: Register | None, entry: Prepared | None, keep: bool) -> Iterator[None]:
    """Remove a prepared entry where its version is not going to be published: if this block fails, or always."""
    kept = False
    try:
        yield
        kept = keep
    finally:
        if register is not None and entry is not None and not kept:
            register.discard(entry)


def forget_followed(workspace: Path) -> None:
    """Remove what was made of the register to draw from."""
    remove_tree(workspace / FOLDER)


def in_register(decision: TakeOver) -> History | None:
    """What the record of rows that are taken over says of their entry; None where they have none yet."""
    history = decision.rows_of.record.history
    return None if history is None or history.entry is None else history


def _require_same(decision: TakeOver, record: History) -> None:
    """Make sure that rows that were held are drawn, given the register as it is, from what they were drawn from."""
    held = decision.rows_of.record.history
    if held is None or (held.given, held.drawing) != (record.given, record.drawing):
        raise ReleaseRefused(
            f"nothing was published: version {decision.rows_of.version} was held, and what is drawn given everything "
            "published about its people is no longer what it was then; run funnel release --again, which holds another"
        )


def _public(frequencies: Frequencies, found: Step, effective: Protocol) -> Protocol:
    """The effective channel as it is published: rounded, since exact weights would tell of single people, and named.

    That of an invariant release under noise follows from public tables, and stays as it is: no grid keeps its balance.
    """
    if np.array_equal(effective.weights, found.target.weights):
        return found.target
    if effective.is_invariant and frequencies.noise is not None:
        return effective
    joint, effective = frequencies.joint, replace(effective, mechanism=found.target.mechanism)
    rounded = rounded_channel(joint, found.guarantee, effective)
    if rounded.is_invariant:
        return rounded
    return replace(rounded, outputs=name_outputs(rounded.weights, rounded.inputs, rounded.outputs.columns))
