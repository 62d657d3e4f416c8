"""Observers of a register who know published columns: bounded by funnel, and judged by the recount.

And lines of what bounds them changed, each of which is noticed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from funnel.guarantees import SRLIP, Attribute
from funnel.joint import Joint
from funnel.recount.promise import known_groups
from tests.funnel.recount.test_both_observers import Made, Terms, complaints, made_with, panel, published
from tests.panels import SECRET, Wave

EPSILON, BUDGET, BOTH = 0.5, 0.2, ("town", "job")


@dataclass(frozen=True)
class TwoColumns(Wave):
    """A version that publishes the town and the job."""

    def table(self) -> pa.Table:
        table = super().table()
        return table.append_column("job", pa.array(self.people["job"].tolist(), pa.string()).dictionary_encode())

    def joint(self) -> Joint:
        return Joint.from_table(self.table(), SECRET, BOTH)


WAVES = [TwoColumns(wave.people) for wave in panel(2, count=2, people=200)]


def registered(folder: Path, guarantee: SRLIP) -> Made:
    return published(folder, Terms(budget=BUDGET, guarantee=guarantee), WAVES)


@pytest.mark.parametrize("guarantee", [SRLIP(EPSILON), Attribute(EPSILON)], ids=str)
def test_who_knows_columns_is_bounded_and_judged_the_same(guarantee: SRLIP, tmp_path: Path) -> None:
    made = registered(tmp_path, guarantee)
    assert not list(complaints(*made))
    for number, version in enumerate(made[1].versions):
        known = ["", ", knowing town", ", knowing job", ", knowing town and job"]
        names = [f"{observer}{more}" for observer in ("transitions", "mover-stayer") for more in known]
        assert {one.observer for one in version.bounded_for} == set(names)
        assert len(version.observers) == len(names) * (1 + number)
        assert all(one.level <= EPSILON for one in version.bounded_for)
        # Answers told something, or nothing would have been bounded.
        assert version.level > 0.8 * EPSILON


BROKEN = {
    "one value alone": (
        "funnel.history.history_status",
        "return (self, *self.others)",
        "return (self, *[one for one in self.others if not one.given or one.given[0][1] in 'ac'])",
    ),
}
NOTICED = {
    **BROKEN,
    "the version to come is taken as known by nobody": (
        "funnel.history.observers",
        "return distributions if inside is None or then is not None else distributions.within(inside)",
        "return distributions",
    ),
    "what is known of an earlier version is forgotten": (
        "funnel.history.distributions",
        "* (True if inside is None else inside)",
        "* True",
    ),
    "the odds of who knows everything": (
        "funnel.history.allowed",
        "isinstance(asked, Attribute) and knows_all",
        "False",
    ),
    "nobody knows anything": (
        "funnel.history.history_status",
        "if not given or isinstance(guarantee, SRLIP | RSRLIP):",
        "if not given:",
    ),
    "how common secrets are among all": (
        "funnel.history.history_status",
        "else cells[:, inside].sum(axis=1)",
        "else cells.sum(axis=1)",
    ),
    "all people of a history": (
        "funnel.history.prove",
        "people = status.moved * share, outside * share",
        "people = status.moved * 1.0, outside * 1.0",
    ),
    "one value after the other": ("funnel.history.reached", "np.add if of_others else np.maximum", "np.maximum"),
}


@pytest.mark.parametrize("name", NOTICED)
def test_a_changed_line_is_noticed(name: str, tmp_path: Path) -> None:
    made = made_with(NOTICED[name], lambda: registered(tmp_path, Attribute(EPSILON)))
    if made is None:
        assert name not in BROKEN
        return
    assert list(complaints(*made))
    if name in BROKEN:
        assert any(version.broken for version in made[1].versions)


def test_groups_are_those_of_every_set_of_columns() -> None:
    inputs = (("a", "x"), ("a", "y"), ("b", "x"))
    found = {(group.columns, group.inside) for group in known_groups(BOTH, inputs)}
    assert found == {
        (("town",), frozenset({0, 1})),
        (("town",), frozenset({2})),
        (("job",), frozenset({0, 2})),
        (("job",), frozenset({1})),
        *((BOTH, frozenset({x})) for x in range(3)),
    }
