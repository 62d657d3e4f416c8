"""Unprepared tables: `funnel init` with a few options, `funnel release`, both audits, and estimates beside the truth.

Of each table it is noted whether the spec was written, released as it stands, and passed `funnel audit` with and
without `--public`; what stayed unchanged, and what of the information was kept; how many of the 95 % intervals of
estimated shares hold the share among the source's own records; seconds of processor time; and bytes of the public files
beside the records.

    python -m benchmarks.unprepared            # FUNNEL_TABLES=FOLDER: real tables too that are not in the project
    python -m benchmarks.unprepared NAME ...   # these again
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.unprepared_tables import CASES, SHARED, Case
from funnel import load_release

_RESULTS = Path(__file__).parent / "results"
# Shares of values that are held against the truth, and what is lost where published counts are rounded.
_COUNTED, _ROUNDED = 0.02, 1e-9
_SINCE = ("unchanged", "kept", "seconds_release", "bytes_documents")
_TITLES = (
    *("table", "records", "options", "guarantee", "counts", "init", "release", "audits", "unchanged", "kept"),
    *("held", "most off", "seconds", "kB of source", "kB beside the records"),
)


@dataclass(frozen=True)
class Outcome:
    """What became of a table.

    Attributes
    ----------
    case, options : str
    rows : int
    init, release : bool
    audit, audit_public : bool
    guarantee : str
    protection : str
    unchanged : float or None
        Share of the records; of invariant releases.
    kept : float or None
        Of the information in the published columns.
    seconds_init, seconds_release : float
        Of processor time.
    bytes_source, bytes_records, bytes_documents : int
    shares, held : int
        Of values of single columns that have more than 2 % of the records: estimated, and within their intervals.
    worst : float
        The largest difference of one of them from the truth.
    said : str
        The last line of the command that failed.
    before : dict of str to float, or None
        What was measured of this table first: `unchanged`, `kept`, `seconds_release` and `bytes_documents`.
    """

    case: str
    options: str
    rows: int
    init: bool = False
    release: bool = False
    audit: bool = False
    audit_public: bool = False
    guarantee: str = ""
    protection: str = ""
    unchanged: float | None = None
    kept: float | None = None
    seconds_init: float = 0.0
    seconds_release: float = 0.0
    bytes_source: int = 0
    bytes_records: int = 0
    bytes_documents: int = 0
    shares: int = 0
    held: int = 0
    worst: float = 0.0
    said: str = ""
    before: dict[str, float | None] | None = None


def measure(case: Case, folder: Path) -> Outcome:
    """Run the commands on one table."""
    table = case.table()
    source, spec = folder / f"table.{case.suffix}", folder / "spec.toml"
    if case.suffix == "csv":
        table.to_csv(source, index=False)
    else:
        table.to_parquet(source)
    found: dict[str, Any] = {"case": case.name, "options": " ".join(case.options), "rows": len(table)}
    found["bytes_source"] = source.stat().st_size
    done, found["seconds_init"] = _run("init", str(source), *case.options, "-o", str(spec))
    found["init"] = done.returncode == 0
    if not found["init"]:
        return Outcome(**found, said=_last(done))
    text = spec.read_text(encoding="utf-8")
    found["guarantee"] = re.findall("(?m)^guarantee = (.*)$", text)[0].replace('"', "")
    found["protection"] = re.findall('(?m)^protection = "(.*)"$', text)[0]
    done, found["seconds_release"] = _run("release", str(spec), "--json")
    found["release"] = done.returncode == 0
    if not found["release"]:
        return Outcome(**found, said=_last(done))
    said = json.loads(done.stdout)
    found["kept"], found["unchanged"] = said["share"], (said.get("unchanged") or {}).get("share")
    release = Path(said["folder"])
    audits = [_run("audit", *options, str(release))[0] for options in ([], ["--public"])]
    found["audit"], found["audit_public"] = (one.returncode == 0 for one in audits)
    found["shares"], found["held"], found["worst"] = beside_truth(release)
    files = [one for one in release.rglob("*") if one.is_file()]
    records = [one for one in files if one.parent.name == "data"]
    found["bytes_records"] = sum(one.stat().st_size for one in records)
    found["bytes_documents"] = sum(one.stat().st_size for one in files) - found["bytes_records"]
    return Outcome(**found, said=next((_last(one) for one in audits if one.returncode), ""))


def beside_truth(release: Path) -> tuple[int, int, float]:
    """Estimated shares of single columns, how many intervals hold the true share, and the largest difference.

    The truth is counted in the newest snapshot of the workspace, whose values are recoded as those of the release.
    """
    snapshots = (release.parents[2] / ".funnel" / release.parent.name / "snapshots").glob("*/snapshot.parquet")
    source = pq.read_table(max(snapshots, key=lambda path: path.stat().st_mtime))
    opened = load_release(release)
    differences, held = [], 0
    for column in set(opened.columns) & set(source.column_names):
        counts = {one["values"]: one["counts"] for one in source[column].value_counts().to_pylist()}
        for cell in opened.shares(column).to_dict()["cells"]:
            true = counts.get(cell["values"][0], 0) / source.num_rows
            if true > _COUNTED and cell["frequency"] is not None:
                differences.append(abs(cell["frequency"] - true))
                held += cell["lower"] <= true + _ROUNDED and true - _ROUNDED <= cell["upper"]
    return len(differences), held, max(differences, default=0.0)


def page(outcomes: list[Outcome]) -> str:
    """The results as a page."""
    lines = [
        "# Unprepared tables",
        "",
        "Made by `python -m benchmarks.unprepared`: for each table `funnel init SOURCE` with the options shown, then",
        "`funnel release` on the spec as it was written, `funnel audit` and `funnel audit --public`. *Unchanged* is",
        "the share of records that are true in all columns (of their class, for whole records); *kept* is the share of",
        "the information in the published columns, as the groups and bins of the spec make them. *Held* is how many",
        "95 % intervals of `funnel estimate` hold the share among the source's own records, of values of one column",
        "that more than 2 % of them have, and *most off* the largest difference, in percentage points. Seconds are of",
        "processor time, of `funnel init` and of `funnel release`, on a machine that did other things, too. Before an",
        "arrow is what was measured first, when the table was new to `funnel init`: drafts had other bounds and groups",
        "then. The noise of every release is another, so a share may change by a point.",
        "Whatever the table is, about 90 kB beside the records are the same: both pages, the catalogue entries, README",
        "and signature of a release of 300 records of one column with two values. Sources of parquet are compressed.",
        "`benchmarks/unprepared_tables.py` has the tables.",
        "",
        f"| {' | '.join(_TITLES)} |",
        f"| {' | '.join('---' for _ in _TITLES)} |",
    ]
    for one in outcomes:
        audits = "both" if one.audit and one.audit_public else "**no**" if one.release else ""
        cells = (
            one.case,
            f"{one.rows:,}",
            f"`{one.options}`",
            f"`{one.guarantee}`" if one.guarantee else "",
            one.protection,
            "yes" if one.init else f"refused: {one.said}",
            "yes" if one.release else (f"**no**: {one.said}" if one.init else ""),
            audits,
            _since(one, "unchanged", lambda share: f"{share:.1%}"),
            _since(one, "kept", lambda share: f"{share:.1%}"),
            f"{one.held} of {one.shares}" if one.release else "",
            f"{100 * one.worst:.1f}" if one.release else "",
            f"{one.seconds_init:.0f} + {_since(one, 'seconds_release', lambda seconds: f'{seconds:.0f}')}",
            f"{one.bytes_source / 1000:,.0f}" if one.bytes_source else "",
            _since(one, "bytes_documents", lambda size: f"{size / 1000:,.0f}") if one.release else "",
        )
        lines.append(f"| {' | '.join(cells)} |")
    released = sum(one.release for one in outcomes)
    passed = sum(one.audit and one.audit_public for one in outcomes)
    written = sum(one.init for one in outcomes)
    lines += [
        "",
        f"{written} of {len(outcomes)} specs were written, {released} released, and {passed} passed both audits.",
    ]
    return "\n".join(lines) + "\n"


def _since(one: Outcome, name: str, written: Callable[[float], str]) -> str:
    """A figure, after that of the time before."""
    now, before = getattr(one, name), (one.before or {}).get(name)
    if now is None:
        return ""
    return written(now) if before is None else f"{written(before)} → {written(now)}"


def _run(*arguments: str) -> tuple[subprocess.CompletedProcess[str], float]:
    """A command of funnel, and its seconds of processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "funnel", *arguments]
    # As it is installed: with byte code, which is not to be made again by every command.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _last(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stderr.splitlines() or done.stdout.splitlines() or [""])[-1].removeprefix("funnel: ")


def main() -> None:
    """Measure the tables that were named, or every one that is not in the results yet, and write them."""
    kept = _RESULTS / "unprepared.json"
    known = {one["case"]: Outcome(**one) for one in json.loads(kept.read_text())} if kept.is_file() else {}
    cases = (*CASES, *(SHARED if "FUNNEL_TABLES" in os.environ else ()))
    for case in cases:
        if case.name not in sys.argv[1:] if sys.argv[1:] else case.name in known:
            continue
        last = known.get(case.name)
        with tempfile.TemporaryDirectory() as folder:
            found = measure(case, Path(folder))
        if last is not None:
            found = replace(found, before=last.before or {name: getattr(last, name) for name in _SINCE})
        known[case.name] = found
        print(known[case.name], flush=True)
        outcomes = [known[one.name] for one in (*CASES, *SHARED) if one.name in known]
        kept.write_text(json.dumps([asdict(one) for one in outcomes], indent=1) + "\n")
        (_RESULTS / "unprepared.md").write_text(page(outcomes))


if __name__ == "__main__":
    main()
