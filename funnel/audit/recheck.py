"""Checking a published release again, from its files alone: every check in order, and what they amount to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from funnel.audit.arithmetic import (
    check_guarantee,
    check_marginal,
    check_posterior,
    check_prior,
    check_utility,
    reads_published_only,
)
from funnel.audit.balance import check_balance
from funnel.audit.check import Check, State, judged, overall
from funnel.audit.drawn_numbers import behind_texts, check_drawn_numbers
from funnel.audit.encoding import Table, check_csv, check_table
from funnel.audit.evidence import check_evidence, check_public, read_evidence
from funnel.audit.files import file_facts, list_folder, parse_json, read_document
from funnel.audit.frequencies import check_frequencies, check_order
from funnel.audit.handouts import HANDOUTS, check_handouts
from funnel.audit.histories import check_histories
from funnel.audit.history import check_absent, check_kept, check_record, check_versions, find_workspace
from funnel.audit.labels import check_labels
from funnel.audit.package import TABLES, Facts, check_package, check_texts, said_texts
from funnel.audit.page import check_followed, check_numbers, check_rendered, check_report
from funnel.audit.protected import check_protected, mean_limits, read_frequencies
from funnel.audit.released_columns import ReleasedColumns, check_classes
from funnel.audit.signing import check_signature, read_signature
from funnel.audit.told import Coming, Told, check_documents, check_listing
from funnel.audit.unchanged import check_exact_unchanged, check_unchanged, check_whole
from funnel.errors import DataError, ReleaseRefused, SpecError
from funnel.recount.balance import is_invariant
from funnel.recount.frequencies import PublicFrequencies
from funnel.release.documents import ProtocolDocument
from funnel.release.layout import ReleaseFolder
from funnel.release.signature import public_key_of

__all__ = ["Check", "Coming", "State", "Told", "overall", "recheck", "require_audited"]

_NEEDED = (
    "datapackage.json",
    "protocol.json",
    "report.html",
    "report.json",
    "signature.json",
    "data/records.parquet",
    *HANDOUTS,
)
# What another version of pyarrow leaves open of a table that it wrote.
_OF_WRITERS = ("parquet", "drawn numbers table")
_POSSIBLE = {
    *_NEEDED,
    *TABLES,
    "data/records.csv",
    "protocol.csv",
    "estimator.csv",
}


def recheck(folder: ReleaseFolder, told: Told | None = None) -> list[Check]:
    """Check all of a release that its files tell.

    Parameters
    ----------
    folder : ReleaseFolder
    told : Told, optional
        What is known beside them.

    Returns
    -------
    list of Check
        In the order of a reader's questions: are these the files, do they say what they hold, may they be believed,
        and does the bound hold. What needs ``audit/`` could not be checked where that is not there.

    Raises
    ------
    DataError
        If a public document of the release cannot be read at all.
    """
    told, coming = told or Told(), None if told is None else told.coming
    package = _package(folder)
    workspace = _workspace(folder, str(package.get("name")), told)
    document = ProtocolDocument.from_json(read_document(folder.protocol), str(folder.protocol))
    signature = read_signature(folder)
    listing = list_folder(folder.root)
    facts = {path: file_facts(folder.root / path) for path in listing.public}
    columns = ReleasedColumns.of(folder, document, package)
    values, parquet, table = check_table(folder.data, columns)
    rows = None if table is None else table.rows
    public = read_frequencies(folder, document)
    # Public figures are of so many records: with noise, not of as many as the table has.
    told_of = rows if public is None else sum(map(sum, public.counts))
    invariant = is_invariant(document.content())
    possible = _possible(public is not None, columns.classes is not None)
    checks = [
        check_listing(listing, told, _needed(coming), possible, workspace is not None),
        *([] if _is_held(coming) else [check_signature(signature, package, facts, told.key, _own_key(workspace))]),
        check_documents(folder.root, listing),
        values,
        parquet,
    ]
    if "data/records.csv" in facts:
        why = ["the parquet file that it has to say the same as cannot be read"]
        known = table is not None
        checks.append(check_csv(folder.data, folder.csv) if known else judged("csv", why, ""))
    if set(TABLES) & set(facts):
        checks += check_drawn_numbers(folder, behind_texts(document), package)
    checks += [
        check_package(package, document, columns, facts, rows, told_of),
        check_handouts(folder, document, package, facts),
        check_versions(folder, package, in_place=not told.fetched, coming=coming),
        check_guarantee(document),
        check_labels(document),
        *check_classes(columns, document),
        *([check_balance(document, public, told_of)] if invariant and told_of else []),
        *([] if public is None else [check_protected(public, document, package), *check_public(public, document)]),
        *(_figures(document, table, public, told_of) if table is not None and told_of else ()),
        *([check_order(table.alike, table.repeats)] if table is not None and _is_shuffled(package) else ()),
        check_report(folder, package, _of_report(document, rows), document.guarantee.secret + columns.names),
    ]
    if folder.numbers.name in facts:
        checks += [check_numbers(folder, document, columns.names, package, rows), check_rendered(folder, told.render)]
        if public is not None and coming is None:
            # Of a coming version the gate computed them a second time.
            checks.append(check_followed(folder, told.figures))
    if invariant and table is not None and told_of:
        checks.append(check_unchanged(folder, document, public, table, told_of))
        checks += check_whole(folder, document, columns, told_of)
    if not told.public:
        checks += _internal(folder, document, columns, package, facts, table, told, public, workspace)
    return checks


def require_audited(folder: ReleaseFolder, told: Told) -> list[str]:
    """Make sure that a version which is about to be published, or held, passes every check of an audit.

    Parameters
    ----------
    folder : ReleaseFolder
        Where it was put together, with its verdict, its record, and its signature unless it is held.
    told : Told
        With what is coming. The public checks are among those of the internal audit, so one run is both.

    Returns
    -------
    list of str
        What could not be checked: how rows that are taken over were written, by another version of pyarrow.

    Raises
    ------
    ReleaseRefused
        If a check did not pass, or a document cannot be read.
    """
    try:
        checks = recheck(folder, told)
    except DataError as error:
        raise ReleaseRefused(f"nothing was published: its own audit failed: {error}") from error
    excused = _OF_WRITERS if told.coming is not None and told.coming.taken_over else ()
    for check in checks:
        if check.failed or (not check.passed and check.name not in excused):
            raise ReleaseRefused(f"nothing was published: its own audit failed: {check.name}: {check.detail}")
    return [f"{check.name} could not be checked: {check.detail}" for check in checks if not check.passed]


def _is_held(coming: Coming | None) -> bool:
    return coming is not None and coming.held


def _needed(coming: Coming | None) -> tuple[str, ...]:
    """Public files that a version has; one that is held is not signed yet."""
    return tuple(path for path in _NEEDED if path != "signature.json" or not _is_held(coming))


def _possible(noise: bool, by_class: bool) -> set[str]:
    """Public files that such a release may have."""
    return _POSSIBLE | ({"frequencies.json"} if noise else set()) | ({"classes.json"} if by_class else set())


def _of_report(document: ProtocolDocument, rows: int | None) -> list[str]:
    """What the report has to name, beside version and columns."""
    return [document.guarantee.declared, document.mechanism, *([] if rows is None else [f"{rows:,}"])]


def _package(folder: ReleaseFolder) -> dict[str, Any]:
    content = parse_json(read_document(folder.package), folder.package)
    if not isinstance(content, dict):
        raise DataError(f"{folder.package} is not a Data Package; the release is damaged")
    return content


def _is_shuffled(package: dict[str, Any]) -> bool:
    privacy = package.get("funnel:privacy")
    return isinstance(privacy, dict) and privacy.get("rowOrder") == "random"


def _figures(document: ProtocolDocument, table: Table, public: PublicFrequencies | None, rows: int) -> list[Check]:
    limits = None if public is None else mean_limits(public, document, table.rows)
    return [
        check_prior(document, rows),
        *([check_posterior(document)] if reads_published_only(document) else []),
        check_marginal(document, rows),
        check_utility(document, rows),
        check_frequencies(document, table.counts, limits),
    ]


def _internal(
    folder: ReleaseFolder,
    document: ProtocolDocument,
    columns: ReleasedColumns,
    package: dict[str, Any],
    facts: Facts,
    table: Table | None,
    told: Told,
    public: PublicFrequencies | None,
    workspace: Path | None,
) -> list[Check]:
    name, version = str(package.get("name")), str(package.get("version"))
    if (absent := check_absent(folder, workspace)) is not None:
        return [absent]
    whole, evidence = read_evidence(folder, document)
    record = None if evidence is None else evidence.record
    kept = check_kept(workspace, name, version, record, told.coming)
    if evidence is None:
        return [whole, kept]
    of_source = public is None and is_invariant(document.content())
    return [
        whole,
        *check_evidence(evidence, document, table, public),
        *([] if not of_source or table is None else [check_exact_unchanged(folder, document, evidence.joint, table)]),
        check_texts(package, said_texts(evidence.spec)),
        check_record(evidence, document, columns.names, package, facts),
        kept,
        *check_histories(folder, evidence, document, workspace, told),
    ]


def _workspace(folder: ReleaseFolder, name: str, told: Told) -> Path | None:
    """The workspace that the release was made in, where it is known or near."""
    if told.coming is not None:
        return told.coming.workspace
    return None if told.fetched else find_workspace(folder, name)


def _own_key(workspace: Path | None) -> str | None:
    """The public key of the workspace."""
    try:
        return None if workspace is None else public_key_of(workspace)
    except SpecError:
        return None
