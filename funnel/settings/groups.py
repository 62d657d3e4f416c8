"""The section of a spec about classes of records, and what ``publish`` may say of the columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictFloat, StrictInt

from funnel.settings.fields import Line, Section, Texts, read_columns

AUTO = "auto"


def _published(value: object) -> tuple[str, ...]:
    return () if value == () else read_columns(value)


AtOnce = Literal["single", "pairs"]
AT_ONCE: Final[Mapping[str, int]] = {"single": 1, "pairs": 2}
"""Of how many published columns, whichever they are, observers may know the values at once."""


# Empty while nobody has looked which columns "auto" means.
Published = Annotated[tuple[str, ...], BeforeValidator(_published)]


class GroupSettings(Section):
    """``[groups]``: how the records of a table of many columns are grouped into classes.

    Attributes
    ----------
    min_records : int
        A class of records has at least so many records.
    exclude : tuple of str
        Columns of the source that ``publish = "auto"`` leaves out.
    classes : str or None
        A file with the questions that say which class a record is of, made from records of other people by
        ``funnel classes``; by default they are chosen by the counts of the records themselves.
    known : tuple of str, "single" or "pairs"
        Published columns that observers may know of a person: a bound for such observers (``srlip``, ``attribute``)
        holds for every set of these. All records of a class have the same values there. Of "single" ``srlip`` holds for
        those who know any one of the published columns, whichever it is, and of "pairs" for those who know any one or
        any two: classes are then cut into parts. A published secret is none of these columns.
    held_out : float
        The share of the records whose counts do not choose the classes: what these say of the secret in each class
        is a sample of the population, so that a robust bound (``rlip``) holds there. 0 by default: all choose.
    auto : bool
        Whether ``publish = "auto"``, which is how a spec file says it.
    """

    min_records: Annotated[StrictInt, Field(ge=2)] = 200
    exclude: Texts = ()
    classes: Line | None = None
    known: Annotated[AtOnce | Texts, Field(union_mode="left_to_right")] = ()
    held_out: Annotated[StrictFloat, Field(ge=0, lt=1)] = 0.0
    auto: StrictBool = False

    @property
    def at_once(self) -> int:
        """How many columns observers may know at once, whichever they are; 0 where these are named."""
        return AT_ONCE[self.known] if isinstance(self.known, str) else 0

    @property
    def known_columns(self) -> tuple[str, ...]:
        """The columns that are named."""
        return () if isinstance(self.known, str) else self.known


def read_groups(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Settings of a spec with a flat ``publish``; of "auto" it is empty, and ``[groups]`` has it.

    Raises
    ------
    ValueError
        If lists and columns are mixed, a list is empty, a column is in two, or it is another text than "auto".
    """
    publish, groups = settings.get("publish"), settings.get("groups", {})
    known = groups.get("auto") if isinstance(groups, Mapping) else getattr(groups, "auto", False)
    if publish == AUTO or (known is True and publish in ([], ())):
        return {**settings, "publish": (), "groups": _with_auto(groups)}
    if isinstance(publish, str):
        raise ValueError(
            f'publish must be a list of columns in quotes, such as ["one", "two"], a list of such lists, or "{AUTO}"'
        )
    if not isinstance(publish, (list, tuple)) or not any(isinstance(one, (list, tuple)) for one in publish):
        return settings
    if alone := [one for one in publish if not isinstance(one, (list, tuple))]:
        raise ValueError(
            f"publish names the column {alone[0]!r} beside lists; write all of it as lists, such as "
            f"[{alone[0]!r}] for a column of its own, or name columns alone"
        )
    columns: dict[str, int] = {}
    for number, group in enumerate(publish, start=1):
        if not group:
            raise ValueError(f"publish has no column in its list {number}; name one, or take the list out")
        for column in group:
            if not isinstance(column, str):
                raise ValueError("publish must be a list of columns, or a list of lists of columns, in quotes")
            if column in columns:
                where = f"the lists {columns[column]} and {number}" if columns[column] != number else "a list twice"
                raise ValueError(f"publish names the column {column!r} in {where}; a column is published once")
            columns[column] = number
    return {**settings, "publish": tuple(columns)}


def _with_auto(groups: object) -> object:
    """The section with "auto"; a section that is none is refused by its model."""
    if isinstance(groups, GroupSettings):
        groups = groups.model_dump(exclude_unset=True)
    return {**groups, "auto": True} if isinstance(groups, Mapping) else groups
