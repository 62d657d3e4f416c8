"""Pruning: a tree cut back to outputs that are proven, each of them that a reader may end with, as a protocol."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from funnel.disclosure.rules import Rules
from funnel.groups.growing import Prefix, Tree
from funnel.groups.labels import stage_labels
from funnel.groups.pooling import ClassRules, rows_of
from funnel.groups.protocol import SILENT, UNIT, GroupedProtocol, Stage, StageChannel
from funnel.groups.proving import Cell, members, rare_weight
from funnel.groups.reading import Reading
from funnel.groups.records import Records
from funnel.joint import IntArray


@dataclass(eq=False)
class Pruned:
    """What is left of a tree.

    Attributes
    ----------
    protocol : GroupedProtocol
    leaves : list of Cell
        Outputs after which nothing more is said, each proven.
    prefixes : list of int
        Prefixes of which something is said, by stage.
    """

    protocol: GroupedProtocol
    leaves: list[Cell]
    prefixes: list[int]


def prune(
    records: Records,
    tree: Tree,
    found: dict[int, list[Cell]] | None,
    guarantee: str,
    people: int,
    rules: Rules | None = None,
) -> Pruned:
    """The finest part of the tree whose leaves are all proven.

    An output stays if all that follows it can be proven, or else it is itself, and then nothing follows. Where an
    output is neither, it is joined to others until the union is one or the other. Nothing is said by a channel
    of which all people together break a rule. Where nothing was found all is taken for proven: what there would be.
    """
    cut = _Cut(records, tree, found, rules)
    cut.place(tree.root, 0)
    stages = tuple(
        Stage(reading.columns, reading.symbols, reading.ahead, tuple(channels), tuple(classes))
        for reading, channels, classes in zip(tree.readings, cut.channels, cut.classes, strict=True)
    )
    return Pruned(GroupedProtocol(records.columns, stages, guarantee, people), cut.leaves, cut.prefixes)


@dataclass(eq=False)
class _Cut:
    records: Records
    tree: Tree
    found: dict[int, list[Cell]] | None
    rules: Rules | None
    channels: list[list[StageChannel]] = field(init=False)
    classes: list[list[tuple[int, tuple[int, ...]]]] = field(init=False)
    leaves: list[Cell] = field(default_factory=list)
    prefixes: list[int] = field(init=False)
    _known: list[dict[object, int]] = field(init=False)
    _good: dict[tuple[int, int], bool] = field(default_factory=dict)
    _keeping: dict[int, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        stages = len(self.tree.readings)
        self.channels, self.classes = [[] for _ in range(stages)], [[] for _ in range(stages)]
        self.prefixes, self._known = [0] * stages, [{} for _ in range(2 * stages)]
        if self.rules is not None:
            self._keep(self.tree.root, 0, self.rules)

    def speaks(self, prefix: Prefix | None) -> bool:
        """Whether something can be said of a prefix that is proven for all that follows."""
        if prefix is None:
            return False
        if prefix.weights is None:
            return any(self.speaks(one) for one in prefix.after)
        return self._keeping.get(id(prefix), True) and all(self.good(prefix, cell) for cell in prefix.joins[-1])

    def good(self, prefix: Prefix, cell: int) -> bool:
        """Whether a cell is proven, or all that it consists of."""
        key = id(prefix), cell
        if key not in self._good:
            proven = self.found is None or self.found[id(prefix)][cell].holds
            self._good[key] = proven or self.finer(prefix, cell)
        return self._good[key]

    def finer(self, prefix: Prefix, cell: int) -> bool:
        """Whether all that a cell consists of is proven."""
        assert prefix.weights is not None
        if cell < len(prefix.weights):
            return self.speaks(prefix.after[cell])
        return all(self.good(prefix, part) for part in prefix.joins[cell - len(prefix.weights)])

    def _keep(self, prefix: Prefix, number: int, rules: Rules) -> None:
        """Note whether the table of everybody who draws from the channels from here on keeps the rules."""
        counts, reading = self.records.joint.counts.astype(np.float64), self.tree.readings[number]
        if prefix.weights is not None:
            inputs = reading.inputs[prefix.rows]
            people = counts[:, prefix.rows] * prefix.shows
            law = np.stack([np.bincount(inputs, row, reading.size) for row in people]).astype(np.float64)
            asked = ClassRules.of(rules, counts.sum(axis=1), reading.folds)
            self._keeping[id(prefix)] = asked.holds(law, rows_of(prefix.weights))
        for one in prefix.after:
            if one is not None:
                self._keep(one, number + 1, rules)

    def place(self, prefix: Prefix | None, number: int) -> int:
        """The class of a prefix at its stage, or that nothing more is said."""
        if prefix is None or (number and not self.speaks(prefix)):
            return SILENT
        reading = self.tree.readings[number]
        if prefix.weights is None or not self.speaks(prefix):
            after = [self.place(one, number + 1) for one in prefix.after if self.speaks(prefix)] or [SILENT]
            weights = np.full((1, reading.size), UNIT, dtype=np.int64)
            return self._class(number, self._channel(number, weights, np.array([UNIT])), after)
        self.prefixes[number] += 1
        cells: list[tuple[list[int], Prefix | None]] = []
        left = list(prefix.joins[-1])
        while left:
            cell = left.pop()
            if cell < len(prefix.weights):
                follows = prefix.after[cell] if self.finer(prefix, cell) else None
                cells.append(([cell], follows))
            elif self.finer(prefix, cell):
                left += prefix.joins[cell - len(prefix.weights)]
                continue
            else:
                cells.append((members(prefix, cell), None))
            if cells[-1][1] is None and self.found is not None:
                self.leaves.append(self.found[id(prefix)][cell])
        cells.sort(key=lambda one: min(one[0]))
        # Under rules it is not to be seen whether nobody has an input here or few people.
        possible = np.full(reading.size, self.rules is not None)
        counted = self.records.joint.counts[:, prefix.rows].sum(axis=0) > 0
        possible[reading.inputs[prefix.rows[counted]]] = True
        weights = np.stack([prefix.weights[outputs].sum(axis=0) for outputs, _ in cells]) * possible
        rare = np.array([rare_weight(prefix, outputs) for outputs, _ in cells], dtype=np.int64)
        channel = self._channel(number, weights, rare)
        return self._class(number, channel, [self.place(after, number + 1) for _, after in cells])

    def _channel(self, number: int, weights: IntArray, marginal: IntArray) -> int:
        """A channel of a stage by its weights (b, a), and those of inputs that it does not know (b,)."""
        reading = self.tree.readings[number]
        made = StageChannel.of(self._labels(reading, weights > 0), weights, marginal)
        known = self._known[2 * number]
        if made not in known:
            known[made] = len(known)
            self.channels[number].append(made)
        return known[made]

    def _labels(
        self, reading: Reading, possible: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    ) -> list[tuple[str, ...]]:
        values = [self.records.values[self.records.place(column)] for column in reading.columns]
        places = [{value: place for place, value in enumerate(of_column)} for of_column in values]
        codes = [[place[text] for place, text in zip(places, symbol, strict=True)] for symbol in reading.symbols]
        return stage_labels(values, np.repeat(np.array(codes, dtype=np.int64), reading.folds, axis=0), possible)

    def _class(self, number: int, channel: int, after: list[int]) -> int:
        made = channel, tuple(after)
        known = self._known[2 * number + 1]
        if made not in known:
            known[made] = len(known)
            self.classes[number].append(made)
        return known[made]
