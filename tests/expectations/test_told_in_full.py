"""A release that says all there is to say: keys of records in a csv, a protocol that reads the secret, a full package.

Whatever is judged of the plain release of `test_finished` is judged of this one too, each by other lines of code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from funnel.pipeline.expectations import Finished, judge
from funnel.pipeline.flows.look import release_secret
from funnel.pipeline.tasks.secret_blocks import read_secret_block
from funnel.release.series import open_series
from funnel.spec import ReleaseSpec
from tests.expectations.conftest import Made
from tests.expectations.test_finished import PACKAGE_CHECKS, edit, failures, set_at
from tests.projects import adult_rows

SPEC = """
name = "people"
title = "People of a test"
description = "People, some of them."
secret = ["sex"]
publish = ["race"]
record_key = ["id"]

[guarantee]
kind = "lip"
epsilon = 0.5

[mechanism]
name = "conditional-reporting"
reads_secret = true

[frequencies]
protection = "none"

[source]
path = "people.csv"

[disclosure]
on_breach = "report"

[metadata]
licence = "CC-BY-4.0"
licence_url = "https://creativecommons.org/licenses/by/4.0/"
keywords = ["people", "tests"]
contact_name = "Office of Tests"

[[metadata.sources]]
title = "Census"
"""
KEYS = "answers by key"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("full")
    ids = pa.array([f"person {i * 7919 % 10007}" for i in range(2000)])
    pacsv.write_csv(adult_rows(0, 2000).select(["sex", "race"]).append_column("id", ids), folder / "people.csv")
    (folder / "people.toml").write_text(SPEC)
    found = Made.of(folder / "people.toml")
    spec = ReleaseSpec.load(found.spec)
    with open_series(spec) as series:
        secret = release_secret(spec, series, rotate=False)
    assert secret is not None
    return replace(found, key=secret.record_key(("id",), read_secret_block))


def test_all_of_it_is_judged_and_holds(finished: Finished) -> None:
    verdict = judge(finished)
    assert verdict.failed == ()
    assert KEYS in {result.name for result in verdict.results}
    assert finished.distributions.reads_secret


def test_keys_without_their_secret_are_not_taken_for_judged(finished: Finished) -> None:
    assert failures(finished, KEYS) == {}
    without = replace(finished, key=None)
    why = "cannot be derived: the run hands on no release secret"
    assert failures(without, KEYS) == {"answers": why}
    (failed,) = judge(without).failed
    assert (failed.name, failed.failure) == (KEYS, f"answers {why}")
    assert finished.key is not None
    other = replace(finished, key=replace(finished.key, secret=bytes(range(32))))
    assert set(failures(other, KEYS)) == {"digests", "answers"}


def test_draws_that_were_not_counted_by_secret_are_refused(finished: Finished) -> None:
    edit(finished.folder.draws, lambda content: content.update(secret=None, cells=None, records=None))
    found = {result.name: str(result.failure) for result in judge(finished).failed}
    assert set(found) == {"evidence"}
    assert "draws.json is damaged: secret" in found["evidence"]


PACKAGE: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("description",), "People.", "texts"),
    (("keywords",), ["people"], "texts"),
    (("keywords", 1), "Jane", "texts"),
    (("contributors", 0, "title"), "Jane", "texts"),
    (("contributors", 0, "email"), "jane@example.org", "texts"),
    (("contributors", 0, "roles"), ["author"], "texts"),
    (("sources", 0, "title"), "Diary", "texts"),
    (("sources", 0, "path"), "https://example.org", "texts"),
    (("licenses", 0, "path"), "https://example.org", "texts"),
    (("funnel:privacy", "readsSecret"), False, "package"),
]


@pytest.mark.parametrize(("path", "value", "claim"), PACKAGE)
def test_what_the_package_says_otherwise_than_the_spec_is_found(
    finished: Finished, path: tuple[str | int, ...], value: Any, claim: str
) -> None:
    assert failures(finished, *PACKAGE_CHECKS) == {}
    edit(finished.folder.package, lambda content: set_at(*path)(content, value))
    assert set(failures(finished, *PACKAGE_CHECKS)) == {claim}


@pytest.mark.parametrize("key", ["description", "keywords", "contributors", "sources"])
def test_what_the_spec_says_and_the_package_does_not_is_found(finished: Finished, key: str) -> None:
    edit(finished.folder.package, lambda content: {name: said for name, said in content.items() if name != key})
    assert failures(finished, *PACKAGE_CHECKS) == {"texts": f"{key} is not that of the spec"}


def test_a_package_that_names_no_report_is_found(finished: Finished) -> None:
    def unnamed(content: dict[str, Any]) -> None:
        del content["funnel:privacy"]["report"]

    edit(finished.folder.package, unnamed)
    found = failures(finished, *PACKAGE_CHECKS)
    assert found == {"package": "funnel:privacy.report is missing"}


PROTOCOL: list[tuple[tuple[str | int, ...], Callable[[Any], Any], str]] = [
    (("posterior", 2, "probability"), lambda value: round(value + 0.002, 4), "distribution"),
    (
        ("posterior", 2, "inputs"),
        lambda told: {**told, (x := next(iter(told))): round(told[x] - 0.05, 4)},
        "distribution",
    ),
    (("prior", "columns"), lambda value: ["sex"], "distribution"),
]


@pytest.mark.parametrize(("path", "value", "claim"), PROTOCOL)
def test_a_figure_of_a_protocol_that_reads_the_secret_is_held_to_the_counts(
    finished: Finished, path: tuple[str | int, ...], value: Callable[[Any], Any], claim: str
) -> None:
    assert failures(finished, "protocol and spec", "distribution") == {}
    edit(finished.folder.protocol, lambda content: set_at(*path)(content, value))
    # What was read once is not read again.
    assert claim in failures(replace(finished), "protocol and spec", "distribution")
