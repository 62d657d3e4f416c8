"""What tests of the library share: small sources with their specs, a release, and how a refusal must look."""

from __future__ import annotations

import csv
import io
import itertools
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.errors import DataError
from funnel.release.layout import ReleaseFolder
from funnel.spec import ReleaseSpec
from tests.projects import adult_rows, make_project, spec_of
from tests.releases import make_release

# All that a spec can say of a release.
SPEC = """
name = "people"
title = "People: a \\"test\\" & more"
description = "People, some of them."
secret = ["marital-status"]
publish = ["relationship", "sex"]
guarantee = "lip:1.0"
frequencies.protection = "none"

[source]
path = "people.parquet"

[history]
people = "different"

[disclosure]
on_breach = "report"

[output]
csv = true

[metadata]
licence = "CC-BY-4.0"
licence_url = "https://creativecommons.org/licenses/by/4.0/"
keywords = ["people", "tests", "x", "a/b"]
contact_name = "Office of Tests"
contact_email = "office@example.org"

[metadata.labels]
sex = "Sex, as the census has it"

[[metadata.sources]]
title = "Census"
path = "https://example.org/census"
version = "1994"
"""


@dataclass
class Workshop:
    """Writes a source and makes the spec that protects its column ``s`` and publishes ``x``."""

    folder: Path
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def parquet(self, columns: Mapping[str, Any], **changes: Any) -> ReleaseSpec:
        path = self._new("parquet")
        pq.write_table(pa.table(dict(columns)), path)
        return self.spec(path, **changes)

    def csv(self, columns: Mapping[str, Sequence[object]], **changes: Any) -> ReleaseSpec:
        stream = io.StringIO(newline="")
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        return self.text(stream.getvalue(), **changes)

    def text(self, content: str | bytes, suffix: str = "csv", **changes: Any) -> ReleaseSpec:
        path = self._new(suffix)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return self.spec(path, **changes)

    def spec(self, path: Path, **changes: Any) -> ReleaseSpec:
        return spec_of(path.name, path.parent, **changes)

    def _new(self, suffix: str) -> Path:
        return self.folder / f"source{next(self.numbers)}.{suffix}"


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="session")
def refusal() -> Callable[..., str]:
    """The message of the DataError an action ends with: one line, and no trace of a row even in the traceback."""

    def message_of(action: Callable[[], object], row: str = "Zebediah") -> str:
        with pytest.raises(DataError) as caught:
            action()
        message = str(caught.value)
        assert "\n" not in message
        assert row not in "".join(traceback.format_exception(caught.value))
        return message

    return message_of


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return make_release(make_project(tmp_path_factory.mktemp("published"), SPEC, adult_rows(0, 1000)))
