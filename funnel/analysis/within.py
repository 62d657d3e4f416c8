"""Within: a number for every released record, drawn from what its published value stands for, by public files alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.alphabet import Alphabet
from funnel.analysis.estimated import PublishedNumbers, published_numbers
from funnel.errors import DataError, SpecError
from funnel.joint import FloatArray
from funnel.readers.cells import number_in
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.public.public_distributions import posterior_of, sources_of
from funnel.release.public.rounding import share_step
from funnel.sampling.random_words import WordArray, WordSource, WordStream

# Values are drawn by posteriors in so many parts.
_PARTS = 1_000_000


@dataclass(frozen=True)
class Interval:
    """Numbers between two, both included; whole ones only, or all."""

    low: float
    high: float
    whole: bool

    def drawn(self, number: int, words: WordSource) -> FloatArray:
        """So many numbers, each alike: exactly where they are whole, else one of 2^53 that are evenly apart."""
        if self.whole:
            return self.low + below(int(self.high - self.low) + 1, number, words).astype(np.float64)
        parts = (words(number) >> np.uint64(11)).astype(np.float64) / 2.0**53
        return np.asarray(self.low + (self.high - self.low) * parts)


def below(limit: int, number: int, words: WordSource) -> WordArray:
    """So many whole numbers from 0 to ``limit`` - 1, exactly uniform: words that favour the first are drawn again.

    Parameters
    ----------
    limit : int
        At most 2^63.
    number : int
    words : callable
        Uniform 64-bit words.
    """
    most = np.uint64(2**64 // limit * limit - 1)
    found = words(number)
    while (again := found > most).any():
        found = np.where(again, words(number), found)
    return np.asarray(found % np.uint64(limit))


def draw_within(folder: ReleaseFolder, column: str | None = None, words: WordSource | None = None) -> pa.Table:
    """The records of a published release with a number for each, drawn from what its published value stands for.

    First a true value, with the posterior of the published one, which follows from ``protocol.json``; then, where that
    is a bin, a number of its interval as ``datapackage.json`` has it, every one alike. So the number is a function of
    the published value, of public files and of fresh randomness: it tells nothing that the release does not tell, and
    is independent of the true number given what is published.

    Parameters
    ----------
    folder : ReleaseFolder
    column : str, optional
        The column of numbers, where several are published.
    words : callable, optional
        Uniform 64-bit words; by default those of AES-256, keyed by the operating system.

    Returns
    -------
    pyarrow.Table
        The published columns, and ``COLUMN (drawn)``: float64, null where the value that was drawn has no number, such
        as a missing one.

    Raises
    ------
    SpecError
        If the release has several columns and none is named, or none of that name.
    DataError
        If there is no release, a file of it cannot be read, a value stands for no number, or a record has one that the
        protocol does not know.
    """
    document = ProtocolDocument.read(folder.protocol)
    published = document.outputs.columns
    if column is None and len(published) == 1:
        column = published[0]
    if column is None or column not in published:
        raise SpecError(f"name the column of numbers, one of {', '.join(published)}")
    place = published.index(column)
    told = published_numbers(folder).get(column, PublishedNumbers())
    intervals = {label: Interval(low, high, told.whole) for label, (low, high) in told.intervals.items()}
    symbols = [symbol[place] for symbol in document.prior.symbols]
    numbers = {label: intervals.get(label, number_in(label)) for label in dict.fromkeys(symbols)}
    if all(number is None for number in numbers.values()):
        raise DataError(f"the values of {column!r} stand for no numbers; give their range under [numbers] in the spec")
    source = WordStream().words if words is None else words
    table = pq.read_table(folder.data)
    texts = list(zip(*(table[name].to_pylist() for name in published), strict=True))
    places: dict[tuple[str, ...], list[int]] = {}
    for row, symbol in enumerate(texts):
        places.setdefault(symbol, []).append(row)
    posteriors = _posteriors(document, len(texts))
    drawn = np.full(len(texts), np.nan)
    for symbol, at in places.items():
        if symbol not in posteriors:
            raise DataError(
                f"protocol.json tells nothing of the published value {' · '.join(map(str, symbol))!r}, so no number "
                "can be drawn for it; fetch the release again"
            )
        inputs, shares = posteriors[symbol]
        drawn[at] = _of_output([symbols[x] for x in inputs], shares, numbers, len(at), source)
    return table.append_column(f"{column} (drawn)", pa.array(drawn, mask=np.isnan(drawn)))


def _posteriors(document: ProtocolDocument, records: int) -> dict[tuple[str, ...], tuple[list[int], list[float]]]:
    """Of every published value positions in the prior of the true ones that it may come from, and how likely each is.

    Where the secret is read they are in the document, else they follow from weights and prior.
    """
    if document.posterior is not None:
        told = ((entry.output, entry.inputs) for entry in document.posterior if entry.inputs)
        return {output: ([int(x) for x in inputs], list(inputs.values())) for output, inputs in told}
    shares = np.array(document.prior.probabilities)
    posterior, distribution = posterior_of(
        document.protocol, Alphabet(document.prior.columns, document.prior.symbols), shares, share_step(records)
    )
    rows = ((y, sources_of(posterior, y)) for y in np.flatnonzero(distribution > 0).tolist())
    return {document.outputs.symbols[y]: (inputs.tolist(), part.tolist()) for y, (inputs, part) in rows}


def _of_output(
    values: Sequence[str],
    posterior: Sequence[float],
    numbers: Mapping[str, Interval | float | None],
    number: int,
    words: WordSource,
) -> FloatArray:
    """So many numbers for one published value; not a number where the true value that was drawn has none."""
    ends = np.cumsum([round(share * _PARTS) for share in posterior])
    chosen = np.searchsorted(ends, below(int(ends[-1]), number, words).astype(np.int64), side="right")
    found = np.full(number, np.nan)
    for x, value in enumerate(values):
        here, stands_for = chosen == x, numbers[value]
        if isinstance(stands_for, Interval):
            found[here] = stands_for.drawn(int(here.sum()), words)
        elif stands_for is not None:
            found[here] = stands_for
    return found
