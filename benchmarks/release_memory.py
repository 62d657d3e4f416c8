"""Releases of a file bootstrapped from Census-Income by ``funnel release``, with the memory of the process over time.

Run ``python -m benchmarks.release_memory CENSUS`` with the path of the Census-Income (KDD) data as parquet. Writes
``benchmarks/results/release_memory.json`` and ``docs/rows-memory.svg``. What is measured is the resident memory of the
one process that does all steps; the orchestrator's own server is another process and not counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from matplotlib.figure import Figure

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "release_memory.json"
PLOT = HERE.parent / "docs" / "rows-memory.svg"
COLUMNS = ("income", "education", "class-of-worker", "sex")
SPEC = """
name = "census-{rows}"
title = "Census-Income, bootstrapped to {rows} people"
secret = ["income"]
publish = ["education", "class-of-worker", "sex"]
guarantee = "lip:1.0"
frequencies.protection = "none"
mechanism = "{mechanism}"

[source]
path = "census-{rows}.parquet"

[metadata]
licence = "CC-BY-4.0"
"""
_GROUP_ROWS = 1 << 20
_SECONDS = 0.25


def bootstrap(census: Path, path: Path, rows: int) -> None:
    """Draw people with replacement."""
    people = pq.read_table(census, columns=list(COLUMNS))
    coded = {
        name: pc.dictionary_encode(people[name].cast(pa.string()).fill_null("?")).combine_chunks() for name in COLUMNS
    }
    schema = pa.schema([(name, pa.dictionary(pa.int32(), pa.string())) for name in COLUMNS])
    choice = np.random.default_rng(100)
    with pq.ParquetWriter(path, schema, compression="zstd", write_batch_size=1 << 16) as writer:
        for start in range(0, rows, _GROUP_ROWS):
            drawn = choice.integers(0, people.num_rows, min(_GROUP_ROWS, rows - start))
            arrays = [
                pa.DictionaryArray.from_arrays(coded[name].indices.take(pa.array(drawn)), coded[name].dictionary)
                for name in COLUMNS
            ]
            writer.write_table(pa.table(arrays, schema=schema))


def measure(spec: Path) -> dict[str, Any]:
    """Run a release and look at its memory four times a second."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "funnel", "release", str(spec), "--json"]
    process = subprocess.Popen(command, cwd=HERE.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    steps: list[tuple[float, str]] = []

    def follow(lines: Iterable[str]) -> None:
        for line in lines:
            said = line.strip()
            if said and (not steps or steps[-1][1] != said):
                steps.append((round(time.perf_counter() - start, 2), said))

    assert process.stderr is not None
    assert process.stdout is not None
    listener = threading.Thread(target=follow, args=(process.stderr,), daemon=True)
    listener.start()
    curve: list[tuple[float, float]] = []
    while process.poll() is None:
        curve.append((round(time.perf_counter() - start, 2), _resident(process.pid)))
        time.sleep(_SECONDS)
    listener.join()
    if process.returncode:
        raise SystemExit(f"the release failed: {steps[-1:]}")
    result = json.loads(process.stdout.read())
    curve = [point for point in curve if point[1]]
    peak = max(memory for _, memory in curve)
    return {
        "rows": result["rows"],
        "seconds": curve[-1][0],
        "peak_mb": peak,
        "level": result["level"],
        "mechanism": result["mechanism"],
        "curve": curve,
        "steps": steps,
    }


def _resident(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except FileNotFoundError:
        return 0.0
    line = next((line for line in status.splitlines() if line.startswith("VmRSS")), "VmRSS: 0 kB")
    return round(int(line.split()[1]) / 1024, 1)


def plot(results: dict[str, dict[str, Any]]) -> None:
    """Memory over the share of the time that each release took."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    for found in results.values():
        times = np.array([t for t, _ in found["curve"]]) / found["seconds"]
        label = f"{found['rows']:,} rows, {found['seconds']:.0f} s, at most {found['peak_mb']:.0f} MB"
        axes.plot(times, [memory for _, memory in found["curve"]], label=label)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("share of the time of the release")
    axes.set_ylabel("resident memory, MB")
    axes.set_title("Memory of funnel release, all steps, Census-Income bootstrapped")
    axes.legend(loc="lower right")
    figure.savefig(PLOT, metadata={"Date": None})


def main() -> None:
    """Measure each size, unless it is there already."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("census", type=Path)
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 100_000_000])
    parser.add_argument("--mechanism", default="subset-merging")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "funnel-memory")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    results: dict[str, dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for rows in arguments.rows:
        source = arguments.folder / f"census-{rows}.parquet"
        if not source.exists():
            bootstrap(arguments.census, source, rows)
        spec = source.with_suffix(".toml")
        spec.write_text(SPEC.format(rows=rows, mechanism=arguments.mechanism), encoding="utf-8")
        results[str(rows)] = measure(spec)
        print(
            f"{rows:,} rows: {results[str(rows)]['seconds']:.0f} s, {results[str(rows)]['peak_mb']:.0f} MB", flush=True
        )
        RESULTS.write_text(json.dumps(results, sort_keys=True) + "\n", encoding="utf-8")
    plot(results)


if __name__ == "__main__":
    main()
