"""Sabotage of releases for observers of any columns: beliefs, people of values, donors, and what is said of them."""

from __future__ import annotations

from tests.sabotage.mutant import Mutant
from tests.sabotage.scenes import ANY_COLUMN, ANY_TWO

BOUND, CLASSES = "leakage", "record classes"

ANY_COLUMNS = [
    Mutant(
        "beliefs by part",
        "the bound is for observers who know how common the secret is in every part, and not in every class",
        "funnel.donors.column_sets",
        "ClassParts(names, class_of,",
        "ClassParts(classes.alphabet, np.arange(len(class_of)),",
        BOUND,
        ANY_COLUMN,
    ),
    Mutant(
        "parts in the class after theirs",
        "the people of a part are taken for those of another class",
        "funnel.donors.column_sets",
        "ClassParts(names, class_of,",
        "ClassParts(names, np.roll(class_of, 1),",
        BOUND,
        ANY_COLUMN,
    ),
    Mutant(
        "observers of one column forgotten",
        "the bound is not for observers who know the first column of a person",
        "funnel.donors.composition",
        "return cls(joint.secret, classes, tuple(cells), counts, people, parts)",
        "some = parts and [one[0][0] != cells[0][0] for one in parts.known]; parts = parts and replace(parts, "
        "people=parts.people[some], known=tuple(one for one, is_in in zip(parts.known, some) if is_in)); "
        "return cls(joint.secret, classes, tuple(cells), counts, people, parts)",
        CLASSES,
        ANY_COLUMN,
    ),
    Mutant(
        "observers of every column forgotten by the search",
        "the protocol is made for observers of the record alone",
        "funnel.solver.part_programme",
        "AnyColumn.of(joint, knowing < math.inf)",
        "AnyColumn.of(joint, False)",
        BOUND,
        ANY_COLUMN,
    ),
    Mutant(
        "donors like the record",
        "who comes to a part takes the place of somebody like them, so that a known value tells more",
        "funnel.sampling.donors",
        "counts, classes.draws_evenly)",
        "counts, False)",
        CLASSES,
        ANY_COLUMN,
    ),
    Mutant(
        "people of another value stored",
        "the internal evidence has the people of one value as those of another, and every later audit is about these",
        "funnel.release.internal_evidence",
        "parts_document(joint.parts)",
        "parts_document(__import__('dataclasses').replace(joint.parts, people=joint.parts.people[::-1]))",
        CLASSES,
        ANY_COLUMN,
    ),
    Mutant(
        "classes that are not cut",
        "the classes of the spec are released as they are, without parts, and srlip is for observers of nobody",
        "funnel.release.classified",
        "if spec.groups.at_once:",
        "if spec.groups.at_once and spec.name == '':",
        "by_event.every_set",
        ANY_COLUMN,
    ),
    Mutant(
        "pairs forgotten",
        "what is proven is for observers of one column, and the spec says two",
        "funnel.donors.composition",
        "ColumnSets.of(joint.inputs, classes.at_once)",
        "ColumnSets.of(joint.inputs, 1)",
        CLASSES,
        ANY_TWO,
    ),
    Mutant(
        "pairs of the next record",
        "the people of a pair of values are counted with the second value of another record",
        "funnel.donors.column_sets",
        "tuple(records.codes[:, list(places)].T)",
        "tuple(np.roll(records.codes[:, j], k) for k, j in enumerate(places))",
        CLASSES,
        ANY_TWO,
    ),
    Mutant(
        "classes cut for observers of one column",
        "the questions cut classes for observers of one column, and their file says so",
        "funnel.release.classified",
        "parts_by_need(joint, classes, knowing, spec.groups.at_once)",
        "parts_by_need(joint, classes, knowing, 1)",
        CLASSES,
        ANY_TWO,
    ),
    Mutant(
        "observers taken for others",
        "observers who know values of people of two classes are left out by the search",
        "funnel.guarantees.any_column",
        "several = (of_class > 0).sum(axis=1) > 1",
        "several = (of_class > 0).sum(axis=1) > 3",
        BOUND,
        ANY_TWO,
    ),
    Mutant(
        "a promise to observers of one column",
        "the report says that the bound is for observers of one column",
        "funnel.release.public_unchanged",
        "else composition.classes.at_once,",
        "else 1,",
        CLASSES,
        ANY_TWO,
    ),
    Mutant(
        "a pair of columns left out of the report",
        "what observers of one pair of columns conclude is not in the report",
        "funnel.release.public_unchanged",
        "for one in composition.concluded(protocol, guarantee.budget):",
        "for one in composition.concluded(protocol, guarantee.budget)[1:]:",
        CLASSES,
        ANY_TWO,
    ),
]
