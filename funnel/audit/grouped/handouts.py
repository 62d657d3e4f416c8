"""What a release of groups tells people and portals, held against what follows from its data package and channels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from funnel.audit.files import read_document
from funnel.audit.grouped.figures import read_channels
from funnel.audit.handouts import HANDOUTS, previous_told
from funnel.audit.package import Facts
from funnel.errors import DataError
from funnel.recount.grouped_handouts import grouped_handouts_again
from funnel.recount.handouts import TEXTS, citation_again
from funnel.release.layout import ReleaseFolder


def handout_complaints(folder: ReleaseFolder, package: dict[str, Any], facts: Facts) -> Iterator[str]:
    """Whether the handouts are there, and are what follows, to the byte.

    Parameters
    ----------
    folder : ReleaseFolder
    package : JSON object
    facts : mapping
        The files that are there.
    """
    privacy = package.get("funnel:privacy")
    dated = not isinstance(privacy, dict) or "estimation" not in privacy
    # Releases from before there were others have the citation alone.
    yield from (f"{name} is missing" for name in HANDOUTS if name not in facts and not dated)
    try:
        if dated:
            again = [{folder.citation.name: citation_again(package)}]
        else:
            channels, previous = read_channels(folder.channels), previous_told(folder, package, facts)
            again = [grouped_handouts_again(package, channels, previous, text) for text in TEXTS]
    except (DataError, OSError, KeyError, TypeError, ValueError, IndexError, AttributeError, pa.ArrowException):
        yield "they cannot be told from this data package and these channels"
        return
    for name in again[-1]:
        # Releases keep the wording that they were published with; the gate asks for the last one.
        if name in facts and read_document(folder.root / name) not in [one[name] for one in again]:
            yield f"{name} is not what the data package and the channels make"
