"""The same keyed release by every engine: identical files, and how long each takes.

Run ``python -m benchmarks.engines`` for people drawn with replacement from the embedded sample, or with ``--census``
and the path of the Census-Income (KDD) data as parquet. Every engine makes the release from the source on, by the
command ``funnel release``, with a workspace of its own. Writes ``benchmarks/results/engines.json`` and ``engines.md``;
fails if any file differs that depends on people and secret alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.bootstrap import KEY, SAMPLE, write_source
from funnel.readers.source_files import file_digest
from funnel.release.layout import find_release

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "engines.json"
SECRET = "FUNNEL_BENCHMARK_SECRET"
ENGINES = {
    "one process": "workers = 1",
    "two processes": "workers = 2",
    "Dask, two worker processes": 'kind = "dask"\nworkers = 2',
}
# Secret, then published columns.
ADULT = ("marital-status", "workclass", "sex", "relationship")
CENSUS = ("income", "education", "class-of-worker", "sex")
SPEC = """
name = "people"
title = "People, drawn with replacement"
secret = ["{secret}"]
publish = {publish}
record_key = ["{key}"]
record_secret = "environment:{place}"
guarantee = "lip:1.0"
frequencies.protection = "none"
mechanism = "subset-merging"

[source]
path = "{source}"

[metadata]
licence = "CC-BY-4.0"

[engine]
{engine}
"""
# A line of progress: seconds since the start, and what begins.
_STEP = re.compile(r" *([0-9.]+) s  (.+)")


def release(folder: Path, source: Path, columns: tuple[str, ...], engine: str, secret: str) -> dict[str, Any]:
    """Make a release in an empty folder; returns its digests, and seconds from the times at which its steps began."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    spec = folder / "people.toml"
    spec.write_text(
        SPEC.format(
            secret=columns[0], publish=json.dumps(columns[1:]), key=KEY, place=SECRET, source=source, engine=engine
        ),
        encoding="utf-8",
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "funnel", "release", str(spec), "--json"],
        cwd=HERE.parent,
        env={**os.environ, SECRET: secret},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"the release failed: {done.stdout}{done.stderr}")
    began = [(float(step[1]), step[2]) for line in done.stderr.splitlines() if (step := _STEP.fullmatch(line))]
    ends = [moment for moment, _ in began[1:]] + [seconds]
    lasted = [(what, end - moment) for (moment, what), end in zip(began, ends, strict=True)]
    version = find_release(Path(json.loads(done.stdout)["folder"]))
    return {
        "digests": {
            path.name: file_digest(path) for path in (version.data, version.protocol, version.joint, version.draws)
        },
        "rows": json.loads(done.stdout)["rows"],
        "seconds": round(seconds, 1),
        "counting": round(sum(t for what, t in lasted if what == "counting"), 1),
        "drawing": round(sum(t for what, t in lasted if what in ("drawing", "writing in random order")), 1),
    }


def table(results: dict[str, Any]) -> str:
    """What was found, for people."""
    said = [
        f"The same release of {results['rows']:,} records with record keys, by `funnel release`, on {os.cpu_count()} "
        "processors. Counting and drawing include the start of the workers.\n",
        "| engine | digest of the rows | counting | drawing and writing | whole command |",
        "|---|---|---|---|---|",
    ]
    for name, found in results["engines"].items():
        times = " | ".join(f"{found[what]:.1f} s" for what in ("counting", "drawing", "seconds"))
        said.append(f"| {name} | `{found['digests']['records.parquet'][:16]}…` | {times} |")
    compared = ", ".join(next(iter(results["engines"].values()))["digests"])
    said.append(f"\nidentical: {'yes' if results['identical'] else '**no**'} ({compared})\n")
    return "\n".join(said)


def main() -> None:
    """Make the source, the releases, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--census", type=Path, help="Census-Income as parquet, to draw people from")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "funnel-engines")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    columns = ADULT if arguments.census is None else CENSUS
    source = arguments.folder / f"people-{arguments.rows}-{len(columns)}-{columns[0]}.parquet"
    if not source.exists():
        write_source(source, arguments.rows, sample=arguments.census or SAMPLE, columns=columns)
    secret = secrets.token_hex(32)
    found = {}
    for name, engine in ENGINES.items():
        found[name] = release(arguments.folder / name.replace(" ", "-"), source, columns, engine, secret)
        print(f"{name}: {found[name]['seconds']:.0f} s", flush=True)
    identical = len({json.dumps(one["digests"]) for one in found.values()}) == 1
    results = {"rows": found["one process"]["rows"], "identical": identical, "engines": found}
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    RESULTS.with_suffix(".md").write_text(table(results), encoding="utf-8")
    print(table(results))
    sys.exit(0 if identical else 1)


if __name__ == "__main__":
    main()
