"""Recount: everything a release is judged by, computed a second time and by code that no release is made with.

Counts come from the source itself, through other readers; levels come from the text of the guarantee, in plain
fractions. Nothing of what makes a release is imported here (an import contract holds that), so that one mistake, or one
sabotaged line, is not made twice.
"""

from funnel.recount.information import PlainInformation, plain_information
from funnel.recount.levels import PlainLevel, plain_level
from funnel.recount.promise import Promise, declared_promise, read_promise
from funnel.recount.published import count_published
from funnel.recount.released import ReleasedProtocol
from funnel.recount.source import Recount, recount, source_digest

__all__ = [
    "PlainInformation",
    "PlainLevel",
    "Promise",
    "Recount",
    "ReleasedProtocol",
    "count_published",
    "declared_promise",
    "plain_information",
    "plain_level",
    "read_promise",
    "recount",
    "source_digest",
]
