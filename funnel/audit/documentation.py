"""What a release tells people and portals, held against its data package, its protocol and the text of its spec."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import TYPE_CHECKING, Any

from funnel.audit.check import Found, check
from funnel.audit.files import read_document
from funnel.audit.package import FREE, fields_of
from funnel.recount.documentation import documentation_again
from funnel.recount.estimator import estimator_complaints
from funnel.recount.promise import read_settings
from funnel.release.layout import ReleaseFolder, Version

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext

HANDOUTS = ("CITATION.cff", "README.md", "dcat.jsonld")
_BEFORE = re.compile(rb'"dcat:prev": \{\s*"@id": "\.\./([0-9.]+)/"')


@check("handouts", "public")
def check_documentation(known: AuditContext) -> Found:
    """README, citation, catalogue entry and the csv of the protocol follow from the package and the protocol."""
    folder, document, package, facts = known.folder, known.document, known.package, known.facts
    try:
        previous = previous_version(folder, package, facts)
        again = documentation_again(package, document.content(), previous)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        yield "they cannot be told from these documents"
        return ""
    if folder.estimator.name in facts:
        for complaint in estimator_complaints(read_document(folder.estimator), document.content()):
            yield f"{folder.estimator.name}: {complaint}"
    for name in sorted(set(again) & set(facts)):
        if read_document(folder.root / name) != again[name]:
            yield f"{name} is not what the two documents make"
    return "what the two documents make of them"


def previous_version(folder: ReleaseFolder, package: dict[str, Any], facts: Container[str]) -> str | None:
    """The version before, which only the entry of the catalogue tells: one that is smaller than this one."""
    if folder.catalogue.name not in facts:
        return None
    found = _BEFORE.search(read_document(folder.catalogue))
    told, own = Version.parse(found[1].decode()) if found else None, Version.parse(str(package.get("version")))
    return str(told) if told is not None and own is not None and told < own else None


@check("texts", "internal")
def check_texts(known: AuditContext) -> Found:
    """Title, licence, contact, sources and labels are those of the spec."""
    package, said = known.package, declared_texts(known.evidence.spec.text)
    keys = sorted(set(said) | ({*FREE, "name"} & set(package)))
    yield from (f"{key} is not that of the spec" for key in keys if package.get(key) != said.get(key))
    labels = read_settings(known.evidence.spec.text).get("metadata", {}).get("labels", {})
    for field in fields_of(package, "data/records.parquet"):
        if field.get("title") != labels.get(field["name"]):
            yield f"the label of {field['name']!r} is not that of the spec"
    return "title, licence, contact, sources and labels as in the spec"


def declared_texts(text: str) -> dict[str, Any]:
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
