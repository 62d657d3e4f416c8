"""Where the records are, how they are read, and which of them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import PurePath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StrictStr, field_validator, model_validator

from funnel.databases import check_database, names_database
from funnel.settings.fields import Label, Line, Section, Texts, is_number
from funnel.storage import check_address
from funnel.wording import listed


def _source_address(text: str) -> str:
    return check_database(text) if names_database(text) else check_address(text)


def _query(text: str) -> str:
    if not text.strip().strip(";") or "\0" in text:
        raise ValueError("must be a query, such as SELECT * FROM people")
    return text


Query = Annotated[StrictStr, AfterValidator(_query)]


def _is_address(text: str) -> bool:
    try:
        _source_address(text)
    except ValueError:
        return False
    return True


Bound = int | float | date


def _bound(value: object) -> object:
    if isinstance(value, datetime) or not (is_number(value) or isinstance(value, date)):
        raise ValueError("must be a number, or a date such as 2020-12-31 without quotes")
    return value


class Condition(Section):
    """``[source.where]``: what the cell of a column must be; a list of values is short for ``one_of``.

    A cell that is missing meets none but ``missing = true``.

    Attributes
    ----------
    one_of : tuple of str or None
        Texts that the cell is one of; as they are in the source, before any recoding.
    none_of : tuple of str or None
        Texts that it is none of.
    at_least : number, date or None
        What it is not below.
    under : number, date or None
        What it is below.
    missing : bool or None
        Whether it is missing.
    """

    one_of: Texts | None = None
    none_of: Texts | None = None
    at_least: Annotated[Bound, BeforeValidator(_bound)] | None = None
    under: Annotated[Bound, BeforeValidator(_bound)] | None = None
    missing: StrictBool | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_list(cls, value: object) -> object:
        return {"one_of": value} if isinstance(value, (list, tuple)) else value

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("says no condition; give one_of, none_of, at_least, under or missing")
        if isinstance(self.at_least, date) != isinstance(self.under, date) and None not in (self.at_least, self.under):
            raise ValueError("gives a number and a date; give two of a kind")
        return self


class SourceSettings(Section):
    """``[source]``: where the records are and what a missing value is.

    Attributes
    ----------
    path : str
        A file, a folder of parquet files or a pattern such as ``parts/*.parquet``; or the URL of one of these, such as
        ``s3://bucket/people/``. A relative path starts at the folder of the spec file. Or the URL of a database,
        without a password; or ``environment:NAME`` for a variable that holds one.
    format : str
        One of `funnel.readers.formats`; by default told by the suffix of the path; a path without suffix is a folder of
        parquet files.
    table : str or None
        Of a database: the table (or view) to read, or ``schema.table``; of a workbook of Excel: the sheet, by default
        the first.
    query : str or None
        Of a database: a query, in place of a table.
    delimiter : str
        The character between the values of a csv file; of a ``.tsv`` file by default a tab.
    encoding : str
        How the text of a csv file is written, such as "cp1252" or "utf-16".
    decimal : str
        The decimal mark of the numbers of a csv file, a point or a comma.
    where : mapping of column to Condition
        The records that the source consists of: those that meet all conditions; by default all.
    missing : tuple of str
        Texts that mean a value is missing; nulls, and NaN in columns of numbers, always do.
    on_missing : "category" or "drop"
        Whether missing values become a category of their own, or the record is left out.
    missing_label : str
        The name of that category.
    """

    path: Annotated[Line, AfterValidator(_source_address)]
    format: StrictStr
    table: Line | None = None
    query: Query | None = None
    delimiter: StrictStr = ","
    encoding: StrictStr = "utf-8"
    decimal: Literal[".", ","] = "."
    where: Mapping[Line, Condition] = Field(default_factory=dict)
    missing: Texts = ("",)
    on_missing: Literal["category", "drop"] = "category"
    missing_label: Label = "(missing)"

    @property
    def selects_present(self) -> bool:
        """Whether records without a value of some column are not read, and so not counted."""
        return any(condition.missing is False for condition in self.where.values())

    @model_validator(mode="before")
    @classmethod
    def _format_by_suffix(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        path = value.get("path")
        tabbed = isinstance(path, str) and re.search(r"\.tsv(\.gz|\.zip)?$", path.lower()) is not None
        if tabbed and value.get("format", "csv") == "csv":
            value = {"delimiter": "\t", **value}
        if "format" in value:
            return value
        if not isinstance(path, str) or not _is_address(path):
            # The path is refused below; that no format can be told from it is no second problem.
            return {**value, "format": "parquet"}
        if names_database(path):
            return {**value, "format": "sql"}
        from funnel.readers.formats import format_of, suffixes

        # A path without suffix can only be a folder.
        suffix = "" if path.endswith("/") else PurePath(path).suffix.lower()
        found = format_of(path) if suffix else "parquet"
        if found is None:
            raise ValueError(
                f"cannot tell the format by {suffix!r}, as by {listed(suffixes())}; add format = "
                '"parquet" or format = "csv", for instance'
            )
        return {**value, "format": found}

    @field_validator("format")
    @classmethod
    def _known(cls, value: str) -> str:
        from funnel.readers.formats import names

        if value not in names():
            raise ValueError(f"must be {listed(map(repr, names()[:-1]))} or {names()[-1]!r}")
        return value

    @model_validator(mode="after")
    def _of_a_database(self) -> Self:
        given = [name for name in ("table", "query") if getattr(self, name) is not None]
        if (self.format == "sql") != names_database(self.path):
            raise ValueError(
                'path names a database, which has the format "sql"; take format out'
                if self.format != "sql"
                else 'format = "sql" is for the URL of a database, and path names files; take format out'
            )
        if self.format != "sql":
            if given and (self.format, given) != ("excel", ["table"]):
                where = "databases and workbooks of Excel" if given[0] == "table" else "databases"
                raise ValueError(f"gives a {given[0]}, which is for {where}; take {given[0]} out")
            return self
        if len(given) != 1:
            raise ValueError('names a database; say what to read of it, either table = "people" or query = "SELECT …"')
        if self.table is not None and not all(part.strip() for part in self.table.split(".", 1)):
            raise ValueError('must name its table as "people" or "schema.people"')
        if self.table is not None and self.table.count(".") > 1:
            raise ValueError('names a table with several points; give a query, such as SELECT * FROM "a"."b.c"')
        return self

    @field_validator("encoding")
    @classmethod
    def _of_text(cls, value: str) -> str:
        try:
            "a".encode(value)
            return codecs.lookup(value).name
        except (LookupError, ValueError):
            raise ValueError(
                f"{value!r} is not known; give one such as utf-8, utf-16, cp1252 (Windows) or iso8859-15"
            ) from None

    @model_validator(mode="after")
    def _of_csv(self) -> Self:
        for name in ("encoding", "decimal"):
            if self.format != "csv" and name in self.model_fields_set:
                raise ValueError(f"gives {name}, which is for csv files; take it out")
        if self.decimal == self.delimiter:
            raise ValueError("gives the comma as decimal and as delimiter; set delimiter, which is then mostly ';'")
        return self

    @field_validator("delimiter")
    @classmethod
    def _one_character(cls, value: str) -> str:
        if len(value) != 1 or not value.isascii() or value in '"\r\n\0':
            raise ValueError('must be one character, such as ";" or "\\t"')
        return value
