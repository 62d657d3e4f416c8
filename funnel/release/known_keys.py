"""Known keys: whether versions that are said to be about different people are, by their record keys or their counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from funnel.errors import LedgerError, SpecError
from funnel.joint import IntArray, Joint
from funnel.release.documents import JointDocument
from funnel.release.earlier import Earlier
from funnel.release.files import private_folder, write_whole
from funnel.release.layout import Version
from funnel.release.record import Record, Records
from funnel.release.snapshot import Snapshot
from funnel.sampling.key_column import KEY_COLUMN, stored_digests
from funnel.spec import ReleaseSpec
from funnel.tails import likeness

_BY_COUNTS = "; a sample of others by quotas, whose counts are like that, is released under another name"
# How likely counts of different people are taken for those of the same ones, at most.
FALSE_ALARM = 1e-6
FEWEST = 50
"""Records of both tables that are held against each other in a stratum at least, besides the commonest secret."""
_Counts = Counter[tuple[str, ...]]
# The first and the last 64 bits of a digest, in this order.
_DIGEST = np.dtype([("high", "<u8"), ("low", "<u8")])
Digests = npt.NDArray[np.void]


def keep_keys(folder: Path, version: Version, spec: ReleaseSpec, snapshot: Snapshot) -> None:
    """Keep the digests of the record keys of a version that is about to be drawn, 16 bytes a record, next to records.

    Nothing is kept where the spec has no record key, or a register that knows the people.
    """
    if (place := kept_keys(folder, version, spec)) is not None:
        write_whole(private_folder(folder) / place.name, _digests(snapshot).tobytes())


def kept_keys(folder: Path, version: Version, spec: ReleaseSpec) -> Path | None:
    """Where the digests of a version's record keys are kept; None where none are."""
    return _place(folder, version) if spec.record_key is not None and spec.register is None else None


def require_other_people(
    folder: Path,
    spec: ReleaseSpec,
    snapshot: Snapshot,
    content: str,
    secret: str | None,
    counted: Joint,
    earlier: Sequence[Earlier],
    asked: bool,
) -> None:
    """Make sure that a draw for people who are said to be others is not one for the same people.

    They are the same where the source or the recoded records are those of an earlier version, and where a record key
    is one of an earlier version under the same release secret. Without keys, and after the release secret was rotated,
    they are where the counts are equal, or more alike than those of independent records of one population are with a
    probability of one in a million: nearly all records are then the same.

    Parameters
    ----------
    folder : Path
        With the keys of earlier versions (`keep_keys`).
    spec : ReleaseSpec
    snapshot : Snapshot
        What would be drawn, with its record keys.
    content : str
        SHA-256 (hex) of its recoded records, by class where they are drawn by that.
    secret : str or None
        Fingerprint of the release secret, where the spec has a record key.
    counted : Joint
        Its exact counts.
    earlier : sequence of Earlier
        All versions whose rows were published or may have been seen.
    asked : bool
        Whether another draw is asked for, knowing that it reveals more: of one and the same source it is then made, and
        what it spends counts.

    Raises
    ------
    SpecError
        If they are the same, or an earlier version has keys that these cannot be held against.
    LedgerError
        If the keys of an earlier version are gone.
    """
    if spec.history is None or spec.history.people != "different":
        return
    digests = None
    for one in earlier:
        before = one.record.origin
        if before.is_of_people(snapshot.source_sha256, content):
            if not asked:
                raise _same_people(one, "are the records of", "; funnel release --again draws once more, knowingly")
        elif before.record_key is None:
            _require_other_counts(one, counted)
        elif (unlike := _unlike(one.record, spec, snapshot, secret)) is not None:
            raise SpecError(
                f"whether people of version {one.version} are among these cannot be known, since {unlike}, so nothing "
                "was drawn: name the record_key as it was then, or release other people under another name"
            )
        elif before.secret == secret:
            digests = _digests(snapshot) if digests is None else digests
            if _share_any(_kept(folder, one), digests):
                raise _same_people(one, "have record keys in common with", "")
        else:
            _require_other_counts(one, counted)


def warning_of_other_series(spec: ReleaseSpec, snapshot: Snapshot) -> str | None:
    """What the publisher is warned of where other series of the workspace are about the same people, for all we know.

    They were made of the same source, or of the same recoded records. Series of the same register are bounded together.
    """
    found = set()
    for place in sorted(spec.workspace_folder.glob("*/records/*")):
        series = place.parents[1].name
        if series == spec.name:
            continue
        records: dict[Version, Record] = {}
        # A damaged record refuses a release of its own series, and no other.
        with suppress(LedgerError):
            records = Records(place).known
        for record in records.values():
            registered = None if record.history is None else record.history.register_name
            together = spec.register is not None and registered == spec.register
            if not together and record.origin.is_of_people(snapshot.source_sha256, snapshot.content_sha256):
                found.add(series)
    if not found:
        return None
    return (
        f"the same records were released as {', '.join(sorted(found))}, in this workspace: what all these series "
        "disclose about a person adds up, and the epsilon that each says to have spent leaves out the others; one "
        "register of people who are the same bounds them together"
    )


def _unlike(record: Record, spec: ReleaseSpec, snapshot: Snapshot, secret: str | None) -> str | None:
    """Why the keys of a version cannot be held against others; None if they can, or its secret was rotated."""
    if record.history is not None and record.history.register_name is not None:
        return f"it is in the register {record.history.register_name!r}"
    if spec.record_key is None:
        return "it has a record key, and these have none"
    before = record.origin
    keys = (spec.record_key, snapshot.key_kinds)
    if before.secret == secret and (before.record_key, before.key_kinds) != keys:
        return "its record key is of columns of other names, or of another type"
    return None


def _require_other_counts(one: Earlier, counted: Joint) -> None:
    """Refuse counts that are hardly those of other people than a version's, as far as its counts are still there."""
    if one.folder is None or not one.folder.joint.exists():
        return
    before = JointDocument.read(one.folder.joint).joint
    names = [*counted.secret.columns, *counted.inputs.columns]
    common = [name for name in names if name in (*before.secret.columns, *before.inputs.columns)]
    if not common:
        return
    first, second = _counts_of(before, common), _counts_of(counted, common)
    if first == second and len(common) == len(names):
        raise _same_people(one, "are as many with every combination of values as the records of", _BY_COUNTS)
    if likeness(_strata(first, second, sum(name in counted.secret.columns for name in common))) <= FALSE_ALARM:
        raise _same_people(one, "are more alike than other people would be, once in a million versions, to", _BY_COUNTS)


def _counts_of(joint: Joint, columns: Sequence[str]) -> _Counts:
    """How often every combination of the values of some columns occurs."""
    names = (*joint.secret.columns, *joint.inputs.columns)
    places = [names.index(column) for column in columns]
    counted: Counter[tuple[str, ...]] = Counter()
    for s, x in np.argwhere(joint.counts).tolist():
        symbol = joint.secret.symbols[s] + joint.inputs.symbols[x]
        counted[tuple(symbol[place] for place in places)] += int(joint.counts[s, x])
    return counted


def _strata(first: _Counts, second: _Counts, secrets: int) -> list[tuple[IntArray, IntArray]]:
    """The counts of secrets, the first so many of all columns, by the other columns, neighbours of few records in one.

    How many records a table has with each combination of other columns may be by design, as in stratified samples.
    """
    by_given: dict[tuple[str, ...], tuple[_Counts, _Counts]] = {}
    for table, counts in enumerate((first, second)):
        for cell, count in counts.items():
            given, value = (cell[secrets:], cell[:secrets]) if secrets else ((), cell)
            by_given.setdefault(given, (Counter(), Counter()))[table][value] += count
    strata: list[tuple[_Counts, _Counts]] = []
    is_full = True
    for _, tables in sorted(by_given.items()):
        if is_full:
            strata.append(tables)
        else:
            strata[-1] = (strata[-1][0] + tables[0], strata[-1][1] + tables[1])
        pooled = strata[-1][0] + strata[-1][1]
        is_full = pooled.total() - max(pooled.values()) >= FEWEST
    if not is_full and len(strata) > 1:
        last = strata.pop()
        strata[-1] = (strata[-1][0] + last[0], strata[-1][1] + last[1])
    values = [sorted(one.keys() | other.keys()) for one, other in strata]
    return [
        (np.array([one[value] for value in there]), np.array([other[value] for value in there]))
        for there, (one, other) in zip(values, strata, strict=True)
    ]


def _same_people(one: Earlier, how: str, beside: str) -> SpecError:
    return SpecError(
        f'these {how} version {one.version}, so people are the same, though [history] says people = "different", and '
        "what both versions tell about a person together is more than the bound of each, so nothing was drawn: leave "
        'those people out, or start a series with a record_key and people = "same"'
        f"{beside}"
    )


def _digests(snapshot: Snapshot) -> Digests:
    """Digests of the keys of all records, sorted."""
    with pq.ParquetFile(snapshot.data.path) as file:
        found = [stored_digests(batch) for batch in file.iter_batches(columns=[KEY_COLUMN])]
    words = np.concatenate(found) if found else np.zeros((0, 2), dtype="<u8")
    return np.ascontiguousarray(words[np.lexsort((words[:, 1], words[:, 0]))]).view(_DIGEST).ravel()


def _kept(folder: Path, one: Earlier) -> Digests:
    path = _place(folder, one.version)
    try:
        found = np.fromfile(path, dtype=_DIGEST)
    except OSError as error:
        raise LedgerError(
            f"{path} is gone, so nobody knows whether people of version {one.version} are among these; restore it from "
            "a backup"
        ) from error
    if len(found) != one.record.rows:
        raise LedgerError(f"{path} is damaged; restore it from a backup")
    return found


def _share_any(one: Digests, other: Digests) -> bool:
    """Whether two sorted arrays of distinct digests have one in common."""
    words = np.concatenate([one, other])
    words = words[np.lexsort((words["low"], words["high"]))]
    return bool(np.any(words[1:] == words[:-1]))


def _place(folder: Path, version: Version) -> Path:
    return folder / f"{version}.keys"
