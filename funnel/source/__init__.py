"""The source of a release: its categories, and reading it as codes, all streaming; `funnel.readers` open it."""

from funnel.readers.formats import Source, open_source
from funnel.readers.source_files import file_digest
from funnel.sampling import KEY_TYPE, KeyColumn
from funnel.source.coding import Coding, Codings, coded_batches
from funnel.source.columns import resolved_columns
from funnel.source.counting import count_joint, is_wide, over_values, recoded
from funnel.source.fitting import misfits
from funnel.source.learning import learn_codings

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
    "resolved_columns",
]
