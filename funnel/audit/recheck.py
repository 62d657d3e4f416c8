"""Checking a release again, from its files alone: the table of checks, and what they amount to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from funnel.audit import arithmetic, evidence
from funnel.audit.balance import check_balance, check_exact_balance
from funnel.audit.check import Check, Result, State, judged, overall, sentence_of
from funnel.audit.context import AuditContext
from funnel.audit.documentation import check_documentation, check_texts, declared_texts
from funnel.audit.encoding import check_csv
from funnel.audit.frequencies import check_frequencies, check_order
from funnel.audit.histories import check_histories, check_spent
from funnel.audit.history import check_absent, check_kept, check_record, check_versions
from funnel.audit.labels import check_labels
from funnel.audit.newest import check_newest
from funnel.audit.package import check_package
from funnel.audit.page import check_annex, check_followed, check_numbers, check_rendered, check_report
from funnel.audit.protected import check_noise, check_protected, mean_limits
from funnel.audit.released_columns import check_classes
from funnel.audit.signing import check_signature
from funnel.audit.told import Coming, Told, check_documents, check_listing
from funnel.audit.unchanged import check_exact_unchanged, check_unchanged, check_whole
from funnel.errors import DataError, FunnelError, ReleaseRefused
from funnel.release.layout import ReleaseFolder

__all__ = ["CHECKS", "Check", "Coming", "Result", "State", "Told", "overall", "recheck", "require_audited"]

# What computing with forged documents ends in: numbers beyond floats, texts for numbers, keys that are not there.
_NONSENSE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
OF_WRITERS = ("parquet", "drawn numbers table")
"""Checks that another version of pyarrow leaves open, of tables that it wrote."""


_Verify = Callable[[AuditContext], "Result | None"]
CHECKS: list[Check[AuditContext]] = []
"""Every check of an audit with what it needs, in the order of a reader's questions."""


def _check(name: str, needs: str) -> Callable[[_Verify], _Verify]:
    """Note a check: its docstring is what holds where it passes."""

    def noted(verify: _Verify) -> _Verify:
        CHECKS.append(Check(name, needs, sentence_of(verify), verify))
        return verify

    return noted


def _computed(name: str, make: Callable[[], Result]) -> Result:
    """A check that fails where what it computes cannot be computed."""
    try:
        return make()
    except FunnelError as error:
        return judged(name, [f"it cannot be computed: {error}"], "")


# Are these the files, and do they say what they hold?
@_check("files", "public")
def _files(known: AuditContext) -> Result:
    """All files are there that a release has, and no others."""
    return check_listing(known.listing, known.told, known.needed, known.possible, known.workspace is not None)


@_check("signature", "signature")
def _signature(known: AuditContext) -> Result:
    """The files are those that were signed."""
    return check_signature(known)


@_check("documents", "public")
def _documents(known: AuditContext) -> Result:
    """Every JSON document is to the byte what funnel writes, with nothing else in it."""
    return check_documents(known.folder.root, known.listing)


@_check("values", "public")
def _values(known: AuditContext) -> Result:
    """Every record is an output of the protocol."""
    return known.read_table[0]


@_check("parquet", "public")
def _parquet(known: AuditContext) -> Result:
    """The parquet file is to the byte what funnel writes."""
    return known.read_table[1]


@_check("csv", "csv")
def _csv(known: AuditContext) -> Result:
    """The csv holds the rows of the parquet file, in their order, and nothing else."""
    if "table" not in known.has:
        return judged("csv", ["the parquet file that it has to say the same as cannot be read"], "")
    return check_csv(known.folder.data, known.folder.csv)


@_check("drawn numbers", "numbers")
def _drawn_numbers(known: AuditContext) -> Result:
    """Every drawn number is the one that the published records and the declared intervals make."""
    return known.drawn_numbers[0]


@_check("drawn numbers table", "numbers")
def _drawn_numbers_table(known: AuditContext) -> Result | None:
    """The table of drawn numbers is to the byte what funnel writes."""
    return next(iter(known.drawn_numbers[1:]), None)


@_check("package", "public")
def _package(known: AuditContext) -> Result:
    """Every key of the data package follows from the other files."""
    return check_package(known)


@_check("handouts", "public")
def _documentation(known: AuditContext) -> Result:
    """README, citation, catalogue entry and the csv of the protocol follow from the package and the protocol."""
    return check_documentation(known)


@_check("versions", "record")
def _versions(known: AuditContext) -> Result:
    """The version is said alike everywhere, and is the newest one."""
    return check_versions(known)


@_check("newest version", "published")
def _newest_version(known: AuditContext) -> Result | None:
    """The signed index of the series lists the version, as the newest."""
    return check_newest(known)


# May they be believed, and does the bound hold, as far as public files tell it?
@_check("guarantee", "public")
def _guarantee(known: AuditContext) -> Result:
    """Kind, title, text and level of the guarantee are those of one guarantee."""
    return arithmetic.check_guarantee(known.document)


@_check("labels", "public")
def _labels(known: AuditContext) -> Result:
    """The name of every output lists the values that it comes from."""
    return check_labels(known.document)


@_check("classes", "classes")
def _classes(known: AuditContext) -> Result | None:
    """The classes of whole records are those of the protocol."""
    classes = known.columns.classes
    return None if classes is None else check_classes(classes, known.document)


@_check("balance", "invariant counted")
def _balance(known: AuditContext) -> Result:
    """Outputs are the inputs, and have their distribution, as far as public files tell it."""
    return check_balance(known.document, known.public, known.public_rows)


@_check("protected frequencies", "noise")
def _protected_frequencies(known: AuditContext) -> Result:
    """What the public counts say of their noise fits together, and is said alike everywhere."""
    return check_protected(known.noisy, known.document, known.package, known.columns.classes)


@_check("leakage", "noise")
def _leakage_noisy(known: AuditContext) -> Result:
    """The bound holds for the public counts, and where it covers noise for all that noise leaves possible, exactly."""
    return _computed("leakage", lambda: evidence.check_leakage(known.level, known.counts, known.document))


@_check("law", "noise")
def _figures_noisy(known: AuditContext) -> Result:
    """Prior, posteriors, utility and marginal of the protocol follow from these counts."""
    return _computed("law", lambda: evidence.check_figures(known))


@_check("prior", "table counted")
def _prior(known: AuditContext) -> Result:
    """Public shares are multiples of their step and add up to one."""
    return arithmetic.check_prior(known.document, known.public_rows)


@_check("marginal", "table counted")
def _marginal(known: AuditContext) -> Result:
    """The marginal is the distribution of the output, as far as public shares tell it."""
    return arithmetic.check_marginal(known.document, known.public_rows)


@_check("utility", "table counted")
def _utility(known: AuditContext) -> Result:
    """Entropy and mutual information follow from the weights and the public shares."""
    return arithmetic.check_utility(known.document, known.public_rows)


@_check("frequencies", "table counted")
def _frequencies(known: AuditContext) -> Result:
    """The released counts can have been drawn from the public shares by the protocol."""
    limits = None if known.public is None else mean_limits(known.public, known.document, known.table.rows)
    return check_frequencies(known.document, known.table.counts, limits)


@_check("order", "table counted shuffled")
def _order(known: AuditContext) -> Result:
    """Rows are not sorted."""
    return check_order(known.table.alike, known.table.repeats)


@_check("report", "public")
def _report(known: AuditContext) -> Result:
    """The report stands by itself and is about this version."""
    return check_report(known)


@_check("report figures", "figures")
def _report_figures(known: AuditContext) -> Result:
    """The figures of the report are those of the protocol and the data package."""
    return check_numbers(known)


@_check("report page", "figures")
def _report_page(known: AuditContext) -> Result:
    """The page of the report is to the byte what its figures make."""
    return check_rendered(known)


@_check("annex", "figures")
def _annex(known: AuditContext) -> Result:
    """Every figure and answer of the annex follows from the report and the protocol."""
    return check_annex(known)


# Of a coming version the figures were computed a second time before.
@_check("followed figures", "figures noise published")
def _followed_figures(known: AuditContext) -> Result:
    """All figures of the report follow from the public counts."""
    return check_followed(known)


@_check("unchanged", "invariant table counted")
def _unchanged(known: AuditContext) -> Result:
    """Shares of records unchanged follow from the protocol and the public shares or counts."""
    return check_unchanged(known)


@_check("whole records", "invariant table counted classes")
def _whole_records(known: AuditContext) -> Result:
    """Shares of whole records unchanged, by column, follow from the records and the protocol."""
    return check_whole(known)


# The same from what is kept in audit/.
@_check("evidence", "asked")
def _evidence(known: AuditContext) -> Result:
    """The internal evidence is whole, and only its owner may read it."""
    return check_absent(known.folder, known.workspace) or known.read_evidence[0]


@_check("leakage", "internal exact")
def _leakage_exact(known: AuditContext) -> Result:
    """The bound holds for the counts of the source, in exact arithmetic."""
    return _computed("leakage", lambda: evidence.check_leakage(known.level, known.counts, known.document))


@_check("law", "internal exact")
def _figures_exact(known: AuditContext) -> Result:
    """Prior, posteriors, utility and marginal of the protocol follow from these counts."""
    return _computed("law", lambda: evidence.check_figures(known))


@_check("exact balance", "internal exact invariant")
def _exact_balance(known: AuditContext) -> Result:
    """Outputs have the distribution of the inputs, by the exact counts."""
    return check_exact_balance(known.document, known.evidence.joint)


@_check("noise", "internal noise")
def _noise(known: AuditContext) -> Result:
    """Public and exact counts differ by noise as it is said to have been drawn."""
    return check_noise(known.noisy, known.evidence.first_rows or known.evidence.joint)


@_check("findings", "internal")
def _findings(known: AuditContext) -> Result:
    """What was found of the bound is found again."""
    proven = known.level if known.public else None
    return _computed(
        "findings", lambda: evidence.check_findings(known.counted_level, proven, known.evidence, known.document)
    )


@_check("verdict", "internal record")
def _verdict(known: AuditContext) -> Result:
    """The version was published because all that was expected of it is met."""
    return evidence.check_verdict(known.verdict)


@_check("records", "internal table")
def _records(known: AuditContext) -> Result:
    """As many records are released as were counted."""
    return evidence.check_records(known.evidence, known.table)


@_check("counts", "internal table")
def _counts(known: AuditContext) -> Result:
    """Every output is released as often as it was drawn."""
    return evidence.check_counts(known.evidence, known.table)


@_check("drawing", "internal record drawing")
def _drawing(known: AuditContext) -> Result:
    """What rows were drawn with, given each history, fits the records."""
    return evidence.check_drawing(known.evidence, known.document)


@_check("draws", "internal")
def _draws(known: AuditContext) -> Result:
    """The records can have been drawn by the protocol, input by input."""
    return evidence.check_draws(known)


@_check("exact unchanged", "internal exact invariant table")
def _exact_unchanged(known: AuditContext) -> Result:
    """Shares of records unchanged follow from the protocol and the exact counts."""
    return check_exact_unchanged(known)


@_check("texts", "internal")
def _texts(known: AuditContext) -> Result:
    """Title, licence, contact and sources are those of the spec."""
    return check_texts(known.package, declared_texts(known.evidence.spec.text))


@_check("record", "internal record")
def _record(known: AuditContext) -> Result:
    """The record of the version is of the files that are there, and of this spec."""
    return check_record(known)


@_check("kept record", "asked folder record")
def _kept_record(known: AuditContext) -> Result:
    """The workspace keeps the same record."""
    return check_kept(known)


@_check("histories", "internal record register")
def _histories(known: AuditContext) -> Result:
    """All versions about the same people keep the bound together."""
    return check_histories(known.record, known.evidence, known.document, known.public, known.register, known.coming)


@_check("spent", "internal record register noise")
def _spent(known: AuditContext) -> Result | None:
    """No series of the register has spent anything that the version leaves out."""
    return check_spent(known)


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
