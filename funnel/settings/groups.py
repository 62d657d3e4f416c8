"""The section of a spec about groups of columns, and what ``publish`` may say of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, StrictInt, model_validator

from funnel.settings.fields import Columns, Texts, read_columns
from funnel.settings.section import Section

AUTO = "auto"
_KINDS = ("lip", "alip", "ldp", "rlip", "ralip", "rldp")


def _groups(value: object) -> object:
    """Groups as tuples of columns; what else it is, pydantic says."""
    if isinstance(value, (list, tuple)):
        return tuple(tuple(group) if isinstance(group, (list, tuple)) else group for group in value)
    return value


def _published(value: object) -> tuple[str, ...]:
    return () if value == () else read_columns(value)


# Empty while nobody has looked which columns "auto" means.
Published = Annotated[tuple[str, ...], BeforeValidator(_published)]


class GroupSettings(Section):
    """``[groups]``: how a table of many columns is published group by group, under one bound for the whole record.

    Attributes
    ----------
    of : tuple of tuple of str, "auto" or None
        The groups in the order in which they are published. In a spec file ``publish`` says them: as a list of lists,
        or "auto" for all columns. None for a flat list, which becomes groups where it has too many combinations.
    people : int
        A channel is made for prefixes of a record that so many people are expected to have; with fewer, a record says
        what was proven for coarser ones, or nothing more.
    without : tuple of str
        Columns of the source that ``publish = "auto"`` leaves out.
    """

    of: Annotated[tuple[Columns, ...] | Literal["auto"] | None, BeforeValidator(_groups)] = None
    people: Annotated[StrictInt, Field(ge=2)] = 50
    min_records: Annotated[StrictInt, Field(ge=2)] = 200
    without: Texts = ()

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.without and self.of != AUTO:
            raise ValueError('names columns to leave out, which is for publish = "auto"; take without out')
        return self

    def known(self, publish: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        """The groups of these columns; where they are chosen each alone, which is in some group whatever is chosen."""
        return self.of if isinstance(self.of, tuple) else tuple((column,) for column in publish)

    @property
    def is_auto(self) -> bool:
        """Whether all columns are published that need not be secret, in groups that are chosen."""
        return self.of == AUTO


def read_groups(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Settings of a spec with a flat ``publish``, and its groups in ``[groups]``.

    Raises
    ------
    ValueError
        If groups and columns are mixed, a group is empty, a column is in two, or it is another text than "auto".
    """
    publish, groups = settings.get("publish"), settings.get("groups", {})
    known = groups.get("of") if isinstance(groups, Mapping) else getattr(groups, "of", None)
    if publish == AUTO or (known == AUTO and publish in ([], ())):
        return {**settings, "publish": (), "groups": _with(groups, AUTO)}
    if isinstance(publish, str):
        raise ValueError(
            f'publish must be a list of columns in quotes, such as ["one", "two"], a list of such lists, or "{AUTO}"'
        )
    if not isinstance(publish, (list, tuple)) or not any(isinstance(one, (list, tuple)) for one in publish):
        return settings
    if alone := [one for one in publish if not isinstance(one, (list, tuple))]:
        raise ValueError(
            f"publish names the column {alone[0]!r} beside groups; write all of it as groups, such as "
            f"[{alone[0]!r}] for a column of its own, or name columns alone"
        )
    columns: dict[str, int] = {}
    for number, group in enumerate(publish, start=1):
        if not group:
            raise ValueError(f"publish has no column in its group {number}; name one, or take the group out")
        for column in group:
            if not isinstance(column, str):
                raise ValueError("publish must be a list of columns, or a list of groups of columns, in quotes")
            if column in columns:
                where = f"the groups {columns[column]} and {number}" if columns[column] != number else "a group twice"
                raise ValueError(f"publish names the column {column!r} in {where}; a column is published once")
            columns[column] = number
    return {**settings, "publish": tuple(columns), "groups": _with(groups, tuple(tuple(group) for group in publish))}


def _with(groups: object, of: object) -> object:
    """The section with its groups; a section that is none is refused by its model."""
    if isinstance(groups, GroupSettings):
        groups = groups.model_dump(exclude_unset=True)
    if not isinstance(groups, Mapping):
        return groups
    if groups.get("of", of) != of:
        raise ValueError("publish and [groups] of name other groups; say them in publish alone")
    return {**groups, "of": of}


def unfit_for_groups(kind: str, laws: object = None) -> str | None:
    """Why a guarantee, over a set of laws or none, cannot be kept by groups of columns; None if it can."""
    if laws == "chi2":
        return f"groups of columns cannot keep {kind} over the set chi2, which no people prove; take the set out"
    if kind in _KINDS:
        return None
    if kind == "perfect":
        return (
            'groups of columns cannot keep guarantee = "perfect", whose equations no rounding to whole weights meets; '
            "give lip, alip or ldp a budget above 0"
        )
    if kind == "srlip":
        return "groups of columns cannot keep srlip: side channels are not there yet for them; use lip"
    return (
        f"groups of columns cannot keep {kind}, which is no bound on what each single record tells of the secret; use "
        "lip, alip or ldp"
    )
