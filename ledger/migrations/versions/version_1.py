"""Version 1: the entries, and what they are looked up by."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table of entries."""
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
