"""dcat.jsonld: a release as an entry of a data catalogue, in DCAT-AP 3, as a member of the series of its versions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from funnel.release.handouts.citation import publisher
from funnel.release.privacy_block import KEY

# Nobody has to own a name to use such a one, and it leads nowhere.
NAMESPACE = "urn:uuid:6f1a1c62-8d0e-5d5c-9b43-2f0c7f6d7a10#"
_CONTEXT = {
    "adms": "http://www.w3.org/ns/adms#",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "funnel": NAMESPACE,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "spdx": "http://spdx.org/rdf/terms#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_MEDIA = "https://www.iana.org/assignments/media-types/"
_TYPES = "http://publications.europa.eu/resource/authority/file-type/"
_PAGES = ("README.md", "report.html", "annex.html")


def catalogue(package: Mapping[str, Any], previous: str | None) -> bytes:
    """The content of the file, JSON-LD whose addresses are relative to where it lies.

    Parameters
    ----------
    package : JSON object
        Content of ``datapackage.json``.
    previous : str or None
        The version before this one that is there.
    """
    graph = [_series(package), _dataset(package, previous), *(_distribution(package, r) for r in package["resources"])]
    content = {"@context": _CONTEXT, "@graph": graph}
    return (json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def _series(package: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "@id": "../",
        "@type": "dcat:DatasetSeries",
        "dct:title": package["title"],
        "dct:description": f"All versions of {package['name']}: {_description(package)}",
        **_people(package),
    }


def _dataset(package: Mapping[str, Any], previous: str | None) -> dict[str, Any]:
    said = {
        "@id": "./",
        "@type": "dcat:Dataset",
        "dct:title": package["title"],
        "dct:description": _description(package),
        "dct:identifier": f"{package['name']}/{package['version']}",
        "dct:issued": {"@type": "xsd:dateTime", "@value": package["created"]},
        "dcat:version": package["version"],
        "dcat:inSeries": {"@id": "../"},
        "dcat:distribution": [{"@id": resource["path"]} for resource in package["resources"]],
        "foaf:page": [{"@id": page, "@type": "foaf:Document"} for page in _PAGES],
        "dct:provenance": [{"@type": "dct:ProvenanceStatement", "rdfs:label": label} for label in _provenance(package)],
        "funnel:privacy": _namespaced(package[KEY]),
        **_people(package),
    }
    if previous is not None:
        said["dcat:prev"] = {"@id": f"../{previous}/"}
    if package.get("keywords"):
        said["dcat:keyword"] = package["keywords"]
    return said


def _distribution(package: Mapping[str, Any], resource: Mapping[str, Any]) -> dict[str, Any]:
    (licence, *_) = package["licenses"]
    algorithm, _, digest = resource["hash"].partition(":")
    size = {"dcat:byteSize": {"@type": "xsd:nonNegativeInteger", "@value": str(resource.get("bytes"))}}
    return {
        "@id": resource["path"],
        "@type": "dcat:Distribution",
        "dct:title": resource["name"],
        "dcat:accessURL": {"@id": "./", "@type": "rdfs:Resource"},
        "dcat:downloadURL": {"@id": resource["path"], "@type": "rdfs:Resource"},
        "dcat:mediaType": {"@id": _MEDIA + resource["mediatype"], "@type": "dct:MediaType"},
        "dct:format": {"@id": _TYPES + resource["format"].upper(), "@type": "dct:MediaTypeOrExtent"},
        "dct:license": {
            **({"@id": licence["path"]} if "path" in licence else {}),
            "@type": "dct:LicenseDocument",
            "dct:title": licence["name"],
        },
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": {
                "@id": f"spdx:checksumAlgorithm_{algorithm}",
                "@type": "spdx:ChecksumAlgorithm",
            },
            "spdx:checksumValue": {"@type": "xsd:hexBinary", "@value": digest},
        },
        **(size if "bytes" in resource else {}),
    }


def _description(package: Mapping[str, Any]) -> str:
    if package.get("description"):
        return str(package["description"])
    return f"Records with {', '.join(package[KEY]['published'])}, published by a protocol that protects people."


def _people(package: Mapping[str, Any]) -> dict[str, Any]:
    """Whom the package names, as publisher and as contact: the same ones in all versions, for whoever reads several."""
    contact = publisher(package)
    said: dict[str, Any] = {}
    if "title" in contact:
        said["dct:publisher"] = {"@id": "../#publisher", "@type": "foaf:Agent", "foaf:name": contact["title"]}
    if contact:
        said["dcat:contactPoint"] = {
            "@id": "../#contact",
            "@type": "vcard:Kind",
            **({"vcard:fn": contact["title"]} if "title" in contact else {}),
            **({"vcard:hasEmail": {"@id": f"mailto:{contact['email']}"}} if "email" in contact else {}),
        }
    return said


def _provenance(package: Mapping[str, Any]) -> list[str]:
    parts = [[one[key] for key in ("title", "version", "path") if key in one] for one in package.get("sources", [])]
    return [
        f"Published by a protocol that protects people. {package[KEY]['meaning']}",
        *(f"From {', '.join(p)}" for p in parts),
    ]


def _namespaced(block: Mapping[str, Any]) -> dict[str, Any]:
    """The block on privacy with every key in a namespace; what is not known of it is left out."""
    return {
        f"funnel:{key}": _namespaced(value) if isinstance(value, dict) else value
        for key, value in block.items()
        if value is not None
    }
