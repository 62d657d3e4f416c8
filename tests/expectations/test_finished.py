"""A finished folder is judged file by file: whatever is spoilt, the right expectation says so, and only that."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.audit.recheck import CHECKS
from funnel.pipeline.expectations import Finished, announced, judge
from funnel.pipeline.expectations.checks import SOURCE_CHECKS
from funnel.recount.documentation import documentation_again
from funnel.recount.found_histories import is_level
from funnel.release.document import dump
from funnel.release.handouts import documentation
from funnel.release.public_report import PublicReport
from funnel.spec import ReleaseSpec
from tests.expectations.conftest import Made
from tests.projects import SPEC, make_project

TEXT = SPEC + '\n[mechanism]\nname = "grr"\n\n[output]\ncsv = true\n'
SOURCE = {one.name for one in SOURCE_CHECKS}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made.of(make_project(tmp_path_factory.mktemp("finished"), TEXT))


def failures(finished: Finished, *names: str) -> dict[str, str]:
    """Claims that do not hold, of checks of the source; and of checks of an audit what they say, under their names."""
    claims = [one for name in names if name in SOURCE for one in finished.claims(name)]
    found = {one.name: one.failure for one in claims if one.failure is not None}
    context = replace(finished).context
    for check in CHECKS:
        if check.name in names and check.applies(context.has):
            result = check.verify(context)
            if result is not None and not result.passed:
                found[result.name] = result.detail
    return found


def edit(path: Path, change: Callable[[Any], Any]) -> None:
    """Change the content of a JSON file, written as all of them are."""
    content = json.loads(path.read_bytes())
    changed = change(content)
    path.write_bytes(dump(content if changed is None else changed))


def _always() -> set[str]:
    """What every release is judged by that has only its source."""
    return {one.name for one in SOURCE_CHECKS if one.needs == "public"}


def test_a_whole_folder_meets_everything_that_is_announced(finished: Finished) -> None:
    verdict = judge(finished)
    assert verdict.failed == ()
    assert {result.name for result in verdict.results} >= {*_always(), "csv", "leakage", "distribution"}
    told = [(result.name, result.description) for result in verdict.results]
    assert list(announced(finished.evidence, {"csv", "shuffled"})) == told
    assert len(announced(finished.evidence, {"shuffled"})) == len(told) - 1
    judged = PublicReport.read(finished.folder.numbers).judged
    assert [(one.name, one.description) for one in judged] == told


def test_the_bound_is_that_of_the_text_and_not_what_the_flow_hands_on(finished: Finished) -> None:
    twice = ReleaseSpec.parse(finished.spec.text.replace("lip:1.0", "lip:2.0"), finished.spec.folder / "people.toml")
    # As if the flow had doubled the budget: the text still says 1.
    twice._text = finished.spec.text
    changed = replace(finished, spec=twice)
    assert failures(changed, "source") == {
        "bound": "that the run was for is not the one in the text of the spec",
    }
    # As if a protocol had been made for half of what it keeps: the text asks for more.
    strict = ReleaseSpec.parse(finished.spec.text.replace("lip:1.0", "lip:0.1"), finished.spec.folder / "people.toml")
    stricter = replace(finished, spec=strict)
    assert set(failures(stricter, "protocol and spec")) == {"guarantee"}


def test_counts_that_are_not_those_of_the_source_are_found(finished: Finished) -> None:
    def move(content: dict[str, Any]) -> None:
        counts = content["counts"]
        s, x = next((s, x) for s, row in enumerate(counts) for x, count in enumerate(row) if count)
        counts[s][x] -= 1
        counts[s][(x + 1) % len(counts[s])] += 1

    edit(finished.folder.joint, move)
    assert failures(finished, "counted again") == {"counts": "differ from those of the source in 2 cells"}


def test_secrets_that_were_exchanged_are_found(finished: Finished) -> None:
    edit(finished.folder.joint, lambda content: content["counts"].reverse())
    assert set(failures(finished, "counted again")) == {"counts"}

    def exchanged(content: dict[str, Any]) -> None:
        content["secret"]["symbols"].reverse()

    edit(finished.folder.draws, exchanged)
    assert set(failures(replace(finished), "counted again", "drawn by input")) == {"counts", "draws"}


def test_a_source_that_is_another_one_is_found(finished: Finished, made: Made) -> None:
    other = replace(finished, snapshot=replace(made.snapshot, source_sha256="0" * 64, dropped=1))
    assert failures(other, "source") == {
        "digest": "of the snapshot is not that of the source",
        "records left out": "is 1 instead of 0",
    }


def test_an_output_that_another_reader_finds_more_often_is_found(finished: Finished) -> None:
    table = pq.read_table(finished.folder.data)
    codes = table.column(0).combine_chunks()
    moved = np.array(codes.indices)
    moved[0] = (moved[0] + 1) % len(codes.dictionary)
    changed = pa.DictionaryArray.from_arrays(pa.array(moved, codes.indices.type), codes.dictionary)
    pq.write_table(pa.table({table.column_names[0]: changed}), finished.folder.data)
    assert {one.name for one in judge(finished).failed} >= {"expect_released_counts_to_equal_drawn", "counts"}


FILES: list[tuple[Callable[[Path], Any], str]] = [
    (lambda root: (root / "joint.json").write_text("{}"), "no other file"),
    (lambda root: (root / "data" / ".hidden").write_text("x"), "no other file"),
    (lambda root: (root / "more").mkdir(), "files"),
    (lambda root: (root / "report.html").unlink(), "all public files"),
    (lambda root: root.with_name("incoming.internal").chmod(0o755), "evidence"),
    (lambda root: (root / "data" / "joint").symlink_to(root.with_name("incoming.internal") / "joint.json"), "files"),
    (lambda root: (root / "data" / "twice").hardlink_to(root / "protocol.json"), "plain files"),
]


@pytest.mark.parametrize(("change", "claim"), FILES)
def test_a_folder_that_holds_other_files_is_found(
    finished: Finished, change: Callable[[Path], Any], claim: str
) -> None:
    assert failures(finished, "declared files", "files", "evidence") == {}
    change(finished.folder.root)
    assert claim in failures(finished, "declared files", "files", "evidence")


def set_at(*path: str | int) -> Callable[[Any, Any], Any]:
    def change(content: Any, value: Any) -> None:
        for key in path[:-1]:
            content = content[key]
        content[path[-1]] = value(content[path[-1]]) if callable(value) else value

    return change


PROTOCOL: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("guarantee", "declared"), "lip:2.0", "guarantee"),
    (("guarantee", "level"), 0.0, "leakage"),
    (("guarantee", "level"), 1.01, "leakage"),
    (("guarantee", "secret"), ["sex"], "columns"),
    (("utility", "mutual_information_nats"), lambda value: value + 0.01, "distribution"),
    (("utility", "entropy_nats"), lambda value: value - 0.01, "distribution"),
    (("utility", "share"), lambda value: value / 2, "distribution"),
    (("prior", "probabilities", 0), lambda value: value + 0.005, "distribution"),
    (("prior", "probabilities", 0), lambda value: value + 0.0001, "distribution"),
]


@pytest.mark.parametrize(("path", "value", "claim"), PROTOCOL)
def test_a_figure_of_the_protocol_that_does_not_follow_is_found(
    finished: Finished, path: tuple[str | int, ...], value: Any, claim: str
) -> None:
    edit(finished.folder.protocol, lambda content: set_at(*path)(content, value))
    assert set(failures(finished, "protocol and spec", "leakage", "distribution")) >= {claim}


PACKAGE_CHECKS = ("package and spec", "package", "texts")
# Whatever an audit finds of the package is found here too: all that it may be is in tests/funnel/audit/mutants.py.
PACKAGE: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("version",), "1.0.1", "version"),
    (("created",), "yesterday", "package"),
    (("funnel:privacy", "schema"), "funnel/privacy/2", "package"),
    (("funnel:privacy", "meaning"), "Nothing is told.", "package"),
    (("funnel:privacy", "estimation", "recipe"), "Count.", "package"),
    (("funnel:privacy", "rowOrder"), "as in the source", "settings"),
    (("funnel:privacy", "secret"), [], "package"),
    (("funnel:privacy", "disclosureControl", "minimumCell"), 5, "settings"),
    (("funnel:privacy", "disclosureControl", "onBreach"), "refuse", "settings"),
    (("funnel:privacy", "confidence", "radius"), lambda radius: radius * 2, "confidence"),
    (("funnel:privacy", "source"), "0" * 64, "package"),
]


@pytest.mark.parametrize(("path", "value", "claim"), PACKAGE)
def test_what_the_package_says_wrongly_is_found(
    finished: Finished, path: tuple[str | int, ...], value: Any, claim: str
) -> None:
    assert failures(finished, *PACKAGE_CHECKS) == {}
    edit(finished.folder.package, lambda content: set_at(*path)(content, value))
    assert {claim} <= set(failures(finished, *PACKAGE_CHECKS)) <= {claim, "package"}


@pytest.mark.parametrize(
    ("change", "claim"),
    [
        (lambda page: page.replace("</main>", '<a href="java script:1">x</a></main>'), "report"),
        (lambda page: page.replace("default-src", "img-src"), "report"),
        (lambda page: page.replace("Every record is", "No record is"), "report page"),
    ],
)
def test_a_page_that_acts_or_tells_otherwise_is_found(
    finished: Finished, change: Callable[[str], str], claim: str
) -> None:
    assert failures(finished, "report", "report page") == {}
    page = finished.folder.report.read_text()
    finished.folder.report.write_text(change(page))
    assert change(page) != page
    # Whatever is changed, it is no longer what its figures make.
    assert set(failures(finished, "report", "report page")) == {claim, "report page"}


def test_noise_that_nobody_declared_is_not_taken_for_judged(finished: Finished) -> None:
    assert failures(finished, "noisy counts") == {"frequencies": "cannot be judged: no noise is declared"}


@pytest.mark.parametrize(
    ("stated", "nats", "above", "holds"),
    [
        (2.0, 2.0, 1e-7, True),
        (2.0 * (1 + 9e-10), 2.0, 1e-9, True),
        (2.0 * (1 - 9e-10), 2.0, 1e-9, True),
        (2.000001, 2.0, 1e-7, False),
        (1.999999, 2.0, 1e-7, False),
        (3.0, 2.0, 1e-7, False),
        (2.019, 2.0, 0.01, True),
        (2.021, 2.0, 0.01, False),
        (1.999, 2.0, 0.01, False),
        (0.01, 0.0, 0.01, False),
        (None, 2.0, 1e-7, False),
        # JSON has no infinity: what has no level is stated as nothing.
        (None, math.inf, 1e-7, True),
        (700.0, math.inf, 1e-7, False),
    ],
)
def test_a_level_is_stated_as_it_is_or_above_it_by_what_its_search_may_miss(
    stated: object, nats: float, above: float, holds: bool
) -> None:
    assert is_level(stated, nats, nats * (1 + above), 1e-9) == holds


def test_evidence_that_is_gone_fails_what_rests_on_it(finished: Finished) -> None:
    finished.folder.joint.unlink()
    finished.folder.package.write_text("{")
    found = {result.name: str(result.failure) for result in judge(finished).failed}
    # The report names the time that is in the package.
    assert {"counted again", "package and spec", "report and counts", *(one.name for one in CHECKS)} >= set(found)
    for name in ("package and spec", "package", "leakage"):
        assert re.fullmatch(
            r"its evidence could not be gathered: .*datapackage.json cannot be read as JSON.*", found[name]
        )
    assert found["counted again"].startswith("its evidence could not be gathered: the joint distribution ")


@pytest.mark.parametrize("name", ["protocol", "draws"])
def test_a_release_of_which_nothing_can_be_judged_fails(finished: Finished, name: str) -> None:
    getattr(finished.folder, name).write_text("{}")
    (failed,) = judge(finished).failed
    assert (failed.name, failed.description) == ("evidence", "What the release declares can be read.")


@pytest.mark.parametrize("name", ["README.md", "CITATION.cff", "dcat.jsonld", "protocol.csv", "estimator.csv"])
def test_one_byte_more_in_a_handout_is_found(finished: Finished, name: str) -> None:
    assert failures(finished, "handouts") == {}
    path = finished.folder.root / name
    path.write_bytes(path.read_bytes() + b" ")
    assert failures(finished, "handouts")["handouts"].startswith(name)
    path.unlink()
    assert failures(finished, "declared files") == {"all public files": f"{name} is missing"}


def test_a_channel_without_chance_is_not_said_to_draw(finished: Finished) -> None:
    package, protocol = (json.loads(path.read_bytes()) for path in (finished.folder.package, finished.folder.protocol))
    drawn = "every record was drawn at random, with known probabilities that can leave it as it is"
    assert drawn in documentation_again(package, protocol, None)["README.md"].decode()
    # Every true value has its likeliest output alone.
    columns = [[int(row[x]) for row in protocol["weights"]] for x in range(len(protocol["inputs"]["symbols"]))]
    likeliest = [column.index(max(column)) for column in columns]
    whole = protocol["denominator"]
    protocol["weights"] = [
        [whole if likeliest[x] == y else "0" for x in range(len(columns))] for y in range(len(protocol["weights"]))
    ]
    said = documentation_again(package, protocol, None)["README.md"].decode()
    assert said == documentation(package, protocol)["README.md"].decode()
    assert "was not changed at random: the same true values are always published alike" in said


def test_handouts_follow_the_documents_and_the_version_before(finished: Finished) -> None:
    other = replace(finished, previous="0.9.0")
    assert set(failures(other, "package and spec")) == {"previous version"}
    edit(finished.folder.package, lambda content: content.update(title="Another"))
    said = failures(finished, "handouts")["handouts"]
    assert all(name in said for name in ("README.md", "CITATION.cff", "dcat.jsonld"))
