"""Protected tables: changes, rows, means and departures made public once with noise, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from funnel.frequencies.averages import noisy_averages
from funnel.frequencies.moves import Moves, noisy_moves
from funnel.frequencies.noise import NoiseSecret
from funnel.frequencies.public_counts import part_for
from funnel.frequencies.unit_tables import UnitCounts
from funnel.joint import IntArray, Joint
from funnel.release.earlier import Earlier
from funnel.release.frequencies_document import ChangesPart, DeparturesPart, MeansPart, MovesPart, NoisyPart, RowsPart
from funnel.release.protected import (
    Protected,
    ProtectionContext,
    digest_of,
    draws_of,
    in_series,
    other_noise,
    public_frequencies,
    published_before,
    published_frequencies,
    spent_by,
)
from funnel.release.protection import Draw, ProtectedTables, numbers_of

Averages = Literal["means", "departures"]
_AVERAGES: Mapping[Averages, type[NoisyPart]] = {"means": MeansPart, "departures": DeparturesPart}


def extra_tables(moving: bool, several: bool) -> int:
    """How many noisy tables a version has beside its counts: of changes, of rows of units, and of means or departures.

    Parameters
    ----------
    moving : bool
        Whether there are earlier versions about the same people.
    several : bool
        Whether these have several rows.
    """
    return int(moving) + int(several) + int(moving or several)


def public_counts(
    context: ProtectionContext, counted: Joint, units: UnitCounts | None, values: str | None, moving: bool
) -> Protected:
    """Public counts of a version; where people have several rows those of first ones, and how the next ones follow.

    Parameters
    ----------
    context : ProtectionContext
    counted : Joint
        Exact counts of all rows.
    units : UnitCounts or None
        Of first rows, where people are followed who have several and counts have noise.
    values : str or None
        As of `funnel.release.protected.public_frequencies`.
    moving : bool
        Whether there are earlier versions about the same people.

    Raises
    ------
    SpecError, LedgerError
        As `public_changes`.
    """
    tables = extra_tables(moving, units is not None)
    found = public_frequencies(context, counted if units is None else units.first, values, tables)
    return found if units is None else public_rows(context, found, units)


def public_changes(
    context: ProtectionContext, protected: Protected, moves: Sequence[Moves], versions: Sequence[Joint]
) -> Protected:
    """Add to public frequencies how people changed since earlier versions, with noise that is drawn once as well.

    Parameters
    ----------
    context : ProtectionContext
    protected : Protected
        The counts of this version.
    moves : sequence of Moves
        Of the people whose last version each one is, since every version of the register; none of a first version.
        Exact; where the bound is robust over versions, their secrets alone are told.
    versions : sequence of Joint
        Published counts of these.

    Raises
    ------
    SpecError
        If noise would be drawn and more spent than the spec allows in all.
    LedgerError
        If the published tables of an earlier version are gone or were changed.
    """
    if not moves or not context.is_noisy:
        return protected
    exact = [one.by_secret for one in moves] if context.spec.is_robust_over_versions else moves
    tables = [MovesPart.of(one).model_dump(mode="json") for one in exact]
    joints = (*versions, protected.frequencies.joint)
    values = [[list(one.secret.symbols), list(one.inputs.symbols)] for one in joints]

    def draw(epsilon: float, secret: NoiseSecret) -> ChangesPart:
        return ChangesPart.of(noisy_moves(exact, versions, protected.frequencies.joint, epsilon, secret))

    counted = [tables, values, context.settings, protected.record.counted]
    return _with_tables(context, protected, "changes", counted, draw, more=True)


def public_rows(context: ProtectionContext, protected: Protected, units: UnitCounts) -> Protected:
    """Add to public frequencies of first rows how the next ones follow; ``units`` are exact, all else as above.

    Where the bound is robust over versions, they are told by secret alone.
    """
    units = units.by_secret if context.spec.is_robust_over_versions else units
    tables = [units.stayed.tolist(), units.left.tolist(), units.sizes.tolist()]
    values = [list(units.first.secret.symbols), list(units.first.inputs.symbols)]

    def draw(epsilon: float, secret: NoiseSecret) -> RowsPart:
        return RowsPart.like(units.with_noise(epsilon, secret))

    counted = [tables, values, context.settings, protected.record.counted]
    return _with_tables(context, protected, "rows", counted, draw, more=True)


def public_averages(
    context: ProtectionContext,
    protected: Protected,
    name: Averages,
    exact: Callable[[float], tuple[IntArray, int]],
) -> Protected:
    """Add to public frequencies with changes or rows how many records each value is published for on average.

    Or by how much published values are more common than is expected.

    Parameters
    ----------
    context, protected
        As of `public_changes`.
    name : "means" or "departures"
    exact : callable
        By epsilon: the means (a,) of `funnel.history.corrected`, or the departures (b,) of
        `funnel.history.departures`, and what one person adds to them at most.
    """
    record = protected.record
    beside = [record.noisy, *(one.noisy for one in record.tables)]
    counts, length = exact(part_for(context.spec.frequencies, context.learned))

    def draw(epsilon: float, secret: NoiseSecret) -> NoisyPart:
        return _AVERAGES[name].like(noisy_averages(name, counts, length, epsilon, protected.frequencies, secret))

    counted = [counts.tolist(), length, context.settings, beside]
    return _with_tables(context, protected, name, counted, draw)


def changes_of(context: ProtectionContext, protected: Protected, rows_of: Earlier) -> Protected:
    """The same for a version that takes over rows of an earlier one: with the tables that these were drawn by.

    Raises
    ------
    LedgerError
        If the published frequencies of that version are gone or were changed.
    """
    before = rows_of.record.frequencies
    tables = {name: kept for name in ("changes", "means", "departures") if (kept := getattr(before, name)) is not None}
    if not tables or before.epsilon is None or before.noisy != protected.record.noisy:
        return protected
    document = published_frequencies(rows_of)
    parts = {name: getattr(document, name) for name in tables}
    if any(part is None or part.noisy_sha256 != tables[name].noisy for name, part in parts.items()):
        raise other_noise(rows_of)
    spent = sum({**draws_of(context), **in_series(context.spec.name, before.draws)}.values(), Decimal(0))
    frequencies = replace(
        protected.frequencies,
        epsilon=before.epsilon,
        spent=float(spent),
        **{name: part.tables for name, part in parts.items()},
    )
    record = protected.record.model_copy(update={**numbers_of(frequencies), **tables})
    return replace(protected, frequencies=frequencies, record=record)


def _with_tables(
    context: ProtectionContext,
    protected: Protected,
    name: str,
    counted: Sequence[object],
    draw: Callable[[float, NoiseSecret], NoisyPart],
    more: bool = False,
) -> Protected:
    """Public frequencies with more tables: those that were published for the same exact ones, or new ones.

    Parameters
    ----------
    context, protected
        As of `public_changes`. Counts without noise have no tables beside them.
    name : "changes", "rows", "means" or "departures"
        Of the tables, in documents and in public frequencies.
    counted : JSON value
        Exact tables with what they are of and protected with, and the counts beside them: the same have the same noise.
    draw : callable
        Draws noise of some epsilon that follows from a secret.
    more : bool
        Whether other tables are to come, so that what is left of the epsilon of the version is not all for counts.
    """
    if not context.is_noisy:
        return protected
    key = digest_of(counted)
    found: NoisyPart | None = published_before(context.versions, key, name)
    is_known = found is not None
    if found is None:
        epsilon = part_for(context.spec.frequencies, context.learned)
        # Refused before anything is drawn.
        _spent_in_all(context, protected, (key, ""), epsilon, more)
        found = draw(epsilon, context.noise_secret)
    noisy = found.noisy_sha256
    total, spent = _spent_in_all(context, protected, (key, noisy), found.epsilon, more)
    frequencies = replace(protected.frequencies, epsilon=total, spent=spent, **{name: found.tables})
    tables = ProtectedTables(epsilon=found.epsilon, counted=key, noisy=noisy)
    record = protected.record.model_copy(update={**numbers_of(frequencies), name: tables})
    return Protected(frequencies, record, protected.reused and is_known)


def _spent_in_all(
    context: ProtectionContext, protected: Protected, draw: Draw, epsilon: float, more: bool
) -> tuple[float, float]:
    """Epsilon of a version with more tables, and of all versions about the same people; each draw counts once.

    Parameters
    ----------
    context, protected, more
        As of `public_changes`.
    draw : Draw
        That of these tables.
    epsilon : float
        What they cost.

    Raises
    ------
    SpecError
        If that is more than the spec allows.
    """
    settings, noise = context.spec.frequencies, protected.frequencies.noise
    if noise is None:
        raise ValueError("only what is protected by noise has cost anything")
    record = protected.record
    tables = {draw: epsilon, **{one.draw: one.epsilon for one in record.tables}}
    each = [noise.epsilon, context.learned.epsilon, *tables.values()]
    exact, total = sum(map(Fraction, each)), settings.epsilon
    if exact > Fraction(total):
        # Counts that were drawn when nothing went to other tables.
        total = float(sum(Decimal(repr(one)) for one in each))
        while Fraction(total) < exact:
            total = math.nextafter(total, math.inf)
    parts = {table: Decimal(repr(cost)) for table, cost in tables.items()}
    before, counts = draws_of(context), (record.counted, record.noisy or "")
    rest = Decimal(repr(total)) - sum(parts.values())
    own = {counts: before.get((context.spec.name, *counts), rest) if more else rest, **parts}
    return total, spent_by(settings, before, in_series(context.spec.name, own))
