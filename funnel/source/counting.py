"""The joint distribution of a spec's source, counted in two streaming passes: categories first, combinations second."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from funnel.errors import DataError
from funnel.frequencies.widening import n_possible, widened
from funnel.joint import Joint
from funnel.mechanisms.memory import largest_table
from funnel.progress import Progress
from funnel.protocol import INVARIANT
from funnel.readers.formats import Source, open_source
from funnel.settings.recode import Recode
from funnel.source.binned import automatic_bins
from funnel.source.coding import Codings, coded_batches
from funnel.source.fitting import require_few_set_aside
from funnel.source.held_out import those_that_choose
from funnel.source.learning import learn_codings
from funnel.spec import ReleaseSpec

# An invariant channel over more combinations than this takes minutes. Where no mechanism is named, sets of values may
# still be the better release of a few more.
MOST_OUTPUTS, MOST_BY_DEFAULT = 500, 1_500


def count_joint(
    spec: ReleaseSpec,
    progress: Progress,
    source: Source | None = None,
    codings: Codings | None = None,
    seen: Callable[[pa.RecordBatch], None] | None = None,
) -> Joint:
    """Counts of (secret, published columns) after recoding, without leaving a file behind.

    Parameters
    ----------
    spec : ReleaseSpec
    progress : callable
    source : Source, optional
        The source of the spec, if it is open already.
    codings : Codings, optional
        Its codings, if they are known already.
    seen : callable, optional
        Told of the rows that are counted, as `coded_batches` tells; the source must then have been opened with
        ``spec.reading``.

    Raises
    ------
    DataError
        If the source does not fit the spec, or the published columns have more combinations than the spec allows.
    """
    source = open_source(spec) if source is None else source
    codings = recoded(spec, source, progress) if codings is None else codings
    spec = codings.settled(spec)
    order = {column: coding.labels for column, coding in codings.items()}
    joint = Joint.from_batches(_counted(spec, source, codings, progress, seen), spec.secret, spec.inputs, order)
    return over_values(spec, joint, codings)


def count_choosing(
    spec: ReleaseSpec, batches: Iterable[pa.RecordBatch], order: Mapping[str, Sequence[str]]
) -> Joint | None:
    """The same of the records that choose the classes, from all that are counted; None where none is held out."""
    share = spec.groups.held_out
    return Joint.from_batches(those_that_choose(batches, share), spec.secret, spec.inputs, order) if share else None


def choosing_in_source(spec: ReleaseSpec, source: Source, codings: Codings) -> Joint | None:
    """`count_choosing` of the records of a source."""
    spec = codings.settled(spec)
    order = {column: coding.labels for column, coding in codings.items()}
    return count_choosing(spec, coded_batches(spec, source, codings), order)


def recoded(spec: ReleaseSpec, source: Source, progress: Progress) -> Codings:
    """The categories of a source: as `learn_codings` finds them, and under a threshold grouped until no count is small.

    The source is read twice more where values have to be grouped, and twice for every column whose bins are to be
    found. What is grouped, and which bins were found, is in the codings, so that whoever
    reads the source with `Codings.settled` sees groups only.

    Raises
    ------
    DataError
        As `learn_codings`; and if no grouping meets the threshold.
    """
    bins = {column: _written(one) for column, one in automatic_bins(spec, source, progress).items()}
    spec = Codings((), 0, recode=bins).settled(spec)
    codings = replace(learn_codings(spec, source, progress), recode=bins)
    require_few_set_aside(spec, codings)
    if not spec.frequencies.kind.groups_values:
        return codings
    # Imported here: what is suggested is about codings.
    from funnel.disclosure.blank import blank_columns, why_blank
    from funnel.disclosure.threshold import class_recode, threshold_recode

    joint = Joint.from_batches(_counted(spec, source, codings, progress), spec.secret, spec.inputs, codings.labels)
    found, wide = None, is_wide(spec, joint, codings)
    if not wide and (blank := blank_columns(spec, found := threshold_recode(spec, joint))):
        # A record keeps its columns where whole ones are drawn.
        wide = _draws_classes(spec) and spec.not_by_class is None
        if not wide:
            raise DataError(why_blank(spec, blank))
        codings = replace(codings, by_class=True)
    recode = class_recode(spec, joint) if wide else {} if found is None else dict(found.recode)
    if not recode:
        return codings
    grouped = replace(codings, recode={**bins, **{column: _written(one) for column, one in recode.items()}})
    made = learn_codings(grouped.settled(spec), source, progress)
    kept = 1.0
    if not wide and found is not None:
        left, asked = (one.over_published(spec.publish).entropy for one in (found.joint, joint))
        kept = left / asked
    return replace(made, recode=grouped.recode, by_class=codings.by_class, grouping_kept=kept)


def _written(recode: Recode) -> str:
    return recode.model_dump_json(exclude_unset=True)


def over_values(spec: ReleaseSpec, counted: Joint, codings: Codings) -> Joint:
    """Counts over the symbols of a joint distribution: under noise all combinations of values, else those that occur.

    Raises
    ------
    DataError
        If there are more of them than the spec, or noise, allows.
    """
    if is_wide(spec, counted, codings):
        return counted
    noisy = spec.frequencies.kind.is_noisy
    joint = widened(counted, codings.labels, impossible=spec.impossible) if noisy else counted
    require_inputs(joint, spec.limits.max_inputs)
    return joint


def is_wide(spec: ReleaseSpec, counted: Joint, codings: Codings) -> bool:
    """Whether records are counted and drawn by their class: too many combinations of values to be outputs each."""
    if not _draws_classes(spec):
        return False
    if codings.by_class or spec.groups.classes is not None or spec.groups.at_once:
        return True
    # Where nothing is asked for, what is usual is done where that is possible.
    if spec.mechanism.name == "auto" and spec.not_by_class is not None:
        return False
    combinations = len(counted.inputs)
    if spec.frequencies.kind.is_noisy:
        combinations = n_possible(spec.inputs, codings.labels, spec.impossible)
    return spec.groups.auto or combinations > (MOST_OUTPUTS if spec.mechanism.name == INVARIANT else MOST_BY_DEFAULT)


def _draws_classes(spec: ReleaseSpec) -> bool:
    """Whether a spec has a mechanism that draws classes of records."""
    return spec.mechanism.name in (INVARIANT, "auto") and not spec.mechanism.reads_secret


def require_inputs(joint: Joint, max_inputs: int) -> None:
    """Refuse a joint distribution over more inputs than a protocol can sensibly be made for.

    Raises
    ------
    DataError
        With what to change in the spec.
    """
    if len(joint.inputs) > max_inputs:
        raise DataError(_too_many(joint, max_inputs))


def _too_many(joint: Joint, max_inputs: int) -> str:
    return (
        f"the columns {', '.join(joint.inputs.columns)} have {len(joint.inputs):,} combinations, more than the "
        f"{max_inputs:,} of max_inputs in [limits]; raise it, publish fewer columns, or group rare categories with "
        f"minimum_count in [recode]: under lip, alip, ldp or pml for counts without noise memory is the limit, any "
        f"other protocol can be made for at most {largest_table():,}"
    )


def _counted(
    spec: ReleaseSpec,
    source: Source,
    codings: Codings,
    progress: Progress,
    seen: Callable[[pa.RecordBatch], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    done = 0
    for batch in coded_batches(spec, source, codings, seen=seen):
        yield batch
        done += batch.num_rows
        progress("counting", done, codings.n_rows)
