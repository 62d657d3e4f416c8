"""Every statement of a report, changed one at a time, with the checks that the changed report does not pass."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from funnel.audit.recheck import Told
from funnel.audit.stated import untold_places
from funnel.errors import DataError
from funnel.release.document import dump
from funnel.release.layout import ReleaseFolder
from tests.audits import verified

# Those that compare figures, the one that takes longest last; all others see that the page was not made of the report.
FIGURES = ("report figures", "secrets", "version before", "unchanged", "whole records", "followed figures")
# Which the check of the annex counts again.
OF_ANNEX = {"alone", "absent"}
_DIGEST, _NUMBER = re.compile(r"(sha256:)?[0-9a-f]{64}"), re.compile(r"\d{1,20}")


def changes(value: Any) -> list[Any]:
    """What else could be said in place of a value."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, float):
        return [round(value / 2, 12), value * (1 + 1e-9)] if value else [0.5]
    if isinstance(value, int):
        return [value + 1, *([value - 1] if value else [])]
    if isinstance(value, str):
        return [] if _DIGEST.fullmatch(value) else [str(int(value) + 1)] if _NUMBER.fullmatch(value) else [value + "x"]
    return []


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(part, dict | list):
            yield from places(part, (*path, key))
        else:
            yield (*path, key), part


def generic(path: tuple[str | int, ...]) -> str:
    """A place with ``#`` for numbers of lists."""
    return ".".join("#" if isinstance(key, int) else key for key in path)


def unnoticed(folder: ReleaseFolder, each: int = 1, tried_elsewhere: Collection[str] = ()) -> Iterator[str]:
    """Statements of a report that can be changed without a check of figures noticing, and that no audit excepts.

    Of the entries of every list as many are tried. The pages are made of the report, and so are digests: checks that
    only compare these are left out, as a publisher who changes a figure makes them fit. So are generic places that are
    tried in another release.
    """
    honest = json.loads(folder.numbers.read_bytes())
    tried, left_out = dict[str, int](), {*untold_places(honest), *OF_ANNEX, *tried_elsewhere}
    for path, value in places(honest):
        place = generic(path)
        tried[place] = tried.get(place, 0) + 1
        if tried[place] > each or place in left_out:
            continue
        for other in changes(value):
            report = copy.deepcopy(honest)
            part = report
            for key in path[:-1]:
                part = part[key]
            part[path[-1]] = other
            if passes(folder, report):
                yield f"{'.'.join(map(str, path))}: {value!r} -> {other!r}"


def passes(folder: ReleaseFolder, report: Any, checks: Sequence[str] = FIGURES) -> bool:
    """Whether a report in place of that of a release passes the checks of its figures."""
    before = folder.numbers.read_bytes()
    try:
        folder.numbers.write_bytes(dump(report))
        return all(found.passed for found in verified(folder, checks, Told(public=True)))
    except DataError:
        return False
    finally:
        folder.numbers.write_bytes(before)
