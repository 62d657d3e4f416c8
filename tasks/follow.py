"""Follow: what is drawn of the people of a version, given everything that was published about them before."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from funnel.errors import ReleaseRefused
from funnel.findings.followed import ExpectedHistory, ExpectedObserver, FoundHistory, FoundObserver
from funnel.frequencies import Frequencies
from funnel.guarantees import parse_guarantee
from funnel.history import HISTORY_COLUMN, Changes, Observed, Step, drawing_protocol
from funnel.history import follow as follow_people
from funnel.history.corrected import corrected, means
from funnel.history.distributions import distributions_before
from funnel.history.drift import Drift, drift_between
from funnel.history.expected import Attending, Expected, answered
from funnel.history.fitting import Fitted, fitted
from funnel.history.possible_rows import share_that_is_open
from funnel.joint import IntArray, Joint
from funnel.naming import name_outputs
from funnel.pipeline.tasks.protect import protect_means
from funnel.pipeline.tasks.run import Draft, Followed, Forecast, Run
from funnel.pipeline.tasks.step import step, tell
from funnel.protocol import Protocol
from funnel.register.following import FORGOTTEN_CHANNEL, People, drawn_people, follow_snapshot, observe
from funnel.register.predicting import predicted_people
from funnel.register.register import Prepared, Register
from funnel.register.truth import known_truth
from funnel.register.units import Units, drawn_units, expected_units, follow_units, observe_units, people_of
from funnel.release.coarse import rounded_channel
from funnel.release.decision import Draw, Earlier, TakeOver
from funnel.release.documents import JointDocument
from funnel.release.drawn_from import DrawnFrom
from funnel.release.files import remove_tree
from funnel.release.frequencies_document import FrequenciesDocument
from funnel.release.inside import steps_off
from funnel.release.layout import ReleaseFolder
from funnel.release.protected import Protected
from funnel.release.record import History
from funnel.release.snapshot import Snapshot
from funnel.sampling import count_partition, partition_groups
from funnel.sampling.dask_workers import workers_of
from funnel.sampling.row_words import WordKeys, words_for
from funnel.solver.invariant import counted as counted_worth
from funnel.spec import ReleaseSpec

# In the workspace of the series, while a version is made: it says of every record what was published about it.
FOLDER = "followed"


@step
def follow(
    run: Run,
    decision: Draw | TakeOver,
    protected: Protected,
    protocol: Protocol,
    people: People | Units | None = None,
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

    Raises
    ------
    SpecError
        If the register is about another secret or other keys.
    ReleaseRefused
        If frequencies drifted and the spec refuses that, or what was held can no longer be drawn.
    LedgerError
        If a file of the register is gone or was changed.
    """
    spec, snapshot, register, earlier = run.spec, run.snapshot, run.register, run.earlier
    counted, frequencies = run.estimated.joint, protected.frequencies
    if register is None:
        record = None if spec.history is None else History(people=spec.history.people)
        drift = None
        if spec.history is not None and isinstance(decision, Draw):
            drift = _told(spec, _drift_of_others(earlier, counted), _public_drift(earlier, frequencies))
        return Followed(DrawnFrom.alone(protocol, snapshot, record), drift)
    if isinstance(decision, TakeOver) and (known := in_register(decision)) is not None:
        if decision.rows_of.folder is None:
            raise ValueError("rows that are gone are not taken over")
        return Followed(DrawnFrom.taken_over(ReleaseFolder(decision.rows_of.folder), snapshot, known))
    key = run.record_key
    if key is None or snapshot.key_kinds is None or spec.history is None:
        raise ValueError("people who are followed have record keys")
    if protocol.inputs.columns != counted.inputs.columns:
        raise ValueError("a protocol that is followed reads the published columns alone")
    work = run.workspace / FOLDER
    bound = parse_guarantee(spec.guarantee.canonical)
    name, reserve = f"{spec.name}/{decision.version}", spec.history.budget_fraction
    units = forecast = expected = put_right = None
    if spec.follows_units:
        if not isinstance(people, Units):
            raise ValueError("units that are followed were looked up")
        public_drift = _public_drift(earlier, frequencies)
        exact = None if frequencies.noise is not None else _drift_of_units(spec, register, people.first)
        drift = _told(spec, exact or public_drift, public_drift)
        waves = follow_units(
            register,
            people,
            bound,
            name,
            key,
            target=protocol,
            reserve=reserve,
            expected=expected_units(register, frequencies),
            progress=tell,
        )
        units, expected, found = (people, waves), waves.fitted, waves.step
        people = people_of(people, waves, snapshot, work)
    else:
        if not isinstance(people, People):
            raise ValueError("people who are followed were looked up")
        public_drift = _public_drift(earlier, frequencies)
        # The register keeps the published counts of earlier versions, and noisy ones are compared with noisy ones.
        changes = people.observed.changes
        exact = None if frequencies.noise is not None else _drift_of_same(spec, register, counted, changes)
        drift = _told(spec, exact or public_drift, public_drift)
        tell("following histories")

        def decided(observed: Observed) -> Step:
            return follow_people(
                register.past,
                observed,
                bound,
                name,
                target=protocol,
                worth=counted_worth(frequencies.joint, spec.mechanism.weights) if protocol.is_invariant else None,
                reserve=reserve,
                # Whoever downloads this version alone, with its frequencies and its protocol, is a reader too.
                read_alone=True,
                progress=tell,
            )

        if frequencies.noise is None:
            observers = register.observers(spec.history.observers)
            found = decided(replace(people.observed, observers=observers))
        else:
            who, expected_now = predicted_people(register, frequencies, robust=spec.is_robust_over_versions)
            expected = fitted(decided(expected_now), people.observed.known_by(frequencies.joint, expected_now.changes))
            if protocol.is_invariant and register.entries:
                put_right = protect_means(run, protected, means(expected.step))
                told = put_right.frequencies.means
                if told is None:
                    raise ValueError("means that were protected are there")
                expected = corrected(expected, told.counts)
            found, forecast = expected.step, _forecast(who, expected.predicted)
    public = _public(frequencies.joint, found)
    # What an output may come from is more than it is under the protocol of this version alone; its name says it.
    found = replace(found, channel=replace(found.channel, outputs=public.outputs))
    followed = follow_snapshot(snapshot, people, found, key, work, tell)
    drawing = drawing_protocol(found)
    record = History.model_validate(
        {
            "people": "same",
            "register": register.name,
            "name": found.version,
            "given": register.head_sha256,
            "target": protocol.digest,
            "drawing": drawing.digest,
            # Of the people of the version; what is followed besides is expected and nobody has it.
            "histories": found.histories if expected is None else len(np.unique(found.observed.nodes)),
            "level": found.level.value,
            "moved": found.moved,
            "outside": found.outside,
            "reserve": found.reserve,
        }
    )
    if isinstance(decision, TakeOver):
        _require_same(decision, record)
    drawn = DrawnFrom(
        public,
        drawing,
        _counted(spec, followed, len(found.library)),
        followed,
        protocol,
        _found(register, people, found, expected),
        record,
        steps_off(public.weights, found.channel.weights),
    )
    return Followed(drawn, drift, found, people, units, forecast, put_right)


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
    if spec.follows_units:
        return observe_units(register, snapshot, run.estimated.joint, key, tell)
    return observe(register, snapshot, run.estimated.joint, run.workspace / FOLDER, tell)


def _forecast(who: Attending, predicted: Step) -> Forecast:
    """Which histories are expected after a version."""
    laws = distributions_before(predicted.past, who.nodes, predicted.joint, predicted.observed.changes).values.sum(
        axis=1
    )
    nodes, outputs, people, others = answered(who, laws, predicted.library, predicted.drawn_from)
    return Forecast(who, nodes, outputs, people, others)


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
    if followed.units is not None:
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
    return register.prepare(
        noted,
        series=spec.name,
        version=str(draft.decision.version),
        reserve=found.reserve,
        key_columns=spec.record_key,
        key_kinds=snapshot.key_kinds,
        fingerprint=secret.fingerprint,
        noise=None if frequencies.noise is None else frequencies.noise.epsilon,
        people_counted=None if frequencies.noise is None else found.observed.counted_joint.n,
        changes=frequencies.changes,
        rows=frequencies.rows,
        means=frequencies.means,
        expected=_expected_after(followed, noted.chapter.first),
        left_open=_left_open(frequencies) if found.observed.limits is not None else None,
        observers=tuple(one.observer for one in found.bounded_for),
    )


def _left_open(frequencies: Frequencies) -> tuple[float, IntArray]:
    """What a register keeps of noise, where the bound holds under every set of tables that it leaves open."""
    if frequencies.noise is None or frequencies.noisy is None:
        raise ValueError("only noise leaves anything open")
    return frequencies.noise.beta, frequencies.noisy


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


def _public(joint: Joint, found: Step) -> Protocol:
    """The effective channel as it is published: rounded, since exact weights would tell of single people, and named.

    That of an invariant release follows from public tables, and stays as it is: no grid keeps its balance.
    """
    if (found.channel.weights == found.target.weights).all():
        return found.target
    if found.channel.is_invariant:
        return found.channel
    effective = replace(found.channel, mechanism=found.target.mechanism)
    rounded = rounded_channel(joint, found.guarantee, effective)
    return replace(rounded, outputs=name_outputs(rounded.weights, rounded.inputs, rounded.outputs.columns))


def _counted(spec: ReleaseSpec, followed: Snapshot, channels: int) -> Joint:
    """Records by secret and by what the drawing reads."""
    order: dict[str, Sequence[str]] = {c: coding.labels for c, coding in followed.read_codings().items()}
    order[HISTORY_COLUMN] = [*map(str, range(channels)), FORGOTTEN_CHANNEL]
    columns = (HISTORY_COLUMN, *spec.publish)
    tasks = [(followed.data.path, groups, spec.secret, columns, order) for groups in partition_groups(followed.sizes)]
    parts: dict[int, Joint] = {}
    with workers_of(spec.engine) as workers:
        for i, part in workers.run(count_partition, tasks):
            parts[i] = part
    return Joint.from_parts([parts[i] for i in sorted(parts)], order)


def _found(register: Register, people: People, found: Step, expected: Fitted | None = None) -> FoundHistory:
    """What all versions together tell, for whoever answers for it; and what of it is public, with noise."""
    labels = {chapter.version: chapter.channel.outputs.labels for chapter in found.past.chapters}
    witness = found.level.witness
    ratio = witness.ratio
    worst = () if found.worst is None else found.past.history(found.worst)
    return FoundHistory(
        register=register.name,
        versions=len(register.entries) + 1,
        histories=found.histories if expected is None else len(np.unique(found.observed.nodes)),
        known=people.known,
        forgotten=people.forgotten,
        channels=len(found.library),
        level=found.level.value,
        level_ratio=None if ratio is None else f"{ratio.numerator}/{ratio.denominator}",
        worst=tuple((version, labels[version][output]) for version, output in worst),
        worst_output=found.channel.outputs.labels[witness.output],
        worst_secret=found.joint.secret.labels[witness.secret],
        moved=found.moved,
        outside=found.outside,
        reserve=found.reserve,
        utility=found.utility,
        alone=found.alone,
        bound=found.bound,
        entropy=found.entropy,
        units=found.opening.joint.n if found.waves else None,
        moved_level=_finite(found.moved_level),
        expected=None if expected is None else _expected(register, people, expected),
        observers=tuple(
            FoundObserver(
                one.observer, one.bounded, _finite(one.level), one.moved, one.outside, _finite(one.moved_level)
            )
            for one in found.by_observer
        ),
    )


def _finite(level: float | None) -> float | None:
    """A level as findings keep it: None where it is infinite."""
    return None if level is None or math.isinf(level) else level


def _expected(register: Register, people: People, found: Fitted) -> ExpectedHistory:
    """The same of expected people, how many were not, and what it is for whoever knows the truth."""
    truth = known_truth(register, found.step, people)
    step = found.predicted
    everybody = step.joint.n
    silent = 0 if step.observed.silent is None else int(step.observed.silent.sum())
    return ExpectedHistory(
        histories=step.histories,
        level=step.level.value,
        moved=min(1.0, step.moved / everybody),
        outside=min(1.0, step.outside / everybody),
        others=silent / int(step.observed.records.sum()),
        unpredicted=found.unpredicted,
        silent=found.silent,
        truth=None if truth is None else truth.changes.level,
        beyond=None if truth is None else truth.changes.beyond,
        tables=None if truth is None else truth.tables.level,
        tables_beyond=None if truth is None else truth.tables.beyond,
        tables_moved=None if truth is None else truth.tables.moved,
        tables_people=None if truth is None else truth.tables.people,
        open_people=share_that_is_open(step),
        observers=tuple(
            ExpectedObserver(
                one.observer,
                one.bounded,
                _finite(one.level),
                _finite(max(one.level, one.moved_level or 0.0)),
                min(1.0, one.outside / everybody),
            )
            for one in step.by_observer
        ),
    )


def _drift_of_same(spec: ReleaseSpec, register: Register, joint: Joint, since: Mapping[int, Changes]) -> Drift | None:
    """Against the newest version of this series in the register, if somebody's last version it is."""
    for ordinal, entry in reversed(list(enumerate(register.entries))):
        if entry.series == spec.name:
            changes = since.get(register.chapters_of(ordinal)[0])
            return None if changes is None else drift_between(entry.joint, joint, changes)
    return None


def _drift_of_units(spec: ReleaseSpec, register: Register, first: Joint) -> Drift | None:
    """The same of people with several rows: first rows are compared, one of each, as if they were other people's."""
    for entry in reversed(register.entries):
        if entry.series == spec.name:
            return drift_between(entry.first_rows or entry.joint, first)
    return None


def _drift_of_others(earlier: Sequence[Earlier], joint: Joint) -> Drift | None:
    """Against the newest version that is there, whose people are others."""
    there = [one for one in earlier if one.published and one.folder is not None]
    if not there:
        return None
    newest = max(there, key=lambda one: one.version)
    if newest.folder is None or not (path := ReleaseFolder(newest.folder).joint).is_file():
        return None
    return drift_between(JointDocument.read(path).joint, joint)


def _public_drift(earlier: Sequence[Earlier], frequencies: Frequencies) -> Drift | None:
    """The same between public frequencies, where noise protects them: whether a version is refused is public too.

    What noise adds to counts can look like drift where they are small; it never hides any that is not of its size.
    """
    if frequencies.noise is None:
        return None
    noisy = [one for one in earlier if one.published and one.folder is not None and _has_noise(one)]
    if not noisy:
        return None
    folder = max(noisy, key=lambda one: one.version).folder
    if folder is None:
        raise ValueError("a version that is there has a folder")
    before = FrequenciesDocument.read(ReleaseFolder(folder).frequencies).frequencies
    return drift_between(before.joint.as_published, frequencies.joint.as_published)


def _has_noise(one: Earlier) -> bool:
    return one.record.frequencies.noisy is not None


def _told(spec: ReleaseSpec, drift: Drift | None, public: Drift | None = None) -> dict[str, Any] | None:
    """A drift as findings keep it.

    Parameters
    ----------
    spec : ReleaseSpec
    drift : Drift or None
        Exact, for the internal evidence.
    public : Drift or None
        Of public frequencies, where they have noise: what a refusal is decided by then, and says.

    Raises
    ------
    ReleaseRefused
        If there is one and the spec refuses that.
    """
    if drift is None:
        return None
    decided = drift if spec.frequencies.protection != "noise" else public
    if decided is not None and decided.drifted and spec.history is not None and spec.history.on_drift == "fail":
        said = decided.sentence.rstrip(".").replace(". ", "; ")
        raise ReleaseRefused(
            f'nothing was drawn: the frequencies drifted since the version before, and [history] on_drift = "fail": '
            f"{said}"
        )
    return {**drift.to_dict(), "sentence": drift.sentence}
