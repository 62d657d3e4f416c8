"""False alarms and power of the gate's statistical tests: how often it refuses faultless releases, and what it misses.

``python -m benchmarks.gate`` draws releases of several shapes by the code that releases, judges each by the tests of
the gate, and writes how often these refused to ``benchmarks/results/gate.json`` and ``gate.md``; then it makes some by
the whole way, judged by Great Expectations; then it looks for the smallest sabotage that the tests catch in the Adult
sample. A run that was interrupted goes on where it was; ``--releases 20 --large 2 --whole 2 --trials 20`` is short.

What is proven is the upper bound: p-values are at most t with a probability of at most t, so a faultless release is
refused with a probability of at most `funnel.findings.consistency.FALSE_ALARM`. Thousands of releases cannot show one
in a million; they can show that p-values are what they should be at every level, and that no refusal has another cause.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.stats import beta

import funnel
from funnel import Joint, Protocol, RecordKey
from funnel.drawn import DrawnCounts
from funnel.errors import ReleaseRefused
from funnel.findings.consistency import FALSE_ALARM, SHARES, draw_consistency, independence
from funnel.findings.order import association
from funnel.findings.probe import expected_probe
from funnel.findings.words import check_randomness, runs_in_common
from funnel.pipeline.expectations.drawing_claims import FAILURES, Placed, order_tables
from funnel.release.coarse import coarsened
from funnel.release.documents import DrawsDocument, WordsDocument
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.verdict import Verdict
from funnel.sampling.engine import Drawn, release_rows
from funnel.sampling.key_column import KEY_COLUMN, KeyColumn
from funnel.sampling.partitions import plan_rows

HERE = Path(__file__).parent
RESULTS = HERE / "results"
ADULT = HERE.parent / "data" / "adult.parquet"
# Confidence of all bounds on probabilities and of the check of whole distributions.
CONFIDENCE = 0.99
# Without noise; that of frequencies is derived (docs/validation.md).
_MEASURED = tuple(name for name in SHARES if name != "frequencies")
# The probability with which a sabotage is to be caught.
TARGET = 0.99


@dataclass(frozen=True)
class Shape:
    """A kind of source, and how it is released.

    Attributes
    ----------
    name : str
    make : callable
        Number of records, secrets and inputs as text columns ``s`` and ``x``.
    mechanism : str
    keyed, shuffled : bool
    """

    name: str
    make: Callable[[], pa.Table]
    mechanism: str = "optimal"
    keyed: bool = False
    shuffled: bool = True

    @cached_property
    def joint(self) -> Joint:
        """Counts of (secret, input)."""
        return Joint.from_table(self.make(), "s", "x")


def _drawn(rows: int, secrets: int, inputs: int, skew: float) -> pa.Table:
    """Records of a distribution with common and rare values, the same in every run."""
    rng = np.random.default_rng([rows, secrets, inputs])
    distribution = np.outer((1 + np.arange(secrets)) ** -skew, (1 + np.arange(inputs)) ** -skew)
    distribution *= rng.uniform(0.4, 1.6, distribution.shape)
    cells = rng.choice(distribution.size, rows, p=(distribution / distribution.sum()).ravel())
    return pa.table({"s": [f"s{cell // inputs}" for cell in cells], "x": [f"x{cell % inputs}" for cell in cells]})


def _adult(rows: int | None = None) -> pa.Table:
    table = pq.read_table(ADULT, columns=["marital-status", "education"]).rename_columns(["s", "x"])
    return table if rows is None else table.slice(0, rows)


SHAPES = (
    Shape("Adult, 3,000 records", lambda: _adult(3000)),
    Shape("sparse: 400 records, 12 × 30 values", lambda: _drawn(400, 12, 30, 1.2), "grr"),
    Shape("large alphabet: 4,000 records, 4 × 300 values", lambda: _drawn(4000, 4, 300, 0.3), "grr"),
    Shape("few: 25 records, 3 × 4 values", lambda: _drawn(25, 3, 4, 0.5), "grr"),
    Shape("record keys: 3,000 records", lambda: _adult(3000), keyed=True),
    Shape("order of the source: 3,000 records", lambda: _adult(3000), shuffled=False),
)


@dataclass(frozen=True, eq=False)
class Released:
    """A release that was drawn by the code that releases, without its documents.

    Attributes
    ----------
    protocol : Protocol
    drawn : Drawn
        The evidence of its drawing.
    outputs : ndarray of int64, shape (rows,)
        Codes of the released rows, as they are read from the file.
    secrets, inputs : ndarray of int64, shape (rows,)
        Of the source, in its order.
    tables : mapping of str to ndarray
        What places could say, see `funnel.pipeline.expectations.drawing_claims.order_tables`.
    """

    protocol: Protocol
    drawn: Drawn
    outputs: np.ndarray
    secrets: np.ndarray
    inputs: np.ndarray
    tables: dict[str, np.ndarray]


class Source:
    """The source of a shape on disk, with its protocol; makes releases."""

    def __init__(self, shape: Shape, folder: Path) -> None:
        self.shape, self._folder = shape, folder
        guarantee = funnel.LIP(1.0)
        fitted = funnel.fit(shape.mechanism, shape.joint, guarantee)
        self.protocol = coarsened(shape.joint, guarantee, fitted)
        self._table = shape.make()
        self._codes = {
            name: np.array([alphabet.index((text,)) for text in self._table[name].to_pylist()])
            for name, alphabet in (("s", shape.joint.secret), ("x", shape.joint.inputs))
        }
        self._place = {label: code for code, (label,) in enumerate(self.protocol.outputs.symbols)}
        self._snapshot = folder / "snapshot.parquet"
        pq.write_table(self._table, self._snapshot)

    def release(self, number: int) -> Released:
        """Draw a release."""
        target, work = self._folder / "released.parquet", self._folder / f"work-{number}"
        key = None
        if self.shape.keyed:
            # Every release has a secret of its own: with the same one it would be the same release.
            key = RecordKey(("id",), np.random.default_rng([7, number]).bytes(32))
            self._with_digests(key)
        work.mkdir()
        plan = plan_rows(
            self._snapshot,
            "",
            self.protocol,
            work,
            shuffle=self.shape.shuffled,
            record_key=key,
            secret=self.shape.joint.secret,
        )
        drawn = release_rows(plan, target)
        for path in work.iterdir():
            path.unlink()
        work.rmdir()
        column = pq.read_table(target).column(0).combine_chunks()
        places = np.array([self._place[text] for text in column.dictionary.to_pylist()])
        outputs = places[column.indices.to_numpy(zero_copy_only=False)]
        secrets, inputs = self._codes["s"], self._codes["x"]
        released = np.append(np.bincount(outputs, minlength=len(self.protocol.outputs)), 0)
        tables = order_tables(
            Placed(target, self.protocol.outputs, released),
            Placed(self._snapshot, self.shape.joint.inputs, np.append(np.bincount(inputs), 0)),
            Placed(self._snapshot, self.shape.joint.secret, np.append(np.bincount(secrets), 0)),
        )
        return Released(self.protocol, drawn, outputs, secrets, inputs, tables)

    def _with_digests(self, key: RecordKey) -> None:
        numbered = self._table.append_column("id", pa.array(range(len(self._table))))
        with KeyColumn(key) as keys:
            batches = [batch.append_column(KEY_COLUMN, keys.column(batch)) for batch in numbered.to_batches()]
        pq.write_table(pa.Table.from_batches(batches).drop_columns(["id"]), self._snapshot)


def p_values(released: Released, shuffled: bool) -> dict[str, float]:
    """The p-value of each statistical expectation, as the gate compares it with its share of false alarms."""
    drawn, protocol = released.drawn, released.protocol
    found = {
        "draws": draw_consistency(drawn.counts.pairs, protocol).p_value,
        "independence": independence(drawn.counts, protocol).p_value,
        "words": min(1.0, len(drawn.words) * min(check_randomness(words).p_value for words in drawn.words.values())),
    }
    if shuffled:
        tables = released.tables.values()
        found["order"] = min(1.0, len(tables) * min(association(table).p_value for table in tables))
    return found


def refusals(released: Released) -> list[str]:
    """What of a release is refused without any chance; nothing, if it was drawn as declared."""
    drawn, b = released.drawn, len(released.protocol.outputs)
    streams = drawn.words
    wrong = {
        "probe": drawn.probe != expected_probe(released.protocol),
        "counts": not np.array_equal(np.bincount(released.outputs, minlength=b), drawn.counts.pairs.sum(axis=0)),
        "inputs": not np.array_equal(drawn.counts.inputs[:-1, :-1], _table(released.secrets, released.inputs, drawn)),
        "runs": bool(runs_in_common(streams) or any(check_randomness(one).repeated_runs for one in streams.values())),
    }
    return [name for name, refused in wrong.items() if refused]


def _table(secrets: np.ndarray, inputs: np.ndarray, drawn: Drawn) -> np.ndarray:
    c, a, _ = drawn.counts.shape
    return np.bincount(secrets * (a - 1) + inputs, minlength=(c - 1) * (a - 1)).reshape(c - 1, a - 1)


def alarms(source: Source, done: list[dict[str, Any]], releases: int) -> Iterator[dict[str, Any]]:
    """Judge so many releases of a source, less those that are done."""
    for number in range(len(done), releases):
        released = source.release(number)
        found = p_values(released, source.shape.shuffled)
        refused = [*refusals(released), *(name for name, p in found.items() if p < SHARES[name])]
        yield {"p": {name: float(p) for name, p in found.items()}, "refused": refused}


def above_uniform(p: np.ndarray) -> tuple[float, float]:
    """How far a sample of p-values is above the uniform distribution at worst, and how far it may be by chance.

    The second is the bound of Dvoretzky, Kiefer, Wolfowitz and Massart: uniform p-values, and all the more larger ones,
    have a distribution that is further above at any place with a probability of at most 1 - `CONFIDENCE`.
    """
    ordered = np.sort(p)
    excess = np.arange(1, len(p) + 1) / len(p) - ordered
    return float(max(0.0, excess.max())), math.sqrt(math.log(1 / (1 - CONFIDENCE)) / (2 * len(p)))


def at_most(events: int, trials: int) -> float:
    """Exact upper bound of Clopper and Pearson on a probability."""
    return 1.0 if events == trials else float(beta.ppf(CONFIDENCE, events + 1, trials - events))


def at_least(events: int, trials: int) -> float:
    """Exact lower bound of Clopper and Pearson on a probability."""
    return 0.0 if events == 0 else float(beta.ppf(1 - CONFIDENCE, events, trials - events + 1))


class Sample:
    """The Adult sample as it is released, with ways to sabotage its drawing that only statistics can notice."""

    def __init__(self) -> None:
        shape = Shape("the Adult sample", _adult)
        self.joint = shape.joint
        guarantee = funnel.LIP(1.0)
        self.protocol = coarsened(self.joint, guarantee, funnel.optimal(self.joint, guarantee).protocol)
        distribution = self.protocol.matrix.T
        self._distribution = distribution / distribution.sum(axis=1, keepdims=True)
        # What tells most of a value among what it may become: impossible outputs are refused without any statistics.
        self._telling = np.where(distribution > 0, distribution / (distribution.T @ self.joint.p_input), 0).argmax(
            axis=1
        )
        # Of rows that are published as they are, so many would not have been drawn like that.
        self.changed = 1 - float(self.joint.p_input @ distribution[np.arange(len(distribution)), self._telling])
        self._rows = np.repeat(
            np.stack(np.nonzero(self.joint.counts)), self.joint.counts[np.nonzero(self.joint.counts)], axis=1
        )

    def unsanitised(self, share: float, rng: np.random.Generator) -> bool:
        """Whether it is caught that a random share of rows is true values, though all evidence calls them drawn."""
        c, a = self.joint.counts.shape
        table = np.zeros((c + 1, a + 1, len(self.protocol.outputs)), dtype=np.int64)
        for s, x in zip(*np.nonzero(self.joint.counts), strict=True):
            true = rng.binomial(self.joint.counts[s, x], share)
            table[s, x] = rng.multinomial(self.joint.counts[s, x] - true, self._distribution[x])
            table[s, x, self._telling[x]] += true
        return self._refused(table)

    def coupled(self, share: float, rng: np.random.Generator) -> bool:
        """Whether it is caught that the draws of a random share of rows are coupled to the secret.

        Among the rows of that share with one value, those with the first secrets get the first of their outputs: every
        count of (value, output) is that of an honest draw.
        """
        secrets, inputs = self._rows
        outputs = self._outputs(inputs, rng)
        chosen = np.flatnonzero(rng.random(len(inputs)) < share)
        by_secret = chosen[np.lexsort((rng.random(len(chosen)), secrets[chosen], inputs[chosen]))]
        by_output = chosen[np.lexsort((outputs[chosen], inputs[chosen]))]
        outputs[by_secret] = outputs[by_output]
        c, a = self.joint.counts.shape
        table = np.zeros((c + 1, a + 1, len(self.protocol.outputs)), dtype=np.int64)
        np.add.at(table, (secrets, inputs, outputs), 1)
        return self._refused(table)

    def in_place(self, share: float, rng: np.random.Generator) -> bool:
        """Whether it is caught that a random share of rows is left at its place of the source.

        Only the labels that can show it are looked at, at the significance that is left to each of all labels.
        """
        order = rng.permutation(len(self._rows[0]))
        secrets, inputs = self._rows[:, order]
        outputs = self._outputs(inputs, rng)
        moved = np.flatnonzero(rng.random(len(outputs)) >= share)
        outputs[moved] = outputs[rng.permutation(moved)]
        for labels in (inputs, secrets):
            table = np.zeros((int(labels.max()) + 1, len(self.protocol.outputs)), dtype=np.int64)
            np.add.at(table, (labels, outputs), 1)
            if association(table).p_value * len(FAILURES) < SHARES["order"]:
                return True
        return False

    def _outputs(self, inputs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        thresholds = self._distribution.cumsum(axis=1)[inputs, :-1]
        return (rng.random(len(inputs))[:, np.newaxis] >= thresholds).sum(axis=1)

    def _refused(self, table: np.ndarray) -> bool:
        counts = DrawnCounts.of(table)
        if draw_consistency(counts.pairs, self.protocol).p_value < SHARES["draws"]:
            return True
        return independence(counts, self.protocol).p_value < SHARES["independence"]


def smallest(caught: Callable[[float, np.random.Generator], bool], trials: int) -> dict[str, Any]:
    """The smallest share that is caught with a probability of .99: of shares that grow by a twentieth each.

    A share counts if so many trials catch it that the exact lower bound is .99, or all of them, where they are few.
    """
    rng = np.random.default_rng(2026)
    few = max(1, trials // 50)
    low, high = 1e-4, 1.0
    while high / low > 1.05:
        middle = math.sqrt(low * high)
        if sum(caught(middle, rng) for _ in range(few)) == few:
            high = middle
        else:
            low = middle
    share = high
    while True:
        found = sum(caught(share, rng) for _ in range(trials))
        least = at_least(found, trials)
        if least >= TARGET or found == trials or share >= 1:
            return {"share": min(share, 1.0), "caught": found, "trials": trials, "least": least}
        share = min(1.0, 1.05 * share)


def whole(releases: int, folder: Path) -> list[dict[str, Any]]:
    """Releases by the whole way, judged by Great Expectations: what was refused, and whether p-values agree.

    These are computed once more from the evidence that is left in the folder, as `p_values` does: what the gate judges
    statistically are these numbers.
    """
    from funnel.pipeline.flows.pipeline import run_release
    from funnel.spec import ReleaseSpec

    pq.write_table(_adult(3000).append_column("id", pa.array(range(3000))), folder / "people.parquet")
    told = []
    for number in range(releases):
        keyed, shuffled = number % 3 == 1, number % 3 != 2
        (folder / "people.toml").write_text(
            'name = "people"\ntitle = "People"\nsecret = ["s"]\npublish = ["x"]\nguarantee = "lip:1.0"\n'
            'frequencies.protection = "none"\n'
            + ('record_key = ["id"]\n' if keyed else "")
            + '[source]\npath = "people.parquet"\n[history]\npeople = "different"\n'
            + '[disclosure]\non_breach = "report"\n[metadata]\nlicence = "CC0-1.0"\n'
            + f"[output]\ncsv = true\nshuffle = {str(shuffled).lower()}\n",
            encoding="utf-8",
        )
        refused = None
        try:
            _, done = run_release(ReleaseSpec.load(folder / "people.toml"), again=True, rotate=keyed and number > 1)
        except ReleaseRefused as error:
            refused = str(error)
        else:
            assert done is not None
            told.append({"refused": None, "same": _same(ReleaseFolder(Path(done.published.folder)))})
        if refused is not None:
            told.append({"refused": refused, "same": True})
    return told


def _same(folder: ReleaseFolder) -> bool:
    """Whether the checks of a verdict passed by the p-values that follow from the evidence beside it."""
    protocol = ProtocolDocument.read(folder.protocol).protocol
    draws, words = DrawsDocument.read(folder.draws), WordsDocument.read(folder.words).statistics
    passed = {
        "draws": draw_consistency(draws.pairs, protocol).p_value >= SHARES["draws"],
        "drawn by input": independence(draws.counts, protocol).p_value >= SHARES["independence"],
        "random words": len(words) * min(check_randomness(one).p_value for one in words.values()) >= SHARES["words"],
    }
    found = {one.name: one.passed for one in Verdict.read(folder.verdict).results}
    return all(found[name] is right for name, right in passed.items())


def summary(rows: dict[str, list[dict[str, Any]]], ways: list[dict[str, Any]], powers: dict[str, Any]) -> str:
    """The page."""
    total = [row for some in rows.values() for row in some]
    refused = sum(bool(row["refused"]) for row in total)
    lines = [
        "# False alarms and power of the gate",
        "",
        "Made by `python -m benchmarks.gate`. All bounds hold with 99 % confidence.",
        "",
        "## False alarms",
        "",
        f"**Proven**: a release that was drawn as declared is refused by chance with a probability of at most "
        f"{FALSE_ALARM:g}, the sum of the significances of the {len(SHARES)} statistical checks below, and below 1e-9 "
        "with those of the audit, nine at most: each p-value is at most t with a probability of at most t "
        "(`funnel/findings`, `funnel/audit`, proofs in the docstrings). Nothing else that the gate judges has to do "
        "with chance.",
        "",
        f"**Measured**: {refused} of {len(total):,} faultless releases were refused. That alone shows no more than "
        f"that the rate is at most {at_most(refused, len(total)):.2g} (Clopper and Pearson). More is seen of the "
        "p-values themselves: at no place is their distribution further above the uniform one than chance allows "
        "(Dvoretzky, Kiefer, Wolfowitz, Massart), so they are not too small at any level that so many releases can "
        "show.",
        "",
        "| sources | releases | refused | "
        + " | ".join(f"{name}: smallest p, excess" for name in _MEASURED)
        + " | allowed excess |",
        f"| --- | --- | --- |{' --- |' * len(_MEASURED)} --- |",
    ]
    for name, some in [*rows.items(), ("all", total)]:
        cells = []
        for test in _MEASURED:
            p = np.array([row["p"][test] for row in some if test in row["p"]])
            cells.append(f"{p.min():.2g}, {above_uniform(p)[0]:.3f}" if len(p) else "")
        allowed = above_uniform(np.ones(len(some)))[1]
        bad = sum(bool(row["refused"]) for row in some)
        lines.append(f"| {name} | {len(some):,} | {bad} | {' | '.join(cells)} | {allowed:.3f} |")
    lines += [
        "",
        "By the whole way, judged by Great Expectations (shuffled, with record keys, in the order of the source, each "
        f"with a csv): {sum(row['refused'] is not None for row in ways)} of {len(ways)} refused; the checks of "
        f"{sum(row['same'] for row in ways)} of {len(ways)} verdicts passed as the tests above, computed from the "
        "evidence in the folder, say. So the releases above, which are drawn by the same code and "
        "judged by the same functions, stand for whole ones.",
        "",
        "## Power, in the Adult sample (48,842 records, education, `lip:1.0`)",
        "",
        "The smallest share of rows that is caught with a probability of .99, by statistics alone: the evidence is "
        "falsified so that everything else agrees.",
        "",
        "| sabotage | share | rows | caught | probability at least |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, one in powers.items():
        lines.append(
            f"| {name} | {100 * one['share']:.2g} % | {round(one['share'] * 48842):,} | {one['caught']:,} of "
            f"{one['trials']:,} | {one['least']:.4f} |"
        )
    changed = max(one["changed"] for one in powers.values())
    lines += [
        "",
        f"Of rows that are published as they are only {100 * changed:.0f} % differ from what would have been drawn: "
        "the protocol publishes the others like that too.",
        "",
        "With honest evidence no statistics are needed: one row that was exchanged changes a count of outputs, which "
        "are compared one by one with those that were drawn. So a single row is caught with certainty, unless its new "
        "value is the old one, or all that is exchanged is the places of rows.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Judge releases, find the power, write both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--releases", type=int, default=450, help="faultless releases of every shape")
    parser.add_argument("--large", type=int, default=60, help="the same of the large alphabet, which takes longer")
    parser.add_argument("--whole", type=int, default=30, help="releases by the whole way")
    parser.add_argument("--trials", type=int, default=460, help="trials of every share")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    kept = asked.results / "gate.json"
    known: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    rows: dict[str, list[dict[str, Any]]] = known.get("releases", {})

    def keep(ways: list[dict[str, Any]], powers: dict[str, Any]) -> None:
        content = {"releases": rows, "whole": ways, "power": powers}
        kept.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")

    ways, powers = known.get("whole", []), known.get("power", {})
    for shape in SHAPES:
        wanted = min(asked.large, asked.releases) if shape.name.startswith("large") else asked.releases
        done = rows.setdefault(shape.name, [])
        with tempfile.TemporaryDirectory() as folder:
            for row in alarms(Source(shape, Path(folder)), done, wanted):
                done.append(row)
        keep(ways, powers)
    if len(ways) < asked.whole:
        with tempfile.TemporaryDirectory() as folder:
            ways = whole(asked.whole, Path(folder))
        keep(ways, powers)
    sample = Sample()
    sabotages = {
        "true values in place of draws": sample.unsanitised,
        "draws coupled to the secret": sample.coupled,
        "rows left at their place of the source": sample.in_place,
    }
    for name, caught in sabotages.items():
        if powers.get(name, {}).get("trials", 0) < asked.trials:
            powers[name] = {**smallest(caught, asked.trials), "changed": sample.changed}
            keep(ways, powers)
    (asked.results / "gate.md").write_text(summary(rows, ways, powers), encoding="utf-8")


if __name__ == "__main__":
    main()
