"""What datapackage.json of a grouped release states, held against the files beside it, the spec and the recount."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from funnel.audit.grouped.figures import is_told, level_complaints, step_of
from funnel.audit.grouped.law import PublishedLaw
from funnel.pipeline.expectations.claims import Claim, all_of, claim, same
from funnel.pipeline.expectations.disclosure_claims import expected_rules
from funnel.pipeline.expectations.grouped_claims import of
from funnel.pipeline.expectations.package_claims import (
    PROTECTED,
    SCOPES,
    created_claim,
    described,
    drawn_fields,
    resource,
    texts_of,
    with_numbers,
)
from funnel.pipeline.expectations.protocol_claims import guarantee_claim
from funnel.pipeline.expectations.public_files import CHANNELS, NUMBERS
from funnel.pipeline.expectations.said import Said
from funnel.recount.drawn_numbers import ToldNumbers

CLAIMS = ("canonical text", "texts", "resources", "guarantee", "level", "channel", "figures", "nothing else")
MEANING = (
    "sanitised: a plain value stands for itself; a value with 'or', or 'any but', may come from any of the values it "
    "names or leaves, and 'any' from all. protocol.json says how it was drawn, and channels.parquet how probable it is."
)
_RECIPE = (
    "Of one column at a time: of all shares p of true values those are the likeliest that this ends at, from equal "
    "ones on: multiply every p(x) by the sum over published values y of q(y) P(y|x) / r(y), again and again, where "
    "q(y) is the share of records with y, P(y|x) is in protocol.csv, and r(y) is the sum of P(y|x) p(x) over true "
    "values x; published values that have no line there are one. P(y|x) is an average over all records of this "
    "release, and holds for no part of them. channels.parquet has the same of every two columns."
)


def grouped_package_claims(
    content: Mapping[str, Any],
    canonical: bool,
    version: str,
    files: Mapping[str, tuple[str, int]],
    law: PublishedLaw,
    said: Said,
    intervals: Mapping[str, Mapping[str, tuple[Fraction, Fraction]]] = MappingProxyType({}),
    drawn: Sequence[ToldNumbers] = (),
) -> list[Claim]:
    """What holds of the content of a ``datapackage.json``.

    Parameters
    ----------
    content : mapping
    canonical : bool
        Whether the file is, to the byte, what its content is written as.
    version : str
        That is about to be published.
    files : mapping of path to (SHA-256, size in bytes)
        The public files that are there.
    law : PublishedLaw
        Of the recounted records under the protocol beside it.
    said : Said
        What the text of the spec says.
    intervals : mapping of column to mapping of category to (least, largest)
        The intervals that categories of numbers stand for.
    drawn : sequence of ToldNumbers
        The columns of numbers that are drawn within them.
    """
    privacy, text = content["funnel:privacy"], law.followed.text
    texts = texts_of(version, said)
    resources = [
        resource(
            said.settings["name"],
            [
                *with_numbers(described(path, text.texts, MEANING), text.columns, said, intervals),
                *drawn_fields(path, drawn, said),
            ],
            path,
            *files[path],
        )
        for path in sorted(files)
        if path.startswith("data/")
    ]
    rows = int(law.people.sum())
    share = min(1.0, law.information / law.entropy) if law.entropy > 0 else 0.0
    channel = _channel(files, law, said, rows)
    further = set(content) - {*texts, "created", "resources", "funnel:privacy"}
    further |= {f"funnel:privacy.{key}" for key in set(privacy) ^ {*channel, "guarantee", "level", "utilityShare"}}
    stated = {key: value for key, value in content.items() if key in texts}
    return [
        claim("canonical text", canonical, "holds more than its content"),
        all_of(
            "texts", [*(same(key, stated.get(key), texts[key]) for key in texts), created_claim(content["created"])]
        ),
        claim("resources", content["resources"] == resources, "are not those of the files that are there"),
        guarantee_claim("guarantee", privacy["guarantee"], said),
        of(
            "level",
            level_complaints("the level", privacy["level"], law.followed.outputs, float(said.promise.budget)),
        ),
        all_of("channel", (same(key, privacy.get(key), value) for key, value in channel.items())),
        claim("figures", is_told(privacy["utilityShare"], share, step_of(rows)), "are not what follows"),
        claim("nothing else", not further, f"but for {', '.join(sorted(further))}"),
    ]


def _channel(files: Mapping[str, tuple[str, int]], law: PublishedLaw, said: Said, rows: int) -> dict[str, Any]:
    """Everything that is no figure."""

    def told(path: str) -> dict[str, str]:
        return {"path": path, "hash": f"sha256:{files[path][0]}"}

    text = law.followed.text
    protection = said.frequencies.protection
    noisy = ("path", "hash", "epsilon", "delta", "beta", "spent", "unprotectedVersions")
    return {
        "schema": "funnel/grouped-privacy/1",
        "meaning": said.guarantee.meaning,
        "estimation": {"path": "protocol.csv", "recipe": _RECIPE},
        "unit": "nats",
        "secret": list(said.secret),
        "published": list(text.columns),
        "groups": [list(stage.columns) for stage in text.stages],
        "madeFor": said.expected_people,
        "mechanism": "groups",
        "readsSecret": False,
        "protocol": told("protocol.json"),
        "protocolDigest": text.digest,
        "channels": told(CHANNELS),
        "report": {**told(NUMBERS), "page": "report.html"},
        "records": rows,
        "rowOrder": "random" if said.shuffled else "as in the source",
        "disclosureControl": expected_rules(said),
        "frequencies": {"protection": protection, "meaning": PROTECTED[protection], **dict.fromkeys(noisy)},
        "scope": SCOPES[said.people],
        "people": said.people,
    }
