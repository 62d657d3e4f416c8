"""What classes.json and the published records state of classes, held against the records counted again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate, product
from typing import Any

from funnel.audit.files import read_json
from funnel.pipeline.expectations.claims import Claim, claim, same
from funnel.pipeline.expectations.finished_folder import FinishedFolder
from funnel.pipeline.expectations.held_out_claims import held_out_claims
from funnel.pipeline.expectations.spec_text import SpecText
from funnel.recount.donors import PlainDonors
from funnel.recount.part_beliefs import class_of
from funnel.recount.plain_distributions import share_step, up_to_digits
from funnel.recount.published import count_published
from funnel.recount.published_classes import PublishedByClass, moves_of, published_by_class
from funnel.recount.source import Recount
from funnel.recount.unchanged import Rule, observer_complaints
from funnel.release.documents import JointDocument, PartsDocument, PeopleWith

Json = Mapping[str, Any]
Record = tuple[str, ...]

# So far apart the probabilities of a class may be for two secrets, by rounding.
_ROUNDED = 1e-9


def class_claims(finished: FinishedFolder) -> list[Claim]:
    """Every published record is one of the source, of its class, and in every class records are as in the source."""
    classes, said, given = finished.classes, finished.spec_text, finished.given_classes
    if classes is None:
        return [Claim("classes", "cannot be judged: there is no classes.json")]
    whole, released = finished.whole_counts, finished.distributions.released
    stated = read_json(finished.folder.numbers).get("unchanged") or {}
    people, sizes = _people(whole), Counter[str]()
    for record, count in people.items():
        sizes[classes.of(record)] += count
    width = len(said.released) - 1 - len(classes.columns)
    rows = published_by_class(count_published(finished.folder.data, said.released), width)
    found = PublishedByClass(classes, whole.counts, rows, moves_of(released, len(classes.known)))
    nobody: Record = ()
    true = {(nobody, record, classes.of(record)): count for record, count in people.items()}
    gone, least_gone, most_gone = found.gone
    misplaced, unknown = found.misplaced, found.unknown
    # Donors who are followed have the composition of their class in no later version; the register has them.
    is_even = said.people != "same"
    unlikely = list(found.unlikely()) if is_even else []
    lines = PlainDonors(classes.columns, true, {}, finished.stated_categories)
    places = lines.taken_digest(classes.names) if is_even else None
    # Of classes that follow from other people's records each needs a donor; of those of an earlier version, each that
    # a record comes to.
    fewest = said.min_records if given is None else 1
    fewest = fewest if finished.versions in (None, 1) else 0
    of_class = Counter[str]()
    for name in classes.names:
        of_class[class_of((name,))] += sizes[name]
    least = min(of_class.values()) if given is None else min(sizes[name] for name in classes.names)
    whose = "different" if given is not None else "part" if said.held_out else "same"
    right = classes.people == whose and (given is None or classes.is_of(given))
    return [
        claim("origin", right, "of the questions is not the file that the spec names, or the records themselves"),
        same("columns", classes.columns, said.whole),
        same("known columns", classes.known, said.known),
        same("parts", (classes.at_once, classes.has_parts), (said.at_once, said.at_once > 0)),
        claim("size", min(sizes.values()) > 0 and least >= fewest, f"of a class is {least:,}, below {fewest:,}"),
        *_people_of_parts(finished),
        *held_out_claims(finished, classes),
        claim("classes", not misplaced, f"of {misplaced:,} records are not what their columns say"),
        claim("records", not unknown, f"{unknown:,} are nobody's"),
        claim("moves", found.moved_by_secret <= _ROUNDED, "of records to other classes read their secret"),
        claim(
            "composition",
            not unlikely,
            f"of the classes is not that of the source, for {len(unlikely):,} values, the first of {unlikely[:1]!r}",
        ),
        claim("donors", finished.draws.donors == places, "of the drawing are not as likely to be anybody of a class"),
        claim(
            "changes",
            not is_even or least_gone <= gone <= most_gone,
            f"of records are not those of the protocol: {gone:,} like no other are gone, instead of {least_gone:,.0f} "
            f"to {most_gone:,.0f}",
        ),
        _off(found, stated.get("off"), width > 0 and not said.has_noise),
        _known(found, stated.get("known"), said) if is_even else Claim("known", None),
        _followed(found, read_json(finished.folder.numbers), is_even),
        same("observers", stated.get("at_once"), said.at_once),
    ]


def _people(whole: Recount) -> Counter[Record]:
    people: Counter[Record] = Counter()
    for (_, record), count in whole.counts.items():
        people[record] += count
    return people


def _people_of_parts(finished: FinishedFolder) -> list[Claim]:
    """Whether the internal evidence has the classes of parts, and the people of each value in every part."""
    path, counted = finished.folder.parts, finished.recount
    if not counted.having:
        return [claim("people of parts", not path.is_file(), "are stored where there are none")]
    stored = PartsDocument.read(path)
    parts = [tuple(symbol) for symbol in JointDocument.read(finished.folder.joint).inputs.symbols]
    classes = [stored.classes.symbols[number] for number in stored.class_of]
    right = {part: (class_of(part),) for part in counted.inputs} == dict(zip(parts, classes, strict=True))
    having: dict[Record, dict[tuple[Record, Record], int]] = {}
    for known, of in counted.having.items():
        columns, values = (tuple(texts) for texts in zip(*known, strict=True))
        having.setdefault(columns, {}).update({(values, part): number for part, number in of.items()})
    alike = having == {one.columns: dict(_people_with(stored, one, parts)) for one in stored.known}
    return [claim("people of parts", right and alike, "are not those of the source")]


def _people_with(
    stored: PartsDocument, one: PeopleWith, parts: list[Record]
) -> Iterator[tuple[tuple[Record, Record], int]]:
    """The people that a table has, by values of its columns and by part."""
    symbols = [*product(*(stored.values[column] for column in one.columns))]
    for cell, number in zip(accumulate(one.steps), one.people, strict=True):
        place, part = divmod(cell, len(parts))
        yield (symbols[place], parts[part]), number


def _off(found: PublishedByClass, stated: Json | None, published: bool) -> Claim:
    """Whether the cell that is stated is the farthest off, by as many records as are stated."""
    if not published or stated is None:
        return Claim("off", "is missing or out of place" if published or stated is not None else None)
    off = {(" · ".join(secret), column, value): records for (secret, column, value), records in found.off().items()}
    records, most = off.get((stated["secret"], stated["column"], stated["value"]), math.inf), max(off.values())
    hair = _ROUNDED * sum(found.true.values())
    near = most - hair <= min(records, stated["records"]) and stated["records"] <= most * 1.11 + hair
    return claim("off", near, "is not how far tables of the secret are off on average")


def _followed(found: PublishedByClass, report: Json, is_even: bool) -> Claim:
    """Whether counts of records of the same people are as far off as is stated, in all and of the value that is."""
    stated = (report.get("unchanged") or {}).get("followed")
    off = {} if is_even else found.off_in_errors(float(report["figures"]["history"]["own"]))
    if not off or stated is None:
        return Claim("followed", "is missing or out of place" if off or stated is not None else None)
    factor = math.sqrt(math.fsum(one * one for one in off.values()) / len(off))
    most = max(off.values())
    farthest = off.get((stated["column"], stated["value"]), -1.0)
    right = farthest >= most * (1 - _ROUNDED) and all(
        up_to_digits(one * (1 - _ROUNDED), 2) <= told <= up_to_digits(one * (1 + _ROUNDED), 2)
        for one, told in ((factor, stated["factor"]), (most, stated["errors"]))
    )
    return claim("followed", right, "is not how far counts of values are off")


def _known(found: PublishedByClass, stated: list[Json] | None, said: SpecText) -> Claim:
    """Whether observers of columns conclude what is stated, and those with most people beyond are first."""
    if said.has_noise or not stated:
        return Claim("known", None if said.has_noise and not stated else "is missing or out of place")
    rule = Rule(share_step(sum(found.true.values())), float(said.promise.budget), None)
    columns = found.observed(rule.budget)
    each = sorted(tuple(one["columns"]) for one in stated) == sorted(columns)
    right = each and not any(
        list(observer_complaints(", ".join(one["columns"]), one, *columns[tuple(one["columns"])], rule))
        for one in stated
    )
    shares = [one["outside"] for one in stated]
    in_order = shares == sorted(shares, reverse=True)
    return claim("known", right and in_order, "is not what observers of these columns can conclude at most")
