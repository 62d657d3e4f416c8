"""Sections of a spec, and the kinds of values a setting may have: lines of text, labels, columns, links, numbers."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictFloat, StrictStr

from funnel.storage import check_address

# Categories become labels in tables and figures; what is longer is free text, not a category.
MAX_LABEL = 200


class Section(BaseModel):
    """A part of a spec: immutable, without settings it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _one_line(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    if any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in text):
        raise ValueError("must be one line without control characters")
    return text


def _label(text: str) -> str:
    if len(text) > MAX_LABEL:
        raise ValueError(f"must have at most {MAX_LABEL} characters")
    return _one_line(text)


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise ValueError('must be a list of texts in quotes, such as ["one", "two"]')
    return tuple(value)


def read_columns(value: object) -> tuple[str, ...]:
    """Columns, at least one, each once.

    Raises
    ------
    ValueError
        If they are none.
    """
    names = _texts(value)
    if not names:
        raise ValueError("must name at least one column")
    for name in names:
        _one_line(name)
        if names.count(name) > 1:
            raise ValueError(f"lists the column {name!r} twice")
    return names


def _groups(groups: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    if not groups:
        raise ValueError("must name at least one group with its values")
    of: dict[str, str] = {}
    for name, values in groups.items():
        if not values:
            raise ValueError(f"must list the values of the group {name!r}")
        for value in values:
            if value in of:
                raise ValueError(f"puts the value {value!r} into a group twice; list it once")
            of[value] = name
    for name in groups:
        if of.get(name, name) != name:
            raise ValueError(
                f"puts {name!r}, the name of a group, into the group {of[name]!r}; give the group another name"
            )
    return groups


def _link(text: str) -> str:
    # Links end up in the report: nothing but web addresses and plain relative paths may become a hyperlink.
    scheme = re.match(r"\s*([A-Za-z][A-Za-z0-9+.-]*):", text)
    if scheme and scheme[1].lower() not in ("http", "https"):
        raise ValueError("must be an http or https address, or a relative path")
    return _one_line(text)


def _web_address(text: str) -> str:
    if not re.fullmatch(r"https?://\S+", text):
        raise ValueError("must be a web address that starts with https:// or http://")
    return _link(text)


def _email(text: str) -> str:
    if not re.fullmatch(r"[^@\s<>,;:\"()]+@[^@\s<>,;:\"()]+\.[^@\s<>,;:\"().]+", text) or len(text) > 254:
        raise ValueError(f"{text!r} is not an e-mail address such as data@example.org")
    return _link(text)


Line = Annotated[StrictStr, AfterValidator(_one_line)]
Label = Annotated[StrictStr, AfterValidator(_label)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_texts)]
Columns = Annotated[tuple[str, ...], BeforeValidator(read_columns)]
Address = Annotated[Line, AfterValidator(check_address)]
Link = Annotated[StrictStr, AfterValidator(_link)]
WebAddress = Annotated[StrictStr, AfterValidator(_web_address)]
Email = Annotated[StrictStr, AfterValidator(_email)]
Groups = Annotated[Mapping[Label, Texts], AfterValidator(_groups)]
Positive = Annotated[StrictFloat, Field(gt=0, allow_inf_nan=False)]
