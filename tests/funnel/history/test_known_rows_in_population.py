"""Observers who know columns of the row that is drawn, in a population: added up in what samples leave open."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import funnel
from funnel.history import possible_distributions
from funnel.history.allowed import allowed_by
from funnel.history.possible_distributions import DistributionSet
from funnel.history.step import Step
from funnel.history.unit_rows import UnitRows
from funnel.joint import IntArray
from tests.funnel.history.test_known_in_population import ALPHA, INPUTS, Population, Sample, cells, known, panel
from tests.funnel.history.test_possible import lifts, within
from tests.funnel.history.test_units_in_population import Limits, clopper_pearson


def rows(share: float) -> pa.Table:
    """One version of units, a share of which have a second row in the same town, mostly of another size."""
    first, drawn = panel(1, 1)[0], np.random.default_rng(2)
    again = first.take(pa.array(np.flatnonzero(drawn.random(first.num_rows) < share)))
    size = np.where(drawn.random(again.num_rows) < 0.4, again["size"].to_numpy(), drawn.choice(["a", "b"], len(again)))
    both = pa.concat_tables([first, again.set_column(2, "size", pa.array(size))])
    return both.append_column("row", pa.array(np.arange(both.num_rows)))


def released(
    bound: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> tuple[Step, Sample, list[tuple[float, float]]]:
    """A version, what its first rows leave open, and how many second rows are like the first, by secret."""
    table, orders, ordered = rows(share), [], UnitRows.ordered

    def noted(numbers: IntArray, order: np.ndarray) -> UnitRows:
        orders.append(ordered(numbers, order))
        return orders[-1]

    book = funnel.History(funnel.parse_guarantee(bound))
    with monkeypatch.context() as patched:
        patched.setattr(UnitRows, "ordered", noted)
        step = book.extend(
            table,
            key=["row"],
            unit=["id"],
            secret=["ill"],
            inputs=["size", "town"],
            version="v0",
            secret_bytes=bytes(range(32)),
        )
    assert step.channel.inputs.symbols == tuple(INPUTS)
    begins = orders[0].at(1)
    s, x = cells(table)
    cell_of = dict(zip(orders[0].units[begins].tolist(), x[begins].tolist(), strict=True))
    later = orders[0].at(2)
    same = np.array([cell_of[unit] for unit in orders[0].units[later].tolist()]) == x[later]
    # Of the half of α that the version does not have for its counts, all is for its rows: two sides for each secret.
    stays = [clopper_pearson(int(same[s[later] == t].sum()), int((s[later] == t).sum()), ALPHA / 16) for t in (0, 1)]
    return step, Sample(1, table.take(pa.array(begins)), None), stays


def beyond(step: Step, sample: Sample, stays: list[Limits], populations: int) -> tuple[int, int]:
    """Of outputs of second rows, for what may be known: how many tell something, and how many of all are beyond."""
    allowed, drawn, said, wrong, a = allowed_by(step.guarantee), np.random.default_rng(1), 0, 0, len(INPUTS)
    for _ in range(populations):
        population = Population([sample], drawn)
        like = [Fraction(limits[drawn.integers(0, 2)]) for limits in stays]
        begun = population.cells[0]
        totals = [sum(begun[t * a : (t + 1) * a]) for t in range(2)]
        for row, wave in enumerate(step.waves[:2]):
            for node, channel in zip(wave.followed.tolist(), wave.drawn_from.tolist(), strict=True):
                distribution = begun
                if row:
                    ((_, output),) = wave.past.history(node)
                    first = step.waves[0].rows_for(())[output].tolist()
                    got = [u * first[cell % a] for cell, u in enumerate(begun)]
                    distribution = [Fraction(0)] * len(begun)
                    for (t, x), u in zip(product(range(2), range(a)), got, strict=True):
                        distribution[t * a + x] += u * like[t]
                        for z in range(a):
                            distribution[t * a + z] += u * (1 - like[t]) * begun[t * a + z] / totals[t]
                weights = wave.library[channel]
                for answer, some in product(weights.tolist(), known()):
                    given = [weight if x in some else 0 for x, weight in enumerate(answer)]
                    telling = len({answer[x] for x in some}) > 1
                    if telling and any(u * given[cell % a] for cell, u in enumerate(distribution)):
                        said += row
                        wrong += not within(lifts(population.prior(0, some, True), distribution, given), allowed)
    return said, wrong


@pytest.mark.parametrize("bound", ["rsrlip:0.8,0.05", "rattribute:0.8,0.05"])
def test_no_row_is_beyond_the_bound_for_who_knows_a_column_of_it(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    step, sample, stays = released(bound, 0.4, monkeypatch)
    said, wrong = beyond(step, sample, stays, 5)
    assert said > 20
    assert not wrong


@pytest.mark.parametrize("mutant", ["nobody knows anything of a second row", "the counts are the population"])
def test_a_maker_with_a_wrong_line_is_beyond_it(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        if mutant.startswith("nobody"):
            real = possible_distributions.PossibleStep.for_known

            def unknown(self: Any, some: Any) -> Any:
                return self if not self.is_first else real(self, some)

            patched.setattr(possible_distributions.PossibleStep, "for_known", unknown)
        else:
            patched.setattr(DistributionSet, "of", classmethod(lambda cls, past, observed, allowed: None))
        step, sample, stays = released("rsrlip:0.4,0.05", 0.01, patched)
    assert beyond(step, sample, stays, 20)[1]
