"""Numbers: what categories stand for, twice; what a spec of numbers may say; and variance within public rounding."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funnel
from funnel.audit.arithmetic import explained_limits
from funnel.audit.package import _numbers
from funnel.errors import DataError, SpecError
from funnel.measures.utilities import INFORMATION, Explained, Variance
from funnel.numbers import described_numbers, intervals_of, numbers_of, utility_for
from funnel.progress import quiet
from funnel.readers.formats import open_source
from funnel.recount.channel import Channel
from funnel.recount.drawn_numbers import plain_intervals, plain_numbers, plain_variance
from funnel.recount.source import recount
from funnel.sample_size import too_few
from funnel.source.counting import count_joint, recoded
from funnel.spec import ReleaseSpec
from tests.projects import spec_of

BINNED: dict[str, Any] = {"recode": {"x": {"bins": [10, 20]}}, "numbers": {"x": {"range": [0, 30], "whole": True}}}


class TestWhatCategoriesStandFor:
    @settings(max_examples=50)
    @given(
        st.lists(st.integers(1, 99), min_size=1, max_size=6, unique=True).map(sorted),
        st.booleans(),
        st.sampled_from([".", ","]),
    )
    def test_both_readers_agree(self, edges: list[int], whole: bool, decimal: str) -> None:
        source = {"decimal": decimal, "delimiter": ";"}
        numbers = {"x": {"range": [0, 100], "whole": whole, "unit": "years"}}
        spec = spec_of("t.csv", ".", recode={"x": {"bins": edges}}, numbers=numbers, source=source)
        labels = [*spec.recode["x"].bin_labels, "(missing)"]
        mine, other = numbers_of(spec, "x", labels), plain_numbers(spec, "x", labels)
        # To the bit, since the numbers that a document tells are compared with it.
        assert [None if n is None else float(n) for n in other] == list(mine)
        intervals = intervals_of(spec, "x")
        assert intervals == plain_intervals(spec, "x")
        assert intervals[labels[0]][0] == 0
        assert intervals[labels[-2]][1] == 100
        assert described_numbers(spec, "x") == {
            "unit": "years",
            "range": [0, 100],
            "whole": whole,
            "intervals": {label: list(ends) for label, ends in intervals.items()},
        }
        plain = spec_of("t.csv", ".", source=source)
        texts = [f"12{decimal}5", "-3", "(missing)", "Other"]
        assert numbers_of(plain, "x", texts) == (12.5, -3.0, None, None)
        assert plain_numbers(plain, "x", texts) == [Fraction(25, 2), -3, None, None]

    @settings(max_examples=50)
    @given(st.lists(st.integers(1, 599), min_size=1, max_size=6, unique=True).map(sorted))
    def test_both_readers_have_the_same_middle_of_decimals(self, tenths: list[int]) -> None:
        edges = [edge / 10 for edge in tenths]
        spec = spec_of("t.csv", ".", recode={"x": {"bins": edges}}, numbers={"x": {"range": [0, 60], "decimals": 1}})
        labels = list(spec.recode["x"].bin_labels)
        assert list(numbers_of(spec, "x", labels)) == [
            float(n) for n in plain_numbers(spec, "x", labels) if n is not None
        ]

    def test_intervals_that_are_published_together_alone_are_told(self) -> None:
        told = {"funnel:numbers": {"whole": True, "intervals": {"under 10": [0, 9], "10 and over": [10, 60]}}}
        assert _numbers(told, {"under 10", "10 and over"}) == told
        assert _numbers(told, {"under 10 or 10 and over", "(missing)"}) == told
        assert _numbers(told, {"red", "blue"}) == {}
        assert _numbers({"funnel:numbers": {"whole": True, "intervals": {"": [0, 9]}}}, {"red"}) == {}

    @settings(max_examples=50)
    @given(st.lists(st.integers(1, 99), min_size=3, max_size=6, unique=True).map(sorted), st.booleans())
    def test_a_group_stands_for_the_plain_mean_of_its_members(self, edges: list[int], whole: bool) -> None:
        numbers = {"x": {"range": [0, 100], "whole": whole}}
        bare = spec_of("t.csv", ".", recode={"x": {"bins": edges}}, numbers=numbers)
        first, second, third, *rest = bare.recode["x"].bin_labels
        recode = {"bins": edges, "groups": {"far": [first, third, "(missing)"], "gone": ["(missing)"]}}
        spec = spec_of("t.csv", ".", recode={"x": {"bins": edges, "groups": {"far": [first, third]}}}, numbers=numbers)
        low, _, high = numbers_of(bare, "x", [first, second, third])
        assert low is not None
        assert high is not None
        labels = ["far", second, *rest]
        found = numbers_of(spec, "x", labels)
        assert found[0] == pytest.approx((low + high) / 2)
        # To the bit, since the numbers that a document tells are compared with it.
        assert found == tuple(None if n is None else float(n) for n in plain_numbers(spec, "x", labels))
        with_missing = spec.model_copy(
            update={"recode": {"x": spec.recode["x"].model_copy(update={"groups": recode["groups"]})}}
        )
        assert numbers_of(with_missing, "x", ["far", "gone"]) == (found[0], None)
        assert [n if n is None else float(n) for n in plain_numbers(with_missing, "x", ["far", "gone"])] == [
            found[0],
            None,
        ]

    def test_what_is_no_number_is_named(self) -> None:
        spec = spec_of("t.csv", ".", utility="variance")
        with pytest.raises(SpecError, match="'many' is none"):
            numbers_of(spec, "x", ["1", "many"])
        with pytest.raises(DataError, match="stands for no number"):
            plain_numbers(spec, "x", ["1", "many"])
        with pytest.raises(DataError, match="have no range"):
            plain_numbers(spec_of("t.csv", ".", recode={"x": {"bins": [3]}}), "x", ["under 3"])
        assert described_numbers(spec, "x") is None

    def test_missing_values_count_as_the_mean(self) -> None:
        joint = funnel.Joint.from_counts([[30, 10, 20], [10, 50, 20]], inputs=["0", "10", "(missing)"])
        spec = spec_of("t.csv", ".", utility="variance")
        useful = utility_for(spec, joint)
        assert isinstance(useful, Variance)
        assert useful.of_inputs(joint.inputs, joint.p_input).tolist() == pytest.approx([0.0, 10.0, 6.0])
        assert utility_for(spec_of("t.csv", "."), joint) == INFORMATION
        identity = funnel.fit("identity", joint, funnel.MutualInformation(100.0))
        assert useful.told(joint, identity) == pytest.approx(1.0)
        said = Explained.of(useful, joint, identity)
        assert said is not None
        assert said.numbers == (0.0, 10.0, None)


class TestSettings:
    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"publish": ["x", "y"], "utility": "variance"}, "for one published column"),
            ({"utility": "variance", "recode": {"x": {"bins": [1]}}}, r"range = \[least, largest\]"),
            ({"utility": "varaince"}, "utility must be"),
            ({"numbers": {"z": {"unit": "m"}}}, "neither secret nor published"),
            ({"numbers": {"x": {}}}, "says nothing"),
            ({"numbers": {"x": {"range": [3, 3]}}}, "from the least to the largest"),
            ({"numbers": {"x": {"range": [3]}}}, "the least and the largest number"),
            ({**BINNED, "numbers": {"x": {"range": [10, 30]}}}, "an edge that is not inside"),
            ({"recode": {"s": {"bins": "auto"}}}, "is secret"),
            ({"recode": {"x": {"bins": "auto"}}, "frequencies": {}}, "made of its range alone"),
            ({"recode": {"x": {"bins": "auto", "groups": {"a": ["b"]}}}}, "yet to be found"),
            ({"recode": {"x": {"bins": "automatic"}}}, 'or "auto"'),
        ],
    )
    def test_what_cannot_be_is_one_sentence(self, changes: dict[str, Any], said: str) -> None:
        with pytest.raises(SpecError, match=said):
            spec_of("t.csv", ".", **changes)

    def test_digests_of_specs_without_numbers_stay(self) -> None:
        plain = spec_of("t.csv", ".")
        assert plain.digest == spec_of("t.csv", ".", utility="information", numbers={}).digest
        assert plain.coding_digest == spec_of("t.csv", ".", utility="variance").coding_digest
        auto = {"recode": {"x": {"bins": "auto"}}, "numbers": {"x": {"range": [0, 9]}}}
        found = {spec_of("t.csv", ".", **auto, **more).coding_digest for more in ({}, {"utility": "variance"})}
        found |= {spec_of("t.csv", ".", **{**auto, "guarantee": "lip:2.0"}).coding_digest}
        assert len(found) == 3

    def test_under_noise_bins_are_a_function_of_the_range(self) -> None:
        asked = {"recode": {"x": {"bins": "auto"}}, "numbers": {"x": {"range": [0, 50]}}, "frequencies": {}}
        spec = spec_of("t.csv", ".", **asked)
        assert spec.recode["x"].edges == (10, 20, 30, 40) or len(spec.recode["x"].edges) <= 9
        assert spec.automatic == ()
        # Whatever the source holds.
        assert spec.recode == spec_of("other.parquet", ".", **asked).recode


class TestBinsThatAreFound:
    def spec(self, folder: Path, numbers: list[Any], **changes: Any) -> ReleaseSpec:
        secret = ["a" if k % 3 else "b" for k in range(len(numbers))]
        pq.write_table(pa.table({"s": secret, "x": numbers}), folder / "t.parquet")
        return spec_of("t.parquet", folder, recode={"x": {"bins": "auto"}}, **changes)

    def test_both_readers_count_by_them(self, tmp_path: Path) -> None:
        numbers = [*np.random.default_rng(0).integers(0, 500, size=2000).tolist(), None]
        spec = self.spec(tmp_path, numbers)
        codings = recoded(spec, open_source(spec), quiet)
        settled = codings.settled(spec)
        assert 1 <= len(settled.recode["x"].edges) <= 11
        joint, again = count_joint(spec, quiet), recount(settled)
        assert again.table(joint.secret.symbols, joint.inputs.symbols) == joint.counts.tolist()
        assert joint.inputs.labels == (*settled.recode["x"].bin_labels, "(missing)")

    @pytest.mark.parametrize(
        ("numbers", "said"),
        [
            (["1", "x", "2", "3"], "not numbers"),
            ([5, 5, 5, 5], "the same category in every row"),
            ([5, 5, None, 5], "fewer than two numbers"),
            ([*[1] * 400, 0], "nearly all records have one number"),
        ],
    )
    def test_columns_without_bins(self, tmp_path: Path, numbers: list[Any], said: str) -> None:
        spec = self.spec(tmp_path, numbers)
        with pytest.raises(DataError, match=said):
            recoded(spec, open_source(spec), quiet)

    def test_under_a_threshold_they_are_found_before_counts_are_made_large_enough(self, tmp_path: Path) -> None:
        numbers = np.random.default_rng(1).integers(0, 60, size=600).tolist()
        spec = self.spec(tmp_path, numbers, frequencies={"protection": "threshold", "threshold": 10})
        joint = count_joint(spec, quiet)
        assert joint.counts[joint.counts > 0].min() >= 10


class TestVarianceAgain:
    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 10**6), st.booleans())
    def test_every_computation_comes_to_the_same(self, seed: int, missing: bool) -> None:
        random = np.random.default_rng(seed)
        a, b = int(random.integers(2, 6)), int(random.integers(1, 5))
        counts = random.integers(0, 50, size=(2, a)) + 1
        cuts = np.sort(random.integers(0, 2**16, size=(b - 1, a)), axis=0)
        weights = np.diff(np.vstack([np.zeros((1, a)), cuts, np.full((1, a), 2**16)]), axis=0).astype(np.int64)
        numbers: list[float | None] = [float(n) for n in random.integers(-20, 20, size=a)]
        if missing:
            numbers[0] = None
        known = [None if n is None else Fraction(n) for n in numbers]
        exact = plain_variance(Channel.of(counts.tolist(), weights.tolist(), 2**16), known)
        assert 0 <= exact <= 1
        joint = funnel.Joint.from_counts(counts)
        whole = np.asarray(weights.astype(np.uint64) << np.uint64(47))
        outputs = funnel.Alphabet(("Y",), tuple((str(y),) for y in range(b)))
        protocol = funnel.Protocol(whole, whole[:, 0], joint.inputs, outputs, "by hand", "lip:1.0")
        useful = Variance({x: n for (x,), n in zip(joint.inputs.symbols, numbers, strict=True)})
        assert useful.told(joint, protocol) == pytest.approx(float(exact), abs=1e-9)
        n = int(counts.sum())
        step = 10 / n
        limits = [(max(0.0, p - step / 2), min(1.0, p + step / 2)) for p in joint.p_input]
        low, high = explained_limits((weights / 2**16).tolist(), limits, numbers)
        assert low - 1e-9 <= float(exact) <= high + 1e-9
        tight = explained_limits((weights / 2**16).tolist(), [(p, p) for p in joint.p_input], numbers)
        if useful.whole(joint):
            assert tight == pytest.approx((float(exact), float(exact)), abs=1e-6)

    def test_one_number_beside_missing_values_does_not_vary(self) -> None:
        joint = funnel.Joint.from_counts([[3, 7, 9], [5, 2, 4]])
        useful = Variance({"X0": None, "X1": 0.1, "X2": 0.1})
        identity = funnel.fit("identity", joint, funnel.MutualInformation(100.0))
        assert (useful.whole(joint), useful.told(joint, identity)) == (0.0, 0.0)

    def test_shapes_are_checked(self) -> None:
        with pytest.raises(DataError, match="1 numbers for 2 inputs"):
            plain_variance(Channel.of([[1, 2]], [[4, 4]], 4), [Fraction(1)])


def test_a_plan_compares_by_what_is_explained() -> None:
    joint = funnel.Joint.from_counts(np.array([[90, 60, 30, 10], [10, 30, 60, 90]]), inputs=["1", "2", "3", "30"])
    rows = funnel.plan(joint, funnel.LIP(0.3), utility="variance")
    best, useful = rows[0], Variance.of(joint.inputs)
    assert best.mechanism == "optimal"
    assert best.protocol is not None
    assert best.share == best.utility == pytest.approx(useful.told(joint, best.protocol))
    for row in rows:
        if row.reason is None and not row.reads_secret and row.protocol is not None:
            assert row.utility == pytest.approx(useful.told(joint, row.protocol))
            assert best.bound is not None
            assert row.utility <= best.bound
            assert row.mechanism == "optimal" or row.bound is None
    assert too_few(joint, funnel.RLIP(0.01), rows, useful) is None


class TestMeansAndWeights:
    GIVEN: Mapping[str, Any] = {
        "publish": ["x", "z"],
        "weight": "x",
        "recode": {"x": {"bins": [10, 20]}},
        "numbers": {"x": {"range": [0, 30], "whole": True, "means": [4, 15.5, 21]}},
    }

    def test_bins_stand_for_their_means_in_both_computations(self) -> None:
        spec = spec_of("t.csv", ".", **self.GIVEN)
        labels = spec.recode["x"].bin_labels
        assert numbers_of(spec, "x", labels) == (4, 15.5, 21)
        assert plain_numbers(spec, "x", labels) == [4, Fraction(31, 2), 21]
        told = described_numbers(spec, "x")
        assert told is not None
        assert told["means"] == dict(zip(labels, (4, 15.5, 21), strict=True))
        assert told["surveyWeight"] is True

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"numbers": {"x": {"range": [0, 30], "means": [4, 15]}}}, "2 means and 3 bins"),
            ({"numbers": {"x": {"range": [0, 30], "means": [4, 21, 25]}}}, "a mean of 21 for its bin from 10 to 20"),
            ({"numbers": {"x": {"range": [0, 30], "means": []}}}, "must be a list with a number for every bin"),
            ({"numbers": {"x": {"means": [4, 15, 21]}}, "weight": None}, "within a range"),
            ({"publish": ["z", "y"], "recode": {}, "numbers": {}}, "'x', which is not published"),
            ({"publish": ["x"]}, "the only published column"),
            ({"numbers": {"x": {"whole": True}}}, "nearly unique is a name"),
            ({"numbers": {"x": {"range": [-5, 30]}}}, "its range begins below 0"),
            ({"recode": {"x": {"bins": [10, 20], "groups": {"g": ["under 10"]}}}}, "joins classes of weights"),
            ({"recode": {"x": {"bins": [10, 20], "minimum_count": 5}}}, "joins classes of weights"),
        ],
    )
    def test_what_a_spec_cannot_say_is_one_sentence(self, change: dict[str, Any], message: str) -> None:
        with pytest.raises(SpecError, match=message):
            spec_of("t.csv", ".", **{**self.GIVEN, **change})
