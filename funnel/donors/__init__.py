"""Donors: wide tables, in which a record is published as it is or as another one, under one bound."""

from funnel.donors.wide_tables import ColumnsSolution, fit_columns

__all__ = ["ColumnsSolution", "fit_columns"]
