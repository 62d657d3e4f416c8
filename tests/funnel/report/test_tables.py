"""The tables of the public report: complete where they can be, and the most important rows otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from funnel import LDP, LIP, Joint, fit, measures
from funnel.release.public.findings import largest_ratios
from funnel.release.report_parts import LiftCell
from funnel.report.page import tint
from funnel.report.public import report_tables
from funnel.report.public.report_tables import log_lift, promised_by
from tests.funnel.report.contents import make_content, make_protocol

JOINT = Joint.from_counts([[40_000, 10_000, 5_000], [10_000, 30_000, 25_000]])


def _large(outputs: int, secrets: int) -> Joint:
    generator = np.random.default_rng(7)
    return Joint.from_counts(1000 * generator.integers(1, 60, size=(secrets, outputs)))


def test_beliefs_are_the_prior_times_the_lift_and_within_the_limits() -> None:
    content = make_content(JOINT, fit("optimal", JOINT, LIP(0.4)), LIP(0.4)).public()
    posterior = report_tables.posterior_of_secret(content)
    np.testing.assert_allclose(posterior.sum(axis=0), 1, atol=0.05)
    found = report_tables.beliefs(content)
    assert len(found.rows) == found.total
    for s, row in enumerate(found.rows):
        assert row.label == JOINT.secret.labels[s]
        assert (row.lowest, row.highest) == pytest.approx((posterior[s].min(), posterior[s].max()), abs=0.05)
        assert row.least - 1e-12 <= row.lowest <= row.prior <= row.highest <= row.most + 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_no_belief_is_beyond_what_is_told_of_a_small_table(seed: int) -> None:
    # Lifts of few records are told to a half, or not at all.
    joint = Joint.from_counts(np.random.default_rng(seed).integers(1, 90, size=(2, 8)) * [[9], [1]])
    protocol, bound = fit("grr", joint, LIP(0.6)), LIP(0.6)
    exact = measures.lift(joint, protocol) * joint.p_secret[:, np.newaxis]
    for row, beliefs in zip(
        report_tables.beliefs(make_content(joint, protocol, bound).public()).rows, exact, strict=True
    ):
        assert row.lowest <= beliefs.min() <= beliefs.max() <= row.highest


def test_outputs_name_their_likeliest_inputs() -> None:
    protocol = fit("grr", JOINT, LIP(1.0))
    content = make_content(JOINT, protocol, LIP(1.0)).public()
    posterior = content.distributions.posterior
    distribution = (protocol.matrix * JOINT.p_input).T
    np.testing.assert_allclose(posterior, (distribution / distribution.sum(axis=0)).T, atol=0.01)
    for y, row in enumerate(report_tables.outputs(content).rows):
        assert row.probability == pytest.approx(protocol.matrix[y] @ JOINT.p_input, abs=0.005)
        assert [source.chance for source in row.sources] == sorted(posterior[y], reverse=True)[:3]
        assert row.further == 0


def test_all_lifts_are_in_the_table_where_there_is_room() -> None:
    joint = _large(4, 28)
    content = make_content(joint, fit("grr", joint, LIP(1.0)), LIP(1.0)).public()
    found = report_tables.lifts(content, promised_by(LIP(1.0)))
    assert found.table.secrets == joint.secret.labels
    shown = [[cell.lift for cell in row.cells] for row in found.table.rows]
    np.testing.assert_array_equal(np.transpose(shown), content.findings.lift)
    assert found.strongest == ()


def test_too_many_lifts_are_cut_to_the_fifty_furthest_from_one() -> None:
    joint = _large(60, 3)
    content = make_content(joint, fit("grr", joint, LIP(1.0)), LIP(1.0)).public()
    found = report_tables.lifts(content, promised_by(LIP(1.0)))
    assert found.table is None
    assert (len(found.strongest), found.total) == (50, 180)
    strongest = np.sort(np.abs(np.log(content.findings.lift)).ravel())[::-1][:50]
    np.testing.assert_allclose([abs(np.log(row.cell.lift or np.nan)) for row in found.strongest], strongest)
    shown = report_tables.outputs(content)
    assert (len(shown.rows), shown.total) == (50, 60)
    probabilities = [row.probability for row in shown.rows]
    assert probabilities == sorted(probabilities, reverse=True)


def test_lifts_of_what_never_occurs_are_no_rows() -> None:
    joint = Joint.from_counts([[5_000, 3_000], [2_000, 9_000], [0, 0]])
    protocol = make_protocol(joint, [[0.6, 0.5], [0.4, 0.5], [0, 0]], ["u", "v", "never"], LIP(1.0))
    content = make_content(joint, protocol, LIP(1.0)).public()
    found = report_tables.lifts(content, promised_by(LIP(1.0)))
    assert found.total == 4
    assert found.table.rows[0].cells[2].lift is found.table.rows[2].cells[0].lift is None
    assert found.table.rows[2].ratio is None
    assert found.spreads[2].values == ()
    assert report_tables.outputs(content).rows[2].sources == ()
    assert report_tables.beliefs(content).rows[2].lowest is None


@pytest.mark.parametrize(
    ("lift", "shade"), [(np.exp(1), "up4"), (np.exp(-1), "down4"), (np.exp(0.5), "up2"), (1.01, ""), (None, "")]
)
def test_shades_say_how_much_of_the_limit_is_used(lift: float | None, shade: str) -> None:
    strength = None if lift is None else abs(float(np.log(lift)))
    assert tint(LiftCell(lift=lift, strength=strength)) == shade


@pytest.mark.parametrize("guarantee", [LIP(0.7), LDP(0.7)])
def test_the_worst_case_in_beliefs_is_the_witness(guarantee: LIP | LDP) -> None:
    assert report_tables.strongest_case(make_content(JOINT, fit("grr", JOINT, guarantee), guarantee).public()) is None
    # Of a release that breaks its bound it is told.
    content = make_content(JOINT, fit("grr", JOINT, guarantee), type(guarantee)(0.3)).public()
    found = report_tables.strongest_case(content)
    change = found.posterior / found.prior
    if found.other is not None:
        change /= found.other_posterior / found.other_prior
    assert abs(np.log(change)) == pytest.approx(content.findings.figures.level, abs=0.05)


def test_the_heat_map_holds_the_most_common_values_and_what_the_others_have_together() -> None:
    joint = _large(120, 2)
    protocol = fit("grr", joint, LIP(1.0))
    content = make_content(joint, protocol, LIP(1.0)).public()
    heat = report_tables.heat(content)
    assert (len(heat.inputs), len(heat.outputs), len(heat.shares)) == (12, 12, 13)
    assert (heat.further_inputs, heat.further_outputs) == (108, 108)
    np.testing.assert_allclose(np.sum(heat.shares, axis=0), 1, atol=0.02)
    common = {joint.inputs.labels[x] for x in np.argsort(-content.distributions.p_input, kind="stable")[:12]}
    assert set(heat.inputs) == common
    for i, output in enumerate(heat.outputs):
        for k, name in enumerate(heat.inputs):
            exact = protocol.matrix[protocol.outputs.labels.index(output), joint.inputs.labels.index(name)]
            assert heat.shares[i][k] == pytest.approx(exact, abs=0.001)


def test_the_heat_map_never_claims_certainty() -> None:
    joint = Joint.from_counts([[1, 1, 1], [1, 1, 1]])
    protocol = make_protocol(joint, [[1, 0.9999, 0.4], [0, 0.0001, 0.6]], ["u", "v"], LIP(1.0))
    heat = report_tables.heat(make_content(joint, protocol, LIP(1.0)).public())
    assert heat.shares == ((1.0, 0.999, 0.4), (0.0, 0.001, 0.6))


def test_spreads_are_the_ratios_where_secrets_are_compared() -> None:
    content = make_content(JOINT, fit("grr", JOINT, LDP(0.7)), LDP(0.7))
    found = report_tables.lifts(content.public(), promised_by(LDP(0.7))).spreads
    exact = largest_ratios(content.findings.lift)
    for spread, ratio in zip(found, exact, strict=True):
        (value,) = spread.values
        assert isinstance(value, float)
        # On the grid of levels, which is a tenth of the budget.
        assert ratio <= value <= ratio * np.exp(0.07) * 1.06


def test_logs_of_lifts_know_what_excludes() -> None:
    np.testing.assert_array_equal(log_lift(np.array([[1.0, 0.0], [np.nan, np.e]])), [[0, -np.inf], [np.nan, 1]])
