"""Planning a version of a register: its people with their histories, read and neither noted nor drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from funnel.frequencies.public_counts import Frequencies
from funnel.guarantees import parse_guarantee
from funnel.guarantees.base import Guarantee
from funnel.history.following import VersionTerms
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.history.step import Step
from funnel.history.version_forecast import (
    RESERVES,
    UNIT_RESERVES,
    VersionForecast,
    first_people,
    forecast_units,
    forecast_version,
)
from funnel.joint import Joint
from funnel.measures.utilities import Utility
from funnel.numbers import utility_for
from funnel.planning import MechanismChoice, PlanRow, choose, contenders, drawn_over_versions, of_budget_fraction
from funnel.preview.counted import Preview
from funnel.progress import Progress
from funnel.progress import quiet as silent
from funnel.protocol import Protocol
from funnel.readers.formats import Source
from funnel.register import register_of
from funnel.register.look_up import People, observe
from funnel.register.predicting import predicted_people
from funnel.register.register import Register
from funnel.register.units import Units, expected_units, follow_units, observe_units
from funnel.release.coarse import coarsened
from funnel.release.decision import origin_of, version_after
from funnel.release.learned import learned_codings
from funnel.release.protected_tables import public_changes
from funnel.release.secret import Reader, ReleaseSecret, find_register_secret
from funnel.release.series import Series
from funnel.release.snapshot import take_snapshot
from funnel.sampling.keyed import RecordKey
from funnel.solver.invariant import counted
from funnel.source.coding import Codings
from funnel.spec import ReleaseSpec
from funnel.tradeoff.fitted import FittedRows


def plan_version(
    spec: ReleaseSpec,
    found: Preview,
    compared: tuple[tuple[str, tuple[PlanRow, ...]], ...],
    progress: Progress = silent,
    read: Reader | None = None,
) -> tuple[VersionForecast | None, ...]:
    """What the next version would keep given the histories of its people, under each bound that was planned for.

    Parameters
    ----------
    spec : ReleaseSpec
    found : Preview
        Counts of the source: exact ones, for who has which history, and those that are published, for all else.
    compared : tuple of (guarantee, rows)
        The plans for the version alone; the mechanism that a release would take is aimed at.
    progress : callable
    read : callable, optional
        As in `funnel.release.secret.find_secret`.

    Returns
    -------
    tuple of VersionForecast or None
        One for each plan; None where the spec does not say that people are the same, or no mechanism can be used.

    Raises
    ------
    SpecError
        If the register is about another secret or other keys.
    LedgerError
        If the secret, or a file of the register, is gone or was changed.
    DataError
        If the source is no longer the one that was counted.
    """
    # Of whole records what followed donors keep is not foreseen.
    if spec.register is None or spec.history is None or spec.is_by_class:
        return tuple(None for _ in compared)
    public, reserves, forecast = (_of_units if spec.follows_units else _of_people)(spec, found, progress, read)
    utility, forecasts = _utility(found), list[VersionForecast | None]()
    for guarantee, rows in compared:
        bound = parse_guarantee(guarantee)
        targets = _targets(spec, public, bound, rows, utility, reserves, progress)
        target = targets.get(spec.history.budget_fraction)
        terms = None if target is None else _terms(spec, found, bound, target, progress, utility)
        forecasts.append(None if terms is None else forecast(terms, targets))
    return tuple(forecasts)


Forecast = Callable[[VersionTerms, Mapping[float, Protocol]], VersionForecast]
"""What a version keeps under some terms, with the targets of all reserves."""


def _of_people(
    spec: ReleaseSpec, preview: Preview, progress: Progress, read: Reader | None
) -> tuple[Joint, Sequence[float], Forecast]:
    """Public counts, reserves that are compared, and a forecast, where every person has one row."""
    past, observed = _people(spec, preview, progress, read)

    def forecast(terms: VersionTerms, targets: Mapping[float, Protocol]) -> VersionForecast:
        return forecast_version(past, observed, terms, time_limit=spec.mechanism.time_limit, targets=targets)

    return preview.protected.frequencies.joint, RESERVES, forecast


def _of_units(
    spec: ReleaseSpec, preview: Preview, progress: Progress, read: Reader | None
) -> tuple[Joint, Sequence[float], Forecast]:
    """The same where people have several rows, which are drawn as a release would draw them, and thrown away.

    By the same secret, and under the name of the version that a release would make: else other rows would come next,
    and be fitted again. With noise it is about the units that are expected.
    """
    register = register_of(spec)
    if register is None or spec.record_key is None:
        raise ValueError("there is no register")
    record_key = spec.record_key
    register.require_fitting(spec.secret, record_key)
    secret, series = _secret(spec, register, read), Series.of(spec)
    key = secret.record_key(record_key, read)
    with TemporaryDirectory() as name:
        snapshot = take_snapshot(spec, Path(name), key, progress, _learned(spec, progress, key))
        register.require_fitting(spec.secret, record_key, snapshot.key_kinds)
        units = observe_units(register, snapshot, preview.counted, key, spec.one_secret, progress)
    frequencies, secrets = _with_changes(preview, register, units), spec.bounded_secrets
    expected = expected_units(register, frequencies, secrets, spec.is_robust_over_versions)

    def forecast(terms: VersionTerms, targets: Mapping[float, Protocol]) -> VersionForecast:
        origin = origin_of(spec, snapshot, targets[terms.reserve], secret.fingerprint)
        terms = replace(terms, version=f"{spec.name}/{version_after(origin, series.earlier, series.held.all)}")

        def weigh(reserve: float) -> Step:
            asked = replace(terms, reserve=reserve, target=targets.get(reserve, terms.target))
            waves = follow_units(register, units, asked, key, secrets, expected)
            return waves.step if waves.fitted is None else waves.fitted.predicted

        return forecast_units(register.past, weigh, record_key, terms, rows=units.joint.n)

    return frequencies.joint, UNIT_RESERVES, forecast


def _learned(spec: ReleaseSpec, progress: Progress, key: RecordKey | None = None) -> Callable[[Source, str], Codings]:
    workspace = spec.workspace_folder / spec.name

    def codings(source: Source, digest: str) -> Codings:
        return learned_codings(spec, source, digest, workspace, progress, key)

    return codings


def _terms(
    spec: ReleaseSpec, found: Preview, bound: Guarantee, target: Protocol, progress: Progress, utility: Utility
) -> VersionTerms:
    """Those of the version that a release would make; rows that it searches for are kept for it."""
    if spec.history is None:
        raise ValueError("versions of a register have settings of their history")
    public = found.protected.frequencies
    return VersionTerms(
        bound,
        "planned",
        target,
        spec.history.budget_fraction,
        utility,
        counted(public.joint, spec.mechanism.weights) if target.is_invariant else None,
        public.noise is None,
        progress=progress,
        kept=FittedRows.within(spec.workspace_folder / spec.name),
    )


def _utility(found: Preview) -> Utility:
    """What a release chooses by."""
    return utility_for(found.spec if found.settled is None else found.settled, found.protected.frequencies.joint)


def _targets(
    spec: ReleaseSpec,
    joint: Joint,
    bound: Guarantee,
    rows: tuple[PlanRow, ...],
    utility: Utility,
    reserves: Sequence[float],
    progress: Progress,
) -> dict[float, Protocol]:
    """What a release would aim at under reserves, as it makes it, so that the plan is about what would be drawn.

    Under that of the spec, and where that is below 1 under others, too, as one target would favour its own reserve.
    """
    asked, fraction = spec.mechanism, 1.0 if spec.history is None else spec.history.budget_fraction
    choice = MechanismChoice(asked.name, asked.reads_secret, asked.time_limit, asked.weights)
    targets = {}
    for share in {fraction} if fraction == 1 else {fraction, *reserves}:
        inner = of_budget_fraction(bound, share)
        if inner == bound:
            fitted = rows
        else:
            fitted = contenders(
                joint,
                inner,
                choice,
                progress,
                utility=utility,
                kept=FittedRows.within(spec.workspace_folder / spec.name),
            )
        row = _chosen(spec, fitted)
        if row is None or row.protocol is None:
            continue
        if row.protocol.inputs.columns != joint.inputs.columns:
            raise ValueError("a protocol that is followed reads the published columns alone")
        targets[share] = coarsened(joint, inner, row.protocol, utility).named(guarantee=str(bound))
    return targets


def _secret(spec: ReleaseSpec, register: Register, read: Reader | None) -> ReleaseSecret:
    """That people are known by: the one of the release, which is made if there is none yet."""
    return find_register_secret(spec.record_secret, register.root, register.name, register.fingerprint, read)


def _chosen(spec: ReleaseSpec, rows: tuple[PlanRow, ...]) -> PlanRow | None:
    asked = drawn_over_versions(rows, spec.mechanism.name)
    usable = [row for row in asked if row.reason is None and row.protocol is not None]
    named = [row for row in usable if row.mechanism == spec.mechanism.name]
    if named or spec.mechanism.name != "auto":
        return named[0] if named else None
    return choose(usable) if usable else None


def _people(spec: ReleaseSpec, preview: Preview, progress: Progress, read: Reader | None) -> tuple[Past, Observed]:
    """What was published about the people of the source, and who of them has which history; expected ones with noise.

    Noise for how people changed is drawn as a release would, and kept for it.
    """
    history, register = spec.history, register_of(spec)
    if register is None or spec.record_key is None or history is None:
        raise ValueError("there is no register")
    joint, frequencies = preview.counted, preview.protected.frequencies
    register.require_fitting(spec.secret, spec.record_key)
    if not register.entries:
        return Past(), first_people(frequencies.joint)
    key = _secret(spec, register, read).record_key(spec.record_key, read)
    with TemporaryDirectory() as name:
        # Where a release would leave files behind; a plan does not.
        folder = Path(name)
        snapshot = take_snapshot(spec, folder, key, progress, _learned(spec, progress))
        register.require_fitting(spec.secret, spec.record_key, snapshot.key_kinds)
        people = observe(register, snapshot, joint, folder, progress)
    if frequencies.noise is None:
        asked = register.observers(history.observers)
        return register.past, replace(people.observed, observers=asked, secrets=spec.bounded_secrets)
    frequencies = _with_changes(preview, register, people)
    robust = spec.is_robust_over_versions
    return register.past, predicted_people(register, frequencies, spec.bounded_secrets, robust=robust)[1]


def _with_changes(preview: Preview, register: Register, people: People | Units) -> Frequencies:
    """Public frequencies, with how people changed since earlier versions where these have noise."""
    if not preview.context.is_noisy:
        return preview.protected.frequencies
    distributions = [distribution for _, distribution in register.distributions]
    return public_changes(preview.context, preview.protected, people.moves(register), distributions).frequencies
