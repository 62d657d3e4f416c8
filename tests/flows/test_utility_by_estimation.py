"""A release chosen for estimates: the spec says so, the gate computes its worth again, and readers estimate from it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel import Protocol, estimate
from funnel.audit.check import State, overall
from funnel.errors import ReleaseRefused
from funnel.joint import Joint
from funnel.measures import Estimation, Variance
from funnel.pipeline.flows.pipeline import run_release
from funnel.release.internal_report import InternalReport
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.public_report import PublicReport
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.combinations import Combination
from tests.projects import SPEC, adult_rows, make_project
from tests.releases import make_release
from tests.waves import COUNTED, WAVES, wave

ESTIMATION = SPEC.replace('guarantee = "lip:1.0"', 'guarantee = "lip:0.5"\nutility = "estimation"').replace(
    "marital-status", "income"
)


def test_what_is_published_is_worth_most_for_estimates(tmp_path: Path) -> None:
    table = adult_rows(0, 4000)
    folder = make_release(make_project(tmp_path, ESTIMATION, table=table))
    told = PublicReport.from_json(folder.numbers.read_bytes())
    internal = InternalReport.from_json(folder.internal_numbers.read_bytes())
    (best, *others) = [line for line in internal.compared if line.share is not None]
    assert (told.utility, best.mechanism) == ("estimation", told.mechanism.name)
    assert [line.mechanism for line in told.compared] == [best.mechanism]
    assert best.share is not None
    # Of the others each is there, with what it keeps or why it was left out.
    assert len(internal.compared) > 5
    assert all((line.share is None) == (line.reason is not None) for line in internal.compared)
    assert all(line.share is not None and line.share <= best.share for line in others)
    verdict = json.loads((folder.internal / "verdict.json").read_text())
    assert all(one["passed"] for one in verdict["results"])
    protocol = Protocol.from_json(folder.protocol.read_bytes())
    found = estimate(folder.data, protocol)
    joint = Joint.from_table(table, secret=["income"], inputs=["relationship"])
    assert found.records == pq.read_metadata(folder.data).num_rows == joint.n
    truth = dict(zip(joint.inputs.labels, joint.p_input, strict=True))
    for (value,), share, error in zip(found.cells, found.frequencies, found.errors, strict=True):
        # Six values, once: seven standard errors are exceeded once in 10^10 runs.
        assert abs(share - truth[value]) <= 7 * error + 1e-9
    assert (found.errors < 0.02).all()


@pytest.mark.parametrize(
    ("people", "protection", "guarantee"),
    [("same people", "noise", "pml:1.0"), ("same people", "none", "rlip:1.0,0.05"), ("units", "none", "ldp:0.5")],
)
def test_versions_of_the_same_people_are_for_estimates_too(
    people: str, protection: str, guarantee: str, tmp_path: Path
) -> None:
    made = Combination("one channel", people, protection, guarantee, "estimation").release(tmp_path / "people")
    checks = recheck(made[-1])
    assert overall(checks) == State.PASSED, [check for check in checks if not check.passed]
    told = PublicReport.from_json(made[-1].numbers.read_bytes())
    # What is aimed at is compared by its worth, and the errors of estimates are those of what people drew from.
    (line,) = told.compared
    assert told.utility == "estimation"
    assert line.share is not None
    assert 0 < line.share <= 1
    assert told.accuracy is not None


def test_the_worth_of_what_versions_aim_at_is_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Estimation.told
    monkeypatch.setattr(Estimation, "told", lambda self, joint, protocol: 0.9 * told(self, joint, protocol))
    with pytest.raises(ReleaseRefused, match="comparison utility is"):
        Combination("one channel", "same people", "none", "lip:0.3", "estimation").release(tmp_path / "people")


NUMBERS = COUNTED.replace('"lip:1.0"', '"lip:0.2"\nutility = "variance"').replace('"panel"', '"fifths"')


def test_versions_of_the_same_people_explain_a_number(tmp_path: Path) -> None:
    explained = []
    for utility in ("variance", "information"):
        project = tmp_path / utility
        project.mkdir()
        (project / "fifths.toml").write_text(NUMBERS.replace('"variance"', f'"{utility}"'), encoding="utf-8")
        for year in WAVES[:2]:
            table = wave(year, 1500)
            place = table.schema.get_field_index("income")
            fifths = pa.array([name.removeprefix("fifth ") for name in table["income"].to_pylist()])
            pq.write_table(table.set_column(place, "income", fifths), project / "people.parquet")
            told, _ = run_release(ReleaseSpec.load(project / "fifths.toml"), again=False, rotate=False)
        folder = ReleaseFolder(Path(told["folder"]))
        assert overall(recheck(folder)) == State.PASSED
        protocol = ProtocolDocument.read(folder.protocol).protocol
        joint = Joint.from_table(pq.read_table(project / "people.parquet"), secret=["outwork"], inputs=["income"])
        explained.append(Variance.of(joint.inputs).told(joint, protocol))
    assert explained[0] >= explained[1]
    assert explained[0] > 0.05
