"""A release chosen for estimates: the spec says so, the gate computes its worth again, and readers estimate from it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

from funnel import Protocol, estimate
from funnel.joint import Joint
from funnel.release.internal_report import InternalReport
from funnel.release.public_report import PublicReport
from tests.projects import SPEC, adult_rows, make_project
from tests.releases import make_release

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
        # Six values, once: six standard errors are never exceeded by chance.
        assert abs(share - truth[value]) <= 6 * error + 1e-9
    assert (found.errors < 0.02).all()
