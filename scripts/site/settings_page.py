"""The page of every setting of a spec: name, kind, default and meaning, from the models and their docstrings."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from datetime import date
from typing import Any, Literal

from griffe import Docstring, DocstringSectionAttributes, DocstringSectionText, Parser
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from funnel import guarantees
from funnel.settings.guarantee import GuaranteeSettings
from funnel.settings.source import SourceSettings
from funnel.spec import ReleaseSpec

HEAD = """# Settings of a spec

Every setting, by the section of the TOML file that it is in; made from the models that read a spec. A setting without a
default must be given. What is not listed here is refused, with the nearest name that there is.
[data/adult.toml](../../data/adult.toml) is an example with comments, and `funnel init` drafts one from a source.
"""
_PLAIN = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    date: "date",
}
_SECTION = re.compile(r"^``(\[[^`]*\])``.*?:\s+", re.DOTALL)
# Found by a validator, so that the models have no default for it.
_FOUND = {(SourceSettings, "format"): "by the suffix"}


def kind(annotation: Any) -> str:
    """What a setting may be, in words."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return kind(inner[0])
    if origin is Literal:
        return " or ".join(f'`"{value}"`' for value in inner)
    if origin in (typing.Union, types.UnionType):
        kinds = dict.fromkeys(kind(part) for part in inner if part is not type(None))
        return " or ".join(name for name in kinds if name != "whole number" or "number" not in kinds)
    if origin is tuple:
        return f"list of {kind(inner[0])}" if inner[-1] is ... else " and ".join(map(kind, inner))
    if inspect.isclass(origin) and issubclass(origin, Mapping):
        return f"section of {kind(inner[0])} = {kind(inner[1])}"
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return f"[section](#{anchor(annotation)})"
    return _PLAIN[annotation]


def anchor(model: type[BaseModel]) -> str:
    """Where a section is on the page."""
    return model.__name__.lower()


def default(value: Any) -> str:
    """The default as TOML writes it."""
    if value is PydanticUndefined or value is MISSING:
        return "must be given"
    if value is None:
        return ""
    if isinstance(value, (BaseModel, Mapping)):
        return "as listed there" if isinstance(value, BaseModel) else ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f'`"{value}"`'
    if isinstance(value, tuple):
        return "`[" + ", ".join(default(item).strip("`") for item in value) + "]`"
    return f"`{value}`"


def told(model: type) -> tuple[str, dict[str, str]]:
    """What a docstring says of a class, and of each attribute."""
    text, said = "", {}
    for section in Docstring(inspect.getdoc(model) or "").parse(Parser.numpy, warnings=False):
        if isinstance(section, DocstringSectionText):
            text += section.value
        elif isinstance(section, DocstringSectionAttributes):
            for entry in section.value:
                for name in entry.name.split(","):
                    said[name.strip()] = " ".join(entry.description.split())
    return text, said


def headed(model: type[BaseModel]) -> tuple[str, str]:
    """How a section is written in a spec, and what its docstring says of it."""
    text = told(model)[0]
    head = _SECTION.match(text)
    if head is None:
        return "At the top", "What stands before the first section."
    said = text[head.end() :]
    return head[1], said[:1].upper() + said[1:].replace("``", "`")


def row(*cells: str) -> str:
    """A line of a table."""
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|").replace("``", "`") for cell in cells) + " |"


def table(model: type[BaseModel]) -> Iterator[str]:
    """The settings of one section."""
    said = told(model)[1]
    yield from ("| setting | kind | default | what it does |", "| --- | --- | --- | --- |")
    for name, field in model.model_fields.items():
        value = field.default if field.default_factory is None else None
        inner = list(models_in(field.annotation))
        # Of a section, what its own docstring says in a word.
        meaning = headed(inner[0])[1].partition("\n\n")[0] if inner else said[name]
        yield row(f"`{name}`", kind(field.annotation), _FOUND.get((model, name), default(value)), meaning)


def sections(model: type[BaseModel], seen: dict[type[BaseModel], None]) -> None:
    """The section and all sections inside it, in the order in which they are met."""
    if model in seen:
        return
    seen[model] = None
    for field in model.model_fields.values():
        for inner in models_in(field.annotation):
            sections(inner, seen)


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The sections that a setting may be."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from models_in(inner)


def bounds() -> Iterator[str]:
    """The kinds of guarantees, each with the numbers it takes."""
    yield from ("| kind | settings | what it bounds |", "| --- | --- | --- |")
    for name, guarantee in guarantees._KINDS.items():
        takes = []
        for field in fields(guarantee):
            given = field.default
            takes.append(f"`{field.name}`" + ("" if given is MISSING else f" (default {default(given)})"))
        yield row(f"`{name}`", ", ".join(takes), " ".join(told(guarantee)[0].partition("\n\n")[0].split()))


def page() -> str:
    """All of it."""
    seen: dict[type[BaseModel], None] = {}
    sections(ReleaseSpec, seen)
    lines = [HEAD]
    for model in seen:
        name, said = headed(model)
        lines += [f"## {name} {{#{anchor(model)}}}", "", said, ""]
        lines += [*table(model), ""]
        if model is GuaranteeSettings:
            lines += [*bounds(), ""]
    return "\n".join(lines)
