"""Random specs with random tables: whether all that is published passes both audits, and all that is not is refused.

``python -m benchmarks.random_specs --specs 500 --first 0`` releases each of them in this process, audits every version
that is published, with and without its internal evidence, and prints one line for each spec. It ends with status 1 if
an audit did not pass or a run ended in anything but a refusal of one sentence.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from funnel.audit.check import State, overall
from funnel.audit.recheck import Told, recheck
from funnel.errors import FunnelError
from funnel.pipeline.flows.pipeline import run_approved, run_release
from funnel.release.approval import Approval
from funnel.release.layout import ReleaseFolder, Version
from funnel.release.signature import public_key_of
from funnel.rendering import figures_again, page_renderer
from funnel.spec import ReleaseSpec

GUARANTEES = (
    "lip:1.0",
    "lip:0.3",
    "alip:1.3,0.7",
    "ldp:1.0",
    "pml:0.8",
    "srlip:1.0",
    "attribute:1.0",
    "perfect",
    "mi:0.1",
    "l1-lift:1.3,0.7",
    "chi2-lift:1.3,0.7",
    "rlip:1.0,0.05",
    "ralip:1.3,0.7,0.05",
    "rldp:1.0,0.05",
    "rpml:1.0,0.05",
    "rsrlip:1.0,0.05",
    "rattribute:1.0,0.05",
    "lip:1.0 & pml:0.9",
)
MECHANISMS = ("invariant", "invariant", "auto", "optimal", "grr", "watchdog", "agglomeration")
_NOT_LINEAR = ("mi", "l1", "chi2", "srlip", "rsrlip")
# What no honest release is refused for.
_DEFECTS = ("expectations failed", "its own audit failed", "this is a defect")
_WORDS = ("none", "low", "middle", "high", "Zürich, Ost", "=1+1", "very high", "a|b", "unknown", "x y")


@dataclass(frozen=True)
class Case:
    """A spec and its tables.

    Attributes
    ----------
    settings : mapping
        Of the spec, section by section.
    tables : tuple of pyarrow.Table
        The source of each version in turn.
    again : bool
        Whether the last version is asked for once more with another title, so that its rows are taken over.
    """

    settings: Mapping[str, Any]
    tables: tuple[pa.Table, ...]
    again: bool


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes
    ----------
    published : int
        Versions.
    refused : str
        Why the first version that was not published was refused; empty if all were published.
    wrong : str
        What must not happen: an audit that did not pass, or an error that is no refusal; empty if nothing.
    """

    published: int
    refused: str
    wrong: str


def make_case(seed: int) -> Case:
    """Draw a spec and its tables; the same ones for the same seed."""
    random = np.random.default_rng(seed)
    columns = [f"c{k}" for k in range(int(random.integers(1, 4)))]
    people = int(np.exp(random.uniform(np.log(200), np.log(2000))))
    settings: dict[str, Any] = {
        "name": "case",
        "title": "A random spec",
        "secret": ["s"],
        "publish": columns,
        "guarantee": str(random.choice(GUARANTEES)),
        "source": {"path": f"case.{random.choice(['csv', 'parquet'])}"},
        "metadata": {"licence": "CC-BY-4.0"},
        "mechanism": {"name": str(random.choice(MECHANISMS)), "time_limit": 1.0},
        "output": {"csv": bool(random.integers(2)), "shuffle": bool(random.integers(2))},
        "frequencies": {"protection": str(random.choice(["none", "threshold", "noise"]))},
        "recode": {},
        "categories": {},
        "history": {"people": "different"},
    }
    noise = settings["frequencies"]["protection"] == "noise"
    if noise:
        settings["frequencies"]["epsilon"] = float(random.choice([0.5, 1.0, 5.0]))
    else:
        settings["disclosure"] = {"on_breach": str(random.choice(["refuse", "report", "report", "report"]))}
        if settings["frequencies"]["protection"] == "threshold" and random.random() < 0.7:
            settings["frequencies"]["threshold"] = 3
            settings["disclosure"].update(minimum_cell=3, unique_share=1.0)
    # A bound that leaves nothing of a column is no reason to publish nothing here.
    settings.setdefault("disclosure", {})["blank"] = columns
    same, units = random.random() < 0.25, random.random() < 0.1
    if same or units:
        settings["record_key"] = ["id"]
        settings["history"] = {"people": "same", "budget_fraction": float(random.choice([1.0, 0.9, 0.5]))}
        if random.random() < 0.9:
            settings["mechanism"]["name"] = str(random.choice(["optimal", "auto", "invariant"]))
            settings["guarantee"] = str(random.choice(["lip:1.0986", "alip:1.3,0.7", "ldp:1.0", "pml:1.0", "perfect"]))
    elif random.random() < 0.3:
        settings["record_key"] = ["id"]
    if units:
        settings["unit"] = ["id"]
    if random.random() < 0.15 and settings["mechanism"]["name"] == "invariant" and not same:
        settings["guarantee"] = str(random.choice(["attribute:1.0", "rattribute:1.0,0.05"]))
        settings["publish"] = ["s", *columns]
    elif settings["mechanism"]["name"] == "invariant" and settings["guarantee"].startswith(_NOT_LINEAR):
        settings["guarantee"] = "lip:0.7"
    if random.random() < 0.08 and not (same or units) and settings["mechanism"]["name"] != "invariant":
        settings["mechanism"]["reads_secret"] = True
    if random.random() < 0.1:
        settings["approval"] = {"required": True}
    if random.random() < 0.1:
        settings["output"]["folder"] = "URL"
    numbers = {name for name in columns if random.random() < 0.3}
    levels = {name: int(random.integers(2, 6 if len(columns) == 1 else 4)) for name in ("s", *columns)}
    missing = {name for name in columns if random.random() < 0.2}
    complete = []
    for name in ("s", *columns):
        if name in numbers:
            _numeric(settings, name, noise, random)
        elif random.random() < (0.8 if noise else 0.3):
            settings["categories"][name] = list(_WORDS[: levels[name]])
            if name not in missing and random.random() < 0.5:
                complete.append(name)
    if complete and noise:
        settings["complete"] = complete
    if set(columns) == numbers and random.random() < 0.5:
        settings["utility"] = "variance"
    elif random.random() < 0.1:
        settings["utility"] = "estimation"
    several = 1 + int(random.random() < 0.4 or same)
    tables = tuple(_table(random, people, columns, levels, numbers, missing, units, v, same) for v in range(several))
    again = bool(random.random() < 0.25)
    listed = [name for name in columns if name in settings["categories"]]
    if len(listed) > 1 and random.random() < 0.4:
        tables = _without_one(settings, listed[:2], tables, random)
    return Case(settings, tables, again)


def _without_one(
    settings: dict[str, Any], names: list[str], tables: tuple[pa.Table, ...], random: np.random.Generator
) -> tuple[pa.Table, ...]:
    """Declare a combination of two columns impossible, and leave out the records that have it."""
    values = {name: str(random.choice(settings["categories"][name])) for name in names}
    settings["impossible"] = [{name: [value] for name, value in values.items()}]
    return tuple(
        table.filter([any(row[name] != value for name, value in values.items()) for row in table.to_pylist()])
        for table in tables
    )


def _numeric(settings: dict[str, Any], name: str, noise: bool, random: np.random.Generator) -> None:
    edges = [10.0, 20.0, 40.0]
    settings["recode"][name] = {"bins": edges if random.random() < 0.7 else "auto"}
    if random.random() < 0.7 or settings["recode"][name]["bins"] == "auto":
        settings.setdefault("numbers", {})[name] = {"range": [0.0, 60.0], "decimals": 1, "unit": "years"}
        if random.random() < 0.3:
            settings["numbers"][name]["draw"] = "within"


def _table(
    random: np.random.Generator,
    people: int,
    columns: list[str],
    levels: Mapping[str, int],
    numbers: set[str],
    missing: set[str],
    units: bool,
    version: int,
    same: bool,
) -> pa.Table:
    """Records whose columns speak for the secret; of a later version some people are new and some values others."""
    stable = np.random.default_rng(int(random.integers(1 << 30)) if not same else people)
    first = 0 if not (same and version) else people // 20
    ids = np.arange(first, first + people)
    if units:
        ids = np.repeat(ids, 1 + random.binomial(2, 0.3, people))
    secret = stable.choice(levels["s"], people, p=_shares(levels["s"], stable))
    if same and version:
        # Some of them have another secret by now.
        secret = np.where(random.random(people) < 0.1, random.integers(0, levels["s"], people), secret)
    if units:
        secret = secret[ids - first]
    found: dict[str, Any] = {"id": pa.array([f"p{i}" for i in ids]), "s": [_WORDS[k] for k in secret]}
    for name in columns:
        own = stable.choice(levels[name], len(ids), p=_shares(levels[name], stable))
        value = np.where(stable.random(len(ids)) < 0.5, own, secret % levels[name])
        if name in numbers:
            exact = np.round(value * 60 / levels[name] + stable.random(len(ids)) * 10, 1)
            values: list[Any] = [float(min(one, 60)) for one in exact]
        else:
            values = [_WORDS[k] for k in value]
        if name in missing:
            values = [None if gone else one for one, gone in zip(values, stable.random(len(ids)) < 0.04, strict=True)]
        found[name] = values
    order = random.permutation(len(ids))
    return pa.table(found).take(order)


def _shares(k: int, random: np.random.Generator) -> Any:
    return random.dirichlet(np.full(k, 2.0))


def write_spec(case: Case, folder: Path, version: int, title: str = "A random spec") -> Path:
    """Write source and spec of a version; returns the path of the spec."""
    source = folder / case.settings["source"]["path"]
    write = pacsv.write_csv if source.suffix == ".csv" else pq.write_table
    write(case.tables[version], source)
    settings = {**case.settings, "title": title}
    if settings["output"].get("folder") == "URL":
        settings["output"] = {**settings["output"], "folder": f"file://{folder / 'store'}", "workspace": ".funnel"}
    path = folder / "case.toml"
    path.write_text("\n".join(_toml(settings, ())) + "\n", encoding="utf-8")
    return path


def _toml(settings: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[str]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _toml(value, (*above, name))
        elif name == "impossible":
            tables = (", ".join(f"{column} = {json.dumps(listed)}" for column, listed in one.items()) for one in value)
            yield f"{name} = [{', '.join(f'{{ {table} }}' for table in tables)}]"
        else:
            yield f"{'.'.join((*above, name))} = {json.dumps(value, ensure_ascii=False)}"


def run_case(case: Case, folder: Path) -> Outcome:
    """Release all versions of a case, one after the other, and audit each that is published."""
    published = 0
    steps = [(version, "A random spec") for version in range(len(case.tables))]
    steps += [(len(case.tables) - 1, "Another title")] if case.again else []
    for version, title in steps:
        path = write_spec(case, folder, version, title)
        try:
            spec = ReleaseSpec.load(path)
            told, _ = run_release(spec, again=False, rotate=False)
            if told["status"] == "held":
                at = datetime.now(UTC).isoformat(timespec="seconds")
                told, _ = run_approved(spec, Approval(by="Somebody", at=at))
        except FunnelError as error:
            one = str(error)
            refused = f"{type(error).__name__}: {one}"
            plain = type(error) is not FunnelError and one and "\n" not in one
            honest = plain and not any(said in one for said in _DEFECTS)
            return Outcome(published, refused, "" if honest else f"refused by {refused}")
        except Exception:
            return Outcome(published, "", traceback.format_exc())
        published += 1
        if wrong := _audited(spec, str(told["version"])):
            return Outcome(published, "", wrong)
    return Outcome(published, "", "")


def _audited(spec: ReleaseSpec, version: str) -> str:
    """What an audit of a published version did not pass; empty if all passed."""
    from funnel.release.series import Series

    number = Version.parse(version)
    assert number is not None
    folder = Series.of(spec).folder(number)
    key = public_key_of(spec.workspace_folder)
    for public in (False, True):
        told = Told(key=key, public=public, render=page_renderer(), figures=figures_again())
        checks = recheck(ReleaseFolder(folder.root), told)
        if overall(checks) is not State.PASSED:
            return "; ".join(f"{version} {one.name}: {one.state}: {one.detail}" for one in checks if not one.passed)
    return ""


class TooSlow(BaseException):
    """A spec took longer than it may: no error of funnel, so that nothing in it takes this for one."""


def _stop(*_: object) -> None:
    raise TooSlow


def main() -> int:
    """Run the cases that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--specs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0, help="of processor time that one may take")
    asked = parser.parse_args()
    signal.signal(signal.SIGVTALRM, _stop)
    failed = whole = 0
    for seed in range(asked.first, asked.first + asked.specs):
        began = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            signal.setitimer(signal.ITIMER_VIRTUAL, asked.seconds)
            try:
                found = run_case(make_case(seed), Path(folder))
            except TooSlow:
                found = Outcome(0, f"not ended within {asked.seconds:g} s of processor time", "")
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        failed += bool(found.wrong)
        whole += not found.refused and not found.wrong
        state = "WRONG" if found.wrong else "refused" if found.refused else "published"
        print(
            f"{seed} {time.process_time() - began:.1f}s {state} {found.published}: {found.wrong or found.refused}",
            flush=True,
        )
    print(f"{asked.specs} specs: {whole} published whole, {failed} wrong")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
