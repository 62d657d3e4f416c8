"""Decided: the channels of everybody in a version, given what was published about them before, whoever they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from funnel.frequencies.public_counts import Frequencies
from funnel.history.corrected import PARTS, corrected, means
from funnel.history.departures import declared_length, departures_of_people, departures_of_units
from funnel.history.distributions import distributions_before
from funnel.history.donor_step import donor_step
from funnel.history.drift import Drift
from funnel.history.expected import Attending, answered
from funnel.history.fitting import Fitted, fitted
from funnel.history.following import VersionTerms
from funnel.history.step import Step
from funnel.history.waves import Waves
from funnel.joint import IntArray
from funnel.pipeline.tasks.drift import drift_of_same, drift_of_units, public_drift, reported
from funnel.pipeline.tasks.protect import protect_averages
from funnel.pipeline.tasks.run import Forecast, Run
from funnel.pipeline.tasks.step import tell
from funnel.register.donor_rows import DonorRows, draw_donors
from funnel.register.look_up import People
from funnel.register.predicting import predicted_people
from funnel.register.register import Register
from funnel.register.unit_donor_rows import draw_unit_donors
from funnel.register.units import Units, expected_units, follow_units, people_of
from funnel.release.protected import Protected
from funnel.sampling.keyed import RecordKey
from funnel.settings.version_settings import HistorySettings

# In the workspace of the series, while a version is made: it says of every record what was published about it.
FOLDER = "followed"


@dataclass(frozen=True, eq=False)
class Decided:
    """What is drawn of everybody, before any file is made of it; see `Followed`."""

    step: Step
    people: People
    drift: dict[str, Any] | None
    expected: Fitted | None = None
    units: tuple[Units, Waves] | None = None
    forecast: Forecast | None = None
    protected: Protected | None = None
    donors: DonorRows | None = None


def decided(
    run: Run, protected: Protected, terms: VersionTerms, people: People | Units | None, key: RecordKey
) -> Decided:
    """What is drawn of everybody who was looked up."""
    whole = run.estimated.donors is not None
    if isinstance(people, Units):
        return (_decided_for_unit_donors if whole else _decided_for_units)(run, protected, terms, people, key)
    if people is None:
        raise ValueError("those who are followed were looked up")
    if whole:
        return _decided_for_donors(run, protected, terms, people, key)
    return _decided_for_people(run, protected, terms, people)


def _drift(run: Run, frequencies: Frequencies, exact: Callable[[], Drift | None]) -> dict[str, Any] | None:
    """Of exact counts where the register keeps such; noisy ones are compared with noisy ones."""
    public = public_drift(run.earlier, frequencies)
    return reported(run.spec, (None if frequencies.noise is not None else exact()) or public, public)


def _decided_for_units(run: Run, protected: Protected, terms: VersionTerms, units: Units, key: RecordKey) -> Decided:
    """For people with several rows."""
    spec, frequencies, (register, _) = run.spec, protected.frequencies, registered(run)
    drift = _drift(run, frequencies, lambda: drift_of_units(spec, register, units.first))
    expected = expected_units(register, frequencies, spec.bounded_secrets, spec.is_robust_over_versions)
    waves = follow_units(register, units, terms, key, spec.bounded_secrets, expected)
    people = people_of(units, waves.step, waves.before, run.snapshot, run.workspace / FOLDER)
    told = None
    if expected is not None:
        predicted = expected.waves

        def exact(epsilon: float) -> tuple[IntArray, int]:
            distribution = frequencies.joint.p_input
            length = declared_length(waves.step.channel, distribution, sum(predicted), len(predicted), epsilon)
            inputs = units.cells % len(distribution)
            return departures_of_units(waves.step, units.rows.units, waves.before, inputs, length), length

        told = protect_averages(run, protected, "departures", exact)
    return Decided(waves.step, people, drift, waves.fitted, (units, waves), protected=told)


def _decided_for_people(run: Run, protected: Protected, terms: VersionTerms, people: People) -> Decided:
    """For people with one row each."""
    spec, frequencies, (register, history) = run.spec, protected.frequencies, registered(run)
    changes, secrets = people.observed.changes, spec.bounded_secrets
    drift = _drift(run, frequencies, lambda: drift_of_same(spec, register, run.estimated.joint, changes))
    tell("following histories")
    if frequencies.noise is None:
        asked = replace(people.observed, observers=register.observers(history.observers), secrets=secrets)
        return Decided(terms.decide(register.past, asked), people, drift)
    who, expected_now = predicted_people(register, frequencies, secrets, robust=spec.is_robust_over_versions)
    real = people.observed.known_by(frequencies.joint, expected_now.changes)
    expected = fitted(terms.decide(register.past, expected_now), real, terms.utility)
    put_right = None
    if register.entries and not terms.aim.is_invariant:

        def exact(epsilon: float) -> tuple[IntArray, int]:
            distribution = frequencies.joint
            length = declared_length(expected.step.channel, distribution.p_input, distribution.n, 1, epsilon)
            return departures_of_people(expected.step, length), length

        put_right = protect_averages(run, protected, "departures", exact)
    elif register.entries:
        put_right = protect_averages(run, protected, "means", lambda _: (means(expected.step), PARTS))
        told = put_right.frequencies.means
        if told is None:
            raise ValueError("means that were protected are there")
        expected = corrected(expected, told.counts)
    forecast = _forecast(who, expected.predicted)
    return Decided(expected.step, people, drift, expected, forecast=forecast, protected=put_right)


def _decided_for_donors(run: Run, protected: Protected, terms: VersionTerms, people: People, key: RecordKey) -> Decided:
    """For whole records of people with one row each, whose counts have no noise."""
    spec, frequencies, (register, _) = run.spec, protected.frequencies, registered(run)
    changes = people.observed.changes
    drift = _drift(run, frequencies, lambda: drift_of_same(spec, register, run.estimated.joint, changes))
    found = donor_step(register.past, people.observed, terms)
    donors = draw_donors(register, run.snapshot, people, found, key)
    return Decided(found, people, drift, donors=donors)


def _decided_for_unit_donors(
    run: Run, protected: Protected, terms: VersionTerms, units: Units, key: RecordKey
) -> Decided:
    """For whole records of people with several rows, whose counts have no noise."""
    spec, frequencies, (register, _) = run.spec, protected.frequencies, registered(run)
    drift = _drift(run, frequencies, lambda: drift_of_units(spec, register, units.first))
    donors = draw_unit_donors(run.snapshot, units, terms, key)
    people = people_of(units, donors.step, donors.drawn.before, run.snapshot, run.workspace / FOLDER)
    return Decided(donors.step, people, drift, donors=donors)


def registered(run: Run) -> tuple[Register, HistorySettings]:
    if run.register is None or run.spec.history is None:
        raise ValueError("people who are followed are in a register")
    return run.register, run.spec.history


def _forecast(who: Attending, predicted: Step) -> Forecast:
    """Which histories are expected after a version."""
    distributions = distributions_before(
        predicted.past, who.nodes, predicted.joint, predicted.observed.changes
    ).values.sum(axis=1)
    nodes, outputs, people, others = answered(who, distributions, predicted.library, predicted.drawn_from)
    return Forecast(who, nodes, outputs, people, others)
