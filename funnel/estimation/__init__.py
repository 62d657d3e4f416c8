"""What a data user can recover of true frequencies, and how exactly."""

from funnel.estimation.expected_errors import ExpectedErrors, TableErrors, expected_errors, tables_of
from funnel.estimation.information import ShareInformation

__all__ = ["ExpectedErrors", "ShareInformation", "TableErrors", "expected_errors", "tables_of"]
