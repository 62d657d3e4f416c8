"""Grouped draws: a table that its document does not fit is refused, whatever its digest says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.alphabet import Alphabet
from funnel.errors import DataError
from funnel.release.grouped_draws import CELLS, RECORDS, GroupedDraws
from funnel.release.layout import ReleaseFolder
from funnel.source import file_digest

SECRET = Alphabet(("s",), (("0",), ("1",)))


@pytest.fixture
def folder(tmp_path: Path) -> ReleaseFolder:
    """Seven records that draw at the first stage, two of them at the second one too."""
    folder = ReleaseFolder(tmp_path)
    folder.audit.mkdir()
    cells = np.array([[0, 0, 1, 0, 0], [0, 0, 1, 1, 1], [1, 2, 0, 0, 1]])
    GroupedDraws(SECRET, cells, np.array([4, 3, 2]), "0" * 32).write(folder)
    return folder


def state(folder: ReleaseFolder, **changes: object) -> None:
    """Have the document state the digest of the table as it is, and what else is given."""
    content = json.loads(folder.draws.read_bytes())
    folder.draws.write_text(json.dumps({**content, "cells_sha256": file_digest(folder.cells), **changes}))


def refused(folder: ReleaseFolder) -> None:
    with pytest.raises(DataError) as caught:
        GroupedDraws.read(folder)
    assert str(caught.value) == (
        f"the counts of draws {folder.cells} are missing or damaged; restore them or release again"
    )


def test_a_file_that_is_no_table_is_refused(folder: ReleaseFolder) -> None:
    for content in (b"", b"no parquet", folder.cells.read_bytes()[:-8]):
        folder.cells.write_bytes(content)
        state(folder)
        refused(folder)


@pytest.mark.parametrize("name", [*CELLS, RECORDS])
def test_a_table_without_one_of_its_columns_or_with_text_in_it_is_refused(folder: ReleaseFolder, name: str) -> None:
    table = pq.read_table(folder.cells)
    place = table.column_names.index(name)
    for changed in (table.drop_columns([name]), table.set_column(place, name, pa.array(["a", "b", "c"]))):
        pq.write_table(changed, folder.cells)
        state(folder)
        refused(folder)
    # It is the column that is missed: with it, all is well.
    pq.write_table(table, folder.cells)
    state(folder)
    assert GroupedDraws.read(folder).n == 7


def test_other_records_at_the_first_stage_than_the_document_states_are_refused(folder: ReleaseFolder) -> None:
    for rows in (6, 8, 9):
        state(folder, rows=rows)
        refused(folder)
    state(folder, rows=7)
    assert GroupedDraws.read(folder).records.tolist() == [4, 3, 2]
    table = pq.read_table(folder.cells)
    pq.write_table(table.slice(1), folder.cells)
    state(folder)
    refused(folder)
