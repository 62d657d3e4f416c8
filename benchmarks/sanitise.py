"""The row engine against a plain pyarrow copy of the same file with the same settings: ratios within one run.

Run ``python -m benchmarks.sanitise`` (about ten minutes), or name groups, as in ``python -m benchmarks.sanitise flow``.
Results are merged into ``benchmarks/results/sanitise.json`` and written as a table beside it; with another number of
``--rows`` they are only printed. Every measure is taken in
alternation with its floor, several times; a ratio is the median over the rounds. One worker is one thread. Times are of
the processor, which other work on the machine disturbs less than the wall clock, unless said otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.bootstrap import COLUMNS, KEY, SAMPLE, SECRET, write_source
from benchmarks.draws import p_values
from benchmarks.peers import sampler_rates
from benchmarks.sanitise_table import table
from funnel.guarantees import parse_guarantee
from funnel.joint import Joint
from funnel.mechanisms import fit
from funnel.protocol import Protocol
from funnel.sampling.dask_workers import workers_of
from funnel.sampling.engine import Processes, Workers, release_rows
from funnel.sampling.key_column import KEY_COLUMN, KEY_TYPE, KeyColumn
from funnel.sampling.keyed import RecordKey
from funnel.sampling.output_columns import GROUP_ROWS, WRITE_SETTINGS
from funnel.sampling.partitions import plan_rows
from funnel.sampling.sanitising import sanitise
from funnel.settings.work import EngineSettings
from funnel.tables import open_paged

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "sanitise.json"
GUARANTEE = "lip:1.0"
ROWS = 20_000_000
BATCH_ROWS = 1 << 17
RECORD_KEY = RecordKey((KEY,), bytes(range(32)))
CHILDREN = (
    "copy",
    "order kept",
    "shuffled",
    "snapshot with digests of keys",
    "order kept, digests of keys",
    "shuffled, digests of keys",
)

Results = dict[str, dict[str, Any]]
Timed = dict[str, Callable[[], object]]


def protocol(folder: Path) -> Protocol:
    """The optimum for the four columns under the guarantee: 316 inputs, as many outputs."""
    stored = folder / "protocol.json"
    if not stored.exists():
        people = pq.read_table(SAMPLE, columns=[SECRET, *COLUMNS])
        filled = pa.table({name: people[name].fill_null("?") for name in people.column_names})
        joint = Joint.from_table(filled, [SECRET], list(COLUMNS))
        stored.write_text(fit("optimal", joint, parse_guarantee(GUARANTEE), 120.0).to_json(), encoding="utf-8")
    return Protocol.from_json(stored.read_text(encoding="utf-8"))


def batches(source: Path, columns: list[str], batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """One worker's reading: one thread."""
    with open_paged(source) as file:
        yield from file.iter_batches(batch_rows, columns=columns, use_threads=False)


def copy(source: Path, target: Path, settings: dict[str, Any] = WRITE_SETTINGS) -> None:
    """The floor: read the published columns and write them."""
    with pq.ParquetFile(source) as file:
        schema = pa.schema([file.schema_arrow.field(name) for name in COLUMNS])
        with pq.ParquetWriter(target, schema, **settings) as writer:
            for batch in file.iter_batches(GROUP_ROWS, columns=list(COLUMNS), use_threads=False):
                writer.write_batch(batch)


def library_release(
    source: Path, target: Path, channel: Protocol, *, keyed: bool = False, shuffle: bool = True
) -> None:
    """What ``funnel.sanitise`` does, from raw keys: digests, distinctness, drawing, order; then its table, encoded."""
    released = sanitise(source, channel, RECORD_KEY if keyed else None, shuffle=shuffle)
    with pq.ParquetWriter(target, released.schema, **WRITE_SETTINGS) as writer:
        writer.write_table(released, row_group_size=GROUP_ROWS)


def engine_release(
    source: Path,
    target: Path,
    channel: Protocol,
    workers: Workers | None = None,
    *,
    shuffle: bool = False,
    record_key: RecordKey | None = None,
) -> None:
    """What ``funnel release`` does: partitions, parts, one file."""
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        plan = plan_rows(source, "", channel, work, shuffle=shuffle, record_key=record_key)
        release_rows(plan, target, workers)


def workers(folder: Path, rounds: int, rows: int = ROWS) -> Results:
    """Two processes against one, by the wall clock, after their start."""
    channel, target = protocol(folder), folder / "out.parquet"
    source = _source(folder, rows)
    results: Results = {}
    with Processes(2) as two:
        measures: Timed = {
            "one worker": lambda: engine_release(source, target, channel),
            "two processes": lambda: engine_release(source, target, channel, two),
            "one worker, shuffled": lambda: engine_release(source, target, channel, shuffle=True),
            "two processes, shuffled": lambda: engine_release(source, target, channel, two, shuffle=True),
        }
        dict(two.run(time.sleep, [(0.5,), (0.5,)]))
        results |= _alternated(measures, rounds)
    return results | {"load while two workers were measured": {"load": os.getloadavg()[0]}}


def dask(folder: Path, rounds: int, rows: int = ROWS) -> Results:
    """Two worker processes of Dask against one process, 100 million rows, after start-up."""
    channel, target = protocol(folder), folder / "out.parquet"
    source, smaller = _source(folder, 100_000_000), _source(folder, rows)
    with workers_of(EngineSettings(kind="dask", workers=2)) as two:
        # Workers have started when they have imported what they need.
        engine_release(smaller, target, channel, two)
        return _alternated(
            {
                "one process, 100 M rows": lambda: engine_release(source, target, channel),
                "two workers of Dask, 100 M rows": lambda: engine_release(source, target, channel, two),
            },
            rounds,
        )


def flow(folder: Path, rounds: int, rows: int = ROWS) -> Results:
    """End to end, order kept and shuffled, unsorted and sorted, fresh and keyed."""
    channel, target = protocol(folder), folder / "out.parquet"
    unsorted, ordered = _source(folder, rows), _source(folder, rows, in_order=True)
    with_digests = _snapshot(folder, rows)
    measures: Timed = {
        "copy": lambda: copy(unsorted, target),
        "copy with pyarrow's defaults": lambda: copy(unsorted, target, {"compression": "zstd"}),
        "order kept": lambda: engine_release(unsorted, target, channel),
        "shuffled": lambda: engine_release(unsorted, target, channel, shuffle=True),
        "library, order kept": lambda: library_release(unsorted, target, channel, shuffle=False),
        "library, order kept, record keys": lambda: library_release(
            unsorted, target, channel, keyed=True, shuffle=False
        ),
        "library, shuffled": lambda: library_release(unsorted, target, channel),
        "library, shuffled, record keys": lambda: library_release(unsorted, target, channel, keyed=True),
        "order kept, digests of keys": lambda: engine_release(with_digests, target, channel, record_key=RECORD_KEY),
        "shuffled, digests of keys": lambda: engine_release(
            with_digests, target, channel, shuffle=True, record_key=RECORD_KEY
        ),
    }
    on_ordered: Timed = {
        "copy of sorted input": lambda: copy(ordered, target),
        "sorted input, order kept": lambda: engine_release(ordered, target, channel),
        "sorted input, shuffled": lambda: engine_release(ordered, target, channel, shuffle=True),
    }
    return _alternated(measures, rounds) | _alternated(on_ordered, rounds)


def counting(folder: Path, rounds: int, rows: int = ROWS) -> Results:
    """Counting p(S, X) of two columns against reading them."""
    source = _source(folder, rows)
    columns = list(COLUMNS[:1] + COLUMNS[3:])

    def read() -> None:
        for _ in batches(source, columns):
            pass

    def count() -> None:
        Joint.from_batches(batches(source, columns), columns[:1], columns[1:])

    return _alternated({"reading two columns": read, "counting p(S, X)": count}, rounds)


def memory(folder: Path, rounds: int, rows: int = ROWS) -> Results:
    """Peak resident memory of processes that do nothing but one copy, one snapshot with digests or one release."""
    found: Results = {}
    for size in (1_000_000, ROWS, 100_000_000):
        _snapshot(folder, size)
        for name in CHILDREN:
            command = [sys.executable, "-m", "benchmarks.sanitise", "--child", name, str(size), "--folder", str(folder)]
            done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=HERE.parent)
            peak = int(done.stdout)
            found.setdefault(name, {})[f"{size:,} rows"] = round(peak / 1024, 1)
            print(f"memory {name:30s} {size:>12,} rows {peak / 1024:8.1f} MB", flush=True)
    return {"peak memory in MB": found}


def sampler(folder: Path, rounds: int, rows: int = ROWS) -> Results:
    """Rows a second of the sampler alone, words included."""
    return {f"sampler, a = {size}": sampler_rates(size, rows, rounds) for size in (16, 200)}


def draws(folder: Path, rounds: int, rows: int = ROWS) -> Results:
    """Chi-square and serial tests."""
    return {"tests of draws": p_values()}


GROUPS: dict[str, Callable[[Path, int, int], Results]] = {
    "flow": flow,
    "counting": counting,
    "sampler": sampler,
    "draws": draws,
    "memory": memory,
    "workers": workers,
    "dask": dask,
}


def _source(folder: Path, rows: int, *, in_order: bool = False) -> Path:
    path = folder / f"{'sorted' if in_order else 'people'}-{rows}.parquet"
    if not path.exists():
        write_source(path, rows, in_order=in_order)
    return path


def _snapshot(folder: Path, rows: int) -> Path:
    """As a release finds its rows after ingest: with the digests of keys, which are known to be distinct."""
    path = folder / f"snapshot-{rows}.parquet"
    if not path.exists():
        write_snapshot(_source(folder, rows), path)
    return path


def write_snapshot(source: Path, path: Path) -> None:
    """Digests of all keys, and whether they are distinct."""
    fields = [(name, pa.dictionary(pa.int32(), pa.string())) for name in COLUMNS]
    schema = pa.schema([*fields, (KEY_COLUMN, KEY_TYPE)])
    with (
        KeyColumn(RECORD_KEY, directory=path.parent) as keys,
        pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=list(COLUMNS)) as writer,
    ):
        for batch in batches(source, [*COLUMNS, KEY]):
            columns = [*(batch.column(name) for name in COLUMNS), keys.column(batch)]
            writer.write_table(pa.table(columns, schema=schema))
        keys.check()


def _alternated(measures: Timed, rounds: int) -> Results:
    """Times of every measure, and their ratios to the first one of the same round."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in measures}
    for _ in range(rounds):
        for name, run in measures.items():
            wall, processor = time.perf_counter(), time.process_time()
            run()
            times[name].append((time.perf_counter() - wall, time.process_time() - processor))
            print(f"{name:40s} {times[name][-1][0]:7.2f} s wall {times[name][-1][1]:7.2f} s processor", flush=True)
    floor = times[next(iter(measures))]
    return {
        name: {
            "seconds": round(min(processor for _, processor in took), 3),
            "wall_seconds": round(min(wall for wall, _ in took), 3),
            "ratio": round(statistics.median(t[1] / f[1] for t, f in zip(took, floor, strict=True)), 3),
            "wall_ratio": round(statistics.median(t[0] / f[0] for t, f in zip(took, floor, strict=True)), 3),
            "rounds": rounds,
        }
        for name, took in times.items()
    }


def _child(folder: Path, name: str, rows: int) -> None:
    source, target, shuffle = _source(folder, rows), folder / "child.parquet", name.startswith("shuffled")
    if name == "copy":
        copy(source, target)
    elif name.startswith("snapshot"):
        write_snapshot(source, target)
    elif "digests" in name:
        engine_release(_snapshot(folder, rows), target, protocol(folder), shuffle=shuffle, record_key=RECORD_KEY)
    else:
        engine_release(source, target, protocol(folder), shuffle=shuffle)
    print(_peak_kilobytes())


def _peak_kilobytes() -> int:
    # What the system counts for a process begins, on Linux, with the memory of the one that it was forked from.
    status = Path("/proc/self/status")
    if status.exists():
        return int(next(line for line in status.read_text().splitlines() if line.startswith("VmHWM")).split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """Run the groups named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], default=[])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "funnel-benchmark")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=ROWS, help="of most groups; not of memory, dask and draws")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    pa.set_cpu_count(1)
    if arguments.child:
        _child(arguments.folder, arguments.child[0], int(arguments.child[1]))
        return
    results: Results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for group in arguments.groups or GROUPS:
        found = GROUPS[group](arguments.folder, arguments.rounds, arguments.rows)
        if arguments.rows != ROWS:
            print(table(found))
            continue
        results |= found
        results["machine"] = {"cores": os.cpu_count(), "pyarrow": pa.__version__}
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        RESULTS.with_suffix(".md").write_text(table(results), encoding="utf-8")


if __name__ == "__main__":
    main()
