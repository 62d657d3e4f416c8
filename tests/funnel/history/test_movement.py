"""Who was where before, and how often an observer who keeps everything guesses right: against loops over people."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from funnel import LIP, RLIP, fit
from funnel.history.allowed import require_posterior
from funnel.history.following import VersionTerms
from funnel.history.guesses import guesses
from funnel.history.movement import movements, new_people
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.history.version_forecast import first_people
from funnel.register.look_up import observe
from funnel.register.register import Register, open_register
from tests.funnel.history.test_reserve import BEFORE, second_version
from tests.panels import REGISTER, Wave, publish, waves

WAVES = waves(8, 4, 70)


@pytest.fixture(scope="module")
def third(tmp_path_factory: pytest.TempPathFactory) -> tuple[Past, Observed]:
    """The past of three waves, and the people of a fourth."""
    folder = tmp_path_factory.mktemp("panel")
    with open_register(folder, REGISTER) as register:
        for i in range(3):
            publish(register, WAVES[i], i, f"1.{i}.0", folder)
    register = Register.of(folder, REGISTER)
    now = WAVES[3]
    people = observe(register, now.snapshot(folder / "now"), now.joint(), folder / "work")
    return register.past, people.observed


def values(wave: Wave) -> dict[int, tuple[tuple[str, str], str]]:
    return {row.id: ((row.ill, row.poor), row.town) for row in wave.people.itertuples()}


def test_movements_are_what_a_loop_over_people_counts(third: tuple[Past, Observed]) -> None:
    past, observed = third
    now, before = values(WAVES[3]), [values(wave) for wave in WAVES[:3]]
    last = {one: max((i for i in range(3) if one in before[i]), default=None) for one in now}
    found = movements(past, observed)
    assert [one.version for one in found] == ["panel/1.0.0", "panel/1.1.0", "panel/1.2.0"]
    for i, one in enumerate(found):
        both = before[i].keys() & now.keys()
        assert (one.people, one.last) == (len(before[i]), list(last.values()).count(i))
        assert one.both == len(both)
        assert one.secret_changed == sum(before[i][who][0] != now[who][0] for who in both)
        assert one.input_changed == sum(before[i][who][1] != now[who][1] for who in both)
    assert new_people(observed) == list(last.values()).count(None) > 0


def test_what_nobody_counted_and_what_has_other_columns_is_not_told(third: tuple[Past, Observed]) -> None:
    past, observed = third
    assert 0 in observed.changes
    without = replace(observed, changes={v: c for v, c in observed.changes.items() if v})
    assert movements(past, without)[0].both is None
    chapter = past.chapters[1]
    inputs = replace(chapter.joint.inputs, columns=("village",))
    other = replace(chapter, joint=replace(chapter.joint, inputs=inputs))
    found = movements(Past((past.chapters[0], other, *past.chapters[2:])), observed)[1]
    assert found.secret_changed is not None
    assert found.input_changed is None


def test_guesses_of_a_first_version_are_those_of_its_protocol() -> None:
    target = fit("optimal", BEFORE, LIP(0.4))
    step = VersionTerms(LIP(0.4), "1", target=target).decide(Past(), first_people(BEFORE))
    found = guesses(step)
    seen = BEFORE.p @ target.matrix.T
    assert found.prior == pytest.approx(BEFORE.p_secret.max()) == pytest.approx(found.before)
    assert found.after == pytest.approx(seen.max(axis=0).sum())
    assert found.information_before == pytest.approx(0, abs=1e-12)
    there = seen > 0
    ratio = (seen / np.outer(seen.sum(axis=1), seen.sum(axis=0)))[there]
    assert found.information_after == pytest.approx((seen[there] * np.log(ratio)).sum())


def test_more_versions_never_make_the_best_guess_worse() -> None:
    past, observed = second_version()
    step = VersionTerms(LIP(0.4), "2").decide(past, observed)
    found = guesses(step)
    assert found.after >= found.before - 1e-12
    assert found.information_after >= found.information_before - 1e-12


def test_guesses_need_no_limits_of_how_rows_follow_one_another() -> None:
    """A robust bound has been decided by then: of rows that were drawn their published distributions are known."""
    past, observed = second_version()
    step = VersionTerms(LIP(0.4), "2").decide(past, observed)
    rows = replace(step, guarantee=require_posterior(RLIP(0.4, 0.05)), observed=replace(observed, of_units=True))
    assert guesses(rows) == guesses(step)
