"""Classified: the classes of records of a spec, grown from the records or given in a file, and the counts by them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from funnel.disclosure import Disclosure
from funnel.disclosure.rule_texts import breaches_sentence
from funnel.disclosure.threshold import class_rules
from funnel.donors.composition import Composition
from funnel.donors.growing import grown
from funnel.donors.parts import parts_by_need
from funnel.donors.record_classes import RecordClasses
from funnel.errors import DataError, OutputError, SpecError
from funnel.frequencies.widening import widened
from funnel.guarantees import parse_guarantee
from funnel.joint import Joint
from funnel.progress import Progress
from funnel.readers.formats import open_source
from funnel.release.classes_document import ClassesDocument, GrownFrom, classes_document
from funnel.release.files import write_whole
from funnel.settings.guarantee import GuaranteeSettings
from funnel.solver.part_budgets import budgets_of
from funnel.source.coding import Codings
from funnel.source.columns import resolved_columns
from funnel.source.counting import count_joint, recoded
from funnel.spec import ReleaseSpec
from funnel.storage import local_path
from funnel.wording import listed, toml_text


@dataclass(frozen=True, eq=False)
class CountedClasses:
    """Classes with what their records are like, and the exact counts (c, k) of the secret and of these."""

    composition: Composition
    joint: Joint


def classify_records(
    spec: ReleaseSpec,
    joint: Joint,
    codings: Codings,
    source_sha256: str | None,
    progress: Progress,
    kept: RecordClasses | None = None,
    choosing: Joint | None = None,
) -> CountedClasses:
    """The classes that records are counted and drawn by: those of the file that the spec names, or grown ones.

    Parameters
    ----------
    spec : ReleaseSpec
    joint : Joint
        Counts (c, a) of the secret and of whole records.
    codings : Codings
        Of the same columns.
    source_sha256 : str or None
        Digest of the source, which must not be the one that a file was made from.
    progress : callable
    kept : RecordClasses, optional
        The classes of earlier versions about the same people, which are those of this one.
    choosing : Joint, optional
        Counts of the records by which classes are chosen, where others are held out.

    Raises
    ------
    SpecError
        If the spec asks for what classes cannot be chosen for, or for a file that was made from the same source.
    DataError
        If the records have one class only, the file cannot be read, is about other columns or values, has a class that
        no record has, or its classes are too small for the threshold.
    """
    if (reason := spec.not_by_class) is not None:
        raise SpecError(f"{len(joint.inputs):,} combinations of published values are drawn by classes, but {reason}")
    named = spec.groups.classes
    if kept is not None:
        named = "the first version about these people"
        classes = _fitting(kept, joint, codings.labels, named)
    elif named is None:
        by = joint if choosing is None else choosing
        classes = grown(by, spec.groups.min_records, class_rules(spec), spec.groups.known_columns, progress)
        if spec.groups.at_once:
            knowing = budgets_of(parse_guarantee(spec.guarantee.canonical)).knowing
            classes = parts_by_need(joint, classes, knowing, spec.groups.at_once)
    else:
        given = ClassesDocument.read(spec.resolve(named))
        if given.source is not None and given.source.sha256 == source_sha256:
            raise SpecError(
                f"[groups] classes: {spec.groups.classes} was made from this very source, and its questions are to be "
                "those of other people; make it from another source with funnel classes"
            )
        if given.known != (known := spec.groups.known_columns):
            raise SpecError(
                f"[groups] known names {listed(known) or 'no column'}, and {spec.groups.classes} was made "
                f"for {listed(given.known) or 'none'}; write known = [{', '.join(map(toml_text, given.known))}] in "
                "[groups], or make the file again with funnel classes"
            )
        classes = _fitting(given.classes, joint, codings.labels, str(spec.groups.classes))
    composition = Composition.of(joint, classes)
    if choosing is not None:
        composition, named = composition.held_out_from(choosing), "the records that are not held out"
    counted = composition.joint
    if spec.frequencies.kind.is_noisy:
        # Which secrets occur in which class is a fact about people; which there may be is not.
        counted = widened(counted, {column: codings[column].labels for column in spec.secret}, counted.inputs)
    remedy = "make the file with a larger min_records in [groups], or from records that are more like these"
    if choosing is not None:
        remedy = "write a larger min_records in [groups], or a smaller held_out"
    # Whoever follows another version comes to no class that no record is of.
    if kept is not None:
        remedy = "publish more records in this version, or begin with a larger min_records and a new register"
    elif empty := int((counted.counts.sum(axis=0) == 0).sum()):
        raise DataError(
            f"no record is of {empty:,} of the {len(classes.names):,} classes of {named}, and a record "
            f"that comes to a class takes the place of a donor there; {remedy}"
        )
    if named is not None and spec.frequencies.kind.groups_values:
        # Values are grouped for a threshold; given classes are not.
        found = Disclosure(counted.by_class, class_rules(spec))
        if not found.passes:
            raise DataError(
                f"the classes of {named} break {listed(found.broken)} of [disclosure] under the "
                f"threshold: {breaches_sentence(found)}; {remedy}"
            )
    return CountedClasses(composition, counted)


def _fitting(classes: RecordClasses, joint: Joint, labels: Mapping[str, Sequence[str]], name: str) -> RecordClasses:
    """These classes, if they are about the columns of a joint, and ask for some of their values."""
    if sorted(classes.columns) != sorted(joint.inputs.columns):
        raise DataError(
            f"the classes of {name} are about {', '.join(classes.columns)}, and published are "
            f"{', '.join(joint.inputs.columns)}; publish the same columns, or make a file for these with funnel classes"
        )
    for column in classes.columns:
        asked = {
            term.values[term.columns.index(column)]
            for scale in classes.scales
            for term in scale.terms
            if column in term.columns
        }
        if asked and not asked & {*labels[column]}:
            raise DataError(
                f"the classes of {name} have points for values of {column!r}, and none of them is one here; take the "
                "recoding of the spec that they were made by, and list its values in [categories] under noise"
            )
    return replace(classes, columns=joint.inputs.columns)


def make_classes(spec: ReleaseSpec, source: str, progress: Progress) -> ClassesDocument:
    """Questions for the releases of a spec, from records of other people.

    Parameters
    ----------
    spec : ReleaseSpec
        Its columns, recoding, [groups] and [disclosure] count, and not its guarantee. Counts are taken as they are,
        also where noise is to protect those of its own source.
    source : str
        Of the other people: as ``path`` in [source]; a relative path starts at the working folder.
    progress : callable

    Raises
    ------
    DataError
        If the source does not fit the spec, or its records have one class only.
    """
    plain = spec.frequencies
    if plain.kind.is_noisy:
        plain = plain.model_copy(update={"protection": "none"})
    place = local_path(source)
    spec = spec.model_copy(
        update={
            "source": spec.source.model_copy(update={"path": source if place is None else str(Path(place).resolve())}),
            "groups": spec.groups.model_copy(update={"classes": None}),
            "frequencies": plain,
            # Any guarantee that classes can be grown under: questions are the same for all.
            "guarantee": GuaranteeSettings.model_validate("lip:1.0"),
        }
    )
    spec = resolved_columns(spec)
    opened = open_source(spec)
    codings = recoded(spec, opened, progress)
    joint = count_joint(spec, progress, opened, codings)
    return classes_document(
        grown(joint, spec.groups.min_records, class_rules(spec), spec.groups.known_columns, progress),
        GrownFrom(sha256=opened.digest(), records=joint.n),
        "different",
    )


def write_classes(spec: ReleaseSpec, source: str, output: Path | None, force: bool, progress: Progress) -> Path:
    """Write such questions into a file, by default the one that [groups] classes names; the file.

    Raises
    ------
    SpecError
        As `make_classes`; and if no file is named, or there is one already.
    DataError
        As `make_classes`.
    OutputError
        If the file cannot be written.
    """
    if output is None and spec.groups.classes is None:
        raise SpecError('no file is named; write classes = "classes.json" in [groups], or name one with --output')
    file = spec.resolve(str(spec.groups.classes)) if output is None else output
    if not force and os.path.lexists(file):
        raise SpecError(f"there is a file {file} already; name another with --output, or write over it with --force")
    found = make_classes(spec, source, progress)
    try:
        write_whole(file, found.to_bytes())
    except OSError as error:
        raise OutputError(f"{file} cannot be written: {error.strerror or type(error).__name__}") from error
    return file
