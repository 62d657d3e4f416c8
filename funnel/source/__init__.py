"""The source of a release: opening it, what its cells mean, its categories, and reading it as codes, all streaming."""

from funnel.sampling import KEY_TYPE, KeyColumn
from funnel.source.coding import Coding, Codings, coded_batches
from funnel.source.columns import settled_columns
from funnel.source.counting import count_joint, is_wide, over_values, recoded
from funnel.source.digest import file_digest
from funnel.source.fitting import misfits
from funnel.source.learning import learn_codings
from funnel.source.reader import Source, open_source

__all__ = [
    "KEY_TYPE",
    "Coding",
    "Codings",
    "KeyColumn",
    "Source",
    "coded_batches",
    "count_joint",
    "file_digest",
    "is_wide",
    "learn_codings",
    "misfits",
    "open_source",
    "over_values",
    "recoded",
    "settled_columns",
]
