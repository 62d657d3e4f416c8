"""README.md of a release of groups: what it is, what is promised, and how to estimate a column of it by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from funnel.release.channel_rows import ChannelRow
from funnel.release.handouts.readme import (
    EXAMPLE,
    FILES,
    NO_SPLIT,
    file_table,
    imprint,
    listed,
    named,
    plain,
    promise,
    steps,
)
from funnel.release.privacy_block import KEY

_FILES = {
    **{name: FILES[name] for name in FILES if name.startswith("data/")},
    "protocol.csv": "of every column, the probability of every published value for every true one",
    "channels.parquet": "the same, and that of every two columns together",
    "protocol.json": "how records were drawn, group by group, in whole numbers, with the bound",
    "report.html": "what is promised, and what is kept of every column: for reading",
    **{
        name: FILES[name]
        for name in ("report.json", "datapackage.json", "dcat.jsonld", "CITATION.cff", "signature.json")
    },
}


def grouped_readme(package: Mapping[str, Any], channels: Sequence[ChannelRow]) -> str:
    """The text of the file.

    Parameters
    ----------
    package : JSON object
        Content of ``datapackage.json``.
    channels : sequence of rows
        Of ``channels.parquet``.
    """
    privacy = package[KEY]
    parts = [f"# {plain(package['title'])}"]
    if package.get("description"):
        parts.append(plain(package["description"]))
    parts += [imprint(package), "## What this is", *promise(privacy), "## How to read a value", *_reading()]
    parts += ["## How to estimate from it", *_estimating(privacy, channels), "## Files", file_table(package, _FILES)]
    return "\n\n".join(parts) + "\n"


def _reading() -> Iterator[str]:
    yield (
        'A plain value stands for itself. A value with "or", or with "any but", may come from any of the values it '
        'names or leaves, and "any" from all.'
    )
    yield NO_SPLIT


def _estimating(privacy: Mapping[str, Any], channels: Sequence[ChannelRow]) -> Iterator[str]:
    groups = "; then ".join(listed(group) for group in privacy["groups"])
    yield (
        f"Columns were published in groups, one after the other: {groups}. No one table of probabilities leads to "
        "whole records, so estimate one column at a time, or two together with `channels.parquet`."
    )
    yield (
        f"`{privacy['estimation']['path']}` has one line for every column, true value and published value that it can "
        "become, with the probability of that, on average over all records of this release, and with the share of the "
        f"records that have the true value. {_example(channels)} A line without a true value is about all values "
        "together that few records have, and one without a published value about all that are not listed."
    )
    yield "The shares of the true values of a column follow by arithmetic that any spreadsheet can do:"
    yield steps(
        "Count every published value, those that have no line together, and divide by the number of records: its "
        "published share."
    )
    yield (
        "These are the likeliest shares of all, but for the rounding of the probabilities, which are told to a step of "
        "at least ten of the records that they are about. `funnel estimate --by COLUMN` gives the same with standard "
        "errors, for two columns too, and says how far rounding can be off. Probabilities are averages over all "
        "records: do not use them for a part of these. Where two true values have the same probabilities, only what "
        "both have together can be told."
    )


def _example(channels: Sequence[ChannelRow]) -> str:
    """The commonest value of the first column, and what it is published as most often."""
    rows = [row for row in channels if row[0] == channels[0][0] and row[1] is None]
    told = [row for row in rows if row[2] is not None and row[4] is not None]
    if not told:
        return "Of this release few records have any one value, so none is told by itself."
    # The first of those that are alike.
    common = max(told, key=lambda row: row[6])
    column, _, true, _, shown, _, _, probability = max(
        (row for row in told if row[2] == common[2]), key=lambda row: row[7]
    )
    return (
        f"Of {EXAMPLE:,} records whose {named([str(column)])} is truly {named([str(true)])}, about "
        f"{round(probability * EXAMPLE):,} have {named([str(shown)])} there."
    )
