"""Weighted frequencies from releases of groups: intervals that hold, whatever was rounded and whatever is not told."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import funnel
from funnel.errors import SpecError
from funnel.estimation.told_channel import FEW, ToldChannel
from funnel.estimation.weighted import estimate_weighted
from funnel.estimation.weighted_groups import Limits, _margin, of_counts
from funnel.groups import Schedule, Shown
from funnel.joint import FloatArray
from tests.funnel.estimation.test_grouped import simulated, told_of
from tests.funnel.groups.conftest import tabled

N = 20_000
CLASSES = {"z0": (1.0, 0.5, 1.5), "z1": (2.5, 1.5, 3.0), "z2": (6.0, 3.0, 10.0)}


@pytest.fixture(scope="module")
def joint() -> funnel.Joint:
    # The last class is that of missing weights.
    return tabled(2, (5, 3, 4), seed=11, n=N)


@pytest.fixture(scope="module")
def shown(joint: funnel.Joint) -> Shown:
    made = funnel.publish_groups(joint, [["z"], ["x"], ["y"]], funnel.LIP(1.0), schedule=Schedule(0.9, 4))
    return Shown.of(joint, made.protocol)


def weighted(joint: funnel.Joint, column: str, place: int = 0, all_alike: bool = False) -> dict[str, float]:
    """True weighted shares."""
    at = joint.inputs.columns.index(column)
    found: dict[str, float] = {}
    for symbol, share in zip(joint.inputs.symbols, joint.p_input.tolist(), strict=True):
        one = 1.0 if all_alike else CLASSES.get(symbol[2], (0.0, 0.0, 0.0))[place]
        found[symbol[at]] = found.get(symbol[at], 0.0) + share * one
    whole = sum(found.values())
    return {value: share / whole for value, share in found.items()}


def margins(shown: Shown, told: ToldChannel, people: int = 50) -> tuple[Limits, Limits]:
    """What is published of both columns by themselves."""
    channels = told_of(shown, people)
    return _margin(channels, told.columns[0]), _margin(channels, told.columns[1])


@pytest.mark.parametrize("column", ["x", "y"])
def test_intervals_hold_weighted_shares_as_often_as_they_say(joint: funnel.Joint, shown: Shown, column: str) -> None:
    told = told_of(shown).of((column, "z"))
    assert column == "y" or FEW in {value for value, _ in told.inputs}
    exact = weighted(joint, column)
    held, errors, misses = [], [], []
    for counts in simulated(shown, told, 20, 7):
        found = of_counts(counts, told, margins(shown, told), CLASSES)
        right = np.array([exact[value] for value in found.values])
        known = ~np.isnan(found.errors)
        assert known.any()
        held += ((found.lower <= right) & (right <= found.upper))[known].tolist()
        misses.append((found.frequencies - right)[known])
        errors.append(found.errors[known])
        assert (found.least <= found.frequencies + 1e-9)[known].all()
        assert (found.frequencies <= found.largest + 1e-9)[known].all()
    # Rounding makes them longer than a law needs, never shorter.
    assert np.mean(held) > 0.93
    # Errors are those of records whose laws are alike, and others vary less.
    assert (np.std(misses, axis=0) <= 1.3 * np.mean(errors, axis=0)).all()
    assert (np.mean(errors, axis=0) <= 4 * np.std(misses, axis=0)).all()
    # A population that these records are from is less known.
    wider = of_counts(counts, told, margins(shown, told), CLASSES, sampling=True)
    assert (wider.errors > found.errors)[known].all()


def test_weights_that_are_all_alike_give_the_shares_of_the_records(joint: funnel.Joint, shown: Shown) -> None:
    told = told_of(shown).of(("y", "z"))
    alike = dict.fromkeys(("z0", "z1", "z2", "z3"), (7.0, 7.0, 7.0))
    (counts,) = simulated(shown, told, 1, 3)
    found = of_counts(counts, told, margins(shown, told), alike)
    right = weighted(joint, "y", all_alike=True)
    for value, share, error, least, largest in zip(
        found.values, found.frequencies, found.errors, found.least, found.largest, strict=True
    ):
        assert abs(share - right[value]) < 5 * error + found.few + 0.01
        assert least == pytest.approx(share, abs=1e-9)
        assert largest == pytest.approx(share, abs=1e-9)


def test_pairs_of_few_records_may_be_anything(joint: funnel.Joint, shown: Shown) -> None:
    """With fewer records told one by one, intervals are longer, and hold all the same."""
    exact = weighted(joint, "x")
    lengths: list[FloatArray] = []
    for people in (50, 1200):
        told = told_of(shown, people).of(("x", "z"))
        (counts,) = simulated(shown, told, 1, 5)
        found = of_counts(counts, told, margins(shown, told, people), CLASSES)
        right = np.array([exact[value] for value in found.values])
        assert ((found.lower <= right) & (right <= found.upper)).all()
        lengths.append((found.upper - found.lower)[[found.values.index(v) for v in ("x0", "x1") if v in found.values]])
    assert (lengths[1] > lengths[0]).all()


def test_it_is_about_one_column_of_the_records_of_the_release(joint: funnel.Joint, shown: Shown) -> None:
    channels = told_of(shown)
    source = pa.table({c: [s[j] for s, n in _people(joint) for _ in range(n)] for j, c in enumerate(("x", "y", "z"))})
    released = funnel.sanitise(source, shown.protocol)
    found = funnel.estimate_weighted(released, channels, "z", CLASSES, "x")
    assert (found.columns, found.weight, found.records) == (("x",), "z", N)
    assert "rounding of the published probabilities" in str(found)
    assert found.to_dict()["cells"][0]["values"] == ["x0"]
    plain = funnel.estimate(released, channels, "x")
    assert found.unweighted[0] == plain.frequencies[0]
    for given, said in (
        ({"by": None}, "one at a time"),
        ({"by": ("x", "y")}, "one at a time"),
        ({"by": "z"}, "one at a time"),
        ({"weight": "w"}, "'w' is no published column"),
        ({"classes": {"z9": (1.0, 1.0, 1.0)}}, "'z9' is no class of weights"),
        ({"classes": {}}, "no class of 'z' that is given has a weight"),
    ):
        asked = {"weight": "z", "classes": CLASSES, "by": "x", **given}
        with pytest.raises(SpecError, match=said):
            estimate_weighted(released, channels, **asked)  # type: ignore[arg-type]


def _people(joint: funnel.Joint) -> list[tuple[tuple[str, ...], int]]:
    return list(zip(joint.inputs.symbols, joint.counts.sum(axis=0).tolist(), strict=True))
