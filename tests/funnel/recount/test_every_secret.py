"""The secret of every version: bounded or reported, decided by funnel and judged by the recount.

And lines of what bounds it changed, each of which is noticed.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from funnel.recount.movers import secret_complaints
from tests.funnel.recount.test_both_observers import ALONE, GUARANTEE, Made, made_with, published, wrong


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return published(tmp_path_factory.mktemp("all"), ALONE)


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return published(tmp_path_factory.mktemp("current"), replace(ALONE, secrets="current"))


def test_the_secret_of_every_version_is_bounded_and_judged_the_same(bounded: Made) -> None:
    steps, found = bounded
    assert not wrong(bounded)
    for step, version in zip(steps, found.versions, strict=True):
        assert {one.secret_of for one in step.bounded_for} == {
            None,
            *(other.name for other in found.versions if other.name < version.name),
        }
        # Who is outside in an earlier secret was so when it was published.
        for one in version.bounded_for:
            assert one.level <= GUARANTEE.epsilon
            assert one.outside <= one.moved
    for entry in found.entries:
        assert not list(secret_complaints(entry, None, False))
        assert list(secret_complaints(entry, "current", False))
        assert list(secret_complaints(entry, None, True))


def test_where_only_the_current_secret_is_bounded_it_is_told_how_far_earlier_ones_go(reported: Made) -> None:
    found = reported[1]
    assert not wrong(reported)
    assert {one.secret_of for version in found.versions for one in version.bounded_for} == {None}
    of_first = [one for one in found.versions[-1].observers if one.secret_of == "panel/1.0.0"]
    # Later versions tell more of the first secret than its bound, of people who were within it.
    assert any(one.outside > one.moved and one.level > GUARANTEE.epsilon for one in of_first)
    assert list(secret_complaints(found.entries[-1], None, False))
    assert not list(secret_complaints(found.entries[-1], None, True))


BROKEN = {
    "the rows of one earlier version are left out": (
        "funnel.history.history_status",
        "return (self, *self.others)",
        "return (self, *self.others[1:])",
    ),
    "earlier secrets are only reported": (
        "funnel.history.history_status",
        'secret.name is None or observed.secrets == "all"',
        "secret.name is None",
    ),
    "another version's prior": (
        "funnel.history.history_status",
        "*_priors(past, before, first.joint, first.changes, within if begun else None, begun),",
        "*_priors(past, nodes[places], observed.joint, observed.changes),",
    ),
}
NOTICED = {
    **BROKEN,
    "carried by the changes of another version": (
        "funnel.history.distributions",
        "distributions = _before(known, past, before, chapter.joint, chapter.changes)",
        "distributions = _before(known, past, before, chapter.joint, "
        "dict.fromkeys(chapter.changes, next(iter(chapter.changes.values()), None)))",
    ),
    "an earlier secret is not told apart": (
        "funnel.history.distributions",
        "np.eye(c)[None, :, :, None]",
        "(np.ones((c, c)) / c)[None, :, :, None]",
    ),
    "the secret of another cell": (
        "funnel.history.distributions",
        "np.eye(c)[None, :, :, None]",
        "np.eye(c)[None, ::-1, :, None]",
    ),
    "the entry says that more is bounded": (
        "funnel.register.preparing",
        "guarantee=chapter.guarantee,",
        'guarantee=chapter.guarantee, secrets="all" if terms.secrets == "current" else "current",',
    ),
}


@pytest.mark.parametrize("name", NOTICED)
def test_a_changed_line_is_noticed(name: str, tmp_path: Path) -> None:
    made = made_with(NOTICED[name], lambda: published(tmp_path, ALONE))
    if made is None:
        assert name not in BROKEN
        return
    assert wrong(made)
    if name in BROKEN:
        assert any(version.broken for version in made[1].versions)
