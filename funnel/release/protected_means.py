"""Protected means: how many records each value is published for on average, made public once, and what it cost."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from funnel.frequencies.means import noisy_means
from funnel.frequencies.public_counts import part_for
from funnel.frequencies.selection import Share
from funnel.joint import IntArray
from funnel.release.frequencies_document import MeansPart
from funnel.release.protected import (
    DrawnBefore,
    Protected,
    known_part,
    noise_secret,
    spent_in_all,
)
from funnel.release.protection import ProtectedTables, numbers_of
from funnel.spec import ReleaseSpec


def public_means(
    spec: ReleaseSpec,
    protected: Protected,
    exact: IntArray,
    learned: Share,
    drawn_before: DrawnBefore,
    source: str | None = None,
) -> Protected:
    """Add to public frequencies how many records each value is published for on average, with noise drawn once as well.

    Parameters
    ----------
    spec : ReleaseSpec
    protected : Protected
        With the changes since the versions before.
    exact : ndarray of int64, shape (a,)
        From `funnel.history.corrected.means`.
    learned, drawn_before, source
        As of `funnel.release.protected.public_frequencies`.

    Raises
    ------
    SpecError
        If noise would be drawn and more spent than the spec allows in all.
    LedgerError
        If the published tables of an earlier version are gone or were changed.
    """
    if spec.frequencies.protection != "noise":
        return protected
    key = _digest_of(spec, exact, protected)
    found = known_part(drawn_before.versions, "means", key, means_sha256)
    if found is None:
        epsilon = part_for(spec.frequencies, learned)
        # Refused before anything is drawn.
        spent_in_all(spec, protected, drawn_before.earlier, "", epsilon, learned)
        secret = noise_secret(spec, drawn_before.workspace, source)
        found = MeansPart.of(noisy_means(exact, epsilon, protected.frequencies.joint, secret))
    noisy = means_sha256(found)
    total, spent = spent_in_all(spec, protected, drawn_before.earlier, noisy, found.epsilon, learned)
    frequencies = replace(protected.frequencies, means=found.means, epsilon=total, spent=spent)
    tables = ProtectedTables(epsilon=found.epsilon, counted=key, noisy=noisy)
    record = protected.record.model_copy(update={**numbers_of(frequencies), "means": tables})
    return replace(protected, frequencies=frequencies, record=record)


def means_sha256(means: MeansPart) -> str:
    """SHA-256 (hex) of noisy means: of what was drawn, whatever was spent besides."""
    return hashlib.sha256(json.dumps(list(means.counts)).encode()).hexdigest()


def _digest_of(spec: ReleaseSpec, exact: IntArray, protected: Protected) -> str:
    """SHA-256 (hex) of exact means with what they are protected with, and the tables that they follow from."""
    record = protected.record
    changes = None if record.changes is None else record.changes.noisy
    said = [exact.tolist(), spec.frequencies.model_dump(mode="json", exclude={"max_epsilon"}), record.noisy, changes]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
