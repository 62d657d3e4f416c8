"""How large a table may be, and who draws its rows."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, StrictFloat, StrictInt, field_validator, model_validator

from funnel.settings.fields import Line, Section


class LimitSettings(Section):
    """``[limits]``: sizes at which to stop and ask for a recoding rather than to go on for hours.

    Attributes
    ----------
    max_symbols : int
        Categories of one column, after recoding.
    max_inputs : int
        Combinations of categories that occur in the columns a protocol reads.
    set_aside : float
        The largest share of the records that may be left out, or be in the category of other values, for their value
        of one column alone, where no setting says so.
    max_document : int
        Bytes of one public file beside the records; csv, which is written where a spec asks for it, may have more.
    """

    max_symbols: Annotated[StrictInt, Field(ge=2)] = 1000
    max_inputs: Annotated[StrictInt, Field(ge=2)] = 1_000_000
    set_aside: Annotated[StrictFloat, Field(ge=0, le=1)] = 0.01
    max_document: Annotated[StrictInt, Field(ge=1)] = 1_000_000


# What Dask listens on.
_SCHEDULER = re.compile(r"(tcp|tls|ws|wss|ucx|ucxx)://[^\s/@]+:[0-9]{1,5}")


class EngineSettings(Section):
    """``[engine]``, or ``engine = "dask"``: who draws and writes the rows; nothing here changes what is released.

    Attributes
    ----------
    kind : "local" or "dask"
        Processes of this machine, or workers of Dask (``pip install 'funnel[dask]'``).
    workers : int
        Their number; with Dask and a scheduler, whatever workers that has.
    scheduler : str or None
        Address of a Dask scheduler, such as ``tcp://10.0.0.5:8786``, whose workers see the same files; without one
        workers are started on this machine.
    """

    kind: Literal["local", "dask"] = "local"
    workers: Annotated[StrictInt, Field(ge=1, le=1024)] = 1
    scheduler: Line | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_kind(cls, value: object) -> object:
        return {"kind": value} if isinstance(value, str) else value

    @field_validator("scheduler")
    @classmethod
    def _an_address(cls, value: str | None) -> str | None:
        if value is not None and not _SCHEDULER.fullmatch(value):
            raise ValueError(f"{value!r} is no address of a scheduler; give one such as tcp://10.0.0.5:8786")
        return value
