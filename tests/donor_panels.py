"""Panels of whole records for followed donors: people who change, leave and come back, and the second computation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.alphabet import CLASS_COLUMN, Alphabet
from funnel.guarantees.base import Guarantee
from funnel.history.followed_donors import DonorStep, FollowedDonors
from funnel.joint import IntArray
from funnel.recount.followed_donors import DonorFigures, DonorFindings, DonorVersion, judge_donors

SECRET = bytes(range(40, 72))
# How common the secret is in each class, and how often a person gets a new cell.
RATES, CHANGES = (0.1, 0.35, 0.8), 0.15


class ByLetter:
    """Three classes, by the first letter of the first column."""

    columns = ("job", "town")
    names = ("a", "b", "c")
    draws_evenly = False
    alphabet = Alphabet((CLASS_COLUMN,), (("a",), ("b",), ("c",)))

    def of_records(self, records: Alphabet) -> IntArray:
        return np.array([self.names.index(symbol[0][0]) for symbol in records.symbols])


def class_of(record: tuple[str, ...]) -> str:
    return record[0][0]


def panel(people: int, versions: int, seed: int, leaves: float = 0.1) -> list[pa.Table]:
    """A table a version: an id, a secret, a job that tells of it, and a town."""
    random = np.random.default_rng(seed)

    def cells(number: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        classes = random.choice(3, size=number, p=[0.4, 0.35, 0.25])
        return classes, random.random(number) < np.array(RATES)[classes]

    classes, ill = cells(people)
    jobs, towns = random.integers(0, 4, people), random.integers(0, 5, people)
    tables = []
    for _ in range(versions):
        there = np.flatnonzero(random.random(people) >= leaves)
        tables.append(
            pa.table(
                {
                    "id": there,
                    "ill": ["yes" if one else "no" for one in ill[there]],
                    "job": [f"{'abc'[c]}{job}" for c, job in zip(classes[there], jobs[there], strict=True)],
                    "town": [f"t{town}" for town in towns[there]],
                }
            )
        )
        new = random.random(people) < CHANGES
        others, others_ill = cells(people)
        classes, ill = np.where(new, others, classes), np.where(new, others_ill, ill)
        jobs = np.where(new, random.integers(0, 4, people), jobs)
    return tables


def with_few(tables: Sequence[pa.Table], version: int, people: int) -> list[pa.Table]:
    """The same panel with so many people of the last class in one version."""
    found = list(tables)
    of_class = np.array([job[0] == "c" for job in found[version]["job"].to_pylist()])
    found[version] = found[version].filter(pa.array(~of_class | (np.cumsum(of_class) <= people)))
    return found


def published(
    tables: Sequence[pa.Table], guarantee: Guarantee, budget_fraction: float = 0.8, secret_bytes: bytes | None = SECRET
) -> list[DonorStep]:
    """Every version of a panel."""
    followed = FollowedDonors(guarantee, ByLetter(), budget_fraction)
    return [
        followed.extend(table, key=["id"], secret=["ill"], version=f"v{number}", secret_bytes=secret_bytes)
        for number, table in enumerate(tables)
    ]


def records_of(step: DonorStep) -> list[dict[str, str]]:
    """What was published, row by row."""
    assert step.step.released is not None
    return list(step.step.released.to_pylist())


def plain_version(step: DonorStep, table: pa.Table, columns: Sequence[str], secret: str) -> DonorVersion:
    """A version as the second computation reads it: texts and whole numbers."""
    decided = step.step
    keys = [str(one) for one in table["id"].to_pylist()]
    records = list(zip(*(map(str, table[name].to_pylist()) for name in columns), strict=True))
    assert decided.own is not None
    released = (tuple(map(str, row.values())) for row in records_of(step))
    secrets = map(str, table[secret].to_pylist())
    return DonorVersion(
        decided.version,
        dict(zip(keys, zip(secrets, records, strict=True), strict=True)),
        dict(zip(keys, released, strict=True)),
        dict(zip(keys, step.outputs.tolist(), strict=True)),
        {key: keys[row] for key, row in zip(keys, step.stands_for.tolist(), strict=True)},
        {
            decided.past.history(node): decided.library[channel].tolist()
            for node, channel in zip(decided.followed.tolist(), decided.drawn_from.tolist(), strict=True)
        },
        DonorFigures(decided.level.value, decided.moved, decided.outside, decided.own),
    )


def judged(steps: Sequence[DonorStep], tables: Sequence[pa.Table], guarantee: Guarantee) -> tuple[DonorFindings, ...]:
    """What the second computation finds of a panel."""
    versions = [plain_version(step, table, ByLetter.columns, "ill") for step, table in zip(steps, tables, strict=True)]
    return judge_donors(str(guarantee), class_of, ByLetter.names, versions)
