"""What alembic runs to migrate a ledger: on the connection, and in the transaction, of whoever opens it."""

from __future__ import annotations

from alembic import context

from funnel.pipeline.ledger.tables import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    version_table=VERSION_TABLE,
    # SQLite can do it too: a migration that is killed leaves the database as it was.
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
