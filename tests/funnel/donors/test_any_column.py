"""Any columns: what observers of one or two conclude from whole records, from who is published as what, by person.

With the secret among the published columns, and without it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from itertools import combinations
from pathlib import Path

import highspy
import numpy as np
import pyarrow.parquet as pq
import pytest

import funnel
from funnel.alphabet import Alphabet
from funnel.class_parts import Known
from funnel.donors.composition import Composition
from funnel.donors.wide_tables import ColumnsSolution
from funnel.errors import InfeasibleGuarantee, SolverError, SpecError
from funnel.guarantees.any_column import AnyColumn
from funnel.joint import Joint
from funnel.recount.classes import PlainClasses
from funnel.recount.released import ReleasedProtocol
from funnel.recount.source import Recount
from funnel.release.classes_document import classes_document
from funnel.rounding import integer_weights
from funnel.sampling.donors import Donors
from funnel.settings.disclosure_rules import Rules
from funnel.settings.groups import AT_ONCE, AtOnce
from tests.sabotage.patching import Patch, patched
from tests.whole_records import largest_imbalance

ADULT = Path(__file__).parents[3] / "data" / "adult.parquet"
COLUMNS = ("place", "size", "colour", "shape")
FREE = Rules(1, 1.0, 1.0, by_class=True)
RECORD, KNOWING = 1.0, 1.3
BOTH = funnel.Several([funnel.LIP(RECORD), funnel.SRLIP(KNOWING)])
WITH_SECRET = funnel.Several([funnel.Attribute(RECORD), funnel.SRLIP(KNOWING)])
BOUNDS = {"lip": BOTH, "attribute": WITH_SECRET}


def some_joint(seed: int, secrets: int = 2) -> Joint:
    """Records of four columns that tell much of a secret, some of them by rare values."""
    random = np.random.default_rng(seed)
    symbols = tuple((f"p{h}", f"s{i}", f"c{j}", f"f{k}") for h, i, j, k in np.ndindex(2, 3, 3, 4))
    odds = np.array([sum(int(value[1]) for value in symbol) for symbol in symbols]) + random.normal(0, 0.5, 72)
    shares = np.exp(np.outer(np.arange(secrets), (odds - odds.mean()) / 1.2))
    people = random.integers(3, 60, 72)
    counts = [random.multinomial(n, one) for n, one in zip(people, (shares / shares.sum(axis=0)).T, strict=True)]
    return Joint.from_counts(np.array(counts).T, inputs=Alphabet(COLUMNS, symbols))


def solved(joint: Joint, guarantee: funnel.Guarantee = BOTH, known: AtOnce = "single") -> ColumnsSolution:
    secret = joint.secret.columns if "attribute" in str(guarantee) else ()
    return funnel.fit_columns(joint, [*secret, *COLUMNS], guarantee, known=known, least=40, rules=FREE)


def observers(joint: Joint, known: AtOnce) -> dict[Known, np.ndarray]:
    """Which records have what observers know: values of one column, or of one or two."""
    found = {}
    for size in range(1, AT_ONCE[known] + 1):
        for places in combinations(range(len(COLUMNS)), size):
            for symbol in joint.inputs.symbols:
                one = tuple((COLUMNS[j], symbol[j]) for j in places)
                found[one] = np.array([all(other[j] == symbol[j] for j in places) for other in joint.inputs.symbols])
    return found


def channel(joint: Joint, found: ColumnsSolution) -> np.ndarray:
    """P(t, y | s, x) of secrets and records, shape (t, a, s, a); of one t and one s where no secret is published.

    A part stays, or takes the place of anybody of the part that it goes to.
    """
    part, people = found.classes.of_records(joint.inputs), joint.counts.sum(axis=0)
    sizes, read = np.bincount(part, people), len(found.protocol.inputs) // len(found.classes.names)
    moves = found.protocol.matrix.reshape(read, len(sizes), read, len(sizes))
    moved = moves[:, part][:, :, :, part] * (people / sizes[part])[:, None, None]
    moved *= (part[:, None] != part)[:, None, :]
    every = np.arange(len(part))
    moved[:, every, :, every] += moves[:, part, :, part]
    return moved


def largest_change(joint: Joint, found: ColumnsSolution, having: np.ndarray) -> float:
    """The largest |log| of a posterior over the prior of those who know that a person has one of some records."""
    belief = believed(joint, found) * having
    rows = channel(joint, found)
    prior = belief.sum(axis=1) / belief.sum()
    after = np.stack([rows[:, :, s % rows.shape[2]] @ of for s, of in enumerate(belief)])
    seen = after.sum(axis=0) > 1e-9
    return float(np.abs(np.log(after[:, seen] / after[:, seen].sum(axis=0) / prior[:, None])).max())


def believed(joint: Joint, found: ColumnsSolution) -> np.ndarray:
    """People of every secret and record, (c, a), with secrets as common as they are in the class."""
    of_class = np.array([name.split(".")[0] for name in found.classes.names])[found.classes.of_records(joint.inputs)]
    belief = np.empty(joint.counts.shape)
    for name in set(of_class):
        inside = of_class == name
        belief[:, inside] = (joint.counts[:, inside].sum(axis=1) / joint.counts[:, inside].sum())[:, None]
    return belief * joint.counts.sum(axis=0)


def again(joint: Joint, found: ColumnsSolution) -> tuple[Fraction, float, float]:
    """Imbalance, and levels of observers of no column, or all, and of some, from texts of protocol and questions."""
    counts = {
        (joint.secret.symbols[s], joint.inputs.symbols[x]): int(joint.counts[s, x])
        for s, x in zip(*np.nonzero(joint.counts), strict=True)
    }
    counted = Recount(joint.secret.columns, COLUMNS, joint.secret.symbols, joint.inputs.symbols, counts, joint.n, 0, "")
    released = ReleasedProtocol.parse(found.protocol.to_json())
    classes = PlainClasses.parse(classes_document(found.classes).to_bytes())
    of_part = classes.counted(counted)
    assert {len(one) for one in of_part.having} == set(range(1, found.classes.at_once + 1))
    assert {column for one in of_part.having for column, _ in one} == {*COLUMNS}
    publishes = len(released.input_columns) > 1
    bounds = ("attribute:1.0" if publishes else "lip:1.0", "srlip:1.0")
    alone, knowing = (released.level(bound, of_part).nats for bound in bounds)
    if not publishes:
        return largest_imbalance(released, classes, counted), alone, knowing
    channel = released.channel(of_part)
    mass = [sum(column) for column in zip(*channel.counts, strict=True)]
    off = 0
    flat = [number for row in channel.counts for number in row]
    for target, row in zip(flat, channel.weights, strict=True):
        off = max(off, abs(sum(map(int.__mul__, flat, row)) - target * channel.denominator))
    return Fraction(off, sum(mass) * channel.denominator), alone, knowing


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("secrets", [2, 3])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("known", AT_ONCE)
def test_every_observer_of_columns_is_within_the_bound(known: AtOnce, seed: int, secrets: int, bound: str) -> None:
    joint = some_joint(seed, secrets)
    found = solved(joint, BOUNDS[bound], known)
    moves, belief = channel(joint, found), believed(joint, found)
    read = moves.shape[2]
    people = belief if read > 1 else belief.sum(axis=0, keepdims=True)
    assert moves.sum(axis=(0, 1)) == pytest.approx(np.ones((read, 72)), abs=1e-12)
    assert np.tensordot(moves, people) == pytest.approx(people, rel=1e-9)
    # Tables of the other columns are right whatever the secrets of parts are.
    true = joint.counts if read > 1 else people
    assert np.tensordot(moves, true).sum(axis=0) == pytest.approx(joint.counts.sum(axis=0), rel=1e-9)
    alone = largest_change(joint, found, np.ones(72))
    knowing = max(largest_change(joint, found, having) for having in observers(joint, known).values())
    assert alone <= RECORD + 1e-9
    assert knowing <= KNOWING + 1e-9
    if read > 1:
        # Who knows the record, whatever they believed of its secret.
        there = moves.max(axis=2) > 1e-15
        labels = np.log((moves.max(axis=2) / moves.min(axis=2).clip(1e-300))[there]).max()
        alone = max(alone, labels)
        assert alone == pytest.approx(RECORD, rel=1e-6)
        knowing = max(knowing, max(largest_change(joint, found, one) for one in np.eye(72)))
    # Of two bounds the level is one of the larger; the optimum reaches one of them.
    assert found.level == pytest.approx(max(alone * KNOWING / RECORD, knowing), rel=1e-6)
    assert KNOWING * (1 - 1e-4) <= found.level <= KNOWING
    imbalance, alone_again, knowing_again = again(joint, found)
    assert imbalance <= 1e-12
    assert (alone_again, knowing_again) == pytest.approx((alone, knowing), rel=1e-6)
    stays = np.einsum("sxsx,sx", moves, people) if read > 1 else np.einsum("xx,x", moves[0, :, 0], people[0])
    assert found.unchanged == pytest.approx(float(stays) / joint.n, abs=1e-3)
    assert 0.1 < found.unchanged <= found.bound <= found.unchanged + 2e-4


def test_beliefs_are_those_of_all_draws() -> None:
    """Of nine people one by one: who the person is, their secret, what they are published as, and who is the donor."""
    random = np.random.default_rng(8)
    known = tuple(((column, value),) for column in "ab" for value in ("yes", "no"))
    having = [
        [i for i, values in enumerate(VALUES) if dict(zip("ab", values, strict=True))[c] == v] for ((c, v),) in known
    ]
    people = [[sum(PART[i] == k for i in some) for k in range(3)] for some in ([*range(9)], *having)]
    for read in (1, 2):
        weights = integer_weights(random.dirichlet(np.full(3 * read, 0.4), 3 * read).T)
        counts = np.array([[3, 1], [2, 3]])
        observed = AnyColumn(counts, np.array(CLASS), np.array(people), known, publishes=read == 2)
        worst = max(_largest_ratio(weights, some, read) for some in ([*range(9)], *having))
        assert observed.worst(weights).ratio == worst


# The part of each of nine people, the class of each part, the share of the second secret there; and two columns.
PART, CLASS, RATES = (0, 0, 0, 1, 1, 2, 2, 2, 2), (0, 0, 1), (Fraction(2, 5), Fraction(3, 4))
VALUES = [
    (("yes", "no")[a], ("yes", "no")[b])
    for a, b in zip((0, 1, 1, 0, 0, 1, 0, 1, 1), (0, 0, 1, 1, 0, 1, 0, 0, 1), strict=True)
]


def _largest_ratio(weights: np.ndarray, known: list[int], read: int) -> Fraction:
    """The largest change of a belief about a person who is one of some, with every secret, output and donor in turn."""
    seen: dict[tuple[int, tuple[str, ...], int], list[Fraction]] = {}
    prior = [Fraction(0), Fraction(0)]
    for i in known:
        for secret, rate in enumerate((1 - RATES[CLASS[PART[i]]], RATES[CLASS[PART[i]]])):
            prior[secret] += rate
            for output in range(3 * read):
                published, part = divmod(output, 3)
                chance = rate * Fraction(int(weights[output, 3 * (secret % read) + PART[i]]), 2**63)
                donors = [i] if part == PART[i] else [j for j in range(9) if PART[j] == part]
                for j in donors:
                    masses = seen.setdefault((published, VALUES[j], part), [Fraction(0), Fraction(0)])
                    masses[secret] += chance / len(donors)
    beliefs = [
        (mass / sum(masses), p / sum(prior)) for masses in seen.values() for mass, p in zip(masses, prior, strict=True)
    ]
    return max(max(after / before, before / after) for after, before in beliefs)


@pytest.mark.parametrize("known", AT_ONCE)
def test_the_witness_is_where_the_level_is(known: AtOnce) -> None:
    joint = some_joint(1)
    found = solved(joint, funnel.SRLIP(KNOWING), known)
    having = observers(joint, known)[found.witness.given]
    assert largest_change(joint, found, having) == pytest.approx(found.level, rel=1e-9)
    assert found.witness.ratio is not None
    assert math.log(found.witness.ratio) == pytest.approx(found.level, rel=1e-9)


def test_observers_of_two_columns_are_not_within_a_bound_for_those_of_one() -> None:
    """What the bound for pairs is for: under the same budget they conclude more, and records are left for both."""
    joint = some_joint(0)
    single, pairs = solved(joint), solved(joint, known="pairs")
    of_two = observers(joint, "pairs").values()
    assert max(largest_change(joint, single, having) for having in of_two) > KNOWING + 0.2
    assert 0.1 < pairs.unchanged < single.unchanged


def test_what_everybody_concludes_is_that_of_distinct_observers() -> None:
    """Those who are left out see nothing that others do not see, or believe what they believed, under any weights."""
    whole = some_joint(0)
    some = np.random.default_rng(4).permutation(72)[:24]
    symbols = tuple(whole.inputs.symbols[x] for x in some)
    joint = Joint.from_counts(whole.counts[:, some], inputs=Alphabet(COLUMNS, symbols))
    parts = solved(joint, known="pairs").classes
    known = AnyColumn.of(Composition.of(joint, parts).joint)
    assert 1 < len(known.distinct.known) < len(known.known)
    size = len(known.sizes)
    shares = np.random.default_rng(5).dirichlet(np.full(size, 0.2), size).T
    weights = integer_weights(shares)
    assert known.distinct.worst(weights).ratio == known.worst(weights).ratio
    broken, of_distinct = (one.broken(weights, RECORD, KNOWING) for one in (known, known.distinct))
    assert len(broken) >= len(of_distinct) > 0
    places = [{(one.output, one.secret, one.upward, one.agrees) for one in of} for of in (broken, of_distinct)]
    assert places[0] == places[1]


def test_the_bound_for_one_column_is_one_for_observers_of_none() -> None:
    """As srlip is everywhere; the level is one of the larger budget."""
    joint = some_joint(3)
    found = solved(joint, funnel.Several([funnel.LIP(3.0), funnel.SRLIP(0.9)]))
    _, alone, knowing = again(joint, found)
    assert max(alone, knowing) == pytest.approx(0.9, rel=1e-4)
    assert max(alone, knowing) <= 0.9
    assert found.level == pytest.approx(max(alone, knowing) * 3.0 / 0.9, rel=1e-9)


def test_a_bound_for_the_record_alone_leaves_them_uncovered() -> None:
    """What the test above would not see if it could not be there."""
    joint = some_joint(0)
    found = solved(joint)
    loose = solved(joint, funnel.Several([funnel.LIP(RECORD), funnel.SRLIP(8.0)]))
    assert again(joint, loose)[2] > KNOWING + 0.2
    assert loose.unchanged > found.unchanged + 0.01


def test_donors_are_anybody_of_the_part_for_every_record() -> None:
    """A word for every remainder: each person of the new part is the donor of one of them, whoever leaves."""
    codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.int32)
    of, counts = np.array([0, 0, 1, 1]), np.array([2, 1, 3, 4])
    donors = Donors(("a", "b"), (("x", "y"), ("p", "q")), codes, ("1.1", "1.2"), of, counts, evenly=True)
    for record, target, people in ((0, 1, [0, 0, 3, 4]), (1, 1, [0, 0, 3, 4]), (2, 0, [2, 1, 0, 0])):
        size = sum(people)
        words = np.arange(size, dtype=np.uint64) + np.uint64(size * 1000)
        drawn = donors.taken(np.full(size, record), np.full(size, target), partial(_always, words))
        assert np.bincount(drawn, minlength=4).tolist() == people
    assert donors.agreeing(0, 1) == pytest.approx([0.0, (2 * 3 + 1 * 4) / 3 / 7])


def _always(words: np.ndarray, attempt: int) -> np.ndarray:
    return words


def test_draws_are_what_was_expected() -> None:
    """Shares of unchanged values by column are within seven standard errors, and donors are not those of lines."""
    four = ["education", "sex", "race", "relationship"]
    found = funnel.fit_columns(ADULT, four, funnel.parse_guarantee("lip:1.0 & srlip:2.0"), ["income"], known="single")
    assert 0.2 < found.unchanged < 0.95
    source = pq.read_table(ADULT, columns=four)
    drawn = funnel.sanitise(source, found.protocol, classes=found.classes, shuffle=False)
    n, kept = source.num_rows, np.ones(source.num_rows, dtype=bool)
    for column in four:
        same = np.array(source[column].to_pylist()) == np.array(drawn[column].to_pylist())
        kept &= same
        share = found.by_column[column]
        assert abs(same.mean() - share) <= 7 * math.sqrt(share * (1 - share) / n)
    # A donor may be like the record in all four columns.
    assert found.unchanged - 7 / math.sqrt(n) <= kept.mean()
    assert set(drawn["record_class"].to_pylist()) <= {*found.classes.names}


def complaints(joint: Joint, found: ColumnsSolution) -> list[str]:
    """What is wrong by the second computation, and by the words that donors are drawn with."""
    imbalance, alone, knowing = again(joint, found)
    level = max(alone * KNOWING / RECORD, knowing)
    rows, people = channel(joint, found), believed(joint, found)
    stays = sum(np.einsum("xx,x", rows[s % len(rows), :, s % len(rows)], of) for s, of in enumerate(people)) / joint.n
    donors = Donors.of(joint.inputs, joint.counts.sum(axis=0), found.classes, COLUMNS)
    target = 1 - donors.of_record[0].clip(0, 1)
    people = np.where(donors.of_record == target, donors.counts, 0)
    words = np.arange(people.sum(), dtype=np.uint64) + np.uint64(people.sum() * 1000)
    drawn = donors.taken(np.zeros(len(words), dtype=np.int64), np.full(len(words), target), partial(_always, words))
    wrong = {
        "balance": imbalance > 1e-12,
        "record": alone > RECORD,
        "one column": knowing > KNOWING,
        "level": not math.isclose(level, found.level, rel_tol=1e-9),
        "unchanged": not math.isclose(stays, found.unchanged, rel_tol=1e-9),
        "donors": np.bincount(drawn, minlength=72).tolist() != people.tolist(),
    }
    return [name for name, is_wrong in wrong.items() if is_wrong]


Line = tuple[str, str, str, str | None]
# One line of the maker each, and how a release by it would be noticed; None where the maker itself refuses.
MUTANTS: list[Line] = [
    (
        "funnel.donors.column_sets",
        "Parts(names, class_of",
        "Parts(classes.alphabet, np.arange(len(class_of))",
        "level",
    ),
    ("funnel.donors.column_sets", "joint.counts.sum(axis=0), len", "joint.counts[0], len", "level"),
    ("funnel.guarantees.any_column", "if self.publishes else 1)", "if self.publishes else 9)", "one column"),
    (
        "funnel.solver.part_programme",
        "AnyColumn.of(joint, budgets.knowing < math.inf)",
        "AnyColumn.of(joint, False)",
        "one column",
    ),
    ("funnel.guarantees.any_column", "int(self.sizes[part]), 0", "int(self.sizes[part]), row[:, part]", "level"),
    ("funnel.guarantees.any_column", "moves[:, s] * given", "moves[:, s].T * given", "level"),
    ("funnel.donors.record_classes", "name.partition(PART)[0]", "name.partition(PART)[2]", "level"),
    ("funnel.solver.part_budgets", "for part in parts), knowing", "for part in parts), 2 * knowing", "one column"),
    ("funnel.solver.part_budgets", "return Budgets(min(", "return Budgets(2 * min(", "record"),
    ("funnel.solver.part_flows", "(one / self.sizes for", "(one / self.sizes[::-1] for", None),
    ("funnel.solver.part_programme", "if agrees else 0.0", "if not agrees else 0.0", None),
    ("funnel.sampling.donors", "_below(other, moved, words)", "_below(size, moved, words)", "donors"),
    ("funnel.sampling.donors", "counts, classes.draws_evenly)", "counts, False)", "donors"),
]


# The same where the secret is published, for observers of any two columns. Of the values twelve are of one column.
OF_SECRET: list[Line] = [
    ("funnel.guarantees.any_column", "tells * rows[output].astype", "tells * rows[output].max(axis=0).astype", None),
    ("funnel.guarantees.any_column", "outputs[output]), output %", "outputs[output]), (output + 1) %", "level"),
    (
        "funnel.solver.part_programme",
        "known = AnyColumn.of(joint, budgets.knowing < math.inf)",
        "known = (lambda one: __import__('dataclasses').replace(one, people=one.people[:13], known=one.known[:12]))"
        "(AnyColumn.of(joint, budgets.knowing < math.inf))",
        "one column",
    ),
    ("funnel.solver.part_programme", "capped_exp(budgets.labels * (1", "capped_exp(2 * budgets.labels * (1", None),
    ("funnel.solver.part_flows", "known.sizes, known.given if", "known.sizes, np.ones_like(known.given) if", None),
    ("funnel.solver.part_flows", "(s != other) &", "(s > other) &", None),
    ("funnel.class_parts", "tells[:, self.class_of] * people", "tells[:, self.class_of] * people[::-1]", None),
]


@pytest.mark.parametrize("bound", BOUNDS)
def test_without_a_mutant_nothing_is_wrong(bound: str) -> None:
    joint = some_joint(2)
    assert complaints(joint, solved(joint, BOUNDS[bound], "pairs")) == []


@pytest.mark.parametrize(
    ("line", "bound", "known"),
    [*((line, "lip", "single") for line in MUTANTS), *((line, "attribute", "pairs") for line in OF_SECRET)],
)
def test_a_changed_line_of_the_maker_is_noticed(line: Line, bound: str, known: AtOnce) -> None:
    joint, (module, old, new, noticed) = some_joint(2), line
    with patched(Patch(module, old, new)):
        if noticed is None:
            with pytest.raises((InfeasibleGuarantee, SolverError, SpecError)):
                solved(joint, BOUNDS[bound], known)
        else:
            assert noticed in complaints(joint, solved(joint, BOUNDS[bound], known))


def test_a_bound_that_no_exchange_of_whole_records_keeps_is_refused() -> None:
    with pytest.raises(InfeasibleGuarantee, match="raise its budget, or publish fewer columns"):
        solved(some_joint(25, 3), funnel.SRLIP(0.05))


def test_a_programme_is_infeasible_only_if_all_tolerances_find_it_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warm start at close tolerances that seems to have no solution is solved from the beginning at wider ones."""
    joint, status = some_joint(1), highspy.Highs.getModelStatus
    found = solved(joint, known="pairs").unchanged
    seen: list[object] = []

    def once(solver: highspy.Highs) -> object:
        seen.append(status(solver))
        return highspy.HighsModelStatus.kInfeasible if len(seen) == 2 else seen[-1]

    monkeypatch.setattr(highspy.Highs, "getModelStatus", once)
    assert solved(joint, known="pairs").unchanged == pytest.approx(found, abs=1e-6)
    assert len(seen) > 2


def test_other_bounds_are_refused() -> None:
    joint = some_joint(0)
    for guarantee, why in (
        (funnel.LIP(1.0), "is no bound for observers of columns"),
        (funnel.SRLIP(0.0), "is no bound for observers of columns"),
        (funnel.Several([funnel.LDP(1.0), funnel.SRLIP(1.0)]), "goes with lip and srlip where the secret is not pub"),
        (funnel.Attribute(1.0), "is no bound for observers of columns"),
    ):
        with pytest.raises(SpecError, match=why):
            solved(joint, guarantee)
    with pytest.raises(SpecError, match="goes with lip and srlip where the secret is not published"):
        funnel.fit_columns(joint, COLUMNS, WITH_SECRET, known="single", least=40, rules=FREE)
    with pytest.raises(SpecError, match="goes with srlip and attribute where the secret is published"):
        funnel.fit_columns(joint, ["S", *COLUMNS], BOTH, known="single", least=40, rules=FREE)


def test_beliefs_without_the_probability_of_the_published_secret_are_noticed() -> None:
    """A maker who takes the published secret for no evidence, in its programme and where it decides."""
    joint = some_joint(2)
    decides = Patch("funnel.guarantees.any_column", "return [one for ratios in", "return [] and [one for ratios in")
    of_all = Patch(
        "funnel.solver.part_programme",
        "own[secret if self._known.publishes else 0] +=",
        "own[slice(None) if known else secret] += (self._of.mass[:, part] if known else 1.0) *",
    )
    with patched(decides):
        assert complaints(joint, solved(joint, WITH_SECRET)) == []
    with patched(decides, of_all):
        assert "one column" in complaints(joint, solved(joint, WITH_SECRET))


def test_the_smaller_bound_is_for_who_knows_all_columns_too() -> None:
    """Where srlip has the smaller budget it is that of observers of whole records; a maker without them is noticed."""
    joint, smaller = some_joint(1), funnel.Several([funnel.Attribute(2.0), funnel.SRLIP(KNOWING)])
    assert again(joint, solved(joint, smaller))[2] <= KNOWING
    with patched(Patch("funnel.guarantees.any_column", "if knowing and publishes:", "if False:")):
        assert again(joint, solved(joint, smaller))[2] > KNOWING + 0.01
