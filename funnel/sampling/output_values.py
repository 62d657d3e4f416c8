"""Output values: what is released for an output that was drawn: its own values, or a whole record of its class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from funnel.alphabet import CLASS_COLUMN
from funnel.protocol import Protocol
from funnel.sampling.answers import Answers
from funnel.sampling.donors import RECORD_COLUMN, Donors
from funnel.sampling.draw import ChannelSampler, OutputArray
from funnel.sampling.output_columns import CodedColumns, OutputColumns
from funnel.sampling.random_words import WordArray
from funnel.tables import numbers_of

ToDonate = Callable[[pa.RecordBatch, int], WordArray]
"""A word for every row of a batch that its donor is drawn with; another one for every attempt."""


@dataclass(frozen=True, eq=False)
class Published:
    """What stands for the published values of a row, as one number: the output of a protocol itself.

    Parameters
    ----------
    protocol : Protocol
    """

    protocol: Protocol

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of a snapshot that it needs besides those of the protocol."""
        return ()

    @property
    def size(self) -> int:
        """How many such numbers there are."""
        return len(self.protocol.outputs)

    def codes(self, drawn: Answers, to_donate: ToDonate) -> OutputArray:
        """The number of every row, given what was drawn for it."""
        return drawn.outputs

    def columns(self) -> CodedColumns:
        """What turns such numbers into columns."""
        return OutputColumns(self.protocol)


@dataclass(frozen=True, eq=False)
class PublishedRecords(Published):
    """The outputs of a protocol are classes of records, perhaps with a secret: a record of the class is published.

    Parameters
    ----------
    protocol : Protocol
        Over the secret's columns where that is published, known ones, and `CLASS_COLUMN`.
    donors : Donors
    """

    donors: Donors

    @property
    def reads(self) -> tuple[str, ...]:
        """See `Published`."""
        return (RECORD_COLUMN,)

    @cached_property
    def _parts(self) -> tuple[np.ndarray, np.ndarray, list[tuple[str, ...]]]:
        """Of every output its class, and the number of the secret that it publishes; and these secrets."""
        secrets: dict[tuple[str, ...], int] = {}
        symbols, columns = self.protocol.outputs.symbols, self.protocol.outputs.columns[:-1]
        # Known columns are those of the donor as well, whose class has these values.
        width = len([column for column in columns if column not in self.donors.columns])
        classes = np.array([self.donors.classes.index(symbol[-1]) for symbol in symbols])
        return (
            classes,
            np.array([secrets.setdefault(symbol[:width], len(secrets)) for symbol in symbols]),
            list(secrets),
        )

    @property
    def size(self) -> int:
        """See `Published`."""
        return len(self._parts[2]) * len(self.donors)

    def codes(self, drawn: Answers, to_donate: ToDonate) -> OutputArray:
        """See `Published`."""
        classes, secrets, _ = self._parts
        records = numbers_of(drawn.batch.column(RECORD_COLUMN)).astype(np.int64)
        outputs = drawn.outputs.astype(np.int64)
        taken = self.donors.taken(records, classes[outputs], lambda attempt: to_donate(drawn.batch, attempt))
        return (secrets[outputs] * len(self.donors) + taken).astype(ChannelSampler.output_type(self.size))

    def columns(self) -> CodedColumns:
        """See `Published`."""
        _, _, secrets = self._parts
        donors, times = self.donors, len(secrets)
        names, categories, tables = [], [], []
        for j in range(len(secrets[0])):
            position: dict[str, int] = {}
            of_secret = np.array([position.setdefault(secret[j], len(position)) for secret in secrets])
            names.append(self.protocol.outputs.columns[j])
            categories.append(tuple(position))
            tables.append(np.repeat(of_secret, len(donors)))
        return CodedColumns(
            [*names, *donors.columns, CLASS_COLUMN],
            [*categories, *donors.categories, donors.classes],
            [*tables, *(np.tile(codes, times) for codes in donors.codes.T), np.tile(donors.of_record, times)],
        )


def published_by(protocol: Protocol, donors: Donors | None) -> Published:
    """What is released for the outputs of a protocol."""
    return Published(protocol) if donors is None else PublishedRecords(protocol, donors)
