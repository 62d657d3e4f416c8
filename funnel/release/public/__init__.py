"""What of the counts becomes public, and how precisely: every public figure of a release is made here, rounded first.

Whatever is made of rounded figures afterwards, a table, a chart or a document, tells no more than they do. The exact
figures stay in the internal evidence. Public writers take the frozen types of this room and nothing exact.
"""

from funnel.release.public.comparison import compared, costed, weighed
from funnel.release.public.findings import PublicFindings, PublicRelease
from funnel.release.public.public_distributions import PublicDistributions
from funnel.release.public.rounding import (
    MOST_DIGITS,
    count_of_records,
    in_digits,
    lift_step,
    public_level,
    public_shares,
    public_text,
    rounded_down,
    rounded_up,
    share_step,
)

__all__ = [
    "MOST_DIGITS",
    "PublicDistributions",
    "PublicFindings",
    "PublicRelease",
    "compared",
    "costed",
    "count_of_records",
    "in_digits",
    "lift_step",
    "public_level",
    "public_shares",
    "public_text",
    "rounded_down",
    "rounded_up",
    "share_step",
    "weighed",
]
