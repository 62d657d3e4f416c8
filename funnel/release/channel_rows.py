"""The rows of channels.parquet as their readers take them: nothing of it but that it is such a table is known here."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from funnel.errors import DataError
from funnel.tables import open_paged

FEWEST = 500
"""A channel is told of inputs that so many records have: the step of its probabilities is then at most .02."""
TEXTS = ("first", "second", "true_first", "true_second", "published_first", "published_second")
NUMBERS = ("share", "probability")

ChannelRow = tuple[str | None, str | None, str | None, str | None, str | None, str | None, float, float]
"""Two columns, or one and None; their true values, or None for those that few records have; the published texts, or
None for all that are not told; the share of the records with these values, and the probability of these texts."""


def read_channel_rows(path: Path) -> list[ChannelRow]:
    """The rows of a ``channels.parquet``, in their order.

    Parameters
    ----------
    path : Path

    Raises
    ------
    DataError
        If it cannot be read, or is no such table.
    """
    try:
        with open_paged(path) as file:
            table = file.read()
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as parquet; the release is damaged") from error
    if table.column_names != [*TEXTS, *NUMBERS]:
        raise DataError(f"{path} is no table of effective channels; the release is damaged")
    columns = [table.column(name).to_pylist() for name in table.column_names]
    if any(one is None for name in ("first", *NUMBERS) for one in table.column(name).to_pylist()):
        raise DataError(f"{path} has a row without column, share or probability; the release is damaged")
    return list(zip(*columns, strict=True))
