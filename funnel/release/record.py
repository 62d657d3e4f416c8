"""Record: what a version of a release was made from, kept with it for all versions after it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from funnel.release.document import Document, Sha256

_VERSION = r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$"


class Record(Document):
    """What a version was made from; internal.

    Attributes
    ----------
    spec, source, snapshot, protocol : str
        SHA-256 (hex) of all that the spec says, of the source, of the snapshot and of the channel.
    fields : tuple of str
        Published columns, in order.
    guarantee : str
        The declared bound, such as ``"lip:1.0"``.
    shuffle : bool
        Whether rows come in random order.
    secret : str or None
        Fingerprint of the release secret that the answers were derived with; None if none was.
    fresh : bool
        Whether its rows are a draw about these people that no version before it showed.
    rotated : str or None
        Fingerprint of the release secret before it, if a new one was taken for this version.
    version : str
    created : str
        Time of publication, ISO 8601 with time zone.
    rows : int
        Records released.
    """

    described: ClassVar[str] = "the record of a version"
    schema_: Literal["funnel/record/1"] = Field(default="funnel/record/1", alias="schema")
    spec: Sha256
    source: Sha256
    snapshot: Sha256
    protocol: Sha256
    fields: tuple[str, ...] = Field(min_length=1)
    guarantee: str = Field(min_length=1)
    shuffle: bool
    secret: str | None = Field(default=None, min_length=1)
    fresh: bool
    rotated: str | None = Field(default=None, min_length=1)
    version: Annotated[str, Field(pattern=_VERSION)]
    created: Annotated[str, Field(pattern=_TIME)]
    rows: int = Field(ge=1)

    @field_validator("fields")
    @classmethod
    def _distinct(cls, fields: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(fields)) < len(fields):
            raise ValueError("names a column twice")
        return fields

    @model_validator(mode="after")
    def _rotated_to_another(self) -> Record:
        if self.rotated is not None and self.rotated == self.secret:
            raise ValueError("says that its secret was rotated to itself")
        return self

    @classmethod
    def upgraded(cls, version: int, content: Any) -> Any:
        """Records before version 1 left out ``secret`` and ``rotated`` where there was none."""
        return {"secret": None, "rotated": None, **content}
