"""Exported: the records of a release as a labelled file of SPSS, Stata or parquet, or a DDI codebook of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.analysis.codebook import MISSING, codebook
from funnel.errors import DataError, OutputError, PipelineError, SpecError
from funnel.joint import FloatArray, IntArray
from funnel.readers.formats.loaded import LABEL, LABELS
from funnel.release.files import write_whole
from funnel.settings.disclosure_rules import BoolArray
from funnel.wording import listed

if TYPE_CHECKING:
    from funnel.analysis.release import Release

# What SPSS and Stata use as words of their language, and so cannot be the name of a variable.
_WORDS: Final = frozenset(
    {
        "all", "and", "by", "eq", "ge", "gt", "le", "lt", "ne", "not", "or", "to", "with",
        "byte", "double", "float", "if", "in", "int", "long", "str", "strl", "using", "_all", "_n", "_b",
    }
)  # fmt: skip
# Bytes that SPSS keeps of a label of a value, and of a line of a note.
_SPSS_VALUE, _SPSS_LINE = 120, 80
# A codebook keeps texts of any length.
_WHOLE: Final = ".xml"


@dataclass(frozen=True)
class _Package:
    """What a statistics package takes: letters of a name, and how much of the labels of a file and of a variable."""

    name: str
    letters: int
    title: int
    variable: int
    unit: Literal["bytes", "characters"]

    def fits(self, text: str, most: int) -> bool:
        return len(text.encode() if self.unit == "bytes" else text) <= most

    def cut(self, text: str, most: int) -> str:
        """What of a text has room."""
        while not self.fits(text, most):
            text = text[:-1]
        return text

    def labels_of(self, columns: Sequence[tuple[str, str]]) -> list[str]:
        """The labels of variables: what a column is about, after its name where the package does not take that."""
        names = names_for([name for name, _ in columns], self.letters)
        return [
            label if name in (taken, label) else f"{name}: {label}"
            for taken, (name, label) in zip(names, columns, strict=True)
        ]

    def cut_of(self, title: str, labels: Iterable[str]) -> dict[str, str]:
        """The texts that have no room whole, by what they are."""
        found = {} if self.fits(title, self.title) else {"title": title}
        return found | {f"label of column {k}": c for k, c in enumerate(labels, 1) if not self.fits(c, self.variable)}


_SPSS: Final = _Package("SPSS", 64, 64, 255, "bytes")
# A set of labels has the name of its variable, and pyreadstat takes a letter less of it than Stata does.
_STATA: Final = _Package("Stata", 31, 80, 80, "characters")


@dataclass(frozen=True, eq=False)
class Variable:
    """A column of a release in a file of a statistics package.

    Attributes
    ----------
    column : str
        Its name in the release.
    label : str
        What it is about as the publisher says it, or its name.
    description : str
        How it was made.
    categories : tuple of str
        In their order.
    codes : ndarray of int64, shape (records,)
        The place of every record's category, from 0.
    """

    column: str
    label: str
    description: str
    categories: tuple[str, ...]
    codes: IntArray

    @cached_property
    def missing(self) -> int:
        """The place of the category of missing values; -1 where there is none."""
        return self.categories.index(MISSING) if MISSING in self.categories else -1

    @cached_property
    def numbers(self) -> IntArray | None:
        """What every category is where all but the missing one, which is 0, are whole numbers; None else."""
        texts = ["0" if place == self.missing else text for place, text in enumerate(self.categories)]
        if not all(re.fullmatch(r"0|-?[1-9]\d{0,14}", text) for text in texts):
            return None
        return np.array([int(text) for text in texts], dtype=np.int64)

    @property
    def labels(self) -> dict[int, str]:
        """Labels by number, from 1; none where the numbers say themselves what they are, or that a value is missing."""
        if self.numbers is not None:
            return {}
        return {place + 1: text for place, text in enumerate(self.categories) if place != self.missing}

    @property
    def is_missing(self) -> BoolArray:
        """Which records have no value."""
        return np.equal(self.codes, self.missing)

    @property
    def values(self) -> IntArray | FloatArray:
        """The number of every record; NaN for missing ones, if there are any."""
        values = self.codes + 1 if self.numbers is None else self.numbers[self.codes]
        return np.where(self.is_missing, np.nan, values) if self.is_missing.any() else values

    @property
    def counts(self) -> IntArray:
        """Records of every category."""
        return np.bincount(self.codes, minlength=len(self.categories))


def export_release(released: Release, target: Path, force: bool = False) -> Path:
    """Write the records of a release to a labelled file, or a DDI codebook of them, by how the name of the file ends.

    Categories are numbered in the order of the release, with themselves as labels of the numbers; where all of them are
    whole numbers they are these. In parquet they are a dictionary in this order. A missing value is one of the format.
    Labels of variables are those of the release. Names of columns that a package does not take are changed, and stand
    in these labels. What is written can be read again as a source: it has the values and labels of the release.

    Parameters
    ----------
    released : Release
    target : Path
        A file that ends in .sav or .zsav (SPSS), .dta (Stata), .parquet, or .xml (DDI-Codebook 2.5).
    force : bool
        Whether a file that is there is written over.

    Raises
    ------
    SpecError
        If no such file is named, or one is there.
    DataError
        If the release cannot be read, or has labels that the format cannot hold.
    OutputError
        If the file cannot be written.
    PipelineError
        If what writes it is not installed.

    Notes
    -----
    All records in memory, eight bytes for each and column.
    """
    write = _WRITERS.get(target.suffix.lower())
    if write is None:
        raise SpecError(
            f"{target} ends in none of {', '.join(_WRITERS)}; name a file of SPSS, Stata, parquet or a codebook so"
        )
    if target.exists() and not force:
        raise SpecError(f"{target} is there already; name another file, or write over it with --force")
    content = write(released, variables_of(released))
    try:
        write_whole(target, content)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OutputError(f"cannot write {target}: {reason}; choose another place or change its permissions") from error
    return target


def cut_labels(released: Release, target: Path) -> str | None:
    """What a file of `export_release` cannot have whole where the package shows it, as a sentence; None if it has all.

    Parameters
    ----------
    released : Release
    target : Path
        By whose ending the format is known.
    """
    package = _PACKAGES.get(target.suffix.lower())
    if package is None:
        return None
    fields = released.package["resources"][0]["schema"]["fields"]
    cut = package.cut_of(_title(released), package.labels_of([(one["name"], _label(one)) for one in fields]))
    if not cut:
        return None
    where = (
        "the notes of the file have them whole"
        if package is _SPSS
        else f"a codebook has them whole: funnel export RELEASE FILE{_WHOLE}"
    )
    most = f"{package.title} {package.unit} of a title and {package.variable} of a label"
    return f"{package.name} keeps {most}, and so only a part of the {listed(list(cut))}; {where}"


def variables_of(released: Release) -> list[Variable]:
    """The columns of a release, with their categories in its order.

    Raises
    ------
    DataError
        If records have a value that the data package does not list.
    """
    fields = released.package["resources"][0]["schema"]["fields"]
    table = released.table()
    found = []
    for field in fields:
        column = table.column(field["name"]).unify_dictionaries().combine_chunks()
        texts, codes = column.dictionary.to_pylist(), column.indices.to_numpy(zero_copy_only=False)
        categories = tuple(field["categories"])
        place = {text: k for k, text in enumerate(categories)}
        if not set(texts) <= place.keys():
            raise DataError(f"records have values of {field['name']!r} that datapackage.json lacks; fetch them again")
        of_texts = np.array([place[text] for text in texts], dtype=np.int64)
        found.append(Variable(field["name"], _label(field), field.get("description", ""), categories, of_texts[codes]))
    return found


def names_for(columns: Sequence[str], longest: int) -> list[str]:
    """Names that SPSS and Stata take: letters, digits and underscores, distinct whatever their case."""
    found: list[str] = []
    taken: set[str] = set()
    for column in columns:
        plain = re.sub(r"[^0-9A-Za-z_]+", "_", column).strip("_") or "column"
        plain = plain if plain[0].isalpha() else f"v_{plain}"
        plain = f"{plain}_" if plain.lower() in _WORDS or re.fullmatch(r"str\d+", plain.lower()) else plain
        name, number = plain[:longest], 1
        while name.lower() in taken:
            number += 1
            name = f"{plain[: longest - len(str(number)) - 1]}_{number}"
        taken.add(name.lower())
        found.append(name)
    return found


def _label(field: Mapping[str, Any]) -> str:
    """What a field of a data package is about, or its name."""
    return str(field.get("title", field["name"]))


def _title(released: Release) -> str:
    return f"{released.package['title']}, version {released.version}"


def _labelled(released: Release, variables: Sequence[Variable], ending: str, package: _Package, **more: Any) -> bytes:
    """The content of a file that pyreadstat writes."""
    try:
        import pandas as pd
        import pyreadstat
    except ImportError as error:
        raise PipelineError(
            f"a file {ending} needs a package that is not installed; install it with pip install 'funnel[statistics]'"
        ) from error
    names = names_for([one.column for one in variables], package.letters)
    frame = pd.DataFrame({name: one.values for name, one in zip(names, variables, strict=True)})
    labels = {name: one.labels for name, one in zip(names, variables, strict=True) if one.labels}
    write: Callable[..., None] = pyreadstat.write_dta if ending == ".dta" else pyreadstat.write_sav
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"records{ending}"
        write(
            frame,
            str(path),
            file_label=package.cut(_title(released), package.title),
            column_labels=[
                package.cut(label, package.variable)
                for label in package.labels_of([(one.column, one.label) for one in variables])
            ],
            variable_value_labels=labels,
            **more,
        )
        return path.read_bytes()


def _stata(released: Release, variables: Sequence[Variable]) -> bytes:
    return _labelled(released, variables, ".dta", _STATA)


def _spss(released: Release, variables: Sequence[Variable], compress: bool = False) -> bytes:
    for one in variables:
        if long := [text for text in one.labels.values() if len(text.encode()) > _SPSS_VALUE]:
            raise DataError(
                f"{len(long)} labels of {one.column!r} are longer than the {_SPSS_VALUE} bytes that SPSS keeps; write "
                "a file of Stata (.dta) instead"
            )
    privacy = released.privacy
    cut = _SPSS.cut_of(_title(released), _SPSS.labels_of([(one.column, one.label) for one in variables]))
    said = [f"{released.package['name']} {released.version}, {privacy.guarantee}", privacy.meaning]
    said += [f"{what}: {whole}" for what, whole in cut.items()]
    note = [line for text in said for line in _lines(text)]
    return _labelled(released, variables, ".sav", _SPSS, note=note, compress=compress)


def _parquet(released: Release, variables: Sequence[Variable]) -> bytes:
    """One row group, so that a dictionary has all categories, those without records too, in their order."""
    fields, columns = [], []
    for one in variables:
        described = {LABEL: one.label, b"description": one.description}
        if one.numbers is None:
            texts = [*one.labels.values()]
            place = np.cumsum(np.arange(len(one.categories)) != one.missing) - 1
            codes = pa.array(place[one.codes].astype(np.int32), mask=one.is_missing)
            columns.append(pa.DictionaryArray.from_arrays(codes, pa.array(texts, pa.string())))
            described[LABELS] = json.dumps(texts, ensure_ascii=False)
        else:
            columns.append(pa.array(one.numbers[one.codes], mask=one.is_missing))
        fields.append(pa.field(one.column, columns[-1].type, metadata=described))
    privacy = released.privacy
    said = {"title": _title(released), "bound": privacy.guarantee, "meaning": privacy.meaning}
    table = pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=said))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=max(1, table.num_rows))
    return bytes(sink.getvalue())


def _lines(text: str) -> list[str]:
    """A text in lines as long as SPSS keeps them of a note: between words, and within one that is longer."""
    lines: list[str] = []
    for word in text.split():
        if lines and len(f"{lines[-1]} {word}".encode()) <= _SPSS_LINE:
            lines[-1] += f" {word}"
            continue
        rest = word
        while rest:
            lines.append(_SPSS.cut(rest, _SPSS_LINE))
            rest = rest[len(lines[-1]) :]
    return lines


_PACKAGES: Mapping[str, _Package] = {".sav": _SPSS, ".zsav": _SPSS, ".dta": _STATA}
_WRITERS: Mapping[str, Callable[[Release, Sequence[Variable]], bytes]] = {
    ".sav": _spss,
    ".zsav": lambda released, variables: _spss(released, variables, compress=True),
    ".dta": _stata,
    ".parquet": _parquet,
    _WHOLE: lambda released, variables: codebook(
        released.package,
        released.privacy,
        [(one.column, one.label, one.description, one.categories, one.counts) for one in variables],
    ),
}
