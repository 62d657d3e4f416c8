"""Sampling: secure random words, exact integer draws, record-keyed reuse and row order, in bounded memory."""

from __future__ import annotations

from funnel.sampling.chunks import even_chunks
from funnel.sampling.codes import InputEncoder, input_codes
from funnel.sampling.distinct import DistinctKeys
from funnel.sampling.draw import ChannelSampler
from funnel.sampling.draw_counts import CellCounts
from funnel.sampling.engine import Drawn, OneWorker, Processes, Workers, release_rows
from funnel.sampling.key_column import KEY_COLUMN, KEY_TYPE, KeyColumn
from funnel.sampling.keyed import RecordKey, key_digests, key_kind
from funnel.sampling.output_columns import GROUP_ROWS, WRITE_SETTINGS, OutputColumns, ReleaseWriter
from funnel.sampling.partitions import Plan, partition_groups, plan_rows
from funnel.sampling.parts import count_partition
from funnel.sampling.random_words import WordSource, WordStream
from funnel.sampling.sanitising import sanitise

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
