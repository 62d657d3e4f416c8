"""protocol.csv of a release of groups: what becomes of every column by itself, one line for each two texts."""

from __future__ import annotations

from collections.abc import Iterable

from funnel.release.channel_rows import ChannelRow
from funnel.release.csv_cells import guarded

_HEAD = ("column", "true value", "published value", "share", "probability")


def grouped_channel_table(channels: Iterable[ChannelRow]) -> str:
    """The effective channels of the columns as a csv, in the order of ``channels.parquet``.

    ``share`` is that of the records with the true value. Values that few records have together, and texts that are not
    told, are empty cells without quotation marks. Pairs of columns are left to the parquet file.

    Parameters
    ----------
    channels : iterable of rows
        Of ``channels.parquet``.
    """
    lines = [",".join(map(_cell, _HEAD))]
    for column, second, true, _, shown, _, share, probability in channels:
        if second is None:
            texts = (None if text is None else guarded(text) for text in (column, true, shown))
            lines.append(f"{','.join(map(_cell, texts))},{share!r},{probability!r}")
    return "\n".join(lines) + "\n"


def _cell(text: str | None) -> str:
    """In quotation marks, as in the csv of the records; nothing where there is no text."""
    if text is None:
        return ""
    doubled = text.replace('"', '""')
    return f'"{doubled}"'
