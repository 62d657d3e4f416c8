"""Sampling: secure random words, exact integer draws, record-keyed reuse and row order, in bounded memory."""

from __future__ import annotations

from funnel.sampling.cells import CellCounts
from funnel.sampling.chunks import even_chunks
from funnel.sampling.codes import InputEncoder, input_codes
from funnel.sampling.columns import GROUP_ROWS, WRITE_SETTINGS, OutputColumns, ReleaseWriter
from funnel.sampling.distinct import DistinctKeys
from funnel.sampling.draw import ChannelSampler
from funnel.sampling.engine import Drawn, OneWorker, Processes, Workers, release_rows
from funnel.sampling.key_column import KEY_COLUMN, KEY_TYPE, KeyColumn
from funnel.sampling.keyed import RecordKey, key_digests, key_kind
from funnel.sampling.partitions import Plan, partition_groups, plan_rows
from funnel.sampling.parts import count_partition
from funnel.sampling.rows import sanitise
from funnel.sampling.words import WordSource, WordStream

__all__ = [
    "GROUP_ROWS",
    "KEY_COLUMN",
    "KEY_TYPE",
    "WRITE_SETTINGS",
    "CellCounts",
    "ChannelSampler",
    "DistinctKeys",
    "Drawn",
    "InputEncoder",
    "KeyColumn",
    "OneWorker",
    "OutputColumns",
    "Plan",
    "Processes",
    "RecordKey",
    "ReleaseWriter",
    "WordSource",
    "WordStream",
    "Workers",
    "count_partition",
    "even_chunks",
    "input_codes",
    "key_digests",
    "key_kind",
    "partition_groups",
    "plan_rows",
    "release_rows",
    "sanitise",
]
