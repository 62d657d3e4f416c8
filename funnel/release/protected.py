"""Protected: the public frequencies of counted ones, drawn once for a table and its settings, and what they cost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from funnel.errors import DataError, LedgerError, SpecError
from funnel.frequencies.noise import NoiseSecret
from funnel.frequencies.public_counts import Frequencies, protect, too_much
from funnel.frequencies.selection import NOTHING, Share
from funnel.joint import Joint
from funnel.readers.source_files import file_digest
from funnel.release.documents import JointDocument
from funnel.release.earlier import Earlier
from funnel.release.frequencies_document import FrequenciesDocument, frequencies_document
from funnel.release.protection import Draw, ProtectedCounts, Protection, numbers_of
from funnel.release.record import Record, Records
from funnel.release.secret import noise_root
from funnel.settings.protection_settings import FrequencySettings
from funnel.spec import ReleaseSpec

SeriesDraw = tuple[str, str, str]
"""The series that noise was drawn for, and the draw."""


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


@dataclass(frozen=True, eq=False)
class ProtectionContext:
    """What a version is known to be by those who protect its counts; noise that was drawn before is never drawn twice.

    Attributes
    ----------
    spec : ReleaseSpec
    earlier : sequence of Earlier
        All versions of the series whose rows were published or may have been seen.
    held : Earlier or None
        A version that waits for approval: its noise is used, but nothing was spent for it.
    learned : Share
        What it cost to learn the values.
    source : str or None
        SHA-256 (hex) of the source. Versions of the series that were made of it are about the same people, whatever the
        spec says, and what they spent counts. Another source has other noise, also where its counts are the same:
        noise is derived from it.
    snapshot : str or None
        Digest of the recoded records. Versions with the same ones are about the same people too, in whatever file.
    """

    spec: ReleaseSpec
    earlier: Sequence[Earlier] = ()
    held: Earlier | None = None
    learned: Share = NOTHING
    source: str | None = None
    snapshot: str | None = None

    @property
    def versions(self) -> tuple[Earlier, ...]:
        """Where noise of before is looked for, the version that waits first."""
        return (*([] if self.held is None else [self.held]), *self.earlier)

    @property
    def is_noisy(self) -> bool:
        """Whether counts have noise."""
        return self.spec.frequencies.kind.is_noisy

    @property
    def noise_secret(self) -> NoiseSecret:
        """What the noise of the series and of this source is derived from."""
        workspace = self.spec.workspace_folder / self.spec.name
        return NoiseSecret(noise_root(workspace, self.spec.name), self.source or "")

    @property
    def settings(self) -> dict[str, object]:
        """How counts are protected, as a part of what the same noise is for."""
        return self.spec.frequencies.model_dump(mode="json", exclude={"max_epsilon"})


def public_frequencies(
    context: ProtectionContext, counted: Joint, values: str | None = None, tables: int = 0
) -> Protected:
    """Make counted frequencies public ones, or find those that were made of the same counts.

    Noise that is drawn again for the same counts would tell more of them with every draw, so it is drawn once for a
    source, a table and its epsilon: it is that of a version that was published with them, else derived from these and a
    secret of the series, so that a plan and a release have the same.

    Parameters
    ----------
    context : ProtectionContext
    counted : Joint
        Exact counts, over all combinations of values where they are to have noise.
    values : str, optional
        Digest of what these values were learned from (`funnel.release.learned`), where they were.
    tables : int
        For how many tables beside the counts there has to be a part of epsilon, as
        `funnel.release.protected_tables.extra_tables` says.

    Raises
    ------
    SpecError
        If noise would be drawn and more spent than the spec allows in all.
    LedgerError
        If the published frequencies of an earlier version are gone or were changed.
    """
    settings, unprotected = context.spec.frequencies, _unprotected(context)
    key = _digest_of(context, counted)
    if not context.is_noisy:
        frequencies = protect(counted, settings)
        record = ProtectedCounts(
            **numbers_of(frequencies), unprotected=unprotected, counted=key, noisy=None, values=None
        )
        return Protected(frequencies, record, False)
    document: FrequenciesDocument | None = published_before(context.versions, key)
    before = draws_of(context)
    if document is None:
        spent = float(sum(before.values()))
        frequencies = protect(
            counted,
            settings,
            spent_before=spent,
            learned=context.learned,
            tables=tables,
            secret=context.noise_secret,
        )
        document = frequencies_document(frequencies)
        reused = False
    else:
        # Where tables come beside counts that are paid for, it is these alone that may cost something.
        draw = key, document.noisy_sha256
        paid = tables > 0 and (context.spec.name, *draw) in before
        own = {} if paid else {(context.spec.name, *draw): Decimal(repr(settings.epsilon))}
        # Other tables may have been published with the same counts.
        frequencies = replace(
            document.frequencies,
            epsilon=settings.epsilon,
            spent=spent_by(settings, before, own),
            changes=None,
            rows=None,
            means=None,
            departures=None,
        )
        _require_same_table(frequencies, counted)
        reused = True
    if counted.inputs.columns == context.spec.inputs:
        # Classes are not made of combinations.
        frequencies = replace(frequencies, impossible=context.spec.impossible)
    record = ProtectedCounts(
        **numbers_of(frequencies),
        unprotected=unprotected,
        counted=key,
        noisy=document.noisy_sha256,
        values=values,
    )
    return Protected(frequencies, record, reused)


def _digest_of(context: ProtectionContext, counted: Joint) -> str:
    """Digest of exact counts with what they are protected with and what they were counted in.

    Other records with the same counts have other noise: the same noise would tell that no count has changed.
    """
    return digest_of([JointDocument.like(counted).content(), context.settings, context.source])


def digest_of(counted: Sequence[object]) -> str:
    """SHA-256 (hex) of exact tables, with all that decides which noise they have."""
    return hashlib.sha256(json.dumps(counted, sort_keys=True).encode()).hexdigest()


def published_before(versions: Sequence[Earlier], key: str, name: str | None = None) -> Any:
    """The frequencies of the last of these versions with the same counts and settings; None if none has them.

    Or, by their name, the tables beside them: "changes", "rows", "means" or "departures".

    Raises
    ------
    LedgerError
        If what was published is gone or was changed.
    """
    for one in reversed(versions):
        kept: Any = one.record.frequencies if name is None else getattr(one.record.frequencies, name)
        if one.folder is None or kept is None or kept.counted != key:
            continue
        document = published_frequencies(one)
        found = document if name is None else getattr(document, name)
        if found is None or found.noisy_sha256 != kept.noisy:
            raise other_noise(one)
        return found
    return None


def published_frequencies(one: Earlier) -> FrequenciesDocument:
    """The frequencies of a version that is there, as they were published.

    Raises
    ------
    LedgerError
        If they are gone or were changed.
    """
    folder = one.place
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
    return LedgerError(
        f"{one.place.frequencies} is not what version {one.version} was made from; restore it from a backup"
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


def _before(context: ProtectionContext) -> list[Record]:
    """The records of all versions before about the same people: as the spec says, or of the same source or records."""
    spec = context.spec
    if spec.register is None:
        records = [one.record for one in context.earlier]
        return [one for one in records if one.origin.is_of_people(context.source, context.snapshot)]
    found = {one.record.to_bytes(): one.record for one in context.earlier}
    for place in sorted(spec.workspace_folder.glob("*/records/*")):
        for record in Records(place).known.values():
            if record.history is not None and record.history.register_name == spec.register:
                found[record.to_bytes()] = record
    return list(found.values())


def require_records(context: ProtectionContext, versions: Sequence[str]) -> None:
    """Make sure that it is known what versions of other series of the register have spent.

    Parameters
    ----------
    context : ProtectionContext
    versions : sequence of str
        All that the register knows, as ``"series/1.0.0"``; those of the series itself are reconciled elsewhere.

    Raises
    ------
    LedgerError
        If the record of one of them is not found.
    """
    if not context.is_noisy:
        return
    spec = context.spec
    known = {record.history.name for record in _before(context) if record.history is not None}
    unknown = [one for one in versions if one not in known and not one.startswith(f"{spec.name}/")]
    if unknown:
        raise LedgerError(
            f"the register {spec.register!r} knows {unknown[0]}, whose record is not in {spec.workspace_folder}, so "
            "nobody knows what its noise has spent on the same people; restore the record from a backup"
        )


def draws_of(context: ProtectionContext) -> dict[SeriesDraw, Decimal]:
    """What every draw of noise cost that versions before published about these people."""
    found: dict[SeriesDraw, Decimal] = {}
    for one in _before(context):
        followed = None if one.history is None else one.history.name
        series = context.spec.name if followed is None else followed.rpartition("/")[0]
        found |= in_series(series, one.frequencies.draws)
    return found


def in_series(series: str, draws: Mapping[Draw, Decimal]) -> dict[SeriesDraw, Decimal]:
    """The same with the series, whose noise is derived from a secret of its own."""
    return {(series, *draw): cost for draw, cost in draws.items()}


def spent_by(
    settings: FrequencySettings, before: Mapping[SeriesDraw, Decimal], own: Mapping[SeriesDraw, Decimal]
) -> float:
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


def _unprotected(context: ProtectionContext) -> int:
    """How many versions before about the same people were published without noise, where people are followed."""
    records = [] if context.spec.register is None else _before(context)
    return sum(one.frequencies.noisy is None for one in records)
