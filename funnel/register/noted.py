"""Noted: what was drawn of the people of a version, as the register is to keep it."""

from __future__ import annotations

from dataclasses import dataclass

from funnel.history import Changes, Chapter
from funnel.joint import Joint
from funnel.release.files import FileRef


@dataclass(frozen=True, eq=False)
class DrawnPeople:
    """What was drawn of whom, as the register is to keep it.

    Attributes
    ----------
    chapter : Chapter
    people : FileRef
        The file of the people, to be moved into the entry.
    rows : int
        People in it; of units, rows in theirs.
    unit_rows : FileRef, optional
        Where people have several rows: the file of all of them, while ``people`` has where each unit stands after its
        last one. The chapter is then about all rows, and its histories go on within it.
    first : Joint, optional
        Counts of the first rows of units.
    within : Changes, optional
        From a row of a unit to the next.
    """

    chapter: Chapter
    people: FileRef
    rows: int
    unit_rows: FileRef | None = None
    first: Joint | None = None
    within: Changes | None = None
