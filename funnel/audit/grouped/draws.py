"""Whether records were drawn by a grouped protocol: at every stage, from the class that the stage before led to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincc

from funnel.audit.grouped.rows import by_group
from funnel.audit.tails import ROUNDING, binomial_two_sided
from funnel.joint import FloatArray, IntArray
from funnel.recount.grouped_text import SILENT, UNIT, GroupedText

# Outputs expected in fewer records are one class in the test of all outputs together: alone they would dilute it.
_RARE = 5

Symbol = tuple[str, ...]
Counts = Mapping[tuple[Symbol, Symbol], int]


@dataclass(frozen=True, eq=False)
class Cells:
    """Counts of draws, as the evidence has them.

    Attributes
    ----------
    secret : tuple of tuple of str
        What secrets stand for; one beyond the last is any other.
    cells : ndarray of int64, shape (m, 5)
        Stage, class, input, output and secret.
    records : ndarray of int64, shape (m,)
    """

    secret: tuple[Symbol, ...]
    cells: IntArray
    records: IntArray

    def at(self, stage: int) -> Cells:
        """Those of one stage."""
        there = self.cells[:, 0] == stage
        return Cells(self.secret, self.cells[there], self.records[there])

    def total(self, columns: Sequence[int]) -> dict[tuple[int, ...], int]:
        """Records by some of stage, class, input, output and secret."""
        found: Counter[tuple[int, ...]] = Counter()
        for cell, number in zip(self.cells[:, list(columns)].tolist(), self.records.tolist(), strict=True):
            found[tuple(cell)] += number
        return dict(found)


def path_complaints(text: GroupedText, draws: Cells, counts: Counts) -> Iterator[str]:
    """Whether every record of the source drew at the first stage, and after that from where it was led.

    Parameters
    ----------
    text : GroupedText
    draws : Cells
    counts : mapping of (secret, record) to int
        Counted again.
    """
    if len(np.unique(draws.cells, axis=0)) != len(draws.cells) or (draws.records <= 0).any():
        yield "a number of draws is told twice, or is none"
        return
    if not _fit(text, draws):
        yield "there are draws of a class, an input or an output that is none"
        return
    secrets = {symbol: s for s, symbol in enumerate(draws.secret)}
    other = len(secrets)
    coming: dict[tuple[int, ...], int] = {}
    for number, stage in enumerate(text.stages):
        here = draws.at(number)
        of_source: Counter[tuple[int, int]] = Counter()
        for (secret, record), count in counts.items():
            of_source[secrets.get(secret, other), stage.reads(text.columns, record)] += count
        told = {(s, x): count for (s, x), count in here.total((4, 2)).items()}
        if number == 0:
            wrong = sum(told.get(cell, 0) != of_source.get(cell, 0) for cell in {*told, *of_source})
            if wrong:
                yield f"draws of the first stage are not one for each record of the source in {wrong:,} cells"
        elif any(count > of_source.get(cell, 0) for cell, count in told.items()):
            yield f"stage {number + 1} drew for more records than the source has"
        classes = here.total((1, 4))
        if number and classes != coming:
            wrong = sum(classes.get(cell, 0) != coming.get(cell, 0) for cell in {*classes, *coming})
            yield f"stage {number + 1} did not draw in the classes that stage {number} led to, in {wrong:,} cells"
        coming = {}
        for (place, output, s), count in here.total((1, 3, 4)).items():
            then = stage.classes[place][1][output]
            if then != SILENT:
                coming[then, s] = coming.get((then, s), 0) + count


def _fit(text: GroupedText, draws: Cells) -> bool:
    """Whether draws are of stages, classes, inputs and outputs that there are."""
    return all(_fits(text, *cell) for cell in draws.cells[:, :4].tolist())


def _fits(text: GroupedText, number: int, place: int, x: int, y: int) -> bool:
    if not 0 <= number < len(text.stages):
        return False
    stage = text.stages[number]
    if not 0 <= place < len(stage.classes):
        return False
    return -1 <= x < len(stage.symbols) * stage.folds and 0 <= y < len(stage.classes[place][1])


def table_complaints(text: GroupedText, draws: Cells, counted: Mapping[Symbol, int]) -> Iterator[str]:
    """Whether the released table has the text of every group as often as it was drawn, or nothing was said of it."""
    if not _fit(text, draws):
        yield "what was drawn cannot be told from draws of no output"
        return
    rows = sum(counted.values())
    for number, (stage, found) in enumerate(zip(text.stages, by_group(counted, text), strict=True), 1):
        drawn: Counter[Symbol] = Counter()
        for (place, output), count in draws.at(number - 1).total((1, 3)).items():
            drawn[stage.channels[stage.classes[place][0]].labels[output]] += count
        if silent := rows - drawn.total():
            drawn[stage.nothing] += silent
        wrong = sum(drawn[label] != found[label] for label in {*drawn, *found})
        if wrong:
            yield f"{wrong:,} texts of {', '.join(stage.columns)} are not in the table as often as they were drawn"


@dataclass(frozen=True)
class DrawTest:
    """Result of a test of draws.

    Attributes
    ----------
    p_value : float
        Whatever the protocol and the source: draws by the protocol have one of at most t with a probability of at most
        t. 0 if an output was drawn that the protocol never gives.
    tests : int
    impossible : int
        Records with an output of weight zero.
    stage : int
        Where draws are least likely, from 1.
    """

    p_value: float
    tests: int
    impossible: int
    stage: int


def draw_test(text: GroupedText, draws: Cells, by_secret: bool = False) -> DrawTest:
    """Test the draws of every stage against the weights, by channel and input; and by secret, if that is asked for.

    Notes
    -----
    *Proof that P(p <= t) <= t.* Given all draws of the stages before, the class of every record is known, and the
    outputs of records with one channel, one input and one secret are independent draws by the same weights. So, as in
    `funnel.audit.consistency`, exact p-values of single outputs and Fisher's combination of the chain of all of them
    are each at most t with a probability of at most t given the past; and so is Fisher's combination of the latter over
    all groups of the stage, which are independent. The smallest of the first family times their number, and the last,
    twice the smaller of both, satisfies the same given the past, and therefore without it; so does the smallest over
    stages times their number. Which tests are made follows from weights and the past alone. ∎

    O(k) for k combinations of channel, input, secret and possible output.
    """
    worst, tests, impossible = [], 0, 0
    for number in range(len(text.stages)):
        p, made, never = _stage_test(text, draws.at(number), number, by_secret)
        worst.append(p)
        tests, impossible = tests + made, impossible + never
    stage = int(np.argmin(worst))
    p_value = 0.0 if impossible else min(1.0, len(worst) * worst[stage])
    return DrawTest(p_value, tests, impossible, stage + 1)


def _stage_test(text: GroupedText, draws: Cells, number: int, by_secret: bool) -> tuple[float, int, int]:
    stage = text.stages[number]
    if not len(draws.cells):
        return 1.0, 0, 0
    channels = np.array([channel for channel, _ in stage.classes], dtype=np.int64)
    secrets = draws.cells[:, 4] if by_secret else np.zeros(len(draws.cells), dtype=np.int64)
    keys = np.stack([channels[draws.cells[:, 1]], draws.cells[:, 2], secrets])
    groups, of_cell = np.unique(keys, axis=1, return_inverse=True)
    of_cell = of_cell.reshape(-1)
    parts: list[IntArray] = []
    for channel, x, _ in groups.T.tolist():
        of_channel = stage.channels[channel]
        parts.append(np.array(of_channel.inputs.get(x, of_channel.rare), dtype=np.int64).reshape(-1, 2))
    group = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    outputs, weights = np.concatenate(parts).T
    width = 1 + max(int(outputs.max()), int(draws.cells[:, 3].max()))
    places = group * width + outputs
    drawn = of_cell * width + draws.cells[:, 3]
    at = np.minimum(np.searchsorted(places, drawn), len(places) - 1)
    there = places[at] == drawn
    impossible = int(draws.records[~there].sum())
    counts = np.bincount(at[there], weights=draws.records[there], minlength=len(places)).astype(np.int64)
    p, tests = _law_tests(group, counts, weights, len(parts))
    return p, tests, impossible


def _law_tests(group: IntArray, counts: IntArray, weights: IntArray, groups: int) -> tuple[float, int]:
    """The p-value of all groups of draws, each by the weights of its own, and how many tests were made."""
    totals = np.bincount(group, weights=counts, minlength=groups).astype(np.int64)
    whole = np.full(len(group), UNIT, dtype=np.int64)
    open_ = (weights < UNIT) & (totals[group] > 0)
    single = binomial_two_sided(counts[open_], totals[group][open_], weights[open_], whole[open_])
    # In the order of the weights, the rare ones of a group as one class at its end.
    rare = weights.astype(np.float64) * totals[group] < _RARE * UNIT
    order = np.lexsort((-weights, rare, group))
    starts = np.flatnonzero(np.r_[True, (np.diff(group[order]) != 0) | ~rare[order][1:] | ~rare[order][:-1]])
    of_class = group[order][starts]
    classes = np.add.reduceat(weights[order], starts)
    seen = np.add.reduceat(counts[order], starts)
    # What is left at each class of a group: it and all after it.
    left, among = _left(classes, of_class), _left(seen, of_class)
    last = np.r_[np.diff(of_class) != 0, True]
    chain = binomial_two_sided(seen[~last], among[~last], classes[~last], left[~last])
    with np.errstate(divide="ignore"):
        surprise = np.bincount(of_class[~last], weights=-np.log(chain), minlength=groups)
    number = np.bincount(of_class[~last], minlength=groups)
    # One test of two classes is among the single ones, or as good as one of them.
    several = number > 1
    together = np.minimum(1.0, gammaincc(number[several], surprise[several]) * ROUNDING)
    tests = len(single) + len(together)
    if not tests:
        return 1.0, 0
    smallest = min(float(single.min(initial=1.0)), float(together.min(initial=1.0))) * tests
    every = _fisher(surprise[number > 0].sum(), int(number.sum()))
    return min(1.0, 2 * smallest, 2 * every), tests


def _left(values: IntArray, group: IntArray) -> IntArray:
    """Of sorted groups, what is left of each at each place: it and all after it."""
    sums = values[::-1].cumsum()[::-1]
    ends = np.r_[np.flatnonzero(np.diff(group) != 0) + 1, len(group)]
    beyond = np.r_[sums, 0][ends]
    return np.asarray(sums - np.repeat(beyond, np.diff(np.r_[0, ends])))


def _fisher(surprise: float, number: int) -> float:
    if number == 0:
        return 1.0
    return 0.0 if np.isinf(surprise) else min(1.0, float(gammaincc(number, surprise)) * ROUNDING)


def law_of_counts(counts: FloatArray, means: FloatArray, n: int) -> float:
    """The p-value of counts of labels among n independent records, by their means; see `funnel.audit.frequencies`.

    By Hoeffding (1956, theorem 5) tails of sums of independent indicators beyond the mean ± 1 are at most those of the
    binomial law with the same mean. Each is tested, and the smallest is corrected by their number.
    """
    from scipy.special import betainc

    slack = 1e-9
    high, low = np.minimum(1.0, means * (1 + slack) / n), means * (1 - slack) / n
    above = np.where(
        (counts <= n * high + 1) | (high >= 1), 1.0, betainc(np.maximum(counts, 1), np.maximum(n - counts + 1, 1), high)
    )
    below = np.where((counts >= n * low - 1) | (low <= 0), 1.0, betainc(np.maximum(n - counts, 1), counts + 1, 1 - low))
    return min(1.0, 2 * len(counts) * float(np.minimum(above, below).min(initial=1.0)) * ROUNDING)
