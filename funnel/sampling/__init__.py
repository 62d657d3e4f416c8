"""Sampling: secure random words, exact integer draws, record-keyed reuse and row order, in bounded memory."""

from __future__ import annotations

from funnel.sampling.codes import InputEncoder
from funnel.sampling.engine import OneWorker, Processes, Workers, release_rows
from funnel.sampling.key_column import KEY_COLUMN, KEY_TYPE, KeyColumn
from funnel.sampling.keyed import RecordKey, key_digests, key_kind
from funnel.sampling.partitions import Plan, partition_groups, plan_rows
from funnel.sampling.parts import count_partition
from funnel.sampling.sanitising import sanitise

__all__ = [
    "KEY_COLUMN",
    "KEY_TYPE",
    "InputEncoder",
    "KeyColumn",
    "OneWorker",
    "Plan",
    "Processes",
    "RecordKey",
    "Workers",
    "count_partition",
    "key_digests",
    "key_kind",
    "partition_groups",
    "plan_rows",
    "release_rows",
    "sanitise",
]
