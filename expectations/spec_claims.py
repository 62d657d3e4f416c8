"""Spec claims: that a version is of its source as the text of its spec says, and has documents and files as asked.

That all else in the data package follows from the files beside it is a check of the audit, made here too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from funnel.audit.context import declared_files
from funnel.audit.documentation import previous_version
from funnel.audit.evidence import counts_of
from funnel.audit.files import list_folder, read_json
from funnel.audit.package import TABLES, rounded_radius
from funnel.errors import SpecError
from funnel.pipeline.expectations.claims import Claim, all_of, claim, same
from funnel.pipeline.expectations.finished_folder import FinishedFolder
from funnel.pipeline.expectations.frequency_claims import expected_rules
from funnel.pipeline.expectations.spec_text import SpecText
from funnel.recount.balance import is_invariant
from funnel.recount.bins import counted_numbers, declared_cuts, hierarchy_complaints, is_found
from funnel.recount.classes import values_of
from funnel.recount.drawn_numbers import PlainNumbers, declared_numbers, field_again, plain_intervals
from funnel.recount.plain_distributions import Distributions, Symbol
from funnel.recount.promise import read_promise
from funnel.recount.published import count_published, in_csv
from funnel.release.documents import JointDocument
from funnel.release.findings import FindingsDocument

if TYPE_CHECKING:
    from funnel.pipeline.expectations.checks import Finished


def _bins(finished: FinishedFolder) -> Claim:
    """That bins which the text leaves to be found are those of its range, or of the numbers counted again."""
    asked = {column: one for column, one in finished.spec_text.section("recode").items() if one.get("bins") == "auto"}
    wrong = []
    for column in asked:
        made = finished.settled.recode[column].edges
        if finished.spec_text.has_noise:
            numbers = finished.spec_text.section("numbers")[column]
            low, high = numbers["range"]
            right = list(map(Fraction, made)) == declared_cuts(low, high, numbers.get("whole", False))
            wrong += [] if right else [f"of {column!r} has edges that do not follow from its range"]
        else:
            counted = counted_numbers(finished.spec, column)
            by_variance = finished.spec_text.utility == "variance"
            why = is_found(counted, made, by_variance, merged=finished.spec_text.threshold is not None)
            wrong += [] if why is None else [f"of {column!r} {why}"]
    return claim("bins", not wrong, "; ".join(wrong))


def source_claims(finished: FinishedFolder) -> list[Claim]:
    """The release was made from the current source, by the settings of its spec."""
    said, spec, found = finished.spec_text, finished.spec, finished.recount
    bound = said.promise == read_promise(spec.guarantee.canonical)
    return [
        claim(
            "digest",
            finished.snapshot.source_sha256 == found.sha256,
            "of the snapshot is not that of the source",
        ),
        same("records", finished.snapshot.rows, found.rows),
        same("records left out", finished.snapshot.dropped, found.dropped),
        same("secret", spec.secret, said.secret),
        same("published", spec.publish, said.publish),
        claim("text", finished.folder.spec.read_bytes() == spec.text.encode(), "in its evidence is not the spec"),
        claim("bound", bound, "that the run was for is not the one in the text of the spec"),
        same("csv", spec.output.csv, said.csv),
        same("order of rows", spec.output.shuffle, said.shuffled),
        same("record key", spec.record_key is not None, said.keyed),
        _bins(finished),
    ]


def _absent(finished: FinishedFolder) -> int | None:
    """Published records with a combination that the source, counted again, has not; None where outputs are sets."""
    if not is_invariant(finished.protocol):
        return None
    if finished.classes is None:
        there = {x for (_, x), n in finished.over_published(finished.recount).counts.items() if n}
        return sum(n for record, n in finished.evidence.counts.items() if record not in there)
    # The class follows from the other columns.
    released = finished.spec_text.released
    own = len(released) - 1 - len(finished.classes.columns)
    whole = {(*(s if own else ()), *x) for (s, x), n in finished.whole_counts.counts.items() if n}
    published = count_published(finished.folder.data, released)
    return sum(n for record, n in published.items() if record[:-1] not in whole)


def count_claims(finished: FinishedFolder) -> list[Claim]:
    """An independent reader counts the source again and finds the counts that the release was made from."""
    stored = JointDocument.read(finished.folder.joint).joint
    found = finished.recount
    counts = counts_of(stored)
    wrong = sum(counts.get(cell, 0) != found.counts.get(cell, 0) for cell in {*counts, *found.counts})

    def fits(there: Iterable[object], known: Iterable[object]) -> bool:
        # Exact counts may be of public values that nobody has.
        return set(there) == set(known) if finished.frequencies is None else set(there) <= set(known)

    return [
        claim("secret", fits(stored.secret.symbols, found.secret), "has other values than the source"),
        claim("inputs", fits(stored.inputs.symbols, found.inputs), "have other values than the source"),
        claim("counts", not wrong, f"differ from those of the source in {wrong:,} cells"),
        same(
            "combinations that no record has", FindingsDocument.read(finished.folder.findings).absent, _absent(finished)
        ),
        all_of("hierarchies", (claim("they", False, said) for said in hierarchy_complaints(finished.spec))),
    ]


def protocol_claims(finished: FinishedFolder) -> list[Claim]:
    """Bound, columns and protection in protocol.json are as the spec asks.

    Where people have histories the channel is that of their register, rounded, which the claims about the register and
    an audit hold it to.
    """
    content, distributions, said = finished.protocol, finished.distributions, finished.spec_text
    known, of_same = finished.drawing_document is not None or content["rounded"] is None, said.people == "same"
    asked = is_invariant({"mechanism": said.mechanism})
    return [
        guarantee_claim("guarantee", content["guarantee"]["declared"], said),
        _protocol_columns(content, said, distributions),
        same("records outside the alphabet", distributions.outside, 0),
        claim("effective channel", known, "is said to be rounded, and nobody has a history"),
        same("protection", content["frequencies"]["protection"], said.frequencies.protection),
        claim("versions without noise", of_same or not content["frequencies"]["unprotected"], "where each is alone"),
        same(
            "numbers",
            _stated_numbers(content),
            None if distributions.numbers is None else _expected(content, distributions.numbers),
        ),
        claim("mechanism", not asked or is_invariant(content), "is not the one of the spec"),
    ]


def _stated_numbers(content: Mapping[str, Any]) -> object:
    """The numbers that values are said to stand for, where the variance that is explained is told."""
    explained = content["utility"]["explained"]
    return None if explained is None else explained["numbers"]


def _expected(content: Mapping[str, Any], numbers: Mapping[Symbol, Fraction | None]) -> list[float | None]:
    """The same by the spec."""
    known = [numbers.get(tuple(symbol)) for symbol in content["prior"]["symbols"]]
    return [None if number is None else float(number) for number in known]


def guarantee_claim(name: str, stated: object, said: SpecText) -> Claim:
    """That the stated bound is the one of the spec, number by number."""
    try:
        promise = read_promise(str(stated))
    except SpecError:
        return Claim(name, "is no guarantee")
    return claim(name, promise == said.promise, f"is {stated!r}, which is not the bound of the spec")


def _protocol_columns(content: Mapping[str, Any], said: SpecText, distributions: Distributions) -> Claim:
    return all_of(
        "columns",
        [
            same("outputs", content["outputs"]["columns"], list(said.publish)),
            same("secret", content["guarantee"]["secret"], list(said.secret)),
            claim(
                "inputs",
                distributions.reads_secret or set(distributions.weights) == set(distributions.recount.inputs),
                "are other values than occur in the source",
            ),
        ],
    )


def package_claims(finished: FinishedFolder) -> list[Claim]:
    """Version, columns, numbers and rules in the data package are those that the spec asks for."""
    content, distributions, said = read_json(finished.folder.package), finished.distributions, finished.spec_text
    previous = previous_version(finished.folder, content, [finished.folder.catalogue.name])
    privacy = content["funnel:privacy"]
    confidence = privacy["confidence"]
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
                same(
                    "radius",
                    confidence["radius"],
                    rounded_radius(distributions.recount.cells, distributions.recount.rows, said.alpha),
                ),
            ],
        ),
    ]


def _columns(content: Mapping[str, Any], said: SpecText, finished: FinishedFolder) -> Iterator[Claim]:
    """What is told of the numbers of columns, and of the values of those that the protocol is not about."""
    intervals = {column: plain_intervals(finished.settled, column) for column in said.section("numbers")}
    drawn, classes = declared_numbers(finished.settled, finished.distributions.released, said.drawn), finished.classes
    values = {} if classes is None else values_of(finished.whole_counts, classes.columns, finished.public_values)
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


def files_claims(finished: Finished) -> list[Claim]:
    """The folder holds exactly the declared public files, as plain files."""
    root, declared = finished.folder.root, declared_files(finished.traits)
    found = set(list_folder(root).files)
    # The other name of it could be written to later.
    linked = [name for name in sorted(found) if (root / name).lstat().st_nlink != 1]
    return [
        all_of("all public files", (claim(name, False, "is missing") for name in sorted(declared - found))),
        all_of("no other file", (claim(name, False, "is not declared") for name in sorted(found - declared))),
        all_of("plain files", (claim(name, False, "is a file with another name elsewhere") for name in linked)),
    ]
