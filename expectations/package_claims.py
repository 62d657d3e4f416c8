"""What datapackage.json states in the publisher's words, held against the spec and the recounted records; which files.

That all else in it follows from the files beside it is a check of the audit, made here too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from scipy.special import chdtri

from funnel.audit.context import NEEDED
from funnel.audit.documentation import previous_version
from funnel.audit.files import list_folder, read_json
from funnel.audit.package import TABLES
from funnel.pipeline.expectations.claims import Claim, all_of, claim, same
from funnel.pipeline.expectations.finished_folder import FinishedFolder
from funnel.pipeline.expectations.frequency_claims import expected_rules
from funnel.pipeline.expectations.spec_text import SpecText
from funnel.recount.balance import is_invariant
from funnel.recount.drawn_numbers import PlainNumbers, field_again
from funnel.recount.figures import NOISE
from funnel.recount.published import in_csv


def package_claims(finished: FinishedFolder) -> list[Claim]:
    """Version, columns, numbers and rules in the data package are those that the spec asks for."""
    content, laws, said = read_json(finished.folder.package), finished.laws, finished.spec_text
    previous = previous_version(finished.folder, content, [finished.folder.catalogue.name])
    privacy = content["funnel:privacy"]
    confidence, n = privacy["confidence"], laws.recount.rows
    return [
        same("version", content.get("version"), finished.version),
        same("previous version", previous, finished.previous),
        all_of(
            "settings",
            [
                same("published", privacy["published"], list(said.released)),
                same("rowOrder", privacy["rowOrder"], "random" if said.shuffled else "as in the source"),
                claim(
                    "disclosureControl",
                    privacy["disclosureControl"] == expected_rules(said),
                    "is not what the spec says of the rules",
                ),
                same("people", privacy["people"], said.people),
                same("versions", privacy["versions"], finished.versions),
            ],
        ),
        all_of("columns", _columns(content, said, finished)),
        all_of(
            "confidence",
            [
                same("alpha", confidence["alpha"], said.alpha),
                radius_claim("radius", confidence["radius"], laws.recount.cells, n, said.alpha),
            ],
        ),
    ]


def _columns(content: Mapping[str, Any], said: SpecText, finished: FinishedFolder) -> Iterator[Claim]:
    """What is told of the numbers of columns, and of the values of those that the protocol is not about."""
    intervals, drawn, values = finished.intervals, finished.declared_numbers, finished.values
    for resource in content["resources"]:
        path, fields = resource["path"], resource["schema"]["fields"]
        for column, field in zip(said.released, fields, strict=False):
            right = field.get("funnel:numbers") == _numbers(column, said, intervals.get(column, {}))
            yield claim(f"{path} {column!r}", right, "is not told to stand for the numbers that the spec says")
            known = sorted(values.get(column, ())) if path == "data/records.parquet" else []
            yield claim(f"values of {column!r}", not known or sorted(field["categories"]) == known, "are others")
        further = fields[len(said.released) :]
        yield claim(f"{path} drawn numbers", further == drawn_fields(path, drawn, said), "are not as the spec says")


def _numbers(column: str, said: SpecText, intervals: Mapping[str, tuple[Fraction, Fraction]]) -> dict[str, Any] | None:
    """What the text of the spec says of the numbers of a column, and the intervals that follow."""
    told = said.section("numbers").get(column)
    if told is None:
        return None
    known = {key: told[key] for key in ("unit", "range", "decimals") if key in told}
    ends = {label: [float(low), float(high)] for label, (low, high) in intervals.items()}
    means = {"means": dict(zip(intervals, told["means"], strict=True))} if "means" in told else {}
    weight = {"surveyWeight": True} if said.settings.get("weight") == column else {}
    whole = told.get("whole", False)
    return {**known, "whole": whole, **({"intervals": ends} if ends else {}), **means, **weight}


def drawn_fields(path: str, drawn: Sequence[PlainNumbers], said: SpecText) -> list[dict[str, Any]]:
    """The fields of the columns of drawn numbers, where a table has them."""
    if path not in TABLES:
        return []
    written = in_csv if path.endswith(".csv") else str
    return [field_again(one, said.section("numbers")[one.column].get("unit"), written) for one in drawn]


def radius_claim(name: str, stated: object, cells: int, n: int, alpha: float) -> Claim:
    """That a radius is the quantile of the χ² law over n, to two or three digits."""
    exact = float(chdtri(cells - 1, alpha)) / n if cells > 1 else 0.0
    told = [float(f"{exact:.{digits - 1}e}") for digits in (2, 3)]
    fine = isinstance(stated, (int, float)) and any(math.isclose(stated, one, rel_tol=NOISE) for one in told)
    return claim(name, fine, f"is {stated!r}, which is not what follows from {cells:,} cells")


def declared_files(finished: FinishedFolder) -> frozenset[str]:
    """Paths of the public files that a version consists of; public counts are one where noise protects the others.

    So is a table of numbers where some are drawn within intervals. Where csv is asked for there is one of the protocol,
    and one of weights where these estimate shares: the records of an invariant protocol are counted as usual. So are
    the questions that classes of records follow from.
    """
    said, (numbers, numbers_csv) = finished.spec_text, TABLES
    asked = {
        "data/records.csv": said.csv,
        "protocol.csv": said.csv,
        "estimator.csv": said.csv and not is_invariant(finished.protocol),
        numbers: bool(said.drawn),
        numbers_csv: bool(said.drawn) and said.csv,
        "frequencies.json": said.has_noise,
        "classes.json": finished.classes is not None,
    }
    return frozenset(NEEDED) | {path for path, is_declared in asked.items() if is_declared}


def files_claims(finished: FinishedFolder) -> list[Claim]:
    """The folder holds exactly the declared public files, as plain files."""
    root, declared = finished.folder.root, declared_files(finished)
    found = set(list_folder(root).files)
    # The other name of it could be written to later.
    linked = [name for name in sorted(found) if (root / name).lstat().st_nlink != 1]
    return [
        all_of("all public files", (claim(name, False, "is missing") for name in sorted(declared - found))),
        all_of("no other file", (claim(name, False, "is not declared") for name in sorted(found - declared))),
        all_of("plain files", (claim(name, False, "is a file with another name elsewhere") for name in linked)),
    ]
