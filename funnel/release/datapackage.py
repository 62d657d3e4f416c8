"""Metadata of a release as a Data Package (version 2), with a block that states the privacy bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from funnel.disclosure.rule_texts import rules_content
from funnel.guarantees import parse_guarantee
from funnel.guarantees.published import meaning_for
from funnel.numbers import described_numbers
from funnel.protocol import Protocol
from funnel.release.csv_cells import RULE, guarded
from funnel.release.handouts.number_table import DrawnColumn, drawn_columns
from funnel.release.privacy_block import (
    KEY,
    BehindFrequencies,
    Confidence,
    DisclosureControl,
    Estimation,
    NearBest,
    PrivacyBlock,
    ProtocolFile,
    ReportFile,
)
from funnel.release.protection import Protection
from funnel.release.public_report import PublicReport
from funnel.release.published_values import published_values
from funnel.release.report_parts import nats_of
from funnel.spec import ReleaseSpec

PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"

_ALONE = "per record and for this version alone; several versions about the same people reveal more together"
_OTHERS = "per record and for this version alone; the publisher declares that no person is in more than one version"
DRAWN = (
    "a number drawn within what the published value stands for, every one alike: it is a function of the published "
    "values alone, made without the true number, and is not that number."
)
_EVERYTHING = (
    "everything published about a person, in this version and in all versions before it about the same people, for the "
    "observers that the report names"
)
_OF_SECRETS = {
    "all": f"{_EVERYTHING}: of the secret of every version",
    "current": f"{_EVERYTHING}: of the secret of each as it is when it is published, not of what later ones tell of it",
}


def data_package(
    spec: ReleaseSpec,
    protocol: Protocol,
    report: PublicReport,
    protection: Protection,
    files: dict[str, tuple[str, int]],
    categories: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """The content of ``datapackage.json``.

    Parameters
    ----------
    spec : ReleaseSpec
    protocol : Protocol
    report : PublicReport
    protection : Protection
        Of the frequencies.
    files : dict of str to (str, int)
        For every public file, by its path inside the release: SHA-256 (hex) and size in bytes.
    categories : mapping of column to sequence of str, optional
        The values of every published column; by default those of the protocol's outputs.
    """
    metadata, published = spec.metadata, protocol.outputs
    columns = _Columns(
        spec,
        categories
        or {
            name: tuple(dict.fromkeys(symbol[j] for symbol in published.symbols))
            for j, name in enumerate(published.columns)
        },
        published_values(protocol.mechanism).field,
        drawn_columns(spec, protocol),
    )
    package: dict[str, Any] = {
        "$schema": PROFILE,
        "name": spec.name,
        "title": spec.title,
        "version": report.version,
        "created": report.created,
        "licenses": [
            {"name": metadata.licence, **({"path": metadata.licence_url} if metadata.licence_url else {})},
        ],
        "resources": [columns.resource(path, *files[path]) for path in sorted(files) if path.startswith("data/")],
        KEY: _privacy(spec, protocol, report, protection, files),
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


@dataclass(frozen=True)
class _Columns:
    """The columns of the tables of a release: all texts of each, what these mean, and numbers that are drawn."""

    spec: ReleaseSpec
    texts: Mapping[str, Sequence[str]]
    meaning: str
    drawn: Sequence[DrawnColumn]

    def resource(self, path: str, digest: str, size: int) -> dict[str, Any]:
        """A table as its package describes it."""
        is_csv, of_numbers = path.endswith(".csv"), path.startswith("data/numbers.")
        written = guarded if is_csv else str
        name = f"{self.spec.name}-numbers" if of_numbers else self.spec.name
        return {
            "name": f"{name}-csv" if is_csv else name,
            "path": path,
            "type": "table",
            "format": "csv" if is_csv else "parquet",
            "mediatype": "text/csv" if is_csv else "application/vnd.apache.parquet",
            # Validators count the bytes of texts only, and take any number for a wrong one in a parquet file.
            **({"encoding": "utf-8", "description": RULE, "bytes": size} if is_csv else {}),
            "hash": f"sha256:{digest}",
            "schema": {
                "fieldsMatch": "exact",
                "fields": [
                    *(self._field(column, written) for column in self.texts),
                    *(_drawn_field(self.spec, one, written) for one in self.drawn if of_numbers),
                ],
                "missingValues": [""] if of_numbers else [],
            },
        }

    def _field(self, column: str, written: Callable[[str], str]) -> dict[str, Any]:
        categories, told = [written(text) for text in self.texts[column]], described_numbers(self.spec, column)
        label = self.spec.metadata.labels.get(column)
        return {
            "name": written(column),
            **({} if label is None else {"title": label}),
            "type": "string",
            "description": f"{column}, {self.meaning}",
            "categories": categories,
            "constraints": {"required": True, "enum": categories},
            **({} if told is None else {"funnel:numbers": told}),
        }


def _drawn_field(spec: ReleaseSpec, drawn: DrawnColumn, written: Callable[[str], str]) -> dict[str, Any]:
    ranges = drawn.ranges()
    ends = [end for of_text in ranges.values() for pair in of_text for end in pair]
    told = described_numbers(spec, drawn.column) or {}
    return {
        "name": written(drawn.name),
        "type": "number" if drawn.decimals else "integer",
        "description": f"{drawn.column}, {DRAWN}",
        **({"constraints": {"minimum": min(ends), "maximum": max(ends)}} if ends else {}),
        "funnel:drawn": {
            "rule": "funnel/drawn-numbers/1",
            "from": drawn.column,
            "decimals": drawn.decimals,
            **({"unit": told["unit"]} if "unit" in told else {}),
            "numbers": ranges,
        },
    }


def _privacy(
    spec: ReleaseSpec,
    protocol: Protocol,
    report: PublicReport,
    protection: Protection,
    files: dict[str, tuple[str, int]],
) -> dict[str, Any]:
    figures, history = report.figures, report.figures.history
    secrets = None if history is None or spec.history is None else spec.bounded_secrets
    block = PrivacyBlock(
        guarantee=report.guarantee,
        meaning=meaning_for(
            parse_guarantee(report.guarantee),
            protocol.inputs.columns,
            spec.secret,
            spec.groups.at_once,
            report.people == "same",
        ),
        level=nats_of(figures.level),
        secret=spec.secret,
        published=spec.released,
        mechanism=protocol.mechanism,
        reads_secret=protocol.inputs.columns != spec.publish,
        protocol=ProtocolFile(path="protocol.json", hash=f"sha256:{files['protocol.json'][0]}"),
        protocol_digest=protocol.digest,
        report=ReportFile(path="report.json", hash=f"sha256:{files['report.json'][0]}", page="report.html"),
        estimation=Estimation(path="protocol.json", recipe=published_values(protocol.mechanism).recipe),
        utility_share=figures.share,
        variance_explained=figures.explained,
        certificate=near_best(report),
        records=figures.rows,
        row_order="random" if spec.output.shuffle else "as in the source",
        disclosure_control=DisclosureControl(**disclosure_control(spec)),
        confidence=Confidence(alpha=report.estimation.alpha, radius=report.estimation.radius),
        frequencies=protected_by(protection, files),
        people="same" if history is not None else spec.history.people if spec.history is not None else None,
        versions=None if history is None else history.versions,
        secrets=secrets,
        rows_of=report.unit,
        scope=scope_alone(spec) if secrets is None else _OF_SECRETS[secrets],
    )
    return block.content()


def near_best(report: PublicReport) -> NearBest | None:
    """By how much another protocol could be better than the chosen one, as the report has it."""
    chosen = next((one for one in report.compared if one.mechanism == report.mechanism.name), None)
    if chosen is None or chosen.certificate is None or chosen.share is None:
        return None
    found = chosen.certificate
    return NearBest(**found.model_dump(), utility=report.utility, share=chosen.share)


def disclosure_control(spec: ReleaseSpec) -> dict[str, Any]:
    """The rules that the frequencies were held against, and whether a release that breaks one is refused."""
    refuses = spec.disclosure.refuses(spec.frequencies.protection)
    return {**rules_content(spec.rules), "onBreach": "refuse" if refuses else "report"}


def protected_by(protection: Protection, files: dict[str, tuple[str, int]]) -> BehindFrequencies:
    """What protects the frequencies that everything else here is made from."""
    kind = protection.kind
    return BehindFrequencies.like(
        protection,
        meaning=kind.meaning,
        path=kind.of_noise("frequencies.json"),
        hash=f"sha256:{files['frequencies.json'][0]}" if kind.is_noisy else None,
        unprotected_versions=kind.of_noise(protection.unprotected),
    )


def scope_alone(spec: ReleaseSpec) -> str:
    """What the guarantee is about where no version is about the same people as another."""
    return _ALONE if spec.history is None else _OTHERS
