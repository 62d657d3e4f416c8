"""Document: what all JSON documents of a release share; each names its schema and version, written and read checked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Self, TypeVar, get_args

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from funnel.alphabet import Alphabet
from funnel.errors import DataError, FunnelError
from funnel.wording import printable

_SCHEMA = re.compile(r"funnel/([a-z]+(?:-[a-z]+)*)/([1-9][0-9]{0,8})")
_UNNAMED = "it does not name its schema"

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]
Probability = Annotated[float, Field(ge=0, le=1)]
# Integers beyond 2^53 are decimal texts: readers of JSON that parse numbers as doubles would round them.
Decimal = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]*)$")]


def _as_table(numbers: Any) -> Any:
    """Numbers as documents hold them, of an array or of lists."""
    found = numbers.tolist() if isinstance(numbers, np.ndarray) else numbers
    return tuple(tuple(row) if isinstance(row, list) else row for row in found) if isinstance(found, list) else found


OfArray: Final = BeforeValidator(_as_table)
"""Beside the type of a table, or of a row: it may be given as an array."""
CountRow = Annotated[tuple[Count, ...], OfArray]
CountTable = Annotated[tuple[CountRow, ...], Field(min_length=1), OfArray]
VersionText = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$")]


def dump(content: Any) -> bytes:
    """JSON as bytes, readable and the same for equal content; a float that is not a number is an error.

    Lists and objects without others in them are a line each: tables take a third less than number by number.
    """
    parts: list[str] = []
    _write(content, "\n", parts.append)
    return ("".join(parts) + "\n").encode()


_NESTED = (dict, list, tuple)
_inline = json.JSONEncoder(ensure_ascii=False, sort_keys=True, allow_nan=False).encode


def _write(content: Any, line: str, add: Callable[[str], None]) -> None:
    """Add the text of a value; ``line`` is the break, with its indentation, before what ends it."""
    named = isinstance(content, dict)
    inner = content.values() if named else content
    if not isinstance(content, _NESTED) or not any(isinstance(one, _NESTED) for one in inner):
        add(_inline(content))
        return
    first, last = "{}" if named else "[]"
    for number, name in enumerate(sorted(content) if named else range(len(content))):
        add(f"{',' if number else first}{line} {f'{_inline(name)}: ' if named else ''}")
        _write(content[name], f"{line} ", add)
    add(f"{line}{last}")


class Part(BaseModel):
    """A part of a document: immutable, without unknown keys, and no value taken for another type."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        json_schema_serialization_defaults_required=True,
    )

    @classmethod
    def like(cls, source: object, /, **others: Any) -> Self:
        """The part whose fields are the attributes of a source with the same names; ``others`` are given instead."""
        names = (name for name in cls.model_fields if name not in others and hasattr(source, name))
        return cls.model_validate({name: getattr(source, name) for name in names} | others, from_attributes=True)


class Document(Part):
    """A JSON document of a release.

    A child names its schema and the version of that in the field ``schema_``, which is the key ``schema`` of the file:

        schema_: Literal["funnel/record/1"] = Field(default="funnel/record/1", alias="schema")

    Whatever changes a document that is valid today raises the version, from release 1.0 on (docs/formats.md).

    Attributes
    ----------
    described : str
        What it is, for people, with its article: ``"the record of a version"``.
    """

    described: ClassVar[str]
    schema_: str = Field(alias="schema")

    @classmethod
    def identity(cls) -> tuple[str, int]:
        """Name and version of the schema."""
        (text,) = get_args(cls.model_fields["schema_"].annotation)
        match = _SCHEMA.fullmatch(text)
        if match is None:
            raise TypeError(f"{cls.__name__} must name its schema as funnel/NAME/VERSION, not {text}")
        return match[1], int(match[2])

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file.

        Raises
        ------
        DataError
            If there is none or it is not this document: one sentence that names the file.
        """
        try:
            content = path.read_bytes()
        except FileNotFoundError as error:
            raise DataError(f"{cls.described} {path} is missing; restore it or release again") from error
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise DataError(f"{cls.described} {path} cannot be read: {reason}") from error
        return cls.from_json(content, str(path))

    @classmethod
    def from_json(cls, text: str | bytes, place: str = "") -> Self:
        """Read JSON text.

        Parameters
        ----------
        text : str or bytes
        place : str
            Where it is from, for the message.

        Raises
        ------
        DataError
            If it is not this document, or was made by a newer funnel.
        """
        what = f"{cls.described} {place}".rstrip()
        try:
            document = cls.model_validate_json(text)
        except ValidationError as error:
            cls._require_schema(text, what)
            raise DataError(f"{what} is damaged: {_problem(error)}") from error
        # The key has a default for whoever makes a document; a file has to say what it is.
        if "schema_" not in document.model_fields_set:
            raise DataError(f"{what} is damaged: {_UNNAMED}")
        return document

    @classmethod
    def _require_schema(cls, text: str | bytes, what: str) -> None:
        """Refuse what is not JSON, another document, or a document of a newer version."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{what} is damaged: it is not JSON") from error
        name, version = cls.identity()
        found = content.get("schema") if isinstance(content, dict) else None
        if found is None:
            raise DataError(f"{what} is damaged: {_UNNAMED}")
        match = _SCHEMA.fullmatch(found) if isinstance(found, str) else None
        if match is None or match[1] != name:
            raise DataError(f"{what} is another document: its schema is not funnel/{name}")
        if int(match[2]) > version:
            raise DataError(
                f"{what} was made by a newer funnel: its schema is version {match[2]}, and this funnel reads up to "
                f"{version}; install a newer one"
            )

    def content(self) -> dict[str, Any]:
        """The document as JSON-ready values."""
        return self.model_dump(mode="json", by_alias=True)

    def to_bytes(self) -> bytes:
        """The document as the bytes of its file; the same for equal documents."""
        return dump(self.content())

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The JSON Schema (draft 2020-12) of the files of this version."""
        schema = cls.model_json_schema(schema_generator=_Untitled, mode="serialization", by_alias=True)
        for model in (schema, *schema.get("$defs", {}).values()):
            if "description" in model:
                model["description"] = model["description"].split("\n\n")[0].replace("\n", " ")
        return {"$schema": _Untitled.schema_dialect, **schema}


class _Untitled(GenerateJsonSchema):
    """Without a title for every key, which would only repeat it."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never."""
        return False


def _problem(error: ValidationError) -> str:
    """The first problem, without any value of the file; only keys and positions say where it is."""
    details = error.errors(include_url=False)
    first = details[0]
    # Of a part that may be written in two ways the first is named by its type, which is no place of the file.
    place = ".".join(part for part in map(str, first["loc"]) if not part.startswith("tuple[")) or "it"
    rest = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    kind = first["type"]
    if kind == "value_error":
        said = f" {first['ctx']['error']}"
    elif kind in ("missing", "extra_forbidden"):
        said = " is missing" if kind == "missing" else " is not known"
    else:
        said = f": {first['msg'][:1].lower()}{first['msg'][1:]}"
    # A key of the file may hold anything.
    return printable(place + said + rest)


T = TypeVar("T")


class Symbols(Part):
    """An alphabet: the names of its columns, and of every symbol one text a column."""

    columns: tuple[str, ...] = Field(min_length=1)
    symbols: tuple[tuple[str, ...], ...] = Field(min_length=1)

    @classmethod
    def of(cls, alphabet: Alphabet) -> Self:
        """Of an alphabet."""
        return cls(columns=alphabet.columns, symbols=alphabet.symbols)

    def alphabet(self) -> Alphabet:
        """The alphabet; SpecError if its columns or symbols are not distinct or do not fit."""
        return Alphabet(self.columns, self.symbols)


def built(make: Callable[[], T]) -> T:
    """What a document is of; pydantic wants a ValueError where it cannot be made."""
    try:
        return make()
    except FunnelError as error:
        raise ValueError(f"cannot be used: {error}") from error
