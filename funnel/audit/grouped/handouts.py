"""What a release of groups tells people and portals, held against what follows from its data package and channels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from funnel.audit.files import read_document
from funnel.audit.grouped.figures import read_channels
from funnel.audit.handouts import previous_told
from funnel.audit.package import Facts
from funnel.errors import DataError
from funnel.recount.grouped_handouts import grouped_handouts_again
from funnel.release.layout import ReleaseFolder


def handout_complaints(folder: ReleaseFolder, package: dict[str, Any], facts: Facts) -> Iterator[str]:
    """Whether the handouts are, to the byte, what follows; that one is missing is told with the other files.

    Parameters
    ----------
    folder : ReleaseFolder
    package : JSON object
    facts : mapping
        The files that are there.
    """
    try:
        channels = read_channels(folder.channels)
        again = grouped_handouts_again(package, channels, previous_told(folder, package, facts))
    except (DataError, OSError, KeyError, TypeError, ValueError, IndexError, AttributeError, pa.ArrowException):
        yield "they cannot be told from this data package and these channels"
        return
    for name, content in again.items():
        if name in facts and read_document(folder.root / name) != content:
            yield f"{name} is not what the data package and the channels make"
