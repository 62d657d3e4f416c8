"""Hierarchies: groups of values from a table of levels beside the spec, as statistical offices publish them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from funnel.errors import FunnelError, SpecError
from funnel.storage import is_url
from funnel.wording import did_you_mean, listed, toml_key

if TYPE_CHECKING:
    from funnel.readers.opened_source import SourceSpec

_MOST_BYTES = 1 << 24
# Of a table that is no csv.
_MOST_VALUES = 1_000_000


Known = Mapping[str, Mapping[str, Sequence[str]]]
"""What hierarchies of columns came to: the values of every group."""


class Opened(Protocol):
    """A spec of which the source can be opened, with its record key or without."""

    @property
    def reading(self) -> SourceSpec:
        """What the source is opened by."""


Make = Callable[[Mapping[str, Any], Path], Opened]
"""A spec of settings; relative paths start at a folder."""


def with_hierarchies(
    settings: Mapping[str, Any], folder: Path, make: Make, known: Known | None = None
) -> dict[str, Any]:
    """Settings of a spec with the groups that its hierarchies come to, in place of these.

    ``hierarchy`` in ``[recode.COLUMN]`` names a table: its first column has the values of the source, the others what
    they belong to; ``level`` names one of these. It is a csv file with a header, or whatever else a source may be, by
    its path or by all that ``[source]`` says of one, such as ``{path = "sqlite:///places.db", table = "places"}``. What
    is in it becomes part of the spec, and of its digest, as if it had been written there as groups.

    Parameters
    ----------
    settings : mapping
        As read from TOML; what is wrong in other ways is left as it is, for the spec to say.
    folder : Path
        Where relative paths start.
    make : function of settings and folder
        The spec that a table of levels is read by, where it is no csv file.
    known : mapping of column to mapping of group to values, optional
        What the hierarchies came to when they were read; by default they are read.

    Raises
    ------
    SpecError
        If a table cannot be read, lacks the level, or puts a value into two groups.
    """
    recodes = settings.get("recode")
    if not isinstance(recodes, Mapping):
        return dict(settings)
    made = {}
    for column, recode in recodes.items():
        if known is not None and column in known and isinstance(recode, Mapping):
            rest = {name: setting for name, setting in recode.items() if name not in ("hierarchy", "level")}
            made[column] = {**rest, "groups": known[column]}
        else:
            made[column] = _expanded(column, recode, folder, make)
    return {**settings, "recode": made}


def _expanded(column: str, recode: Any, folder: Path, make: Make) -> Any:
    if not isinstance(recode, Mapping) or not {"hierarchy", "level"} & set(recode):
        return recode
    place = f"[recode.{toml_key(column)}]"
    told, level = recode.get("hierarchy"), recode.get("level")
    if not isinstance(told, str | Mapping) or not isinstance(level, str):
        raise SpecError(
            f'{place} must have both: hierarchy = "FILE.csv", a table whose first column has the values, and level = '
            '"COLUMN" of it'
        )
    if "groups" in recode:
        raise SpecError(f"{place} has groups and a hierarchy; give one of the two")
    if isinstance(told, str) and told.lower().endswith(".csv") and not is_url(told):
        name, levels = Path(told).name, _levels(folder / told, level, place)
    else:
        source = {"path": told} if isinstance(told, str) else told
        name, levels = "the table", _of_source(source, level, place, folder, make)
    rest = {name: setting for name, setting in recode.items() if name not in ("hierarchy", "level")}
    return {**rest, "groups": _groups(levels, level, place, name)}


def _groups(levels: list[tuple[str, str]], level: str, place: str, shown: str) -> dict[str, list[str]]:
    of: dict[str, str] = {}
    for value, name in levels:
        if not name.strip():
            continue
        if of.setdefault(value, name) != name:
            raise SpecError(f"{place} hierarchy puts the value {value!r} into two groups of {level}; correct {shown}")
    groups: dict[str, list[str]] = {}
    for value, name in of.items():
        groups.setdefault(name, []).append(value)
    return groups


def _levels(file: Path, level: str, place: str) -> list[tuple[str, str]]:
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise SpecError(f"{place} hierarchy is longer than {_MOST_BYTES >> 20} MB; is it the table of levels?")
        with file.open(encoding="utf-8-sig", newline="") as stream:
            header, *rows = [row for row in csv.reader(stream, strict=True) if row] or [[]]
    except (OSError, UnicodeError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not csv in UTF-8"
        raise SpecError(f"{place} hierarchy {str(file)!r} cannot be read: {why}") from None
    if level not in header[1:]:
        raise SpecError(
            f"{place} level {level!r} is no column of {file.name} after its first"
            f"{did_you_mean(level, header[1:])}; it has {listed(header[1:]) or 'none'}"
        )
    if any(len(row) != len(header) for row in rows):
        raise SpecError(f"{place} hierarchy: a row of {file.name} has another number of values than its header")
    at = header.index(level, 1)
    return [(row[0], row[at]) for row in rows]


def _of_source(source: Mapping[str, Any], level: str, place: str, folder: Path, make: Make) -> list[tuple[str, str]]:
    """Values and what they belong to, from a table that is read as sources are."""
    # Readers load pyarrow, which specs do without.
    from funnel.readers.formats import open_source

    asked = {
        "name": "levels",
        "title": "Levels",
        "guarantee": "ldp:1.0",
        "metadata": {"licence": "none"},
        "frequencies": {"protection": "none"},
        "source": dict(source),
        "secret": [level],
    }
    try:
        probe = make({**asked, "publish": "auto"}, folder)
        first, *others = open_source(probe.reading).names
        if level not in others:
            raise SpecError(f"the level {level!r} is its first column, which has the values; name another one")
        opened = open_source(make({**asked, "publish": [first]}, folder).reading)
        found: list[tuple[str, str]] = []
        for batch in opened.batches([first, level]):
            columns = (batch.column(column).to_pylist() for column in (first, level))
            found += [(str(value), "" if name is None else str(name)) for value, name in zip(*columns, strict=True)]
            if len(found) > _MOST_VALUES:
                raise SpecError(f"it has more than {_MOST_VALUES:,} rows; is it the table of levels?")
    except FunnelError as error:
        raise SpecError(f"{place} hierarchy: {error}") from None
    return found
