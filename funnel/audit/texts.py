"""What people wrote: title, licence, contact and sources of a data package, held against the text of the spec."""

from __future__ import annotations

from typing import Any

from funnel.audit.check import Result, judged
from funnel.audit.package import FREE
from funnel.recount.promise import read_settings


def check_texts(package: dict[str, Any], said: dict[str, Any]) -> Result:
    """Compare what people wrote, such as title and licence, with the spec that is kept in audit/.

    Parameters
    ----------
    package : JSON object
    said : dict
        Keys of the package by what the spec says.
    """
    keys = sorted(set(said) | ({*FREE, "name"} & set(package)))
    wrong = [f"{key} is not that of the spec" for key in keys if package.get(key) != said.get(key)]
    return judged("texts", wrong, "title, licence, contact and sources as in the spec")


def said_texts(text: str) -> dict[str, Any]:
    """What people wrote in the text of a spec, as a data package has it."""
    settings = read_settings(text)
    told = settings.get("metadata", {})
    contact = {"title": told.get("contact_name"), "email": told.get("contact_email"), "roles": ["publisher"]}
    parts = ("title", "path", "version")
    said: dict[str, Any] = {
        "name": settings["name"],
        "title": settings["title"],
        "description": settings.get("description"),
        "licenses": [_written({"name": told.get("licence"), "path": told.get("licence_url")})],
        "keywords": list(told.get("keywords", [])),
        "contributors": [_written(contact)] if contact["title"] or contact["email"] else None,
        "sources": [_written({part: source.get(part) for part in parts}) for source in told.get("sources", [])],
    }
    return _written(said)


def _written(said: dict[str, Any]) -> dict[str, Any]:
    """What of it anybody wrote."""
    return {key: value for key, value in said.items() if value}
