"""Grouped draws: what records of every secret drew at every stage of a grouped protocol; evidence, and never public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field

from funnel.alphabet import Alphabet
from funnel.errors import DataError
from funnel.joint import IntArray
from funnel.release.channel import Symbols
from funnel.release.document import Count, Document, Sha256
from funnel.release.files import write_whole
from funnel.release.layout import ReleaseFolder
from funnel.source import file_digest
from funnel.tables import open_paged

CELLS = ("stage", "class", "input", "output", "secret")
RECORDS = "records"


@dataclass(frozen=True, eq=False)
class GroupedDraws:
    """Records by stage, class, input, output and secret.

    Attributes
    ----------
    secret : Alphabet
    cells : ndarray of int64, shape (m, 5)
        Stage, class at it, input of its channels (-1: none of them), output that was drawn, and secret (its number; the
        last one and 1 for one outside the alphabet); distinct, in order. Records of which nothing more is said are in
        no cell of that stage.
    records : ndarray of int64, shape (m,)
        How many there were; above zero.
    probe : str
        What the sampler answers where outputs meet (`funnel.groups.probe`).
    """

    secret: Alphabet
    cells: IntArray
    records: IntArray
    probe: str

    @property
    def n(self) -> int:
        """Records: all of them draw at the first stage."""
        return int(self.records[self.cells[:, 0] == 0].sum())

    def write(self, folder: ReleaseFolder) -> None:
        """Write them into the folder of a version, as a table and a document about it."""
        columns = [pa.array(self.cells[:, j].astype(np.int32)) for j in range(len(CELLS))]
        table = pa.table([*columns, pa.array(self.records)], names=[*CELLS, RECORDS])
        pq.write_table(table, folder.cells, compression="zstd")
        document = GroupedDrawsDocument(
            secret=Symbols.of(self.secret), rows=self.n, probe=self.probe, cells_sha256=file_digest(folder.cells)
        )
        write_whole(folder.draws, document.to_bytes())

    @classmethod
    def read(cls, folder: ReleaseFolder) -> Self:
        """Read them from the folder of a version.

        Raises
        ------
        DataError
            If they are missing, or were changed.
        """
        document = GroupedDrawsDocument.read(folder.draws)
        damaged = DataError(f"the counts of draws {folder.cells} are missing or damaged; restore them or release again")
        if not folder.cells.is_file() or file_digest(folder.cells) != document.cells_sha256:
            raise damaged
        try:
            with open_paged(folder.cells) as file:
                table = file.read()
            cells = np.stack([table.column(name).to_numpy().astype(np.int64) for name in CELLS], axis=1)
            draws = cls(
                document.secret.alphabet(), cells, table.column(RECORDS).to_numpy().astype(np.int64), document.probe
            )
        except (OSError, KeyError, ValueError, pa.ArrowException) as error:
            raise damaged from error
        if draws.n != document.rows:
            raise damaged
        return draws


class GroupedDrawsDocument(Document):
    """What was drawn of a grouped release, beside the table of its cells ``draws.parquet``; internal."""

    described: ClassVar[str] = "the document of grouped draws"
    schema_: Literal["funnel/grouped-draws/1"] = Field(default="funnel/grouped-draws/1", alias="schema")
    secret: Symbols
    rows: Count
    probe: str = Field(pattern=r"^[0-9a-f]{32}$")
    cells_sha256: Sha256
