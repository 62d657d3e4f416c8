"""The joint law of a spec's source, counted in two streaming passes: categories first, combinations second."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from funnel.alphabet import Alphabet
from funnel.errors import DataError
from funnel.joint import MAX_CELLS, Joint
from funnel.progress import Progress
from funnel.source.coding import Coding, Codings, coded_batches
from funnel.source.learning import learn_codings
from funnel.source.reader import Source, open_source
from funnel.spec import ReleaseSpec


def count_joint(spec: ReleaseSpec, progress: Progress) -> Joint:
    """Counts of (secret, published columns) after recoding, without leaving a file behind.

    Raises
    ------
    DataError
        If the source does not fit the spec, or the published columns have more combinations than the spec allows.
    """
    source = open_source(spec)
    codings = learn_codings(spec, source, progress)
    order = {column: coding.labels for column, coding in codings.items()}
    joint = Joint.from_batches(_told(spec, source, codings, progress), spec.secret, spec.publish, order)
    return over_values(spec, joint, codings)


def over_values(spec: ReleaseSpec, counted: Joint, codings: Mapping[str, Coding]) -> Joint:
    """A joint law over what its symbols have to be: with noise all combinations of values, else those that occur.

    Which combinations occur is told by an alphabet of those that do; that of all combinations tells nothing.

    Parameters
    ----------
    spec : ReleaseSpec
    counted : Joint
    codings : mapping of str to Coding
        The values of every column, in order.

    Raises
    ------
    DataError
        If the published columns have more combinations than the spec allows, or all columns more than can be counted.
    """
    if spec.frequencies.protection != "noise":
        _require_inputs(spec, len(counted.inputs))
        return counted
    values = {column: codings[column].labels for column in spec.columns}
    c, a = (math.prod(len(values[column]) for column in columns) for columns in (spec.secret, spec.publish))
    _require_inputs(spec, a)
    if c * a > MAX_CELLS:
        raise DataError(
            f"{c:,} values of {', '.join(spec.secret)} by {a:,} values of {', '.join(spec.publish)} are too many to "
            "count; group rare values or name fewer columns"
        )
    secret, inputs = (
        Alphabet(columns, tuple(itertools.product(*(values[column] for column in columns))))
        for columns in (spec.secret, spec.publish)
    )
    counts = np.zeros((c, a), dtype=np.int64)
    rows = [secret.index(symbol) for symbol in counted.secret.symbols]
    places = [inputs.index(symbol) for symbol in counted.inputs.symbols]
    counts[np.ix_(rows, places)] = counted.counts
    return Joint(counts, secret, inputs)


def _require_inputs(spec: ReleaseSpec, number: int) -> None:
    """Refuse a joint law over more inputs than a protocol can sensibly be made for."""
    if number > (max_inputs := spec.limits.max_inputs):
        raise DataError(
            f"the columns {', '.join(spec.publish)} have {number:,} combinations, more than the "
            f"{max_inputs:,} of max_inputs in [limits]; publish fewer columns or group rare categories with "
            "minimum_count in [recode]"
        )


def _told(spec: ReleaseSpec, source: Source, codings: Codings, progress: Progress) -> Iterator[pa.RecordBatch]:
    done = 0
    for batch in coded_batches(spec, source, codings):
        yield batch
        done += batch.num_rows
        progress("counting", done, codings.n_rows)
