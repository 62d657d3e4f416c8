"""protocol.csv: the channel as a table, one line for every true value and every published one that it can become."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from funnel.release.csv_cells import guarded

PROBABILITY = "probability"


def channel_table(protocol: Mapping[str, Any]) -> str:
    """The channel as a csv.

    The columns are the true ones (``true NAME``), the published ones (``published NAME``) and ``probability``, as the
    shortest decimal that is the nearest double. Lines go by true value and then by published one, in the order of
    ``protocol.json``; pairs that cannot occur are left out. Cells that a spreadsheet would run are guarded.

    Parameters
    ----------
    protocol : JSON object
        Content of ``protocol.json``.

    Notes
    -----
    O(entries that are not zero) time and memory.
    """
    inputs, outputs = protocol["inputs"], protocol["outputs"]
    written = io.StringIO()
    # Every text in quotation marks, as in the csv of the records; numbers without.
    writer = csv.writer(written, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    true, published = (map(kind.format, part["columns"]) for kind, part in ((_TRUE, inputs), (_PUBLISHED, outputs)))
    writer.writerow([guarded(name) for name in (*true, *published, PROBABILITY)])
    for x, y, probability in likely_pairs(protocol):
        cells = [guarded(cell) for cell in (*inputs["symbols"][x], *outputs["symbols"][y])]
        writer.writerow([*cells, probability])
    return written.getvalue()


_TRUE, _PUBLISHED = "true {}", "published {}"


def likely_pairs(protocol: Mapping[str, Any]) -> Iterator[tuple[int, int, float]]:
    """Positions of a true and a published value, and the probability of that, where it is not zero; by true value."""
    denominator = int(protocol["denominator"])
    columns: list[list[tuple[int, int]]] = [[] for _ in protocol["inputs"]["symbols"]]
    for y, row in enumerate(protocol["weights"]):
        # Of a wide table only the weights that are not zero are written, by position.
        entries = ((int(x), weight) for x, weight in row.items()) if isinstance(row, dict) else enumerate(row)
        for x, weight in entries:
            if weight != "0":
                columns[x].append((y, int(weight)))
    for x, column in enumerate(columns):
        for y, weight in column:
            yield x, y, weight / denominator
