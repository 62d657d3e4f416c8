"""What whole records, which are drawn by their class, go with; rules of `agreement`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from funnel.protocol import INVARIANT
from funnel.wording import did_you_mean, listed

if TYPE_CHECKING:
    from funnel.spec import ReleaseSpec

# Guarantees that are kept by classes of records, and those that are where classes follow from other people's.
_BY_CLASS = ("lip", "alip", "ldp", "pml", "attribute")
_BY_GIVEN_CLASS = ("rlip", "ralip", "rldp", "rpml", "rattribute")
# And those that donors who are followed keep over versions about the same people.
_BY_FOLLOWED = ("lip", "alip", "ldp", "pml")
# Those that are for observers of known columns.
_BY_KNOWN = ("srlip", "rsrlip")
FOR_KNOWN = {*_BY_KNOWN, "attribute", "rattribute"}
"""Guarantees for which known columns are named."""

DIFFERENT = '[history] people = "different" if no person is in two versions'
"""What to write where versions about the same people are refused."""


def why_not_by_class(spec: ReleaseSpec) -> str | None:
    """Why the records of a spec cannot be counted and drawn by classes, in one sentence; None if they can."""
    # Imported here: settings are read where no guarantee is.
    from funnel.guarantees import parse_guarantee
    from funnel.guarantees.several import parts_of

    if spec.groups.at_once:
        return _why_not_at_once(spec)
    guarantee, given = spec.guarantee.canonical, spec.groups.classes is not None
    if spec.frequencies.kind.is_noisy and not given:
        return (
            "which questions tell most of the secret is read off exact counts, which noise would not protect; make "
            'them from other people with funnel classes and write classes = "classes.json" in [groups], or '
            'protection = "threshold" in [frequencies]'
        )
    if parse_guarantee(guarantee).significance is not None and not given:
        return (
            f"{guarantee} is about a population, and questions that are chosen by the same records make them look more "
            'certain than they are; write known = "pairs" and held_out = 0.3 in [groups], or make them from other '
            'people with funnel classes and write classes = "classes.json" there, or guarantee = "lip:1.0"'
        )
    kept = (*_BY_CLASS, *(_BY_GIVEN_CLASS if given else ()), *(_BY_KNOWN if spec.groups.known_columns else ()))
    if any(part.name not in kept for part in parts_of(parse_guarantee(guarantee))):
        return (
            f"{guarantee} is no bound on what a class of records tells; name the columns that observers may know as "
            'known in [groups], for srlip, write guarantee = "lip:1.0", or publish fewer columns'
        )
    return _why_not_whole(spec)


def _why_not_at_once(spec: ReleaseSpec) -> str | None:
    """The same of a bound for observers of any columns, so many at once."""
    from funnel.guarantees import parse_guarantee
    from funnel.guarantees.several import parts_of

    guarantee, known = parse_guarantee(spec.guarantee.canonical), f'known = "{spec.groups.known}"'
    kinds = {part.name for part in parts_of(guarantee)}
    others, example = ({"lip"}, '"lip:1.0", "srlip:2.0"')
    if spec.publishes_secret:
        others, example = {"attribute"}, '"attribute:1.0", "srlip:4.0"'
    elif spec.groups.held_out:
        others, example = {"rlip"}, '"rlip:1.0,0.05", "srlip:3.0"'
    if guarantee.is_perfect or not {"srlip"} <= kinds <= {*others, "srlip"}:
        hint = " and held_out = 0.3 in [groups]" if "rlip" in kinds and not spec.publishes_secret else ""
        asked = f'guarantee = ["rlip:1.0,0.05", "srlip:3.0"]{hint}' if hint else f"guarantee = [{example}]"
        return (
            f"{known} in [groups] is for srlip, with {listed(sorted(others))} or without, and {guarantee} is another "
            f"bound; write {asked}"
        )
    if spec.frequencies.kind.is_noisy:
        return (
            f"{known} cuts classes by exact counts, which noise would not protect; write protection = "
            '"threshold" in [frequencies]'
        )
    if spec.groups.classes is not None:
        return (
            f"{known} cuts classes by the counts of the records themselves, and the file of [groups] "
            "classes has those of other people; take classes out, or name columns as known"
        )
    return _why_not_whole(spec, known)


def _why_not_whole(spec: ReleaseSpec, known: str = "") -> str | None:
    """Why whole records cannot be drawn whatever the bound is; known: the setting for observers of any columns."""
    if spec.register is not None and (reason := _why_not_followed(spec)) is not None:
        return reason
    counts_alike = known or ('utility = "estimation"' if spec.utility == "estimation" else "")
    if counts_alike and "weights" in spec.mechanism.model_fields_set:
        return f"{counts_alike} leaves as many records as can be, so [mechanism] weights has no effect; take it out"
    if spec.utility == "variance" or spec.weight is not None or spec.drawn_columns:
        return (
            "variance, weight and numbers that are drawn within intervals are of values that are drawn one by one; "
            "take them out, or publish fewer columns"
        )
    return None


def _why_not_followed(spec: ReleaseSpec) -> str | None:
    """Why whole records of the same people cannot be those of donors who are followed from version to version."""
    from funnel.guarantees import parse_guarantee

    guarantee, history = parse_guarantee(spec.guarantee.canonical), spec.history
    other = f"write {DIFFERENT}, or publish fewer columns"
    if spec.frequencies.kind.is_noisy:
        return (
            "which donors of the same people leave, and who changes how, is counted exactly, which noise would not "
            f'protect; write protection = "threshold" in [frequencies], or {other}'
        )
    if guarantee.name not in _BY_FOLLOWED or guarantee.is_perfect or spec.publishes_secret:
        return (
            f'guarantee = "{guarantee}" is no bound on what an observer concludes who sees where a record of the same '
            f'people goes on and where another one begins; write guarantee = "lip:1.0", or {other}'
        )
    if spec.utility != "information" or spec.groups.known_columns:
        return (
            "of the same people as many records go on as the bound allows, and nothing else is aimed at; take utility "
            f"and known out, or {other}"
        )
    if history is not None and (spec.asks_for_movers or spec.bounded_secrets != "all"):
        return (
            "whole records of the same people are bounded for who knows every change, and for the secrets of all "
            f"versions; take observers and secrets out of [history], or {other}"
        )
    return None


def held_out_agrees(spec: ReleaseSpec) -> Iterator[str]:
    """Records that are held out though no bound in the population needs them, or nobody can say which they are."""
    if not spec.groups.held_out:
        return
    said = f"[groups] held_out = {spec.groups.held_out:g}"
    if not spec.groups.at_once or "rlip" not in {part.partition(":")[0].strip() for part in _parts_as_written(spec)}:
        yield (
            f"{said} is for a bound in the population beside observers of any columns; write known = "
            '"pairs" there and guarantee = ["rlip:1.0,0.05", "srlip:3.0"], or take held_out out'
        )
    elif spec.source.format == "sql":
        yield (
            f"{said} goes by the place of a record, and a database may give its rows in another order the next time; "
            "release from a file, or take held_out out and write lip instead of rlip"
        )
    elif spec.automatic:
        yield (
            f"{said} leaves the choice of classes to the other records, and bins of {listed(spec.automatic)} are found "
            "from all of them, with their secrets; write bins as numbers in [recode], such as [30, 50]"
        )


def classes_agree(spec: ReleaseSpec) -> Iterator[str]:
    """A file of classes where nothing is drawn by classes, and classes that cannot be chosen."""
    named = "classes" if spec.groups.classes is not None else "known" if spec.groups.at_once else None
    if named is not None and (spec.mechanism.name not in (INVARIANT, "auto") or spec.mechanism.reads_secret):
        yield (
            f"[groups] {named} is about records that are drawn by their class, and mechanism {spec.mechanism.name} "
            f'draws values; write mechanism = "{INVARIANT}", or take {named} out'
        )
    elif named is not None or (spec.groups.auto and spec.mechanism.name == INVARIANT):
        drawn = f"[groups] {named}" if named is not None else 'publish = "auto"'
        if not spec.mechanism.reads_secret and (reason := why_not_by_class(spec)) is not None:
            yield f"{drawn} asks for records that are drawn by their class, but {reason}"


def known_agrees(spec: ReleaseSpec) -> Iterator[str]:
    """Columns that observers may know, where they are not published, or no bound is for such observers."""
    known = spec.groups.known_columns
    published = tuple(column for column in spec.publish if column not in spec.secret)
    for column in known:
        if column in spec.secret or (spec.publish and column not in published):
            meant = did_you_mean(column, published)
            yield f"[groups] known names {column!r}, which is no published column but the secret's{meant}"
    if known and not FOR_KNOWN & {part.partition(":")[0].strip() for part in _parts_as_written(spec)}:
        yield (
            f"[groups] known is for bounds on observers who know columns, and {spec.guarantee.canonical} is none; "
            'write guarantee = ["lip:1.0", "srlip:1.0"], or take known out'
        )


def _parts_as_written(spec: ReleaseSpec) -> list[str]:
    return spec.guarantee.canonical.split("&")
