"""Records are drawn stage by stage by the integer weights of their prefixes, and again the same with a record key."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import funnel
from funnel.groups import GroupedSolution, Shown
from funnel.groups.drawing import StageSampler
from funnel.sampling import ChannelSampler


def people(joint: funnel.Joint, times: int = 1) -> pa.Table:
    """One row for every person that was counted."""
    counts = joint.counts.sum(axis=0) * times
    rows = [symbol for symbol, count in zip(joint.inputs.symbols, counts, strict=True) for _ in range(count)]
    columns = {name: list(of) for name, of in zip(joint.inputs.columns, zip(*rows, strict=True), strict=True)}
    return pa.table({**columns, "number": list(range(len(rows)))})


def records_of(table: pa.Table, columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    return list(zip(*(table.column(column).to_pylist() for column in columns), strict=True))


def test_rows_are_drawn_as_often_as_the_weights_say(binary: funnel.Joint, made: GroupedSolution) -> None:
    table, columns = people(binary, 4), made.protocol.columns
    drawn = records_of(funnel.sanitise(table, made.protocol, shuffle=False), columns)
    shown = Shown.of(binary, made.protocol)
    texts = [
        tuple(made.protocol.labels[column][code] for column, code in zip(columns, row, strict=True))
        for row in shown.codes.tolist()
    ]
    likely: dict[tuple[tuple[str, ...], tuple[str, ...]], float] = {}
    for r, y, share in zip(shown.rows.tolist(), shown.published.tolist(), shown.likely.tolist(), strict=True):
        pair = binary.inputs.symbols[r], texts[y]
        likely[pair] = likely.get(pair, 0.0) + share
    counts = Counter(zip(records_of(table, columns), drawn, strict=True))
    # What is impossible is never drawn; what is possible about as often as expected, over all cells.
    assert counts.keys() <= likely.keys()
    sizes = dict(zip(binary.inputs.symbols, (binary.counts.sum(axis=0) * 4).tolist(), strict=True))
    expected = {pair: share * sizes[pair[0]] for pair, share in likely.items()}
    spread = sum((counts[pair] - mean) ** 2 / mean for pair, mean in expected.items() if mean > 5)
    cells = sum(mean > 5 for mean in expected.values())
    assert spread < cells + 8 * np.sqrt(2 * cells)


def test_a_record_key_draws_the_same_again_and_in_another_order_of_rows(
    binary: funnel.Joint, made: GroupedSolution
) -> None:
    table, columns = people(binary), made.protocol.columns
    key = funnel.RecordKey(columns=("number",), secret=bytes(range(32)))
    first = records_of(funnel.sanitise(table, made.protocol, key, shuffle=False), columns)
    order = np.random.default_rng(0).permutation(len(table))
    again = records_of(funnel.sanitise(table.take(order), made.protocol, key, shuffle=False), columns)
    assert again == [first[place] for place in order]
    other = funnel.RecordKey(columns=("number",), secret=bytes(range(1, 33)))
    assert records_of(funnel.sanitise(table, made.protocol, other, shuffle=False), columns) != first
    shuffled = funnel.sanitise(table, made.protocol, key)
    assert records_of(shuffled, columns) != first
    assert Counter(records_of(shuffled, columns)) == Counter(first)
    assert shuffled.equals(funnel.sanitise(table.take(order), made.protocol, key))


def test_values_that_nobody_had_are_drawn_from_the_marginal(made: GroupedSolution) -> None:
    table = pa.table({"x": ["unknown"] * 500, "y": ["y0"] * 500, "z": [None] * 500})
    drawn = funnel.sanitise(table, made.protocol)
    assert drawn.num_rows == 500
    assert len(set(records_of(drawn, made.protocol.columns))) > 1


def test_the_table_lists_every_text_that_may_be_published(binary: funnel.Joint, made: GroupedSolution) -> None:
    drawn = funnel.sanitise(people(binary).slice(0, 3), made.protocol)
    assert drawn.column_names == list(made.protocol.columns)
    for column in made.protocol.columns:
        assert drawn.column(column).chunk(0).dictionary.to_pylist() == list(made.protocol.labels[column])
    assert funnel.sanitise(people(binary).slice(0, 0), made.protocol).num_rows == 0


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_stage_draws_as_the_sampler_of_its_channels_does(
    binary: funnel.Joint, made: GroupedSolution, number: int
) -> None:
    protocol = made.protocol
    stage = protocol.stages[number]
    places = [{text: code for code, text in enumerate(protocol.labels[column])} for column in protocol.columns]
    table = people(binary).combine_chunks().to_batches()[0].slice(0, 200)
    words = np.random.default_rng(1).integers(0, 2**64, 200, dtype=np.uint64)
    for place, (channel, following) in itertools.islice(enumerate(stage.classes), 4):
        sampler = StageSampler(stage, protocol, places)
        codes = np.zeros((200, len(protocol.columns)), dtype=np.int64)
        step, after = sampler.draw(table, np.full(200, place), words, codes)
        outputs = ChannelSampler(*stage.channels[channel].words(stage.size)).draw(sampler._inputs(table), words)
        assert step.outputs.tolist() == outputs.tolist()
        assert after.tolist() == [following[y] for y in outputs]
        labels = stage.channels[channel].labels
        at = [protocol.columns.index(column) for column in stage.columns]
        texts = [
            tuple(protocol.labels[protocol.columns[j]][code] for j, code in zip(at, row, strict=True))
            for row in codes[:, at]
        ]
        assert texts == [labels[y] for y in outputs]
