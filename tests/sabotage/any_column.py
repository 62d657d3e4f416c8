"""Sabotage of releases for observers of any one column: beliefs, people of values, donors, and what is said of them."""

from __future__ import annotations

from tests.sabotage.mutant import Mutant
from tests.sabotage.scenes import ANY_COLUMN

BOUND, CLASSES = "leakage", "record classes"

ANY_COLUMNS = [
    Mutant(
        "beliefs by part",
        "the bound is for observers who know how common the secret is in every part, and not in every class",
        "funnel.donors.composition",
        "ClassParts(names, class_of,",
        "ClassParts(self.classes.alphabet, np.arange(len(class_of)),",
        BOUND,
        ANY_COLUMN,
    ),
    Mutant(
        "parts in the class after theirs",
        "the people of a part are taken for those of another class",
        "funnel.donors.composition",
        "ClassParts(names, class_of,",
        "ClassParts(names, np.roll(class_of, 1),",
        BOUND,
        ANY_COLUMN,
    ),
    Mutant(
        "observers of one column forgotten",
        "the bound is not for observers who know the first column of a person",
        "funnel.donors.composition",
        "return replace(counted, parts=self.parts)",
        "some = [one[0] != self.cells[0][0] for one in self.cells]; parts = self.parts; return replace(counted, "
        "parts=replace(parts, people=parts.people[some], known=tuple(one for one, is_in in zip(parts.known, some) "
        "if is_in)))",
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
        "PartsDocument.like(joint.parts)",
        "PartsDocument.like(__import__('dataclasses').replace(joint.parts, known=joint.parts.known[::-1]))",
        CLASSES,
        ANY_COLUMN,
    ),
    Mutant(
        "classes that are not cut",
        "the classes of the spec are released as they are, without parts, and srlip is for observers of nobody",
        "funnel.release.classified",
        "if spec.groups.single:",
        "if spec.groups.single and spec.name == '':",
        "by_event.every_set",
        ANY_COLUMN,
    ),
]
