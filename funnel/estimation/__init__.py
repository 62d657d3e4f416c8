"""What a data user can recover of true frequencies, and how exactly."""

from funnel.estimation.expected_errors import ExpectedErrors, TableErrors, expected_errors

__all__ = ["ExpectedErrors", "TableErrors", "expected_errors"]
