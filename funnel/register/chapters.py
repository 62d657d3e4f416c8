"""Chapters on disk: what a version said of all histories, as tables of its entry, and read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from funnel.errors import FunnelError
from funnel.history import Changes, Chapter
from funnel.protocol import Protocol
from funnel.register.entry import CHANGES, CHANNELS, EFFECTIVE, FOLLOWED, NODES, RegisterEntry
from funnel.register.tables import (
    damaged,
    dense,
    dense_channel,
    node_columns,
    read_table,
    sparse,
    sparse_channel,
    write_table,
)


def write_chapter(folder: Path, chapter: Chapter) -> dict[str, str]:
    """Write the tables of a chapter; their SHA-256 (hex), by name."""
    ordinals = sorted(chapter.changes)
    changes = [chapter.changes[ordinal] for ordinal in ordinals]
    none = [np.empty(0, dtype=np.int64)]
    return {
        name: write_table(folder, name, columns)
        for name, columns in (
            (NODES, node_columns(chapter.parents, chapter.outputs)),
            (
                CHANGES,
                {
                    "version": np.repeat(np.array(ordinals, dtype=np.int64), [len(one.records) for one in changes]),
                    "before": np.concatenate([one.before for one in changes] or none),
                    "after": np.concatenate([one.after for one in changes] or none),
                    "records": np.concatenate([one.records for one in changes] or none),
                },
            ),
            (CHANNELS, sparse(chapter.library)),
            (FOLLOWED, {"node": chapter.followed, "channel": chapter.drawn_from}),
            (EFFECTIVE, sparse_channel(chapter.channel.weights, chapter.channel.marginal)),
        )
    }


def read_chapter(folder: Path, entry: RegisterEntry) -> Chapter:
    """Read a chapter back from the folder of its entry.

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
        of_version = {
            int(ordinal): Changes(
                *(changes[name][changes["version"] == ordinal] for name in ("before", "after", "records"))
            )
            for ordinal in np.unique(changes["version"])
        }
        chapter = Chapter(
            entry.name,
            entry.guarantee,
            entry.joint,
            of_version,
            channel,
            dense(tables[CHANNELS], b, a),
            followed["node"].astype(np.int64),
            followed["channel"].astype(np.int64),
            entry.first,
            nodes["parent"].astype(np.int64),
            nodes["output"].astype(np.int64),
        )
    except (FunnelError, IndexError) as error:
        raise damaged(folder, f"holds tables that do not fit ({error})") from error
    if channel.digest != entry.channel:
        raise damaged(folder / EFFECTIVE, "is not the channel that the entry names")
    return chapter
