"""Opening a source: the format that the spec names reads it, in batches of bounded memory."""

from __future__ import annotations

import os

from funnel.errors import SpecError
from funnel.readers.formats import format_named
from funnel.readers.opened_source import BATCH_ROWS, Source, SourceSpec
from funnel.readers.where import filtered


def open_source(spec: SourceSpec, path: str | os.PathLike[str] | None = None) -> Source:
    """Open the source of a spec, or a snapshot of it at ``path``, and check that it has the columns of the spec.

    Raises
    ------
    DataError
        If there is no file, one is not of its format, lacks a column or has it twice, or two files disagree about
        the type of a column: one sentence that names the file and the problem.
    SpecError
        If the spec says how text is written that this format does not have.
    """
    # Not where specs are validated: those of releases that are out have to be read by audits for ever.
    if spec.source.format != "csv" and "delimiter" in spec.source.model_fields_set:
        raise SpecError(
            f'[source] gives a delimiter, which is for csv files, and the format is "{spec.source.format}"; take it '
            'out, or set format = "csv"'
        )
    address = os.fspath(path) if path is not None else spec.source_address
    return filtered(spec, format_named(spec.source.format).open(spec.filtering, address))


__all__ = ["BATCH_ROWS", "Source", "open_source"]
