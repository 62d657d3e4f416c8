"""Five waves under a bound in the population: what sampling error costs, by how many people there are.

`python -m benchmarks.panel_population` publishes the waves of the panel under lip and under rlip, of its people and of
so many copies of them, whose frequencies are the same and whose limits are narrower. Writes
``benchmarks/results/panel-population.json`` and ``panel-population.md``.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from funnel.guarantees import parse_guarantee
from funnel.history.panel import History
from funnel.history.possible_rows import share_that_is_open
from tests.waves import WAVES, wave

RESULTS = Path(__file__).parent / "results"
CASES = (
    ("outwork", ("kids", "income"), "lip:1.0", "rlip:1.0,0.05"),
    ("married", ("age", "outwork"), "lip:0.5", "rlip:0.5,0.05"),
)
COPIES = (1, 10, 100)
# More than any number of a person.
_NUMBERS = 10**7


@dataclass(frozen=True)
class Found:
    """One series: what its versions keep of H(X), and the share of people whose histories allow nothing to be said."""

    secret: str
    guarantee: str
    copies: int
    people: int
    kept: tuple[float, ...]
    open: tuple[float | None, ...]


def copied(table: pa.Table, copies: int) -> pa.Table:
    """So many people like every one."""
    place = table.schema.get_field_index("id")
    ids = table["id"].to_numpy()
    return pa.concat_tables(table.set_column(place, "id", pa.array(ids + _NUMBERS * copy)) for copy in range(copies))


def series(secret: str, inputs: tuple[str, ...], guarantee: str, copies: int) -> Found:
    """All waves, one after the other."""
    book = History(parse_guarantee(guarantee), read_alone=True)
    kept, left_open, people = [], [], 0
    for year in WAVES:
        table = copied(wave(year), copies)
        people = max(people, table.num_rows)
        step = book.extend(
            table,
            key=["id"],
            secret=[secret],
            inputs=list(inputs),
            version=str(year),
            secret_bytes=np.random.default_rng(year).bytes(32),
        )
        kept.append(step.utility / step.entropy)
        left_open.append(share_that_is_open(step))
    print(secret, guarantee, copies, [f"{share:.3f}" for share in kept], flush=True)
    return Found(secret, guarantee, copies, people, tuple(kept), tuple(left_open))


def page(found: list[Found]) -> str:
    """What was found, as a page."""
    lines = [
        "# A panel under a bound in the population",
        "",
        "By `python -m benchmarks.panel_population`: five waves of the panel, for its people and for copies of them;",
        "share of H(X) kept in every wave. *May say nothing*: the share of the people of the last wave whose history",
        "by itself may be outside the bound in some population that the samples leave open.",
        "",
        "| secret | bound | people of a wave, up to | " + " | ".join(map(str, WAVES)) + " | may say nothing |",
        "|" + "---|" * (4 + len(WAVES)),
    ]
    for one in found:
        last = "" if one.open[-1] is None else f"{one.open[-1]:.3f}"
        shares = " | ".join(f"{share:.3f}" for share in one.kept)
        lines.append(f"| {one.secret} | `{one.guarantee}` | {one.people:,} | {shares} | {last} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Publish, and write the results."""
    found = []
    for secret, inputs, nominal, robust in CASES:
        found.append(series(secret, inputs, nominal, 1))
        found += [series(secret, inputs, robust, copies) for copies in COPIES]
    RESULTS.joinpath("panel-population.json").write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")
    RESULTS.joinpath("panel-population.md").write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
