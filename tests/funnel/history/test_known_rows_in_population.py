"""Observers who know columns of the row that is drawn, in a population: added up in what samples leave open."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import funnel
from funnel.history import possible_distributions
from funnel.history.allowed import allowed_by
from funnel.history.possible_distributions import DistributionSet
from tests.funnel.history.populations import (
    Known,
    Limits,
    book_of,
    carried,
    clopper_pearson,
    end,
    followed,
    noted_orders,
)
from tests.funnel.history.test_known_in_population import ALPHA, INPUTS, Population, Sample, cells, panel, told_to
from tests.funnel.history.test_possible import lifts, within


def rows(share: float) -> pa.Table:
    """One version of units, a share of which have a second row in the same town, mostly of another size."""
    first, drawn = panel(1, 1)[0], np.random.default_rng(2)
    again = first.take(pa.array(np.flatnonzero(drawn.random(first.num_rows) < share)))
    size = np.where(drawn.random(again.num_rows) < 0.4, again["size"].to_numpy(), drawn.choice(["a", "b"], len(again)))
    both = pa.concat_tables([first, again.set_column(2, "size", pa.array(size))])
    return both.append_column("row", pa.array(np.arange(both.num_rows)))


def released(bound: str, share: float, monkeypatch: pytest.MonkeyPatch) -> tuple[funnel.History, Sample, list[Limits]]:
    """A version, what its first rows leave open, and how many second rows are like the first, by secret."""
    table = rows(share)
    with noted_orders(monkeypatch) as orders:
        book = book_of(bound, [table], key=["row"], unit=["id"], inputs=["size", "town"])
    assert book.steps[0].channel.inputs.symbols == tuple(INPUTS)
    begins = orders[0].at(1)
    s, x = cells(table)
    cell_of = dict(zip(orders[0].units[begins].tolist(), x[begins].tolist(), strict=True))
    later = orders[0].at(2)
    same = np.array([cell_of[unit] for unit in orders[0].units[later].tolist()]) == x[later]
    # Of the half of α that the version does not have for its counts, all is for its rows: two sides for each secret.
    stays = [clopper_pearson(int(same[s[later] == t].sum()), int((s[later] == t).sum()), ALPHA / 16) for t in (0, 1)]
    return book, Sample(1, table.take(pa.array(begins)), None), stays


def beyond(book: funnel.History, sample: Sample, stays: list[Limits], populations: int) -> tuple[int, int]:
    """Of outputs of second rows, for what may be known: how many tell something, and how many of all are beyond."""
    allowed, drawn, said, wrong = allowed_by(book.guarantee), np.random.default_rng(1), 0, 0
    pairs = list(zip(book.steps[0].waves[:2], book.past.chapters[:2], strict=True))
    for _ in range(populations):
        population = Population([sample], drawn)
        like, same = [end(limits, drawn) for limits in stays], [[Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)]]
        inputs, begun = population.inputs(0), population.cells[0]

        def before(row: int, node: int, told: Known | None, asked: Any = (same, like, inputs, begun)) -> Known:
            return carried(told[0], *asked[:3]) if told else asked[3], []

        for row, _, channel, distribution, _ in followed(pairs, before):
            for some, given in told_to(channel, distribution):
                said += row
                wrong += not within(lifts(population.prior(0, some, True), distribution, given), allowed)
    return said, wrong


@pytest.mark.parametrize("bound", ["rsrlip:0.8,0.05", "rattribute:0.8,0.05"])
def test_no_row_is_beyond_the_bound_for_who_knows_a_column_of_it(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    book, sample, stays = released(bound, 0.4, monkeypatch)
    said, wrong = beyond(book, sample, stays, 5)
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
        book, sample, stays = released("rsrlip:0.4,0.05", 0.01, patched)
    assert beyond(book, sample, stays, 20)[1]
