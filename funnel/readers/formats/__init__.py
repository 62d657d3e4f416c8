"""Formats of sources: how each is read; one file per format, found by its name or by how the name of a file ends."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import PurePath

from funnel.errors import SpecError
from funnel.readers.formats.arrow import Arrow
from funnel.readers.formats.columnar import Columnar, Format, OpenFile
from funnel.readers.formats.delimited import PACKED, Delimited
from funnel.readers.formats.excel import Excel
from funnel.readers.formats.orc import Orc
from funnel.readers.formats.parquet import Parquet
from funnel.readers.formats.sql import Sql
from funnel.readers.formats.statistics import Sas, Spss, Stata
from funnel.readers.opened_source import BATCH_ROWS, Source, SourceSpec
from funnel.readers.where import filtered
from funnel.wording import did_you_mean, listed

_KINDS: tuple[type[Format], ...] = (Parquet, Delimited, Arrow, Orc, Stata, Spss, Sas, Excel, Sql)
_FORMATS: dict[str, Format] = {kind.name: kind() for kind in _KINDS}


def names() -> tuple[str, ...]:
    """Names of all formats."""
    return tuple(_FORMATS)


def format_named(name: str) -> Format:
    """The format of this name.

    Raises
    ------
    SpecError
        If there is none.
    """
    if name not in _FORMATS:
        raise SpecError(f"unknown format {name!r}{did_you_mean(name, names())}; known are {listed(names())}")
    return _FORMATS[name]


def suffixes() -> tuple[str, ...]:
    """How the names of files end whose format need not be said."""
    return tuple(suffix for known in _FORMATS.values() for suffix in known.suffixes)


def format_of(path: str) -> str | None:
    """The name of the format of a file, by how its name ends; None if that tells none."""
    name = PurePath(path).name.lower()
    found = [(suffix, known.name) for known in _FORMATS.values() for suffix in _with_packed(known)]
    # The longest that fits.
    ending = max((pair for pair in found if name.endswith(pair[0])), key=lambda pair: len(pair[0]), default=None)
    return None if ending is None else ending[1]


def _with_packed(known: Format) -> Iterable[str]:
    packed = PACKED if isinstance(known, Delimited) else ()
    return (*known.suffixes, *(suffix + how for suffix in known.suffixes for how in packed))


def open_source(spec: SourceSpec, path: str | os.PathLike[str] | None = None) -> Source:
    """Open the source of a spec, or a snapshot of it at ``path``, and check that it has the columns of the spec.

    Raises
    ------
    DataError
        If there is no file, one is not of its format, lacks a column or has it twice, or two files disagree about
        the type of a column: one sentence that names the file and the problem.
    SpecError
        If the spec says how text is written that this format does not have.
    """
    # Not where specs are validated: those of releases that are out have to be read by audits for ever.
    if spec.source.format != "csv" and "delimiter" in spec.source.model_fields_set:
        raise SpecError(
            f'[source] gives a delimiter, which is for csv files, and the format is "{spec.source.format}"; take it '
            'out, or set format = "csv"'
        )
    address = os.fspath(path) if path is not None else spec.source_address
    return filtered(spec, format_named(spec.source.format).open(spec.filtering, address))


__all__ = [
    "BATCH_ROWS",
    "Columnar",
    "Format",
    "OpenFile",
    "Source",
    "format_named",
    "format_of",
    "names",
    "open_source",
    "suffixes",
]
