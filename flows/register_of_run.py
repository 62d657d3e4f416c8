"""The people of a series: their register, held for one run and brought into agreement with what is published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from funnel.errors import LedgerError, PipelineError
from funnel.register import register_of
from funnel.release.layout import Version
from funnel.release.record import Record, Records
from funnel.release.series import Series
from funnel.spec import ReleaseSpec

if TYPE_CHECKING:
    from funnel.register.register import Register


@contextmanager
def open_people(spec: ReleaseSpec, series: Series) -> Iterator[Register | None]:
    """Hold the register of a series that is held, after finishing what a killed run left; None without one.

    A version that is published, or may have been seen, is in the register, and no other is.

    Parameters
    ----------
    spec : ReleaseSpec
    series : Series
        Held, and put right.

    Raises
    ------
    PipelineError
        If another run holds the register, or was killed while it published for another series.
    LedgerError
        If the register lacks what was published, or is older than that.
    SpecError
        If it is about another secret or other keys.
    """
    if spec.register is None:
        yield None
        return
    # Imported here: most series have no register.
    from funnel.register.register import open_register

    with open_register(spec.workspace_folder, spec.register) as register:
        own = entries_of(one.record for one in series.earlier)

        def published(name: str, version: str) -> str | None:
            if name == spec.name:
                return own.get((name, version))
            return _published_elsewhere(spec.workspace_folder, name, version)

        register.reconcile(published)
        _require_known(register, spec, series)
        register.require_fitting(spec.secret, spec.record_key or ())
        yield register


def people_known(spec: ReleaseSpec, series: Series) -> bool:
    """Whether everything published of a series is in its register; a run finds out why it is not, or puts it right."""
    register = register_of(spec)
    if register is None:
        return True
    try:
        _require_known(register, spec, series)
    except LedgerError:
        return False
    return True


def _require_known(register: Register, spec: ReleaseSpec, series: Series) -> None:
    """Make sure that a register is not older than what was published of a series.

    Raises
    ------
    LedgerError
        If it lacks a version, or has another one in its place.
    """
    records = [one.record for one in series.earlier]
    own = entries_of(iter(records))
    register.require_published(
        spec.name, {version: entry for (name, version), entry in own.items() if name == spec.name}
    )
    for record in records:
        history = record.history
        if history is not None and history.register_name == register.name and history.head is not None:
            register.require_head(history.head)


def entries_of(records: Iterator[Record]) -> Mapping[tuple[str, str], str]:
    """The entries of the register that records name: SHA-256 (hex) by series and version that rows were drawn for."""
    found = {}
    for record in records:
        history = record.history
        if history is not None and history.entry is not None and history.name is not None:
            series, _, version = history.name.rpartition("/")
            found[series, version] = history.entry
    return found


def _published_elsewhere(workspace: Path, series: str, version: str) -> str | None:
    """The entry of a version of another series, as the records that the workspace keeps of it say.

    Raises
    ------
    PipelineError
        If a run of that series was killed while it published this version: only its next run can tell what came of it.
    LedgerError
        If a record is damaged.
    """
    number = Version.parse(version)
    for place in sorted((workspace / series / "records").glob("*")):
        records = Records(place)
        if any(one.version == number for one in records.announced):
            raise PipelineError(
                f"a run of the series {series} was stopped while it published version {version} about the same people; "
                "run funnel release for that series first, which finds out what became of it"
            )
        entry = entries_of(iter(records.known.values())).get((series, version))
        if entry is not None:
            return entry
    return None
