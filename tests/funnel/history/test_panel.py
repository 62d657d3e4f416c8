"""The book against brute force: distributions, the condition for every history and output, and who is counted how."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import funnel
from funnel.history.observed import Secrets
from funnel.history.step import Step
from tests import chance
from tests.funnel.history.brute import Observer, Wave, beyond, lifts, panels, table_of, worse
from tests.funnel.history.unit_brute import by_secret

SECRET = bytes(range(32))
GUARANTEES = [
    funnel.LIP(0.7),
    funnel.ALIP(0.9, 0.4),
    funnel.LDP(1.0),
    funnel.PerfectPrivacy(),
    funnel.LIP(0.1),
    funnel.PML(0.4),
]
ROOM = 1 + Fraction(1, 10**9)


def extended(book: funnel.History, wave: Wave, version: str, **settings: Any) -> Step:
    settings = {"secret_bytes": SECRET, **settings}
    return book.extend(pa.table(table_of(wave)), key=["id"], secret=["s"], inputs=["x"], version=version, **settings)


def codes_of(step: Step) -> list[int]:
    assert step.released is not None
    columns = [step.released.column(name).to_pylist() for name in step.channel.outputs.columns]
    return [step.channel.outputs.index(symbol) for symbol in zip(*columns, strict=True)]


def given_input(weights: np.ndarray, step: Step, output: int) -> dict[int, Fraction]:
    """P(y|x) of one output by the number in the name of the input."""
    return {
        int(symbol[0][1:]): Fraction(int(weights[output, x]), 2**63)
        for x, symbol in enumerate(step.channel.inputs.symbols)
    }


@settings(max_examples=35)
@given(panels(), st.sampled_from(GUARANTEES), st.sampled_from([1.0, 0.8]), st.booleans(), st.booleans())
def test_every_distribution_and_every_decision_against_all_trajectories(
    waves: list[Wave], guarantee: funnel.Guarantee, reserve: float, read_alone: bool, invariant: bool
) -> None:
    observer, book = Observer(waves), funnel.History(guarantee, budget_fraction=reserve, read_alone=read_alone)
    told: dict[int, list[tuple[int, int, dict[int, Fraction]]]] = {}
    for version, wave in enumerate(waves):
        target = None
        if invariant:
            target = funnel.fit("invariant", funnel.Joint.from_table(pa.table(table_of(wave)), ["s"], ["x"]), guarantee)
        step = extended(book, wave, f"v{version}", target=target)
        assert not invariant or (step.channel.is_invariant and out_of_balance(step) <= 1)
        people: dict[tuple[tuple[str, int], ...], list[int]] = {}
        for person in wave:
            name = tuple((f"v{v}", y) for v, y, _ in told.get(person, []))
            people.setdefault(name, []).append(person)
        assert step.histories == len(people)
        moved, outside, worst = (
            Counter[int | None](),
            Counter[int | None](),
            dict.fromkeys([None, *range(version)], 0.0),
        )
        for history, these in people.items():
            rows = step.rows_for(history)
            assert rows.dtype == np.uint64
            assert rows.shape == step.channel.size
            assert [sum(column) for column in rows.T.tolist()] == [2**63] * rows.shape[1]
            record = told.get(these[0], [])
            distribution = observer.before([(v, row) for v, _, row in record], version)
            computed = book.distribution(history, f"v{version}")
            for s, secret in enumerate(step.joint.secret.symbols):
                for x, symbol in enumerate(step.joint.inputs.symbols):
                    exact = distribution.get((int(secret[0][1:]), int(symbol[0][1:])), Fraction(0))
                    assert computed[s, x] == pytest.approx(float(exact), rel=1e-14, abs=0)
            # The secret now, and that of every version that they were in.
            for place in (None, *range(len(record))):
                of = None if place is None else record[place][0]
                known = record if place is None else record[:place]
                prior = observer.secrets(known[-1][0] if known else None, version if of is None else of)
                distribution = observer.before([(v, row) for v, _, row in record], version, place)
                before = lifts(by_secret(distribution), prior)
                is_moved, is_outside = beyond(before, guarantee), False
                for y in range(len(rows)):
                    row = given_input(rows, step, y)
                    after = {cell: p * row[cell[1]] for cell, p in distribution.items()}
                    if not any(after.values()):
                        continue
                    now = lifts(by_secret(after), prior)
                    if is_moved:
                        assert not worse(now, before, guarantee, ROOM)
                        is_outside |= beyond(now, guarantee)
                    else:
                        assert not beyond(now, guarantee)
                        worst[of] = max(worst[of], level_of(now, guarantee))
                moved[of] += len(these) * is_moved
                outside[of] += len(these) * is_outside
        told_of = [one for one in step.by_observer if one.observer == "transitions"]
        assert [one.secret_of for one in told_of] == [None, *(f"v{v}" for v in range(version))]
        for one, of in zip(told_of, worst, strict=True):
            assert one.bounded
            assert (one.moved, one.outside) == (moved[of], outside[of])
            assert worst[of] - 1e-12 <= one.level <= min(guarantee.budget, worst[of] + 1e-9)
        assert not book.read_alone or guarantee.holds(step.joint, step.channel)
        assert 0 <= step.utility <= step.bound + 1e-12 <= step.entropy + 2e-12
        rows_of = {history: step.rows_for(history) for history in people}
        for person, code in zip(wave, codes_of(step), strict=True):
            name = tuple((f"v{v}", y) for v, y, _ in told.get(person, []))
            row = given_input(rows_of[name], step, code)
            assert row[wave[person][1]] > 0
            told.setdefault(person, []).append((version, code, row))


def out_of_balance(step: Step) -> Fraction:
    """By how many records a value is published too often or too rarely on average, at most, in fractions."""
    counts, weights = step.joint.counts.sum(axis=0).tolist(), step.channel.weights.tolist()
    assert step.channel.outputs.symbols == step.channel.inputs.symbols
    drawn = [sum(n * w for n, w in zip(counts, row, strict=True)) for row in weights]
    return max(abs(Fraction(one, 2**63) - n) for one, n in zip(drawn, counts, strict=True))


def level_of(some: dict[int, Fraction], guarantee: funnel.Guarantee) -> float:
    most, least = float(max(some.values())), float(min(some.values()))
    if isinstance(guarantee, funnel.LDP):
        return float(np.log(most / least))
    if isinstance(guarantee, funnel.PML):
        return max(float(np.log(most)), 0.0)
    up, down = float(np.log(most)), -float(np.log(least))
    if isinstance(guarantee, funnel.ALIP):
        return max(up * guarantee.budget / guarantee.upper, down * guarantee.budget / guarantee.lower, 0.0)
    return max(up, down, 0.0)


@settings(max_examples=10)
@given(panels(), st.sampled_from(GUARANTEES[:3]), st.randoms(use_true_random=False))
@example([{0: (0, 0), 1: (1, 1)}] * 3, funnel.LIP(0.7), None)
def test_the_same_secret_draws_the_same_whatever_the_order(
    waves: list[Wave], guarantee: funnel.Guarantee, random: Any
) -> None:
    first, second = funnel.History(guarantee), funnel.History(guarantee)
    for version, wave in enumerate(waves):
        other = list(wave)
        if random is not None:
            random.shuffle(other)
        one = dict(zip(wave, codes_of(extended(first, wave, f"v{version}")), strict=True))
        again = codes_of(extended(second, {person: wave[person] for person in other}, f"v{version}"))
        assert one == dict(zip(other, again, strict=True))


@settings(max_examples=10)
@given(panels(most=12), st.sampled_from(GUARANTEES[:3]))
def test_where_nothing_changes_all_versions_together_are_within_the_bound(
    waves: list[Wave], guarantee: funnel.Guarantee
) -> None:
    wave = waves[0]
    book = funnel.History(guarantee)
    steps = [extended(book, wave, f"v{version}") for version in range(4)]
    distribution = Observer([wave]).first(0)
    prior = Observer([wave]).secrets(None, 0)
    paths: dict[tuple[tuple[str, int], ...], dict[tuple[int, int], Fraction]] = {(): distribution}
    for version, step in enumerate(steps):
        longer = {}
        for history, masses in paths.items():
            if step.past.node(history) is None:
                continue
            rows = step.rows_for(history)
            for y in range(len(rows)):
                row = given_input(rows, step, y)
                after = {cell: p * row[cell[1]] for cell, p in masses.items()}
                if any(after.values()):
                    longer[(*history, (f"v{version}", y))] = after
        paths = longer
        for masses in paths.values():
            assert not beyond(lifts(by_secret(masses), prior), guarantee)
        assert step.moved == step.outside == 0


def test_a_history_that_nobody_has_gets_a_constant_row_and_has_a_distribution() -> None:
    wave = {person: (person % 2, person // 2 % 2) for person in range(40)}
    book = funnel.History(funnel.LIP(0.5))
    extended(book, wave, "a", target=None)
    missing = {person: cell for person, cell in wave.items() if person > 30}
    step = extended(book, missing, "b")
    nobody = next(
        ((("a", 0), ("b", y)))
        for y in range(step.channel.size[0])
        if step.past.followed_by(step.chapter(np.zeros(0, int), np.zeros(0, int))).node([("a", 0), ("b", y)]) is None
    )
    third = extended(book, wave, "c")
    rows = third.rows_for(nobody)
    assert (rows == rows[:, :1]).all()
    if step.rows_for([("a", 0)])[nobody[1][1]].any():
        assert book.distribution(nobody, "c").sum() == pytest.approx(1)


def test_new_and_vanished_categories_and_people_who_come_back() -> None:
    random = np.random.default_rng(3)
    book = funnel.History(funnel.LIP(1.0))
    for version, (values, secrets) in enumerate([("ab", "no"), ("bcd", "no"), ("ae", "nou"), ("abcde", "n")]):
        people = random.permutation(300)[: 200 + 20 * version]
        table = {
            "id": people,
            "s": random.choice(list(secrets), size=len(people)),
            "x": random.choice(list(values), size=len(people)),
        }
        step = book.extend(
            pa.table(table), key=["id"], secret=["s"], inputs=["x"], version=str(version), secret_bytes=SECRET
        )
        assert step.level.value <= 1.0
        assert len(step.joint.inputs) == len(values)
        assert step.released is not None
        assert step.released.num_rows == len(people)


def realistic(waves: int, people: int = 3000) -> list[Wave]:
    """Secrets and inputs that hang together and change slowly, as in a panel of households."""
    random = np.random.default_rng(5)
    x = random.integers(0, 10, size=people)
    s = (random.random(people) < 0.15 + 0.05 * (x % 5) + 0.1 * (x > 4)).astype(int)
    found = []
    for _ in range(waves):
        here = np.flatnonzero(random.random(people) < 0.8)
        found.append({int(i): (int(s[i]), int(x[i])) for i in here})
        changed = random.random(people) < 0.25
        x = np.where(changed, np.clip(x + random.integers(-1, 2, size=people), 0, 9), x)
        s = np.where(random.random(people) < 0.09, random.random(people) < 0.2 + 0.04 * (x % 5), s).astype(int)
    return found


@pytest.mark.parametrize(("secrets", "kept"), [("current", 0.96), ("all", 0.94)])
def test_five_waves_keep_nearly_all_within_the_bound(secrets: Secrets, kept: float) -> None:
    book = funnel.History(funnel.LIP(1.0), secrets=secrets)
    for version, wave in enumerate(realistic(5)):
        step = extended(book, wave, str(version))
        # Nobody but a few whom the frequencies have moved.
        assert step.level.value <= 1.0
        first = step.by_observer[0]
        assert first.outside <= first.moved <= 5
        assert step.utility >= kept * step.entropy
    assert step.histories > 400


def test_each_version_alone_would_leave_many_outside() -> None:
    # What the book is for: the same waves, each drawn afresh under its own optimum, tell together what none may tell.
    waves = realistic(4, people=800)
    observer = Observer(waves)
    random = np.random.default_rng(0)
    told: dict[int, list[tuple[int, dict[int, Fraction]]]] = {}
    guarantee = funnel.LIP(1.0)
    for version, wave in enumerate(waves):
        joint = funnel.Joint.from_table(pa.table(table_of(wave)), ["s"], ["x"])
        best = funnel.optimal(joint, guarantee).protocol
        for person, (_, x) in wave.items():
            place = joint.inputs.index(f"x{x}")
            y = int(random.choice(len(best.outputs), p=best.matrix[:, place] / best.matrix[:, place].sum()))
            row = {
                int(symbol[0][1:]): Fraction(int(best.weights[y, k]), 2**63)
                for k, symbol in enumerate(joint.inputs.symbols)
            }
            told.setdefault(person, []).append((version, row))
    outside = 0
    last = len(waves) - 1
    some = [person for person in waves[last] if len(told[person]) == len(waves)][:60]
    for person in some:
        distribution = observer.before(told[person][:-1], last)
        after = {cell: p * told[person][-1][1][cell[1]] for cell, p in distribution.items()}
        outside += beyond(lifts(by_secret(after), observer.secrets(last - 1, last)), guarantee)
    assert outside > len(some) // 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": "a"}, "published already"),
        ({"version": ""}, "needs a name"),
        ({"key": ["x"]}, "begin another history"),
        ({"secret": ["x"], "inputs": ["s"]}, "begin another history"),
        ({"inputs": ["z"]}, "is not in"),
        ({"secret_bytes": b"short"}, "at least 32 random bytes"),
        ({"table": {"id": [1, 1], "s": ["n", "o"], "x": ["a", "b"]}}, "1 records repeat the record key"),
        ({"table": {"id": [1, None], "s": ["n", "o"], "x": ["a", "b"]}}, "1 records have no value"),
        ({"table": {"id": ["1", "2"], "s": ["n", "o"], "x": ["a", "b"]}}, "other types than before"),
        ({"table": {"id": [1.0, 2.0], "s": ["n", "o"], "x": ["a", "b"]}}, "so convert it"),
        ({"table": {"id": [1, 2], "s": ["n", None], "x": ["a", "b"]}}, "holds nulls"),
        ({"table": {"id": [], "s": [], "x": []}}, "no rows"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence_and_leaves_the_book_as_it_was(
    change: dict[str, Any], message: str
) -> None:
    book = funnel.History(funnel.LIP(1.0))
    extended(book, {person: (person % 2, person % 3) for person in range(30)}, "a")
    past, steps = book.past, book.steps
    asked: dict[str, Any] = {"key": ["id"], "secret": ["s"], "inputs": ["x"], "version": "b", **change}
    table = pa.table(asked.pop("table", {"id": [1, 2], "s": ["s0", "s1"], "x": ["x0", "x1"]}))
    with pytest.raises(funnel.FunnelError, match=message) as caught:
        book.extend(table, **asked)
    assert "\n" not in str(caught.value)
    assert book.past is past
    assert book.steps is steps
    extended(book, {person: (person % 2, person % 3) for person in range(30)}, "b")


@pytest.mark.parametrize(
    "guarantee",
    [
        funnel.MutualInformation(0.1),
        funnel.L1Lift(0.5, 0.5),
        funnel.AlphaLift(lower=1.0, upper=1.0, alpha=2),
    ],
)
def test_what_is_no_bound_on_posteriors_is_refused(guarantee: funnel.Guarantee) -> None:
    with pytest.raises(funnel.SpecError, match="no bound on the posterior"):
        funnel.History(guarantee)


@pytest.mark.parametrize("reserve", [0.0, -1.0, 1.5, float("nan")])
def test_a_reserve_is_a_share(reserve: float) -> None:
    with pytest.raises(funnel.SpecError, match="budget_fraction is a share"):
        funnel.History(funnel.LIP(1.0), budget_fraction=reserve)


def test_histories_that_are_none_are_refused() -> None:
    book = funnel.History(funnel.LIP(1.0))
    wave = {person: (person % 2, person % 3) for person in range(30)}
    for version in "abc":
        step = extended(book, wave, version)
    for history, message in [
        ([("z", 0)], "no version is named 'z'"),
        ([("b", 0), ("a", 0)], "order of publication"),
        ([("a", 99)], "no output 99"),
    ]:
        with pytest.raises(funnel.FunnelError, match=message):
            step.rows_for(history)
        with pytest.raises(funnel.FunnelError, match=message):
            book.distribution(history, "c")
    with pytest.raises(funnel.FunnelError, match="not later than the history"):
        book.distribution([("b", 0)], "b")


def test_without_a_secret_draws_are_fresh() -> None:
    wave = {person: (int(person % 11 < person % 7), person % 7) for person in range(2000)}
    steps = [extended(funnel.History(funnel.LIP(0.2)), wave, "a", secret_bytes=None) for _ in range(2)]
    assert chance.of_equal_draws(steps[0].channel, steps[0].joint.counts.sum(axis=0)) < 1e-9
    assert codes_of(steps[0]) != codes_of(steps[1])


def test_tables_of_all_kinds(tmp_path: Any) -> None:
    import pandas as pd
    import pyarrow.parquet as pq

    wave = {person: (person % 2, person % 3) for person in range(60)}
    table = pa.table(table_of(wave))
    pq.write_table(table, tmp_path / "a.parquet")
    released = []
    for source in (table, table.to_pandas(), str(tmp_path / "a.parquet"), pd.DataFrame(table_of(wave))):
        book = funnel.History(funnel.LIP(0.5))
        step = book.extend(source, key=["id"], secret=["s"], inputs=["x"], version="a", secret_bytes=SECRET)
        released.append(step.released)
    assert all(one.equals(released[0]) for one in released)
