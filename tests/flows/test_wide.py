"""Wide tables: a joint alphabet is released, judged and audited by the weights that are not zero, without a table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from funnel.audit.check import State
from funnel.errors import ReleaseRefused
from funnel.findings import of_release as findings
from funnel.pipeline.flows import pipeline
from funnel.pipeline.tasks.run import Draft
from funnel.release.document import dump
from funnel.release.documents import DrawsDocument
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import ProtocolDocument
from funnel.solver import wide
from funnel.sparse_weights import SparseWeights
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.copies import copied
from tests.projects import SPEC, adult_rows, make_project

Spoil = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module", autouse=True)
def small_tables_are_wide() -> Iterator[None]:
    """The thresholds of wide tables, for a table of a hundred combinations; and no table of weights at all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wide, "_ENTRIES", 1_000)
        # What takes tables of small size for tables that are wide here only.
        patch.setattr(findings, "_LARGEST", 0)

        def none(self: SparseWeights) -> None:
            raise AssertionError("a table of all weights was made")

        patch.setattr(SparseWeights, "table", none)
        yield


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = SPEC.replace('["marital-status"]', '["income"]').replace(
        '["relationship"]', '["relationship", "occupation", "race"]'
    )
    return make_project(tmp_path_factory.mktemp("wide"), spec, adult_rows(0, 1500))


@pytest.fixture(scope="module")
def released(project: Path) -> tuple[dict[str, Any], ReleaseFolder]:
    told, done = pipeline.run_release(ReleaseSpec.load(project), again=False, rotate=False)
    assert done is not None
    return told, ReleaseFolder(Path(told["folder"]))


def test_it_is_released_and_judged(released: tuple[dict[str, Any], ReleaseFolder]) -> None:
    told, folder = released
    assert told["status"] == "published"
    document = ProtocolDocument.read(folder.protocol)
    assert document.format == "funnel-protocol/2"
    assert len(document.inputs.symbols) > 100
    assert all(isinstance(row, dict) for row in document.weights)
    draws = DrawsDocument.read(folder.draws)
    assert draws.pairs.n == 1500
    assert any("estimated to be outside it in the population" in one for one in told["warnings"])
    page = folder.report.read_text()
    assert page.count("<tr>") < 300


def test_the_audit_passes_it(released: tuple[dict[str, Any], ReleaseFolder]) -> None:
    _, folder = released
    failed = [check for check in recheck(folder) if check.state is not State.PASSED]
    assert not failed, failed


def weight_moved(content: dict[str, Any]) -> None:
    """A weight that goes to another output, which is then said to be all right."""
    rows = content["weights"]
    y = next(y for y, row in enumerate(rows) if len(row) > 1)
    x, weight = next(iter(rows[y].items()))
    del rows[y][x]
    other = next(row for row in rows if x not in row and row is not rows[y])
    other[x] = weight
    kept = {key: content[key] for key in ("format", "denominator", "inputs", "outputs", "weights", "marginal")}
    content["digest"] = hashlib.sha256(json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def share_moved(content: dict[str, Any]) -> None:
    """One true value a little likelier than it is, and another less."""
    shares = content["prior"]["probabilities"]
    most, second = sorted(range(len(shares)), key=shares.__getitem__)[-1:-3:-1]
    shares[most], shares[second] = round(shares[most] - 0.01, 4), round(shares[second] + 0.01, 4)


@pytest.mark.parametrize("spoil", [weight_moved, share_moved])
def test_what_is_spoilt_is_refused_and_found(
    spoil: Spoil, released: tuple[dict[str, Any], ReleaseFolder], project: Path, tmp_path: Path
) -> None:
    _, folder = released
    copy = copied(folder, tmp_path / "copy")
    spoiled(copy, spoil)
    found = {check.name for check in recheck(copy) if check.state is State.FAILED}
    assert found & {"distribution", "prior", "marginal", "leakage"}, found
    described = pipeline.describe

    def described_wrongly(*arguments: Any, **named: Any) -> Any:
        content = described(*arguments, **named)
        spoiled(next(one.folder for one in arguments if isinstance(one, Draft)), spoil)
        return content

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "describe", described_wrongly)
        with pytest.raises(ReleaseRefused, match="expectations failed"):
            pipeline.run_release(ReleaseSpec.load(project), again=True, rotate=False)


def spoiled(folder: ReleaseFolder, spoil: Spoil) -> None:
    content = json.loads(folder.protocol.read_bytes())
    spoil(content)
    folder.protocol.write_bytes(dump(content))
