"""datapackage.json, said again from the protocol, the files and the spec: every key, number and sentence of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from scipy.special import gammaincinv

from funnel.audit.check import Found, check
from funnel.audit.files import spread
from funnel.errors import DataError
from funnel.guarantees import parse_guarantee
from funnel.guarantees.published import meaning_for
from funnel.recount.balance import is_invariant
from funnel.recount.drawn_numbers import field_again, parsed_numbers
from funnel.recount.published import in_csv
from funnel.release.layout import Version
from funnel.release.privacy_block import PrivacyBlock
from funnel.release.protocol_document import ProtocolDocument

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext

Facts = Mapping[str, tuple[str, int]]
"""SHA-256 (hex) and size of every public file, by its path."""

# Every sentence that funnel writes into a data package.
_CSV_RULE = (
    "A value that begins with one of = + - @, a tab or a line break, and is not a plain number, has an apostrophe "
    "before it in this file, so that no spreadsheet runs it as a formula; so has one that begins so after apostrophes. "
    "Take one apostrophe away to get the value, which is the one in the parquet file."
)
_FIELD = (
    "{}, sanitised: a plain value stands for itself; a value with 'or' may come from any of the values it names, and "
    "from further ones if it ends in 'or others'. protocol.json gives the probabilities."
)
_PLAIN_FIELD = (
    "{}, sanitised: a value of the source, which need not be the true one of its record; counts of records are right "
    "on average. protocol.json gives the probabilities."
)
SCOPES = {
    None: "per record and for this version alone; several versions about the same people reveal more together",
    "different": (
        "per record and for this version alone; the publisher declares that no person is in more than one version"
    ),
}
_TOGETHER = (
    "everything published about a person, in this version and in all versions before it about the same people, for the "
    "observers that the report names"
)
SECRETS = {
    "all": f"{_TOGETHER}: of the secret of every version",
    "current": f"{_TOGETHER}: of the secret of each as it is when it is published, not of what later ones tell of it",
}
PROTECTED = {
    "none": "not protected: all public documents are made from the exact counts, and only rounded",
    "threshold": "rare combinations are grouped; the counts of the others are exact, and only rounded",
    "noise": (
        "differentially private: but for the published records, what is counted in them, and their number, all public "
        "documents are made from noisy counts, and never from the exact ones"
    ),
}
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
PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
FREE = ("title", "description", "licenses", "keywords", "contributors", "sources")
KEYS = {
    "licenses": {"name", "path"},
    "contributors": {"title", "email", "roles"},
    "sources": {"title", "path", "version"},
}
# Tables of numbers that are drawn within intervals.
TABLES = ("data/numbers.parquet", "data/numbers.csv")
# Whole seconds in UTC: other digits could say something else. Whether the clock was right to the hour, nobody can tell.
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+00:00")
_FIRST = datetime(2025, 1, 1, tzinfo=UTC)
# Of a limit of disclosure control.
_DECIMALS = 6


@check("package", "public")
def check_package(known: AuditContext) -> Found:
    """Every key of the data package follows from the other files."""
    package = known.package
    name, privacy = package.get("name"), package.get("funnel:privacy")
    if not isinstance(name, str) or not isinstance(privacy, dict):
        yield "its name or its block on privacy is missing"
        return ""
    wrong = list(differences(package, _expected(name, known), ""))
    yield from wrong or unfit_block(privacy)
    yield from unfit(package)
    return "every key follows from the other files"


def unfit(package: dict[str, Any]) -> Iterator[str]:
    """What no package has, whatever it is about."""
    for key, allowed in KEYS.items():
        entries = package.get(key, [])
        if not isinstance(entries, list) or any(not isinstance(e, dict) or set(e) - allowed for e in entries):
            yield f"{key} has a key that funnel does not write"
    if Version.parse(str(package.get("version"))) is None:
        yield "its version is no version"
    if not _is_time(package.get("created")):
        yield "its time of publication is no time in whole seconds of UTC between 2025 and now"


def unfit_block(privacy: dict[str, Any]) -> Iterator[str]:
    """What no block on privacy has; α and radius have to be those of the report, which another check is about."""
    try:
        said = PrivacyBlock.from_json(json.dumps(privacy), "in datapackage.json")
    except DataError as error:
        yield str(error)
        return
    if spread(said.content()) != spread(privacy):
        yield "funnel:privacy leaves out a key, or tells one in another way than funnel"
    rules = said.disclosure_control
    if any(round(share, _DECIMALS) != share for share in (rules.dominance, rules.unique_share)):
        yield "funnel:privacy.disclosureControl has limits of more digits than a spec may have"


def _is_time(stated: object) -> bool:
    if not isinstance(stated, str) or not _TIME.fullmatch(stated):
        return False
    try:
        time = datetime.fromisoformat(stated)
    except ValueError:
        return False
    # No release is older than this software, nor from the future; clocks may differ by a day.
    return _FIRST <= time <= datetime.now(UTC) + timedelta(days=1)


def _expected(name: str, known: AuditContext) -> dict[str, Any]:
    """The package as it should be; what cannot be told from public files is taken from the package itself."""
    package, document, columns, facts, rows = known.package, known.document, known.columns, known.facts, known.rows
    privacy = package["funnel:privacy"]
    promise, inputs, explained = document.guarantee, document.inputs.columns, document.utility.explained
    given = {key: package[key] for key in (*FREE, "version", "created") if key in package}
    # A release has one licence, and one contact at most.
    given |= {key: given[key][:1] for key in ("licenses", "contributors") if isinstance(given.get(key), list)}
    protocol, _ = facts.get("protocol.json", ("", 0))
    tables = [path for path in sorted(facts) if path.startswith("data/")]
    texts = columns.texts
    invariant = is_invariant({"mechanism": document.mechanism})
    meaning, recipe = (_PLAIN_FIELD, _PLAIN_RECIPE) if invariant else (_FIELD, _RECIPE)
    values = {
        column: {symbol[j] for symbol in document.prior.symbols} for j, column in enumerate(document.prior.columns)
    }
    if columns.classes is not None:
        # Whole records are true ones, so their values are.
        values |= {column: set(texts[column]) for column in columns.classes.columns}
    return {
        **given,
        "$schema": PROFILE,
        "name": name,
        "resources": [resource_of(name, path, facts[path], texts, meaning, package, values) for path in tables],
        "funnel:privacy": {
            **privacy,
            "schema": "funnel/privacy/1",
            "meaning": meaning_for(
                parse_guarantee(promise.declared),
                inputs,
                promise.secret,
                columns.at_once,
                privacy.get("people") == "same",
            ),
            "estimation": {"path": "protocol.json", "recipe": recipe},
            "guarantee": promise.declared,
            "level": promise.level,
            "unit": "nats",
            "secret": list(promise.secret),
            "published": list(document.prior.columns if columns.classes is None else columns.names),
            "mechanism": document.mechanism,
            "readsSecret": inputs != document.prior.columns,
            "protocol": {"path": "protocol.json", "hash": f"sha256:{protocol}"},
            "protocolDigest": document.digest,
            "report": report_of(facts),
            "utilityShare": document.utility.share,
            "varianceExplained": None if explained is None else explained.variance_share,
            **({} if rows is None else {"records": rows}),
            "frequencies": _frequencies(document, facts),
            **scope_of(privacy),
        },
    }


def _frequencies(document: ProtocolDocument, facts: Facts) -> dict[str, Any]:
    """What protects the frequencies, as the protocol says it."""
    said = document.frequencies
    told = {
        "protection": said.protection,
        "meaning": PROTECTED[said.protection],
        **dict.fromkeys(("path", "hash", "epsilon", "delta", "beta", "spent", "unprotectedVersions")),
    }
    if said.protection == "noise":
        digest, _ = facts.get("frequencies.json", ("", 0))
        told |= {"path": "frequencies.json", "hash": f"sha256:{digest}"}
        told |= {name: getattr(said, name) for name in ("epsilon", "delta", "beta", "spent")}
        told["unprotectedVersions"] = said.unprotected
    return told


def scope_of(privacy: dict[str, Any]) -> dict[str, Any]:
    """What the guarantee is about; who the people are is the publisher's word."""
    people = privacy.get("people")
    if people != "same":
        return {"versions": None, "secrets": None, "scope": SCOPES["different" if people == "different" else None]}
    secrets = "current" if privacy.get("secrets") == "current" else "all"
    return {"secrets": secrets, "scope": SECRETS[secrets]}


def report_of(facts: Facts) -> dict[str, str]:
    """The report as a data package names it."""
    return {"path": "report.json", "hash": f"sha256:{facts.get('report.json', ('', 0))[0]}", "page": "report.html"}


def resource_of(
    name: str,
    path: str,
    fact: tuple[str, int],
    texts: Mapping[str, Sequence[str]],
    meaning: str,
    package: dict[str, Any],
    values: Mapping[str, Set[str]],
) -> dict[str, Any]:
    """A table of a release as its package has to describe it; ``meaning`` has a place for the name of a column.

    ``values`` are the true ones of columns, where intervals may be told of them. What the publisher says of numbers is
    the same in all tables: it is taken from those in parquet.
    """
    is_csv, of_numbers = path.endswith(".csv"), path in TABLES
    name += "-numbers" * of_numbers
    (digest, size), written = fact, fields_of(package, "data/records.parquet")
    known: dict[str, Any] = {"path": path, "hash": f"sha256:{digest}", "type": "table"}
    cell: Callable[[str], str] = in_csv if is_csv else str
    schema = _schema(texts, meaning, cell, written, values)
    if of_numbers:
        schema = _of_numbers(schema, fields_of(package, TABLES[0]), texts, cell)
    if not is_csv:
        kind = {"name": name, "format": "parquet", "mediatype": "application/vnd.apache.parquet"}
        return {**known, **kind, "schema": schema}
    kind = {"name": f"{name}-csv", "format": "csv", "mediatype": "text/csv", "encoding": "utf-8"}
    return {**known, **kind, "bytes": size, "description": _CSV_RULE, "schema": schema}


def _of_numbers(
    schema: dict[str, Any], said: list[Any], texts: Mapping[str, Sequence[str]], cell: Callable[[str], str]
) -> dict[str, Any]:
    """The same with columns of numbers, as far as what is said of them is well-formed."""
    fields = []
    for field in said[len(texts) :]:
        with suppress(DataError):
            told = parsed_numbers(field, texts)
            fields.append(field_again(told, field["funnel:drawn"].get("unit"), cell))
    return {**schema, "fields": [*schema["fields"], *fields], "missingValues": [""]}


def fields_of(package: Mapping[str, Any], path: str) -> list[Any]:
    """The fields of a table as the package has them; none where it does not describe it."""
    listed = package.get("resources")
    tables = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    schema = next((one.get("schema") for one in tables if one.get("path") == path), None)
    found = schema.get("fields") if isinstance(schema, dict) else None
    return found if isinstance(found, list) else []


def _numbers(said: Any, values: Set[str]) -> dict[str, Any]:
    """What is told of numbers, where that is well-formed: unit, range and intervals are the publisher's word."""
    told = said.get("funnel:numbers") if isinstance(said, dict) else None
    if not isinstance(told, dict) or not isinstance(told.get("whole"), bool):
        return {}
    ends = told.get("intervals", {})
    pairs = [*([told["range"]] if "range" in told else []), *(ends.values() if isinstance(ends, dict) else [None])]
    right = all(
        isinstance(pair, list)
        and len(pair) == 2
        and all(isinstance(end, int | float) and not isinstance(end, bool) for end in pair)
        and pair[0] <= pair[1]
        for pair in pairs
    )
    # Intervals that are too rare alone are published together, by a text that joins their names.
    right = right and (not ends or any(label and label in value for label in ends for value in values))
    right = right and isinstance(told.get("unit", ""), str) and type(told.get("decimals", 0)) is int
    means = told.get("means", {})
    right = right and isinstance(means, dict) and (not means or list(means) == list(ends))
    right = right and all(type(mean) in (int, float) for mean in means.values())
    right = right and all(ends[label][0] <= mean <= ends[label][1] for label, mean in means.items())
    right = right and told.get("surveyWeight", True) is True
    right = right and not set(told) - {"unit", "range", "whole", "decimals", "intervals", "means", "surveyWeight"}
    return {"funnel:numbers": told} if right else {}


def _label(said: Any) -> dict[str, str]:
    """What the publisher says a column is about, where that is one line of text."""
    told = said.get("title") if isinstance(said, dict) else None
    return {"title": told} if isinstance(told, str) and told.strip() and told.isprintable() else {}


def _schema(
    texts: Mapping[str, Sequence[str]],
    meaning: str,
    cell: Callable[[str], str],
    said: list[Any],
    known: Mapping[str, Set[str]],
) -> dict[str, Any]:
    fields = []
    for j, (column, of_column) in enumerate(texts.items()):
        values, written = [cell(text) for text in of_column], said[j] if j < len(said) else {}
        fields.append(
            {
                "name": cell(column),
                **_label(written),
                "type": "string",
                "description": meaning.format(column),
                "categories": values,
                "constraints": {"required": True, "enum": values},
                **_numbers(written, known.get(column, frozenset())),
            }
        )
    return {"fieldsMatch": "exact", "fields": fields, "missingValues": []}


def rounded_radius(cells: int, rows: int, alpha: float) -> float:
    """χ² quantile of one less than so many cells over the records, to three digits, half to even."""
    exact = 2 * float(gammaincinv((cells - 1) / 2, 1 - alpha)) / rows if cells > 1 else 0.0
    return float(f"{exact:.2e}")


def differences(found: Any, expected: Any, place: str) -> Iterator[str]:
    """Where two JSON values differ, by their keys."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted(set(found) | set(expected)):
            where = f"{place}.{key}" if place else str(key)
            if key not in expected:
                yield f"{where} is not a key that funnel writes"
            elif key not in found:
                yield f"{where} is missing"
            else:
                yield from differences(found[key], expected[key], where)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, (one, other) in enumerate(zip(found, expected, strict=True), 1):
            yield from differences(one, other, f"{place}[{number}]")
    elif type(found) is not type(expected) or found != expected:
        yield f"{place} is not what follows from the other files"
