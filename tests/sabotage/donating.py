"""Sabotage of whole records about the same people: beliefs, who is followed, and whose record is published."""

from __future__ import annotations

from tests.sabotage.mutant import TOOLS, Mutant
from tests.sabotage.scenes import DONOR_VISITS, DONOR_YEAR, Scene

CAUGHT = "register"


def _of(
    name: str, breaks: str, module: str, old: str, new: str, caught: str = CAUGHT, scene: Scene = DONOR_YEAR
) -> Mutant:
    return Mutant(name, breaks, f"funnel.{module}", old, new, caught, scene)


def _of_rows(name: str, breaks: str, module: str, old: str, new: str, caught: str = CAUGHT) -> Mutant:
    return _of(name, breaks, module, old, new, caught, DONOR_VISITS)


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
    _of_rows(
        "records of later rows believed to be twice as likely to be own",
        "more records go on than the bound allows",
        "history.donor_beliefs",
        "own = self.own * in_class * (everywhere * own_weight)",
        "own = self.own * in_class * (everywhere * own_weight * 2)",
    ),
    _of_rows(
        "donors of units with any number of rows",
        "how many rows a record's person has tells whether it is their own",
        "history.donor_units",
        "np.bincount(self.rows.units)[self.rows.units[at]]",
        "np.ones(len(at), dtype=np.int64)",
    ),
    _of_rows(
        "another row of a donor",
        "records of a person are those of several people",
        "history.donor_units",
        "= nodes[here], whole[taken]",
        "= nodes[here], np.roll(whole[taken], 1)",
        "donors.taken",
    ),
    _of_rows(
        "rows of rare numbers stay",
        "some people are found by how many rows they have",
        "history.donor_units",
        "taken, drawn.stands_for)",
        "np.arange(len(taken)), drawn.stands_for)",
        "donors.taken",
    ),
    _of_rows(
        "one row in the place of all of rare numbers",
        "a record is published as often as there are rows of rare numbers",
        "history.donor_units",
        "taken, drawn.stands_for)",
        "taken[others][0], drawn.stands_for)",
        "donors.taken",
    ),
    _of_rows(
        "all rows with a history draw alike",
        "one word decides for many people",
        "history.donor_units",
        "words(step, nodes, at, None)",
        "words(step, nodes, at, None)[:1].repeat(len(at))",
        "donors.taken",
    ),
    _of_rows(
        "rare rows left out of the effective channel",
        "readers compute with a channel that rows of rare numbers are not drawn by",
        "history.donor_units",
        "table = table + np.outer(silent,",
        "table = table + 0 * np.outer(silent,",
    ),
    _of_rows(
        "more rows said to be own",
        "the report says that rows are true which are not",
        "history.donor_units",
        "own=math.fsum((step.own or 0.0) * step.joint.n",
        "own=math.fsum((step.own or 0.0) ** 0.5 * step.joint.n",
    ),
    _of_rows(
        "row donors noted of others",
        "nobody knows any more whose rows were published",
        "register.unit_donor_rows",
        'donors["of_high"], donors["of_low"] = self.digests[of].T',
        'donors["of_high"], donors["of_low"] = self.digests[of[::-1]].T',
    ),
    _of_rows(
        "histories of rows noted of others",
        "the register says of people what was published of others",
        "register.unit_donor_rows",
        "np.maximum(drawn.after[kept], 0)",
        "np.maximum(drawn.after[kept][::-1], 0)",
    ),
    _of_rows(
        "fewer rows said to be of a rare number",
        "the report says that fewer rows are of others than are",
        "pipeline.tasks.found_history",
        "- people.forgotten",
        "// 2 - people.forgotten",
    ),
    _of_rows(
        "half of the level of each row",
        "officers are told that rows tell less than they do",
        "pipeline.tasks.found_history",
        "one.level.value, one.own)",
        "one.level.value / 2, one.own)",
    ),
    _of_rows(
        "another share of rows of a rare number",
        "the public report says that hardly any row is of another person for that reason",
        "release.public.findings",
        "distributions.share(history.rare / distributions.n)",
        "0.3",
        "report and counts",
    ),
]
