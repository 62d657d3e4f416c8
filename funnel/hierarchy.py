"""Hierarchies: groups of values from a table of levels beside the spec, as statistical offices publish them."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from funnel.errors import SpecError
from funnel.wording import did_you_mean, listed, toml_key

_MOST_BYTES = 1 << 24


def with_hierarchies(settings: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Settings of a spec with the groups that its hierarchies come to, in place of these.

    ``hierarchy`` in ``[recode.COLUMN]`` names a csv file with a header: its first column has the values of the source,
    the others what they belong to; ``level`` names one of these. What is in the file becomes part of the spec, and of
    its digest, as if it had been written there as groups.

    Parameters
    ----------
    settings : mapping
        As read from TOML; what is wrong in other ways is left as it is, for the spec to say.
    folder : Path
        Where relative paths start.

    Raises
    ------
    SpecError
        If a file cannot be read, lacks the level, or puts a value into two groups.
    """
    recodes = settings.get("recode")
    if not isinstance(recodes, Mapping):
        return dict(settings)
    made = {column: _expanded(column, recode, folder) for column, recode in recodes.items()}
    return {**settings, "recode": made}


def _expanded(column: str, recode: Any, folder: Path) -> Any:
    if not isinstance(recode, Mapping) or not {"hierarchy", "level"} & set(recode):
        return recode
    place = f"[recode.{toml_key(column)}]"
    path, level = recode.get("hierarchy"), recode.get("level")
    if not isinstance(path, str) or not isinstance(level, str):
        raise SpecError(
            f'{place} must have both: hierarchy = "FILE.csv", a table whose first column has the values, and level = '
            '"COLUMN" of it'
        )
    if "groups" in recode:
        raise SpecError(f"{place} has groups and a hierarchy; give one of the two")
    rest = {name: setting for name, setting in recode.items() if name not in ("hierarchy", "level")}
    return {**rest, "groups": _groups(folder / path, level, place)}


def _groups(file: Path, level: str, place: str) -> dict[str, list[str]]:
    of: dict[str, str] = {}
    for value, name in _levels(file, level, place):
        if not name.strip():
            continue
        if of.setdefault(value, name) != name:
            raise SpecError(
                f"{place} hierarchy puts the value {value!r} into two groups of {level}; correct {file.name}"
            )
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
