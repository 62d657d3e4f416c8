"""Released columns: what the columns of a released table may hold, and which output of the protocol each record is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from funnel.alphabet import SEPARATOR, Alphabet
from funnel.audit.check import Found, check
from funnel.audit.files import read_document
from funnel.audit.package import fields_of
from funnel.errors import DataError
from funnel.guarantees import parse_guarantee
from funnel.recount.classes import PlainClasses
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import ProtocolDocument

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext


@dataclass(frozen=True, eq=False)
class ReleasedColumns:
    """The columns of a released table.

    Attributes
    ----------
    texts : mapping of column to sequence of str
        All that each may hold, in the order of the table.
    outputs : Alphabet
        Of the protocol.
    classes : PlainClasses or None
        Where whole records are released, and the protocol is about their classes.
    """

    texts: Mapping[str, Sequence[str]]
    outputs: Alphabet
    classes: PlainClasses | None = None

    @classmethod
    def of(cls, folder: ReleaseFolder, document: ProtocolDocument, package: Mapping[str, Any]) -> Self:
        """The columns of a release: those of its protocol, and of whole records those that its package names.

        Raises
        ------
        DataError
            If the document of classes cannot be read.
        """
        drawn = cls.of_outputs(document.outputs.alphabet())
        if not folder.classes.is_file():
            return drawn
        classes = PlainClasses.parse(read_document(folder.classes))
        stated = stated_categories(package)
        whole = {column: stated.get(column, []) for column in classes.columns}
        secret = {column: of for column, of in drawn.texts.items() if column not in (*classes.columns, classes.column)}
        return cls({**secret, **whole, classes.column: list(classes.names)}, drawn.outputs, classes)

    @classmethod
    def of_outputs(cls, outputs: Alphabet) -> Self:
        """The columns of a table whose records are outputs."""
        columns = enumerate(outputs.columns)
        return cls({name: list(dict.fromkeys(symbol[j] for symbol in outputs.symbols)) for j, name in columns}, outputs)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns, in the order of the table."""
        return tuple(self.texts)

    @property
    def at_once(self) -> int:
        """How many columns of a whole record observers may know at once, whichever they are."""
        return 0 if self.classes is None else self.classes.at_once

    @cached_property
    def _known(self) -> dict[tuple[str, ...], int]:
        return {symbol: y for y, symbol in enumerate(self.outputs.symbols)}

    def output(self, record: tuple[str, ...]) -> int | None:
        """The number of the output that a released record is; None if it is none, or says another class than its."""
        if self.classes is None:
            return self._known.get(record)
        width = len(record) - 1 - len(self.classes.columns)
        try:
            right = self.classes.of(record[width:-1]) == record[-1]
        except DataError:
            return None
        known = self.classes.values_of_known[record[-1]]
        return self._known.get((*record[:width], *known, record[-1])) if right else None


@check("classes", "classes")
def check_classes(known: AuditContext) -> Found:
    """The classes of whole records are those of the protocol."""
    classes, document = known.columns.classes, known.document
    if classes is None:
        return None
    symbols = document.inputs.symbols
    if tuple(dict.fromkeys(symbol[-1] for symbol in symbols)) != classes.names:
        yield "its names are not the inputs of protocol.json"
    if document.inputs.columns[-1 - len(classes.known) :] != (*classes.known, classes.column):
        yield "it is about other columns than protocol.json"
    elif any(symbol[-1 - len(classes.known) : -1] != classes.values_of_known.get(symbol[-1]) for symbol in symbols):
        yield "its classes have other values of known columns than in protocol.json"
    if classes.has_parts != (classes.at_once > 0):
        yield f"it is for observers of {classes.at_once} columns at once, which its parts of classes are not"
    asked = {name for scale in classes.scales for term in scale.terms for name in term.columns}
    if not asked <= {*classes.columns} or {*classes.columns} & {*document.guarantee.secret}:
        yield "its points are for columns that are not published, or secret"
    noisy = document.content()["frequencies"]["protection"] == "noise"
    of_population = parse_guarantee(document.guarantee.declared).significance is not None
    # Those of the same people who are held out are a sample of the population for the classes that the others choose.
    if not classes.are_given and (noisy or (of_population and not classes.has_held_out)):
        yield "its questions are chosen by the same people, under noise or for a population"
    if classes.source is not None:
        yield "it has the digest of a source, which tells of the people in it"
    if classes.has_held_out and not (of_population and classes.has_parts):
        yield "its questions are chosen by a part of the people, though no bound for a population needs that"
    if classes.people not in ("same", "different", "part"):
        yield "it does not say whose counts its questions are chosen by"
    history = known.report.figures.history
    # Those of a first version stay: a later one may have no record with a value any more.
    is_first = history is None or history.versions == 1
    if not classes.are_given and is_first:
        yield from _scale_complaints(classes, known)
    values = "" if is_first else ", that points are for values that the first version had"
    return (
        f"{len(classes.names)} classes of records, by their published columns; whose counts chose their questions"
        f"{values}, and points that change the class of no published record, could not be checked"
    )


def _scale_complaints(classes: PlainClasses, known: AuditContext) -> Iterator[str]:
    """Points are for values that are published, and speak for values of the secret; of a file all may be others."""
    beliefs = known.report.beliefs
    secrets = {row.label for row in beliefs.rows}
    # Values of known columns, and parts of classes, are numbered by scales of no secret.
    numbered = bool(classes.known) or classes.has_parts
    told = [SEPARATOR.join(scale.secret) for scale in classes.scales if scale.secret or not numbered]
    if beliefs.total == len(beliefs.rows) and not {*told} <= secrets:
        yield "its scales are for values of the secret that there are not"
    terms = [term for scale in classes.scales for term in scale.terms]
    values = {pair for term in terms for pair in zip(term.columns, term.values, strict=True)}
    if any(value not in known.columns.texts.get(column, ()) for column, value in values):
        yield "its points are for values that no published record can have"


def stated_categories(package: Mapping[str, Any]) -> dict[str, list[str]]:
    """The categories of every column of the parquet file, as the package states them."""
    return {
        str(one["name"]): [str(text) for text in one["categories"]]
        for one in fields_of(package, "data/records.parquet")
        if isinstance(one, dict) and isinstance(one.get("categories"), list) and "name" in one
    }
