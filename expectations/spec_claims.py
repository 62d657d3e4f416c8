"""Spec claims: that a version was made of its source as the text of its spec says, and has a protocol as asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from funnel.audit.evidence import counts_of
from funnel.errors import SpecError
from funnel.pipeline.expectations.claims import Claim, all_of, claim, same
from funnel.pipeline.expectations.finished_folder import FinishedFolder
from funnel.pipeline.expectations.spec_text import SpecText
from funnel.recount.balance import is_invariant
from funnel.recount.bins import counted_numbers, declared_cuts, hierarchy_complaints, is_found
from funnel.recount.plain_distributions import Distributions, Symbol
from funnel.recount.promise import read_promise
from funnel.recount.published import count_published
from funnel.release.documents import JointDocument
from funnel.release.findings import FindingsDocument


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
    content, laws, said = finished.protocol, finished.laws, finished.spec_text
    known, of_same = finished.drawing_document is not None or content["rounded"] is None, said.people == "same"
    asked = is_invariant({"mechanism": said.mechanism})
    return [
        guarantee_claim("guarantee", content["guarantee"]["declared"], said),
        _columns(content, said, laws),
        same("records outside the alphabet", laws.outside, 0),
        claim("effective channel", known, "is said to be rounded, and nobody has a history"),
        same("protection", content["frequencies"]["protection"], said.frequencies.protection),
        claim("versions without noise", of_same or not content["frequencies"]["unprotected"], "where each is alone"),
        same("numbers", _numbers(content), None if laws.numbers is None else _expected(content, laws.numbers)),
        claim("mechanism", not asked or is_invariant(content), "is not the one of the spec"),
    ]


def _numbers(content: Mapping[str, Any]) -> object:
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


def _columns(content: Mapping[str, Any], said: SpecText, laws: Distributions) -> Claim:
    return all_of(
        "columns",
        [
            same("outputs", content["outputs"]["columns"], list(said.publish)),
            same("secret", content["guarantee"]["secret"], list(said.secret)),
            claim(
                "inputs",
                laws.reads_secret or set(laws.weights) == set(laws.recount.inputs),
                "are other values than occur in the source",
            ),
        ],
    )
