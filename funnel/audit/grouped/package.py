"""The data package of a grouped release, compared with what follows from everything else that is public."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from funnel.audit.check import Check, judged
from funnel.audit.package import (
    FREE,
    PROFILE,
    PROTECTED,
    Facts,
    differences,
    report_of,
    resource_of,
    rules_of,
    scope_of,
    unfit,
)
from funnel.guarantees import parse_guarantee
from funnel.recount.grouped_text import GroupedText

_FIELD = (
    "{}, sanitised: a plain value stands for itself; a value with 'or', or 'any but', may come from any of the values "
    "it names or leaves, and 'any' from all. protocol.json says how it was drawn, and channels.parquet how probable it "
    "is."
)
_RECIPE = (
    "Of one column at a time: of all shares p of true values those are the likeliest that this ends at, from equal "
    "ones on: multiply every p(x) by the sum over published values y of q(y) P(y|x) / r(y), again and again, where "
    "q(y) is the share of records with y, P(y|x) is in protocol.csv, and r(y) is the sum of P(y|x) p(x) over true "
    "values x; published values that have no line there are one. P(y|x) is an average over all records of this "
    "release, and holds for no part of them. channels.parquet has the same of every two columns."
)
_NOISY = ("path", "hash", "epsilon", "delta", "beta", "spent", "unprotectedVersions")


def check_grouped_package(package: dict[str, Any], text: GroupedText, facts: Facts, rows: int | None) -> Check:
    """Compare the data package with protocol, files and rows; parameters as of `funnel.audit.package.check_package`."""
    return judged("package", _complaints(package, text, facts, rows), "every key follows from the other files")


def _complaints(package: dict[str, Any], text: GroupedText, facts: Facts, rows: int | None) -> Iterator[str]:
    name, privacy = package.get("name"), package.get("funnel:privacy")
    if not isinstance(name, str) or not isinstance(privacy, dict):
        yield "its name or its block on privacy is missing"
        return
    yield from differences(package, _expected(name, package, privacy, text, facts, rows), "")
    yield from unfit(package, privacy)


def _expected(
    name: str,
    package: dict[str, Any],
    privacy: dict[str, Any],
    text: GroupedText,
    facts: Facts,
    rows: int | None,
) -> dict[str, Any]:
    """The package as it should be; what cannot be told from public files is taken from the package itself."""
    promise, content = text.content["guarantee"], text.content
    # Releases from before the block was a document of its own leave out what is not known of them.
    dated = "schema" not in privacy
    given = {key: package[key] for key in (*FREE, "version", "created") if key in package}
    tables = [path for path in sorted(facts) if path.startswith("data/")]
    values = {
        column: set(of_column)
        for stage in text.stages
        for column, of_column in zip(stage.columns, stage.values, strict=True)
    }
    return {
        **given,
        "$schema": PROFILE,
        "name": name,
        "resources": [resource_of(name, path, facts[path], text.texts, _FIELD, package, values) for path in tables],
        "funnel:privacy": {
            **({} if dated else _told_since(promise["declared"])),
            "guarantee": promise["declared"],
            "level": promise["level"],
            "unit": "nats",
            "secret": list(promise["secret"]),
            "published": list(text.columns),
            "groups": [list(stage.columns) for stage in text.stages],
            "madeFor": text.people,
            "mechanism": content["mechanism"],
            "readsSecret": False,
            "protocol": _named(facts, "protocol.json"),
            "protocolDigest": content["digest"],
            "channels": _named(facts, "channels.parquet"),
            "report": report_of(facts),
            "utilityShare": content["utility"]["share"],
            "records": privacy.get("records") if rows is None else rows,
            "rowOrder": privacy.get("rowOrder"),
            "disclosureControl": rules_of(privacy.get("disclosureControl")),
            "frequencies": {
                "protection": content["frequencies"]["protection"],
                "meaning": PROTECTED[content["frequencies"]["protection"]],
                **({} if dated else dict.fromkeys(_NOISY)),
            },
            **scope_of(privacy),
        },
    }


def _told_since(declared: str) -> dict[str, Any]:
    """What the block says since it has a schema."""
    return {
        "schema": "funnel/grouped-privacy/1",
        "meaning": parse_guarantee(declared).meaning,
        "estimation": {"path": "protocol.csv", "recipe": _RECIPE},
        "people": None,
    }


def _named(facts: Mapping[str, tuple[str, int]], path: str) -> dict[str, str]:
    return {"path": path, "hash": f"sha256:{facts.get(path, ('', 0))[0]}"}
