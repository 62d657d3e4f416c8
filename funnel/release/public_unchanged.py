"""What stays as it is in an invariant release, and what its observers can conclude: told of public figures alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import combinations

import numpy as np

from funnel.donors.composition import Composition
from funnel.findings.of_release import Audited
from funnel.guarantees import Guarantee
from funnel.guarantees.reading import reads_secret
from funnel.guarantees.several import parts_of
from funnel.joint import FloatArray, IntArray, Joint
from funnel.measures.unchanged_shares import unchanged
from funnel.protocol import DENOMINATOR, Protocol
from funnel.release.counted_as_usual import CountsOff, GroupStays, WholeStays
from funnel.release.public.public_distributions import PublicDistributions
from funnel.release.public.rounding import public_level, rounded_up
from funnel.release.public_accuracy import estimated
from funnel.release.report_parts import (
    ColumnUnchanged,
    FollowedCounts,
    KnownColumns,
    Level,
    Observer,
    SecretUnchanged,
    TableOff,
    Unchanged,
    WholeColumn,
    WholeUnchanged,
)

# Cells with a smaller share of the records than this are the rare ones.
RARE = 0.001
# Values of the secret that are told of, the most common ones.
MAX_VALUES = 30
_DIGITS = 2
# Observers whose tables of secret, value and output would have more entries in all are not computed.
_LARGEST = 20_000_000
# A change of belief by exactly the bound is within it.
_HAIR = 1e-9


def public_unchanged(
    audited: Audited,
    protocol: Protocol,
    guarantee: Guarantee,
    distributions: PublicDistributions,
    composition: Composition | None = None,
    whole: WholeStays | None = None,
    followed: CountsOff | None = None,
) -> Unchanged | None:
    """What is told of an invariant protocol under public frequencies, in steps of public shares; None of any other.

    Parameters
    ----------
    audited : Audited
    protocol : Protocol
        Whose outputs are its inputs.
    guarantee : Guarantee
        The declared one.
    distributions : PublicDistributions
    composition : Composition, optional
        Of the classes of whole records.
    whole : WholeStays, optional
        Of these records.
    followed : CountsOff, optional
        Of such records of the same people.
    """
    if not protocol.is_invariant:
        return None
    counted = audited.frequencies.joint.as_published
    joint = counted.read_by(protocol.inputs.columns)
    found = unchanged(joint, protocol)
    weights = protocol.weights_for(joint.inputs) / float(DENOMINATOR)
    p, stays = joint.p_input, found.by_value
    rare = (p > 0) & (p < RARE)
    in_units = audited.history is not None and audited.history.units is not None
    alone = audited.drawn == 1
    return Unchanged(
        share=distributions.share(found.share),
        error=rounded_up(math.sqrt(float((weights * (1 - weights) @ p).max()) / joint.n), _DIGITS),
        any_error=None if in_units else rounded_up(math.sqrt(float(_most_spread(stays) @ p) / joint.n), _DIGITS),
        columns=tuple(
            ColumnUnchanged(column=column, share=distributions.share(share))
            for column, share in zip(joint.inputs.columns, found.by_column.tolist(), strict=True)
        ),
        secrets=_by_secret(joint, weights, found.by_secret, guarantee, distributions),
        secrets_total=len(joint.secret),
        rare_records=distributions.share(float(p[rare].sum())),
        rare_unchanged=distributions.share(float(p[rare] @ stays[rare] / p[rare].sum())) if rare.any() else None,
        exact_records=distributions.share(found.exact_share),
        unique=int(alone.sum()),
        unique_unchanged=distributions.share(float(stays[alone].mean())) if alone.any() else None,
        observers=_observers(joint, counted, weights, guarantee, distributions),
        off=None if composition is None or not reads_secret(joint) else _off(composition, protocol),
        known=() if composition is None else _known(composition, protocol, guarantee, distributions),
        at_once=0 if composition is None else composition.classes.at_once,
        whole=None if whole is None else _whole(whole, distributions.share(found.share), distributions),
        followed=None if followed is None else _counts_off(followed),
    )


def _most_spread(stays: FloatArray) -> FloatArray:
    """The variance of whether a record is counted, at most, whatever is counted, where it stays as it is with a chance.

    A record that is counted if it stays is counted at least as likely as it stays; one that is not is counted at most
    as likely as it changes. The variance of what is as likely as not is 1/4.
    """
    likelier = np.maximum(stays, 0.5)
    return np.asarray(likelier * (1 - likelier))


def _whole(found: WholeStays, share: float, distributions: PublicDistributions) -> WholeUnchanged:
    """Figures of whole records, of which a share stays in all columns."""
    true = found.unique_stays
    return WholeUnchanged(
        columns=tuple(
            _whole_column(name, min(1.0, share + of), found.groups[name], distributions)
            for name, of in found.agree.items()
        ),
        estimated=estimated(found.errors, partial(rounded_up, digits=_DIGITS)),
        unique=found.unique,
        unique_unchanged=None if true is None else distributions.share(true),
    )


def _whole_column(
    name: str, share: float, groups: GroupStays | None, distributions: PublicDistributions
) -> WholeColumn:
    return WholeColumn(
        column=name,
        share=distributions.share(share),
        typical=None if groups is None else distributions.share(groups.typical),
        least=None if groups is None else distributions.share(groups.least),
        worst=None if groups is None else groups.worst,
    )


def _known(
    composition: Composition, protocol: Protocol, guarantee: Guarantee, distributions: PublicDistributions
) -> tuple[KnownColumns, ...]:
    found = []
    for one in composition.concluded(protocol, guarantee.budget):
        shown = public_level(one.level, guarantee, True)
        level: Level = "infinite" if math.isinf(shown) else shown
        found.append(
            KnownColumns(columns=one.columns, level=level, outside=min(1.0, distributions.share_above(one.outside)))
        )
    return tuple(found)


def _off(composition: Composition, protocol: Protocol) -> TableOff:
    off = np.abs(composition.off(protocol))
    s, cell = np.unravel_index(int(off.argmax()), off.shape)
    column, value = composition.cells[cell]
    return TableOff(
        secret=composition.secret.labels[int(s)],
        column=column,
        value=value,
        records=rounded_up(float(off[s, cell]), _DIGITS),
    )


def _counts_off(found: CountsOff) -> FollowedCounts:
    return FollowedCounts(
        factor=rounded_up(found.factor, _DIGITS),
        column=found.column,
        value=found.value,
        errors=rounded_up(found.errors, _DIGITS),
    )


def _by_secret(
    joint: Joint, weights: FloatArray, whole: FloatArray, guarantee: Guarantee, distributions: PublicDistributions
) -> tuple[SecretUnchanged, ...]:
    """By value of the secret: records that stay whole, and where it is published how often it stays itself."""
    columns, limits = joint.secret.columns, guarantee.lift_limits
    width = len(columns)
    published = joint.inputs.columns[:width] == columns
    same = np.zeros(len(joint.inputs))
    if published:
        of = np.array([joint.secret.index(symbol[:width]) for symbol in joint.inputs.symbols])
        same = (weights * (of[:, np.newaxis] == of)).sum(axis=0)
    told = []
    for s in np.argsort(-distributions.p_secret, kind="stable")[:MAX_VALUES].tolist():
        distribution, prior = joint.input_given_secret[s], float(joint.p_secret[s])
        most = None if not published or limits is None else min(1.0, limits[1] * prior)
        told.append(
            SecretUnchanged(
                label=joint.secret.labels[s],
                prior=float(distributions.p_secret[s]),
                share=distributions.share(float(np.nan_to_num(whole[s]))),
                stays=distributions.share(float(distribution @ same)) if published else None,
                at_most=None if most is None else distributions.share_above(most),
            )
        )
    return tuple(told)


def _observers(
    joint: Joint, counted: Joint, weights: FloatArray, guarantee: Guarantee, distributions: PublicDistributions
) -> tuple[Observer, ...]:
    """What observers of a record can conclude who know none, one, two, or all of its other true values."""
    columns = counted.inputs.columns
    sizes = sorted({0, 1, min(2, len(columns)), len(columns)})
    known = [(size, some) for size in sizes for some in combinations(range(len(columns)), size)]
    if len(known) * weights.size * len(joint.secret) > _LARGEST:
        return ()
    first = len(joint.inputs.columns) - len(columns)
    found: dict[int, list[tuple[float, float]]] = {size: [] for size in sizes}
    # Between parts of classes the smallest bound is for observers of no column, and of all; srlip for those of some.
    bound = guarantee if joint.parts is None else min(parts_of(guarantee), key=lambda part: part.budget)
    for size, some in known:
        found[size].append(_concluded(joint, weights, [first + j for j in some], bound.budget))
    return tuple(_observer(size, len(columns), found[size], bound, distributions) for size in sizes)


def _observer(
    size: int, columns: int, found: list[tuple[float, float]], guarantee: Guarantee, distributions: PublicDistributions
) -> Observer:
    level, outside = (max(values) for values in zip(*found, strict=True))
    shown = public_level(level, guarantee, True)
    return Observer(
        known=size,
        columns=columns,
        level="infinite" if math.isinf(shown) else shown,
        outside=min(1.0, distributions.share_above(outside)),
    )


def _concluded(joint: Joint, weights: FloatArray, known: list[int], budget: float) -> tuple[float, float]:
    """Largest change of a belief in a secret, nats, and share of the records that change one by more than a budget."""
    level, outside = 0.0, 0.0
    for some in _alike(joint, known):
        table = joint.p[:, some]
        prior, mass = table.sum(axis=1), table.sum()
        shown = table @ weights[:, some].T
        distribution = shown.sum(axis=0)
        there = (prior > 0)[:, np.newaxis] & (distribution > 0)
        with np.errstate(divide="ignore"):
            change = np.abs(np.log(shown * mass / np.where(there, np.outer(prior, distribution), 1.0)))
        # What is below the rounding of these sums is no change.
        change = np.where(there & (change > _HAIR), change, 0.0)
        most = change.max(axis=0)
        level = max(level, float(most.max()))
        outside += float(distribution[most > budget * (1 + _HAIR) + _HAIR].sum())
    return level, outside


def _alike(joint: Joint, columns: list[int]) -> Iterator[IntArray]:
    """The inputs that occur, by what they have in some columns."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for x, symbol in enumerate(joint.inputs.symbols):
        if joint.p_input[x] > 0:
            groups.setdefault(tuple(symbol[j] for j in columns), []).append(x)
    for some in groups.values():
        yield np.array(some)
