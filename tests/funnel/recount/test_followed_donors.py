"""The second computation of followed donors finds one-line changes of what makes them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import funnel
from funnel.errors import DataError
from funnel.recount.followed_donors import judge_donors
from tests.donor_panels import ByLetter, class_of, judged, panel, plain_version, published, with_few
from tests.sabotage.patching import Patch, patched

BELIEFS, CHANNELS, DRAWS, DONORS = (
    f"funnel.history.{name}" for name in ("donor_beliefs", "donor_channels", "donor_draws", "followed_donors")
)
GUARANTEE = funnel.LIP(0.5)
MUTANTS = {
    "donors who leave are forgotten": [(BELIEFS, "* stays.denominator", "* stays.numerator")],
    "own records are twice as likely": [(BELIEFS, "[own * everywhere, others", "[own * everywhere * 2, others")],
    "a donor is of any class": [(BELIEFS, "* donor_weight), donor=self.donor * in_class", "* donor_weight)")],
    "nothing is known of changes": [(BELIEFS, "(of_people, joint, changes)", "(of_people, joint, None)")],
    "the prior is that of everybody": [(BELIEFS, "secrets_of(joint, changes)", "secrets_of(joint, None)")],
    "a first record is one's own": [(BELIEFS, "own=weighted * (of_class == k)", "own=weighted")],
    "earlier secrets are not bounded": [
        (CHANNELS, "if not (allowed.no_worse", "if prior is asked.priors[-1] and not (allowed.no_worse"),
        (CHANNELS, "[cone_over(inner, prior) for", "[cone_over(inner, prior) * (prior is asked.priors[-1]) for"),
    ],
    "a bound of twice the budget": [
        (CHANNELS, "allowed_by(guarantee), weights", "allowed_by(guarantee.with_budget(9.0)), weights"),
        (
            CHANNELS,
            "inner = guarantee.with_budget(guarantee.budget * budget_fraction)",
            "inner = guarantee.with_budget(guarantee.budget * 2)",
        ),
    ],
    "every record stays": [(DONORS, ".take(stands_for)", ".take(np.arange(len(stands_for)))")],
    "records of others are read as own ones": [(DRAWS, "np.where(is_own, 0, classes)", "np.where(is_own, 0, 0)")],
    "the same donor for everybody": [(DRAWS, "choices[c][k][number] for c", "choices[c][k][0] for c")],
    "people begin who are published already": [(DRAWS, "([left, everybody]", "([everybody, everybody]")],
    "one word for all": [(DRAWS, ".draw(codes, words)", ".draw(codes, words[:1].repeat(len(codes)))")],
    "who is followed is forgotten": [(DONORS, "= numbers[step.stands_for]", "= numbers[step.stands_for] * 0")],
    "no record begins as a donor's": [(DRAWS, "np.where(begins, outputs - classes, -1)", "np.full(len(begins), -1)")],
}


@pytest.mark.parametrize("name", MUTANTS)
def test_one_changed_line_is_found(name: str) -> None:
    tables = panel(700, 3, seed=6)
    with patched(*(Patch(*lines) for lines in MUTANTS[name])):
        steps = published(tables, GUARANTEE)
    try:
        found = judged(steps, tables, GUARANTEE)
    except DataError:
        return
    assert any(one.complaints for one in found)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("for one in np.flatnonzero(begins != np.arange(k)).tolist():", "for one in ():"),
        ("found[k + begins[one]] += found[k + one]", "found[k + (begins[one] + 1) % 2] += found[k + one]"),
        ("found[k + one] = 0", "found[k + one] = 0; found[k + 1] += found[k]; found[k] = 0"),
    ],
    ids=["records of a small class begin", "they begin in the other class", "another class is joined too"],
)
def test_a_class_that_is_joined_otherwise_is_found(old: str, new: str) -> None:
    tables = with_few(panel(400, 2, seed=1), 1, 2)
    assert all(one.complaints == () for one in judged(published(tables, GUARANTEE), tables, GUARANTEE))
    with patched(Patch(CHANNELS, old, new)):
        try:
            found = judged(published(tables, GUARANTEE), tables, GUARANTEE)
        except DataError:
            return
    assert found[1].complaints


def test_nothing_is_found_without_one() -> None:
    tables = panel(700, 3, seed=6)
    assert all(one.complaints == () for one in judged(published(tables, GUARANTEE), tables, GUARANTEE))


def test_a_record_does_not_begin_as_that_of_the_person_again() -> None:
    tables = panel(900, 2, seed=0)
    versions = [
        plain_version(step, table, ByLetter.columns, "ill")
        for step, table in zip(published(tables, GUARANTEE), tables, strict=True)
    ]
    first, last = versions
    # Who has a donor in the first version, and begins as another one of their own class in the second.
    key = next(
        key
        for key, output in last.outputs.items()
        if first.stands_for.get(key, key) != key and output == 3 + ByLetter.names.index(class_of(last.people[key][1]))
    )
    record = last.people[key][1]
    changed = replace(
        last,
        stands_for={**last.stands_for, key: key},
        released={**last.released, key: (*record, class_of(record))},
    )
    assert judge_donors(str(GUARANTEE), class_of, ByLetter.names, versions)[1].complaints == ()
    found = judge_donors(str(GUARANTEE), class_of, ByLetter.names, [first, changed])[1].complaints
    assert "a record goes on as that of another person, or begins as that of the same one" in found
