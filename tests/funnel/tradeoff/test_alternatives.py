"""Alternatives: what is kept of other columns and groups is what a plan of the pasted spec keeps."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from funnel.frequencies.helping import expected
from funnel.frequencies.noise import Noise
from funnel.guarantees import LIP
from funnel.joint import Joint
from funnel.planning import MechanismChoice, choose, contenders
from funnel.progress import quiet
from funnel.report.plan import beliefs
from funnel.sampling.engine import OneWorker
from funnel.solver.optimum import optimal
from funnel.source.counting import count_joint
from funnel.tradeoff.alternatives import Alternative, alternatives
from funnel.tradeoff.trials import Trials
from tests.projects import spec_of

ROWS = {
    ("ill", "a", "1"): 300,
    ("well", "a", "2"): 500,
    ("ill", "b", "1"): 90,
    ("well", "b", "2"): 40,
    ("dead", "c", "1"): 20,
    ("well", "c", "3"): 30,
    ("dead", "d", "2"): 8,
    ("well", "d", "3"): 12,
}


def looked_at(folder: Path, noise: Noise | None = None, **changes: Any) -> tuple[Joint, tuple[Alternative, ...]]:
    cells = [one for one, count in ROWS.items() for _ in range(count)]
    pd.DataFrame(cells, columns=["s", "x", "n"]).to_parquet(folder / "t.parquet", index=False)
    spec = spec_of("t.parquet", folder, **{"publish": ["x", "n"], **changes})
    joint = count_joint(spec, quiet)
    return joint, alternatives(spec, joint, LIP(0.5), noise, Trials(OneWorker()), seconds=0.2)


def test_every_column_and_rare_values_of_every_column_are_looked_at(tmp_path: Path) -> None:
    joint, found = looked_at(tmp_path)
    first, *others = found
    assert (first.kind, first.entropy) == ("as it is", joint.entropy)
    assert {one.column for one in others if one.kind == "without"} == {"x", "n"}
    together = {(one.column, one.values, one.secret) for one in others if one.kind == "together"}
    # n has numbers, of which an end would be made one; 3 alone is rare there.
    assert together == {("x", ("c", "d"), False)}
    assert [one.kept for one in others] == sorted((one.kept for one in others), key=lambda kept: -(kept or 0.0))


def test_the_lines_give_what_is_promised(tmp_path: Path) -> None:
    _, found = looked_at(tmp_path)
    for one in found[1:]:
        spec = spec_of("t.parquet", tmp_path, **{"publish": ["x", "n"], **tomllib.loads(one.lines)})
        joint = count_joint(spec, quiet)
        best = choose(contenders(joint, LIP(0.5), MechanismChoice("optimal")))
        assert joint.entropy == pytest.approx(one.entropy)
        assert best.utility == pytest.approx(one.nats)
        assert one.kept == pytest.approx((one.nats or 0.0) / one.entropy)


def test_of_an_invariant_release_records_unchanged_are_told(tmp_path: Path) -> None:
    asked = {"name": "invariant", "weights": "share"}
    joint, found = looked_at(tmp_path, mechanism=asked)
    assert {one.column for one in found if one.kind == "without"} == {"x", "n"}
    for one in found:
        spec = spec_of("t.parquet", tmp_path, **{"publish": ["x", "n"], **tomllib.loads(one.lines)})
        best = optimal(count_joint(spec, quiet), LIP(0.5), 1e-4, utility="unchanged", weights="share")
        assert one.nats is None
        assert one.kept == pytest.approx(best.utility, abs=1e-4)
    assert found[0].kept is not None
    assert found[0].kept < 1
    assert joint.n == sum(ROWS.values())


def test_under_noise_an_alternative_holds_for_what_such_noise_would_leave_open(tmp_path: Path) -> None:
    _, exact = looked_at(tmp_path)
    _, noisy = looked_at(tmp_path, Noise(1.0, 0.0, 0.01))
    for one, other in zip(
        sorted(exact, key=lambda it: (it.column, it.kind)),
        sorted(noisy, key=lambda it: (it.column, it.kind)),
        strict=True,
    ):
        assert one.entropy == pytest.approx(other.entropy)
        assert (other.kept or 0.0) < (one.kept or 0.0)


def test_what_a_longer_search_found_is_kept_and_a_short_one_never_below_randomised_response(tmp_path: Path) -> None:
    rows = {("a", "1"): 900, ("b", "1"): 500, ("a", "2"): 800, ("b", "2"): 700, ("c", "1"): 9, ("c", "2"): 11}
    cells = [one for one, count in rows.items() for _ in range(count)]
    pd.DataFrame(cells, columns=["s", "x"]).to_parquet(tmp_path / "t.parquet", index=False)
    spec = spec_of("t.parquet", tmp_path)
    joint, noise = count_joint(spec, quiet), Noise(1.0, 0.0, 0.01)
    public = expected(joint.as_published, noise)
    plain = choose(contenders(public, LIP(0.5), MechanismChoice("grr", time_limit=1e-6)))
    assert plain.utility is not None

    def first(fitted: float | None) -> float | None:
        trials = Trials(OneWorker())
        return alternatives(spec, joint, LIP(0.5), noise, trials, seconds=1e-6, fitted=fitted)[0].nats

    assert (first(None) or 0.0) >= plain.utility > 0
    assert first(0.5) == 0.5
    assert first(0.0) == first(None)


def test_what_somebody_may_believe_starts_from_the_prior_and_stays_within_the_bound() -> None:
    joint = Joint.from_counts([[1, 2], [30, 10], [20, 37]], secret=["rare", "some", "most"])
    rare, most = beliefs(joint, LIP(0.5))
    assert (rare.secret, most.secret) == ("rare", "most")
    for one in (rare, most):
        assert one.before * 0.6 < one.least < one.before < one.most <= one.before * 1.6488
