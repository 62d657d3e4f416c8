"""Version 1: the entries, what they are looked up by, and triggers that refuse to change, remove or reorder them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None
branch_labels = None
depends_on = None

_SQLITE = (
    """
    CREATE TRIGGER funnel_ledger_keeps_content BEFORE UPDATE ON funnel_ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: no entry is changed'); END
    """,
    """
    CREATE TRIGGER funnel_ledger_keeps_entries BEFORE DELETE ON funnel_ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: no entry is removed'); END
    """,
    # INSERT OR REPLACE removes a row without the trigger above, which is what this one sees.
    """
    CREATE TRIGGER funnel_ledger_goes_on BEFORE INSERT ON funnel_ledger
    WHEN NEW.serial IS NOT (SELECT COALESCE(MAX(serial), 0) + 1 FROM funnel_ledger)
        OR EXISTS (SELECT 1 FROM funnel_ledger WHERE serial = NEW.serial - 1 AND digest IS NOT NEW.previous)
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: an entry follows the last one'); END
    """,
)

_POSTGRES = (
    """
    CREATE FUNCTION funnel_ledger_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'the ledger is append-only: no entry is changed or removed'; END $$
    """,
    """
    CREATE TRIGGER funnel_ledger_keeps_entries BEFORE UPDATE OR DELETE OR TRUNCATE ON funnel_ledger
    FOR EACH STATEMENT EXECUTE FUNCTION funnel_ledger_is_append_only()
    """,
    """
    CREATE FUNCTION funnel_ledger_follows() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE last record;
    BEGIN
        EXECUTE format('SELECT serial, digest FROM %I.%I ORDER BY serial DESC LIMIT 1', TG_TABLE_SCHEMA, TG_TABLE_NAME)
        INTO last;
        IF NEW.serial <> COALESCE(last.serial, 0) + 1 OR NEW.previous <> COALESCE(last.digest, NEW.previous) THEN
            RAISE EXCEPTION 'the ledger is append-only: an entry follows the last one';
        END IF;
        RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER funnel_ledger_goes_on BEFORE INSERT ON funnel_ledger
    FOR EACH ROW EXECUTE FUNCTION funnel_ledger_follows()
    """,
)


def upgrade() -> None:
    """Make the table of entries and its triggers."""
    op.create_table(
        "funnel_ledger",
        sa.Column("serial", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("previous", sa.String(64), nullable=False, unique=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("series", sa.Text(), nullable=False),
        sa.Column("register", sa.Text()),
        sa.Column("version", sa.Text()),
    )
    op.create_index("funnel_ledger_series", "funnel_ledger", ["series", "serial"])
    op.create_index("funnel_ledger_register", "funnel_ledger", ["register", "serial"])
    for statement in _POSTGRES if op.get_bind().dialect.name == "postgresql" else _SQLITE:
        op.execute(statement)
