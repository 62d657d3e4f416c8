"""Chapters on disk: what a version said of all histories, as tables of its entry, and read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from funnel.errors import FunnelError, SpecError
from funnel.frequencies.moves import NoisyMoves
from funnel.history.changes import Changes, MoveLimits
from funnel.history.expected import Expected
from funnel.history.mover_stayer import changes_without_class, class_cells, without_class
from funnel.history.past import Chapter, wave_name
from funnel.joint import IntArray, Joint
from funnel.protocol import Protocol
from funnel.register.entry import CHANGES, CHANNELS, EFFECTIVE, EXPECTED, FOLLOWED, NODES, RegisterEntry
from funnel.register.entry_files import (
    damaged,
    dense,
    dense_channel,
    node_columns,
    read_table,
    sparse,
    sparse_channel,
    write_table,
)


def write_chapter(
    folder: Path,
    chapter: Chapter,
    since: Mapping[int, Changes],
    distributions: Sequence[tuple[str, Joint]],
    expected: Expected | None = None,
) -> dict[str, str]:
    """Write the tables of a chapter, with changes by the ordinals of entries; their SHA-256 (hex), by name.

    Parameters
    ----------
    folder : Path
    chapter : Chapter
    since : mapping of int to Changes
        Exact ones, by class where the chapter has them so; none where the entry has noisy tables.
    distributions : sequence of (str, Joint)
        Name and distribution of every entry before it.
    expected : Expected, optional
        With noise: who is expected to have which history from then on.
    """
    of_expected = (
        ()
        if expected is None
        else (
            (
                EXPECTED,
                {
                    "node": np.concatenate([expected.nodes, -1 - np.arange(len(expected.lost))]),
                    "people": np.concatenate([expected.people, expected.lost]),
                },
            ),
        )
    )
    return {
        name: write_table(folder, name, columns)
        for name, columns in (
            (NODES, node_columns(chapter.parents, chapter.outputs)),
            (CHANGES, _change_columns(chapter, since, distributions)),
            (CHANNELS, sparse(chapter.library)),
            (FOLLOWED, {"node": chapter.followed, "channel": chapter.drawn_from}),
            (EFFECTIVE, sparse_channel(chapter.channel.weights, chapter.channel.marginal)),
            *of_expected,
        )
    }


def _change_columns(
    chapter: Chapter, since: Mapping[int, Changes], distributions: Sequence[tuple[str, Joint]]
) -> dict[str, IntArray]:
    """Changes by the ordinals of entries as the columns of their table."""
    pieces = []
    for ordinal in sorted(since):
        one = since[ordinal]
        before, after = one.before, one.after
        was = now = np.zeros(len(before), dtype=bool)
        if chapter.by_class is not None:
            before, was = without_class(before, len(distributions[ordinal][1].inputs))
            after, now = without_class(after, len(chapter.joint.inputs))
        pieces.append((np.full(len(before), ordinal, dtype=np.int64), before, after, was, now, one.records))
    columns = [np.concatenate(column) for column in zip(*pieces, strict=True)] or [np.empty(0, dtype=np.int64)] * 6
    names = ("version", "before", "after", "changed_before", "changed_after", "records")
    return dict(zip(names, columns, strict=True))


def _by_class(table: Mapping[str, IntArray], ordinal: int, earlier: Joint, joint: Joint) -> Changes:
    """The changes since an entry of exact tables, over cells of secret and (class, input)."""
    here = table["version"] == ordinal
    before = class_cells(table["before"][here], table["changed_before"][here] > 0, len(earlier.inputs))
    after = class_cells(table["after"][here], table["changed_after"][here] > 0, len(joint.inputs))
    order = np.lexsort((after, before))
    return Changes(before[order], after[order], table["records"][here][order])


def read_expected(folder: Path, entry: RegisterEntry) -> Expected | None:
    """Who is expected to have which history after the version of an entry; None where the entry does not say.

    Raises
    ------
    LedgerError
        If the table is gone, was changed, or is none.
    """
    if EXPECTED not in entry.files:
        return None
    table = read_table(folder, EXPECTED, entry.files[EXPECTED])
    nodes, people = table["node"].astype(np.int64), table["people"]
    histories = nodes >= 0
    found = Expected(nodes[histories], people[histories], people[~histories])
    numbered = np.array_equal(nodes[~histories], -1 - np.arange(len(found.lost)))
    if not numbered or (np.diff(found.nodes) <= 0).any() or (found.nodes <= 0).any() or not (people >= 0).all():
        raise damaged(folder / EXPECTED, "does not say who is expected to have which history")
    return found


def read_chapters(
    folder: Path,
    entry: RegisterEntry,
    before: Sequence[Sequence[int]],
    distributions: Sequence[tuple[str, Joint]] = (),
) -> tuple[Chapter, ...]:
    """Read the chapter of an entry back from its folder; the chapters of all rows, where people have several.

    Parameters
    ----------
    folder : Path
    entry : RegisterEntry
    before : sequence of sequence of int
        The ordinals of the chapters of every entry before it.
    distributions : sequence of (str, Joint)
        Name and distribution of every entry before it.

    Raises
    ------
    LedgerError
        If a table is gone, was changed, or does not fit the entry.
    """
    tables = {name: read_table(folder, name, digest) for name, digest in entry.files.items()}
    inputs, outputs = entry.inputs.alphabet(), entry.outputs.alphabet()
    b, a = len(outputs), len(inputs)
    try:
        weights, marginal = dense_channel(tables[EFFECTIVE], b, a)
        channel = Protocol(weights, marginal, inputs, outputs, entry.mechanism, entry.guarantee)
        changes, nodes, followed = tables[CHANGES], tables[NODES], tables[FOLLOWED]
        joint = entry.joint if entry.first_rows is None else entry.first_rows
        ordinals = np.unique(changes["version"]).tolist()
        classes: dict[int, Changes] | None = None
        if entry.first_rows is None:
            classes = {ordinal: _by_class(changes, ordinal, distributions[ordinal][1], joint) for ordinal in ordinals}
            of_version = {v: changes_without_class(one, distributions[v][1], joint) for v, one in classes.items()}
        else:
            of_version = {
                ordinal: Changes(
                    *(changes[name][changes["version"] == ordinal] for name in ("before", "after", "records"))
                )
                for ordinal in ordinals
            }
        within = of_version.pop(entry.ordinal, None)
        if entry.changes is not None:
            if of_version:
                raise SpecError("its changes are told twice, with noise and without")
            of_version = distributions_of_changes(entry.changes.tables, distributions, joint)
        if entry.rows is not None:
            if within is not None:
                raise SpecError("how its rows follow one another is told twice, with noise and without")
            within = entry.rows.tables.changes(joint)
        by_class = None
        if classes is not None and entry.noise is None:
            by_class = {chapter: one for ordinal, one in classes.items() for chapter in before[ordinal]}
        since = {chapter: one for ordinal, one in of_version.items() for chapter in before[ordinal]}
        chapter = Chapter(
            entry.name,
            entry.guarantee,
            joint,
            since,
            channel,
            dense(tables[CHANNELS], b, entry.inputs_read),
            followed["node"].astype(np.int64),
            followed["channel"].astype(np.int64),
            entry.first,
            nodes["parent"].astype(np.int64),
            nodes["output"].astype(np.int64),
            of_units=entry.first_rows is not None,
            limits=_limits(entry, since, before, distributions, joint),
            by_class=by_class,
        )
    except (FunnelError, IndexError) as error:
        raise damaged(folder, f"holds tables that do not fit ({error})") from error
    if channel.digest != entry.channel:
        raise damaged(folder / EFFECTIVE, "is not the channel that the entry names")
    return (chapter,) if entry.first_rows is None else _by_row(chapter, entry, within, sum(map(len, before)))


def _limits(
    entry: RegisterEntry,
    since: Mapping[int, Changes],
    before: Sequence[Sequence[int]],
    distributions: Sequence[tuple[str, Joint]],
    joint: Joint,
) -> dict[int, MoveLimits] | None:
    """What is open of the moves to an entry, by the ordinals of chapters; None where that was not asked.

    Where people have several rows exact moves are limits too: of people with one row each they follow from changes.
    """
    ordinals = [(ordinal, chapter) for ordinal, chapters in enumerate(before) for chapter in chapters]
    if entry.limits is not None:
        return {chapter: entry.limits[ordinal] for ordinal, chapter in ordinals if ordinal < len(entry.limits)}
    if entry.second_rows is None:
        return None
    return {
        chapter: MoveLimits.exactly(since[chapter], distributions[ordinal][1], joint)
        for ordinal, chapter in ordinals
        if chapter in since
    }


def distributions_of_changes(
    changes: NoisyMoves, distributions: Sequence[tuple[str, Joint]], joint: Joint
) -> dict[int, Changes]:
    """What noisy tables say of changes to a version, by the ordinals of the entries before it.

    Parameters
    ----------
    changes : NoisyMoves
    distributions : sequence of (str, Joint)
        Name and distribution of every entry before it.
    joint : Joint
        Published counts of the version.

    Raises
    ------
    SpecError
        If these are not the moves since all entries, in their order.
    """
    if [one.since for one in changes.since] != [name for name, _ in distributions]:
        raise SpecError("its changes are not those since all versions before it")
    return {
        ordinal: moves.changes(earlier, joint)
        for ordinal, (moves, (_, earlier)) in enumerate(zip(changes.since, distributions, strict=True))
    }


def _by_row(chapter: Chapter, entry: RegisterEntry, within: Changes | None, ordinal: int) -> tuple[Chapter, ...]:
    """A chapter whose histories go on within it as one for the first rows of units, one for the second rows, …"""
    rows = np.ones(len(chapter.parents), dtype=np.int64)
    inside = chapter.parents >= chapter.first
    for place in np.flatnonzero(inside).tolist():
        # Histories are numbered row by row, so that what one goes on from is known.
        rows[place] = rows[chapter.parents[place] - chapter.first] + 1
    if (np.diff(rows) < 0).any() or (within is None and inside.any()):
        raise damaged(Path(entry.folder), "has histories that are not numbered row by row")
    drawn = np.ones(len(chapter.followed), dtype=np.int64)
    later = chapter.followed >= chapter.first
    drawn[later] = rows[chapter.followed[later] - chapter.first] + 1
    found = []
    for row in range(1, int(rows.max(initial=1)) + 1):
        start, stop = np.searchsorted(rows, [row, row + 1])
        changes, limits = chapter.changes, chapter.limits
        if row > 1 and within is not None:
            changes = {ordinal + row - 2: within}
            limits = None if entry.row_limits is None else {ordinal + row - 2: entry.row_limits}
        found.append(
            replace(
                chapter,
                version=wave_name(chapter.version, row),
                joint=chapter.joint if row == 1 else entry.joint,
                changes=changes,
                limits=limits,
                followed=chapter.followed[drawn == row],
                drawn_from=chapter.drawn_from[drawn == row],
                first=chapter.first + int(start),
                parents=chapter.parents[start:stop],
                outputs=chapter.outputs[start:stop],
                row=row,
            )
        )
    return tuple(found)
