"""The rows of the report's tables: complete where they can be, and the most important ones otherwise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from funnel import LDP, LIP, Alphabet, Joint, Protocol, fit, measures
from funnel.release.public import largest_ratios
from funnel.report import ReportContent, tables
from funnel.report.changes import log_lift

Builder = Callable[..., ReportContent]
JOINT = Joint.from_counts([[40_000, 10_000, 5_000], [10_000, 30_000, 25_000]])


def _large(outputs: int, secrets: int) -> Joint:
    generator = np.random.default_rng(7)
    return Joint.from_counts(1000 * generator.integers(1, 60, size=(secrets, outputs)))


def test_beliefs_are_the_prior_times_the_lift_and_within_the_limits(make_content: Builder) -> None:
    content = make_content(JOINT, fit("optimal", JOINT, LIP(0.4)), LIP(0.4)).public()
    promised = content.promised
    posterior = tables.posterior_of_secret(content)
    np.testing.assert_allclose(posterior.sum(axis=0), 1, atol=0.05)
    found = tables.belief_rows(content, promised)
    assert found.complete
    for s, row in enumerate(found.rows):
        assert row.label == JOINT.secret.labels[s]
        assert (row.lowest, row.highest) == pytest.approx((posterior[s].min(), posterior[s].max()), abs=0.05)
        assert row.least is not None
        assert row.most is not None
        assert row.least - 1e-12 <= row.lowest <= row.prior <= row.highest <= row.most + 1e-12


def test_outputs_name_their_likeliest_inputs(make_content: Builder) -> None:
    protocol = fit("grr", JOINT, LIP(1.0))
    content = make_content(JOINT, protocol, LIP(1.0)).public()
    posterior = content.laws.posterior
    np.testing.assert_allclose(posterior, measures.posterior(JOINT, protocol), atol=0.01)
    for y, row in enumerate(tables.output_rows(content).rows):
        assert row.probability == pytest.approx(protocol.matrix[y] @ JOINT.p_input, abs=0.005)
        assert [chance for _, chance in row.sources] == sorted(posterior[y], reverse=True)[:3]
        assert row.further == 0


@pytest.mark.parametrize(("secrets", "widths"), [(2, [2]), (7, [7]), (8, [4, 4]), (15, [5, 5, 5]), (28, [7, 7, 7, 7])])
def test_lifts_are_cut_into_even_blocks_that_hold_all_of_them(
    make_content: Builder, secrets: int, widths: list[int]
) -> None:
    joint = _large(4, secrets)
    content = make_content(joint, fit("grr", joint, LIP(1.0)), LIP(1.0)).public()
    blocks = tables.lift_blocks(content, tables.lift_strength(content, content.promised))
    assert [len(block.secrets) for block in blocks] == widths
    assert sum((block.secrets for block in blocks), ()) == joint.secret.labels
    for y in range(4):
        lifts = [cell.lift for block in blocks for cell in block.rows[y][1]]
        np.testing.assert_array_equal(lifts, content.findings.lift[:, y])


def test_too_many_lifts_are_cut_to_the_fifty_furthest_from_one(make_content: Builder) -> None:
    joint = _large(60, 3)
    content = make_content(joint, fit("grr", joint, LIP(1.0)), LIP(1.0)).public()
    strength = tables.lift_strength(content, content.promised)
    assert tables.lift_blocks(content, strength) == ()
    found = tables.lift_rows(content, strength)
    assert (len(found.rows), found.total, found.complete) == (50, 180, False)
    strongest = np.sort(np.abs(np.log(content.findings.lift)).ravel())[::-1][:50]
    np.testing.assert_allclose([abs(np.log(row.cell.lift)) for row in found.rows], strongest)
    shown = tables.output_rows(content)
    assert (len(shown.rows), shown.total) == (50, 60)
    probabilities = [row.probability for row in shown.rows]
    assert probabilities == sorted(probabilities, reverse=True)


def test_lifts_of_what_never_occurs_are_no_rows(make_content: Builder, make_protocol: Callable[..., Protocol]) -> None:
    joint = Joint.from_counts([[5_000, 3_000], [2_000, 9_000], [0, 0]])
    protocol = make_protocol(joint, [[0.6, 0.5], [0.4, 0.5], [0, 0]], ["u", "v", "never"], LIP(1.0))
    content = make_content(joint, protocol, LIP(1.0)).public()
    strength = tables.lift_strength(content, content.promised)
    assert tables.lift_rows(content, strength).total == 4
    (block,) = tables.lift_blocks(content, strength)
    assert block.rows[0][1][2].tint == block.rows[2][1][0].tint == ""
    assert tables.output_rows(content).rows[2].sources == ()
    assert np.isnan(tables.belief_rows(content, content.promised).rows[2].lowest)


@pytest.mark.parametrize(
    ("lift", "tint"), [(np.exp(1), "up4"), (np.exp(-1), "down4"), (np.exp(0.5), "up2"), (1.01, ""), (np.nan, "")]
)
def test_shades_say_how_much_of_the_limit_is_used(lift: float, tint: str) -> None:
    assert tables.LiftCell(lift, abs(float(np.log(lift)))).tint == tint


@pytest.mark.parametrize("guarantee", [LIP(0.7), LDP(0.7)])
def test_the_worst_case_in_beliefs_is_the_witness(make_content: Builder, guarantee: LIP | LDP) -> None:
    content = make_content(JOINT, fit("grr", JOINT, guarantee), guarantee).public()
    found = tables.worst(content)
    change = found.posterior / found.prior
    if found.other is not None:
        change /= found.other_posterior / found.other_prior
    assert abs(np.log(change)) == pytest.approx(content.findings.level, abs=0.06)


def test_the_worst_case_is_found_among_outputs_of_the_same_label(
    make_content: Builder, make_protocol: Callable[..., Protocol]
) -> None:
    twins = Alphabet(("one", "two"), (("a", "b · c"), ("a · b", "c")))
    assert twins.labels[0] == twins.labels[1]
    joint = Joint.from_counts([[40_000, 10_000], [10_000, 50_000]])
    protocol = make_protocol(joint, [[0.55, 0.5], [0.45, 0.5]], twins, LIP(1.0))
    content = make_content(joint, protocol, LIP(1.0))
    found = tables.worst(content.public())
    assert abs(np.log(found.posterior / found.prior)) == pytest.approx(content.findings.level, abs=0.06)


def test_ratios_and_logarithms_of_lifts() -> None:
    lift = np.array([[2.0, 0.0, np.nan], [0.5, 1.5, np.nan], [np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(largest_ratios(lift), [4.0, np.inf, np.nan])
    np.testing.assert_array_equal(log_lift(lift[:2, 1:]), [[-np.inf, np.nan], [np.log(1.5), np.nan]])
