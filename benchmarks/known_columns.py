"""Whole records for observers who know some columns: what stays, and what observers of every column conclude.

``python -m benchmarks.known_columns`` makes releases of twelve columns of Adult with ``funnel release``, for observers
of the record alone and for those who know sex, age or both, with classes of the same people, and of others under noise
and for a population. What observers of one column conclude at most is computed from the records and the protocol by
`funnel.recount`, which shares no code with what makes a release. Seconds are of processor time. Writes
``benchmarks/results/known-columns.json`` and ``known-columns.md``.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.rows import Row, save_as_they_come, table
from benchmarks.whole_record_cases import SPEC
from funnel.recount.classes import PlainClasses
from funnel.recount.published_classes import PublishedByClass, moves_of
from funnel.recount.released import ReleasedProtocol
from funnel.release.layout import ReleaseFolder

ADULT = SPEC.parent / "adult.parquet"
_SEED, _OTHERS = 1, 0.3
_COMMAND = "from funnel.cli import main; main()"


@dataclass(frozen=True)
class Case:
    """A spec of twelve columns, with another bound and other observers."""

    bound: str
    known: tuple[str, ...] = ()
    other_people: bool = False
    noise: bool = False

    def text(self) -> str:
        """The spec."""
        text = (
            SPEC.read_text(encoding="utf-8")
            .replace('"../', '"')
            .replace("[20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70]", "[30, 40, 55]")
        )
        if "attribute" not in self.bound:
            text = text.replace('"income",\n', "\n", 1)
        bounds = ", ".join(f'"{one}"' for one in self.bound.split(" & "))
        groups = [f"known = {json.dumps(self.known)}"] if self.known else []
        groups += ['classes = "classes.json"'] if self.other_people else []
        changes = {
            'guarantee = "attribute:1.0"': f"guarantee = [{bounds}]",
            "[groups]": "\n".join(["[groups]", *groups]),
            "min_records = 50": f"min_records = {200 if self.other_people else 50}",
            "[output]": "[disclosure]\ndominance = 0.995\n\n[output]",
        }
        if self.noise:
            changes |= {'protection = "threshold"': 'protection = "noise"\nepsilon = 1.0', "threshold = 10": ""}
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new, 1)
        return text


CASES = (
    Case("lip:1.0"),
    Case("lip:1.0 & srlip:1.0", ("sex", "age")),
    Case("attribute:1.0"),
    Case("attribute:1.0", ("sex", "age")),
    Case("rlip:1.0,0.05", (), True),
    Case("rlip:1.0,0.05 & rsrlip:1.0,0.05", ("sex", "age"), True),
    Case("lip:1.0 & srlip:1.0", ("sex", "age"), True, True),
    Case("attribute:1.0", ("sex", "age"), True, True),
)


def measured(case: Case, folder: Path) -> Row:
    """One release, audited, and what observers of its records conclude."""
    people = pq.read_table(ADULT)
    order = np.random.default_rng(_SEED).permutation(len(people))
    others = round(_OTHERS * len(people)) if case.other_people else 0
    pq.write_table(people.take(order[others:]), folder / "adult.parquet")
    (folder / "adult.toml").write_text(case.text(), encoding="utf-8")
    if others:
        pq.write_table(people.take(order[:others]), folder / "others.parquet")
        _run(folder, "classes", "adult.toml", "others.parquet")
    before = _processor()
    _run(folder, "release", "adult.toml")
    seconds = _processor() - before
    release = ReleaseFolder(folder / "releases" / "adult-wide" / "1.0.0")
    _run(folder, "audit", str(release.root))
    told = json.loads(release.numbers.read_bytes())["unchanged"]
    classes = PlainClasses.parse(release.classes.read_bytes())
    protocol = ReleasedProtocol.parse(release.protocol.read_bytes().decode())
    (snapshot,) = (folder / ".funnel" / "adult-wide" / "snapshots").glob("*/snapshot.parquet")
    rows = pq.read_table(snapshot)
    secrets = zip(rows["income"].to_pylist(), strict=True)
    records = zip(*(rows[column].to_pylist() for column in classes.columns), strict=True)
    true = Counter(zip(secrets, records, strict=True))
    found = PublishedByClass(classes, true, {}, moves_of(protocol, len(classes.known)))
    beyond = {column: outside for column, (_, outside) in found.observed(1.0 + 1e-7).items()}
    return {
        "bound": case.bound,
        "known": list(case.known),
        "other people": case.other_people,
        "noise": case.noise,
        "records": len(rows),
        "classes": len(classes.names),
        "unchanged": told["share"],
        "beyond": beyond,
        "seconds": seconds,
        "bytes": release.classes.stat().st_size + release.protocol.stat().st_size,
        "records bytes": release.data.stat().st_size,
    }


def _run(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-c", _COMMAND, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def page(rows: list[Row]) -> str:
    """The rows as a page."""

    def cells(row: Row) -> list[str]:
        others = {column: share for column, share in row["beyond"].items() if column not in ("sex", "age")}
        worst = max(others, key=lambda column: others[column])
        return [
            f"`{row['bound']}`",
            ", ".join(row["known"]),
            "other people" if row["other people"] else "the same",
            "noise, ε = 1" if row["noise"] else "grouped",
            str(row["classes"]),
            f"**{row['unchanged']:.1%}**",
            f"{row['beyond']['sex']:.1%}",
            f"{row['beyond']['age']:.1%}",
            f"{others[worst]:.1%} ({worst})",
            f"{row['seconds']:.0f}",
            f"{row['bytes'] / 1000:,.0f} / {row['records bytes'] / 1000:,.0f}",
        ]

    head = ["bound", "known", "classes of", "frequencies", "classes", "records wholly true"]
    head += [
        "people beyond ε at most, for observers of sex",
        "of age",
        "of another column",
        "s",
        "kB: protocol / records",
    ]
    lines = [
        "# Whole records for observers who know some columns",
        "",
        "`python -m benchmarks.known_columns`: twelve columns of Adult, age in four groups, ε = 1, released with",
        "`funnel release` ([wide tables](../../docs/columns.md)) and audited. With classes of other people these are a",
        f"random {_OTHERS:.0%} of the table, and the release is of the rest. *Wholly true*: the expected share of",
        "records published with all their values, with `attribute` the income included. *Beyond*: the share of the",
        "people about whose income a published record tells an observer more than ε = 1 who knows that column of",
        "them, in the worst order of the people in each class; from the exact counts of the source, also",
        "under noise, where the bound is for the noisy counts.",
        "",
        *table(head, map(cells, rows)),
        "",
    ]
    return "\n".join(lines)


def cases() -> Iterator[Row]:
    """Every row, one after the other."""
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            yield measured(case, Path(folder))


if __name__ == "__main__":
    save_as_they_come(cases(), "known-columns", page)
