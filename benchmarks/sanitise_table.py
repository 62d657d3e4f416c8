"""The table of the row engine's benchmark, with the targets it is held to."""

from __future__ import annotations

from typing import Any

Results = dict[str, dict[str, Any]]

_RATIOS = {
    "order kept": 1.10,
    "shuffled": 2.0,
    "order kept, digests of keys": None,
    "shuffled, digests of keys": None,
    "library, order kept": None,
    "library, order kept, record keys": 1.5,
    "library, shuffled": None,
    "library, shuffled, record keys": None,
    "copy with pyarrow's defaults": None,
    "sorted input, order kept": 1.8,
    "sorted input, shuffled": None,
    "counting p(S, X)": 1.3,
}
_SPEEDUPS: dict[str, tuple[str, float | None]] = {
    "two processes": ("one worker", 1.7),
    "two processes, shuffled": ("one worker, shuffled", None),
    "two workers of Dask, 100 M rows": ("one process, 100 M rows", 1.5),
}
_FLOORS = {"sorted input, order kept": "copy of sorted input", "counting p(S, X)": "reading two columns"}


def table(results: Results) -> str:
    """Markdown: one line a measure; only what has been measured."""
    lines = ["| measure | processor time | ratio | wall clock | target | met |", "|---|---|---|---|---|---|"]
    for name, target in _RATIOS.items():
        if name in results:
            found = results[name]
            lines.append(
                f"| {name} | {found['seconds']:.2f} s | {found['ratio']:.2f} × {_FLOORS.get(name, 'the copy')} | "
                f"{found['wall_ratio']:.2f} × | {_most(target)} | {_met(found['ratio'], target)} |"
            )
    for name, (floor, wanted) in _SPEEDUPS.items():
        if name in results:
            faster = results[floor]["wall_seconds"] / results[name]["wall_seconds"]
            verdict = "" if wanted is None else "yes" if faster >= wanted else "**no**"
            least = "" if wanted is None else f"≥ {wanted:.1f} ×"
            wall = results[name]["wall_seconds"]
            lines.append(f"| {name} | {wall:.1f} s wall | {faster:.2f} × as fast as {floor} | | {least} | {verdict} |")
    lines += _memory(results.get("peak memory in MB", {}))
    for size in (16, 200):
        lines += _sampler(size, results.get(f"sampler, a = {size}", {}))
    if "tests of draws" in results:
        found = results["tests of draws"]
        lines += [
            "",
            f"{found['rows']:,} draws: chi-square p = {found['chi2_p']:.3f}, serial test p = {found['serial_p']:.3f}, "
            f"{found['impossible']} draws of probability zero.",
        ]
    return "\n".join(lines) + "\n"


def _most(target: float | None) -> str:
    return "" if target is None else f"≤ {target:.2f} ×"


def _met(ratio: float, target: float | None) -> str:
    return "" if target is None else "yes" if ratio <= target else "**no**"


def _memory(found: Results) -> list[str]:
    if not found:
        return []
    sizes = sorted(found["copy"], key=lambda size: int(size.split()[0].replace(",", "")))
    lines = ["", f"| peak memory, MB | {' | '.join(sizes)} | worst ratio to the copy | target | met |"]
    lines.append("|---" * (len(sizes) + 4) + "|")
    for name, peaks in found.items():
        worst = max(peak / found["copy"][size] for size, peak in peaks.items())
        verdict = ("", "") if name == "copy" or name.startswith("snapshot") else ("≤ 1.20 ×", _met(worst, 1.2))
        cells = " | ".join(f"{peaks[size]:.0f}" if size in peaks else "" for size in sizes)
        lines.append(f"| {name} | {cells} | {worst:.2f} × | {verdict[0]} | {verdict[1]} |")
    return lines


def _sampler(size: int, rates: Results) -> list[str]:
    if not rates:
        return []
    lines = ["", f"| sampler, a = {size} | million rows/s | against funnel |", "|---|---|---|"]
    own = rates["funnel"]["rows_per_second"]
    for name, found in rates.items():
        if "absent" in found:
            lines.append(f"| {name} | not installed | |")
        else:
            rate = found["rows_per_second"]
            lines.append(f"| {name} {found['version']} | {rate / 1e6:.3f} | {own / rate:.1f} × slower |")
    return lines
