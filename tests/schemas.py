"""Documents judged by their published JSON Schemas, with a reader of schemas that is not ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

from funnel.schemas import FOLDER


def validated(content: dict[str, Any]) -> str:
    """Validate a document by the published schema that it names; returns the name of that."""
    _, name, version = content["schema"].split("/")
    schema = json.loads((FOLDER / f"{name}-{version}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(content)
    return str(name)


def validated_file(path: Path) -> str:
    """As `validated`, of a file."""
    return validated(json.loads(path.read_bytes()))
