"""Disclosure control: what officers ask of a table before it is published, and the grouping that gives it."""

from funnel.disclosure.grouping import Grouping, best_grouping
from funnel.disclosure.rules import Disclosure
from funnel.disclosure.table import Table
from funnel.settings.disclosure_rules import Rules

__all__ = ["Disclosure", "Grouping", "Rules", "Table", "best_grouping"]
