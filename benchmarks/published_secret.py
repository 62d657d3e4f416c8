"""A secret that is published over versions: how often it stays where each version has its part of the bound.

``python -m benchmarks.published_secret --panel health_panel.parquet`` makes the protocol of one wave that leaves most
records unchanged under ``attribute``, of ε = 1 and of a half, a third and a fifth of it. Writes
``benchmarks/results/published-secret.json`` and ``published-secret.md``.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import funnel
from benchmarks.rows import Row, save_as_they_come, table
from tests.waves import WAVES, wave

CASES = (("outwork", ("kids", "married")), ("married", ("kids", "outwork")))


def measured(secret: str, columns: tuple[str, ...], versions: int) -> Row:
    """One protocol, of a version of so many."""
    people = wave(WAVES[0]).select([secret, *columns])
    joint = funnel.Joint.from_table(people, [secret], columns)
    whole = joint.with_secret()
    found = funnel.optimal(whole, funnel.Attribute(1 / versions), 1e-3, utility="unchanged")
    of = np.array([symbol[0] for symbol in whole.inputs.symbols])
    stays = (found.protocol.matrix * (of[:, np.newaxis] == of)).sum(axis=0)
    return {
        "secret": secret,
        "beside": list(columns),
        "versions": versions,
        "stays": float(whole.p_input @ stays),
        "by chance": float((joint.p_secret**2).sum()),
    }


def page(rows: list[Row]) -> str:
    """All rows as a page."""
    head = ["secret", "beside", "versions", "secret is true", "by chance"]
    cells = [
        [
            row["secret"],
            " and ".join(row["beside"]),
            row["versions"],
            f"{100 * row['stays']:.1f} %",
            f"{100 * row['by chance']:.1f} %",
        ]
        for row in rows
    ]
    lines = [
        "# A published secret over versions",
        "",
        "`python -m benchmarks.published_secret`: how often the published secret is the true one in a version of the",
        "panel that has 1/n of ε = 1, under `attribute`, and where it is drawn from its distribution",
        "([why the bound has to be divided](../../docs/history-theorems.md#a-published-secret-over-versions)).",
        "",
        *table(head, cells),
        "",
    ]
    return "\n".join(lines)


def cases() -> Iterator[Row]:
    """Every row, one after the other."""
    for secret, columns in CASES:
        for versions in (1, 2, 3, 5):
            yield measured(secret, columns, versions)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--panel", required=True, type=Path)
    os.environ["FUNNEL_PANEL"] = str(parser.parse_args().panel.resolve())
    save_as_they_come(cases(), "published-secret", page)
