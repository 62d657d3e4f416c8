"""Records of versions, for tests of what is done with them."""

from __future__ import annotations

from typing import Any

from funnel.release.record import Origin, Record
from tests.public import OPEN_COUNTS

SHA = "{:064x}".format


def made_from(**given: Any) -> Origin:
    """What a version is made from: but for what is given, anything."""
    digests = {name: SHA(5 + number) for number, name in enumerate(("spec", "source", "snapshot", "protocol"))}
    return Origin(**{**digests, "fields": ("x",), "guarantee": "lip:1.0", "shuffle": True, **given})


def record_of(version: str = "1.0.0", **given: Any) -> Record:
    """The record of a version, of ten records that were drawn afresh unless something else is given."""
    files, created = {"data/records.parquet": SHA(9)}, "2026-01-01T00:00:00+00:00"
    rest = {"origin": made_from(), "rows": 10, "fresh": True, "files": files, "frequencies": OPEN_COUNTS}
    return Record(**{"version": version, "created": created, **rest, **given})
