"""Whether versions are about the same people, and names that become folders."""

from __future__ import annotations

import re
import warnings
from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictFloat, StrictStr, field_validator

from funnel.settings.fields import Section

_FOLDER_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
# The workspace has folders of these names that belong to no series.
_TAKEN = ("internal", "records", "registers", "snapshots", "values")


def folder_name(value: str, example: str) -> str:
    """A name that becomes a folder.

    Raises
    ------
    ValueError
        If it is not lower-case letters, digits and single hyphens, at most 80 of them, or the workspace has a folder
        of this name for itself.
    """
    if value in _TAKEN:
        raise ValueError(f"{value!r} is the name of a folder of the workspace; choose another one, such as {example}")
    if not _FOLDER_NAME.fullmatch(value) or len(value) > 80:
        raise ValueError(
            f"{value!r} must be lower-case letters, digits and single hyphens, such as {example}, because it becomes a "
            "folder"
        )
    return value


with warnings.catch_warnings():
    # Of classes, which no instance has: what it means in a spec matters more.
    warnings.filterwarnings("ignore", message='Field name "register" .* shadows')

    class HistorySettings(Section):
        """``[history]``: whether successive versions are about the same people, and what follows from that.

        Attributes
        ----------
        people : "same" or "different"
            Whether people of one version may be in another one. If they are the same, the guarantee bounds everything
            that is published about a person; if every version is about other people, each version alone is bounded, and
            whoever writes the spec vouches for it.
        register : str or None
            Name under which the people are known; series with the same register are about the same people. By default
            the name of the series.
        budget_fraction : float
            Share of the budget, above 0 and at most 1, that is used while frequencies may still change.
        on_drift : "fail" or "continue"
            What to do when categories come or go, or frequencies move by more than chance explains.
        robust : bool
            With noise on the frequencies: whether the bound on everything published holds for an observer who knows the
            true counts as well, under every set of tables that the noise does not rule out, and not only for an
            observer who knows the published ones. From the first version of a register on.
        observers : list of "transitions" and "mover-stayer", or None
            For whom everything that is published about a person is bounded: who knows how common every change is, and
            who knows how common it is among people who changed before and among people who never did. By default both
            where changes are counted without noise, else the first.
        secrets : "all", "current" or None
            What is bounded for them: the secrets that a person had in all versions so far, or the secret of each
            version once it is published, and nothing of what later versions tell of it. By default all, but the
            current one where ``robust`` is asked for: of all it cannot be had there.
        """

        people: Literal["same", "different"]
        register: StrictStr | None = None
        budget_fraction: Annotated[StrictFloat, Field(gt=0, le=1, allow_inf_nan=False)] = 1.0
        on_drift: Literal["fail", "continue"] = "continue"
        robust: StrictBool = False
        observers: tuple[Literal["transitions", "mover-stayer"], ...] | None = None
        secrets: Literal["all", "current"] | None = None

        @field_validator("register")
        @classmethod
        def _a_folder(cls, value: str | None) -> str | None:
            return None if value is None else folder_name(value, "household-panel")

        @field_validator("observers")
        @classmethod
        def _each_once(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
            if value is not None and ("transitions" not in value or len(set(value)) < len(value)):
                raise ValueError('must list "transitions", each observer once; write ["transitions", "mover-stayer"]')
            return None if value is None else tuple(sorted(value, reverse=True))
