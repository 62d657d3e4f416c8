"""One release with all that a spec can say of it, for tests of what is done with public files."""

from __future__ import annotations

import pytest

from funnel.release.layout import ReleaseFolder
from tests.projects import adult_rows, make_project
from tests.releases import make_release

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

[[metadata.sources]]
title = "Census"
path = "https://example.org/census"
version = "1994"
"""


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return make_release(make_project(tmp_path_factory.mktemp("published"), SPEC, adult_rows(0, 1000)))
