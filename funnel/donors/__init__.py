"""Donors: wide tables, in which a record is published as it is or as somebody else's, by classes of records."""

from funnel.donors.record_classes import Question, RecordClasses
from funnel.donors.wide_tables import ColumnsSolution, fit_columns

__all__ = ["ColumnsSolution", "Question", "RecordClasses", "fit_columns"]
