"""Handouts, written a second time: CITATION.cff, dcat.jsonld, protocol.csv, from the two public documents.

Nothing of `funnel.release.handouts` is used here: where both write the same bytes, no line of one is wrong alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from funnel.recount.channel import weights_of
from funnel.recount.published import csv_line, in_csv
from funnel.recount.readme_text import contact_of, is_in_csv, readme_again

Json = Mapping[str, Any]

_PAGES = ("README.md", "report.html", "annex.html")

# Licences that the Citation File Format can name, of those that data are published under.
_CITED = re.compile(
    r"CC0-1\.0|CC-BY(-SA)?-3\.0|CC-BY(-NC)?(-SA|-ND)?-4\.0|ODbL-1\.0|ODC-By-1\.0|PDDL-1\.0"
    r"|CDLA-(Permissive|Sharing)-1\.0|OGL-UK-[123]\.0|OGL-Canada-2\.0"
)
_PREFIXES = {
    "adms": "http://www.w3.org/ns/adms#",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "funnel": "urn:uuid:6f1a1c62-8d0e-5d5c-9b43-2f0c7f6d7a10#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "spdx": "http://spdx.org/rdf/terms#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}


def documentation_again(package: Json, protocol: Json, previous: str | None) -> dict[str, bytes]:
    """What the handouts of a release have to be, by path.

    Parameters
    ----------
    package, protocol : JSON object
        Content of ``datapackage.json`` and of ``protocol.json``, both of them judged.
    previous : str or None
        The version before this one that is there.

    Raises
    ------
    KeyError, TypeError, ValueError, IndexError
        If these are no documents of a release.
    """
    cells = _cells(protocol)
    return {
        "CITATION.cff": citation_again(package).encode(),
        "README.md": readme_again(package, protocol, cells).encode(),
        "dcat.jsonld": catalogue_again(package, previous).encode(),
        **({"protocol.csv": _table(protocol, cells)} if is_in_csv(package) else {}),
    }


def _cells(protocol: Json) -> dict[int, dict[int, Fraction]]:
    """Probabilities that are not zero, by positions of the true and of the published value."""
    whole = int(protocol["denominator"])
    found: dict[int, dict[int, Fraction]] = {x: {} for x in range(len(protocol["inputs"]["symbols"]))}
    for y, x, weight in weights_of(protocol):
        found[x][y] = Fraction(weight, whole)
    return found


def _table(protocol: Json, cells: dict[int, dict[int, Fraction]]) -> bytes:
    inputs, outputs = protocol["inputs"], protocol["outputs"]
    head = [f"true {column}" for column in inputs["columns"]] + [f"published {c}" for c in outputs["columns"]]
    true, published = ([tuple(map(in_csv, symbol)) for symbol in part["symbols"]] for part in (inputs, outputs))
    # The nearest double of a fraction, as the shortest text that it is read back from.
    lines = ((*true[x], *published[y], float(p)) for x in cells for y, p in cells[x].items())
    return b"".join(map(csv_line, [(*head, "probability"), *lines]))


def citation_again(package: Json) -> str:
    name, email = contact_of(package)
    licence, text = package["licenses"][0], _yaml
    said = [("cff-version", "1.2.0"), ("message", text("If you use this release, please cite it as below."))]
    said += [("type", "dataset"), ("title", text(package["title"])), ("version", package["version"])]
    said += [("date-released", text(package["created"][:10])), ("authors", "")]
    said += [("  - name", text(name))] if name else [("  - alias", "anonymous")]
    if email:
        said.append(("    email", text(email)))
    if package.get("description"):
        said.append(("abstract", text(package["description"])))
    if _CITED.fullmatch(licence["name"]):
        said.append(("license", licence["name"]))
    elif licence.get("path"):
        said.append(("license-url", text(licence["path"])))
    lines = [f"{key}: {value}".rstrip() for key, value in said]
    if words := package.get("keywords"):
        lines += ["keywords:"] + [f"  - {text(word)}" for i, word in enumerate(words) if word not in words[:i]]
    return "".join(f"{line}\n" for line in lines)


def _yaml(text: str) -> str:
    """A double-quoted scalar."""
    short = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
    return '"' + "".join(short.get(letter) or _printed(letter) for letter in text) + '"'


def _printed(letter: str) -> str:
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def catalogue_again(package: Json, previous: str | None) -> str:
    block, (name, email) = package["funnel:privacy"], contact_of(package)
    about = package.get("description") or (
        f"Records with {', '.join(block['published'])}, published by a protocol that protects people."
    )
    people: dict[str, Any] = {}
    if name:
        people["dct:publisher"] = {"@id": "../#publisher", "@type": "foaf:Agent", "foaf:name": name}
    if name or email:
        card = {"@id": "../#contact", "@type": "vcard:Kind", "vcard:fn": name}
        people["dcat:contactPoint"] = {key: value for key, value in card.items() if value}
    if email:
        people["dcat:contactPoint"]["vcard:hasEmail"] = {"@id": f"mailto:{email}"}
    series = {
        "@id": "../",
        "@type": "dcat:DatasetSeries",
        "dct:title": package["title"],
        "dct:description": f"All versions of {package['name']}: {about}",
    }
    origins = [
        "From " + ", ".join(source[key] for key in ("title", "version", "path") if key in source)
        for source in package.get("sources", [])
    ]
    labels = [f"Published by a protocol that protects people. {block['meaning']}", *origins]
    dataset = {
        "@id": "./",
        "@type": "dcat:Dataset",
        "dct:title": package["title"],
        "dct:description": about,
        "dct:identifier": f"{package['name']}/{package['version']}",
        "dct:issued": {"@type": "xsd:dateTime", "@value": package["created"]},
        "dcat:version": package["version"],
        "dcat:inSeries": {"@id": "../"},
        "dcat:prev": {"@id": f"../{previous}/"} if previous else None,
        "dcat:keyword": package.get("keywords"),
        "dcat:distribution": [{"@id": resource["path"]} for resource in package["resources"]],
        "foaf:page": [{"@id": path, "@type": "foaf:Document"} for path in _PAGES],
        "dct:provenance": [{"@type": "dct:ProvenanceStatement", "rdfs:label": label} for label in labels],
        "funnel:privacy": _prefixed(block),
    }
    tables = [_table_entry(resource, package["licenses"][0]) for resource in package["resources"]]
    graph = [series | people, {key: value for key, value in dataset.items() if value} | people, *tables]
    return json.dumps({"@context": _PREFIXES, "@graph": graph}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _prefixed(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {f"funnel:{key}": _prefixed(part) for key, part in value.items() if part is not None}


def _table_entry(resource: Json, licence: Json) -> dict[str, Any]:
    kind, digest = resource["hash"].split(":")
    entry = {
        "@id": resource["path"],
        "@type": "dcat:Distribution",
        "dct:title": resource["name"],
        "dcat:accessURL": {"@id": "./", "@type": "rdfs:Resource"},
        "dcat:downloadURL": {"@id": resource["path"], "@type": "rdfs:Resource"},
        "dcat:mediaType": {
            "@id": f"https://www.iana.org/assignments/media-types/{resource['mediatype']}",
            "@type": "dct:MediaType",
        },
        "dct:format": {
            "@id": f"http://publications.europa.eu/resource/authority/file-type/{resource['format'].upper()}",
            "@type": "dct:MediaTypeOrExtent",
        },
        "dct:license": {"@type": "dct:LicenseDocument", "dct:title": licence["name"]},
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": {"@id": f"spdx:checksumAlgorithm_{kind}", "@type": "spdx:ChecksumAlgorithm"},
            "spdx:checksumValue": {"@type": "xsd:hexBinary", "@value": digest},
        },
    }
    if licence.get("path"):
        entry["dct:license"]["@id"] = licence["path"]
    if resource.get("bytes"):
        entry["dcat:byteSize"] = {"@type": "xsd:nonNegativeInteger", "@value": str(resource["bytes"])}
    return entry
