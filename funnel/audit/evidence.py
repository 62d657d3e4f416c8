"""The internal evidence of a release: whether it is whole and private, and what it says of leakage and draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from funnel.audit.arithmetic import guarantee_of
from funnel.audit.check import Found, Result, check, judged
from funnel.audit.files import canonical_difference, list_folder, read_document, read_text
from funnel.drawn import DrawnCounts
from funnel.errors import DataError, FunnelError
from funnel.findings.consistency import SHARES, draw_consistency
from funnel.joint import Joint
from funnel.recount.found_histories import is_level
from funnel.recount.plain_distributions import Distributions
from funnel.recount.protocol_figures import figure_complaints
from funnel.recount.source import Recount
from funnel.release.document import Document
from funnel.release.documents import DrawsDocument, JointDocument, PartsDocument, drawn_pairs
from funnel.release.drawing_document import DrawingDocument
from funnel.release.findings import FindingsDocument
from funnel.release.internal_evidence import read_spec
from funnel.release.internal_report import InternalReport
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.record import Record
from funnel.release.verdict import Verdict
from funnel.spec import ReleaseSpec

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext

T = TypeVar("T", bound=Document)

# Before a publication this is the gate's test of the draws, with its share of the false alarms.
SIGNIFICANCE = SHARES["draws"]
_NAMES = "spec.toml hierarchies first-rows joint parts draws words drawing findings verdict report.html report release"
_FILES = frozenset(name if "." in name else f"{name}.json" for name in _NAMES.split())
# Of figures that several sums in floating point lead to.
_RELATIVE = 1e-9


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is kept as internal evidence."""

    spec: ReleaseSpec
    joint: Joint
    pairs: DrawnCounts
    findings: FindingsDocument
    verdict: Verdict | None
    record: Record | None
    drawing: DrawingDocument | None = None
    first_rows: Joint | None = None

    @property
    def is_followed(self) -> bool:
        """Whether rows were drawn by what was published about the same people before."""
        history = None if self.record is None else self.record.history
        return history is not None and history.people == "same"


def read_evidence(
    folder: ReleaseFolder, document: ProtocolDocument, is_judged: bool = True
) -> tuple[Result, Evidence | None]:
    """Read all internal evidence; None with a failed check where a part is missing, damaged or open to others.

    A version that is not judged yet has no verdict and no record.
    """
    try:
        known = read_document(folder.hierarchies) if folder.hierarchies.exists() else None
        spec = read_spec(folder, read_text(folder.spec), known)
        joint = _document(JointDocument, folder.joint).joint
        if folder.parts.exists():
            joint = replace(joint, parts=_document(PartsDocument, folder.parts).parts)
        _document(DrawsDocument, folder.draws)
        drawing = _document(DrawingDocument, folder.drawing) if folder.drawing.exists() else None
        drawn_with = document.protocol if drawing is None else drawing.protocol
        evidence = Evidence(
            spec,
            joint,
            drawn_pairs(DrawsDocument.from_json(read_document(folder.draws), str(folder.draws)), drawn_with),
            _document(FindingsDocument, folder.findings),
            _document(Verdict, folder.verdict) if is_judged else None,
            _document(Record, folder.record) if is_judged else None,
            drawing,
            _document(JointDocument, folder.first_rows).joint if folder.first_rows.exists() else None,
        )
    except FunnelError as error:
        return judged("evidence", [str(error)], ""), None
    complaints = _open(folder.internal)
    return judged("evidence", complaints, "the internal evidence is whole, and only its owner may read it"), evidence


def _open(internal: Path) -> Iterator[str]:
    if internal.is_symlink():
        yield f"{internal} is a link; it has to be a folder"
        return
    if internal.stat().st_mode & 0o077:
        yield f"others may enter {internal}; take their permission away with chmod 700"
    listing = list_folder(internal)
    for path in sorted({*listing.files, *listing.strange} - _FILES):
        yield f"{path} is no file of the internal evidence"


def _document(kind: type[T], path: Path) -> T:
    content = read_document(path)
    if (differs := canonical_difference(content, path)) is not None:
        raise DataError(differs)
    return kind.from_json(content, str(path))


@check(
    "leakage", "internal exact", "The bound holds for the counts of the source, in exact arithmetic.", contained=True
)
@check(
    "leakage",
    "noise",
    "The bound holds exactly for the public counts and, where it covers noise, for all counts within the noise.",
    contained=True,
)
def check_leakage(known: AuditContext) -> Found:
    """The bound holds under the counts, and no other level is public than the bound."""
    level, counted, document = known.level, known.counts, known.document
    said = f"level {level.nats:.12g} nats, declared {document.guarantee.declared}, in exact arithmetic"
    budget = guarantee_of(document).budget
    # Within the bound it is told as the bound, or zero of a protocol that says nothing: how far below it is would tell
    # those who know everybody else what the last one has.
    public = (budget, 0.0) if level.nats == 0 else (budget,)
    if not level.holds:
        yield said
    elif document.guarantee.level not in public:
        yield f"the public level {document.guarantee.level:.12g} is not the bound"
    if document.guarantee.secret != counted.secret_columns:
        yield "the secret is not that of the joint distribution"
    return said


def counts_of(joint: Joint) -> dict[tuple[tuple[str, ...], tuple[str, ...]], int]:
    """Stored counts by secret and input, of the cells that are not empty."""
    return {
        (s, x): count
        for s, row in zip(joint.secret.symbols, joint.counts.tolist(), strict=True)
        for x, count in zip(joint.inputs.symbols, row, strict=True)
        if count
    }


def stored_counts(path: Path) -> dict[tuple[tuple[str, ...], tuple[str, ...]], int]:
    """`counts_of` what a file of internal evidence has."""
    return counts_of(JointDocument.read(path).joint)


def counted_of(joint: Joint) -> Recount:
    """Stored counts as a second computation has them."""
    secret, inputs, counts = joint.secret, joint.inputs, counts_of(joint)
    found = Recount(secret.columns, inputs.columns, secret.symbols, inputs.symbols, counts, int(joint.n), 0, "")
    if (parts := joint.parts) is None:
        return found
    known = zip(parts.known, parts.people.tolist(), strict=True)
    having = {one: dict(zip(inputs.symbols, people, strict=True)) for one, people in known}
    if parts.held_out is None:
        return replace(found, having=having)
    names = [symbol[-1] for symbol in parts.classes.symbols]
    rows = zip(secret.symbols, parts.held_out.tolist(), strict=True)
    return replace(found, having=having, held_out={s: dict(zip(names, row, strict=True)) for s, row in rows})


def _distributions(known: AuditContext, counted: Recount) -> Distributions:
    """The distribution of counts under the weights, over what is published of a record; FunnelError without one."""
    document = known.document
    if document.prior.columns == counted.secret_columns + counted.published_columns:
        counted = counted.with_secret()
    told = document.utility.explained
    numbers = (
        None
        if told is None
        else {
            symbol: None if number is None else Fraction(number)
            for symbol, number in zip(document.prior.symbols, told.numbers, strict=True)
        }
    )
    return Distributions(counted, known.released, numbers)


@check("distribution", "internal exact", contained=True)
@check("distribution", "noise", contained=True)
def check_figures(known: AuditContext) -> Found:
    """Prior, posteriors, utility and marginal of the protocol follow from these counts."""
    document, distributions = known.document, _distributions(known, known.counts)
    counted = distributions.recount
    if document.prior.columns != counted.published_columns or document.prior.symbols != counted.inputs:
        yield "the published values are not those of the counts"
        return ""
    for part, where, why in figure_complaints(document.content(), distributions):
        yield f"{part}: {where} {why}"
    return "prior, posterior, utility and marginal follow from it"


@check("findings", "internal", contained=True)
def check_findings(known: AuditContext) -> Found:
    """A second computation finds the same figures about the bound."""
    evidence, found = known.evidence, known.evidence.findings
    # Under the exact counts, and over all that noise leaves possible where there is noise.
    level, proven = known.counted_level, known.level if known.public else None
    if found.guarantee != known.document.guarantee.declared:
        yield "they are about another guarantee"
    # Under noise it is promised for the public counts, or for all that these leave possible but for a probability of
    # beta: whether it holds for the true ones as well is no part of that.
    if proven is None and not found.holds:
        yield "they say that the guarantee does not hold"
    # Those who are forgotten draw from what depends on nothing, as records outside the alphabet do; so do rare rows.
    unread = 0 if found.history is None else found.history.forgotten + (found.history.rare or 0)
    if (found.rows, found.outside + unread) != (evidence.pairs.n, evidence.pairs.outside):
        yield "their number of records is not that of the draw"
    if not is_level(found.level, level.nats, close=_RELATIVE):
        yield "their level is not the one that is found now"
    # Where a release is made that level is bounded from above; here it is exact.
    told = found.proven_level
    if told is not None if proven is None else not is_level(told, proven.nats, proven.nats * 1.01, _RELATIVE):
        yield "their level over all counts that the noise leaves possible is not the one that is found now"
    return "what was found then is found again"


# What the internal report tells as it was found.
_REPORTED = [
    "utility",
    "entropy",
    "share",
    "secret_information",
    "guess_accuracy",
    "prior_guess_accuracy",
    "rows",
    "outside",
]


@check("internal report", "internal record", contained=True)
def check_internal_report(known: AuditContext) -> Found:
    """The internal report has the figures that were found, and what one record tells follows from the counts."""
    folder, counted = known.folder, counted_of(known.evidence.joint)
    told = InternalReport.from_json(read_document(folder.internal_numbers), str(folder.internal_numbers))
    for name in _REPORTED:
        if getattr(told.figures, name) != getattr(known.evidence.findings, name):
            yield f"its {name} is not that of the findings"
    said = (told.alone.before, told.alone.after, told.alone.information)
    if counted.having or told.alone.reason is not None:
        return "its figures are those that were found"
    found = _one_record(Distributions(counted, known.released))
    for name, one, other in zip(("guess before", "guess after", "information"), said, found, strict=True):
        if one is None or abs(one - other) > _RELATIVE * max(1.0, other):
            yield f"the {name} of who sees one record does not follow from the counts"
    return "its figures are those that were found, and what one record tells follows from the counts"


def _one_record(distributions: Distributions) -> tuple[float, float, float]:
    """How often the best guess of the secret is right, without a record and with one, and what it tells (nats)."""
    before = max(distributions.secrets.values()) / distributions.recount.rows
    right = sum(map(max, zip(*distributions.masses.values(), strict=True)))
    return before, right / distributions.whole, distributions.secret_information


@check("verdict", "internal record")
def check_verdict(known: AuditContext) -> Found:
    """The version was published because all that was expected of it is met."""
    verdict = known.verdict
    if not verdict.passed:
        yield f"validation refused it: {verdict.sentence()}"
    if not verdict.results:
        yield "nothing was judged"
    return f"{len(verdict.results)} expectations, all met"


@check("records", "internal table")
def check_records(known: AuditContext) -> Found:
    """As many records are released as were counted."""
    evidence, table = known.evidence, known.table
    said = f"{table.rows:,} released, {evidence.joint.n:,} in the source"
    if table.rows != evidence.joint.n:
        yield said
    return said


@check("counts", "internal table")
def check_counts(known: AuditContext) -> Found:
    """Every published value is released as often as it was drawn."""
    if not np.array_equal(known.evidence.pairs.by_output, known.table.counts):
        yield "the released counts are not those that were drawn"
    return "as drawn"


@check("drawing", "internal record drawing")
def check_drawing(known: AuditContext) -> Found:
    """What rows were drawn with, given each history, fits the records.

    Whether it is what the register says of all histories is another check, as is the channel that it comes to.
    """
    evidence, document = known.evidence, known.document
    drawing, record = evidence.drawing, evidence.record
    if drawing is None or record is None or not evidence.is_followed:
        yield "rows are drawn given histories, or they are not: the record and the files do not say the same"
        return ""
    if record.history is not None and record.history.drawing != drawing.digest:
        yield "it is not the one that the record names"
    if drawing.outputs != document.outputs:
        yield "it has other outputs than the published protocol"
    found, joint = Counter[tuple[tuple[str, ...], tuple[str, ...]]](), evidence.joint
    for secret, counts in zip(drawing.secret.symbols, drawing.counts, strict=True):
        for symbol, count in zip(drawing.drawers.symbols, counts, strict=True):
            found[secret, symbol[-len(joint.inputs.columns) :]] += count
    # Combinations that nobody has are in the joint distribution where noise hides that, and draw nothing.
    cells = {(s, x) for s in joint.secret.symbols for x in joint.inputs.symbols}
    if not found.keys() <= cells or +found != Counter(counts_of(joint)):
        yield "its records are not those of the joint distribution"
    drawn = dict(zip(drawing.drawers.symbols, map(sum, zip(*drawing.counts, strict=True)), strict=True))
    expected = [drawn.pop(symbol, 0) for symbol in drawing.inputs.symbols]
    if [*expected, sum(drawn.values())] != evidence.pairs.by_input.tolist():
        yield "its records did not draw once each"
    return "by the history of every record"


@check("draws", "internal")
def check_draws(known: AuditContext) -> Found:
    """The records can have been drawn by the protocol, input by input."""
    evidence, document = known.evidence, known.document
    consistency = draw_consistency(
        evidence.pairs, document.protocol if evidence.drawing is None else evidence.drawing.protocol
    )
    said = f"p = {consistency.p_value:.3g} over {consistency.tests} tests, input by input"
    if evidence.drawing is None:
        distributions = _distributions(known, counted_of(evidence.joint))
        people: Counter[tuple[str, ...]] = Counter()
        for (s, x), count in distributions.recount.counts.items():
            people[distributions.read(s, x)] += count
        read = [people[symbol] for symbol in document.inputs.symbols]
        # The last ones have none of the symbols that the protocol reads.
        if evidence.pairs.by_input.tolist() != [*read, distributions.outside]:
            yield "the records of the joint distribution did not draw once each"
    if not consistency.p_value >= SIGNIFICANCE:
        yield said
    return said
