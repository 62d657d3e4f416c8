"""Protected: the public frequencies of counted ones, drawn once for a table and its settings, and what they cost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import numpy as np

from funnel.errors import DataError, LedgerError
from funnel.frequencies import Frequencies, protect
from funnel.frequencies.frequencies import spent_with
from funnel.frequencies.selection import Share
from funnel.joint import Joint
from funnel.release.cache import Cache
from funnel.release.decision import Earlier
from funnel.release.documents import joint_document
from funnel.release.frequencies_document import FrequenciesDocument, frequencies_document
from funnel.release.layout import ReleaseFolder
from funnel.release.protection import ProtectedCounts, Protection, numbers_of
from funnel.release.record import Record
from funnel.release.records import Records
from funnel.source import file_digest
from funnel.spec import ReleaseSpec

_FILE = "frequencies.json"


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


def public_frequencies(
    spec: ReleaseSpec,
    counted: Joint,
    learned: Share,
    earlier: Sequence[Earlier],
    workspace: Path,
    values: str | None = None,
    held: Earlier | None = None,
) -> Protected:
    """Make counted frequencies public ones, or find those that were made of the same counts.

    Noise that is drawn again for the same counts would tell more of them with every draw, so it is drawn once for a
    table and its settings: it is that of a version that was published with them, else that in the workspace.

    Parameters
    ----------
    spec : ReleaseSpec
    counted : Joint
        Exact counts, over all combinations of values where they are to have noise.
    learned : Share
        What it cost to learn these values.
    earlier : sequence of Earlier
        All versions of the series whose rows were published or may have been seen.
    workspace : Path
        Private folder of the series.
    values : str, optional
        Digest of what these values were learned from (`funnel.release.learned`), where they were.
    held : Earlier, optional
        A version that waits for approval: its noise is used, but nothing was spent for it.

    Raises
    ------
    SpecError
        If noise would be drawn and more spent than the spec allows in all.
    LedgerError
        If the published frequencies of an earlier version are gone or were changed.
    """
    settings = spec.frequencies
    key = _digest_of(spec, counted)
    if settings.protection != "noise":
        frequencies = protect(counted, settings)
        before = _unprotected(spec, earlier)
        record = ProtectedCounts(**numbers_of(frequencies), unprotected=before, counted=key, noisy=None, values=None)
        return Protected(frequencies, record, False)
    cache = Cache(workspace / "frequencies")
    document, kept = _known((*([] if held is None else [held]), *earlier), key), cache.find(key)
    if document is None and kept is not None:
        document = FrequenciesDocument.from_json(kept[_FILE], _FILE)
    spent = _spent(spec, earlier, None if document is None else document.noisy_sha256)
    if document is None:
        frequencies = protect(counted, settings, spent_before=spent, learned=learned)
        document = frequencies_document(frequencies)
        cache.keep(key, {_FILE: document.to_bytes()})
        reused = False
    else:
        frequencies = replace(document.frequencies, spent=spent_with(settings, spent))
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


def _digest_of(spec: ReleaseSpec, counted: Joint) -> str:
    """SHA-256 (hex) of exact counts with what they are protected with, whatever funnel counts them."""
    settings = spec.frequencies.model_dump(mode="json", exclude={"total"})
    said = [joint_document(counted).content(), settings]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _known(versions: Sequence[Earlier], key: str) -> FrequenciesDocument | None:
    """The frequencies of the last of these versions with the same counts and settings; None if none has them."""
    for one in reversed(versions):
        frequencies = one.record.frequencies
        if one.folder is None or frequencies is None or frequencies.counted != key:
            continue
        folder = ReleaseFolder(one.folder)
        known = one.record.files.get(folder.frequencies.name)
        try:
            if known is not None and file_digest(folder.frequencies) != known:
                raise DataError(f"{folder.frequencies} was changed since it was published")
            document = FrequenciesDocument.read(folder.frequencies)
        except DataError as error:
            raise LedgerError(
                f"{error}; restore it from a backup: other noise on the same counts would tell more of them"
            ) from error
        if document.noisy_sha256 != frequencies.noisy:
            raise LedgerError(
                f"{folder.frequencies} is not what version {one.version} was made from; restore it from a backup"
            )
        return document
    return None


def _require_same_table(frequencies: Frequencies, counted: Joint) -> None:
    public = frequencies.joint
    if (public.secret, public.inputs) != (counted.secret, counted.inputs) or not np.array_equal(
        public.counts.shape, counted.counts.shape
    ):
        raise DataError(
            "the frequencies in the workspace are of other values than the counted ones; remove the folder frequencies "
            "in the workspace of this series, and they are made anew"
        )


def _before(spec: ReleaseSpec, earlier: Sequence[Earlier]) -> list[Record]:
    """The records of all versions before that are about the same people, as far as the spec says."""
    if spec.history is None or spec.history.people == "different":
        # Without a word about people there is no version before, or the run ends where that is found out.
        return []
    found = {one.record.to_bytes(): one.record for one in earlier}
    for place in sorted(spec.workspace_folder.glob("*/records/*")):
        for record in Records(place).known.values():
            if record.history is not None and record.history.register_name == spec.register:
                found[record.to_bytes()] = record
    return list(found.values())


def _spent(spec: ReleaseSpec, earlier: Sequence[Earlier], noisy: str | None) -> float:
    """Epsilon that versions before spent on these people; noise that is used again counts once, and this one not."""
    draws = {
        one.frequencies.noisy: one.frequencies.epsilon
        for one in _before(spec, earlier)
        if one.frequencies is not None and one.frequencies.epsilon is not None
    }
    draws.pop(noisy, None)
    # As the decimal numbers that people wrote.
    return float(sum(Decimal(repr(epsilon)) for epsilon in draws.values()))


def _unprotected(spec: ReleaseSpec, earlier: Sequence[Earlier]) -> int:
    """How many versions before about the same people were published without noise."""
    return sum(one.frequencies is None or one.frequencies.noisy is None for one in _before(spec, earlier))
