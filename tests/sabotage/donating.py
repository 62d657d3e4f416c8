"""Sabotage of whole records about the same people: beliefs, who is followed, and whose record is published."""

from __future__ import annotations

from tests.sabotage.mutant import TOOLS, Mutant
from tests.sabotage.scenes import DONOR_YEAR

CAUGHT = "register"


def _of(name: str, breaks: str, module: str, old: str, new: str, caught: str = CAUGHT) -> Mutant:
    return Mutant(name, breaks, f"funnel.{module}", old, new, caught, DONOR_YEAR)


DONATING = [
    _of(
        "own records believed to be twice as likely",
        "more records go on than the bound allows",
        "history.donor_beliefs",
        "[own * everywhere, others",
        "[own * everywhere * 2, others",
    ),
    _of(
        "donors who leave are taken to stay",
        "an observer concludes more from where a record ends",
        "history.donor_beliefs",
        "return by_class * stays.numerator, sum(by_class.tolist()) * stays.denominator",
        "return by_class * stays.denominator, sum(by_class.tolist()) * stays.denominator",
    ),
    _of(
        "changes between versions not counted",
        "beliefs are about other changes than people made",
        "history.donor_beliefs",
        "moved_on(of_people, joint, changes)",
        "moved_on(of_people, joint, None)",
    ),
    _of(
        "more records said to be own",
        "the report says that records are true which are not",
        "history.donor_step",
        "own=math.fsum(count * one.unchanged for count, one in",
        "own=math.fsum(count * one.unchanged**0.5 for count, one in",
    ),
    _of(
        "whoever goes on is said to begin",
        "the register has another effective channel",
        "history.donor_step",
        "both = np.concatenate([kept * rows * going_on, begins], axis=1).T",
        "both = np.concatenate([0 * rows, begins + kept * rows * going_on], axis=1).T",
    ),
    _of(
        "one word for whether records go on",
        "all people with a history draw alike",
        "history.donor_draws",
        ".draw(codes, words)",
        ".draw(codes, words[:1].repeat(len(codes)))",
        "donors.taken",
    ),
    _of(
        "the same donor for everybody",
        "one person's record is published for all who begin",
        "history.donor_draws",
        "[choices[c][k][number] for c",
        "[choices[c][k][0] for c",
    ),
    _of(
        "people begin who are published already",
        "some people are published twice and others never",
        "history.donor_draws",
        "([left, everybody]",
        "([everybody, everybody]",
    ),
    _of(
        "every record is one's own",
        "who was followed is not known any more",
        "register.donor_rows",
        'of["high"][there], of["low"][there] = earlier["of_high"][at[there]], earlier["of_low"][at[there]]',
        "pass",
    ),
    _of(
        "donors noted of others",
        "later versions follow other people than were published",
        "register.donor_rows",
        'of["of_high"], of["of_low"] = self.digests[self.stands_for[kept]].T',
        'of["of_high"], of["of_low"] = self.digests[self.stands_for[kept[::-1]]].T',
    ),
    _of(
        "records of other people of the class",
        "the register says of people what was published of others",
        "register.donor_rows",
        "RECORD_COLUMN: pa.array(self.records[self.stands_for[start:stop]].astype(np.int32)),",
        f"RECORD_COLUMN: pa.array({TOOLS}.first_of_class(self)[start:stop].astype(np.int32)),",
    ),
    _of(
        "other classes in a later version",
        "versions that nothing is proven of together",
        "pipeline.tasks.classify",
        "kept = None if register is None or register.classes is None else register.classes.classes",
        "kept = None",
    ),
    _of(
        "counts said to be half as far off",
        "intervals of estimates are too short",
        "release.public_unchanged",
        "factor=rounded_up(found.factor, _DIGITS),",
        "factor=rounded_up(found.factor / 2, _DIGITS),",
        "record classes",
    ),
    _of(
        "the deviation of another value",
        "the report says that a value is right which is farthest off",
        "release.counted_as_usual",
        "farthest = int(off.argmax())",
        "farthest = int(off.argmin())",
        "record classes",
    ),
    _of(
        "more own records in the report",
        "the public report says that records are true which are not",
        "release.public.findings",
        "own=None if history.own is None else distributions.share(history.own),",
        "own=None if history.own is None else 0.97,",
        "report and counts",
    ),
]
