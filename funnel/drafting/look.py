"""Looking at a source: of every column what it holds, how often, and what it may be for; one pass in bounded memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from funnel.alphabet import CLASS_COLUMN
from funnel.drafting.guess import guessed, only_sheet
from funnel.drafting.spellings import as_one, spellings_of
from funnel.errors import DataError
from funnel.progress import Progress
from funnel.readers.cells import NUMBER, is_number
from funnel.readers.days import day_of
from funnel.readers.formats import open_source
from funnel.readers.formats.loaded import label_of, labels_of
from funnel.readers.opened_source import Source
from funnel.settings.fields import MAX_LABEL
from funnel.settings.source import SourceSettings
from funnel.spec import ReleaseSpec

Kind = Literal["text", "number", "date", "truth", "other"]

# Records that are looked at, and different values of a column that are counted.
MOST_ROWS = 1_000_000
MOST_VALUES = 100_000
# What records without a value are called in a release.
MISSING: str = SourceSettings.model_fields["missing_label"].default
# What people and programs write where a value is missing.
# Numbers that are none: where all others of a column are numbers, they are missing values.
_INFINITE = frozenset(sign + name for sign in ("", "+", "-") for name in ("inf", "Inf", "INF"))
MARKERS = frozenset(
    ("", "?", "-", "--", ".", "*", "NA", "N/A", "n/a", "na", "#N/A", "NULL", "Null", "null", "NaN", "nan", MISSING)
)
# Names of what tells people apart; those that counts have too only at the end, as in "case number".
_IDENTIFIER = re.compile(
    r"(^|[^a-z])(id|ids|key|uuid|guid|ssn|bsn|nin|email|e-?mail|phone|tel|mobile|iban|passport|licen[cs]e|"
    r"(first|last|sur|full|family)[ _-]?name|name|address|street|ip|token|url)([^a-z]|$)|"
    r"(^|[^a-z])(nr|no|number)$"
)
# Names of columns that say whose record it is, where a person has several.
_PERSON = re.compile(
    r"(^|[^a-z])(id|pid|pnr|idnr|pers(on)?(nr|no|id)?|patient|pat|client|customer|member|subject|respondent|resp|"
    r"participant|student|pupil|employee|worker|citizen|insured|household|hh|user|case|bsn|ssn|nin|fall|personen|"
    r"patienten|kunden?|mitglieds?|versicherten?|schüler|probanden?|befragten?|teilnehmer|haushalts?)"
    r"([ _-]?(id|ids|nr|no|number|key|code|nummer|kennung|kennziffer))?$"
)
# Amounts as people write them: with marks between thousands, a currency, a percentage or degrees.
_SIGN = "(?:[€$£¥%°]|EUR|USD|GBP|CHF)?"
_AMOUNT = re.compile(
    rf"{_SIGN}\s*[+-]?(?:[0-9]{{1,3}}(?:[., '\u2019\u00a0\u202f][0-9]{{3}})*|[0-9]+)(?:[.,][0-9]+)?\s*{_SIGN}"
)
_CODED = re.compile("0[0-9]+")
# Numbers that surveys write in place of an answer, where all others of a column are 0 or more; so many at most.
_CODE, _CODES = re.compile(r"-([7-9]|[6-9]{2,5})(\.0)?"), 4
# Values of a column that could be whose record it is, at least; and the records that one may have.
_PEOPLE, _ROWS_OF_ONE = 20, 200


@dataclass
class Column:
    """One column as it was seen.

    Attributes
    ----------
    name : str
    kind : str
        What its values are, apart from those that mean missing.
    counts : Counter of str
        Records by value as text, of all values until there were `MOST_VALUES`; no missing ones.
    missing : int
        Records without a value.
    markers : set of str
        Texts that were taken for missing ones.
    complete : bool
        Whether all different values were counted.
    decimal : bool
        Whether its numbers have a decimal comma.
    labels : tuple of str
        Where the source has labels of values: these, in its order.
    label : str or None
        What the source says that it is about.
    spellings : dict of str to tuple of str
        Values that are written in several ways, by the most common one, under which all their records are counted.
    """

    name: str
    kind: Kind = "text"
    counts: Counter[str] = field(default_factory=Counter)
    missing: int = 0
    markers: set[str] = field(default_factory=set)
    complete: bool = True
    decimal: bool = False
    labels: tuple[str, ...] = ()
    label: str | None = None
    spellings: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def values(self) -> int:
        """Different values, missing ones not among them."""
        return len(self.counts)

    def is_constant(self, rows: int, share: float = 0.01) -> bool:
        """Whether all records have the same value, but for fewer than such a share that have none."""
        return self.values + (self.missing > 0 and self.missing >= share * rows) < 2

    def is_identifier(self, rows: int) -> bool:
        """Whether its name is one that columns have which tell people apart, and its values are as many."""
        return _IDENTIFIER.search(self.name.lower()) is not None and self.values > max(_PEOPLE, rows / 500)

    def named_as_person(self) -> bool:
        """Whether the name is one of columns that say whose record it is."""
        return _PERSON.search(self.name.lower()) is not None

    def repeats(self, rows: int) -> bool:
        """Whether it may say whose record it is, of people who have several.

        That is where its name is one of that kind, or its values are whole numbers that about as many records have
        each, those in the middle no more than others; without large gaps, or named as what tells people apart.
        """
        if (
            self.kind not in ("text", "number")
            or not self.complete
            or not max(_PEOPLE, rows / 200) < self.values < rows
        ):
            return False
        if not self._whole() or max(self.counts.values()) > _ROWS_OF_ONE:
            return False
        if self.named_as_person():
            return True
        if self.kind != "number" or self.values < 100 or self.values < rows / 50:
            return False
        numbers = sorted(int(value) for value in self.counts)
        unlike = max(self.counts.values()) * self.values / rows
        has_gaps = numbers[-1] - numbers[0] >= 2 * len(numbers)
        if unlike > 20 or (has_gaps and (unlike > 8 or not _IDENTIFIER.search(self.name.lower()))):
            return False
        # Of a measurement, such as a blood pressure, those in the middle are most common.
        records = [count for _, count in sorted((int(value), count) for value, count in self.counts.items())]
        fifth = len(records) // 5
        return sum(records[2 * fifth : 3 * fifth]) <= 2 * max(sum(records[:fifth]), sum(records[-fifth:]))

    def unique(self, rows: int) -> bool:
        """Whether every record has a value of its own that may tell whose it is."""
        alone = not self.complete or (rows > 1 and self.values == rows)
        whole = self.kind in ("text", "number", "other") and not self.missing and self._whole()
        # Codes with marks have one length, which amounts have not.
        return alone and whole and not (self.holds_amounts() and len({len(value) for value in self.counts}) > 1)

    def holds_amounts(self) -> bool:
        """Whether its texts are amounts with marks between thousands or signs, which readers take for texts.

        Codes with a leading zero are none.
        """
        texts = [value.strip() for value in self.counts] if self.kind == "text" else []
        return len(texts) > 0 and all(_AMOUNT.fullmatch(text) and not _CODED.fullmatch(text) for text in texts)

    def codes(self) -> set[str]:
        """Its negative numbers, where they look like codes for a missing answer."""
        negative = {value for value in self.counts if value.strip().startswith("-")}
        coded = all(_CODE.fullmatch(value.strip()) for value in negative)
        return negative if coded and len(negative) <= _CODES and len(self.counts) > len(negative) + 1 else set()

    def _whole(self) -> bool:
        return self.kind != "number" or all(re.fullmatch("[+-]?[0-9]+", value) for value in list(self.counts)[:1000])

    def rarer_than(self, least: int) -> int:
        """How many values fewer records have."""
        return sum(count < least for count in self.counts.values())


@dataclass(frozen=True)
class Look:
    """What was seen of a source.

    Attributes
    ----------
    settings : mapping
        Of ``[source]``.
    columns : tuple of Column
        Those that can be secret or published, in the order of the source.
    left_out : mapping of str to str
        The others, with the reason.
    rows : int
        Records that were looked at.
    more : bool
        Whether there are more.
    odd : int
        Names of columns that are numbers or dates, as where a csv file begins with a record instead of names.
    """

    settings: Mapping[str, Any]
    columns: tuple[Column, ...]
    left_out: Mapping[str, str]
    rows: int
    more: bool
    odd: int = 0

    @property
    def doubt(self) -> str:
        """What is odd about the names of the columns; empty if nothing is."""
        if not self.odd:
            return ""
        verb = "name of a column is a number or a date" if self.odd == 1 else "names of columns are numbers or dates"
        return f"{self.odd:,} {verb}: if the file begins with a record, write a line of names above it"


def look_at(settings: Mapping[str, Any], folder: Path, progress: Progress) -> Look:
    """Look at a source.

    Parameters
    ----------
    settings : mapping
        Of ``[source]``, as far as the person said; the rest is guessed.
    folder : Path
        Where relative paths start.
    progress : callable

    Raises
    ------
    SpecError, DataError
        If it cannot be opened or read, or has no rows.
    """
    spec = spec_about(settings, folder)
    if spec.source.format == "csv":
        settings = {**guessed(spec.source_address), **settings}
        spec = spec_about(settings, folder)
    if spec.source.format == "excel" and spec.source.table is None:
        settings = {**settings, **only_sheet(spec.source_address, spec.source_title)}
        spec = spec_about(settings, folder)
    opened = open_source(spec.model_copy(update={"secret": (), "publish": ()}))
    names, left_out = opened.names, _unusable_names(opened)
    source, unreadable = _opened(spec, [name for name in names if name not in left_out])
    left_out.update(unreadable)
    seen = [
        _Seen(Column(field.name, labels=labels_of(field), label=label_of(field)), field.type) for field in source.schema
    ]
    rows = 0
    for batch in source.batches(source.schema.names):
        kept = batch.slice(0, MOST_ROWS - rows)
        for one in seen:
            one.add(kept.column(one.column.name))
        rows += kept.num_rows
        progress("looking at the source", rows, source.n_rows)
        if rows >= MOST_ROWS:
            break
    if rows == 0:
        raise DataError(f"{source.name} has no rows, so there is nothing to draft a spec from")
    columns = [one.finished() for one in seen]
    for column in columns:
        if column.kind == "other":
            long = f"some of its values have more than {MAX_LABEL:,} characters"
            left_out[column.name] = long if column.counts else "it holds no text, numbers or dates"
    usable = tuple(column for column in columns if column.kind != "other")
    _without_codes(usable)
    commas = [column for column in usable if column.decimal]
    pointed = any("." in value for column in usable if column.kind == "number" for value in column.counts)
    if commas and settings.get("delimiter", ",") != "," and not pointed:
        settings = {**settings, "decimal": ","}
    else:
        for column in commas:
            column.kind = "text"
    read_so = spec.source.format == "csv"
    odd = sum(re.fullmatch(NUMBER, name.strip()) is not None or day_of(name.strip()) is not None for name in names)
    return Look(settings, usable, left_out, rows, rows >= MOST_ROWS, odd if read_so else 0)


def _unusable_names(source: Source) -> dict[str, str]:
    """The names that no column can be known by, each with the reason.

    Raises
    ------
    DataError
        If most columns have no name.
    """
    names, blank = source.names, sum(not name.strip() for name in source.names)
    if 2 * blank > len(names):
        raise DataError(
            f"{source.name} has {len(names)} columns, and {blank} of them have no name, as where a title is above the "
            "names of the columns; take the lines above these out"
        )
    reasons: dict[str, str] = {}
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            reasons[name] = "several columns have this name"
        elif not name.strip() or not name.isprintable():
            reasons[name] = "its name is not one line of text"
        elif name == CLASS_COLUMN:
            reasons[name] = "funnel names the classes of whole records so"
    return reasons


def _without_codes(columns: Sequence[Column]) -> None:
    """Take codes such as -9 for missing values, but those that are a number in some column.

    A spec lists them for all columns, so they are missing in those of texts as well.
    """
    numbers = [column for column in columns if column.kind == "number"]
    codes = {column.name: column.codes() for column in numbers}
    real = {value for column in numbers for value in column.counts if value not in codes[column.name]}
    for column in numbers:
        for code in codes[column.name] - real:
            column.markers.add(code)
            column.missing += column.counts.pop(code)
    codes_of_all = {mark for column in numbers for mark in column.markers}
    for column in columns:
        for code in codes_of_all & {*column.counts}:
            column.missing += column.counts.pop(code)


def spec_about(settings: Mapping[str, Any], folder: Path) -> ReleaseSpec:
    """A spec that says nothing but where the source is."""
    said = {"name": "x", "title": "x", "secret": ["s"], "publish": ["p"], "guarantee": "perfect"}
    return ReleaseSpec.of({**said, "source": dict(settings), "metadata": {"licence": "x"}}, folder)


def _opened(spec: ReleaseSpec, names: Sequence[str]) -> tuple[Source, dict[str, str]]:
    """The source with all columns that can be read, and why the others cannot."""
    try:
        return open_source(spec.model_copy(update={"secret": (), "publish": tuple(names)})), {}
    except DataError:
        unreadable = {}
        for name in names:
            try:
                open_source(spec.model_copy(update={"secret": (), "publish": (name,)}))
            except DataError:
                unreadable[name] = "its type has no categories, or differs between files"
        readable = tuple(name for name in names if name not in unreadable)
        return open_source(spec.model_copy(update={"secret": (), "publish": readable})), unreadable


class _Seen:
    """Counts one column, batch by batch."""

    def __init__(self, column: Column, kind: pa.DataType) -> None:
        self.column = column
        values = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_boolean(values):
            column.kind = "truth"
        elif is_number(values):
            column.kind = "number"
        elif pa.types.is_date(values) or pa.types.is_timestamp(values):
            column.kind = "date"
        elif not (pa.types.is_string(values) or pa.types.is_large_string(values) or pa.types.is_null(values)):
            column.kind = "text" if pa.types.is_string_view(values) or pa.types.is_time(values) else "other"

    def add(self, array: pa.Array) -> None:
        column = self.column
        if column.kind == "other":
            return
        plain = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
        for entry in pc.value_counts(plain):
            value, count = entry["values"].as_py(), entry["counts"].as_py()
            if value is None or value != value:
                column.missing += count
                continue
            text = str(value)
            if column.kind == "text" and text.strip() in MARKERS:
                column.markers.add(text)
                column.missing += count
            elif text in column.counts or len(column.counts) < MOST_VALUES:
                column.counts[text] += count
            else:
                column.complete = False

    def finished(self) -> Column:
        """The column, with the kind that its texts turn out to be of."""
        column = self.column
        infinite = [text for text in column.counts if text.strip() in _INFINITE]
        if column.kind == "text" and len(infinite) < column.values:
            texts = [text.strip() for text in column.counts if text not in infinite]
            commas = [text.replace(".", "?").replace(",", ".") for text in texts]
            if any(_CODED.fullmatch(text) for text in texts):
                # A code with a leading zero is no number, which would lose it.
                return column
            if all(re.fullmatch(NUMBER, text) for text in texts):
                column.kind = "number"
            elif all(re.fullmatch(NUMBER, text) for text in commas):
                column.kind, column.decimal = "number", True
            elif all(day_of(text) is not None for text in column.counts):
                column.kind = "date"
            elif any(len(text) > MAX_LABEL for text in column.counts):
                column.kind = "other"
            elif column.complete and not column.labels:
                column.spellings = spellings_of(column.counts)
                column.counts = as_one(column.counts, column.spellings)
        if column.kind == "number":
            column.markers.update(infinite)
            column.missing += sum(column.counts.pop(text) for text in infinite)
        return column
