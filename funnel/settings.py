"""The sections of a release spec: what each setting is called, what it may be, and what it means."""

from __future__ import annotations

import codecs
import math
import re
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from datetime import date, datetime
from fractions import Fraction
from itertools import count, pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    field_validator,
    model_validator,
)

from funnel.databases import check_database, names_database
from funnel.errors import SpecError
from funnel.fields import Address, Email, Groups, Label, Line, Link, Positive, Texts, WebAddress
from funnel.storage import check_address, is_url
from funnel.wording import did_you_mean, listed, nearest, plain_number

if TYPE_CHECKING:
    from funnel.guarantees import Guarantee

# Beyond this e^ε exceeds 10^43: no count of people could ever show such a factor.
MAX_EPSILON = 100.0

# Bins of a declared range have at most so many edges.
MOST_ROUND_EDGES = 9

# The category of values without a name of their own.
OTHER = "Other"


class Section(BaseModel):
    """A part of a spec: immutable, without settings it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


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
    if isinstance(value, datetime) or not (_is_number(value) or isinstance(value, date)):
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
        One of `funnel.source.formats`; by default told by the suffix of the path; a path without suffix is a folder of
        parquet files.
    table : str or None
        Of a database: the table (or view) to read, or ``schema.table``.
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

    @model_validator(mode="before")
    @classmethod
    def _format_by_suffix(cls, value: object) -> object:
        if not isinstance(value, Mapping) or "format" in value:
            return value
        path = value.get("path")
        if not isinstance(path, str) or not _is_address(path):
            # The path is refused below; that no format can be told from it is no second problem.
            return {**value, "format": "parquet"}
        if names_database(path):
            return {**value, "format": "sql"}
        from funnel.source.formats import format_of, suffixes

        # A path without suffix can only be a folder.
        suffix = "" if path.endswith("/") else PurePath(path).suffix.lower()
        found = format_of(path) if suffix else "parquet"
        if found is None:
            raise ValueError(
                f"cannot tell the format by {suffix!r}, as by {listed(suffixes())}; add format = "
                '"parquet" or format = "csv", for instance'
            )
        is_tabbed = re.search(r"\.tsv(\.gz|\.zip)?$", path.lower()) is not None and "delimiter" not in value
        return {**value, "format": found, **({"delimiter": "\t"} if is_tabbed else {})}

    @field_validator("format")
    @classmethod
    def _known(cls, value: str) -> str:
        from funnel.source.formats import names

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
        if self.format != "sql" and given:
            raise ValueError(f"gives a {given[0]}, which is for databases, and path names files; take {given[0]} out")
        if self.format == "sql" and len(given) != 1:
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


class Recode(Section):
    """``[recode.COLUMN]``: how the values of one column become fewer categories.

    Attributes
    ----------
    bins : tuple of numbers, "auto" or None
        Strictly increasing edges; ``[25, 65]`` makes "under 25", "25 to under 65" and "65 and over". With "auto" they
        are chosen (`funnel.binning`).
    period : "year", "quarter", "month" or None
        What of dates and points in time becomes the category: ``2026``, ``2026-Q3`` or ``2026-07``.
    groups : mapping of str to tuple of str, or None
        Names of new categories, each with the values that become it: texts of the source, or names of bins; also the
        name of the category of missing values, or that of ``other``.
    minimum_count : int or None
        Categories with fewer records than this become one, that of missing values among them, and so do the smallest
        others until that one has as many; applies after ``bins`` and ``groups``.
    other : str
        The name of that one; also of the category of all values that are not named, where [categories] lists the
        names or where they are learned under noise.
    """

    bins: tuple[int | float, ...] | Literal["auto"] | None = None
    period: Literal["year", "quarter", "month"] | None = None
    groups: Groups | None = None
    minimum_count: Annotated[StrictInt, Field(ge=1)] | None = None
    other: Label = OTHER

    @field_validator("bins", mode="before")
    @classmethod
    def _increasing(cls, value: object) -> object:
        if value is None or value == "auto":
            return value
        if not isinstance(value, (list, tuple)) or not value or not all(_is_number(edge) for edge in value):
            raise ValueError('must be a list of at least one finite number, such as [25, 45, 65], or "auto"')
        for low, high in pairwise(value):
            if not low < high:
                raise ValueError(f"must increase from edge to edge, but {high} follows {low}")
        return tuple(value)

    @model_validator(mode="after")
    def _something_to_do(self) -> Self:
        if self.bins is not None and self.period is not None:
            raise ValueError("gives bins and a period; numbers have the one, dates the other")
        if self.bins == "auto" and self.groups is not None:
            raise ValueError('gives groups of bins that are yet to be found; take groups out, or bins = "auto"')
        given = (self.bins, self.minimum_count, self.groups, self.period)
        if not any(setting is not None for setting in given) and "other" not in self.model_fields_set:
            raise ValueError("says nothing to do; give bins = [...], period, groups or minimum_count = ...")
        return self

    @property
    def group_of(self) -> dict[str, str]:
        """The group of every value that is in one."""
        return {value: name for name, values in (self.groups or {}).items() for value in values}

    def with_edges(self, edges: tuple[int | float, ...]) -> Self:
        """The same with these edges in place of those that are to be found."""
        return self.model_copy(update={"bins": edges})

    @property
    def edges(self) -> tuple[int | float, ...]:
        """The edges of the bins as far as they are known; empty without bins."""
        return self.bins if isinstance(self.bins, tuple) else ()

    @property
    def bin_labels(self) -> tuple[str, ...]:
        """Names of the bins from the lowest to the highest, one more than edges; empty without edges."""
        if not self.edges:
            return ()
        edges = [plain_number(edge) for edge in self.edges]
        between = [f"{low} to under {high}" for low, high in pairwise(edges)]
        return (f"under {edges[0]}", *between, f"{edges[-1]} and over")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


# Whole numbers that a double tells apart.
_MOST_STEPS = 2**53


class NumberSettings(Section):
    """``[numbers.COLUMN]``: what the numbers of a column are.

    Attributes
    ----------
    range : pair of numbers or None
        The least number there can be and the largest: known before the source is read, not found in it. It closes the
        first and the last interval.
    whole : bool
        Whether there are whole numbers only: then "25 to under 45" is from 25 to 44.
    unit : str or None
        What is counted or measured, such as "years" or "US dollars".
    decimals : int or None
        Digits after the point that numbers have: of 2, "10 to under 20" is from 10.00 to 19.99.
    means : tuple of numbers or None
        What the numbers of every bin are on average, known before the source is read; by default the middle of each.
    draw : "within" or None
        Whether a table is published beside the records that has a number of its interval for every record.
    """

    range: Annotated[tuple[int | float, int | float] | None, BeforeValidator(_as_tuple)] = None
    whole: StrictBool = False
    unit: Line | None = None
    decimals: Annotated[StrictInt, Field(ge=0, le=9)] | None = None
    means: Annotated[tuple[int | float, ...] | None, BeforeValidator(_as_tuple)] = None
    draw: Literal["within"] | None = None

    @field_validator("means", mode="before")
    @classmethod
    def _one_a_bin(cls, value: object) -> object:
        if value is None or (isinstance(value, (list, tuple)) and value and all(map(_is_number, value))):
            return None if value is None else tuple(value)
        raise ValueError("must be a list with a number for every bin, from the lowest to the highest")

    @field_validator("range", mode="before")
    @classmethod
    def _from_least_to_largest(cls, value: object) -> object:
        if value is None:
            return None
        if not isinstance(value, (list, tuple)) or len(value) != 2 or not all(_is_number(end) for end in value):
            raise ValueError("must be the least and the largest number there can be, such as [0, 120]")
        if not value[0] < value[1]:
            raise ValueError(f"must go from the least to the largest number, but {value[1]} follows {value[0]}")
        return tuple(value)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("says nothing; give range, whole, decimals or unit")
        if self.whole and self.decimals:
            raise ValueError(f"has whole numbers with {self.decimals} decimals; take whole or decimals out")
        if self.draw is None:
            return self
        if self.range is None or self.step is None:
            raise ValueError(
                'draw = "within" needs to know which numbers there are; give range = [least, largest], and whole = '
                "true or the number of decimals"
            )
        if max(map(abs, self.range)) / self.step > _MOST_STEPS:
            raise ValueError("has more numbers than can be drawn from; give fewer decimals, or a smaller range")
        return self

    @property
    def step(self) -> Fraction | None:
        """What numbers are multiples of; None where any number there is may be one."""
        if self.decimals is not None:
            return Fraction(1, 10**self.decimals)
        return Fraction(1) if self.whole else None

    @property
    def round_edges(self) -> tuple[int | float, ...]:
        """Edges that are a function of the range: multiples of 1, 2 or 5 times a power of ten, at most nine of them.

        Of the steps that make so few the least; of whole numbers one that is whole.
        """
        if self.range is None:
            return ()
        # As the decimals that were written.
        low, high = (Fraction(str(end)) for end in self.range)
        power = math.floor(math.log10(float(high - low))) - 2
        for k in count():
            step = Fraction((1, 2, 5)[k % 3]) * Fraction(10) ** (power + k // 3)
            if self.whole and step.denominator > 1:
                continue
            first = math.floor(low / step) + 1
            last = math.ceil(high / step) - 1
            if last - first < MOST_ROUND_EDGES:
                edges = [step * j for j in range(first, last + 1)]
                # A range within one step is cut in its middle.
                edges = edges or [(low + high) / 2]
                return tuple(int(edge) if edge.denominator == 1 else float(edge) for edge in edges)
        raise AssertionError("steps grow without end")


class GuaranteeSettings(Section):
    """``[guarantee]``, or ``guarantee = "lip:1.0"``: what is promised about every released record.

    Besides its kind a guarantee has what its dataclass has: the number ``epsilon`` for most, ``lower`` and ``upper``
    where losses and gains of belief are bounded apart (``inf`` for no bound), the word ``set`` for robust ones, and so
    on. They become settings of the same names here, all of them, in their order, those left out with their default.

    Attributes
    ----------
    kind : str
        Name of a guarantee.
    """

    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)
    __pydantic_extra__: dict[str, StrictFloat | StrictStr]

    kind: Line

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: object) -> object:
        from funnel.guarantees import guarantee_of, parse_guarantee, words_in

        try:
            if isinstance(value, str):
                cls._known(value.partition(":")[0])
                guarantee = parse_guarantee(value)
            elif isinstance(value, Mapping) and isinstance(value.get("kind"), str):
                kind = cls._known(value["kind"])
                settings = {str(name): setting for name, setting in value.items() if name != "kind"}
                words = words_in(kind)
                for name, setting in settings.items():
                    if name in words:
                        if not isinstance(setting, str):
                            raise ValueError(f"{name} must be a word in quotes")
                    elif isinstance(setting, bool) or not isinstance(setting, (int, float)):
                        raise ValueError(f"{name} must be a number")
                guarantee = guarantee_of(kind, settings)
            else:
                if isinstance(value, Mapping) and "kind" not in value:
                    for name in value:
                        if nearest(str(name), ("kind",)):
                            raise ValueError(f"{name}: unknown setting; did you mean kind?")
                # No text, no table, or one without a kind: the model says so.
                return value
        except SpecError as error:
            raise ValueError(str(error)) from error
        _within_reason(guarantee)
        return {"kind": guarantee.name, **asdict(guarantee)}  # type: ignore[call-overload]

    @field_validator("kind")
    @classmethod
    def _known(cls, value: str) -> str:
        from funnel.guarantees import names

        kind, known = value.strip().lower(), names()
        if kind not in known:
            hint = did_you_mean(kind, known) or "; known are " + listed(known)
            raise ValueError(f"kind {value!r} is not a guarantee{hint}")
        return kind

    @property
    def canonical(self) -> str:
        """The one way to write this guarantee as text, such as ``"lip:1.0"``."""
        from funnel.guarantees import guarantee_of

        return str(guarantee_of(self.kind, self.__pydantic_extra__))


def _within_reason(guarantee: Guarantee) -> None:
    """Refuse a budget that protects nobody, and one of zero where another guarantee says that better."""
    from funnel.guarantees.one_budget import OneBudget

    budget = guarantee.budget
    if budget == 0 and isinstance(guarantee, OneBudget):
        raise ValueError(
            "epsilon must be above zero: 0 asks that a record tell nothing at all about the secret, which is "
            'guarantee = "perfect"'
        )
    if budget > MAX_EPSILON:
        name = next((name for name, number in asdict(guarantee).items() if number == budget), "a budget")  # type: ignore[call-overload]
        raise ValueError(f"{name} of {budget:g} nats is no protection at all; give at most {MAX_EPSILON:g}")


class MechanismSettings(Section):
    """``[mechanism]``, or ``mechanism = "optimal"``: how the protocol is made.

    Attributes
    ----------
    name : str
        A registered mechanism, or "auto" for the most useful one that meets the guarantee.
    reads_secret : bool
        Whether the protocol may look at the secret of a record as well as at the columns to publish.
    time_limit : float
        Seconds that one optimisation may take.
    """

    name: Line = "auto"
    reads_secret: StrictBool = False
    time_limit: Positive = 60.0

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else value

    @field_validator("name")
    @classmethod
    def _known(cls, value: str) -> str:
        from funnel.mechanisms import names

        known = ("auto", *names())
        if value not in known:
            hint = did_you_mean(value, known) or "; known are " + listed(known)
            raise ValueError(f"{value!r} is not a mechanism{hint}")
        return value


class OutputSettings(Section):
    """``[output]``: where releases and working files go, and what is written.

    Attributes
    ----------
    folder : str
        Where releases appear, each under its name and version: a path, relative to the folder of the spec file, or a
        URL such as ``s3://bucket/releases``.
    workspace : str or None
        Private working files (snapshots, caches, and the records of releases at a URL), always local; by default
        ``.funnel`` next to ``folder``, or next to the spec file if that is a URL.
    csv : bool
        Whether to write the released table as csv too.
    shuffle : bool
        Whether to put the released rows in random order, so that the order of the source tells nothing.
    served_at : str or None
        The web address under which ``folder`` is served, such as ``http://127.0.0.1:4300`` for ``funnel serve``: the
        runs of an orchestrator then link to the report.
    """

    folder: Address = "releases"
    workspace: Line | None = None
    csv: StrictBool = False
    shuffle: StrictBool = True
    served_at: WebAddress | None = None

    @field_validator("workspace")
    @classmethod
    def _private(cls, value: str | None) -> str | None:
        if value is not None and is_url(value):
            raise ValueError("must be a local folder: working files are private")
        return value


class SourceReference(Section):
    """``[[metadata.sources]]``: what the released data were made from.

    Attributes
    ----------
    title : str
        How to cite it.
    path : str or None
        Its address: a DOI link or another web address, or a relative path.
    version : str or None
        Its version or date.
    """

    title: Line
    path: Link | None = None
    version: Line | None = None


class MetadataSettings(Section):
    """``[metadata]``: what is told to those who use the release.

    Attributes
    ----------
    licence : str
        Name or SPDX identifier of the licence the release is published under.
    licence_url : str or None
        Its web address.
    contact_name : str or None
        Whom to ask.
    contact_email : str or None
        Where to ask.
    keywords : tuple of str
        Words by which a portal finds the release.
    sources : tuple of SourceReference
        What the released data were made from.
    """

    licence: Line
    licence_url: WebAddress | None = None
    contact_name: Line | None = None
    contact_email: Email | None = None
    keywords: Texts = ()
    sources: Annotated[tuple[SourceReference, ...], BeforeValidator(_as_tuple)] = ()


class LimitSettings(Section):
    """``[limits]``: sizes at which to stop and ask for a recoding rather than to go on for hours.

    Attributes
    ----------
    max_symbols : int
        Categories of one column, after recoding.
    max_inputs : int
        Combinations of categories that occur in the columns a protocol reads.
    """

    max_symbols: Annotated[StrictInt, Field(ge=2)] = 1000
    max_inputs: Annotated[StrictInt, Field(ge=2)] = 1_000_000


class ConfidenceSettings(Section):
    """``[confidence]``: how sure to be of the frequencies estimated from the source.

    Attributes
    ----------
    alpha : float
        Probability, between 0 and 1, that the true law lies outside the confidence set.
    """

    alpha: Annotated[StrictFloat, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.05


class ApprovalSettings(Section):
    """``[approval]``: whether somebody has to approve of a version before it is published.

    Attributes
    ----------
    required : bool
        A version that passed is then held back until ``funnel approve`` names who approved of it.
    """

    required: StrictBool = False


# What Dask listens on.
_SCHEDULER = re.compile(r"(tcp|tls|ws|wss|ucx|ucxx)://[^\s/@]+:[0-9]{1,5}")


class EngineSettings(Section):
    """``[engine]``, or ``engine = "dask"``: who draws and writes the rows; nothing here changes what is released.

    Attributes
    ----------
    kind : "local" or "dask"
        Processes of this machine, or workers of Dask (``pip install 'funnel[dask]'``).
    workers : int
        Their number; with Dask and a scheduler, whatever workers that has.
    scheduler : str or None
        Address of a Dask scheduler, such as ``tcp://10.0.0.5:8786``, whose workers see the same files; without one
        workers are started on this machine.
    """

    kind: Literal["local", "dask"] = "local"
    workers: Annotated[StrictInt, Field(ge=1, le=1024)] = 1
    scheduler: Line | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_kind(cls, value: object) -> object:
        return {"kind": value} if isinstance(value, str) else value

    @field_validator("scheduler")
    @classmethod
    def _an_address(cls, value: str | None) -> str | None:
        if value is not None and not _SCHEDULER.fullmatch(value):
            raise ValueError(f"{value!r} is no address of a scheduler; give one such as tcp://10.0.0.5:8786")
        return value

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.scheduler is not None and self.kind != "dask":
            raise ValueError('names a scheduler, which is for kind = "dask"; set kind or take scheduler out')
        return self


_FOLDER_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def folder_name(value: str, example: str) -> str:
    """A name that becomes a folder.

    Raises
    ------
    ValueError
        If it is not lower-case letters, digits and single hyphens, at most 80 of them.
    """
    if not _FOLDER_NAME.fullmatch(value) or len(value) > 80:
        raise ValueError(
            f"{value!r} must be lower-case letters, digits and single hyphens, such as {example}, because it becomes a "
            "folder"
        )
    return value


with warnings.catch_warnings():
    # Of classes, which no instance has: what it means in a spec matters more.
    warnings.filterwarnings("ignore", message='Field name "register" .* shadows')

    class HistorySettings(Section):
        """``[history]``: whether successive versions are about the same people, and what follows from that.

        Attributes
        ----------
        people : "same" or "different"
            Whether people of one version may be in another one. If they are the same, the guarantee bounds everything
            that is published about a person; if every version is about other people, each version alone is bounded, and
            whoever writes the spec vouches for it.
        register : str or None
            Name under which the people are known; series with the same register are about the same people. By default
            the name of the series.
        reserve : float
            Share of the budget, above 0 and at most 1, that is used while frequencies may still move.
        on_drift : "fail" or "continue"
            What to do when categories come or go, or frequencies move by more than chance explains.
        """

        people: Literal["same", "different"]
        register: StrictStr | None = None
        reserve: Annotated[StrictFloat, Field(gt=0, le=1, allow_inf_nan=False)] = 1.0
        on_drift: Literal["fail", "continue"] = "continue"

        @field_validator("register")
        @classmethod
        def _a_folder(cls, value: str | None) -> str | None:
            return None if value is None else folder_name(value, "household-panel")

        @model_validator(mode="after")
        def _of_the_same_people(self) -> Self:
            for name in ("register", "reserve"):
                if self.people == "different" and name in self.model_fields_set:
                    raise ValueError(
                        f'gives a {name}, which is for people = "same"; take it out, or set people if versions are '
                        "about the same people"
                    )
            return self


_LEDGER = re.compile(r"environment:[A-Za-z_][A-Za-z0-9_]*|postgresql(\+psycopg)?://\S+|sqlite:///\S+")


class LedgerSettings(Section):
    """``[ledger]``: where it is noted what was released, refused and withdrawn.

    Attributes
    ----------
    url : str or None
        A database, such as ``postgresql+psycopg://ledger@db.example/funnel``, or ``environment:NAME`` for a variable
        that holds one; by default ``ledger.sqlite`` in the workspace.
    """

    url: Line | None = None

    @field_validator("url")
    @classmethod
    def _a_database(cls, value: str | None) -> str | None:
        if value is None:
            return None
        # Not quoted: it may hold a password.
        if not _LEDGER.fullmatch(value):
            raise ValueError(
                "must be a database, such as postgresql+psycopg://ledger@db.example/funnel or "
                "sqlite:////srv/ledger.sqlite, or environment:NAME"
            )
        if re.search(r"://[^?]*:[^?]*@|[?&]\w*password=", value, re.IGNORECASE):
            raise ValueError(
                "holds a password, which has no place in a spec; put the whole URL into an environment variable and "
                "name it: environment:NAME"
            )
        return value


_SECRET_PLACE = re.compile(r"file|environment:[A-Za-z_][A-Za-z0-9_]*|prefect:[a-z0-9-]+")


def secret_place(value: str) -> str:
    """A place of the release secret, as written in a spec.

    Raises
    ------
    ValueError
        If it is none.
    """
    if not _SECRET_PLACE.fullmatch(value):
        # Not quoted: it may be the secret itself.
        raise ValueError(
            'must say where the secret is, "file", "environment:NAME" or "prefect:NAME-OF-A-SECRET-BLOCK"; the secret '
            "itself has no place in a spec"
        )
    return value
