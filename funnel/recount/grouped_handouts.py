"""Handouts of a release of groups, written a second time from its data package and its effective channels.

Nothing of `funnel.release.handouts` is used here: where both write the same bytes, no line of one is wrong alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from funnel.recount.handouts import (
    STEPS,
    TEXTS,
    Json,
    catalogue_again,
    citation_again,
    of_sets,
    quoted_names,
    readme_again,
    shown_text,
)
from funnel.recount.published import in_csv

Texts = tuple[str | None, ...]
Line = tuple[Texts, Texts, Texts, float, float]
"""Columns, true values and published texts, two of each or one and None; share of the input, and probability."""

_ESTIMATING = """Columns were published in groups, one after the other: {groups}. No one table of probabilities leads \
to whole records, so estimate one column at a time, or two together with `channels.parquet`.

`protocol.csv` has one line for every column, true value and published value that it can become, with the \
probability of that, on average over all records of this release, and with the share of the records that have the \
true value. {example} A line without a true value is about all values together that few records have, and one without \
a published value about all that are not listed.

The shares of the true values of a column follow by arithmetic that any spreadsheet can do:

1. Count every published value, those that have no line together, and divide by the number of records: its published \
share.
{steps}

These are the likeliest shares of all, but for the rounding of the probabilities, which are told to a step of at least \
ten of the records that they are about. `funnel estimate --by COLUMN` gives the same with standard errors, for two \
columns too, and says how far rounding can be off. Probabilities are averages over all records: do not use them for a \
part of these. Where two true values have the same probabilities, only what both have together can be told."""
_READING = """A plain value stands for itself. A value with "or", or with "any but", may come from any of the values \
it names or leaves, and "any" from all."""
_FILES = """| protocol.csv | of every column, the probability of every published value for every true one |
| channels.parquet | the same, and that of every two columns together |
| protocol.json | how records were drawn, group by group, in whole numbers, with the bound |
| report.html | what is promised, and what is kept of every column: for reading |
"""


def grouped_handouts_again(
    package: Json, channels: Sequence[Line], previous: str | None, text: int = TEXTS[-1]
) -> dict[str, bytes]:
    """What the handouts of a release of groups have to be, by path.

    Parameters
    ----------
    package : JSON object
        Content of ``datapackage.json``, judged.
    channels : sequence of lines
        Of ``channels.parquet``, judged.
    previous : str or None
        The version before this one that is there.
    text : int
        Which wording, of `funnel.recount.handouts.TEXTS`.

    Raises
    ------
    KeyError, TypeError, ValueError, IndexError
        If these are of no release.
    """
    alone = [line for line in channels if line[0][1] is None]
    groups = "; then ".join(quoted_names(group) for group in package["funnel:privacy"]["groups"])
    estimating = _ESTIMATING.format(groups=groups, example=_example(alone), steps=STEPS)
    return {
        "CITATION.cff": citation_again(package),
        "README.md": readme_again(package, of_sets(_READING, estimating), _FILES, text).encode(),
        "dcat.jsonld": catalogue_again(package, previous).encode(),
        "protocol.csv": _table(alone).encode(),
    }


def _table(alone: Sequence[Line]) -> str:
    lines = ['"column","true value","published value","share","probability"']
    for (column, _), (true, _), (shown, _), share, probability in alone:
        cells = ["" if text is None else '"' + in_csv(text).replace('"', '""') + '"' for text in (column, true, shown)]
        lines.append(",".join([*cells, repr(share), repr(probability)]))
    return "".join(f"{line}\n" for line in lines)


def _example(alone: Sequence[Line]) -> str:
    first = alone[0][0][0]
    told = [line for line in alone if line[0][0] == first and None not in (line[1][0], line[2][0])]
    if not told:
        return "Of this release few records have any one value, so none is told by itself."
    most = max(share for _, _, _, share, _ in told)
    value = next(true for _, (true, _), _, share, _ in told if share == most)
    likely = [
        (-probability, place) for place, line in enumerate(told) for probability in line[4:] if line[1][0] == value
    ]
    probability, place = min(likely)
    column, true, shown = (shown_text(str(part[0])) for part in told[place][:3])
    about = f"{round(-probability * 10_000):,}"
    return f'Of 10,000 records whose "{column}" is truly "{true}", about {about} have "{shown}" there.'
