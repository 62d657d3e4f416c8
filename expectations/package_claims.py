"""What datapackage.json states, held against the files beside it, the text of the spec, and the recounted records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from scipy.special import chdtri

from funnel.pipeline.expectations.claims import NOISE, Claim, all_of, claim, near, same
from funnel.pipeline.expectations.disclosure_claims import expected_rules
from funnel.pipeline.expectations.laws import Laws, share_step
from funnel.pipeline.expectations.protocol_claims import explained_claim, guarantee_claim, level_claim
from funnel.pipeline.expectations.public_files import DRAWN, DRAWN_CSV, FREQUENCIES, NUMBERS
from funnel.pipeline.expectations.said import Said
from funnel.recount import PlainLevel
from funnel.recount.balance import is_invariant
from funnel.recount.drawn_numbers import ToldNumbers, field_again
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.published import in_csv

CLAIMS = (
    "canonical text",
    "texts",
    "resources",
    "guarantee",
    "level",
    "channel",
    "figures",
    "frequencies",
    "nothing else",
)

_PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
SCOPES = {
    None: "per record and for this version alone; several versions about the same people reveal more together",
    "different": (
        "per record and for this version alone; the publisher declares that no person is in more than one version"
    ),
    "same": "everything published about a person, in this version and in all versions before it about the same people",
}
PROTECTED = {
    "none": "not protected: all public documents are made from the exact counts, and only rounded",
    "threshold": "rare combinations are grouped; the counts of the others are exact, and only rounded",
    "noise": "differentially private: all public documents are made from noisy counts, and never from the exact ones",
}
_FIELD = (
    "sanitised: a plain value stands for itself; a value with 'or' may come from any of the values it names, and "
    "from further ones if it ends in 'or others'. protocol.json gives the probabilities."
)
_PLAIN_FIELD = (
    "sanitised: a value of the source, which need not be the true one of its record; counts of records are right on "
    "average. protocol.json gives the probabilities."
)
_CSV = (
    "A value that begins with one of = + - @, a tab or a line break, and is not a plain number, has an apostrophe "
    "before it in this file, so that no spreadsheet runs it as a formula; so has one that begins so after apostrophes. "
    "Take one apostrophe away to get the value, which is the one in the parquet file."
)
_RECIPE = (
    "Of all shares p of true values those are the likeliest that this ends at, from equal ones on: multiply every p(x) "
    "by the sum over published values y of q(y) P(y|x) / r(y), again and again, where q(y) is the share of records "
    "with y, P(y|x) is in protocol.json, and r(y) is the sum of P(y|x) p(x) over true values x."
)
_PLAIN_RECIPE = (
    "Count as usual: shares of records are right on average, up to the noise of the frequencies. Multiply usual "
    "standard errors for the population by sqrt(1 + r), with r at most 1, and divide a chi-square by 1 + r. For "
    "records selected by something that is not published, estimate by the probabilities in protocol.json."
)
_PRIVACY = (
    "schema",
    "guarantee",
    "meaning",
    "level",
    "unit",
    "secret",
    "published",
    "mechanism",
    "readsSecret",
    "protocol",
    "protocolDigest",
    "report",
    "estimation",
    "utilityShare",
    "varianceExplained",
    "records",
    "rowOrder",
    "disclosureControl",
    "confidence",
    "frequencies",
    "people",
    "versions",
    "scope",
)


def package_claims(
    content: Mapping[str, Any],
    canonical: bool,
    version: str,
    files: Mapping[str, tuple[str, int]],
    protocol: Mapping[str, Any],
    laws: Laws,
    level: PlainLevel,
    said: Said,
    versions: int | None = None,
    rows: int = 0,
    public: PublicFrequencies | None = None,
    intervals: Mapping[str, Mapping[str, tuple[Fraction, Fraction]]] = MappingProxyType({}),
    drawn: Sequence[ToldNumbers] = (),
    values: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[Claim]:
    """What holds of the content of a ``datapackage.json``.

    Parameters
    ----------
    content : mapping
        Of the file.
    canonical : bool
        Whether the file is, to the byte, what its content is written as.
    version : str
        That is about to be published.
    files : mapping of path to (SHA-256, size in bytes)
        The public files that are there.
    protocol : mapping
        Content of ``protocol.json``.
    laws, level, said
        As for `protocol_claims`.
    versions : int, optional
        Published about these people so far, where they are the same.
    rows : int
        Records of the table.
    public : PublicFrequencies, optional
        Where noise protects the frequencies.
    intervals : mapping of column to mapping of category to (least, largest)
        The intervals that categories of numbers stand for.
    drawn : sequence of ToldNumbers
        The columns of numbers that are drawn within them.
    values : mapping of column to sequence of str
        Of the columns of whole records, where these are published; in any order.
    """
    privacy = content["funnel:privacy"]
    texts = texts_of(version, said)
    of_column = _of_outputs(protocol)
    if values:
        whole = {column: _in_order_of(content, column, texts) for column, texts in values.items()}
        of_column = {column: whole.get(column) or of_column[column] for column in said.released}
    resources = [
        resource(
            said.settings["name"],
            [
                *with_numbers(
                    described(path, of_column, _PLAIN_FIELD if is_invariant(protocol) else _FIELD),
                    said.released,
                    said,
                    intervals,
                ),
                *drawn_fields(path, drawn, said),
            ],
            path,
            *files[path],
        )
        for path in sorted(files)
        if path.startswith("data/")
    ]
    stated = {key: value for key, value in content.items() if key in texts}
    further = set(content) - {*texts, "created", "resources", "funnel:privacy"}
    further |= {f"funnel:privacy.{key}" for key in set(privacy) ^ {*_PRIVACY}}
    return [
        claim("canonical text", canonical, "holds more than its content"),
        all_of(
            "texts", [*(same(key, stated.get(key), texts[key]) for key in texts), created_claim(content["created"])]
        ),
        claim("resources", content["resources"] == resources, "are not those of the files that are there"),
        guarantee_claim("guarantee", privacy["guarantee"], said),
        level_claim("level", privacy["level"], level),
        all_of("channel", _channel(privacy, files, protocol, said, versions)),
        all_of("figures", _figures(privacy, laws, said, rows)),
        _frequencies(privacy["frequencies"], files, protocol, public, said),
        claim("nothing else", not further, f"but for {', '.join(sorted(further))}"),
    ]


def texts_of(version: str, said: Said) -> dict[str, Any]:
    """What is told in the words of the spec."""
    settings, metadata = said.settings, said.section("metadata")
    url = metadata.get("licence_url")
    texts = {
        "$schema": _PROFILE,
        "name": settings["name"],
        "title": settings["title"],
        "version": version,
        "licenses": [{"name": metadata["licence"], **({"path": url} if url else {})}],
    }
    if settings.get("description"):
        texts["description"] = settings["description"]
    if metadata.get("keywords"):
        texts["keywords"] = list(metadata["keywords"])
    contact = {"title": metadata.get("contact_name"), "email": metadata.get("contact_email"), "roles": ["publisher"]}
    if contact["title"] or contact["email"]:
        texts["contributors"] = [{key: value for key, value in contact.items() if value}]
    if metadata.get("sources"):
        texts["sources"] = [
            {key: value for key, value in source.items() if value is not None} for source in metadata["sources"]
        ]
    return texts


def created_claim(stated: object) -> Claim:
    """That the time is written in the one way, in whole seconds of UTC: further digits could say anything."""
    try:
        plain = datetime.fromisoformat(str(stated)).astimezone(UTC).isoformat(timespec="seconds") == stated
    except (ValueError, OverflowError):
        plain = False
    return claim("created", plain, "is no time in whole seconds of UTC")


def resource(name: str, fields: list[dict[str, Any]], path: str, digest: str, size: int) -> dict[str, Any]:
    """A table of a release as a resource of its package."""
    is_csv, of_numbers = path.endswith(".csv"), path in (DRAWN, DRAWN_CSV)
    return {
        "name": name + "-numbers" * of_numbers + "-csv" * is_csv,
        "path": path,
        "type": "table",
        "format": "csv" if is_csv else "parquet",
        "mediatype": "text/csv" if is_csv else "application/vnd.apache.parquet",
        **({"encoding": "utf-8", "description": _CSV, "bytes": size} if is_csv else {}),
        "hash": f"sha256:{digest}",
        "schema": {"fieldsMatch": "exact", "fields": fields, "missingValues": [""] * of_numbers},
    }


def described(path: str, texts: Mapping[str, Sequence[str]], meaning: str) -> list[dict[str, Any]]:
    """The fields of a table: of every column all texts that it may have, and what these mean."""
    written = in_csv if path.endswith(".csv") else str
    fields = []
    for column, of_column in texts.items():
        categories = [written(text) for text in of_column]
        fields.append(
            {
                "name": written(column),
                "type": "string",
                "description": f"{column}, {meaning}",
                "categories": categories,
                "constraints": {"required": True, "enum": categories},
            }
        )
    return fields


def with_numbers(
    fields: list[dict[str, Any]],
    columns: Sequence[str],
    said: Said,
    intervals: Mapping[str, Mapping[str, tuple[Fraction, Fraction]]],
) -> list[dict[str, Any]]:
    """The fields of the published columns, with what is said of their numbers."""
    return [
        {**field, **_numbers(column, said, intervals.get(column, {}))}
        for column, field in zip(columns, fields, strict=True)
    ]


def _numbers(column: str, said: Said, intervals: Mapping[str, tuple[Fraction, Fraction]]) -> dict[str, Any]:
    """What the text of the spec says of the numbers of a column, and the intervals that follow."""
    told = said.section("numbers").get(column)
    if told is None:
        return {}
    known = {key: told[key] for key in ("unit", "range", "decimals") if key in told}
    ends = {label: [float(low), float(high)] for label, (low, high) in intervals.items()}
    means = {"means": dict(zip(intervals, told["means"], strict=True))} if "means" in told else {}
    weight = {"surveyWeight": True} if said.settings.get("weight") == column else {}
    whole = told.get("whole", False)
    return {"funnel:numbers": {**known, "whole": whole, **({"intervals": ends} if ends else {}), **means, **weight}}


def drawn_fields(path: str, drawn: Sequence[ToldNumbers], said: Said) -> list[dict[str, Any]]:
    """The fields of the columns of drawn numbers, where a table has them."""
    if path not in (DRAWN, DRAWN_CSV):
        return []
    written = in_csv if path.endswith(".csv") else str
    return [field_again(one, said.section("numbers")[one.column].get("unit"), written) for one in drawn]


def _of_outputs(protocol: Mapping[str, Any]) -> dict[str, list[str]]:
    """Texts of every column of the outputs of a protocol."""
    return {
        column: list(dict.fromkeys(symbol[place] for symbol in protocol["outputs"]["symbols"]))
        for place, column in enumerate(protocol["outputs"]["columns"])
    }


def _in_order_of(content: Mapping[str, Any], column: str, values: Sequence[str]) -> list[str]:
    """Values in the order in which the package states them, if these are the values that it states."""
    for resource in content["resources"]:
        for field in resource["schema"]["fields"]:
            if field["name"] == column and sorted(field["categories"]) == sorted(values):
                return list(field["categories"])
    return list(values)


def _channel(
    privacy: Mapping[str, Any],
    files: Mapping[str, tuple[str, int]],
    protocol: Mapping[str, Any],
    said: Said,
    versions: int | None,
) -> list[Claim]:
    report = {"path": NUMBERS, "hash": f"sha256:{files[NUMBERS][0]}", "page": "report.html"}
    recipe = _PLAIN_RECIPE if is_invariant(protocol) else _RECIPE
    return [
        same("schema", privacy.get("schema"), "funnel/privacy/1"),
        same("meaning", privacy.get("meaning"), said.guarantee.meaning),
        same("estimation", privacy.get("estimation"), {"path": "protocol.json", "recipe": recipe}),
        same("unit", privacy["unit"], "nats"),
        same("secret", privacy["secret"], list(said.secret)),
        same("published", privacy["published"], list(said.released)),
        same("mechanism", privacy["mechanism"], protocol["mechanism"]),
        same("readsSecret", privacy["readsSecret"], protocol["inputs"]["columns"] != list(said.publish)),
        same("protocol", privacy["protocol"], {"path": "protocol.json", "hash": f"sha256:{files['protocol.json'][0]}"}),
        same("report", privacy.get("report"), report),
        same("protocolDigest", privacy["protocolDigest"], protocol["digest"]),
        same("rowOrder", privacy["rowOrder"], "random" if said.shuffled else "as in the source"),
        claim(
            "disclosureControl",
            privacy.get("disclosureControl") == expected_rules(said),
            "is not what the spec says of the rules",
        ),
        same("scope", privacy["scope"], SCOPES[said.people]),
        same("people", privacy.get("people"), said.people),
        same("versions", privacy.get("versions"), versions),
    ]


def _frequencies(
    told: Mapping[str, Any],
    files: Mapping[str, tuple[str, int]],
    protocol: Mapping[str, Any],
    public: PublicFrequencies | None,
    said: Said,
) -> Claim:
    protection = said.frequencies.protection
    noisy = ("path", "hash", "epsilon", "delta", "beta", "spent", "unprotectedVersions")
    expected: dict[str, Any] = {"protection": protection, "meaning": PROTECTED[protection], **dict.fromkeys(noisy)}
    if public is not None:
        expected |= {"path": FREQUENCIES, "hash": f"sha256:{files[FREQUENCIES][0]}"}
        expected |= {key: getattr(public, key) for key in ("epsilon", "delta", "beta", "spent")}
        # Which is judged where the protocol says it.
        expected["unprotectedVersions"] = protocol["frequencies"]["unprotected"]
    return same("frequencies", dict(told), expected)


def _figures(privacy: Mapping[str, Any], laws: Laws, said: Said, rows: int) -> list[Claim]:
    confidence = privacy["confidence"]
    cells = laws.recount.cells
    return [
        near("utilityShare", privacy["utilityShare"], laws.share, share_step(laws.recount.rows)),
        explained_claim("varianceExplained", privacy.get("varianceExplained"), laws, share_step(laws.recount.rows)),
        same("records", privacy["records"], rows),
        same("confidence", sorted(confidence), ["alpha", "radius"]),
        same("confidence.alpha", confidence["alpha"], said.alpha),
        radius_claim("confidence.radius", confidence["radius"], cells, laws.recount.rows, said.alpha),
    ]


def radius_claim(name: str, stated: object, cells: int, n: int, alpha: float) -> Claim:
    """That a radius is the quantile of the χ² law over n, to two or three digits."""
    exact = float(chdtri(cells - 1, alpha)) / n if cells > 1 else 0.0
    told = [float(f"{exact:.{digits - 1}e}") for digits in (2, 3)]
    fine = isinstance(stated, (int, float)) and any(math.isclose(stated, one, rel_tol=NOISE) for one in told)
    return claim(name, fine, f"is {stated!r}, which is not what follows from {cells:,} cells")
