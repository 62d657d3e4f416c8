"""Counting (secret, input) a second time, from the source itself and by another route than the release was made by."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from funnel.errors import DataError
from funnel.recount.arrow_files import FORMATS, ArrowReader, ParquetReader
from funnel.recount.cells import TEXT, Kind, condition_of, meaning_of
from funnel.recount.channel import Symbols
from funnel.recount.databases import Rows, opened
from funnel.recount.files import at_hand, files_digest, parts_of
from funnel.recount.grouping import final_labels, labels_of_public
from funnel.recount.rows import Cells, CsvReader, FileReader, connect
from funnel.spec import ReleaseSpec

# Distinct categories of one column before grouping: what the release was made from had no more.
_CATEGORIES = 500_000
# Combinations before grouping that are remembered rather than read twice.
_REMEMBERED = 1 << 18

# Parts of a source: what columns hold, and their cells with numbers of rows.
Read = Iterator[tuple[Mapping[str, Kind], Iterable[tuple[Cells, int]]]]


@dataclass(frozen=True)
class Recount:
    """Counts of (secret, input) after recoding, from the source as it was when it was counted again.

    Attributes
    ----------
    secret_columns, published_columns : tuple of str
    secret, inputs : tuple of tuple of str
        The combinations of categories that occur, sorted as text: of the secret columns, of the published columns.
    counts : mapping of (secret, input) to int
        Records of each pair that occurs; pairs that do not are absent.
    rows : int
        Records that are counted.
    dropped : int
        Records left out because a value is missing.
    sha256 : str
        Digest of the source, in the form in which a snapshot states that of its source.
    values : mapping of str to mapping of str to int
        By column the categories before rare ones are grouped, with how many records have each.
    missing : mapping of str to int
        By column how many of the records that are counted have no value.
    having : mapping of Known to mapping of input to int
        Where inputs are parts of classes, and observers may know any columns: the people with each value, or values.
    held_out : mapping of secret to mapping of class to int, optional
        Of the records by which classes were not chosen, where there are any.
    """

    secret_columns: tuple[str, ...]
    published_columns: tuple[str, ...]
    secret: Symbols
    inputs: Symbols
    counts: Mapping[tuple[tuple[str, ...], tuple[str, ...]], int]
    rows: int
    dropped: int
    sha256: str
    values: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    having: Mapping[tuple[tuple[str, str], ...], Mapping[tuple[str, ...], int]] = field(default_factory=dict)
    held_out: Mapping[tuple[str, ...], Mapping[str, int]] | None = None

    @property
    def cells(self) -> int:
        """Combinations of secret and published values, of those that can go together."""
        published = self.published_columns[: len(self.secret_columns)] == self.secret_columns
        return len(self.inputs) if published else len(self.secret) * len(self.inputs)

    def with_secret(self) -> Recount:
        """The same records where the secret is published too: their inputs begin with it."""
        return replace(
            self,
            published_columns=self.secret_columns + self.published_columns,
            inputs=tuple(s + x for s in self.secret for x in self.inputs),
            counts={(s, s + x): count for (s, x), count in self.counts.items()},
        )

    def over(self, secret: Symbols, inputs: Symbols) -> Recount:
        """The same counts over alphabets that are given: what does not occur has none.

        Raises
        ------
        DataError
            As `table`.
        """
        self.table(secret, inputs)
        return replace(self, secret=secret, inputs=inputs)

    def table(self, secret: Sequence[tuple[str, ...]], inputs: Sequence[tuple[str, ...]]) -> list[list[int]]:
        """Counts in an order that is given, c × a; 0 for what does not occur.

        Raises
        ------
        DataError
            If a secret or an input that occurs is not among those given, or one is given twice.
        """
        for what, known, given in (("secret", self.secret, secret), ("input", self.inputs, inputs)):
            if len(set(given)) != len(given):
                raise DataError(f"a {what} is listed twice, so counts cannot be laid out by it")
            if absent := len(set(known) - set(given)):
                raise DataError(f"{absent:,} of the {len(known):,} {what}s of the source are not listed")
        return [[self.counts.get((s, x), 0) for x in inputs] for s in secret]


def recount(spec: ReleaseSpec, labels: Mapping[str, Collection[str]] | None = None, wide: bool = False) -> Recount:
    """Count secret and published columns of the source of a spec, recoded as the spec says.

    Files are read by readers of their own, databases by their drivers, so that every cell is a text that loses
    nothing. What a cell means is decided in plain Python on distinct values. Files at a URL are copied, one at a time,
    into a private folder, and counted from the very bytes whose digest is stated.

    Parameters
    ----------
    spec : ReleaseSpec
    labels : mapping of str to collection of str, optional
        By column the categories that are public, where the spec protects frequencies by noise: all other values are one
        category then, or records that have them are left out.
    wide : bool
        Whether there may be more combinations than max_inputs: as many as records.

    Raises
    ------
    DataError
        If the source cannot be read, changes meanwhile, or does not fit the spec; no row is quoted.
    PipelineError
        If DuckDB is not installed.

    Notes
    -----
    One pass, or two where there are more than 262,144 combinations before grouping. Memory grows with the distinct
    values of a column and the combinations that occur after recoding, not with the rows.
    """
    with ExitStack() as stack:
        reading = _reading(spec, stack)
        final, values, missing, n_kept, dropped = _learn(spec, reading, labels)
        counts: Counter[tuple[str, ...]] = Counter()
        left_out = 0
        for categories, number in reading.categories():
            if (whole := labelled(final, categories)) is not None:
                counts[whole] += number
                if spec.impossible and _cannot_exist(spec, dict(zip(spec.columns, whole, strict=True))):
                    raise DataError("records have values that [[impossible]] says do not go together")
            else:
                left_out += number
        n_read = n_kept + dropped
        if labels is not None:
            n_kept, dropped = n_read - left_out, left_out
        if (sum(counts.values()), left_out) != (n_kept, dropped):
            raise DataError(f"the source {spec.source_address} changed while it was counted again; try again")
        digest = reading.digest()
    width = len(spec.secret)
    pairs = {(symbol[:width], symbol[width:]): number for symbol, number in counts.items()}
    secret = tuple(sorted({s for s, _ in pairs}))
    inputs = tuple(sorted({x for _, x in pairs}))
    if not wide and len(inputs) > spec.limits.max_inputs:
        raise DataError(f"the published columns have {len(inputs):,} combinations, more than max_inputs in [limits]")
    return Recount(spec.secret, spec.inputs, secret, inputs, pairs, n_kept, dropped, digest, values, missing)


def source_digest(spec: ReleaseSpec) -> str:
    """SHA-256 of the source of a spec as it is now, in the form in which a snapshot states that of its source.

    Raises
    ------
    DataError
        If there is none, or it cannot be read.
    """
    if spec.source.format != "sql":
        return files_digest(parts_of(spec.source_address, spec.source.format))
    with opened(spec) as rows:
        for _ in rows.all():
            pass
        return rows.digest()


def source_columns(spec: ReleaseSpec) -> tuple[str, ...]:
    """All columns of the source of a spec: those of its first file in their order, then those that folders state.

    Raises
    ------
    DataError
        If there is no source, or it cannot be read.
    PipelineError
        If DuckDB is not installed.
    """
    if spec.source.format == "sql":
        with opened(spec) as rows:
            return rows.names()
    parts = parts_of(spec.source_address, spec.source.format)
    first = parts.files[0]
    with (
        tempfile.TemporaryDirectory(prefix="funnel-recount-") as folder,
        _file_reader(spec) as reader,
        at_hand(first, Path(folder)) as (path, _),
    ):
        stored = reader.names(path, first.name)
    stated = () if parts.whole else tuple(column for column in first.stated if column not in stored)
    return (*stored, *stated)


def source_records(spec: ReleaseSpec, columns: Sequence[str], of: Sequence[str] = ()) -> Generator[tuple[Cells, Cells]]:
    """The cells of some columns in the records of the source that ``where`` asks for, in their order.

    With the categories of other columns of the spec, before rare ones are grouped.

    Raises
    ------
    DataError
        As `recount`.
    """
    needed = list(dict.fromkeys((*columns, *of, *spec.source.where)))
    with ExitStack() as stack:
        for kinds, cells in _reading(spec, stack).cells(needed, in_order=True):
            meanings = [(needed.index(column), meaning_of(spec, column, kinds[column])) for column in of]
            for row, _ in _wanted(spec, kinds, cells, needed):
                yield row[: len(columns)], tuple(meaning(row[place]) for place, meaning in meanings)


@contextmanager
def _file_reader(spec: ReleaseSpec) -> Iterator[FileReader]:
    """The second reader of the source of a spec; DataError for a format without one, PipelineError without DuckDB."""
    kind = spec.source.format
    if kind == "csv":
        yield CsvReader(spec.source.delimiter, spec.source.encoding)
    elif kind == "parquet":
        with connect() as database:
            yield ParquetReader(database)
    elif kind in ("arrow", "orc", *FORMATS):
        with connect() as database:
            yield ArrowReader(database, kind, spec.source.table)
    else:
        raise DataError(f"sources of format {kind} have no second reader, so the release cannot be judged")


def _reading(spec: ReleaseSpec, stack: ExitStack) -> _Reading:
    if spec.source.format == "sql":
        return _OfDatabase(spec, stack.enter_context(opened(spec)))
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="funnel-recount-")))
    return _OfFiles(spec, folder, stack.enter_context(_file_reader(spec)))


class _Reading(ABC):
    """A source that is read once or twice, each time with the same content."""

    def __init__(self, spec: ReleaseSpec) -> None:
        self._spec = spec
        self._remembered: Counter[Cells] | None = None

    @abstractmethod
    def digest(self) -> str:
        """SHA-256 of what was read.

        Raises
        ------
        DataError
            If there are other files now.
        """

    @abstractmethod
    def cells(self, columns: Sequence[str], in_order: bool = False) -> Read:
        """What columns hold, and their cells with numbers of rows, part by part; in order each row by itself."""

    def categories(self) -> Iterator[tuple[Cells, int]]:
        """Combinations of categories before grouping, None for missing, with numbers of rows; some more than once.

        The source is read again where there were too many to be remembered.
        """
        if self._remembered is not None:
            yield from self._remembered.items()
            return
        met: Counter[Cells] = Counter()
        for row, number in self._read():
            if len(met) <= _REMEMBERED:
                met[row] += number
            yield row, number
        if len(met) <= _REMEMBERED:
            self._remembered = met

    def _read(self) -> Iterator[tuple[Cells, int]]:
        """Combinations of categories of the columns of the spec, with numbers of rows."""
        spec = self._spec
        needed = (*spec.columns, *(column for column in spec.source.where if column not in spec.columns))
        for kinds, cells in self.cells(needed):
            meanings = [meaning_of(spec, column, kinds[column]) for column in spec.columns]
            for row, number in _wanted(spec, kinds, cells, needed):
                yield tuple(meaning(cell) for meaning, cell in zip(meanings, row, strict=False)), number


class _OfFiles(_Reading):
    def __init__(self, spec: ReleaseSpec, scratch: Path, reader: FileReader) -> None:
        super().__init__(spec)
        self._parts = parts_of(spec.source_address, spec.source.format)
        self._scratch, self._reader = scratch, reader
        self._digests: dict[str, str] = {}

    def digest(self) -> str:
        now = parts_of(self._spec.source_address, self._spec.source.format)
        if {part.name for part in now.files} != set(self._digests):
            raise DataError(f"the source {self._spec.source_address} changed while it was counted again; try again")
        return self._parts.digest(self._digests)

    def cells(self, columns: Sequence[str], in_order: bool = False) -> Read:
        for part in self._parts.files:
            stated = {} if self._parts.whole else part.stated
            stored = [column for column in columns if column not in stated]
            fixed = {k: stated[column] for k, column in enumerate(columns) if column in stated}
            with at_hand(part, self._scratch) as (path, digest):
                if self._digests.setdefault(part.name, digest) != digest:
                    raise DataError(f"the source {part.address} changed while it was counted again; try again")
                kinds = dict.fromkeys(columns, TEXT) | self._reader.kinds(path, part.name, stored)
                rows: Iterable[tuple[Cells, int]]
                if in_order:
                    rows = ((row, 1) for chunk in self._reader.rows(path, part.name, stored) for row in chunk)
                else:
                    rows = self._reader.cells(path, part.name, stored)
                yield kinds, ((_with(fixed, row), number) for row, number in rows) if fixed else rows


class _OfDatabase(_Reading):
    def __init__(self, spec: ReleaseSpec, rows: Rows) -> None:
        super().__init__(spec)
        self._rows = rows

    def digest(self) -> str:
        return self._rows.digest()

    def cells(self, columns: Sequence[str], in_order: bool = False) -> Read:
        for chunk in self._rows.all(columns):
            yield self._rows.kinds(), ((row, 1) for row in chunk) if in_order else Counter(chunk).items()


def _wanted(
    spec: ReleaseSpec, kinds: Mapping[str, Kind], rows: Iterable[tuple[Cells, int]], columns: Sequence[str]
) -> Iterator[tuple[Cells, int]]:
    """The rows that meet what ``where`` says, by their cells of these columns."""
    conditions = [(columns.index(column), condition_of(spec, column, kinds[column])) for column in spec.source.where]
    for row, number in rows:
        if all(meets(row[place]) for place, meets in conditions):
            yield row, number


def _with(fixed: Mapping[int, str | None], row: Cells) -> Cells:
    """A row with the cells that the names of folders state at their places."""
    rest = iter(row)
    return tuple(fixed[k] if k in fixed else next(rest) for k in range(len(fixed) + len(row)))


def _learn(
    spec: ReleaseSpec, reading: _Reading, public: Mapping[str, Collection[str]] | None
) -> tuple[list[dict[str | None, str]], dict[str, dict[str, int]], dict[str, int], int, int]:
    """The labels of every column, its categories before that, missing values, and records kept and left out."""
    seen: list[Counter[str | None]] = [Counter() for _ in spec.columns]
    kept = dropped = 0
    for categories, number in reading.categories():
        if spec.source.on_missing == "drop" and None in categories:
            dropped += number
            continue
        kept += number
        for tally, category in zip(seen, categories, strict=True):
            tally[category] += number
            if len(tally) > _CATEGORIES:
                raise DataError(f"a column has more than {_CATEGORIES:,} values; no release is made of such a source")
    labels, values, missing = [], {}, {}
    for column, tally in zip(spec.columns, seen, strict=True):
        n_missing = missing[column] = tally.pop(None, 0)
        found = {category: number for category, number in tally.items() if category is not None}
        values[column] = found
        if public is None:
            labels.append(final_labels(spec, column, found, n_missing))
        else:
            labels.append(labels_of_public(spec, column, found, public.get(column, ())))
        if column in spec.complete and not {*found, *([None] if n_missing else [])} <= labels[-1].keys():
            raise DataError(f"column {column!r} is declared complete, and has records with another value or none")
    return labels, values, missing, kept, dropped


def _cannot_exist(spec: ReleaseSpec, labels: Mapping[str, str]) -> bool:
    return any(all(labels.get(column) in values for column, values in one.items()) for one in spec.impossible)


def labelled(labels: list[dict[str | None, str]], categories: Cells) -> tuple[str, ...] | None:
    """The released labels of a record; None for one that is left out."""
    try:
        return tuple([label[category] for label, category in zip(labels, categories, strict=True)])
    except KeyError:
        return None
