"""Register files: the entries of a register read anew, checked against the digests that they and the head state."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from funnel.errors import DataError
from funnel.recount.channel import Symbols
from funnel.recount.chapters import Chapter, Rows, State
from funnel.recount.expected import Expected
from funnel.recount.left_open import OpenTables
from funnel.recount.move_distribution import MoveDistribution, distribution_of_rows, distribution_since
from funnel.recount.noisy_moves import NoisyChanges, NoisyDepartures, NoisyMeans, NoisyRows, Positive
from funnel.recount.reading import read
from funnel.recount.register_tables import (
    COLUMNS,
    DONORS,
    ENTRY,
    EXPECTED,
    FORGOTTEN,
    PEOPLE,
    ROW_DONORS,
    ROWS,
    Count,
    damaged,
    file_content,
    file_digest,
    table_rows,
)
from funnel.recount.run_results import once

if TYPE_CHECKING:
    import duckdb

_Observers = Annotated[tuple[str, ...], lambda said: said in (("transitions",), ("transitions", "mover-stayer"))]
_Secrets = Annotated[str, lambda said: said in ("all", "current")]
_Pair = Annotated[tuple[Count, ...], lambda said: len(said) == 2]
# Those that an entry is read with; tables of people are as large as these are many, and counted by queries.
_TABLES = tuple(name for name in COLUMNS if name not in (PEOPLE, ROWS, FORGOTTEN, DONORS, ROW_DONORS))
_FOLDER = re.compile(r"[0-9]{4,}-[a-z0-9-]+-[0-9]+\.[0-9]+\.[0-9]+")


@dataclass(frozen=True)
class Entry:
    """What a register keeps of one version.

    Attributes
    ----------
    folder : Path
    chapter : Chapter
    observers : tuple of str
        For whom it says that it is bounded.
    secrets : str
        Of which versions it says that secrets are: "all" or "current".
    effective : tuple of tuple of int, b × a
        The channel that was published.
    fingerprint : str
        Of the secret that records are known by.
    secret_columns, input_columns, output_columns : tuple of str
    digest, previous : str or None
        SHA-256 of this ``entry.json``, and what it says of the one before.
    noise : float or None
        Epsilon (nats) of the noise that its counts of secret and input are said to have; None where they have none.
    moves : NoisyChanges or None
        How people changed since earlier versions, with noise; the chapter then has distributions and no changes.
    row_moves : NoisyRows or None
        How rows of people with several follow each other, with noise.
    means : NoisyMeans or None
        What its answers were put right by, where values are as they are.
    departures : NoisyDepartures or None
        By how much its answers are more common on average than its effective channel leads to expect.
    expected : Expected or None
        With noise: how many people it says are expected to have which history from then on.
    second_rows : tuple of (int, int) or None
        Without noise, of people who may have several rows: by secret, how many have a second one like the first, and
        unlike it; where that is counted.
    left_open : OpenTables or None
        Where the bound is to hold under every set of tables that its noise leaves open: what these follow from.
    classes : JSON object or None
        Where whole records are published: the classes that inputs are, as ``classes.json`` has them.
    """

    folder: Path
    chapter: Chapter
    observers: tuple[str, ...]
    secrets: str
    effective: tuple[tuple[int, ...], ...]
    fingerprint: str
    secret_columns: tuple[str, ...]
    input_columns: tuple[str, ...]
    output_columns: tuple[str, ...]
    digest: str
    previous: str | None
    noise: float | None = None
    moves: NoisyChanges | None = None
    row_moves: NoisyRows | None = None
    means: NoisyMeans | None = None
    departures: NoisyDepartures | None = None
    expected: Expected | None = None
    second_rows: tuple[tuple[int, int], ...] | None = None
    left_open: OpenTables | None = None
    classes: Mapping[str, Any] | None = None

    @property
    def donors(self) -> Path | None:
        """The table of whose records were published, where these are whole."""
        if self.classes is None:
            return None
        return self.folder / (DONORS if self.chapter.units is None else ROW_DONORS)

    @property
    def told(self) -> tuple[Symbols, tuple[tuple[int, ...], ...]]:
        """What is published, and its weights given every input: of whole records the class, however it comes about."""
        if self.classes is None:
            return self.chapter.outputs, self.effective
        k = self.chapter.a
        both = zip(self.effective[:k], self.effective[k:], strict=True)
        return self.chapter.inputs, tuple(tuple(map(sum, zip(*rows, strict=True))) for rows in both)

    @property
    def protected(self) -> bool:
        """Whether nothing exact is to be in it but who has which history, because its counts have noise."""
        return self.noise is not None

    @property
    def people(self) -> Path:
        """The table of its people: where each stands after the version."""
        return self.folder / PEOPLE

    @property
    def rows(self) -> Path:
        """The table of its records: that of its people, unless they have several rows each."""
        return self.people if self.chapter.units is None else self.folder / ROWS


def entry_folders(register: Path) -> list[Path]:
    """The folders of the entries of a register, in the order of publication.

    Raises
    ------
    DataError
        If there is no such folder, or one of its entries is missing.
    """
    try:
        found = sorted(path for path in register.iterdir() if _FOLDER.fullmatch(path.name) and path.is_dir())
    except OSError:
        raise DataError(f"the register {register} cannot be read; name its folder") from None
    for place, path in enumerate(found):
        if int(path.name.partition("-")[0]) != place:
            raise damaged(path, f"is not number {place}, which is missing")
    return found


def read_entries(database: duckdb.DuckDBPyConnection, folders: Sequence[Path]) -> tuple[Entry, ...]:
    """Read entries in their order, each with the distributions of changes that its noisy tables stand for.

    Raises
    ------
    DataError
        As `read_entry`; and if noisy tables do not fit the versions that they are about.
    """
    entries: list[Entry] = []
    for folder in folders:
        entry = read_entry(database, folder)
        try:
            distributions = _distributions(entry, entries)
        except DataError as error:
            raise damaged(folder / ENTRY, f"has noisy tables that cannot be read: {error}") from None
        entries.append(
            replace(entry, chapter=replace(entry.chapter, distributions=distributions)) if distributions else entry
        )
    return tuple(entries)


def _distributions(entry: Entry, earlier: Sequence[Entry]) -> dict[int, MoveDistribution]:
    chapter, found = entry.chapter, {}
    known = {one.chapter.name: one for one in earlier}
    for since in () if entry.moves is None else entry.moves.since:
        if since.version not in known:
            raise DataError(f"{since.version} is no earlier version")
        one = known[since.version]
        found[one.chapter.ordinal] = distribution_since(
            since,
            (one.chapter.secret, one.chapter.inputs),
            (chapter.secret, chapter.inputs),
            chapter.beginning,
            one.input_columns == entry.input_columns,
        )
    if entry.row_moves is not None:
        found[chapter.ordinal] = distribution_of_rows(entry.row_moves, chapter.c, chapter.beginning)
    return found


def read_entry(database: duckdb.DuckDBPyConnection, folder: Path) -> Entry:
    """Read one entry, with all of its tables but that of the people; the same files are read once in a run.

    Raises
    ------
    DataError
        If a file is gone, was changed since the entry was written, or does not fit the others.
    """
    text = file_content(folder / ENTRY)
    try:
        said = json.loads(text)
        files = {str(name): str(digest) for name, digest in said["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise damaged(folder / ENTRY, "is no entry of a register") from None
    names = [name for name in _TABLES if name != EXPECTED or name in files]
    for name in names:
        if files.get(name) != file_digest(folder / name):
            raise damaged(folder / name, "was changed since it was written")
    digest = hashlib.sha256(text).hexdigest()

    def whole() -> Entry:
        tables = {name: table_rows(database, folder / name) for name in names}
        try:
            return _entry(folder, said, tables, digest)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            raise damaged(folder / ENTRY, "does not fit its tables") from None

    # The text has the digests of the tables, which are those of the files as they are now.
    return replace(once(whole, lambda: digest), folder=folder)


def _entry(folder: Path, said: dict[str, Any], tables: dict[str, list[tuple[Any, ...]]], digest: str) -> Entry:
    secret, inputs, outputs = (_symbols(said[name]) for name in ("secret", "inputs", "outputs"))
    a, b = len(inputs), len(outputs)
    changes, classes = _changes(tables["changes.parquet"])
    nodes = tables["nodes.parquet"]
    followed = {row[0]: row[1] for row in tables["followed.parquet"]}
    blocks = {"changes": NoisyChanges, "rows": NoisyRows, "means": NoisyMeans, "departures": NoisyDepartures}
    moves, row_moves, means, departures = (_given(kind, said.get(name)) for name, kind in blocks.items())
    units = said["counts"] if row_moves is not None else said.get("units")
    if len(followed) != len(tables["followed.parquet"]) or any(
        len(row) != a for row in [*said["counts"], *(units or ())]
    ):
        raise ValueError
    chapter = Chapter(
        ordinal=read(Count, said["ordinal"]),
        name=str(said["name"]),
        secret=secret,
        inputs=inputs,
        outputs=outputs,
        counts=tuple(read(Count, count) for row in said["counts"] for count in row),
        changes=changes,
        channels=_channels(tables["channels.parquet"], b),
        followed=followed,
        first=read(Count, said["first"]),
        parents=tuple(parent for parent, _ in nodes),
        drawn=tuple(output for _, output in nodes),
        guarantee=str(said["guarantee"]),
        reserve=Fraction(str(said["reserve"])),
        units=None if units is None else tuple(read(Count, count) for row in units for count in row),
        classes=None if units is not None or said.get("noise") is not None else classes,
        read=None if said.get("classes") is None else 2 * a + 1,
    )
    return Entry(
        folder=folder,
        chapter=chapter,
        observers=read(_Observers, said["observers"]),
        secrets=read(_Secrets, said["secrets"]),
        effective=_effective(tables["effective.parquet"], b, a),
        fingerprint=str(said["fingerprint"]),
        secret_columns=tuple(said["secret"]["columns"]),
        input_columns=tuple(said["inputs"]["columns"]),
        output_columns=tuple(said["outputs"]["columns"]),
        digest=digest,
        previous=said["previous"],
        noise=_given(Positive, said.get("noise")),
        moves=moves,
        row_moves=row_moves,
        means=means,
        departures=departures,
        expected=_expected(tables[EXPECTED]) if EXPECTED in tables else None,
        second_rows=_given(tuple[_Pair, ...], said.get("second_rows")),
        left_open=_left_open(said, moves, row_moves),
        classes=said.get("classes"),
    )


def _changes(
    rows: Sequence[tuple[int, ...]],
) -> tuple[dict[int, dict[tuple[int, int], int]], dict[int, dict[tuple[State, State], int]]]:
    """People in an earlier version and in this one, by cells; and by cells and whether they had changed till then."""
    by_cell: dict[int, dict[tuple[int, int], int]] = {}
    by_state: dict[int, dict[tuple[State, State], int]] = {}
    for version, before, after, was, now, records in rows:
        pair = (before, bool(was)), (after, bool(now))
        states, cells = by_state.setdefault(version, {}), by_cell.setdefault(version, {})
        if pair in states or not {was, now} <= {0, 1}:
            raise ValueError
        states[pair] = records
        cells[before, after] = cells.get((before, after), 0) + records
    return by_cell, by_state


def _expected(rows: Sequence[tuple[Any, ...]]) -> Expected:
    """By history; the number -1 - v stands for all histories of people whose last version is v that are not there."""
    numbers = dict(rows)
    if len(numbers) != len(rows) or any(not 0 <= people < math.inf for people in numbers.values()):
        raise ValueError
    histories = {node: people for node, people in numbers.items() if node > 0}
    lost = {-1 - node: people for node, people in numbers.items() if node < 0}
    if len(histories) + len(lost) != len(numbers):
        raise ValueError
    return Expected(histories, lost)


def _left_open(said: dict[str, Any], moves: NoisyChanges | None, rows: NoisyRows | None) -> OpenTables | None:
    told = said.get("left_open")
    if told is None:
        return None
    noisy = tuple(tuple(map(int, row)) for row in told["noisy"])
    beta = float(told["beta"])
    if [[max(0, count) for count in row] for row in noisy] != said["counts"] or not 0 < beta < 1:
        raise ValueError
    for since in () if moves is None else moves.since:
        if len(since.stayed[0]) != 1:
            raise ValueError
    if rows is not None and {*map(len, rows.stayed), *map(len, rows.left)} != {1}:
        raise ValueError
    return OpenTables(Fraction(beta), noisy, read(Positive, said["noise"]), moves, rows)


def _given(kind: Any, said: object) -> Any:
    """A value of a kind, or None of none."""
    return None if said is None else read(kind, said)


def _channels(rows: Sequence[tuple[int, ...]], b: int) -> dict[int, Rows]:
    found: dict[int, dict[int, dict[int, int]]] = {}
    for channel, x, y, weight in rows:
        row = found.setdefault(channel, {}).setdefault(y, {})
        if not 0 <= y < b or x in row:
            raise ValueError
        row[x] = weight
    return {k: tuple(tuple(sorted(of.get(y, {}).items())) for y in range(b)) for k, of in found.items()}


def _effective(rows: Sequence[tuple[int, ...]], b: int, a: int) -> tuple[tuple[int, ...], ...]:
    # The input -1 stands for records outside the alphabet.
    table = [[0] * a for _ in range(b)]
    for x, y, weight in rows:
        if not -1 <= x < a or not 0 <= y < b:
            raise ValueError
        if x >= 0:
            table[y][x] = weight
    return tuple(map(tuple, table))


def _symbols(said: dict[str, Any]) -> Symbols:
    symbols = tuple(tuple(map(str, symbol)) for symbol in said["symbols"])
    if not symbols or len(set(symbols)) != len(symbols):
        raise ValueError
    return symbols
