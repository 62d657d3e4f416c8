"""Where the ledger of a spec is: a file in the workspace, or a database by its URL, whose password nobody is shown."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, quote_plus

from sqlalchemy import URL
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from funnel.errors import PipelineError, SpecError

FILE = "ledger.sqlite"
_VARIABLE = re.compile(r"environment:([A-Za-z_][A-Za-z0-9_]*)")
_POSTGRES = "postgresql+psycopg"


@dataclass(frozen=True)
class Address:
    """Where a ledger is.

    Attributes
    ----------
    url : sqlalchemy.URL
    """

    url: URL = field(repr=False)

    @property
    def file(self) -> Path | None:
        """The file of a SQLite database; None for a server."""
        return None if self.url.database is None or self.is_server else Path(self.url.database)

    @property
    def is_server(self) -> bool:
        """Whether it is a PostgreSQL database."""
        return self.url.get_backend_name() == "postgresql"

    def __str__(self) -> str:
        """The address for people: a path, or a URL without user, password and options."""
        if not self.is_server:
            return str(self.file)
        place = URL.create("postgresql", host=self.url.host, port=self.url.port, database=self.url.database)
        return place.render_as_string()

    def cleaned(self, text: str) -> str:
        """What a driver said, on one line and without anything of the URL that may be secret."""
        secrets = [self.url.password, *(value for value in self.url.query.values() if isinstance(value, str))]
        for secret in filter(None, map(str, (one for one in secrets if one is not None))):
            for form in {secret, quote(secret, safe=""), quote_plus(secret)}:
                text = text.replace(form, "***")
        return " ".join(text.split())[:240]


def address_of(given: str | None, workspace: Path, environment: Mapping[str, str] | None = None) -> Address:
    """The address that a spec gives.

    Parameters
    ----------
    given : str or None
        ``"environment:NAME"`` or a URL; None for the file ``ledger.sqlite`` in the workspace.
    workspace : Path
    environment : mapping of str to str, optional
        By default that of the process.

    Raises
    ------
    SpecError
        If it is no such URL, or the variable is not set. The message never quotes a URL.
    PipelineError
        If the package for PostgreSQL is not installed.
    """
    where = "[ledger] url"
    if given is not None and (variable := _VARIABLE.fullmatch(given)) is not None:
        where = f"the environment variable {variable[1]}, which [ledger] url names,"
        given = (os.environ if environment is None else environment).get(variable[1])
        if not given:
            raise SpecError(f"{where} is not set; set it to the URL of the ledger, {_POSTGRES}://USER@HOST/DATABASE")
    if given is None:
        return Address(URL.create("sqlite", database=str(workspace / FILE)))
    try:
        url = make_url(given.strip())
    except (ArgumentError, ValueError):
        url = None
    if url is None or url.get_backend_name() not in ("postgresql", "sqlite") or not url.database:
        raise SpecError(
            f"{where} is not the URL of a ledger; write {_POSTGRES}://USER@HOST/DATABASE, or sqlite:////PATH/TO/FILE"
        )
    if url.get_backend_name() == "sqlite":
        return _file(url, where)
    if url.drivername not in ("postgresql", _POSTGRES):
        raise SpecError(f"{where} names another driver than the one that funnel uses; write {_POSTGRES}://…")
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise PipelineError(
            "the ledger is in PostgreSQL, and the package for that is not installed: pip install 'funnel[postgres]'"
        ) from None
    return Address(url.set(drivername=_POSTGRES))


def _file(url: URL, where: str) -> Address:
    if url.drivername not in ("sqlite", "sqlite+pysqlite") or url.query or not Path(url.database or "").is_absolute():
        raise SpecError(f"{where} must name a SQLite file by its absolute path, without options: sqlite:////PATH")
    return Address(url)
