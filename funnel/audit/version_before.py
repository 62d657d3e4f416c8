"""What a release says of the version before it: what follows from its own files, and what that version says itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from funnel.audit.check import Found, check
from funnel.audit.files import file_facts, read_document
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.public_report import Change, PublicReport

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext


@check("version before", "figures", contained=True)
def check_version_before(known: AuditContext) -> Found:
    """What is said of the version before follows from its number and, where that is beside it, from its report."""
    told = known.report
    if (change := told.change) is None:
        return "there is none"
    yield from _number_complaints(told, change)
    place = known.folder.root if known.coming is None else known.coming.place
    before = ReleaseFolder(place.parent / change.version)
    if known.told.fetched or not before.numbers.is_file() or not before.data.is_file():
        return f"of version {change.version}, which is not beside this one, only what its number tells was checked"
    earlier = PublicReport.from_json(read_document(before.numbers), str(before.numbers))
    alike = file_facts(before.data) == file_facts(known.folder.data)
    yield from _report_complaints(told, change, earlier, alike)
    return f"version {change.version} says the same of itself"


def _number_complaints(told: PublicReport, change: Change) -> Iterator[str]:
    """New columns raise the first number of a version, new data the second, anything else the third."""
    own, before = Version.parse(told.version), Version.parse(change.version)
    if own is None or before is None or before >= own:
        yield "change.version is no version before this one"
    elif own.major == before.major and set(change.columns) != set(told.published.columns):
        yield "change.columns are others, and the first number of the version is the same"
    elif (own.major, own.minor) == (before.major, before.minor) and change.new_data:
        yield "change.new_data is said, and only the last number of the version is another"


def _report_complaints(told: PublicReport, change: Change, before: PublicReport, alike: bool) -> Iterator[str]:
    pairs = {
        "version": (change.version, before.version),
        "created": (change.created, before.created),
        "guarantee": (change.guarantee, before.guarantee),
        "columns": (change.columns, before.published.columns),
        "records": (change.records, before.figures.rows),
        "rows": (change.rows == "the same rows", alike),
        "name": (told.name, before.name),
    }
    yield from (f"change.{key} is not what that version says" for key, (one, other) in pairs.items() if one != other)
    history, earlier = told.figures.history, before.figures.history
    if history is None or earlier is None:
        return
    alone = (before.figures.share, earlier.share_alone)
    if any((one.share, one.share_alone) != alone for one in told.kept if one.version == before.version):
        yield "kept tells other shares than that version"
    # Rows that are taken over may be those of any version before.
    if change.rows != "a fresh draw":
        return
    if history.versions <= earlier.versions:
        yield "figures.history.versions are not more than those of that version"
    if told.earlier_releases < before.earlier_releases:
        yield "earlier_releases are fewer than before that version"
    spent, spent_before = told.frequencies.spent, before.frequencies.spent
    if spent is not None and spent_before is not None and spent < spent_before:
        yield "frequencies.spent is less than that version says"
