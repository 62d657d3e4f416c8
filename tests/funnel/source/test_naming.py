"""Which values of a column have a name: as declared, as they occur, and under noise as noisy counts say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funnel import DataError
from funnel.frequencies import selection
from funnel.readers.formats import open_source
from funnel.source.coding import Codings, coded_batches
from funnel.source.learning import learn_codings
from funnel.source.naming import columns_to_learn, shares_of, too_rare
from funnel.spec import ReleaseSpec
from tests.projects import spec_of

NOISE = {"protection": "noise", "epsilon": 8.0, "delta": 0.01}
Noises = Callable[[int], None]


def learn(spec: ReleaseSpec) -> Codings:
    return learn_codings(spec, open_source(spec), batch_rows=7)


def rows(spec: ReleaseSpec, codings: Codings) -> list[tuple[str | None, ...]]:
    table = pa.Table.from_batches(list(coded_batches(spec, open_source(spec), codings, 5)))
    return list(zip(*(table[name].to_pylist() for name in spec.columns), strict=True))


@pytest.fixture
def noise(monkeypatch: pytest.MonkeyPatch) -> Noises:
    """Let all noise be the same number, 0 at first."""
    number = [0]
    monkeypatch.setattr(
        selection, "draw_noise", lambda size, epsilon, key: np.full(size, number[0], dtype=np.int64), raising=True
    )

    def be(value: int) -> None:
        number[0] = value

    return be


def consistent(spec: ReleaseSpec, codings: Codings) -> list[tuple[str | None, ...]]:
    """The rows, after a check that codings count them."""
    made = rows(spec, codings)
    assert len(made) == codings.n_rows
    for j, column in enumerate(spec.columns):
        counted = Counter(row[j] for row in made)
        assert {label: counted[label] for label in codings[column].labels} == dict(
            zip(codings[column].labels, codings[column].counts, strict=True)
        )
        assert sum(counted.values()) == sum(codings[column].counts)
    return made


class TestWithoutNoise:
    def test_declared_values_are_in_their_order_and_all_others_are_one(self, workshop: Any) -> None:
        columns = {"s": ["u", "v"] * 4, "x": ["b", "z", "a", None, "b", "y", "b", "z"]}
        spec = workshop.parquet(columns, categories={"x": ["b", "never", "a"]})
        coding = learn(spec)["x"]
        assert coding.labels == ("b", "a", "Other", "(missing)")
        assert coding.counts == (3, 1, 3, 1)
        assert (coding.n_grouped, coding.n_grouped_values, coding.other_label) == (3, 2, "Other")
        assert [row[1] for row in consistent(spec, learn(spec))] == [
            "b", "Other", "a", "(missing)", "b", "Other", "b", "Other",
        ]  # fmt: skip

    def test_others_and_missing_values_are_where_they_are_listed(self, workshop: Any) -> None:
        columns = {"s": ["u", "v"] * 3, "x": ["b", "z", "a", None, "rest", "b"]}
        spec = workshop.parquet(
            columns, categories={"x": ["(missing)", "b", "rest", "a"]}, recode={"x": {"other": "rest"}}
        )
        codings = learn(spec)
        assert codings["x"].labels == ("(missing)", "b", "rest", "a")
        assert codings["x"].counts == (1, 2, 2, 1)
        consistent(spec, codings)

    def test_where_all_values_are_declared_nobody_is_another(self, workshop: Any) -> None:
        spec = workshop.parquet({"s": ["u", "v"], "x": ["b", "a"]}, categories={"x": ["b", "a"]})
        assert learn(spec)["x"].labels == ("b", "a")
        assert learn(spec)["x"].other_label is None
        assert learn(spec).learned.epsilon == 0

    def test_others_that_are_few_take_more_with_them(self, workshop: Any) -> None:
        columns = {"s": ["u", "v"] * 8, "x": [*"aaaaaaabbbccccc", "z"]}
        spec = workshop.parquet(columns, categories={"x": ["a", "b", "c"]}, recode={"x": {"minimum_count": 3}})
        # One record with another value, which is fewer than three, so the smallest category joins it.
        assert learn(spec)["x"].labels == ("a", "c", "Other")
        assert learn(spec)["x"].counts == (7, 5, 4)

    def test_a_value_named_as_the_others_is_none_of_them(self, workshop: Any) -> None:
        coding = learn(workshop.parquet({"s": ["u", "v"], "x": ["Other", "a"]}))["x"]
        assert (coding.labels, coding.other_label, coding.n_grouped) == (("Other", "a"), None, 0)

    def test_groups_are_declared_as_any_value(self, workshop: Any) -> None:
        spec = workshop.parquet(
            {"s": ["u", "v"] * 3, "x": ["a", "b", "c", "d", None, "z"]},
            categories={"x": ["d", "a", "b"]},
            recode={"x": {"groups": {"a or b": ["a", "b"], "none": ["(missing)", "c"]}}},
        )
        codings = learn(spec)
        assert codings["x"].labels == ("d", "a or b", "Other", "none")
        consistent(spec, codings)


class TestUnderNoise:
    def test_a_declared_column_has_all_its_values_and_spends_nothing(self, workshop: Any, noise: Noises) -> None:
        spec = workshop.parquet(
            {"s": ["u", "v", "u"], "x": ["b", "z", "a"]},
            categories={"x": ["b", "never", "a"], "s": ["v", "u"]},
            frequencies=NOISE,
        )
        codings = learn(spec)
        assert codings["x"].labels == ("b", "never", "a", "Other", "(missing)")
        assert codings["x"].counts == (1, 0, 1, 1, 0)
        # Of a secret neither others nor missing values, unless they are listed: nobody may have them.
        assert codings["s"].labels == ("v", "u")
        assert columns_to_learn(spec) == ()
        assert (codings.learned_epsilon, codings.learned_delta) == (0, 0)
        consistent(spec, codings)

    def test_a_complete_column_has_no_category_for_others_or_missing_values(self, workshop: Any) -> None:
        columns = {"s": ["u", "v"] * 4, "x": ["b", "a"] * 4, "z": [1, 9] * 4}
        spec = workshop.parquet(
            columns,
            publish=["x", "z"],
            categories={"s": ["u", "v"], "x": ["a", "b", "never"]},
            recode={"z": {"bins": [5]}},
            complete=["s", "x", "z"],
            frequencies=NOISE,
        )
        assert columns_to_learn(spec) == ()
        codings = learn(spec)
        assert codings["x"].labels == ("a", "b", "never")
        assert codings["z"].labels == ("under 5", "5 and over")
        assert not any(coding.leaves_out for coding in codings.columns)
        assert len(consistent(spec, codings)) == 8

    def test_the_alphabet_does_not_tell_what_occurs(self, workshop: Any, noise: Noises) -> None:
        declared: dict[str, Any] = {"categories": {"x": ["b", "a"], "s": ["v", "u"]}, "frequencies": NOISE}
        first = learn(workshop.parquet({"s": ["u", "v", "u"], "x": ["b", "z", "a"]}, **declared))
        second = learn(workshop.parquet({"s": ["u", "v"], "x": ["b", None]}, **declared))
        assert first.labels == second.labels

    def test_records_whose_secret_has_no_name_are_left_out(self, workshop: Any, noise: Noises) -> None:
        columns = {"s": ["u", "v", "w", None, "u", "v"], "x": ["a", "b", "a", "b", "b", "c"]}
        declared = {"s": ["u", "v"], "x": ["a", "b"]}
        spec = workshop.parquet(columns, categories=declared, frequencies=NOISE)
        codings = learn(spec)
        assert (codings.n_rows, codings.n_dropped) == (4, 2)
        assert consistent(spec, codings) == [("u", "a"), ("v", "b"), ("u", "b"), ("v", "Other")]
        # Where the list names them, they have a category.
        spec = workshop.parquet(columns, categories={**declared, "s": ["u", "v", "Other"]}, frequencies=NOISE)
        codings = learn(spec)
        assert (codings.n_rows, codings.n_dropped) == (6, 0)
        assert codings["s"].labels == ("u", "v", "Other")
        assert codings["s"].counts == (2, 2, 2)
        consistent(spec, codings)

    def test_all_bins_are_public(self, workshop: Any, noise: Noises) -> None:
        spec = workshop.parquet(
            {"s": [1, 30, 1, 30], "x": [70, 5, None, 70]},
            recode={"x": {"bins": [10, 20, 65]}, "s": {"bins": [20, 40]}},
            frequencies=NOISE,
        )
        codings = learn(spec)
        assert codings["x"].labels == ("under 10", "10 to under 20", "20 to under 65", "65 and over", "(missing)")
        assert codings["x"].counts == (1, 0, 0, 2, 1)
        # Whether missing secrets are enough to be told of is learned.
        assert columns_to_learn(spec) == ("s",)
        assert codings["s"].labels == ("under 20", "20 to under 40", "40 and over")
        assert codings.learned_delta == 0
        consistent(spec, codings)

    def test_values_are_selected_by_noisy_counts_and_others_always_have_a_category(
        self, workshop: Any, noise: Noises
    ) -> None:
        columns = {"s": [*"uvuvuvuvuv"] * 10, "x": [*"aaaaaaabcd"] * 9 + [*"aaaaaaacce"]}
        spec = workshop.parquet(columns, frequencies=NOISE, categories={"s": ["u", "v"]})
        least = shares_of(spec)["x"].threshold
        assert 1 < least < 9
        codings = learn(spec)
        assert codings["x"].labels == ("a", "b", "c", "d", "Other", "(missing)")
        assert codings["x"].counts == (70, 9, 11, 9, 1, 0)
        assert codings.learned == shares_of(spec)["x"]
        consistent(spec, codings)
        # The noise decides, not the counts.
        noise(-10 + least)
        assert learn(spec)["x"].labels == ("a", "c", "Other", "(missing)")
        noise(least - 1)
        assert "e" in learn(spec)["x"].labels

    def test_a_secret_has_others_and_missing_values_where_noisy_counts_tell_of_them(
        self, workshop: Any, noise: Noises
    ) -> None:
        columns = {"s": [*"uuuuuuvvvv"] * 9 + [*"uuuuuwxyzu"], "x": [*"ab"] * 50}
        spec = workshop.parquet(columns, frequencies=NOISE, categories={"x": ["a", "b"]})
        codings = learn(spec)
        least = shares_of(spec)["s"].halved().threshold
        assert least > 4
        # Four records with four rare secrets are too few to be told of: they are left out.
        assert codings["s"].labels == ("u", "v")
        assert (codings.n_rows, codings.n_dropped) == (96, 4)
        consistent(spec, codings)
        rare = {"s": [*columns["s"], *"ghijklmn", None], "x": [*columns["x"], *"aaaabbbba"]}
        spec = workshop.parquet(rare, frequencies=NOISE, categories={"x": ["a", "b"]})
        codings = learn(spec)
        assert codings["s"].labels == ("u", "v", "Other")
        # The missing one is too few to be a category, so it is one of the others.
        assert (codings["s"].missing_label, codings.n_rows, codings.n_dropped) == ("Other", 109, 0)
        assert codings["s"].counts == (60, 36, 13)
        consistent(spec, codings)
        many = {"s": [*columns["s"], *[None] * least], "x": [*columns["x"], *"a" * least]}
        spec = workshop.parquet(many, frequencies=NOISE, categories={"x": ["a", "b"]})
        assert learn(spec)["s"].labels == ("u", "v", "(missing)")

    def test_minimum_counts_are_about_noisy_counts(self, workshop: Any, noise: Noises) -> None:
        columns = {"s": ["u", "v"] * 10, "x": [*"a" * 9, *"b" * 6, *"c" * 5]}
        spec = workshop.parquet(
            columns,
            categories={"x": ["a", "b", "c"], "s": ["u", "v"]},
            recode={"x": {"minimum_count": 6}},
            frequencies=NOISE,
            source={"on_missing": "drop"},
        )
        assert columns_to_learn(spec) == ("x",)
        assert learn(spec)["x"].labels == ("a", "Other")
        noise(1)
        assert learn(spec)["x"].labels == ("a", "b", "c", "Other")
        noise(-100)
        with pytest.raises(DataError, match="too few values of x are common enough"):
            learn(spec)

    def test_a_table_too_small_for_its_values_to_be_learned_is_refused_with_what_would_help(
        self, workshop: Any, noise: Noises
    ) -> None:
        columns = {"s": ["u", "v"] * 30, "x": ["a", "b", "c"] * 20}
        spec = workshop.parquet(columns, frequencies={**NOISE, "epsilon": 1.0})
        with pytest.raises(DataError, match=r"values of s are common enough .* about 7\d records with each; list"):
            learn(spec)
        spec = workshop.parquet(columns, frequencies={**NOISE, "epsilon": 0.5}, categories={"s": ["v", "u"]})
        with pytest.raises(DataError, match="values of x are common enough"):
            learn(spec)
        # Who declares all values is not asked how many records there are, but somebody has to be there.
        everything: dict[str, Any] = {"frequencies": NOISE, "categories": {"s": ["w", "z"], "x": ["a"]}}
        with pytest.raises(DataError, match="hardly any record has a value of s that has a category"):
            learn(workshop.parquet(columns, **everything))

    @pytest.mark.parametrize("on_missing", ["category", "drop"])
    def test_every_count_that_is_looked_at_has_noise_and_no_record_pays_twice(
        self, workshop: Any, monkeypatch: pytest.MonkeyPatch, on_missing: str
    ) -> None:
        asked: list[tuple[int, float]] = []

        def draw(size: int, epsilon: float, key: bytes | None) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
            asked.append((size, epsilon))
            return np.zeros(size, dtype=np.int64)

        monkeypatch.setattr(selection, "draw_noise", draw)
        spec = workshop.parquet(
            {"s": ["u", "v"] * 50, "x": [*"aabbc"] * 20, "z": [*"defgh"] * 20},
            publish=["x", "z"],
            categories={"z": ["d", "e"]},
            recode={"z": {"minimum_count": 5}},
            frequencies=NOISE,
            source={"on_missing": on_missing},
        )
        learn(spec)
        share = shares_of(spec)["x"].epsilon
        rest = 1 if on_missing == "category" else 0
        # Of the secret its two values for one half, and for the other what is left of them, and what is missing.
        expected = [(2, share / 2), (1 + rest, share / 2)]
        # Of a published column its values, and what is missing: nobody is in both.
        expected += [(3, share)] + [(1, share)] * rest
        expected += [(2, share)] + [(1, share)] * rest
        assert [one for one in asked if one[0]] == expected

    def test_groups_are_public_and_missing_values_may_be_in_one(self, workshop: Any, noise: Noises) -> None:
        spec = workshop.parquet(
            {"s": ["u", "v"] * 10, "x": [*"a" * 9, *"b" * 9, "c", None]},
            recode={"x": {"groups": {"few": ["c", "(missing)"], "nobody": ["y", "z"]}}},
            frequencies=NOISE,
            categories={"s": ["u", "v"]},
        )
        codings = learn(spec)
        assert codings["x"].labels == ("a", "b", "few", "nobody", "Other")
        assert codings["x"].counts == (9, 9, 2, 0, 0)
        assert codings["x"].missing_label == "few"
        consistent(spec, codings)

    @given(st.data())
    def test_every_record_has_a_category_or_is_left_out(self, workshop: Any, data: st.DataObject) -> None:
        cells = st.sampled_from(["a", "a", "a", "b", "b", "c", "Other", None])
        made = data.draw(st.lists(st.tuples(cells, cells), min_size=2, max_size=60))
        columns = {"s": [one for one, _ in made] + ["a", "b"] * 20, "x": [one for _, one in made] + ["a", "b"] * 20}
        changes: dict[str, Any] = {"frequencies": {**NOISE, "epsilon": data.draw(st.sampled_from([6.0, 20.0]))}}
        if data.draw(st.booleans()):
            changes["recode"] = {"x": {"minimum_count": data.draw(st.integers(1, 30)), "other": "Other"}}
        if data.draw(st.booleans()):
            changes["categories"] = {data.draw(st.sampled_from(["s", "x"])): ["b", "a"]}
        changes["source"] = {"on_missing": data.draw(st.sampled_from(["drop", "category"]))}
        spec = workshop.parquet(columns, **changes)
        random = data.draw(st.randoms(use_true_random=False))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                selection,
                "draw_noise",
                lambda size, epsilon, key: np.array([random.randint(-9, 9) for _ in range(size)]),
            )
            try:
                codings = learn(spec)
            except DataError as error:
                # Where so few have a name that nothing varies.
                if not re.search("has the same category in every row|common enough to be named", str(error)):
                    raise
                return
        assert codings.n_rows + codings.n_dropped == len(columns["s"])
        assert None not in {cell for row in consistent(spec, codings) for cell in row}
        assert Codings.from_json(codings.to_json()) == codings


def test_no_noise_is_asked_for_where_none_is_wanted(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(size: int, epsilon: float, key: bytes | None) -> None:
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(selection, "draw_noise", refuse)
    columns = {"s": ["u", "v"], "x": ["b", "a"]}
    learn(workshop.parquet(columns))
    learn(workshop.parquet(columns, categories={"x": ["a"], "s": ["u", "v"]}, frequencies=NOISE))
    with pytest.raises(AssertionError, match="noise was drawn"):
        learn(workshop.parquet(columns, frequencies=NOISE))


@given(
    st.dictionaries(st.text(min_size=1, max_size=2), st.integers(-20, 40), max_size=8),
    st.integers(1, 30),
    st.integers(0, 40),
)
def test_what_is_rare_together_is_not_rare(counts: dict[str, int], least: int, together: int) -> None:
    rare = too_rare(counts, least, together)
    assert {label for label, count in counts.items() if count < least} <= rare
    size = together + sum(counts[label] for label in rare)
    assert size >= least or rare == set(counts) or (not rare and not together)
    # None joins that does not have to.
    joined = sorted((counts[label] for label in rare if counts[label] >= least), reverse=True)
    assert not joined or size - joined[0] < least
    assert too_rare(counts, 0, together) == set()


@pytest.mark.parametrize(
    ("changes", "learned"),
    [
        ({}, ("s", "x")),
        ({"categories": {"x": ["a"]}}, ("s",)),
        ({"categories": {"x": ["a"], "s": ["u", "v"]}}, ()),
        ({"categories": {"x": ["a"]}, "recode": {"x": {"minimum_count": 3}}}, ("s", "x")),
        ({"recode": {"x": {"bins": [1]}, "s": {"bins": [1]}}}, ("s",)),
        ({"recode": {"x": {"bins": [1]}, "s": {"bins": [1]}}, "source": {"on_missing": "drop"}}, ()),
        ({"recode": {"x": {"bins": [1]}, "s": {"bins": [1], "groups": {"y": ["(missing)"]}}}}, ()),
    ],
)
def test_only_what_is_a_function_of_the_data_is_learned(changes: dict[str, Any], learned: tuple[str, ...]) -> None:
    assert columns_to_learn(spec_of("a.csv", ".", frequencies=NOISE, **changes)) == learned
    assert columns_to_learn(spec_of("a.csv", ".", **changes)) == ()
