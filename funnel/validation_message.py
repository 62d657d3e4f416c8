"""One clear sentence for what a validation of a spec found, however many problems there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from funnel.wording import nearest, toml_key

# Unknown settings that are named one by one.
_NAMED = 20
# Problems that are told in full after the first.
_TOLD = 5

# How alike two names are, where one is taken for the other: in the same section, and in another one.
_ALIKE, _ALIKE_ELSEWHERE = 0.6, 0.85

# Settings that were renamed, with their present names.
_RENAMED = {
    ("history", "reserve"): "budget_fraction",
    ("groups", "people"): "min_records",
    ("groups", "without"): "exclude",
    ("frequencies", "total"): "max_epsilon",
}
_PHRASES = {
    "string_type": "must be text in quotes",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "tuple_type": "must be a list",
    "model_type": "must be a table of settings",
    "dict_type": "must be a table of settings",
    "mapping_type": "must be a table of settings",
}


def validation_sentence(error: ValidationError, model: type[BaseModel]) -> str:
    """The problems of a validation of ``model``, in one sentence that ends with where those are that it does not tell.

    Settings that are not known come first, all at once: a misspelt name explains the one that is then missing.
    """
    details = error.errors(include_url=False, include_input=False)
    unknown = [detail for detail in details if detail["type"] == "extra_forbidden"]
    meant = {(*detail["loc"][:-1], _meant(detail["loc"], model)) for detail in unknown}
    others = [detail for detail in details if not _sentence_of(detail, meant)]
    problems = unknown + others
    sentence = _sentence(problems[0], model)
    also = unknown[1:_NAMED]
    if also:
        sentence = f"{sentence}; unknown as well: {', '.join(_unknown(detail, model) for detail in also)}"
    further = len(problems) - 1 - len(also)
    if not further:
        return sentence
    rest = others if unknown else others[1:]
    told = rest[:_TOLD]
    sentence = "; and ".join((sentence, *(_sentence(detail, model) for detail in told)))
    rest = rest[_TOLD:]
    further -= len(told)
    if not further:
        return sentence
    places = list(dict.fromkeys(place for detail in rest if (place := _place(detail["loc"], model))))
    named = f": {', '.join(places)}" if 0 < len(places) <= _NAMED else ""
    return f"{sentence} (and {further} more{named})"


def _unknown(detail: Any, model: type[BaseModel]) -> str:
    loc = detail["loc"]
    hint = _hint(loc, model)
    return _place(loc, model) + (f" ({hint})" if hint else "")


def _hint(loc: tuple[int | str, ...], model: type[BaseModel]) -> str:
    """What may be meant by an unknown setting, as the end of a sentence; empty where that is not known."""
    if loc in _RENAMED:
        return f"it is called {_RENAMED[loc]} now"
    near, owner = _meant(loc, model), _owner(loc, model)
    if near or owner:
        return f"did you mean {near}?" if near else f"it belongs in {owner}"
    elsewhere = _elsewhere(str(loc[-1]), model)
    return f"did you mean {elsewhere}?" if elsewhere else ""


def _sentence_of(detail: Any, meant: set[tuple[int | str | None, ...]]) -> bool:
    """Whether the unknown settings are this problem, or explain it."""
    return detail["type"] == "extra_forbidden" or (detail["type"] == "missing" and detail["loc"] in meant)


def _sentence(detail: Any, model: type[BaseModel]) -> str:
    loc, kind, context = detail["loc"], detail["type"], detail.get("ctx", {})
    place = _place(loc, model)
    if kind == "extra_forbidden":
        hint = _hint(loc, model)
        return f"{place}: unknown setting" + (f"; {hint}" if hint else "")
    if kind == "missing":
        return f"{place} is missing; every spec must state it"
    if kind == "value_error":
        text = str(context["error"])
        return f"{place} {text}" if place else text
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal"):
        bound = next(iter(context.values()))
        wording = {
            "greater_than": "above",
            "greater_than_equal": "at least",
            "less_than": "below",
            "less_than_equal": "at most",
        }
        return f"{place} must be {wording[kind]} {bound:g}"
    if kind == "literal_error":
        return f"{place} must be {context['expected']}"
    return f"{place} {_PHRASES.get(kind, detail['msg'][:1].lower() + detail['msg'][1:])}"


def _meant(loc: tuple[int | str, ...], model: type[BaseModel]) -> str | None:
    """The known setting of the same section nearest to the unknown one at ``loc``."""
    owner: type[BaseModel] | None = model
    for part in loc[:-1]:
        if owner is not None and isinstance(part, str) and part in owner.model_fields:
            owner = _section(owner.model_fields[part].annotation) or owner
    name = str(loc[-1])
    near = nearest(name, owner.model_fields if owner else (), _ALIKE)
    # What has the very name of a setting elsewhere is that one, unless a letter or two are missing here.
    return None if near and _owner(loc, model) is not None and not near.startswith(name) else near


def _owner(loc: tuple[int | str, ...], model: type[BaseModel]) -> str | None:
    """Where a setting of this very name belongs: in a section, or before the first one."""
    name = str(loc[-1])
    if len(loc) > 1 and name in model.model_fields:
        return "no section: write it above the first line in [brackets]"
    found = [head for head, field in model.model_fields.items() if name in _settings(field.annotation)]
    if len(found) != 1 or found[0] == loc[0]:
        return None
    named = get_origin(model.model_fields[found[0]].annotation) is Mapping
    return f"[{found[0]}.COLUMN]" if named else f"[{found[0]}]"


def _elsewhere(name: str, model: type[BaseModel]) -> str | None:
    """The setting of some section that is nearly called so, with its section."""
    heads = {setting: head for head, field in model.model_fields.items() for setting in _settings(field.annotation)}
    near = nearest(name, heads, _ALIKE_ELSEWHERE)
    return None if near is None else f"[{heads[near]}] {near}"


def _settings(annotation: Any) -> Iterable[str]:
    return getattr(_section(annotation), "model_fields", ())


def _section(annotation: Any) -> type[BaseModel] | None:
    """The model that an annotation is, or is made of: ``Section``, ``Section | None``, ``tuple[Section, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for found in map(_section, get_args(annotation)) if found is not None), None)


def _place(loc: tuple[int | str, ...], model: type[BaseModel]) -> str:
    """Where in the file: ``name``, ``[source] path``, ``[recode.age] bins``, ``[metadata] sources, entry 1, title``."""
    if not loc:
        return ""
    head = str(loc[0])
    field = model.model_fields.get(head)
    if field is None or _section(field.annotation) is None:
        return _path(loc)
    depth = 2 if get_origin(field.annotation) is Mapping else 1
    table = ".".join(toml_key(str(part)) for part in loc[:depth])
    return f"[{table}] {_path(loc[depth:])}".rstrip()


def _path(loc: tuple[int | str, ...]) -> str:
    return ", ".join(f"entry {part + 1}" if isinstance(part, int) else toml_key(part) for part in loc)
