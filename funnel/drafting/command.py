"""``funnel init``: from a source to a file with a draft of a spec, which overwrites nothing unasked."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import Any

from funnel.databases import names_database
from funnel.drafting.draft import draft_spec, file_name
from funnel.drafting.look import look_at
from funnel.errors import OutputError, SpecError
from funnel.progress import Progress
from funnel.source.formats import format_of, names
from funnel.storage import local_path
from funnel.wording import listed


def draft_file(
    source: str,
    table: str | None,
    query: str | None,
    output: Path | None,
    force: bool,
    progress: Progress,
    kind: str | None = None,
) -> dict[str, Any]:
    """Look at a source and write a draft of a spec for it.

    Parameters
    ----------
    source : str
        As ``path`` in ``[source]``; a relative path starts at the working folder.
    table, query : str or None
    output : Path or None
        By default ``NAME.toml`` in the working folder.
    force : bool
        Whether to write over a file.
    progress : callable
    kind : str or None
        The format, where the name of the source does not tell.

    Returns
    -------
    dict
        ``spec``, the file; ``rows`` and ``columns`` that were looked at.

    Raises
    ------
    SpecError
        If the source cannot be named as it was, its format is not known, or there is such a file already.
    DataError
        If it cannot be read.
    OutputError
        If the file cannot be written.
    """
    title = (table or "query").split(".")[-1] if names_database(source) else file_name(source)
    file = Path(f"{title}.toml") if output is None else output
    if not force and os.path.lexists(file):
        raise SpecError(f"there is a file {file} already; name another with --output, or write over it with --force")
    ending = PurePath(source).suffix
    if kind is None and not names_database(source) and ending and source[-1] != "/" and format_of(source) is None:
        raise SpecError(
            f"cannot tell by {ending!r} what {PurePath(source).name} is written in; say it, as in --format csv (known "
            f"are {listed(names())})"
        )
    given = {"table": table, "query": query, "format": kind}
    settings = {"path": _path(source, file), **{name: value for name, value in given.items() if value is not None}}
    look = look_at(settings, file.parent, progress)
    text = draft_spec(look, title)
    try:
        with file.open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise SpecError(f"there is a file {file} already; name another with --output") from None
    except OSError as error:
        raise OutputError(f"{file} cannot be written: {error.strerror}") from None
    return {"status": "drafted", "spec": str(file), "rows": look.rows, "columns": len(look.columns)}


def _path(source: str, file: Path) -> str:
    """The address of a source as it is from the folder of the spec."""
    if names_database(source) and source.startswith("sqlite:///") and not source.startswith("sqlite:////"):
        return f"sqlite:///{os.path.relpath(source.removeprefix('sqlite:///'), file.parent)}"
    if names_database(source) or local_path(source) is None or "://" in source or Path(source).is_absolute():
        return source
    return os.path.relpath(source, file.parent) + ("/" if source.endswith("/") else "")
