"""What noise on the frequencies costs: scaled in whole numbers, as the optimum has it, dearer for more noise."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import funnel
from funnel import LDP, LIP, Joint, SpecError, parse_guarantee
from funnel.certainty import Certainty
from funnel.cli import main
from funnel.console import Console
from funnel.frequencies.helping import expected, scaled, what_would_help
from funnel.frequencies.noise import Noise
from funnel.frequencies.noise_forecast import NoiseForecast, forecast_noise
from funnel.preview.spec_plan import BoundPlan, SpecPlan
from funnel.sample_size import grouped
from funnel.settings.protection_settings import FrequencySettings
from funnel.spec import ReleaseSpec
from tests.projects import SPEC, make_project
from tests.public import UNPROTECTED

NOISE = FrequencySettings(protection="noise", epsilon=1.0, beta=0.01)
COUNTS = np.array([[400, 200, 150], [180, 240, 330]])
# Two values of the secret that hardly anybody has.
RARE = np.array([[4000, 2000, 1500], [1800, 2400, 3300], [12, 6, 5], [5, 8, 9]])


@cache
def settled() -> NoiseForecast:
    """Made once for all tests that only look at it."""
    return small()


def plan_of(spec: ReleaseSpec, joint: Joint, costing: bool = False, **found: Any) -> SpecPlan:
    return SpecPlan(spec, joint, UNPROTECTED, [BoundPlan("ldp:0.5", (), **found)], costing=costing)


def small(**changes: object) -> NoiseForecast:
    settings = {"epsilons": (0.3, 3.0), "sizes": (750, 3000), **changes}
    found = forecast_noise(Joint.from_counts(COUNTS), LDP(0.5), NOISE, **settings)  # type: ignore[arg-type]
    assert found is not None
    return found


@given(
    arrays(np.int64, (2, 3), elements=st.integers(0, 10**6)).filter(lambda counts: counts.any()),
    st.integers(1, 2**31 - 1),
)
def test_scaling_is_in_whole_numbers_and_to_the_record(counts: np.ndarray, n: int) -> None:
    joint = Joint.from_counts(counts)
    table = scaled(joint, n)
    assert table.n == n
    # In Python's numbers, which have no end.
    for before, after in zip(counts.ravel().tolist(), table.counts.ravel().tolist(), strict=True):
        assert 0 <= after - before * n // joint.n <= 1
        assert before or not after
    assert np.array_equal(scaled(joint, joint.n).counts, counts)


def test_too_many_records_are_refused() -> None:
    for n in (0, 2**31):
        with pytest.raises(SpecError, match="cannot be laid out"):
            scaled(Joint.from_counts(COUNTS), n)


def test_every_cell_agrees_with_the_optimum_that_a_longer_search_finds() -> None:
    found = settled()
    assert found.sizes == (750, 1500, 3000)
    assert found.epsilons == (0.3, 1.0, 3.0)
    for cost in found.costs:
        table = scaled(Joint.from_counts(COUNTS), cost.n)
        known = table if cost.epsilon is None else expected(table, Noise(cost.epsilon, 0.0, 0.01))
        best = funnel.optimal(known, LDP(0.5), 1e-5)
        assert cost.kept is not None
        assert cost.most is not None
        assert cost.kept <= best.bound / known.entropy + 1e-9
        assert best.utility / known.entropy <= cost.most + 1e-9
        assert cost.most - cost.kept <= 3e-3
        assert cost.level is not None
        assert cost.level <= 0.5


def test_more_noise_or_fewer_records_never_keep_more() -> None:
    found = settled()
    for n in found.sizes:
        row = [found.cost(n, epsilon) for epsilon in (*found.epsilons, None)]
        for noisier, clearer in pairwise(row):
            assert noisier.kept <= clearer.most + 1e-9  # type: ignore[operator]
            assert noisier.most <= clearer.most  # type: ignore[operator]
    for epsilon in found.epsilons:
        for fewer, more in pairwise(found.sizes):
            assert found.cost(fewer, epsilon).kept <= found.cost(more, epsilon).most + 1e-9  # type: ignore[operator]


def test_a_protocol_made_without_noise_breaks_its_promise_and_less_with_less_noise() -> None:
    found = settled()
    for n in found.sizes:
        levels = [found.cost(n, epsilon).ignored for epsilon in found.epsilons]
        assert all(level > 0.5 for level in levels)  # type: ignore[operator]
        assert levels == sorted(levels, reverse=True)  # type: ignore[type-var]
        assert found.cost(n, None).ignored is None


def test_the_same_counts_give_the_same_figures() -> None:
    assert small() == settled()


def test_what_learning_values_costs_is_noise_for_the_counts() -> None:
    all_of_it, half = small(epsilons=(), sizes=()), small(epsilons=(), sizes=(), part=0.3)
    assert half.cost(1500, 1.0).ignored == settled().cost(1500, 0.3).ignored
    assert half.cost(1500, 1.0).kept < all_of_it.cost(1500, 1.0).kept  # type: ignore[operator]


def test_a_bound_for_the_published_counts_alone_has_no_such_costs() -> None:
    joint = Joint.from_counts(COUNTS)
    assert forecast_noise(joint, parse_guarantee("mi:0.1"), NOISE) is None
    assert forecast_noise(joint, LIP(0.0), NOISE) is None


def test_where_the_table_is_too_small_what_helps_is_said_and_does() -> None:
    joint = Joint.from_counts(RARE, secret=["ill", "well", "rare", "odd"])
    guarantee, noise = LIP(0.8), Noise(1.0, 0.0, 0.01)
    found = forecast_noise(joint, guarantee, NOISE, epsilons=(10.0,), sizes=())
    assert found is not None
    assert found.help is not None
    assert found.help.n is not None
    assert found.help.together == ("odd", "rare")
    half = found.cost(joint.n, None).kept / 2  # type: ignore[operator]
    assert found.cost(joint.n, 1.0).kept < half
    assert found.help.share == pytest.approx(half, rel=1e-3)
    more = expected(scaled(joint, found.help.n), noise)
    together = expected(grouped(joint, np.array([2, 3])), noise)
    for table in (more, together):
        assert funnel.optimal(table, guarantee, 1e-3).bound / table.entropy >= found.help.share
        best = funnel.optimal(table, guarantee, 1e-3)
        assert best.utility / table.entropy >= found.help.share - 1e-3
    said = found.sentence
    assert said is not None
    assert f"about {found.help.n:,} records with the same frequencies" in said
    assert f"the values odd, rare of S made one (then at least {found.help.then:.1%})" in said
    assert found.help.then == pytest.approx(funnel.optimal(together, guarantee).utility / joint.entropy, abs=3e-3)
    assert "an epsilon of 10" in said
    assert said in list(found.lines())


def test_nothing_has_to_help_where_noise_costs_little() -> None:
    joint = Joint.from_counts(COUNTS * 100)
    found = forecast_noise(joint, LDP(0.5), NOISE, epsilons=(), sizes=())
    assert found is not None
    assert found.help is None
    assert found.sentence is None
    plain = funnel.optimal(joint, LDP(0.5)).protocol
    assert what_would_help(joint, LDP(0.5), Noise(1.0, 0.0, 0.01), plain) is None


def test_a_cell_that_cannot_be_had_says_why() -> None:
    joint = Joint.from_counts([[400, 200], [180, 240], [0, 1]])
    found = forecast_noise(joint, parse_guarantee("rldp:1.0,0.05"), NOISE, epsilons=(), sizes=(100,), seconds=0.1)
    assert found is not None
    without = found.cost(100, None)
    assert without.kept is None
    assert without.share == "-"
    assert without.reason is not None
    assert "no record has S" in without.reason
    assert found.cost(100, 1.0).kept is not None


def test_a_plan_computes_it_if_asked(tmp_path: Path) -> None:
    cells = [(s, x) for s, row in enumerate(COUNTS) for x, count in enumerate(row) for _ in range(count)]
    secret, shown = zip(*cells, strict=True)
    table = pa.table({"marital-status": [f"s{s}" for s in secret], "relationship": [f"x{x}" for x in shown]})
    spec = make_project(tmp_path, SPEC.replace("lip:1.0", "ldp:0.5"), table)
    told = CliRunner().invoke(main, ["plan", str(spec), "--frequencies", "--json"], catch_exceptions=False).stdout
    outlook = json.loads(told)["frequencies"]["outlook"]
    assert outlook["guarantee"] == "ldp:0.5"
    assert [(cost["n"], cost["epsilon"]) for cost in outlook["costs"]] == [
        (n, epsilon) for n in (1000, 1500, 10_000, 100_000) for epsilon in (None, 0.1, 0.3, 1.0, 3.0)
    ]


def test_a_console_shows_tables_and_the_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    joint, found = Joint.from_counts(COUNTS), settled()
    spec = ReleaseSpec.load(make_project(tmp_path))
    for noise in (found, None):
        Console(False).print_plan(plan_of(spec, joint, noise=noise, costing=True))
        text = capsys.readouterr().out
        assert all(line in text for line in found.lines()) == (noise == found)
        assert ("no table of what noise costs" in text) == (noise is None)
    Console(True).print_plan(plan_of(spec, joint))
    assert json.loads(capsys.readouterr().out)["frequencies"]["outlook"] is None
    table = [line.split() for line in found.lines() if line.lstrip().startswith("1,500")]
    assert table[0][2:] == [found.cost(1500, epsilon).share for epsilon in (None, *found.epsilons)]
    assert table[1][2:] == [f"{found.cost(1500, epsilon).ignored:.3g}" for epsilon in found.epsilons]


def test_a_plan_that_loses_much_to_noise_points_to_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    joint, spec, hint = Joint.from_counts(COUNTS), ReleaseSpec.load(make_project(tmp_path)), "--frequencies says what"
    for why, kept, noise, pointed in (
        ("noise", 0.4, None, True),
        ("sample and noise", 0.4, None, True),
        ("noise", 0.5, None, False),
        ("sample", 0.4, None, False),
        ("noise", 0.4, settled(), False),
    ):
        sure = Certainty("ldp:0.5", "ldp:0.5", why, kept, 0.9, 1.0, (0.05,))
        Console(False).print_plan(plan_of(spec, joint, noise is not None, certainty=sure, noise=noise))
        assert (hint in capsys.readouterr().out) == pointed
