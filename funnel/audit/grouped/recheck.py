"""Checking a published release of groups again, from its files alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from funnel.audit.check import Check, judged
from funnel.audit.drawn_numbers import check_drawn_numbers
from funnel.audit.encoding import TextTable, check_csv, check_texts_table
from funnel.audit.evidence import SIGNIFICANCE
from funnel.audit.files import canonical_difference, file_facts, list_folder, read_document
from funnel.audit.frequencies import check_order
from funnel.audit.grouped.bounds import (
    bound_complaints,
    form_complaints,
    name_complaints,
    people_complaints,
    truth_complaints,
)
from funnel.audit.grouped.draws import Cells, draw_test, path_complaints, table_complaints
from funnel.audit.grouped.estimates import Estimates
from funnel.audit.grouped.explained import (
    explained_complaints,
    purpose_complaints,
    tried_complaints,
    worth_complaints,
    worth_limits,
)
from funnel.audit.grouped.figures import channel_complaints, finding_complaints, read_channels, told_complaints
from funnel.audit.grouped.handouts import handout_complaints
from funnel.audit.grouped.law import PublishedLaw
from funnel.audit.grouped.package import check_grouped_package
from funnel.audit.grouped.probe import expected_probe
from funnel.audit.grouped.public import (
    check_public_estimates,
    check_public_frequencies,
    check_public_numbers,
    check_public_promise,
)
from funnel.audit.grouped.rules import AskedRules, row_complaints
from funnel.audit.grouped.table import table_test
from funnel.audit.handouts import HANDOUTS
from funnel.audit.history import Made, check_absent, check_kept, check_versions, judge_record
from funnel.audit.package import TABLES, Facts, check_texts, said_texts
from funnel.audit.page import check_rendered, check_report
from funnel.audit.signing import check_signature, read_signature
from funnel.audit.told import Told, check_documents, check_listing
from funnel.errors import DataError, FunnelError
from funnel.recount.grouped import follow
from funnel.recount.grouped_robust import Stated, in_population
from funnel.recount.grouped_text import SILENT, GroupedText
from funnel.release.counted_records import read_records
from funnel.release.document import Document
from funnel.release.evidence import read_spec
from funnel.release.grouped_draws import GroupedDraws, GroupedDrawsDocument
from funnel.release.grouped_findings import GroupedFindings
from funnel.release.grouped_proof import GroupedProof
from funnel.release.grouped_protocol_document import GroupedProtocolDocument
from funnel.release.grouped_report import GroupedReport
from funnel.release.layout import ReleaseFolder
from funnel.release.record import Record
from funnel.release.verdict import Verdict
from funnel.spec import ReleaseSpec

if TYPE_CHECKING:
    from funnel.joint import Joint

_NEEDED = (
    "datapackage.json",
    "protocol.json",
    "channels.parquet",
    "CITATION.cff",
    "report.html",
    "report.json",
    "data/records.parquet",
)
_POSSIBLE = {*_NEEDED, *HANDOUTS, *TABLES, "data/records.csv", "signature.json"}

T = TypeVar("T", bound=Document)


def recheck_groups(folder: ReleaseFolder, package: dict[str, Any], own: str | None, told: Told) -> list[Check]:
    """Check all of a release of groups that its files tell, in the order of `funnel.audit.recheck.recheck`.

    Parameters
    ----------
    folder : ReleaseFolder
    package : JSON object
        Its data package.
    own : str or None
        The public key of the workspace near the release.
    told : Told

    Raises
    ------
    DataError
        If a public document of the release cannot be read at all.
    """
    content = read_document(folder.protocol)
    text = GroupedText.parse(content)
    # What a reader of JSON takes for the document has to be one, to the last key.
    GroupedProtocolDocument.from_json(content, str(folder.protocol))
    signature, listing = read_signature(folder), list_folder(folder.root)
    facts = {path: file_facts(folder.root / path) for path in listing.public}
    values, parquet, table = check_texts_table(folder.data, text.texts)
    rows = None if table is None else table.rows
    checks = [
        check_listing(listing, told, _NEEDED, _POSSIBLE),
        check_signature(signature, package, facts, told.key, own if not told.fetched else None),
        check_documents(folder.root, listing),
        values,
        parquet,
    ]
    if "data/records.csv" in facts:
        why = ["the parquet file that it has to say the same as cannot be read"]
        known = table is not None
        checks.append(check_csv(folder.data, folder.csv, signature is not None) if known else judged("csv", why, ""))
    if set(TABLES) & set(facts):
        checks += check_drawn_numbers(folder, {column: text.behind(column) for column in text.columns}, package)
    promise = text.content["guarantee"]
    checks += [
        check_grouped_package(package, text, facts, rows),
        judged("handouts", handout_complaints(folder, package, facts), "what the data package and the channels make"),
        check_versions(folder, package, in_place=not told.fetched),
        check_public_promise(text),
        judged("groups", form_complaints(text), f"{len(text.stages)} groups, all of what they hold is drawn by"),
        judged("labels", name_complaints(text), "every text is the set of the values that it mixes"),
    ]
    if table is not None:
        checks.append(judged("records", _unreachable(text, table.counted), "every record is one that can be published"))
        checks.append(check_public_frequencies(folder.channels, text, table.counted))
        if package.get("funnel:privacy", {}).get("rowOrder") == "random":
            checks.append(check_order(np.array(list(table.counted.values()), dtype=np.int64), table.repeats))
    named = [promise["declared"], *([] if rows is None else [f"{rows:,}"])]
    checks.append(check_report(folder, package, named, [*promise["secret"], *text.columns]))
    if folder.numbers.name in facts:
        checks += [check_public_numbers(folder, text, package, rows), check_public_estimates(folder, text)]
        checks.append(check_rendered(folder, told.render))
    if not told.public:
        checks += _internal(folder, text, package, facts, table, told)
    return checks


def _unreachable(text: GroupedText, counted: Mapping[tuple[str, ...], int]) -> Iterator[str]:
    """Records whose texts no way through the stages has one after the other."""
    after: dict[tuple[int, tuple[str, ...], frozenset[int]], frozenset[int]] = {}
    impossible = 0
    for record, number in counted.items():
        places, at = frozenset({0}), 0
        shown = [record[j] for j in text.order]
        for k, stage in enumerate(text.stages):
            label = tuple(shown[at : at + len(stage.columns)])
            at += len(stage.columns)
            if (k, label, places) not in after:
                after[k, label, places] = frozenset(_led(text, k, label, places))
            places = after[k, label, places]
        impossible += 0 if places else number
    if impossible:
        yield f"{impossible:,} records are such that no way through the groups leads to them"


def _led(text: GroupedText, number: int, label: tuple[str, ...], places: frozenset[int]) -> Iterator[int]:
    """Classes at the next stage after a text, from some classes of this one."""
    stage = text.stages[number]
    for place in places:
        if place == SILENT:
            yield from [SILENT] if label == stage.nothing else []
            continue
        channel, following = stage.classes[place]
        for of_output, then in zip(stage.channels[channel].labels, following, strict=True):
            if of_output == label:
                yield then


@dataclass(frozen=True, eq=False)
class GroupedEvidence:
    """What is kept in ``audit/`` of a release of groups."""

    spec: ReleaseSpec
    joint: Joint
    draws: GroupedDraws
    findings: GroupedFindings
    verdict: Verdict
    record: Record

    @property
    def counts(self) -> dict[tuple[tuple[str, ...], tuple[str, ...]], int]:
        """People by secret and record."""
        secret, inputs = self.joint.secret.symbols, self.joint.inputs.symbols
        places = zip(*(axis.tolist() for axis in np.nonzero(self.joint.counts)), strict=True)
        return {(secret[s], inputs[r]): int(self.joint.counts[s, r]) for s, r in places}


def _read_evidence(folder: ReleaseFolder, text: GroupedText) -> tuple[Check, GroupedEvidence | None]:
    """Read all of ``audit/``; None with a failed check where a part is missing, damaged or open to others."""
    try:
        known = read_document(folder.hierarchies) if folder.hierarchies.exists() else None
        spec = read_spec(folder, read_document(folder.spec).decode("utf-8"), known)
        if spec.groups.is_auto and not spec.publish:
            # Which columns it means, the source said; published are these.
            spec = spec.publishing(text.columns)
        _document(GroupedDrawsDocument, folder.draws)
        joint = read_records(folder.counted, tuple(text.content["guarantee"]["secret"]))
        if joint.inputs.columns != text.columns:
            raise DataError(f"{folder.counted} is about other columns than the protocol")
        evidence = GroupedEvidence(
            spec,
            joint,
            GroupedDraws.read(folder),
            _document(GroupedFindings, folder.findings),
            _document(Verdict, folder.verdict),
            _document(Record, folder.record),
        )
    except UnicodeDecodeError:
        return judged("evidence", [f"{folder.spec} is not UTF-8; restore it from a backup"], ""), None
    except FunnelError as error:
        return judged("evidence", [str(error)], ""), None
    said = []
    if folder.audit.is_symlink():
        said.append("audit/ is a link; it has to be a folder of the release")
    elif folder.audit.stat().st_mode & 0o077:
        said.append("others may enter audit/; take their permission away with chmod 700")
    return judged("evidence", said, "audit/ is whole, and only its owner may read it"), evidence


def _document(kind: type[T], path: Any) -> T:
    content = read_document(path)
    if (differs := canonical_difference(content, path)) is not None:
        raise DataError(differs)
    return kind.from_json(content, str(path))


def _internal(
    folder: ReleaseFolder,
    text: GroupedText,
    package: dict[str, Any],
    facts: Facts,
    table: TextTable | None,
    told: Told,
) -> list[Check]:
    name, version = str(package.get("name")), str(package.get("version"))
    if (absent := check_absent(folder, name, told.fetched)) is not None:
        return [absent]
    whole, evidence = _read_evidence(folder, text)
    kept = check_kept(folder, name, version, None if evidence is None else evidence.record)
    if evidence is None:
        return [whole, kept]
    checks = [whole, *_on_counts(folder, text, evidence, table)]
    made = Made(text.digest, text.columns, text.guarantee, evidence.spec, evidence.joint.n)
    return [
        *checks,
        check_texts(package, said_texts(evidence.spec)),
        judge_record(evidence.record, evidence.verdict.files, made, package, facts),
        kept,
    ]


def _on_counts(
    folder: ReleaseFolder, text: GroupedText, evidence: GroupedEvidence, table: TextTable | None
) -> list[Check]:
    """All that can be told with the counts of records and of draws."""
    declared, counts = text.guarantee, evidence.counts
    try:
        followed = follow(text, declared, counts)
        if followed.promise.laws is not None:
            proof = _document(GroupedProof, folder.proof)
            followed = in_population(followed, counts, Stated.of(proof.model_dump(), evidence.spec.name))
        law = PublishedLaw.following(followed)
    except FunnelError as error:
        return [judged("leakage", [f"the level cannot be computed: {error}"], "")]
    followed, counted = law.followed, {} if table is None else table.counted
    budget = followed.promise.budget
    released = followed.level_of(counted)
    shown = (
        f"level {followed.outputs.nats:.12g} nats over {followed.decided:,} prefixes and outputs, "
        f"{released.nats:.12g} over {released.records:,} published records, declared {declared}, in whole numbers"
    )
    beyond = [
        *bound_complaints("a prefix and output", followed.outputs, budget),
        *bound_complaints("a record that could be published", followed.records, budget),
        *bound_complaints("a published record", released, budget),
    ]
    if released.missing:
        beyond.append(f"{released.missing:,} published records are such that nobody can be published as them")
    cells = Cells(evidence.draws.secret.symbols, evidence.draws.cells, evidence.draws.records)
    dropped = evidence.findings.dropped
    found = finding_complaints(
        evidence.findings.content(),
        law,
        declared,
        evidence.joint.n,
        dropped,
        len(counted),
        evidence.spec.groups.people,
    )
    checks = [
        judged("leakage", beyond, shown),
        judged("true values", truth_complaints(law), "everybody's own value is in all that they can be published as"),
        judged(
            "people",
            people_complaints(followed, evidence.spec.groups.people),
            f"channels are made for {text.people:,} people or more",
        ),
        judged("law", told_complaints(text.content, law), "utility, plain shares and what is kept follow from it"),
        judged("channels", channel_complaints(folder.channels, law, text.people), "those of the weights, rounded"),
        judged("findings", found, "what was found then is found again"),
        judged("purpose", _purpose_complaints(folder, text, evidence, law), f"made by {evidence.spec.utility}"),
        judged("verdict", _verdict_complaints(evidence), f"{len(evidence.verdict.results)} expectations, all met"),
    ]
    if (asked := _asked_rules(folder, evidence)) is not None:
        said = "no weights are about people whom the rules of disclosure control keep out"
        checks.append(judged("rules", row_complaints(followed, asked), said))
    if table is not None:
        said = f"{table.rows:,} released, {evidence.joint.n:,} in the source"
        same = [] if table.rows == evidence.joint.n else [said]
        checks.append(judged("counts", [*same, *table_complaints(text, cells, counted)], "as drawn"))
        checks.append(_check_table(law, counted))
    return [*checks, *_check_draws(text, cells, evidence, counts)]


def _purpose_complaints(
    folder: ReleaseFolder, text: GroupedText, evidence: GroupedEvidence, law: PublishedLaw
) -> Iterator[str]:
    """Whether the release was made for what its spec asks for, and tells of that what follows."""
    found = evidence.findings.content()
    yield from purpose_complaints(found, evidence.spec.utility)
    yield from explained_complaints(found["explained"], law, None, rounded=False)
    yield from tried_complaints(found, law.followed.promise.laws is not None)
    try:
        told = GroupedReport.read(folder.numbers).content()
    except FunnelError:
        # Of a report that cannot be read its own check tells.
        return
    yield from purpose_complaints(told, evidence.spec.utility)
    yield from explained_complaints(told["explained"], law, None, rounded=True)
    stated = [{key: one[key] for key in ("column", "values", "numbers")} for one in found["explained"]]
    if stated != [{key: one[key] for key in ("column", "values", "numbers")} for one in told["explained"]]:
        yield "the report tells other numbers of values than were found"
    if found["worth"] is not None:
        limits = worth_limits(Estimates(read_channels(folder.channels), text, evidence.joint.n))
        yield from worth_complaints(found["worth"], limits)


def _asked_rules(folder: ReleaseFolder, evidence: GroupedEvidence) -> AskedRules | None:
    """The rules that channels have to keep: those of the spec, where the report says that they were held against any.

    Releases from before channels were held against rules do not say so. Of a report that cannot be read its own check
    tells.
    """
    try:
        stated = GroupedReport.read(folder.numbers).rules
    except FunnelError:
        return None
    if stated is None:
        return None
    said = evidence.spec.disclosure
    settings = evidence.spec.frequencies
    least = max(said.minimum_cell, settings.threshold if settings.protection == "threshold" else 1)
    return AskedRules(least, Fraction(str(said.dominance)), Fraction(str(said.unique_share)))


def _check_table(law: PublishedLaw, counted: Mapping[tuple[str, ...], int]) -> Check:
    found = table_test(law, counted)
    said = f"p = {found.p_value:.3g} over {found.labels:,} texts, pairs of texts and records"
    return judged("rows", [said] if found.p_value < SIGNIFICANCE else [], said)


def _check_draws(
    text: GroupedText, cells: Cells, evidence: GroupedEvidence, counts: Mapping[Any, int]
) -> Iterator[Check]:
    paths = list(path_complaints(text, cells, counts))
    if evidence.draws.probe != expected_probe(text):
        paths.append("the sampler does not give way from one output to the next where the weights say")
    yield judged("drawing", paths, "every record drew at each stage in the class that it was led to")
    if paths:
        return
    by_weights, by_secret = draw_test(text, cells), draw_test(text, cells, by_secret=True)
    p_value = min(1.0, 2 * by_weights.p_value, 2 * by_secret.p_value)
    said = f"p = {p_value:.3g} over {by_weights.tests + by_secret.tests:,} tests, stage by stage"
    yield judged("draws", [] if p_value >= SIGNIFICANCE else [said], said)


def _verdict_complaints(evidence: GroupedEvidence) -> Iterator[str]:
    verdict = evidence.verdict
    if not verdict.passed:
        yield f"validation refused it: {verdict.sentence()}"
    if not verdict.results:
        yield "nothing was judged"
