"""What becomes of a release: folders, metadata, approval, ledger, and where its secret is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field, StrictBool, field_validator

from funnel.settings.fields import Address, Email, Line, Link, Section, Texts, WebAddress, as_tuple
from funnel.storage import is_url


class OutputSettings(Section):
    """``[output]``: where releases and working files go, and what is written.

    Attributes
    ----------
    folder : str
        Where releases appear, each under its name and version: a path, relative to the folder of the spec file, or a
        URL such as ``s3://bucket/releases``.
    workspace : str or None
        Private working files (snapshots, caches, and the records of releases at a URL), always local; by default
        ``.funnel`` next to ``folder``, or next to the spec file if that is a URL.
    csv : bool
        Whether to write tables as csv too: the records, the protocol, and weights for estimates where these take some.
    shuffle : bool
        Whether to put the released rows in random order, so that the order of the source tells nothing.
    served_at : str or None
        The web address under which ``folder`` is served, such as ``http://127.0.0.1:4300`` for ``funnel serve``: the
        runs of an orchestrator then link to the report.
    """

    folder: Address = "releases"
    workspace: Line | None = None
    csv: StrictBool = False
    shuffle: StrictBool = True
    served_at: WebAddress | None = None

    @field_validator("workspace")
    @classmethod
    def _private(cls, value: str | None) -> str | None:
        if value is not None and is_url(value):
            raise ValueError("must be a local folder: working files are private")
        return value


class SourceReference(Section):
    """``[[metadata.sources]]``: what the released data were made from.

    Attributes
    ----------
    title : str
        How to cite it.
    path : str or None
        Its address: a DOI link or another web address, or a relative path.
    version : str or None
        Its version or date.
    """

    title: Line
    path: Link | None = None
    version: Line | None = None


class MetadataSettings(Section):
    """``[metadata]``: what is told to those who use the release.

    Attributes
    ----------
    licence : str
        Name or SPDX identifier of the licence the release is published under.
    licence_url : str or None
        Its web address.
    contact_name : str or None
        Whom to ask.
    contact_email : str or None
        Where to ask.
    keywords : tuple of str
        Words by which a portal finds the release.
    sources : tuple of SourceReference
        What the released data were made from.
    labels : mapping of column name to str
        What published columns are about, where their names do not say it: labels of variables, as in SPSS and Stata.
    """

    licence: Line
    licence_url: WebAddress | None = None
    contact_name: Line | None = None
    contact_email: Email | None = None
    keywords: Texts = ()
    sources: Annotated[tuple[SourceReference, ...], BeforeValidator(as_tuple)] = ()
    labels: Mapping[str, Line] = Field(default_factory=dict)


class ApprovalSettings(Section):
    """``[approval]``: whether somebody has to approve of a version before it is published.

    Attributes
    ----------
    required : bool
        A version that passed is then held back until ``funnel approve`` names who approved of it.
    """

    required: StrictBool = False


_LEDGER = re.compile(r"environment:[A-Za-z_][A-Za-z0-9_]*|postgresql(\+psycopg)?://\S+|sqlite:///\S+")


class LedgerSettings(Section):
    """``[ledger]``: where it is noted what was released, refused and withdrawn.

    Attributes
    ----------
    url : str or None
        A database, such as ``postgresql+psycopg://ledger@db.example/funnel``, or ``environment:NAME`` for a variable
        that holds one; by default ``ledger.sqlite`` in the workspace.
    """

    url: Line | None = None

    @field_validator("url")
    @classmethod
    def _a_database(cls, value: str | None) -> str | None:
        if value is None:
            return None
        # Not quoted: it may hold a password.
        if not _LEDGER.fullmatch(value):
            raise ValueError(
                "must be a database, such as postgresql+psycopg://ledger@db.example/funnel or "
                "sqlite:////srv/ledger.sqlite, or environment:NAME"
            )
        if re.search(r"://[^?]*:[^?]*@|[?&]\w*password=", value, re.IGNORECASE):
            raise ValueError(
                "holds a password, which has no place in a spec; put the whole URL into an environment variable and "
                "name it: environment:NAME"
            )
        return value


_SECRET_PLACE = re.compile(r"file|environment:[A-Za-z_][A-Za-z0-9_]*|prefect:[a-z0-9-]+")


def secret_place(value: str) -> str:
    """A place of the release secret, as written in a spec.

    Raises
    ------
    ValueError
        If it is none.
    """
    if not _SECRET_PLACE.fullmatch(value):
        # Not quoted: it may be the secret itself.
        raise ValueError(
            'must say where the secret is, "file", "environment:NAME" or "prefect:NAME-OF-A-SECRET-BLOCK"; the secret '
            "itself has no place in a spec"
        )
    return value
