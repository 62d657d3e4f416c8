"""Releases in many small partitions and parts, as one of many millions of people would be."""

from __future__ import annotations

import importlib
import os
from functools import partial

from funnel.sampling.partitions import partition_groups, plan_rows

# For a quarter of the sample: nine partitions and sixteen parts.
SMALL = {
    "funnel.release.snapshot.GROUP_ROWS": 750,
    "funnel.audit.encoding._PART_ROWS": 1000,
    "funnel.pipeline.tasks.estimate.partition_groups": partial(partition_groups, partition_rows=1500),
    "funnel.release.rows.plan_rows": partial(plan_rows, partition_rows=1500, part_rows=1000),
}


def cut_in_own_session() -> None:
    """Let a command of the stage cut them, in a session of its own, by which its workers are known when it is gone."""
    os.setsid()
    for place, value in SMALL.items():
        module, _, name = place.rpartition(".")
        setattr(importlib.import_module(module), name, value)
