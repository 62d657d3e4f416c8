"""Checking a release again, from its files alone: the table of checks, and what they amount to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from funnel.audit import arithmetic, evidence
from funnel.audit.balance import check_balance, check_exact_balance
from funnel.audit.check import Check, Result, State, judged, overall
from funnel.audit.context import AuditContext
from funnel.audit.documentation import check_documentation, check_texts, declared_texts
from funnel.audit.encoding import check_csv
from funnel.audit.frequencies import check_frequencies, check_order
from funnel.audit.histories import check_histories, check_spent
from funnel.audit.history import check_absent, check_kept, check_record, check_versions
from funnel.audit.labels import check_labels
from funnel.audit.newest import check_newest
from funnel.audit.package import check_package
from funnel.audit.page import check_followed, check_numbers, check_rendered, check_report
from funnel.audit.protected import check_noise, check_protected, mean_limits
from funnel.audit.released_columns import check_classes
from funnel.audit.signing import check_signature, read_signature
from funnel.audit.told import Coming, Told, check_documents, check_listing
from funnel.audit.unchanged import check_exact_unchanged, check_unchanged, check_whole
from funnel.errors import DataError, FunnelError, ReleaseRefused
from funnel.release.layout import ReleaseFolder

__all__ = ["CHECKS", "Check", "Coming", "Result", "State", "Told", "overall", "recheck", "require_audited"]

# What computing with forged documents ends in: numbers beyond floats, texts for numbers, keys that are not there.
_NONSENSE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
OF_WRITERS = ("parquet", "drawn numbers table")
"""Checks that another version of pyarrow leaves open, of tables that it wrote."""


def _csv(known: AuditContext) -> Result:
    if "table" not in known.has:
        return judged("csv", ["the parquet file that it has to say the same as cannot be read"], "")
    return check_csv(known.folder.data, known.folder.csv)


def _report(known: AuditContext) -> Result:
    promise, rows = known.document.guarantee, known.rows
    named = [promise.declared, known.document.mechanism, *([] if rows is None else [f"{rows:,}"])]
    return check_report(known.folder, known.package, named, promise.secret + known.columns.names)


def _newest(known: AuditContext) -> Result | None:
    signature, facts = read_signature(known.folder), known.facts.get(known.folder.signature.name)
    signed_by = known.told.key or known.own_key or (None if signature is None else signature.public_key)
    digest = None if facts is None else facts[0]
    return check_newest(known.index, known.name, known.version, digest, signed_by, known.told, known.folder.root)


def _classes(known: AuditContext) -> Result | None:
    classes = known.columns.classes
    return None if classes is None else check_classes(classes, known.document)


def _frequencies(known: AuditContext) -> Result:
    limits = None if known.public is None else mean_limits(known.public, known.document, known.table.rows)
    return check_frequencies(known.document, known.table.counts, limits)


def _computed(name: str, make: Callable[[AuditContext], Result]) -> Callable[[AuditContext], Result]:
    """A check that fails where what it computes cannot be computed."""

    def verify(known: AuditContext) -> Result:
        try:
            return make(known)
        except FunnelError as error:
            return judged(name, [f"it cannot be computed: {error}"], "")

    return verify


_leakage = _computed("leakage", lambda k: evidence.check_leakage(k.level, k.counts, k.document))
_law = _computed("law", lambda k: evidence.check_figures(k.counts, k.document))
_findings = _computed(
    "findings",
    lambda k: evidence.check_findings(k.counted_level, k.level if k.public else None, k.evidence, k.document),
)
_UNDER_COUNTS = "The bound holds for the counts of the source, in exact arithmetic."
_UNDER_NOISE = (
    "The bound holds for the public counts, and where it covers noise for all that noise leaves possible, exactly."
)
_FOLLOWS = "Prior, posteriors, utility and marginal of the protocol follow from these counts."

CHECKS: tuple[Check[AuditContext], ...] = (
    # Are these the files, and do they say what they hold?
    Check(
        "files",
        "public",
        "All files are there that a release has, and no others.",
        lambda k: check_listing(k.listing, k.told, k.needed, k.possible, k.workspace is not None),
    ),
    Check(
        "signature",
        "signature",
        "The files are those that were signed.",
        lambda k: check_signature(read_signature(k.folder), k.package, k.facts, k.told.key, k.own_key),
    ),
    Check(
        "documents",
        "public",
        "Every JSON document is to the byte what funnel writes, with nothing else in it.",
        lambda k: check_documents(k.folder.root, k.listing),
    ),
    Check("values", "public", "Every record is an output of the protocol.", lambda k: k.read_table[0]),
    Check("parquet", "public", "The parquet file is to the byte what funnel writes.", lambda k: k.read_table[1]),
    Check("csv", "csv", "The csv holds the rows of the parquet file, in their order, and nothing else.", _csv),
    Check(
        "drawn numbers",
        "numbers",
        "Every drawn number is the one that the published records and the declared intervals make.",
        lambda k: k.drawn_numbers[0],
    ),
    Check(
        "drawn numbers table",
        "numbers",
        "The table of drawn numbers is to the byte what funnel writes.",
        lambda k: next(iter(k.drawn_numbers[1:]), None),
    ),
    Check(
        "package",
        "public",
        "Every key of the data package follows from the other files.",
        lambda k: check_package(k.package, k.document, k.columns, k.facts, k.rows, k.public_rows or None),
    ),
    Check(
        "handouts",
        "public",
        "README, citation, catalogue entry and the csv of the protocol follow from the package and the protocol.",
        lambda k: check_documentation(k.folder, k.document, k.package, k.facts),
    ),
    Check(
        "versions",
        "record",
        "The version is said alike everywhere, and is the newest one.",
        lambda k: check_versions(
            k.folder, k.package, not k.told.fetched, k.coming, k.told.newest or k.index is not None
        ),
    ),
    Check("newest version", "published", "The signed index of the series lists the version, as the newest.", _newest),
    # May they be believed, and does the bound hold, as far as public files tell it?
    Check(
        "guarantee",
        "public",
        "Kind, title, text and level of the guarantee are those of one guarantee.",
        lambda k: arithmetic.check_guarantee(k.document),
    ),
    Check(
        "labels",
        "public",
        "The name of every output lists the values that it comes from.",
        lambda k: check_labels(k.document),
    ),
    Check("classes", "classes", "The classes of whole records are those of the protocol.", _classes),
    Check(
        "balance",
        "invariant counted",
        "Outputs are the inputs, and have their distribution, as far as public files tell it.",
        lambda k: check_balance(k.document, k.public, k.public_rows),
    ),
    Check(
        "protected frequencies",
        "noise",
        "What the public counts say of their noise fits together, and is said alike everywhere.",
        lambda k: check_protected(k.noisy, k.document, k.package),
    ),
    Check("leakage", "noise", _UNDER_NOISE, _leakage),
    Check("law", "noise", _FOLLOWS, _law),
    Check(
        "prior",
        "table counted",
        "Public shares are multiples of their step and add up to one.",
        lambda k: arithmetic.check_prior(k.document, k.public_rows),
    ),
    Check(
        "posterior",
        "table counted plain",
        "Posteriors follow from the weights and the public shares.",
        lambda k: arithmetic.check_posterior(k.document, k.public_rows),
    ),
    Check(
        "marginal",
        "table counted",
        "The marginal is the distribution of the output, as far as public shares tell it.",
        lambda k: arithmetic.check_marginal(k.document, k.public_rows),
    ),
    Check(
        "utility",
        "table counted",
        "Entropy and mutual information follow from the weights and the public shares.",
        lambda k: arithmetic.check_utility(k.document, k.public_rows),
    ),
    Check(
        "frequencies",
        "table counted",
        "The released counts can have been drawn from the public shares by the protocol.",
        _frequencies,
    ),
    Check(
        "order",
        "table counted shuffled",
        "Rows are not sorted.",
        lambda k: check_order(k.table.alike, k.table.repeats),
    ),
    Check("report", "public", "The report stands by itself and is about this version.", _report),
    Check(
        "report figures",
        "figures",
        "The figures of the report are those of the protocol and the data package.",
        lambda k: check_numbers(k.folder, k.document, k.columns.names, k.package, k.rows),
    ),
    Check(
        "report page",
        "figures",
        "The page of the report is to the byte what its figures make.",
        lambda k: check_rendered(k.folder, k.told.render),
    ),
    # Of a coming version the figures were computed a second time before.
    Check(
        "followed figures",
        "figures noise published",
        "All figures of the report follow from the public counts.",
        lambda k: check_followed(k.folder, k.told.figures),
    ),
    Check(
        "unchanged",
        "invariant table counted",
        "Shares of records unchanged follow from the protocol and the public shares or counts.",
        lambda k: check_unchanged(k.folder, k.document, k.public, k.table, k.public_rows),
    ),
    Check(
        "whole records",
        "invariant table counted classes",
        "Shares of whole records unchanged, by column, follow from the records and the protocol.",
        lambda k: check_whole(k.folder, k.document, k.columns, k.public_rows),
    ),
    # The same from what is kept in audit/.
    Check(
        "evidence",
        "asked",
        "The internal evidence is whole, and only its owner may read it.",
        lambda k: check_absent(k.folder, k.workspace) or k.read_evidence[0],
    ),
    Check("leakage", "internal exact", _UNDER_COUNTS, _leakage),
    Check("law", "internal exact", _FOLLOWS, _law),
    Check(
        "exact balance",
        "internal exact invariant",
        "Outputs have the distribution of the inputs, by the exact counts.",
        lambda k: check_exact_balance(k.document, k.evidence.joint),
    ),
    Check(
        "noise",
        "internal noise",
        "Public and exact counts differ by noise as it is said to have been drawn.",
        lambda k: check_noise(k.noisy, k.evidence.first_rows or k.evidence.joint),
    ),
    Check("findings", "internal", "What was found of the bound is found again.", _findings),
    Check(
        "verdict",
        "internal record",
        "The version was published because all that was expected of it is met.",
        lambda k: evidence.check_verdict(k.verdict),
    ),
    Check(
        "records",
        "internal table",
        "As many records are released as were counted.",
        lambda k: evidence.check_records(k.evidence, k.table),
    ),
    Check(
        "counts",
        "internal table",
        "Every output is released as often as it was drawn.",
        lambda k: evidence.check_counts(k.evidence, k.table),
    ),
    Check(
        "drawing",
        "internal record drawing",
        "What rows were drawn with, given each history, fits the records.",
        lambda k: evidence.check_drawing(k.evidence, k.document),
    ),
    Check(
        "draws",
        "internal",
        "The records can have been drawn by the protocol, input by input.",
        lambda k: evidence.check_draws(k.evidence, k.document),
    ),
    Check(
        "exact unchanged",
        "internal exact invariant table",
        "Shares of records unchanged follow from the protocol and the exact counts.",
        lambda k: check_exact_unchanged(k.folder, k.document, k.evidence.joint, k.table),
    ),
    Check(
        "texts",
        "internal",
        "Title, licence, contact and sources are those of the spec.",
        lambda k: check_texts(k.package, declared_texts(k.evidence.spec.text)),
    ),
    Check(
        "record",
        "internal record",
        "The record of the version is of the files that are there, and of this spec.",
        lambda k: check_record(k.evidence, k.record, k.verdict, k.document, k.columns.names, k.package, k.facts),
    ),
    Check(
        "kept record",
        "asked folder record",
        "The workspace keeps the same record.",
        lambda k: check_kept(k.workspace, k.name, k.version, k.record if "internal" in k.has else None, k.coming),
    ),
    Check(
        "histories",
        "internal record register",
        "All versions about the same people keep the bound together.",
        lambda k: check_histories(k.record, k.evidence, k.document, k.public, k.register, k.coming),
    ),
    Check(
        "spent",
        "internal record register noise",
        "No series of the register has spent anything that the version leaves out.",
        lambda k: check_spent(k.folder, k.record, k.register, k.workspace, k.coming),
    ),
)
"""Every check of an audit with what it needs, in the order of a reader's questions."""


def recheck(folder: ReleaseFolder, told: Told | None = None) -> list[Result]:
    """Check all of a release that its files tell.

    Parameters
    ----------
    folder : ReleaseFolder
    told : Told, optional
        What is known beside them.

    Returns
    -------
    list of Result
        In the order of a reader's questions: are these the files, do they say what they hold, may they be believed,
        and does the bound hold. What needs ``audit/`` could not be checked where that is not there.

    Raises
    ------
    DataError
        If a public document of the release cannot be read at all.
    """
    return list(_results(AuditContext(folder, told or Told())))


def _results(known: AuditContext) -> Iterator[Result]:
    try:
        has = known.has
    except _NONSENSE as error:
        raise DataError(f"the documents of the release say what no release says ({type(error).__name__})") from error
    for check in CHECKS:
        if check.applies(has) and (found := _verified(check, known)) is not None:
            yield found


def _verified(check: Check[AuditContext], known: AuditContext) -> Result | None:
    """What a check finds; a document that it cannot even compute with, whoever wrote it, does not pass."""
    try:
        return check.verify(known)
    except _NONSENSE as error:
        return judged(check.name, [f"a document says what no release says ({type(error).__name__})"], "")


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
    excused = OF_WRITERS if told.coming is not None and told.coming.taken_over else ()
    for check in checks:
        if check.failed or (not check.passed and check.name not in excused):
            raise ReleaseRefused(f"nothing was published: its own audit failed: {check.name}: {check.detail}")
    return [f"{check.name} could not be checked: {check.detail}" for check in checks if not check.passed]
