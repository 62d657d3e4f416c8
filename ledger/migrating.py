"""A database is brought to the version of this code when it is opened, in one transaction; a newer one is refused."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, text

from funnel.errors import LedgerError
from funnel.pipeline.ledger.tables import VERSION, version_of

# Of the lock that whoever migrates or enters something takes for a moment: the ASCII codes of "ledger".
MOMENT = 0x6C6564676572


def migrate(connection: Connection, place: str) -> None:
    """Bring a database to the version of this code; the caller's transaction holds all of it.

    Parameters
    ----------
    connection : Connection
        In a transaction.
    place : str
        Of the ledger, for messages.

    Raises
    ------
    LedgerError
        If the database is of a newer version than this code.
    """
    if connection.dialect.name == "postgresql":
        # Two schedulers that begin a ledger at once.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MOMENT})
    found = version_of(connection, place)
    require_known(found, place)
    if found == VERSION:
        return
    # Slow to import, and needed once in the life of a version.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, str(VERSION))


def require_known(version: int | None, place: str) -> None:
    """Refuse a database of a newer version.

    Raises
    ------
    LedgerError
    """
    if version is not None and version > VERSION:
        raise LedgerError(
            f"the ledger {place} was made by a newer funnel: its version is {version}, and this funnel knows up to "
            f"{VERSION}; install a newer one"
        )
