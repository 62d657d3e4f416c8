"""Migrations of the ledger's database, which alembic runs when a ledger is opened."""
