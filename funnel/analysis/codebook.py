"""Codebook: a release described for data archives, in DDI-Codebook 2.5."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from xml.etree import ElementTree as ET

from funnel.joint import IntArray
from funnel.release.handouts.citation import publisher
from funnel.release.privacy_block import PrivacyBlock
from funnel.settings.source import SourceSettings

# What a release calls a value that is not there; files for analysts have their own way to say so.
MISSING: Final[str] = SourceSettings.model_fields["missing_label"].default
_NAMESPACE = "ddi:codebook:2_5"
_XML = "http://www.w3.org/XML/1998/namespace"
Described = tuple[str, str, str, Sequence[str], IntArray]
"""A column: its name, what it is about, how it was made, its categories, and the records of each."""


def codebook(package: Mapping[str, Any], privacy: PrivacyBlock, columns: Iterable[Described]) -> bytes:
    """The content of the file: study, bound, file, and every variable with its categories and how common they are.

    Parameters
    ----------
    package : JSON object
        Content of ``datapackage.json``.
    privacy : PrivacyBlock
    columns : iterable of (name, label, description, categories, counts)
    """
    columns = list(columns)
    # A name in XML begins with a letter.
    of_root = {"xmlns": _NAMESPACE, "version": "2.5", "ID": f"codebook-{package['name']}", f"{{{_XML}}}lang": "en"}
    root = ET.Element("codeBook", of_root)
    _citation(_under(root, "docDscr"), f"Codebook of {package['title']}", package)
    study = _under(root, "stdyDscr")
    _citation(study, package["title"], package)
    info = _under(study, "stdyInfo")
    if package.get("keywords"):
        subject = _under(info, "subject")
        for word in package["keywords"]:
            _under(subject, "keyword", word)
    if package.get("description"):
        _under(info, "abstract", package["description"])
    processing = _under(_under(study, "method"), "dataColl")
    _under(processing, "cleanOps", privacy.meaning)
    access = _under(_under(study, "dataAccs"), "useStmt")
    (licence, *_) = package["licenses"]
    _under(access, "conditions", licence.get("path") or licence["name"])
    _under(access, "disclaimer", f"Bound: {privacy.guarantee}. {privacy.meaning}")
    file = package["resources"][0]
    described = _under(_under(root, "fileDscr", ID="F1", URI=file["path"]), "fileTxt")
    _under(described, "fileName", file["path"])
    size = _under(described, "dimensns")
    _under(size, "caseQnty", str(privacy.records))
    _under(size, "varQnty", str(len(columns)))
    _under(described, "fileType", file["format"])
    data = _under(root, "dataDscr")
    for number, column in enumerate(columns, 1):
        _variable(data, f"V{number}", column)
    ET.indent(root)
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode").encode() + b"\n"


def _citation(parent: ET.Element, title: str, package: Mapping[str, Any]) -> None:
    citation = _under(parent, "citation")
    titles = _under(citation, "titlStmt")
    _under(titles, "titl", title)
    _under(titles, "IDNo", f"{package['name']}/{package['version']}")
    contact = publisher(package)
    if contact.get("title"):
        _under(_under(citation, "rspStmt"), "AuthEnty", contact["title"])
    _under(_under(citation, "prodStmt"), "prodDate", package["created"][:10], date=package["created"][:10])
    if contact.get("email"):
        _under(_under(citation, "distStmt"), "contact", contact.get("title", ""), email=contact["email"])
    _under(_under(citation, "verStmt"), "version", package["version"], date=package["created"][:10])


def _variable(parent: ET.Element, number: str, column: Described) -> None:
    name, label, description, categories, counts = column
    variable = _under(parent, "var", ID=number, name=name, files="F1", intrvl="discrete")
    _under(variable, "labl", label)
    _under(variable, "sumStat", str(int(counts.sum())), type="vald")
    if description:
        _under(variable, "txt", description)
    for text, count in zip(categories, counts.tolist(), strict=True):
        category = _under(variable, "catgry", **({"missing": "Y"} if text == MISSING else {}))
        _under(category, "catValu", text)
        _under(category, "catStat", str(count), type="freq")
    _under(variable, "varFormat", type="character")


def _under(parent: ET.Element, tag: str, text: str | None = None, **attributes: str) -> ET.Element:
    element = ET.SubElement(parent, tag, attributes)
    element.text = (
        None if text is None else "".join(letter for letter in text if letter.isprintable() or letter == "\n")
    )
    return element
