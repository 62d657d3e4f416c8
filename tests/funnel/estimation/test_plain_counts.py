"""Plain counts of invariant protocols: means and variances by enumeration, coverage by simulation, refusals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funnel import LIP, Alphabet, DataError, Joint, Protocol, SpecError, estimate, fit
from funnel.estimation.means import estimate_numbers
from funnel.estimation.odds import estimate_odds
from funnel.estimation.plain_counts import CountNoise, PlainCounts
from funnel.estimation.plain_shares import plain_shares
from funnel.estimation.variance_ratios import chi_square_ratio, variance_ratio
from funnel.estimation.weighted import estimate_weighted
from tests.invariant import IntTable, counts_of, exact_channel, flows, invariant_protocol, protocol_of_flow

CELLS = Alphabet(("sex", "job", "age"), tuple(itertools.product("fm", "abc", ["20", "40"])))
NUMBERS = st.integers(-3, 3)


def published(counts: IntTable, channel: list[list[Fraction]]) -> Iterator[tuple[Fraction, np.ndarray]]:
    """Every table that may be published for these counts of records, record by record, with its probability."""
    records = [x for x, number in enumerate(counts) for _ in range(number)]
    for outputs in itertools.product(range(len(counts)), repeat=len(records)):
        chance = math.prod((channel[y][x] for x, y in zip(records, outputs, strict=True)), start=Fraction(1))
        if chance:
            yield chance, np.bincount(outputs, minlength=len(counts))


def moments(cases: Iterator[tuple[Fraction, Fraction]]) -> tuple[Fraction, Fraction]:
    """Mean and variance, exactly."""
    mean = square = Fraction(0)
    for chance, value in cases:
        mean, square = mean + chance * value, square + chance * value * value
    return mean, square - mean * mean


@settings(max_examples=40)
@given(flows(max_values=3, max_count=2), st.data())
def test_given_the_records_totals_are_right_on_average_and_vary_as_is_said(flow: IntTable, data: st.DataObject) -> None:
    """Of any numbers that values have: their total over all published tables, each with its probability."""
    counts, channel, a = counts_of(flow), exact_channel(flow), len(flow)
    psi = data.draw(st.lists(NUMBERS, min_size=a, max_size=a))
    n = int(counts.sum())
    totals = ((chance, Fraction(int(psi @ shown))) for chance, shown in published(counts, channel))
    mean, variance = moments(totals)
    assert mean == int(psi @ counts)
    of_record = [
        sum(psi[y] ** 2 * channel[y][x] for y in range(a)) - sum(psi[y] * channel[y][x] for y in range(a)) ** 2
        for x in range(a)
    ]
    assert variance == sum((int(counts[x]) * of_record[x] for x in range(a)), Fraction(0))
    # At most that of as many independent records of the same distribution.
    usual = Fraction(int((counts * np.square(psi)).sum()), n) - Fraction(int((counts * psi).sum()), n) ** 2
    assert variance <= n * usual
    plain = PlainCounts.of(protocol_of_flow(flow), counts)
    given_records, whole = plain.both_variances(np.array([psi], dtype=float))
    assert given_records[0] == pytest.approx(float(variance / n), abs=1e-12)
    assert whole[0] == pytest.approx(float(usual), abs=1e-12)
    if usual:
        assert plain.ratio(np.array([psi], dtype=float))[0] == pytest.approx(float(variance / (n * usual)), abs=1e-9)


@settings(max_examples=15)
@given(flows(max_values=3, max_count=2), st.data())
def test_the_published_records_tell_that_variance_without_bias(flow: IntTable, data: st.DataObject) -> None:
    counts, channel, a = counts_of(flow), exact_channel(flow), len(flow)
    psi = np.array([data.draw(st.lists(NUMBERS, min_size=a, max_size=a))], dtype=float)
    protocol = protocol_of_flow(flow)
    mean = 0.0
    for chance, shown in published(counts, channel):
        plain = PlainCounts.of(protocol, shown)
        mean += float(chance) * plain.both_variances(psi)[0][0]
        assert 0 <= plain.ratio(psi)[0] <= 1
    assert mean == pytest.approx(PlainCounts.of(protocol, counts).both_variances(psi)[0][0], abs=1e-9)


@settings(max_examples=25)
@given(
    st.lists(st.integers(1, 5), min_size=2, max_size=3),
    st.integers(1, 4),
    st.fractions(0, 1, max_denominator=8),
    st.data(),
)
def test_for_the_population_both_variances_add(weights: list[int], n: int, kept: Fraction, data: st.DataObject) -> None:
    """Samples of a population, each with its own protocol: a record stays or takes a random record's value."""
    a = len(weights)
    pi = [Fraction(weight, sum(weights)) for weight in weights]
    psi = data.draw(st.lists(NUMBERS, min_size=a, max_size=a))
    cases, inside = [], Fraction(0)
    for sample in itertools.product(range(a), repeat=n):
        drawn = math.prod((pi[x] for x in sample), start=Fraction(1))
        counts = np.bincount(sample, minlength=a)
        share = [Fraction(int(count), n) for count in counts]
        channel = [[kept * (x == y) + (1 - kept) * share[y] for x in range(a)] for y in range(a)]
        totals = [(chance, Fraction(int(psi @ shown))) for chance, shown in published(counts, channel)]
        inside += drawn * moments(iter(totals))[1]
        cases += [(drawn * chance, total) for chance, total in totals]
    mean, variance = moments(iter(cases))
    of_one = sum(p * v for p, v in zip(pi, psi, strict=True))
    usual = sum(p * v * v for p, v in zip(pi, psi, strict=True)) - of_one**2
    assert mean == n * of_one
    assert variance == n * usual + inside
    assert variance <= 2 * n * usual


def swapping(counts: np.ndarray, kept: float) -> np.ndarray:
    """A record keeps its value or takes a random one's: half of these of all records, half of its value's neighbour."""
    p, a = counts / counts.sum(), len(counts)
    near = np.zeros((a, a))
    for x in range(0, a, 2):
        near[x : x + 2, x : x + 2] = (p[x : x + 2] / p[x : x + 2].sum())[:, None]
    return np.asarray(kept * np.eye(a) + (1 - kept) / 2 * (p[:, None] + near))


def records_of(counts: np.ndarray) -> pd.DataFrame:
    """So many records of each cell."""
    return pd.DataFrame(np.repeat(np.array(CELLS.symbols), counts, axis=0), columns=CELLS.columns)


COUNTS = np.array([900, 600, 5, 3, 300, 40, 700, 10, 250, 1, 80, 111])
PROTOCOL = invariant_protocol(swapping(COUNTS, 0.7), CELLS, COUNTS)


TABLES = [(None, ()), ("job", ()), (("sex", "job"), ()), ("job", "sex"), ("age", "job")]


@pytest.mark.parametrize(("by", "within"), TABLES)
@pytest.mark.parametrize("sampling", [False, True])
def test_nineteen_of_twenty_intervals_hold_the_truth(by: str | None, within: str | tuple[()], sampling: bool) -> None:
    """Cells of 1, 3 and 5 records among them; of a sample the protocol is made anew, for its own counts."""
    random, held = np.random.default_rng(11), []
    truth = None
    for _ in range(400):
        counts = random.multinomial(COUNTS.sum(), COUNTS / COUNTS.sum()) if sampling else COUNTS
        protocol = invariant_protocol(swapping(np.maximum(counts, 1e-9), 0.7), CELLS, COUNTS) if sampling else PROTOCOL
        shown = random.multinomial(counts, protocol.matrix.T / protocol.matrix.T.sum(axis=1)[:, None]).sum(axis=0)
        found = estimate(shown, protocol, by, within=within, sampling=sampling)
        if truth is None:
            truth = estimate(COUNTS, protocol, by, within=within).frequencies
        seen = np.isfinite(found.frequencies)
        assert ((found.lower <= found.frequencies) & (found.frequencies <= found.upper))[seen].all()
        held.append((found.lower <= truth) & (truth <= found.upper))
    # Two to twelve cells, dependent ones among them: four standard deviations of 400 independent intervals.
    assert 0.95 - 0.03 <= np.mean(held) <= 0.975
    assert np.mean(held, axis=0).min() > 0.9


def test_counts_are_what_is_published_and_errors_are_those_of_the_theorem() -> None:
    shown = np.array([890, 610, 4, 4, 310, 30, 690, 20, 249, 2, 90, 101])
    channel, n = PROTOCOL.matrix, COUNTS.sum()
    found = estimate(shown, PROTOCOL, "job")
    of = np.array([symbol[1] for symbol in CELLS.symbols])
    assert found.r is not None
    figures = zip(found.cells, found.frequencies, found.errors, found.lower, found.upper, found.r, strict=True)
    for cell, share, error, low, up, r in figures:
        inside = channel[of == cell[0]].sum(axis=0)
        assert share == pytest.approx(shown[of == cell[0]].sum() / n)
        assert error == pytest.approx(math.sqrt(float(shown @ (inside * (1 - inside)))) / n)
        # Wilson: at both ends the difference is 1.96 errors of that end.
        for end in (low, up):
            assert abs(share - end) == pytest.approx(1.959964 * math.sqrt(r * end * (1 - end) / n), rel=1e-5)
    whole = estimate(shown, PROTOCOL, "job", sampling=True)
    usual = found.frequencies * (1 - found.frequencies) / n
    assert whole.errors**2 == pytest.approx(found.errors**2 + usual)
    assert found.method == "count"
    assert "counted as usual" in found.about
    assert [cell["r"] for cell in found.to_dict()["cells"]] == pytest.approx(list(found.r))
    assert str(found).splitlines()[0].split() == ["job", "share", "error", "from", "to", "r"]


def test_a_column_that_is_misspelt_is_named_with_the_nearest() -> None:
    plain = PlainCounts.of(PROTOCOL, COUNTS)
    with pytest.raises(SpecError, match=r"'jop' is no column; did you mean job\?; the release has sex, job, age"):
        plain_shares(plain, ["jop"])
    with pytest.raises(SpecError, match=r"'sx' is no column; did you mean sex\?; the protocol is about sex, job, age"):
        estimate(COUNTS, PROTOCOL, "sx")


def test_values_that_are_published_exactly_have_no_error() -> None:
    channel = np.eye(12)
    channel[:2, :2] = [[0.8, 0.3], [0.2, 0.7]]
    found = estimate(COUNTS, invariant_protocol(channel, CELLS, COUNTS))
    assert (found.errors[2:] < 1e-9).all()
    assert found.lower[2:] == pytest.approx(found.frequencies[2:], abs=1e-15)
    assert found.upper[2:] == pytest.approx(found.frequencies[2:], abs=1e-15)
    assert found.r is not None
    assert found.r[2:].tolist() == [0.0] * 10
    assert (found.errors[:2] > 0).all()


def test_counts_that_hardly_ever_change_have_limits_of_whole_records() -> None:
    """A record stays in its cell with 0.9: without whole numbers its interval would hold it in 82 of 100 releases."""
    counts = np.array([1, 99, *[0] * 10])
    channel = np.eye(12)
    channel[:2, :2] = [[0.9, 0.1 / 99], [0.1, 1 - 0.1 / 99]]
    protocol = invariant_protocol(channel, CELLS, np.maximum(counts, 1))
    for shown in range(3):
        found = estimate(np.array([shown, 100 - shown, *[0] * 10]), protocol)
        low, up = 100 * found.lower[0], 100 * found.upper[0]
        assert (low, up) == pytest.approx((round(low), round(up)), abs=1e-9)
        assert low - 1e-9 <= 1 <= up + 1e-9


def test_a_part_without_records_is_not_told() -> None:
    shown = COUNTS * np.array([symbol[1] != "b" for symbol in CELLS.symbols])
    found = estimate(shown, PROTOCOL, "age", within="job")
    empty = [cell[0] == "b" for cell in found.cells]
    assert np.isnan(found.frequencies).tolist() == empty
    assert (found.lower[empty] == 0).all()
    assert (found.upper[empty] == 1).all()
    assert [cell["frequency"] is None and cell["r"] is None for cell in found.to_dict()["cells"]] == empty
    assert str(found).count("not told") == 2


@pytest.mark.parametrize("sampling", [False, True])
def test_means_and_totals_of_numbers_hold_the_truth(sampling: bool) -> None:
    random = np.random.default_rng(5)
    ages = np.array([int(symbol[2]) for symbol in CELLS.symbols])
    women = np.array([symbol[0] == "f" for symbol in CELLS.symbols])
    truth = np.array([COUNTS[part] @ ages[part] / COUNTS[part].sum() for part in (women, ~women)])
    held = []
    for _ in range(300):
        counts = random.multinomial(COUNTS.sum(), COUNTS / COUNTS.sum()) if sampling else COUNTS
        protocol = invariant_protocol(swapping(np.maximum(counts, 1e-9), 0.7), CELLS, COUNTS) if sampling else PROTOCOL
        shown = random.multinomial(counts, protocol.matrix.T / protocol.matrix.T.sum(axis=1)[:, None]).sum(axis=0)
        found = estimate_numbers(shown, protocol, "age", "sex", sampling=sampling)
        assert found.means[0] == pytest.approx(shown[women] @ ages[women] / shown[women].sum())
        held.append((found.mean_lower <= truth) & (truth <= found.mean_upper))
    assert 0.9 <= np.mean(held) <= 0.99


def test_weights_of_classes_are_counted_as_usual() -> None:
    found = estimate_weighted(COUNTS, PROTOCOL, "age", {"20": (1, 0, 2), "40": (3, 2, 4)}, "sex")
    weights = np.array([1 if symbol[2] == "20" else 3 for symbol in CELLS.symbols]) * COUNTS
    women = np.array([symbol[0] == "f" for symbol in CELLS.symbols])
    assert found.frequencies[0] == pytest.approx(weights[women].sum() / weights.sum())


def test_r_of_records_is_that_of_their_counts() -> None:
    records = records_of(COUNTS)
    psi = np.array([[symbol[0] == "f", int(symbol[2])] for symbol in CELLS.symbols], dtype=float).T
    by_record = np.repeat(psi, COUNTS, axis=1)
    expected = variance_ratio(COUNTS, PROTOCOL, psi)
    assert variance_ratio(records, PROTOCOL, by_record) == pytest.approx(expected)
    assert variance_ratio(records, PROTOCOL, by_record[1]) == pytest.approx(expected[1])
    found = estimate(COUNTS, PROTOCOL, "sex").r
    assert found is not None
    assert found[0] == pytest.approx(expected[0])
    # A factor and a constant are of no account.
    assert variance_ratio(COUNTS, PROTOCOL, 7 - 3 * psi) == pytest.approx(expected)
    by_record[0, 0] += 1
    with pytest.raises(SpecError, match="differs between records"):
        variance_ratio(records, PROTOCOL, by_record)
    with pytest.raises(SpecError, match="one finite number for each of the 3,000 records"):
        variance_ratio(records, PROTOCOL, psi)


def test_outputs_without_a_record_count_with_the_mean() -> None:
    counts = np.where(COUNTS == 1, 0, COUNTS)
    records = records_of(counts)
    psi = np.arange(12.0)
    filled = np.where(counts > 0, psi, psi @ counts / counts.sum())
    assert variance_ratio(records, PROTOCOL, np.repeat(psi, counts)) == pytest.approx(
        variance_ratio(counts, PROTOCOL, filled)
    )


def test_the_chi_square_ratio_of_two_by_two_is_that_of_the_log_odds() -> None:
    cells = Alphabet(("sex", "job"), tuple(itertools.product("fm", "ab")))
    counts = np.array([400, 600, 800, 1200])
    protocol = invariant_protocol(swapping(counts, 0.6), cells, counts)
    # Without dependence both test the same contrast.
    log_odds = np.array([1, -1, -1, 1]) / counts
    assert chi_square_ratio(counts, protocol, "sex", "job") == pytest.approx(
        float(variance_ratio(counts, protocol, log_odds))
    )


def test_the_chi_square_statistic_over_one_plus_r_has_its_mean() -> None:
    """Of independent columns: without the division it is too large by half."""
    random, sexes, jobs = np.random.default_rng(2), np.array([0.5, 0.5]), np.array([0.5, 0.3, 0.2])
    cells, pi = Alphabet(("sex", "job"), tuple(itertools.product("fm", "abc"))), np.outer(sexes, jobs).ravel()
    plain, divided = [], []
    for _ in range(400):
        counts = random.multinomial(3000, pi)
        protocol = invariant_protocol(swapping(counts, 0.4), cells, counts)
        shown = random.multinomial(counts, protocol.matrix.T / protocol.matrix.T.sum(axis=1)[:, None]).sum(axis=0)
        table = shown.reshape(2, 3)
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / 3000
        plain.append(((table - expected) ** 2 / expected).sum())
        divided.append(plain[-1] / (1 + chi_square_ratio(shown, protocol, "sex", "job")))
    # Two degrees of freedom; the mean of 400 has a standard error of 0.1.
    assert np.mean(plain) > 2.8
    assert np.mean(divided) == pytest.approx(2, abs=0.4)


@pytest.mark.parametrize("sampling", [False, True])
def test_odds_ratios_are_those_of_the_counts_and_hold_the_truth(sampling: bool) -> None:
    random, held = np.random.default_rng(8), []
    counts = np.maximum(COUNTS, 40)
    truth = estimate_odds(counts, invariant_protocol(swapping(counts, 0.7), CELLS, counts), "job", "age")
    assert (truth.reference, truth.cells) == (("a", "20"), (("b", "40"), ("c", "40")))
    table = counts.reshape(2, 3, 2).sum(axis=0)
    assert truth.odds.tolist() == pytest.approx([table[k, 1] * table[0, 0] / table[k, 0] / table[0, 1] for k in (1, 2)])
    for _ in range(400):
        sample = random.multinomial(counts.sum(), counts / counts.sum()) if sampling else counts
        protocol = invariant_protocol(swapping(sample, 0.7), CELLS, sample)
        shown = random.multinomial(sample, protocol.matrix.T / protocol.matrix.T.sum(axis=1)[:, None]).sum(axis=0)
        found = estimate_odds(shown, protocol, "job", "age", sampling=sampling)
        held.append((found.lower <= truth.odds) & (truth.odds <= found.upper))
    # Two dependent cells of 400 releases: four standard deviations.
    assert 0.95 - 0.035 <= np.mean(held) <= 0.985


def test_odds_of_a_cell_without_records_are_not_told() -> None:
    shown = COUNTS * np.array([symbol[1:] != ("b", "40") for symbol in CELLS.symbols])
    found = estimate_odds(shown, PROTOCOL, "job", "age")
    assert np.isnan(found.odds).tolist() == [True, False]
    assert (found.lower[0], found.upper[0]) == (0.0, np.inf)
    assert str(found).count("not told") == 1
    told = found.to_dict()["cells"]
    assert (told[0]["odds_ratio"], told[0]["upper"], told[1]["r"]) == (None, None, pytest.approx(float(found.r[1])))


def test_groups_that_were_not_published_are_estimated_and_not_counted() -> None:
    """Records of one region are not balanced: those who came from elsewhere are among them."""
    random = np.random.default_rng(7)
    cells = Alphabet(("job",), (("a",), ("b",)))
    counts = np.array([5000, 5000])
    protocol = invariant_protocol([[0.8, 0.2], [0.2, 0.8]], cells, counts)
    regions = np.repeat(["north", "south"], 5000)
    shown = np.where(random.random(10_000) < 0.2, 1, 0) ^ np.repeat([0, 1], 5000)
    table = pd.DataFrame({"region": regions, "job": np.array(["a", "b"])[shown]})
    found = estimate(table, protocol, ("region", "job"))
    assert found.method == "em"
    assert found.r is None
    assert found.frequencies.tolist() == pytest.approx([1, 0, 0, 1], abs=0.04)
    with pytest.raises(SpecError, match="plain counts are biased in groups of 'region'"):
        estimate(table, protocol, ("region", "job"), method="count")


def test_what_does_not_go_with_plain_counts_is_refused() -> None:
    grr = fit("grr", Joint.from_counts([[300, 100], [100, 500]]), LIP(0.5))
    for ask in (estimate, lambda *asked, **more: estimate_numbers(*asked, of="X", **more)):
        with pytest.raises(SpecError, match="biased in a protocol that is not invariant"):
            ask(np.array([430, 570]), grr, method="count")
    with pytest.raises(SpecError, match="this protocol is 'grr'"):
        variance_ratio(np.array([430, 570]), grr, [1, 0])
    with pytest.raises(SpecError, match="this protocol is 'grr'"):
        chi_square_ratio(np.array([430, 570]), grr, "X", "Y")
    with pytest.raises(SpecError, match="this protocol is 'grr'"):
        estimate_odds(np.array([430, 570]), grr, "X", "Y")
    with pytest.raises(SpecError, match="confidence of an interval"):
        estimate_odds(COUNTS, PROTOCOL, "sex", "job", confidence=1.0)
    with pytest.raises(SpecError, match="neither a bootstrap nor rare values"):
        estimate(COUNTS, PROTOCOL, bootstrap=100)
    with pytest.raises(SpecError, match="need no rare values"):
        estimate_numbers(COUNTS, PROTOCOL, "age", at_most={CELLS.symbols[0]: 0.1})
    with pytest.raises(SpecError, match="name columns once each"):
        chi_square_ratio(COUNTS, PROTOCOL, "sex", "sex")
    with pytest.raises(DataError, match="1 records have values that this protocol never publishes"):
        variance_ratio(pd.DataFrame([("f", "z", "20")], columns=CELLS.columns), PROTOCOL, [1])


def test_the_other_methods_agree_with_plain_counts() -> None:
    random = np.random.default_rng(3)
    shown = random.multinomial(COUNTS, PROTOCOL.matrix.T / PROTOCOL.matrix.T.sum(axis=1)[:, None]).sum(axis=0)
    counted, likeliest = (estimate(shown, PROTOCOL, "job", method=method) for method in ("count", "em"))
    assert counted.frequencies == pytest.approx(likeliest.frequencies, abs=4 * counted.errors.max())


def test_all_intervals_together_are_longer() -> None:
    each, together = (estimate(COUNTS, PROTOCOL, simultaneous=simultaneous) for simultaneous in (False, True))
    assert (together.lower < each.lower).all()
    assert (together.upper > each.upper).all()


def test_protocols_of_wide_tables_are_counted_alike() -> None:
    sparse = Protocol.of_sparse(PROTOCOL.sparse, PROTOCOL.marginal, CELLS, CELLS, "invariant")
    for by, within in TABLES:
        one, other = (estimate(COUNTS, protocol, by, within=within) for protocol in (PROTOCOL, sparse))
        assert one.cells == other.cells
        for name in ("frequencies", "errors", "lower", "upper", "r"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-12)
    assert estimate_numbers(COUNTS, sparse, "age").means == pytest.approx(
        estimate_numbers(COUNTS, PROTOCOL, "age").means
    )


@pytest.mark.parametrize("sampling", [False, True])
def test_intervals_have_room_for_the_noise_that_the_protocol_was_made_for(sampling: bool) -> None:
    """Three hundred records, most of which change: noise is a third of what the shares of the columns are off by."""
    random, held, told, alone = np.random.default_rng(13), [], [], []
    counts = np.array([40, 30, 20, 10, 30, 20, 40, 20, 30, 10, 30, 20])
    variance = 64.0
    truth = estimate(counts, PROTOCOL, "job").frequencies
    of = np.array([symbol[1] for symbol in CELLS.symbols])
    for _ in range(600):
        sample = random.multinomial(300, counts / 300) if sampling else counts
        noisy = np.maximum(sample + random.normal(0, math.sqrt(variance), 12), 0.5)
        protocol = invariant_protocol(swapping(noisy, 0.2), CELLS, counts)
        shown = random.multinomial(sample, protocol.matrix.T / protocol.matrix.T.sum(axis=1)[:, None]).sum(axis=0)
        plain = PlainCounts.of(protocol, shown, CountNoise(np.full(12, variance)))
        found = plain_shares(plain, ["job"], sampling=sampling)
        held.append((found.lower <= truth) & (truth <= found.upper))
        without = plain_shares(PlainCounts.of(protocol, shown), ["job"], sampling=sampling)
        alone.append((without.lower <= truth) & (truth <= without.upper))
        # τ² Σ_x (W(A|x) - 1[x in A])², as in docs/estimation.md, of the first job.
        off = protocol.matrix[of == "a"].sum(axis=0) - (of == "a")
        told.append(300**2 * (found.errors[0] ** 2 - without.errors[0] ** 2) / (variance * (off**2).sum()))
    assert told == pytest.approx([1.0] * 600)
    assert 0.93 <= np.mean(held) <= 0.975
    assert np.mean(held, axis=0).min() > 0.92
    assert np.mean(alone) < (0.93 if sampling else 0.88)


def test_noise_that_puts_counts_right_is_in_them_as_a_whole_and_noise_of_groups_as_their_members_are() -> None:
    everything = PlainCounts.of(PROTOCOL, COUNTS, CountNoise(np.full(12, 9.0), is_whole=True))
    aims = np.array([[symbol[1] == "a" for symbol in CELLS.symbols]], dtype=float)
    plain = PlainCounts.of(PROTOCOL, COUNTS)
    share, n = float(aims[0] @ COUNTS) / COUNTS.sum(), COUNTS.sum()
    added = everything.aimed(aims, False).covariance - plain.aimed(aims, False).covariance
    assert added[0, 0] == pytest.approx(9 * ((aims[0] - share) ** 2).sum() / n**2)
    # Two groups, the sexes: of each a count with noise, and people of a sex have jobs as its records have them.
    groups = np.array([int(symbol[0] == "m") for symbol in CELLS.symbols])
    grouped = PlainCounts.of(PROTOCOL, COUNTS, CountNoise(np.array([9.0, 25.0]), groups))
    added = grouped.aimed(aims, False).covariance - plain.aimed(aims, False).covariance
    off = aims[0] @ PROTOCOL.matrix - aims[0]
    of_group = [off[groups == k] @ COUNTS[groups == k] / COUNTS[groups == k].sum() for k in (0, 1)]
    assert added[0, 0] == pytest.approx((9 * of_group[0] ** 2 + 25 * of_group[1] ** 2) / n**2)
    assert grouped.both_variances(aims)[0][0] == pytest.approx(float(grouped.aimed(aims, False).covariance[0, 0]) * n)
