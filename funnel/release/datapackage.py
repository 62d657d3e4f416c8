"""Metadata of a release as a Data Package (version 2), with a block that states the privacy bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from funnel.disclosure.words import rules_content
from funnel.protocol import Protocol
from funnel.release.csv_cells import RULE, guarded
from funnel.release.protection import Protection
from funnel.release.public import PublicFindings
from funnel.spec import ReleaseSpec

PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"

_ALONE = "per record and for this version alone; several versions about the same people reveal more together"
_OTHERS = "per record and for this version alone; the publisher declares that no person is in more than one version"
_PROTECTED = {
    "none": "not protected: all public documents are made from the exact counts, and only rounded",
    "threshold": "rare combinations are grouped; the counts of the others are exact, and only rounded",
    "noise": "differentially private: all public documents are made from noisy counts, and never from the exact ones",
}
SETS = (
    "sanitised: a plain value stands for itself; a value with 'or' may come from any of the values it names, and from "
    "further ones if it ends in 'or others'. protocol.json gives the probabilities."
)
_EVERYTHING = "everything published about a person, in this version and in all versions before it about the same people"


def data_package(
    spec: ReleaseSpec,
    protocol: Protocol,
    findings: PublicFindings,
    protection: Protection,
    version: str,
    created: str,
    files: dict[str, tuple[str, int]],
) -> dict[str, Any]:
    """The content of ``datapackage.json``.

    Parameters
    ----------
    spec : ReleaseSpec
    protocol : Protocol
    findings : PublicFindings
    protection : Protection
        Of the frequencies.
    version : str
    created : str
        Time of publication, ISO 8601 with time zone.
    files : dict of str to (str, int)
        For every public file, by its path inside the release: SHA-256 (hex) and size in bytes.
    """
    categories = {
        column: tuple(dict.fromkeys(symbol[position] for symbol in protocol.outputs.symbols))
        for position, column in enumerate(protocol.outputs.columns)
    }
    return package_of(
        spec, categories, SETS, version, created, files, _privacy(spec, protocol, findings, protection, files)
    )


def package_of(
    spec: ReleaseSpec,
    categories: Mapping[str, Sequence[str]],
    meaning: str,
    version: str,
    created: str,
    files: dict[str, tuple[str, int]],
    privacy: dict[str, Any],
) -> dict[str, Any]:
    """A package of published columns: of each all texts that it may have, and what these mean; and its privacy block.

    Other parameters as `data_package` has them.
    """
    metadata = spec.metadata
    package: dict[str, Any] = {
        "$schema": PROFILE,
        "name": spec.name,
        "title": spec.title,
        "version": version,
        "created": created,
        "licenses": [
            {"name": metadata.licence, **({"path": metadata.licence_url} if metadata.licence_url else {})},
        ],
        "resources": [
            _resource(spec, categories, meaning, path, *files[path])
            for path in sorted(files)
            if path.startswith("data/")
        ],
        "funnel:privacy": privacy,
    }
    if spec.description:
        package["description"] = spec.description
    if metadata.keywords:
        package["keywords"] = list(metadata.keywords)
    if metadata.contact_name or metadata.contact_email:
        named = {"title": metadata.contact_name, "email": metadata.contact_email, "roles": ["publisher"]}
        package["contributors"] = [{key: value for key, value in named.items() if value}]
    if metadata.sources:
        package["sources"] = [source.model_dump(exclude_none=True) for source in metadata.sources]
    return package


def _resource(
    spec: ReleaseSpec, categories: Mapping[str, Sequence[str]], meaning: str, path: str, digest: str, size: int
) -> dict[str, Any]:
    is_csv = path.endswith(".csv")
    written = guarded if is_csv else str
    return {
        "name": f"{spec.name}-csv" if is_csv else spec.name,
        "path": path,
        "type": "table",
        "format": "csv" if is_csv else "parquet",
        "mediatype": "text/csv" if is_csv else "application/vnd.apache.parquet",
        **({"encoding": "utf-8", "description": RULE} if is_csv else {}),
        "bytes": size,
        "hash": f"sha256:{digest}",
        "schema": {
            "fieldsMatch": ["equal"],
            "fields": [_field(column, texts, meaning, written) for column, texts in categories.items()],
            "missingValues": [],
        },
    }


def _field(column: str, texts: Sequence[str], meaning: str, written: Callable[[str], str]) -> dict[str, Any]:
    categories = [written(text) for text in texts]
    return {
        "name": written(column),
        "type": "string",
        "description": f"{column}, {meaning}",
        "categories": categories,
        "constraints": {"required": True, "enum": categories},
    }


def _privacy(
    spec: ReleaseSpec,
    protocol: Protocol,
    findings: PublicFindings,
    protection: Protection,
    files: dict[str, tuple[str, int]],
) -> dict[str, Any]:
    return {
        "guarantee": findings.guarantee,
        "level": findings.level,
        "unit": "nats",
        "secret": list(spec.secret),
        "published": list(spec.publish),
        "mechanism": protocol.mechanism,
        "readsSecret": protocol.inputs.columns != spec.publish,
        "protocol": {"path": "protocol.json", "hash": f"sha256:{files['protocol.json'][0]}"},
        "protocolDigest": protocol.digest,
        "report": {"path": "report.json", "hash": f"sha256:{files['report.json'][0]}", "page": "report.html"},
        "utilityShare": findings.share,
        "records": findings.rows,
        "rowOrder": "random" if spec.output.shuffle else "as in the source",
        "disclosureControl": disclosure_control(spec),
        "confidence": {"alpha": findings.confidence.alpha, "radius": findings.confidence.radius},
        "frequencies": _frequencies(protection, files, findings),
        **_scope(spec, findings),
    }


def disclosure_control(spec: ReleaseSpec) -> dict[str, Any]:
    """The rules that the frequencies were held against, and whether a release that breaks one is refused."""
    asked = spec.disclosure
    refuses = asked.refuses(spec.frequencies.protection)
    return {**rules_content(asked.rules), "onBreach": "refuse" if refuses else "report"}


def _frequencies(protection: Protection, files: dict[str, tuple[str, int]], findings: PublicFindings) -> dict[str, Any]:
    """What protects the frequencies that everything else here is made from."""
    told = unprotected(protection)
    if protection.protection != "noise":
        return told
    return {
        **told,
        "path": "frequencies.json",
        "hash": f"sha256:{files['frequencies.json'][0]}",
        "epsilon": protection.epsilon,
        "delta": protection.delta,
        "beta": protection.beta,
        "spent": protection.spent,
        "unprotectedVersions": protection.unprotected,
    }


def unprotected(protection: Protection) -> dict[str, Any]:
    """What protects the frequencies, without the numbers of noise."""
    return {"protection": protection.protection, "meaning": _PROTECTED[protection.protection]}


def _scope(spec: ReleaseSpec, findings: PublicFindings) -> dict[str, Any]:
    """What the guarantee is about: a version, or everything published about a person."""
    if findings.history is not None:
        return {"people": "same", "versions": findings.history.versions, "scope": _EVERYTHING}
    return scope_alone(spec)


def scope_alone(spec: ReleaseSpec) -> dict[str, Any]:
    """What the guarantee is about where no version is about the same people as another."""
    if spec.history is not None:
        return {"people": spec.history.people, "scope": _OTHERS}
    return {"scope": _ALONE}
