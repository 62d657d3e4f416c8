"""What datapackage.json of a grouped release states, held against the files beside it, the spec and the recount."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from funnel.audit.grouped.figures import is_told, level_complaints, step_of
from funnel.audit.grouped.law import PublishedLaw
from funnel.pipeline.expectations.claims import Claim, all_of, claim, same
from funnel.pipeline.expectations.disclosure_claims import expected_rules
from funnel.pipeline.expectations.grouped_claims import of
from funnel.pipeline.expectations.package_claims import PROTECTED, SCOPES, created_claim, described, resource, texts_of
from funnel.pipeline.expectations.protocol_claims import guarantee_claim
from funnel.pipeline.expectations.public_files import CHANNELS, NUMBERS
from funnel.pipeline.expectations.said import Said

CLAIMS = ("canonical text", "texts", "resources", "guarantee", "level", "channel", "figures", "nothing else")
MEANING = (
    "sanitised: a plain value stands for itself; a value with 'or', or 'any but', may come from any of the values it "
    "names or leaves, and 'any' from all. protocol.json says how it was drawn, and channels.parquet how probable it is."
)


def grouped_package_claims(
    content: Mapping[str, Any],
    canonical: bool,
    version: str,
    files: Mapping[str, tuple[str, int]],
    law: PublishedLaw,
    said: Said,
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
    """
    privacy, text = content["funnel:privacy"], law.followed.text
    texts = texts_of(version, said)
    resources = [
        resource(said.settings["name"], described(path, text.texts, MEANING), path, *files[path])
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
    return {
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
        "frequencies": {"protection": "none", "meaning": PROTECTED["none"]},
        "scope": SCOPES[said.people],
        **({} if said.people is None else {"people": said.people}),
    }
