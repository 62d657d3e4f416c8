"""Tables of the comparison: a population of people as codes, of whom half are in the table that is released.

Some people are *targets*: their secret is tossed, as a fair coin between two values, before anything is released. What
an attacker then finds out about it beyond one half comes from the release of their own records: nothing else in the
world says how the coin fell. So statistical relations, which predict the secrets of people who are in no table as well,
count for nothing here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.wide_tables import table_of
from funnel import Alphabet, Joint
from funnel.joint import IntArray

BoolArray = npt.NDArray[np.bool_]
# People whose other columns fewer people than this share are the targeted minority.
RARE = 5


@dataclass(frozen=True, eq=False)
class Study:
    """A population, and what an analyst would ask of it.

    Attributes
    ----------
    name : str
    columns : tuple of str
        The secret first, then the others, all of which are published.
    categories : tuple of tuple of str
        The values of each, in order.
    codes : ndarray of int64, shape (N, columns)
    known : tuple of str
        Columns that observers are likely to know.
    positive : tuple of str
        Values of the secret whose odds are regressed on the other columns.
    scores : tuple of tuple of float
        The number that stands for each value of each other column in that regression.
    """

    name: str
    columns: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    codes: IntArray
    known: tuple[str, ...]
    positive: tuple[str, ...]
    scores: tuple[tuple[float, ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each column has."""
        return tuple(map(len, self.categories))

    def frame(self, codes: IntArray) -> pd.DataFrame:
        """Records as texts, in columns of Python objects."""
        texts = [np.array(names, dtype=object)[column] for names, column in zip(self.categories, codes.T, strict=True)]
        return pd.DataFrame({c: pd.Series(t, dtype=object) for c, t in zip(self.columns, texts, strict=True)})

    def counted(self, codes: IntArray) -> tuple[Joint, IntArray, IntArray]:
        """Counts of the secret and of different other columns; these, shape (a, columns - 1), and which each row is."""
        records, of_row = np.unique(codes[:, 1:], axis=0, return_inverse=True)
        counts = np.zeros((self.sizes[0], len(records)), dtype=np.int64)
        np.add.at(counts, (codes[:, 0], of_row), 1)
        symbols = [tuple(names[i] for names, i in zip(self.categories[1:], row, strict=True)) for row in records]
        secret = Alphabet(self.columns[:1], tuple((name,) for name in self.categories[0]))
        return Joint(counts, secret, Alphabet(self.columns[1:], tuple(symbols))), records, of_row


@dataclass(frozen=True, eq=False)
class Trial:
    """One table to be released, people who are not in it, and the targets of attacks.

    Attributes
    ----------
    study : Study
    inside, outside : ndarray of int64, shapes (n, columns) and (N - n, columns)
        People in the table that is released, and others of the same population.
    targets : ndarray of int64, shape (t,)
        Rows of ``inside`` whose secrets were tossed.
    candidates : ndarray of int64, shape (t, 2)
        The two values of each toss, which the attacker knows.
    answers : ndarray of int64, shape (t,)
        Which of them came up.
    rare : ndarray of bool, shape (t,)
        Targets of the minority.
    plain : ndarray of bool, shape (n,)
        Rows of ``inside`` that are no targets.
    plain_outside : ndarray of bool, shape (N - n,)
        The same of ``outside``.
    """

    study: Study
    inside: IntArray
    outside: IntArray
    targets: IntArray
    candidates: IntArray
    answers: IntArray
    rare: BoolArray
    plain: BoolArray
    plain_outside: BoolArray

    @classmethod
    def toss(cls, study: Study, random: np.random.Generator, share: float = 0.04, rare_share: float = 0.02) -> Trial:
        """A random half of a population, and targets: a random share of all people, and one of the rare ones."""
        codes, people = study.codes.copy(), len(study.codes)
        _, of_person, sizes = np.unique(codes[:, 1:], axis=0, return_inverse=True, return_counts=True)
        is_rare = sizes[of_person] < RARE
        chosen = np.zeros(people, dtype=bool)
        chosen[random.choice(people, round(share * people), replace=False)] = True
        minority = np.flatnonzero(is_rare & ~chosen)
        chosen[random.choice(minority, min(round(rare_share * people), len(minority)), replace=False)] = True
        marked = np.flatnonzero(chosen)
        # The true value and another one, more often a common one, in the order of their numbers: which is true, is not
        # to be seen.
        shares = np.bincount(codes[:, 0], minlength=study.sizes[0]) / people
        chances = np.tile(shares, (len(marked), 1))
        chances[np.arange(len(marked)), codes[marked, 0]] = 0
        limits = np.cumsum(chances, axis=1) / chances.sum(axis=1, keepdims=True)
        others = (random.random((len(marked), 1)) > limits[:, :-1]).sum(axis=1)
        candidates = np.sort(np.stack([codes[marked, 0], others], axis=1), axis=1)
        answers = random.integers(0, 2, len(marked))
        codes[marked, 0] = candidates[np.arange(len(marked)), answers]
        order = random.permutation(people)
        place = np.argsort(order)
        half = people // 2
        is_in = place[marked] < half
        plain = ~chosen[order]
        return cls(
            study,
            codes[order[:half]],
            codes[order[half:]],
            place[marked[is_in]],
            candidates[is_in],
            answers[is_in],
            is_rare[marked[is_in]],
            plain[:half],
            plain[half:],
        )

    @property
    def known(self) -> IntArray:
        """What the attacker knows of the targets: all columns but the secret, shape (t, columns - 1)."""
        return self.inside[self.targets, 1:]

    @property
    def population(self) -> IntArray:
        """Everybody, targets as tossed."""
        return np.concatenate([self.inside, self.outside])


def _study(
    name: str,
    table: pd.DataFrame,
    known: tuple[str, ...],
    positive: tuple[str, ...],
    ranked: Sequence[tuple[str, tuple[str, ...]]],
    people: int,
    seed: int,
) -> Study:
    """The columns of a table, the secret first, of some people at random.

    Ordered columns have the number of their value as a score, others a one for the values that are named.
    """
    for column, names in GROUPS.items():
        if column in table:
            table[column] = table[column].replace(names)
    table = table.iloc[np.random.default_rng(seed).permutation(len(table))[:people]]
    order, columns = dict(ranked), tuple(table)
    categories = tuple(
        tuple(sorted(table[c].unique(), key=lambda v: (_first_number(v), v)))
        if c == "age"
        else tuple(sorted(table[c].unique()))
        for c in columns
    )
    codes = np.array(
        [pd.Categorical(table[c], categories=list(names)).codes for c, names in zip(columns, categories, strict=True)]
    ).T.astype(np.int64)
    scores = tuple(
        tuple(float(i) for i in range(len(names))) if c == "age" else tuple(float(v in order[c]) for v in names)
        for c, names in zip(columns[1:], categories[1:], strict=True)
    )
    return Study(name, columns, categories, codes, known, positive, scores)


def _first_number(text: str) -> int:
    """Where an interval begins: "to 24" before "25 to 29"."""
    return 0 if text.startswith("to") else int(text.split(" ")[0].rstrip("-"))


# Rare values of a secret are grouped, as a steward would: 0.3 % of the people are married to somebody in the forces.
GROUPS = {
    "marital-stat": {
        "Married-civilian spouse present": "Married",
        "Married-A F spouse present": "Married",
        "Married-spouse absent": "Separated",
        "Divorced": "Separated",
    },
    "detailed-household-summary-in-household": {
        "Spouse of householder": "Spouse",
        "Child under 18 never married": "Child",
        "Child under 18 ever married": "Child",
        "Child 18 or older": "Child",
        "Other relative of householder": "Other",
        "Nonrelative of householder": "Other",
        "Group Quarters- Secondary individual": "Other",
    },
}
DEGREES = ("Bachelors", "Masters", "Prof-school", "Doctorate")
CENSUS_DEGREES = (
    "Bachelors degree(BA AB BS)",
    "Masters degree(MA MS MEng MEd MSW MBA)",
    "Prof school degree (MD DDS DVM LLB JD)",
    "Doctorate degree(PhD EdD)",
)


def adult(path: Path, people: int, seed: int = 0) -> Study:
    """Income, which is secret, of adults, beside age, sex, education, occupation and marital status."""
    return _study(
        "Adult",
        table_of(path, ("income", "age", "sex", "education", "occupation", "marital-status")),
        ("age", "sex"),
        (">50K",),
        [
            ("sex", ("Female",)),
            ("education", DEGREES),
            ("occupation", ("Exec-managerial", "Prof-specialty")),
            ("marital-status", ("Married-civ-spouse", "Married-AF-spouse")),
        ],
        people,
        seed,
    )


def census(path: Path, people: int, seed: int = 0) -> Study:
    """Marital status, which is secret, of Americans, beside age, sex, education, occupation and class of worker."""
    return _study(
        "Census-Income",
        table_of(path, ("marital-stat", "age", "sex", "education", "major-occupation-code", "class-of-worker")),
        ("age", "sex"),
        ("Married",),
        [
            ("sex", ("Female",)),
            ("education", CENSUS_DEGREES),
            ("major-occupation-code", ("Executive admin and managerial", "Professional specialty")),
            ("class-of-worker", ("Private",)),
        ],
        people,
        seed,
    )


STATE = "state-of-previous-residence"
# Of the West and the mountains.
WEST = ("Alaska", "Arizona", "California", "Colorado", "Idaho", "Montana", "Nevada", "New Mexico", "Oregon", "Utah")


def movers(path: Path, people: int, seed: int = 0) -> Study:
    """Position in the household, which is secret, of Americans who moved, beside the state that they came from."""
    table = table_of(path, ("detailed-household-summary-in-household", "age", "sex", "education", STATE, "race"))
    moved = table[~table[STATE].isin(["Not in universe", "?"])]
    return _study(
        "Movers",
        moved.copy(),
        ("age", "sex"),
        ("Householder",),
        [("sex", ("Female",)), ("education", CENSUS_DEGREES), (STATE, WEST), ("race", ("White",))],
        people,
        seed,
    )
