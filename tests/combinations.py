"""Combinations of settings: a spec for each, on one small panel, and what the table of rules has against it."""

from __future__ import annotations

import json
import re
from dataclasses import astuple, dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.errors import SpecError
from funnel.guarantees import parse_guarantee
from funnel.pipeline.flows.pipeline import run_release
from funnel.progress import quiet
from funnel.release.classified import write_classes
from funnel.release.layout import ReleaseFolder
from funnel.spec import ReleaseSpec
from tests.waves import WAVES, wave

ONE, WHOLE = WIDTHS = ("one channel", "whole records")
SINGLE, OTHERS, SAME, UNITS = PEOPLE = ("one version", "different people", "same people", "units")
PROTECTIONS = ("none", "threshold", "noise")
GUARANTEES = tuple(
    parse_guarantee(text)
    for nominal in ("lip:1.0", "alip:1.3,0.7", "ldp:1.0", "pml:1.0", "attribute:1.0", "srlip:1.0")
    for text in (nominal, f"r{nominal},0.05")
)
UNCHANGED, INFORMATION, ESTIMATION = UTILITIES = ("unchanged", "information", "estimation")

# What is published in one channel, and as whole records.
_COLUMNS = {ONE: ["kids", "married"], WHOLE: ["married", "kids", "education", "income", "age"]}
_SOURCE, _CLASSES, _ELSE = "people.parquet", "classes.json", "others.parquet"
# As several contradictions are told in one message.
_NUMBERED = re.compile(r"\(\d+\) (.*?)\.(?= \(\d+\) |$)")


@dataclass(frozen=True)
class Combination:
    """What a steward combines.

    Attributes
    ----------
    width, people, protection, guarantee, utility : str
        One of `WIDTHS`, `PEOPLE`, `PROTECTIONS`, the texts of `GUARANTEES`, and `UTILITIES`.
    """

    width: str
    people: str
    protection: str
    guarantee: str
    utility: str
    # How many people a version has.
    size: ClassVar[int] = 1500

    def __str__(self) -> str:
        return ", ".join(astuple(self))

    @property
    def settings(self) -> dict[str, Any]:
        """A spec, as a mapping."""
        kind, columns = parse_guarantee(self.guarantee).name, _COLUMNS[self.width]
        if kind.endswith("attribute") and self.utility == UNCHANGED:
            columns = ["outwork", *columns]
        found: dict[str, Any] = {
            "name": "people",
            "title": "People of a panel",
            "secret": ["outwork"],
            "publish": columns,
            "guarantee": self.guarantee,
            "mechanism": {"name": "invariant" if self.utility == UNCHANGED else "auto"},
            "utility": ESTIMATION if self.utility == ESTIMATION else INFORMATION,
            "source": {"path": _SOURCE},
            "frequencies": {"protection": self.protection},
            "categories": {column: _values(column) for column in dict.fromkeys(("outwork", *columns))},
            "metadata": {"licence": "CC-BY-4.0"},
        }
        if self.protection != "noise":
            found["disclosure"] = {"on_breach": "report"}
        if self.width == WHOLE:
            known = {"known": ["age"]} if kind.endswith("srlip") else {}
            found["groups"] = {"classes": _CLASSES, "min_records": 100, **known}
        if self.people != SINGLE:
            found["history"] = {"people": "different" if self.people == OTHERS else "same"}
        if self.people in (SAME, UNITS):
            found["record_key"] = ["id"]
        if self.people == UNITS:
            found["unit"] = ["id"]
            if self.width == WHOLE:
                # Whatever is drawn, so that rows are within the bound as if they were different people's, too.
                found["history"]["budget_fraction"] = 0.5
        return found

    @property
    def spec(self) -> str:
        """The same as a file."""
        lines = [
            f"{name} = {json.dumps(value)}" for name, value in self.settings.items() if not isinstance(value, dict)
        ]
        for name, section in self.settings.items():
            if isinstance(section, dict):
                lines += ["", f"[{name}]", *(f"{setting} = {json.dumps(value)}" for setting, value in section.items())]
        return "\n".join([*lines, ""])

    @property
    def refusals(self) -> tuple[str, ...]:
        """What the table of what goes with what has against it, each in one sentence; no source is there."""
        try:
            ReleaseSpec.of(self.settings, "nowhere")
        except SpecError as error:
            return tuple(_NUMBERED.findall(str(error))) or (str(error),)
        return ()

    @property
    def versions(self) -> int:
        """How many are released: of whole records of people with several rows there is no second one yet."""
        return 1 if self.people == SINGLE or (self.width, self.people) == (WHOLE, UNITS) else 2

    def release(self, folder: Path) -> list[ReleaseFolder]:
        """Release a wave, and another one where there is more than one version."""
        folder.mkdir(parents=True)
        made = []
        for number in range(self.versions):
            pq.write_table(self.source(number), folder / _SOURCE)
            path = folder / "people.toml"
            path.write_text(self.spec, encoding="utf-8")
            spec = ReleaseSpec.load(path)
            if self.width == WHOLE and not number:
                pq.write_table(self.elsewhere(), folder / _ELSE)
                write_classes(spec, str(folder / _ELSE), None, False, quiet)
            told, _ = run_release(spec, again=False, rotate=False)
            made.append(ReleaseFolder(Path(told["folder"])))
        return made

    def source(self, number: int) -> pa.Table:
        """The table of a version."""
        if self.people == OTHERS:
            return _rows(number, slice(number * self.size, (number + 1) * self.size))
        table = _rows(number, slice(0, self.size))
        if self.people != UNITS:
            return table
        # Every third person comes twice, with the family of another one.
        again = table.take(pa.array(np.arange(0, table.num_rows, 3)))
        kids = again["kids"].to_pylist()
        place = again.schema.get_field_index("kids")
        return pa.concat_tables([table, again.set_column(place, "kids", pa.array(kids[1:] + kids[:1]))])

    def elsewhere(self) -> pa.Table:
        """People of whom nothing is published, for the classes of whole records."""
        return _rows(0, slice(3000, 6000))


@cache
def _values(column: str) -> list[str]:
    """The values of a column, in all waves."""
    return sorted({value for year in WAVES for value in wave(year)[column].unique().to_pylist()})


def _rows(number: int, people: slice) -> pa.Table:
    table = wave(WAVES[number])
    return table.sort_by("id").slice(people.start, people.stop - people.start)


COMBINATIONS = tuple(
    Combination(width, people, protection, str(guarantee), utility)
    for width, people, protection, guarantee, utility in product(WIDTHS, PEOPLE, PROTECTIONS, GUARANTEES, UTILITIES)
)
