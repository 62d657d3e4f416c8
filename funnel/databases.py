"""Databases as sources: which address names one, where its password may not be, and what of it may be shown."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from funnel.errors import SpecError

# Those of which both readers know how they keep a snapshot, order texts and name types.
BACKENDS = ("postgresql", "sqlite")
_OTHERS = ("mysql", "mariadb", "mssql", "oracle", "duckdb", "snowflake", "bigquery", "redshift", "cockroachdb")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9]*)(\+[A-Za-z0-9_]+)?://")
_PLAIN = re.compile(r"[a-z+]+://(?:[^@/?#:]*(?::[^@/?#:]*)?@)?([^@/?#]*/[^@/?#:]*)(?:\?[^@]*)?", re.IGNORECASE)
_VARIABLE = re.compile(r"environment:([A-Za-z_][A-Za-z0-9_]*)")
_DRIVERS = {"postgresql": ("", "+psycopg"), "sqlite": ("", "+pysqlite")}
_EXAMPLE = "postgresql+psycopg://reader@db.example/census, sqlite:///people.sqlite, or environment:NAME"


@dataclass(frozen=True)
class Database:
    """A database that is read.

    Attributes
    ----------
    backend : "postgresql" or "sqlite"
    url : str
        As SQLAlchemy writes it; may hold a password where it is from the environment, so it is never shown.
    file : Path or None
        Of SQLite, absolute.
    """

    backend: str
    url: str = field(repr=False)
    file: Path | None = None

    def __str__(self) -> str:
        """The address for people: a path, or a URL without user, password and options."""
        if self.file is not None:
            return str(self.file)
        # Where a password was not escaped, nobody knows where it ends.
        plain = _PLAIN.fullmatch(self.url)
        return "a PostgreSQL database" if plain is None else f"postgresql://{plain[1]}"


def names_database(address: str) -> bool:
    """Whether an address of a spec is that of a database rather than of files."""
    scheme = _SCHEME.match(address)
    named = scheme is not None and scheme[1].lower() in (*BACKENDS, *_OTHERS)
    return named or address.startswith("environment:")


def check_database(address: str) -> str:
    """The address of a database in a spec, after making sure that it can be read and holds no password.

    Raises
    ------
    ValueError
        With a sentence about it that does not repeat it.
    """
    if address.startswith("environment:"):
        if not _VARIABLE.fullmatch(address):
            raise ValueError("must name an environment variable that holds the URL of a database: environment:NAME")
        return address
    if holds_password(address):
        raise ValueError(
            "holds a password, which has no place in a spec; leave it to PGPASSWORD or ~/.pgpass, or put the whole URL "
            "into an environment variable and name it: environment:NAME"
        )
    _backend(address)
    return address


def holds_password(url: str) -> bool:
    """Whether a URL holds something that lets its reader in."""
    authority, _, rest = url.partition("://")[2].partition("/")
    # A slash in a password ends what a parser takes for the host.
    if ":" in authority.rpartition("@")[0] or re.search(r"^[^?]*:[^?]*@", f"{authority}/{rest}"):
        return True
    for name, value in parse_qsl(url.partition("?")[2], keep_blank_values=True):
        is_secret = re.search(r"pass(word|wd|phrase)?$|pwd|secret|token", name, re.IGNORECASE)
        if is_secret or re.search(r"(password|pwd)\s*=", value, re.IGNORECASE):
            return True
    return False


def resolved(address: str, folder: Path, environment: Mapping[str, str] | None = None) -> Database:
    """The database that a spec names.

    Parameters
    ----------
    address : str
        As `check_database` accepts it.
    folder : Path
        Where relative paths start.
    environment : mapping of str to str, optional
        By default that of the process.

    Raises
    ------
    SpecError
        If the variable is not set, or holds no such URL; the message never quotes it.
    """
    url, where = address, "[source] path"
    if (variable := _VARIABLE.fullmatch(address)) is not None:
        where = f"the environment variable {variable[1]}, which [source] path names,"
        url = (os.environ if environment is None else environment).get(variable[1], "").strip()
        if not url:
            raise SpecError(f"{where} is not set; set it to the URL of the database, such as {_EXAMPLE}")
    try:
        backend = _backend(url)
    except ValueError as error:
        raise SpecError(f"{where} {error}") from None
    if backend != "sqlite":
        return Database(backend, url)
    # Three slashes and a relative path, or four and an absolute one, as SQLAlchemy has it.
    given = unquote(urlsplit(url).path)[1:]
    return Database(backend, url, Path(os.path.normpath(folder / given)))


def _backend(url: str) -> str:
    scheme = _SCHEME.match(url)
    backend = "" if scheme is None else scheme[1].lower()
    if backend not in BACKENDS:
        raise ValueError(f"is not the URL of a database that is read; PostgreSQL and SQLite are, as {_EXAMPLE}")
    if scheme is not None and (scheme[2] or "") not in _DRIVERS[backend]:
        raise ValueError(f"names another driver than the one that is used; write {backend}{_DRIVERS[backend][1]}://…")
    try:
        parts = urlsplit(url)
    except ValueError:
        # Its message quotes what it could not split.
        parts = None
    if parts is None:
        raise ValueError(f"is not the URL of a database; write it as {_EXAMPLE}")
    if backend == "sqlite" and (parts.netloc or parts.query or len(parts.path) < 2):
        raise ValueError(
            "must name a SQLite file without options: sqlite:///people.sqlite, or sqlite:////srv/people.sqlite"
        )
    if backend == "postgresql" and len(parts.path) < 2:
        raise ValueError("names no database; write postgresql+psycopg://USER@HOST/DATABASE")
    return backend
