"""Values as a spec file spells them: texts, numbers, tables and lists of texts in TOML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from funnel.wording import printable, toml_key


def comment(name: str) -> str:
    """A name inside a comment, on one line."""
    return printable(name)


def text_value(value: str) -> str:
    """A text in quotation marks."""
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in quoted)


def _escaped(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if ord(letter) < 1 << 16 else f"\\U{ord(letter):08x}"


def value_text(value: Any) -> str:
    """A text, a number, or a table of these on one line."""
    if isinstance(value, str):
        return text_value(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(str(key))} = {value_text(one)}" for key, one in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def list_of_texts(values: Iterable[str]) -> str:
    """Texts as an array on one line."""
    return f"[{', '.join(map(text_value, values))}]"


def text_of_lines(lines: Iterable[str]) -> str:
    """Lines as a text in which no two empty ones follow each other."""
    made: list[str] = []
    for line in lines:
        if line or (made and made[-1]):
            made.append(line)
    return "\n".join(made).rstrip("\n") + "\n"
