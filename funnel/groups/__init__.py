"""Groups of columns: wide tables, published group by group under one bound for the whole record."""

from funnel.groups.effective import EffectiveChannel, Shown
from funnel.groups.making import Schedule
from funnel.groups.protocol import GroupedProtocol
from funnel.groups.publish import GroupedSolution, publish_groups

__all__ = ["EffectiveChannel", "GroupedProtocol", "GroupedSolution", "Schedule", "Shown", "publish_groups"]
