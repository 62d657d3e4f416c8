"""Protected: the public frequencies of counted ones, drawn once for a table and its settings, and what they cost."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

import numpy as np

from funnel.errors import DataError, LedgerError, SpecError
from funnel.frequencies import Frequencies, protect
from funnel.frequencies.moves import Moves, noisy_moves
from funnel.frequencies.noise import NoiseSecret
from funnel.frequencies.public_counts import part_for, too_much, with_changes
from funnel.frequencies.selection import Share
from funnel.joint import Joint
from funnel.protocol import INVARIANT
from funnel.release.decision import Earlier
from funnel.release.document import Part
from funnel.release.documents import joint_document
from funnel.release.frequencies_document import ChangesPart, FrequenciesDocument, MovesPart, frequencies_document
from funnel.release.layout import ReleaseFolder
from funnel.release.protection import ProtectedCounts, ProtectedTables, Protection, numbers_of
from funnel.release.record import Record
from funnel.release.records import Records
from funnel.release.secret import noise_root
from funnel.settings.protection_settings import FrequencySettings
from funnel.source import file_digest
from funnel.spec import ReleaseSpec

PartT = TypeVar("PartT", bound=Part)


@dataclass(frozen=True, eq=False)
class Protected:
    """Public frequencies, and how the record of a version names them.

    Attributes
    ----------
    frequencies : Frequencies
    record : ProtectedCounts
    reused : bool
        Whether their noise was drawn before, so that nothing is spent.
    """

    frequencies: Frequencies
    record: ProtectedCounts
    reused: bool

    @property
    def protection(self) -> Protection:
        """What is public of how they are protected."""
        return self.record.public


@dataclass(frozen=True)
class DrawnBefore:
    """Where noise is looked for that was drawn before, so that none is drawn twice.

    Attributes
    ----------
    earlier : sequence of Earlier
        All versions of the series whose rows were published or may have been seen.
    workspace : Path
        Private folder of the series.
    held : Earlier or None
        A version that waits for approval: its noise is used, but nothing was spent for it.
    """

    earlier: Sequence[Earlier]
    workspace: Path
    held: Earlier | None = None

    @property
    def versions(self) -> tuple[Earlier, ...]:
        """All of these, the one that waits first."""
        return (*([] if self.held is None else [self.held]), *self.earlier)


def public_frequencies(
    spec: ReleaseSpec,
    counted: Joint,
    learned: Share,
    drawn_before: DrawnBefore,
    values: str | None = None,
    tables: int = 0,
    source: str | None = None,
) -> Protected:
    """Make counted frequencies public ones, or find those that were made of the same counts.

    Noise that is drawn again for the same counts would tell more of them with every draw, so it is drawn once for a
    source, a table and its epsilon: it is that of a version that was published with them, else derived from these and a
    secret of the series, so that a plan and a release have the same.

    Parameters
    ----------
    spec : ReleaseSpec
    counted : Joint
        Exact counts, over all combinations of values where they are to have noise.
    learned : Share
        What it cost to learn these values.
    drawn_before : DrawnBefore
    values : str, optional
        Digest of what these values were learned from (`funnel.release.learned`), where they were.
    tables : int
        For how many tables beside the counts there has to be a part of epsilon: for `public_changes` where earlier
        versions are about the same people, for `funnel.release.protected_means.public_means` where values are as they
        are as well, and for `funnel.release.protected_rows.public_rows` where these are counts of first rows of units.
    source : str, optional
        SHA-256 (hex) of the source. Versions of the series that were made of it are about the same people, whatever the
        spec says, and what they spent counts. Another source has other noise, also where its counts are the same:
        noise is derived from it.

    Raises
    ------
    SpecError
        If noise would be drawn and more spent than the spec allows in all.
    LedgerError
        If the published frequencies of an earlier version are gone or were changed.
    """
    settings, earlier = spec.frequencies, drawn_before.earlier
    key = _digest_of(spec, counted, source)
    if settings.protection != "noise":
        frequencies = protect(counted, settings)
        open_before = _unprotected(spec, earlier)
        record = ProtectedCounts(
            **numbers_of(frequencies), unprotected=open_before, counted=key, noisy=None, values=None
        )
        return Protected(frequencies, record, False)
    document = _known(drawn_before.versions, key)
    before = _draws(spec, earlier, source)
    if document is None:
        spent = float(sum(before.values()))
        frequencies = protect(
            counted,
            settings,
            spent_before=spent,
            learned=learned,
            tables=tables,
            secret=noise_secret(spec, drawn_before.workspace, source),
        )
        document = frequencies_document(frequencies)
        reused = False
    else:
        # Where tables come beside counts that are paid for, it is these alone that may cost something.
        paid = tables > 0 and document.noisy_sha256 in before
        own = {} if paid else {document.noisy_sha256: Decimal(repr(settings.epsilon))}
        # Other tables may have been published with the same counts.
        frequencies = replace(
            document.frequencies,
            epsilon=settings.epsilon,
            spent=_spent(settings, before, own),
            changes=None,
            rows=None,
            means=None,
        )
        _require_same_table(frequencies, counted)
        reused = True
    record = ProtectedCounts(
        **numbers_of(frequencies),
        unprotected=_unprotected(spec, earlier),
        counted=key,
        noisy=document.noisy_sha256,
        values=values,
    )
    return Protected(frequencies, record, reused)


def tables_beside(spec: ReleaseSpec, moving: bool, several: bool) -> int:
    """How many noisy tables a version has beside its counts: of changes, means, and rows of units.

    Parameters
    ----------
    spec : ReleaseSpec
    moving : bool
        Whether there are earlier versions about the same people.
    several : bool
        Whether these have several rows.
    """
    return int(moving) + int(moving and has_means(spec)) + int(several)


def has_means(spec: ReleaseSpec) -> bool:
    """Whether later versions about the same people tell how many records each value is published for on average."""
    return spec.mechanism.name == INVARIANT and not spec.follows_units


def public_changes(
    spec: ReleaseSpec,
    protected: Protected,
    exact: Sequence[Moves],
    versions: Sequence[Joint],
    learned: Share,
    drawn_before: DrawnBefore,
    more: bool = False,
    source: str | None = None,
) -> Protected:
    """Add to public frequencies how people changed since earlier versions, with noise that is drawn once as well.

    Parameters
    ----------
    spec : ReleaseSpec
    protected : Protected
        The counts of this version.
    exact : sequence of Moves
        Of the people whose last version each one is, since every version of the register; none of a first version.
    versions : sequence of Joint
        Published counts of these.
    learned, drawn_before, source
        As of `public_frequencies`.
    more : bool
        As of `spent_in_all`.

    Raises
    ------
    SpecError
        If noise would be drawn and more spent than the spec allows in all.
    LedgerError
        If the published tables of an earlier version are gone or were changed.
    """
    settings = spec.frequencies
    if settings.protection != "noise" or not exact:
        return protected
    key = _digest_of_moves(spec, exact, (*versions, protected.frequencies.joint), protected.record.counted)
    found = known_part(drawn_before.versions, "changes", key, changes_sha256)
    epsilon = part_for(settings, learned) if found is None else found.epsilon
    if found is None:
        # Refused before anything is drawn.
        spent_in_all(spec, protected, drawn_before.earlier, "", epsilon, learned, more)
        secret = noise_secret(spec, drawn_before.workspace, source)
        found = ChangesPart.of(noisy_moves(exact, versions, protected.frequencies.joint, epsilon, secret))
    noisy = changes_sha256(found)
    total, spent = spent_in_all(spec, protected, drawn_before.earlier, noisy, epsilon, learned, more)
    frequencies = with_changes(protected.frequencies, found.changes, total, spent)
    record = protected.record.model_copy(
        update={
            **numbers_of(frequencies),
            "changes": ProtectedTables(epsilon=epsilon, counted=key, noisy=noisy),
        }
    )
    return replace(protected, frequencies=frequencies, record=record)


def noise_secret(spec: ReleaseSpec, workspace: Path, source: str | None) -> NoiseSecret:
    """What noise on the tables of a source is derived from."""
    return NoiseSecret(noise_root(workspace, spec.name), source or "")


def changes_of(protected: Protected, rows_of: Earlier, spec: ReleaseSpec, earlier: Sequence[Earlier]) -> Protected:
    """The same for a version that takes over rows of an earlier one: with the tables that these were drawn by.

    Raises
    ------
    LedgerError
        If the published frequencies of that version are gone or were changed.
    """
    before = rows_of.record.frequencies
    if before.changes is None or before.epsilon is None or before.noisy != protected.record.noisy:
        return protected
    document = published_frequencies(rows_of)
    if document.changes is None or changes_sha256(document.changes) != before.changes.noisy:
        raise other_noise(rows_of)
    spent = sum({**_draws(spec, earlier), **before.draws}.values(), Decimal(0))
    frequencies = with_changes(protected.frequencies, document.changes.changes, before.epsilon, float(spent))
    frequencies = replace(frequencies, means=None if document.means is None else document.means.means)
    tables = {"changes": before.changes, "means": before.means}
    record = protected.record.model_copy(update={**numbers_of(frequencies), **tables})
    return replace(protected, frequencies=frequencies, record=record)


def spent_in_all(
    spec: ReleaseSpec,
    protected: Protected,
    earlier: Sequence[Earlier],
    noisy: str,
    epsilon: float,
    learned: Share,
    more: bool = False,
) -> tuple[float, float]:
    """Epsilon of a version with more tables, and of all versions about the same people; each draw counts once.

    Parameters
    ----------
    spec, protected, earlier, learned
        As of `public_changes`.
    noisy : str
        Digest of these tables.
    epsilon : float
        What they cost.
    more : bool
        Whether other tables are to come, so that what is left of the epsilon of the version is not all for counts.

    Raises
    ------
    SpecError
        If that is more than the spec allows.
    """
    settings, noise = spec.frequencies, protected.frequencies.noise
    if noise is None:
        raise ValueError("only what is protected by noise has cost anything")
    tables = {noisy: epsilon, **{one.noisy: one.epsilon for one in protected.record.tables}}
    each = [noise.epsilon, learned.epsilon, *tables.values()]
    exact, total = sum(map(Fraction, each)), settings.epsilon
    if exact > Fraction(total):
        # Counts that were drawn when nothing went to other tables.
        total = float(sum(Decimal(repr(one)) for one in each))
        while Fraction(total) < exact:
            total = math.nextafter(total, math.inf)
    parts = {table: Decimal(repr(cost)) for table, cost in tables.items()}
    before, counts = _draws(spec, earlier), protected.record.noisy or ""
    rest = Decimal(repr(total)) - sum(parts.values())
    own = {counts: before.get(counts, rest) if more else rest, **parts}
    return total, _spent(settings, before, own)


def changes_sha256(changes: ChangesPart) -> str:
    """SHA-256 (hex) of noisy tables: of what was drawn, whatever was spent besides."""
    said = [one.model_dump(mode="json") for one in changes.since]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _digest_of_moves(spec: ReleaseSpec, exact: Sequence[Moves], versions: Sequence[Joint], counted: str) -> str:
    """SHA-256 (hex) of exact tables with what they are of, what they are protected with, and the counts beside them."""
    tables = [MovesPart.of(moves).model_dump(mode="json") for moves in exact]
    values = [[list(one.secret.symbols), list(one.inputs.symbols)] for one in versions]
    said = [tables, values, spec.frequencies.model_dump(mode="json", exclude={"max_epsilon"}), counted]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def known_part(versions: Sequence[Earlier], name: str, key: str, digest: Callable[[PartT], str]) -> PartT | None:
    """What the last of these versions with the same exact tables and settings published of them; None if none has them.

    Parameters
    ----------
    versions : sequence of Earlier
    name : "changes", "rows" or "means"
    key : str
        Digest of the exact tables and settings.
    digest : callable
        Of the noisy tables.

    Raises
    ------
    LedgerError
        If what was published is gone or was changed.
    """
    for one in reversed(versions):
        kept = getattr(one.record.frequencies, name)
        if one.folder is None or kept is None or kept.counted != key:
            continue
        part: PartT | None = getattr(published_frequencies(one), name)
        if part is None or digest(part) != kept.noisy:
            raise other_noise(one)
        return part
    return None


def _digest_of(spec: ReleaseSpec, counted: Joint, source: str | None) -> str:
    """SHA-256 (hex) of exact counts with what they are protected with and what they were counted in.

    Other records with the same counts have other noise: the same noise would tell that no count has changed.
    """
    settings = spec.frequencies.model_dump(mode="json", exclude={"max_epsilon"})
    said = [joint_document(counted).content(), settings, source]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _known(versions: Sequence[Earlier], key: str) -> FrequenciesDocument | None:
    """The frequencies of the last of these versions with the same counts and settings; None if none has them."""
    for one in reversed(versions):
        frequencies = one.record.frequencies
        if one.folder is None or frequencies.counted != key:
            continue
        document = published_frequencies(one)
        if document.noisy_sha256 != frequencies.noisy:
            raise other_noise(one)
        return document
    return None


def published_frequencies(one: Earlier) -> FrequenciesDocument:
    """The frequencies of a version that is there, as they were published.

    Raises
    ------
    LedgerError
        If they are gone or were changed.
    """
    if one.folder is None:
        raise ValueError("a version that is there has a folder")
    folder = ReleaseFolder(one.folder)
    known = one.record.files.get(folder.frequencies.name)
    try:
        if known is not None and file_digest(folder.frequencies) != known:
            raise DataError(f"{folder.frequencies} was changed since it was published")
        return FrequenciesDocument.read(folder.frequencies)
    except DataError as error:
        raise LedgerError(
            f"{error}; restore it from a backup: other noise on the same counts would tell more of them"
        ) from error


def other_noise(one: Earlier) -> LedgerError:
    """The error of published frequencies that are not those of the record."""
    if one.folder is None:
        raise ValueError("a version that is there has a folder")
    folder = ReleaseFolder(one.folder)
    return LedgerError(
        f"{folder.frequencies} is not what version {one.version} was made from; restore it from a backup"
    )


def _require_same_table(frequencies: Frequencies, counted: Joint) -> None:
    public = frequencies.joint
    if (public.secret, public.inputs) != (counted.secret, counted.inputs) or not np.array_equal(
        public.counts.shape, counted.counts.shape
    ):
        raise DataError(
            "the frequencies in the workspace are of other values than the counted ones; remove the folder frequencies "
            "in the workspace of this series, and they are made anew"
        )


def _before(spec: ReleaseSpec, earlier: Sequence[Earlier], source: str | None = None) -> list[Record]:
    """The records of all versions before about the same people: as the spec says, or of one and the same source."""
    if spec.register is None:
        return [one.record for one in earlier if one.record.origin.source == source]
    found = {one.record.to_bytes(): one.record for one in earlier}
    for place in sorted(spec.workspace_folder.glob("*/records/*")):
        for record in Records(place).known.values():
            if record.history is not None and record.history.register_name == spec.register:
                found[record.to_bytes()] = record
    return list(found.values())


def require_records(spec: ReleaseSpec, earlier: Sequence[Earlier], versions: Sequence[str]) -> None:
    """Make sure that it is known what versions of other series of the register have spent.

    Parameters
    ----------
    spec : ReleaseSpec
    earlier : sequence of Earlier
    versions : sequence of str
        All that the register knows, as ``"series/1.0.0"``; those of the series itself are reconciled elsewhere.

    Raises
    ------
    LedgerError
        If the record of one of them is not found.
    """
    if spec.frequencies.protection != "noise":
        return
    known = {record.history.name for record in _before(spec, earlier) if record.history is not None}
    unknown = [one for one in versions if one not in known and not one.startswith(f"{spec.name}/")]
    if unknown:
        raise LedgerError(
            f"the register {spec.register!r} knows {unknown[0]}, whose record is not in {spec.workspace_folder}, so "
            "nobody knows what its noise has spent on the same people; restore the record from a backup"
        )


def _draws(spec: ReleaseSpec, earlier: Sequence[Earlier], source: str | None = None) -> dict[str, Decimal]:
    """What every draw of noise cost that versions before published about these people, by what was drawn."""
    found: dict[str, Decimal] = {}
    for one in _before(spec, earlier, source):
        found.update(one.frequencies.draws)
    return found


def _spent(settings: FrequencySettings, before: Mapping[str, Decimal], own: Mapping[str, Decimal]) -> float:
    """Epsilon (nats) of all draws together, each of which counts once.

    Raises
    ------
    SpecError
        If that is more than the settings allow.
    """
    spent = sum({**before, **own}.values(), Decimal(0))
    if settings.max_epsilon is not None and spent > Decimal(repr(settings.max_epsilon)):
        new = sum(cost for draw, cost in own.items() if draw not in before)
        raise SpecError(too_much(float(spent - new), settings.max_epsilon, float(new)))
    return float(spent)


def _unprotected(spec: ReleaseSpec, earlier: Sequence[Earlier]) -> int:
    """How many versions before about the same people were published without noise."""
    return sum(one.frequencies.noisy is None for one in _before(spec, earlier))
