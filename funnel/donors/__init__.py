"""Donors: wide tables, in which a record is published as it is or as another one, under one bound."""

from funnel.donors.nearest import nearest_known
from funnel.donors.protocol_table import read_protocol, write_protocol
from funnel.donors.wide_tables import ColumnsSolution, fit_columns

__all__ = ["ColumnsSolution", "fit_columns", "nearest_known", "read_protocol", "write_protocol"]
