"""What no noise on published tables can bound: two distributions of changes that agree in every such table.

The example of docs/history.md: three inputs, two secrets that never change, as common together as apart. Everybody
leaves their input, those with one secret around the circle and those with the other against it, or the other way round.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from funnel.alphabet import Alphabet
from funnel.frequencies.moves import Moves
from funnel.guarantees import parse_guarantee
from funnel.history.allowed import allowed_by, require_posterior
from funnel.history.changes import Changes
from funnel.history.conditions import cone_over
from funnel.history.following import VersionTerms
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.joint import FloatArray, Joint
from funnel.solver.optimum import optimal
from tests.informed import reader

PEOPLE = 60
CELLS = np.arange(6)


def turned(way: int) -> Changes:
    """Everybody one on; those with the second secret the other way."""
    secrets, inputs = np.divmod(CELLS, 3)
    now = secrets * 3 + (inputs + np.where(secrets == 0, way, -way)) % 3
    return Changes(CELLS, now, np.full(6, PEOPLE))


def uniform() -> Joint:
    """Both waves: secret and input as common together as apart."""
    secret, inputs = Alphabet(("s",), (("a",), ("b",))), Alphabet(("x",), (("1",), ("2",), ("3",)))
    return Joint(np.full((2, 3), PEOPLE), secret, inputs)


BOTH = (turned(1), turned(-1))


def test_published_tables_are_the_same_of_both() -> None:
    one, other = (Moves.counted("v", changes, uniform(), uniform()) for changes in BOTH)
    for name in ("secrets", "stayed", "left"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    after = [np.bincount(changes.after, changes.records, 6) for changes in BOTH]
    assert np.array_equal(*after)


def test_whoever_knows_the_tables_learns_nothing_and_whoever_knows_the_changes_all() -> None:
    distribution, bound = uniform(), require_posterior(parse_guarantee("lip:1.0"))
    everybody = Observed.counted(distribution, {}, np.zeros(6 * PEOPLE, np.int64), np.repeat(CELLS % 3, PEOPLE))
    first = VersionTerms(bound, "one", target=optimal(distribution, bound).protocol).decide(
        Past(), everybody, read_alone=False
    )
    # The input is published as it is: it tells nothing of the secret.
    assert first.utility == pytest.approx(math.log(3))
    before = np.repeat(CELLS % 3, PEOPLE)
    said = first.library[first.drawn_from[0]][:, before].argmax(axis=0)
    past = Past((first.chapter(np.zeros(3, np.int64), np.arange(3)),))
    moved = Moves.counted("one", BOTH[0], distribution, distribution).changes(distribution, distribution)
    for changes in BOTH:
        now = np.repeat(changes.after % 3, PEOPLE)
        real = Observed.counted(distribution, {0: changes}, 1 + said, now)
        second = VersionTerms(bound, "two", target=first.target).decide(
            past, real.known_by(distribution, {0: moved}), read_alone=False
        )
        assert second.level.value == pytest.approx(0, abs=1e-9)
        assert second.utility == pytest.approx(math.log(3))
        assert reader(past, second, real.known_by(distribution, {0: moved})).level == pytest.approx(0, abs=1e-9)
        assert reader(past, second, real).level == math.inf


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
def test_what_holds_for_all_changes_is_a_bound_on_the_input_alone(epsilon: float) -> None:
    bound = require_posterior(parse_guarantee(f"lip:{epsilon}"))
    limit = 2 * math.exp(epsilon) - 1

    def holds(row: FloatArray) -> bool:
        # After the first input those with one secret have the second now, the others the third, or conversely.
        cone = cone_over(bound, np.ones(2))
        distributions = [np.array([[0, 0.5, 0], [0, 0, 0.5]]), np.array([[0, 0, 0.5], [0, 0.5, 0]])]
        return all((cone @ distribution @ row <= 1e-12).all() for distribution in distributions)

    assert allowed_by(bound).up is not None
    assert holds(np.array([0.3, 1.0, 1.0 / (limit * 0.999)]))
    assert not holds(np.array([0.3, 1.0, 1.0 / (limit * 1.001)]))
    assert not holds(np.array([0.3, 1.0 / (limit * 1.001), 1.0]))
