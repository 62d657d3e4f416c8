"""Growing: the classes between which the secret differs most, if they are large enough and keep the rules."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from funnel.alphabet import Alphabet
from funnel.donors.composition import Composition
from funnel.donors.points import POINT, scales
from funnel.donors.record_classes import Question, RecordClasses, Scale, Term
from funnel.errors import DataError
from funnel.joint import FloatArray, IntArray, Joint
from funnel.progress import Progress, quiet
from funnel.settings.disclosure_rules import Rules
from funnel.wording import listed

BoolArray = npt.NDArray[np.bool_]
# How often points are shifted, at most.
_SHIFTS = 4
Allowed = Callable[[IntArray], BoolArray]
"""Of tables of the secret in classes, shape (c, k), which of the k classes may be."""


@dataclass(frozen=True, eq=False)
class _Cut:
    """A question about the records of a class: points on a scale, and what it tells (nats · records)."""

    gain: float
    scale: int
    at_least: int


def record_classes(
    joint: Joint,
    least: int,
    most: int,
    few: int,
    allowed: Allowed,
    known: Sequence[str] = (),
    progress: Progress = quiet,
) -> RecordClasses:
    """Classes of records between which the secret differs most.

    The records have points for values of the secret. They are cut by the question about points that tells most of the
    secret, then again the part whose best question tells most, until none tells more than what the Bayesian information
    criterion asks of a further part. Parts that may not be classes are put together with those that are most like them.
    In a class nothing is known of the secret but its counts: an observer who reads a record concludes what its class
    says. So the classes are what the bound of a wide release is about, and as fine as the records and the rules allow.
    Points are shifted a little in the end, so that tables of the secret and a column agree with what classes say.

    Parameters
    ----------
    joint : Joint
        Counts (c, a) of the secret and of whole records.
    least : int
        Records of a class, at least.
    most : int
        Parts, at most.
    few : int
        No part has fewer records of a value of the secret, but none, and no fewer have values that get points.
    allowed : callable
        Which parts may be classes, by their counts.
    known : sequence of str, optional
        Columns in which all records of a class have the same values, so that observers may know them.
    progress : callable

    Returns
    -------
    RecordClasses

    Raises
    ------
    DataError
        If some values of the known columns together have no records that may be a class.
    SolverError
        If the regression behind the points does not end.
    """
    points_for = scales(joint, few, progress)
    points = np.stack([scale.of_records(joint.inputs) for scale in points_for])
    by_known = _numbering(joint.inputs, known)
    number_of = by_known.of_records(joint.inputs)
    number = itertools.count()
    # Negative gains, since a heap begins with the smallest; numbers decide between equal ones.
    waiting: list[tuple[float, int, _Cut]] = []
    parts: dict[int, IntArray] = {}
    asked: dict[int, tuple[_Cut, int, int]] = {}

    def enter(members: IntArray) -> int:
        mine = next(number)
        parts[mine] = members
        # All records are cut in any case: a question that tells nothing harms no bound, and one class has no channel.
        if (cut := _best_cut(joint, points, members, least, few, by_chance=not mine)) is not None:
            heapq.heappush(waiting, (-cut.gain, mine, cut))
        return mine

    def separated(members: IntArray) -> int:
        """Ask for the values of known columns first."""
        numbers = np.unique(number_of[members])
        if len(numbers) == 1:
            return enter(members)
        mine, middle = next(number), int(numbers[len(numbers) // 2])
        enough = number_of[members] >= middle
        asked[mine] = _Cut(0.0, len(points_for), middle), separated(members[enough]), separated(members[~enough])
        return mine

    separated(np.arange(len(joint.inputs)))
    while waiting and len(asked) + 1 < most:
        _, mine, cut = heapq.heappop(waiting)
        members = parts.pop(mine)
        enough = points[cut.scale, members] >= cut.at_least
        asked[mine] = cut, enter(members[enough]), enter(members[~enough])
    tables = np.stack([joint.counts[:, members].sum(axis=1) for members in parts.values()], axis=1)
    of_known = [int(number_of[members[0]]) for members in parts.values()]
    class_of = dict(zip(parts, _pooled_apart(tables, np.array(of_known), allowed, known).tolist(), strict=True))
    places = [joint.inputs.columns.index(column) for column in known]
    values = {
        class_of[part]: tuple(joint.inputs.symbols[members[0]][place] for place in places)
        for part, members in parts.items()
    }
    found = _named(joint.inputs.columns, (*points_for, *([by_known] if known else [])), asked, class_of, known, values)

    def may_be(classes: IntArray) -> bool:
        below = (classes.sum(axis=0) < least) | ((classes > 0) & (classes < few)).any(axis=0)
        return bool((allowed(classes) & ~below).all())

    return _agreeing(joint, found, may_be)


def _agreeing(joint: Joint, classes: RecordClasses, may_be: Callable[[IntArray], bool]) -> RecordClasses:
    """The same questions about shifted points, so that people with a value are expected to have the secret as they do.

    If a record tells of the secret what its class does, so many of those with a value are expected to have it. A point
    more or less for the value changes that by the variance of their number, and does some of it for values that go with
    it: so half of the way, and again. The best of all rounds is taken.
    """
    best, least = classes, math.inf
    for _ in range(_SHIFTS):
        found = Composition.of(joint, classes)
        if not (people := found.people.sum(axis=0)).all():
            break
        given = found.people / people
        inside = found.counts.sum(axis=0)
        off = found.counts.sum(axis=1) - given @ inside
        most = float(np.abs(off).max())
        if most < least and (classes is best or may_be(found.people)):
            best, least = classes, most
        steps = off / ((given * (1 - given)) @ inside + 1) / (2 * POINT)
        shifted = (_shifted(found, scale, steps) if scale.secret else scale for scale in classes.scales)
        classes = replace(classes, scales=tuple(shifted))
    return best


def _shifted(found: Composition, scale: Scale, steps: FloatArray) -> Scale:
    """A scale whose values have so many points more, (c, cells)."""
    by = dict(zip(found.cells, np.rint(steps[found.secret.index(scale.secret)]).astype(int).tolist(), strict=True))
    terms = (
        replace(term, points=term.points + (by[term.columns[0], term.values[0]] if len(term.columns) == 1 else 0))
        for term in scale.terms
    )
    return replace(scale, terms=tuple(term for term in terms if term.points))


def pooled(tables: IntArray, allowed: Allowed) -> IntArray:
    """Parts put together until all may be classes: of counts (c, k) of the secret in parts, the class of each (k,).

    Again and again the smallest part that may not be one is joined with that with which least is lost of what parts
    tell of the secret; everything, in the end.
    """
    of = np.arange(tables.shape[1])
    tables = tables.copy()
    while True:
        left = np.unique(of)
        refused = left[~allowed(tables[:, left])]
        if not len(refused) or len(left) == 1:
            return np.searchsorted(left, of)
        worst = refused[tables[:, refused].sum(axis=0).argmin()]
        others = left[left != worst]
        joined = tables[:, others] + tables[:, worst, np.newaxis]
        lost = _information(joined) - _information(tables[:, others])
        best = others[lost.argmin()]
        tables[:, best] += tables[:, worst]
        of[of == worst] = best


def _numbering(records: Alphabet, known: Sequence[str]) -> Scale:
    """A scale of which every combination of values of known columns has another number of points."""
    terms, step = [], 1
    for column in known:
        texts = records.texts[records.columns.index(column)]
        terms += [Term((column,), (text,), step * place) for place, text in enumerate(texts) if place]
        step *= len(texts)
    return Scale((), tuple(terms))


def _pooled_apart(tables: IntArray, of_known: IntArray, allowed: Allowed, known: Sequence[str]) -> IntArray:
    """`pooled` among parts with the same values of known columns, by the number (k,) of these.

    Raises
    ------
    DataError
        If all parts with some values together may be no class.
    """
    of = np.zeros(len(of_known), dtype=np.int64)
    for number in np.unique(of_known):
        some = np.flatnonzero(of_known == number)
        mine = pooled(tables[:, some], allowed)
        if known and not allowed(tables[:, some].sum(axis=1, keepdims=True)).all():
            raise DataError(
                f"too few records, or nearly all with the same secret, have some of the values of {listed(known)} "
                "together; group these values in [recode], name fewer columns in [groups] known, or raise dominance "
                "in [disclosure]"
            )
        of[some] = mine + of.max() + 1
    return of


def _named(
    columns: tuple[str, ...],
    points_for: tuple[Scale, ...],
    asked: dict[int, tuple[_Cut, int, int]],
    class_of: dict[int, int],
    known: Sequence[str],
    values: dict[int, tuple[str, ...]],
) -> RecordClasses:
    """Questions in the order in which they follow from each other, and names of classes in that of their questions."""
    order = list(_preorder(asked))
    numbers = {node: i for i, node in enumerate(node for node in order if node in asked)}
    classes = list(dict.fromkeys(class_of[node] for node in order if node not in asked))
    width = len(str(len(classes)))
    names = {of: f"{i:0{width}d}" for i, of in enumerate(classes, 1)}
    questions = []
    for node in numbers:
        cut, then, otherwise = asked[node]
        ends = [numbers[end] if end in numbers else names[class_of[end]] for end in (then, otherwise)]
        questions.append(Question(cut.scale, cut.at_least, *ends))
    return RecordClasses(
        columns,
        points_for,
        tuple(questions),
        tuple(names.values()),
        tuple(known),
        tuple(values[of] for of in names) if known else (),
    )


def _preorder(asked: dict[int, tuple[_Cut, int, int]]) -> Iterator[int]:
    waiting = [0]
    while waiting:
        node = waiting.pop()
        yield node
        if node in asked:
            waiting += [asked[node][2], asked[node][1]]


def _best_cut(
    joint: Joint, points: IntArray, members: IntArray, least: int, few: int, *, by_chance: bool
) -> _Cut | None:
    """The question about these records that tells most; None if none tells enough, or may tell that by chance."""
    counts = joint.counts[:, members]
    total = counts.sum(axis=1)
    if total.sum() < 2 * least:
        return None
    best, tried = None, 0
    for scale, mine in enumerate(points[:, members]):
        amounts, of = np.unique(mine, return_inverse=True)
        tried += len(amounts) - 1
        if len(amounts) < 2:
            continue
        below = np.stack([np.bincount(of, row, len(amounts)).astype(np.int64) for row in counts])
        below = np.cumsum(below, axis=1)[:, :-1]
        above = total[:, np.newaxis] - below
        gains = _information(total[:, np.newaxis]) - _information(below) - _information(above)
        for part in (below, above):
            gains[(part.sum(axis=0) < least) | ((part > 0) & (part < few)).any(axis=0)] = -1.0
        at = int(gains.argmax())
        if gains[at] > (0.0 if best is None else best.gain):
            best = _Cut(float(gains[at]), scale, int(amounts[at + 1]))
    if best is None or by_chance:
        return best
    if 2 * best.gain < (len(counts) - 1) * math.log(joint.n) + 2 * math.log(tried):
        return None
    return best


def _information(tables: IntArray) -> FloatArray:
    """Entropy of the secret times records, of every column of a table (c, k), in nats."""
    whole = tables.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(tables > 0, tables * np.log(tables / np.maximum(whole, 1)), 0.0)
    return np.asarray(-parts.sum(axis=0))


# Channels between so many classes are found in seconds.
MOST_CLASSES = 400


def grown(
    joint: Joint, least: int, rules: Rules, known: Sequence[str] = (), progress: Progress = quiet
) -> RecordClasses:
    """The classes between which the secret differs most, as fine as their least size and the rules allow.

    Parameters
    ----------
    joint : Joint
        Counts (c, a) of the secret and of whole records.
    least : int
        Records of a class, at least.
    rules : Rules
        That counts of (secret, class) keep.
    known : sequence of str, optional
        Columns in which all records of a class have the same values.
    progress : callable

    Raises
    ------
    DataError
        If the records have one class only, or too few of them have some values of the known columns.
    """
    totals = joint.counts.sum(axis=1)

    def allowed(tables: IntArray) -> BoolArray:
        return np.asarray(~rules.dominant(tables, tables.sum(axis=0), totals, joint.n).any(axis=0))

    found = record_classes(joint, least, MOST_CLASSES, rules.minimum_cell, allowed, known, progress)
    if len(found.names) > 1:
        return found
    people = joint.counts.sum(axis=0)
    most = [np.bincount(codes, people).max() for codes in joint.inputs.codes.T]
    rare = [column for column, count in zip(joint.inputs.columns, most, strict=True) if count < least]
    if rare and joint.n >= 2 * least:
        raise DataError(
            f"no value of {listed(rare)} has {least} records, so the records make no two classes; put values into "
            "intervals or groups ([recode]), or publish fewer columns"
        )
    raise DataError(
        "the columns tell nothing of the secret that could be told apart from chance, or nearly decide it, or the "
        "records are too few for two classes; lower min_records in [groups], or publish fewer columns"
    )
