"""The attacks on a release as figures of the internal report: one record, columns beside it, versions, a forest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from funnel.errors import DataError
from funnel.findings.attacks import Attack, Channel, attack, both_versions, true_value, worst_first
from funnel.findings.learned import learn
from funnel.joint import IntArray, Joint
from funnel.protocol import Protocol
from funnel.release.earlier import Earlier
from funnel.release.internal_report import AttackFigures, LearnedFigures
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.record import Origin
from funnel.source.side_columns import SideKnowledge

# 256 MB of counts.
_MOST_CELLS = 1 << 25
_TOO_LARGE = "there are too many combinations to compute it in the time of a release"


@dataclass(frozen=True)
class Attacks:
    """What attackers learn who know nothing else, another column, other versions; and what a forest learns."""

    alone: AttackFigures
    beside: tuple[AttackFigures, ...]
    versions: tuple[AttackFigures, ...]
    learned: LearnedFigures


def alone(joint: Joint, protocol: Protocol) -> AttackFigures:
    """The attacker who sees one record and knows the frequencies."""
    read = joint.read_by(protocol.inputs.columns)
    return _figures("nothing", attack(read.counts[:, :, np.newaxis], _channel(protocol, read)))


def with_side_columns(joint: Joint, protocol: Protocol, known: SideKnowledge) -> tuple[AttackFigures, ...]:
    """Attackers who know one more column of the source, worst first; then the columns that were left out."""
    read = joint.read_by(protocol.inputs.columns)
    channel = _channel(protocol, read)
    found: list[tuple[str, Attack]] = []
    left: list[AttackFigures] = []
    columns = {column.name: column for column in known.columns}
    for column in known.columns:
        counts = None if column.counts is None else _by_what_is_read(column.counts, joint, read)
        one = None if counts is None else attack(counts, channel)
        if one is None:
            left.append(AttackFigures(knows=column.name, reason=column.reason or _TOO_LARGE))
        else:
            found.append((column.name, one))
    return (
        *(_figures(name, one, columns[name].values, columns[name].classes) for name, one in worst_first(found)),
        *left,
    )


def _by_what_is_read(counts: IntArray, joint: Joint, read: Joint) -> IntArray | None:
    """Counts (c, a, k) by published value as counts by what the protocol reads; None if there are too many."""
    if read is joint:
        return counts
    c, _, k = counts.shape
    if c * len(read.inputs) * k > _MOST_CELLS:
        return None
    spread = np.zeros((c, len(read.inputs), k), dtype=np.int64)
    for s, places in enumerate(_places(joint, read)):
        spread[s, places[places >= 0]] = counts[s, places >= 0]
    return spread


def _places(joint: Joint, read: Joint) -> IntArray:
    """Where each (secret, published value) is in what a protocol reads, shape (c, a); -1 where it never occurs."""
    if read is joint:
        return np.tile(np.arange(len(joint.inputs)), (len(joint.secret), 1))
    pairs = [[read.inputs.get(s + x) for x in joint.inputs.symbols] for s in joint.secret.symbols]
    return np.array(pairs, dtype=np.int64)


def versions(
    joint: Joint, protocol: Protocol, earlier: Sequence[Earlier], origin: Origin, rows_sha256: str
) -> tuple[AttackFigures, ...]:
    """Who links the records of several versions: one more draw, each earlier version, and ever more draws."""
    read = joint.read_by(protocol.inputs.columns)
    channel = _channel(protocol, read)
    figures = [_figures("one more fresh draw by this protocol", both_versions(read.p, channel, channel))]
    for one in sorted((one for one in earlier if one.published), key=lambda one: one.version):
        what = f"version {one.record.version} as well"
        other = _protocol_of(one)
        history = one.record.history
        if one.rows_sha256 == rows_sha256:
            figures.append(_figures(f"{what}: the same rows", attack(read.counts[:, :, np.newaxis], channel)))
        elif history is not None and history.people == "same":
            figures.append(AttackFigures(knows=what, reason="what was drawn follows it, and one bound holds for both"))
        elif other is None or other.inputs.columns != protocol.inputs.columns:
            reason = "its protocol is gone" if other is None else "it reads other columns"
            figures.append(AttackFigures(knows=what, reason=reason))
        elif _same_words(one.record.origin, origin):
            figures.append(_figures(f"{what}: the same answers", attack(read.counts[:, :, np.newaxis], channel)))
        else:
            figures.append(_figures(f"{what}: drawn afresh", both_versions(read.p, channel, _channel(other, read))))
    figures.append(_figures("ever more fresh draws, until what the protocol reads is known", true_value(read.p)))
    return tuple(figures)


def _same_words(before: Origin, origin: Origin) -> bool:
    """Whether a record drew with the same word in both versions, which it does from the same protocol alone."""
    return origin.secret is not None and all(
        getattr(before, name) == getattr(origin, name)
        for name in ("protocol", "fields", "secret", "record_key", "key_kinds")
    )


def learned(known: SideKnowledge, joint: Joint, protocol: Protocol) -> LearnedFigures:
    """What a classifier learns, or why there is none."""
    read = joint.read_by(protocol.inputs.columns)
    sample = known.sample.copy()
    sample[:, 1] = _places(joint, read)[sample[:, 0], sample[:, 1]]
    try:
        found = learn(sample, _channel(protocol, read))
    except ImportError:
        return LearnedFigures(reason="scikit-learn is not installed: install funnel with the extra attacks")
    if found is None:
        return LearnedFigures(reason="there are too few records, or the secret is the same in all of them")
    return LearnedFigures.like(found)


def _channel(protocol: Protocol, joint: Joint) -> Channel:
    if protocol.is_sparse:
        from scipy.sparse import csc_array

        distributions = protocol.sparse_for(joint.inputs).transposed
        return csc_array(
            (distributions.values / np.float64(protocol.denominator), distributions.inputs, distributions.starts),
            distributions.shape[::-1],
        )
    return protocol.weights_for(joint.inputs).astype(float) / float(protocol.denominator)


def _protocol_of(one: Earlier) -> Protocol | None:
    if one.folder is None:
        return None
    try:
        return ProtocolDocument.read(one.folder.protocol).protocol
    except DataError:
        return None


def _figures(knows: str, one: Attack | None, values: int | None = None, classes: bool = False) -> AttackFigures:
    if one is None:
        return AttackFigures(knows=knows, reason=_TOO_LARGE)
    # Sums of many probabilities can miss 1 in the last digit.
    before, after = min(one.before, 1.0), min(max(one.after, one.before), 1.0)
    return AttackFigures(
        knows=knows, values=values, classes=classes, before=before, after=after, information=one.information
    )
