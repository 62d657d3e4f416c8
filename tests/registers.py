"""An example register of two versions, written with the writers of the register's formats."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from funnel.alphabet import Alphabet
from funnel.joint import Joint
from funnel.protocol import Protocol
from funnel.register.entry import (
    CHANGES,
    CHANNELS,
    EFFECTIVE,
    ENTRY,
    FOLLOWED,
    HEAD,
    NODES,
    PEOPLE,
    HeadEntry,
    RegisterEntry,
    RegisterHead,
)
from funnel.register.entry_files import node_columns, sparse, sparse_channel, write_table
from funnel.release.document import Symbols
from funnel.release.files import private_folder, write_whole

FULL = 2**63
SECRET = Alphabet(("ill",), (("no",), ("yes",)))
INPUTS = Alphabet(("town",), (("a",), ("b",)))
OUTPUTS = Alphabet(("town",), (("a",), ("b",)))
REGISTER = "example-people"


def channel(share: float) -> np.ndarray:
    """Weights of a channel that tells the truth with a probability."""
    truth = int(share * FULL)
    return np.array([[truth, FULL - truth], [FULL - truth, truth]], dtype=np.uint64)


def write_example(folder: Path) -> Path:
    """Write the register of 4 people in 1.0.0 and of three of them and one more in 1.1.0; returns its folder.

    Histories: 0 of new people, 1 and 2 after 1.0.0, 3 of those with 1 and 4 of those with 2 after 1.1.0, 5 of the new
    one.
    """
    root = private_folder(folder / "registers" / REGISTER)
    half = np.array([FULL // 2] * 2, dtype=np.uint64)
    entries: list[HeadEntry] = []
    previous = None
    library = (channel(0.75)[None], np.stack([channel(0.75), channel(0.5), channel(0.625)]))
    # People 10 to 14, by what is their digest here; cells are 2 s + x.
    people = (
        {
            "high": [1, 1, 2, 9],
            "low": [5, 7, 1, 2**64 - 1],
            "cell": [0, 1, 3, 2],
            "changed": [0] * 4,
            "node": [1, 2, 2, 1],
        },
        {
            "high": [1, 1, 2**64 - 1, 2],
            "low": [5, 7, 3, 1],
            "cell": [0, 3, 2, 3],
            "changed": [0, 1, 0, 0],
            "node": [3, 4, 5, 4],
        },
    )
    tables = (
        {
            NODES: node_columns(np.array([0, 0]), np.array([0, 1])),
            CHANGES: {
                name: [] for name in ("version", "before", "after", "changed_before", "changed_after", "records")
            },
            FOLLOWED: {"node": [0], "channel": [0]},
        },
        {
            NODES: node_columns(np.array([1, 2, 0]), np.array([0, 1, 0])),
            CHANGES: {
                "version": [0, 0, 0],
                "before": [0, 1, 3],
                "after": [0, 3, 3],
                "changed_before": [0, 0, 0],
                "changed_after": [0, 1, 0],
                "records": [1, 1, 1],
            },
            FOLLOWED: {"node": [0, 1, 2], "channel": [0, 1, 2]},
        },
    )
    for ordinal, version in enumerate(("1.0.0", "1.1.0")):
        order = np.lexsort((np.array(people[ordinal]["low"], np.uint64), np.array(people[ordinal]["high"], np.uint64)))
        columns = {
            name: np.array(values, dtype=np.uint64 if name in ("high", "low") else np.int64)[order]
            for name, values in people[ordinal].items()
        }
        counts = np.bincount(columns["cell"], minlength=4).reshape(2, 2)
        effective = Protocol(channel(0.6875), half, INPUTS, OUTPUTS, "optimal", "lip:1.0")
        coming = private_folder(root / f"{ordinal:04d}-example-{version}")
        digests = {
            name: write_table(coming, name, {field: np.array(values, np.int64) for field, values in table.items()})
            for name, table in tables[ordinal].items()
        }
        digests[CHANNELS] = write_table(coming, CHANNELS, sparse(library[ordinal]))
        digests[EFFECTIVE] = write_table(coming, EFFECTIVE, sparse_channel(effective.weights, effective.marginal))
        joint = Joint.from_counts(counts, SECRET, INPUTS)
        entry = RegisterEntry(
            ordinal=ordinal,
            series="example",
            version=version,
            name=f"example/{version}",
            secret=Symbols.of(SECRET),
            inputs=Symbols.of(INPUTS),
            outputs=Symbols.of(OUTPUTS),
            guarantee="lip:1.0",
            observers=("transitions", "mover-stayer"),
            secrets="all",
            reserve=1.0,
            mechanism="optimal",
            channel=effective.digest,
            key_columns=("id",),
            key_kinds=("number",),
            fingerprint="0" * 32,
            counts=tuple(map(tuple, joint.counts.tolist())),
            noise=None,
            first=(1, 3)[ordinal],
            files=digests,
            previous=previous,
        )
        previous = write_whole(coming / ENTRY, entry.to_bytes()).sha256
        entries.append(
            HeadEntry(folder=entry.folder, entry=previous, people=write_table(coming, PEOPLE, columns), missing=0)
        )
    first = RegisterHead(register=REGISTER, serial=0, entries=tuple(entries[:1]), forgotten=None, earlier=())
    head = RegisterHead(
        register=REGISTER,
        serial=1,
        entries=tuple(entries),
        forgotten=None,
        earlier=(hashlib.sha256(first.to_bytes()).hexdigest(),),
    )
    write_whole(root / HEAD, head.to_bytes())
    return root
