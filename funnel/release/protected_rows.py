"""Protected rows: how the rows of units follow one another, made public once for their tables, and what it cost."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from funnel.frequencies.public_counts import part_for
from funnel.frequencies.selection import Share
from funnel.frequencies.unit_tables import UnitCounts
from funnel.release.frequencies_document import RowsPart
from funnel.release.protected import (
    DrawnBefore,
    Protected,
    known_part,
    noise_secret,
    spent_in_all,
)
from funnel.release.protection import ProtectedTables, numbers_of
from funnel.spec import ReleaseSpec


def public_rows(
    spec: ReleaseSpec,
    protected: Protected,
    units: UnitCounts,
    learned: Share,
    drawn_before: DrawnBefore,
    more: bool = False,
    source: str | None = None,
) -> Protected:
    """Add to public frequencies of first rows how the next ones follow, with noise that is drawn once as well.

    Parameters
    ----------
    spec : ReleaseSpec
    protected : Protected
        The counts of first rows.
    units : UnitCounts
        Exact.
    learned, drawn_before, source
        As of `funnel.release.protected.public_frequencies`.
    more : bool
        As of `funnel.release.protected.spent_in_all`.

    Raises
    ------
    SpecError
        If noise would be drawn and more spent than the spec allows in all.
    LedgerError
        If the published tables of an earlier version are gone or were changed.
    """
    settings = spec.frequencies
    if settings.protection != "noise":
        return protected
    key = _digest_of(spec, units, protected.record.counted)
    found = known_part(drawn_before.versions, "rows", key, rows_sha256)
    reused = found is not None
    if found is None:
        epsilon = part_for(settings, learned)
        # Refused before anything is drawn.
        spent_in_all(spec, protected, drawn_before.earlier, "", epsilon, learned, more)
        found = RowsPart.of(units.with_noise(epsilon, noise_secret(spec, drawn_before.workspace, source)))
    noisy = rows_sha256(found)
    total, spent = spent_in_all(spec, protected, drawn_before.earlier, noisy, found.epsilon, learned, more)
    frequencies = replace(protected.frequencies, rows=found.rows, epsilon=total, spent=spent)
    tables = ProtectedTables(epsilon=found.epsilon, counted=key, noisy=noisy)
    record = protected.record.model_copy(update={**numbers_of(frequencies), "rows": tables})
    return Protected(frequencies, record, protected.reused and reused)


def rows_sha256(rows: RowsPart) -> str:
    """SHA-256 (hex) of noisy tables: of what was drawn, whatever was spent besides."""
    said = [rows.stayed, rows.left, rows.sizes]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _digest_of(spec: ReleaseSpec, units: UnitCounts, counted: str) -> str:
    """SHA-256 (hex) of exact tables with what they are of, what they are protected with, and the counts beside them."""
    tables = [units.stayed.tolist(), units.left.tolist(), units.sizes.tolist()]
    values = [list(units.first.secret.symbols), list(units.first.inputs.symbols)]
    said = [tables, values, spec.frequencies.model_dump(mode="json", exclude={"max_epsilon"}), counted]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
