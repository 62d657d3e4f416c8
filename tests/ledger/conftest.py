"""What tests of the ledger share: a PostgreSQL server, and a ledger in each kind of database."""

from __future__ import annotations

import pytest

from tests.ledger.servers import Server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str | None:
    """Where a ledger is: the file in its workspace, or an empty schema in a database of a real server."""
    if request.param == "sqlite":
        return None
    server: Server = request.getfixturevalue("postgres")
    return server.schema()
