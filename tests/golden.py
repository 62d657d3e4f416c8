"""Golden releases: a few representative releases whose every file is known by its digest.

All that is drawn, the clock, the keys, the versions and the system are fixed, so a change of the code that is to
change no document changes no digest. ``python -m tests.golden`` writes the digests anew; the commit that does so says
which documents change, and why.
"""

from __future__ import annotations

import hashlib
import json
import platform
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
from cryptography.hazmat.primitives.asymmetric import ed25519

from funnel import planning
from funnel.findings import learned
from funnel.pipeline.flows import pipeline
from funnel.release import provenance
from funnel.sampling import random_words
from tests import chance, waves
from tests.projects import make_project
from tests.sabotage import scenes
from tests.unit_panels import waves_as_rows
from tests.waves import WAVES, wave

STORED = Path(__file__).with_suffix(".json")
_NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
_VERSION = "1.0.0"
_PEOPLE = 1200
_LONG = re.compile(rb"\d+\.\d{9,}(?:e[+-]?\d+)?")

Sources = Callable[[], list[pa.Table]]


def _once() -> list[pa.Table]:
    return [scenes.source()]


def _two_waves() -> list[pa.Table]:
    return [wave(year, _PEOPLE) for year in WAVES[:2]]


def _visits() -> list[pa.Table]:
    return [waves_as_rows(_PEOPLE)]


RELEASES: Mapping[str, tuple[str, Sources]] = {
    "counted as usual": (scenes.INVARIANT_SPEC, _once),
    "in the order of the source, by variance": (
        scenes.DRAWN_SPEC.replace("csv = true", "csv = true\nshuffle = false"),
        _once,
    ),
    "whole records with their secret, keyed": (scenes.WITH_SECRET_SPEC, _once),
    "two versions about the same people, under noise": (scenes.YEARS, _two_waves),
    "two versions of whole records about the same people": (scenes.DONOR_YEARS, _two_waves),
    "whole records of several rows of people": (scenes.DONOR_ROWS, _visits),
}
"""The spec of each release, and the sources of its versions."""


def digests(name: str) -> dict[str, str]:
    """Make a release; the SHA-256 of every file of its series.

    Of internal files numbers are taken to ten digits: those after them may depend on the processor.
    """
    spec, sources = RELEASES[name]
    with tempfile.TemporaryDirectory() as kept, _fixed(name):
        folder = Path(kept) / "project"
        for table in sources():
            make_project(folder, spec, table)
            scenes.run(folder, scenes.Scene(name, spec))
        places = {"": folder / "releases" / "people", "internal/": folder / ".funnel" / "internal" / "people"}
        return {
            where + str(path.relative_to(root)): hashlib.sha256(_content(path)).hexdigest()
            for where, root in places.items()
            for path in sorted(root.rglob("*"))
            if path.is_file() and path.name[0] != "." and not path.is_relative_to(root / "latest")
        }


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    return _LONG.sub(lambda found: b"%.10g" % float(found[0]), content) if "internal" in path.parts else content


@contextmanager
def _fixed(name: str) -> Iterator[None]:
    """Random bits, noise, keys, clock, versions and system that are the same in every run."""
    chance.begin(f"golden: {name}")
    drawn = _Drawn(name)
    key = ed25519.Ed25519PrivateKey.from_private_bytes(drawn.bytes(32))
    defaults = tuple(_no_time if one is time.perf_counter else one for one in planning.contenders.__defaults__ or ())
    provenance.installed.cache_clear()
    with (
        chance.same_noise(),
        # The real panel lies beside some copies of the project and not beside others.
        mock.patch.object(waves, "panel", waves.drawn_panel),
        mock.patch.object(learned, "_TREES", 4),
        mock.patch("os.urandom", drawn.bytes),
        mock.patch.object(random, "_urandom", drawn.bytes),
        mock.patch.dict(random_words._KEYS_SEEN, clear=True),
        mock.patch.object(ed25519.Ed25519PrivateKey, "generate", return_value=key),
        mock.patch.object(pipeline, "datetime", _Clock),
        mock.patch.object(planning.contenders, "__defaults__", defaults),
        mock.patch.object(provenance, "version", return_value=_VERSION),
        # The internal report names these too.
        mock.patch.object(platform, "python_version", return_value=_VERSION),
        mock.patch.object(platform, "platform", return_value="a system"),
    ):
        yield
    provenance.installed.cache_clear()


def _no_time() -> float:
    """The clock by which it is told how long an optimisation took."""
    return 0.0


class _Drawn:
    """What the operating system would draw: SHA-256 of a name and a count."""

    def __init__(self, name: str) -> None:
        self._name = name.encode()
        self._calls = 0

    def bytes(self, count: int) -> bytes:
        self._calls += 1
        blocks = -(-count // 32)
        parts = (self._name + b"\0%d\0%d" % (self._calls, block) for block in range(blocks))
        return b"".join(hashlib.sha256(part).digest() for part in parts)[:count]


class _Clock(datetime):
    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        return _NOW.astimezone(tz or UTC)


def main() -> None:
    """Write the digests of all golden releases."""
    found = {name: digests(name) for name in RELEASES}
    STORED.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
