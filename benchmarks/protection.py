"""What protecting the frequencies withholds: attacks on public files under ``none``, ``threshold`` and ``noise``.

``python -m benchmarks.protection`` attacks two tables of Adult by somebody who knows everybody but one person, compares
with what the best attacker there can be would reach, and then attacks a thousand people of eight columns by the files
of whole releases. Results go to ``benchmarks/results/protection.json``, and the page to ``protection.md`` beside it.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.stats import binomtest

from benchmarks.reconstruction import GUARANTEE, SAMPLE, published, told_figures
from benchmarks.unmasking import deduced
from funnel import Joint, Protocol, fit
from funnel.disclosure import Rules, Table, best_grouping
from funnel.errors import FunnelError
from funnel.frequencies.public_counts import protect
from funnel.joint import IntArray
from funnel.pipeline.flows.pipeline import run_release
from funnel.release.coarse import coarsened
from funnel.release.frequencies_document import FrequenciesDocument, frequencies_document
from funnel.release.protocol_document import ProtocolDocument
from funnel.settings.protection_settings import FrequencySettings
from funnel.spec import ReleaseSpec
from tests.crowds import DISEASES, EIGHT, EIGHT_SPEC, eight_columns
from tests.projects import make_project

RESULTS = Path(__file__).parent / "results"
EPSILON = 1.0
TRIALS, WEIGHTS, NOISY_WEIGHTS, VALUES, WHOLE = 1500, 100, 30, 4, 3
# A measured share is within this of the true one but for one measurement in a thousand.
CONFIDENCE = 0.999
RULES = Rules(10, 0.95, 0.0)
SEED = 15
TABLES = ("small", "adult")
RELEASES = ("none", "threshold", "noise", "noise, grouped")


def optimum(epsilon: float, hypotheses: int) -> float:
    """The largest probability with which anybody tells in which of some cells one person is, given noisy counts.

    The others are known, all cells equally likely, and the noise is of the discrete Laplace distribution, α = e^-ε. A
    cell's noisy count less the others is at least 1 with probability 1 / (1 + α) where the person is, and q = α / (1 +
    α) elsewhere; nothing else in it tells anything, for its likelihood ratio is 1 / α or α. So the best guess is any
    cell where it is, or any at all where it is nowhere: (1 - q) (1 - (1 - q)^m) / (m q) + q (1 - q)^(m-1) / m.
    """
    q = 1 / (1 + math.exp(epsilon))
    m = hypotheses
    return (1 - q) * (1 - (1 - q) ** m) / (m * q) + q * (1 - q) ** (m - 1) / m


def count_optimum(epsilon: float, counts: IntArray) -> float:
    """The expected share of counts that the noisy ones, clipped at 0, give exactly: tanh(ε/2), more where nobody is."""
    alpha = math.exp(-epsilon)
    return float(np.where(counts == 0, 1 / (1 + alpha), (1 - alpha) / (1 + alpha)).mean())


@dataclass
class Tally:
    """Guesses, and how many of them were right."""

    right: int = 0
    trials: int = 0

    def add(self, is_right: bool) -> None:
        """One more guess."""
        self.right += is_right
        self.trials += 1

    def interval(self) -> tuple[float, float]:
        """Clopper-Pearson limits of the probability of a right guess."""
        found = binomtest(self.right, self.trials).proportion_ci(CONFIDENCE)
        return float(found.low), float(found.high)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        low, high = self.interval()
        return {
            "right": self.right,
            "trials": self.trials,
            "share": round(self.right / self.trials, 4),
            "low": round(low, 4),
            "high": round(high, 4),
        }


def with_person(others: Joint, cell: int) -> Joint:
    """Everybody, and one person more in a cell."""
    counts = others.counts.copy()
    counts.ravel()[cell] += 1
    return Joint(counts, others.secret, others.inputs)


def grouped(joint: Joint) -> Joint:
    """What ``threshold`` makes of a table: values grouped until no cell breaks the rules."""
    found = best_grouping(Table.of(joint), RULES)
    # Groups stand for themselves, in the order of their first values: which values they have is public too.
    names = json.dumps(found.groups())
    counts = found.counts
    return Joint.from_counts(
        counts, [f"{s} {names}" for s in range(counts.shape[0])], [f"{x} {names}" for x in range(counts.shape[1])]
    )


def told_of(joint: Joint, protection: str) -> str:
    """Everything that is published of a table without noise, as a text: weights and figures."""
    public = grouped(joint) if protection == "threshold" else joint
    protocol = coarsened(public, GUARANTEE, fit("optimal", public, GUARANTEE))
    weights = [protocol.outputs.symbols, protocol.inputs.symbols, protocol.weights.tolist()]
    return repr(weights) + told_figures(published(public, protocol))


def without_noise(others: Joint, protection: str, values: Sequence[int]) -> dict[str, Any]:
    """Somebody who knows the others, and a person's published value, makes every release that there could be.

    One with other files is not the one that was published. What is left is guessed among; exactly, with all secrets
    equally likely, the share that is right is that of different releases among all.
    """
    c, a = others.counts.shape
    shares = [len({told_of(with_person(others, s * a + x), protection) for s in range(c)}) / c for x in values]
    return {"share": round(float(np.mean(shares)), 4), "people": len(shares) * c}


def released(joint: Joint) -> dict[str, Any]:
    """``frequencies.json`` of a table, read back."""
    found: dict[str, Any] = json.loads(
        frequencies_document(protect(joint, FrequencySettings(protection="noise", epsilon=EPSILON))).to_bytes()
    )
    return found


def by_likelihood(document: Mapping[str, Any], others: IntArray, cells: IntArray, rng: np.random.Generator) -> int:
    """The likeliest of some cells for the one person who is not among the others; any of the likeliest."""
    rest = (np.array(document["noisy"]) - others).ravel()[cells]
    gain = (np.abs(rest) - np.abs(rest - 1)) / document["scale"]
    return int(rng.choice(cells[gain == gain.max()]))


def by_difference(one: Mapping[str, Any], other: Mapping[str, Any], cells: IntArray, rng: np.random.Generator) -> int:
    """The likeliest cell of the person whom only the first of two versions has, by somebody who knows nobody.

    The distribution of the difference of two noises is log-concave, so where the difference is largest the person is
    likeliest.
    """
    rest = (np.array(one["noisy"]) - np.array(other["noisy"])).ravel()[cells]
    return int(rng.choice(cells[rest == rest.max()]))


def under_noise(others: Joint, trials: int, rng: np.random.Generator) -> dict[str, Any]:
    """Attacks on frequencies.json by the likelihood of what it says, over many people and draws of the noise."""
    c, a = others.counts.shape
    everywhere = np.arange(c * a)
    tallies = {name: Tally() for name in ("secret", "secret, two versions", "cell", "cell, two versions")}
    counts = Tally()
    for _ in range(trials):
        x = int(rng.choice(a, p=others.p_input))
        cell = int(rng.integers(c)) * a + x
        first, second = released(with_person(others, cell)), released(others)
        column = np.arange(c) * a + x
        tallies["secret"].add(by_likelihood(first, others.counts, column, rng) == cell)
        tallies["secret, two versions"].add(by_difference(first, second, column, rng) == cell)
        wanted = int(rng.integers(c * a))
        first = released(with_person(others, wanted))
        tallies["cell"].add(by_likelihood(first, others.counts, everywhere, rng) == wanted)
        tallies["cell, two versions"].add(by_difference(first, second, everywhere, rng) == wanted)
        exact = np.maximum(np.array(second["noisy"]), 0) == others.counts
        counts.right += int(exact.sum())
        counts.trials += exact.size
    return {
        **{name: found.to_dict() for name, found in tallies.items()},
        "counts": counts.to_dict(),
        "optimum": {
            "secret": round(optimum(EPSILON, c), 4),
            "cell": round(optimum(EPSILON, c * a), 4),
            "counts": round(count_optimum(EPSILON, others.counts), 4),
        },
    }


def by_bound(others: Joint, noise: bool, trials: int, rng: np.random.Generator) -> dict[str, Any]:
    """Somebody who knows the others rules out every secret with which the published weights exceed their bound."""
    c, a = others.counts.shape
    tally = Tally()
    for _ in range(trials):
        x = int(rng.choice(a, p=others.p_input))
        column = np.arange(c) * a + x
        cell = int(rng.choice(column))
        truth = with_person(others, cell)
        public = protect(truth, FrequencySettings(protection="noise", epsilon=EPSILON)).joint if noise else truth
        protocol: Protocol = coarsened(public, GUARANTEE, fit("optimal", public, GUARANTEE))
        left = [
            guess
            for guess in column.tolist()
            if GUARANTEE.holds_for(with_person(others, guess), protocol.weights_for(others.inputs))
        ]
        tally.add(int(rng.choice(left or column)) == cell)
    return tally.to_dict()


def sources() -> dict[str, Joint]:
    """A small table and a large one."""
    adult = pq.read_table(SAMPLE)
    return {
        "small": Joint.from_table(adult.slice(0, 3000), "income", "occupation"),
        "adult": Joint.from_table(adult, "sex", "occupation"),
    }


def measured(joint: Joint) -> dict[str, Any]:
    """All attacks on one table."""
    rng = np.random.default_rng(SEED)
    a = len(joint.inputs)
    values = sorted(rng.permutation(a)[:VALUES].tolist())
    return {
        "records": joint.n,
        "cells": int(joint.counts.size),
        "none": without_noise(joint, "none", range(a)),
        "threshold": without_noise(joint, "threshold", values),
        "noise": under_noise(joint, TRIALS, rng),
        "by the bound": {
            "none": by_bound(joint, False, WEIGHTS, rng),
            "noise": by_bound(joint, True, NOISY_WEIGHTS, rng),
        },
    }


def whole(folder: Path, others: Joint) -> dict[str, Any]:
    """Whole releases of tables with one person more: what `protocol.json` and `frequencies.json` tell on a disk.

    Without noise, of how many people only the true secret gives the weights that were published. With noise, whether
    the weights follow from frequencies.json, so that the likelihood of that file is all there is to use.
    """
    c, a = others.counts.shape
    rng = np.random.default_rng(SEED)
    listed = {
        alphabet.columns[0]: [symbol[0] for symbol in alphabet.symbols] for alphabet in (others.secret, others.inputs)
    }
    told: dict[str, list[bool]] = {"none": [], "noise": []}
    for k in range(WHOLE):
        x = int(rng.choice(a, p=others.p_input))
        cell = int(rng.integers(c)) * a + x
        table = _rows_of(with_person(others, cell))
        for protection, seen in told.items():
            text = _spec_of(listed, protection)
            spec = ReleaseSpec.load(make_project(folder / f"{protection}-{k}", text, table))
            done, _ = run_release(spec, again=False, rotate=False)
            files = Path(done["folder"])
            if protection == "noise":
                seen.append(follows(files / "frequencies.json", files / "protocol.json"))
                continue
            protocol = ProtocolDocument.read(files / "protocol.json").protocol
            alike = [guess for guess in range(x, c * a, a) if _same(protocol, with_person(others, guess))]
            if cell not in alike:
                raise ValueError("the attack misread something: the true counts do not give these weights")
            seen.append(alike == [cell])
    return {name: {"yes": sum(seen), "releases": len(seen)} for name, seen in told.items()}


def _same(protocol: Protocol, joint: Joint) -> bool:
    made = coarsened(joint, GUARANTEE, fit("optimal", joint, GUARANTEE))
    # Outputs may be in another order where the alphabet is: what they are is a label.
    mine, theirs = (sorted(map(tuple, one.weights_for(joint.inputs).tolist())) for one in (made, protocol))
    return mine == theirs


def _rows_of(joint: Joint) -> pa.Table:
    s, x = (np.repeat(places, joint.counts.ravel()) for places in np.indices(joint.counts.shape).reshape(2, -1))
    return pa.table(
        {
            alphabet.columns[0]: [alphabet.symbols[place][0] for place in places.tolist()]
            for alphabet, places in ((joint.secret, s), (joint.inputs, x))
        }
    )


def _spec_of(listed: Mapping[str, Sequence[str]], protection: str) -> str:
    secret, publish = listed
    text = EIGHT_SPEC.replace('"none"', json.dumps(protection))
    text = text.replace('["disease"]', json.dumps([secret])).replace(json.dumps(list(EIGHT)), json.dumps([publish]))
    return text + '\n[disclosure]\non_breach = "report"\n' + _section("categories", listed)


def thousand(folder: Path) -> dict[str, Any]:
    """Whole releases of a thousand people of eight columns, attacked by their public files."""
    people = eight_columns()
    table = pa.Table.from_pandas(people, preserve_index=False)
    loud = EIGHT_SPEC + '\n[disclosure]\non_breach = "report"\n'
    categories = _section("categories", {"disease": list(DISEASES)})
    every = categories + "".join(f"{name} = {json.dumps(_values(name))}\n" for name in EIGHT)
    # What `funnel plan --suggest` prints: ages in groups, and every other column one value, so not published.
    groups = {
        "age 2 or 7": ["age 2", "age 7"],
        "age 3 or 6": ["age 3", "age 6"],
        "age 4, 5 or 8": ["age 4", "age 5", "age 8"],
    }
    age = EIGHT_SPEC.replace(json.dumps(list(EIGHT)), '["age"]').replace('"none"', '"noise"')
    noisy = age + _section("recode.age.groups", groups) + categories + f"age = {json.dumps(['age 1', *groups])}\n"
    specs = {
        "none": loud,
        "threshold": EIGHT_SPEC.replace('"none"', '"threshold"'),
        "noise": EIGHT_SPEC.replace('"none"', '"noise"') + every,
        "noise, grouped": noisy,
    }
    found: dict[str, Any] = {"people": len(people), "base rate": int(people["disease"].value_counts().max())}
    for name, text in specs.items():
        spec = ReleaseSpec.load(make_project(folder / name.replace(", ", "-"), text, table))
        try:
            told, _ = run_release(spec, again=False, rotate=False)
        except FunnelError as error:
            found[name] = {"refused": str(error)}
            continue
        files = Path(told["folder"])
        found[name] = judged(people.to_dict("records"), files, told["share"])
        if (frequencies := files / "frequencies.json").exists():
            found[name]["protocol follows from frequencies.json"] = follows(frequencies, files / "protocol.json")
    return found


def follows(frequencies: Path, protocol: Path) -> bool:
    """Whether frequencies.json alone gives the weights of protocol.json, which then tells nothing more."""
    public = FrequenciesDocument.read(frequencies).frequencies.joint
    again = coarsened(public, GUARANTEE, fit("optimal", public, GUARANTEE))
    return bool(np.array_equal(again.weights, ProtocolDocument.read(protocol).protocol.weights))


def judged(people: Sequence[Mapping[str, str]], files: Path, share: float) -> dict[str, Any]:
    """Of how many people the files tell the secret for certain, and whether that is true."""
    protocol, report = (json.loads((files / name).read_text()) for name in ("protocol.json", "report.json"))
    weights = np.array([[int(weight) for weight in row] for row in protocol["weights"]], dtype=np.float64) / 2.0**63
    rows = report["beliefs"]["rows"]
    told = deduced(weights, np.array([row["prior"] for row in rows]), report["source"]["records"])
    columns, symbols = protocol["inputs"]["columns"], [tuple(symbol) for symbol in protocol["inputs"]["symbols"]]
    place = {symbol: x for x, symbol in enumerate(symbols)}
    right = wrong = 0
    for person in people:
        x = place.get(tuple(person[column] for column in columns))
        if x is not None and x in told:
            is_right = rows[told[x]]["label"] == person["disease"]
            right += is_right
            wrong += not is_right
    if told and not right + wrong:
        raise ValueError("secrets of groups were deduced, and whose they are was not asked")
    return {"deduced": right, "wrong": wrong, "published values": len(symbols), "share kept": round(share, 3)}


def _values(column: str) -> list[str]:
    return [f"{column} {k}" for k in range(1, EIGHT[column] + 1)]


def _section(name: str, values: Mapping[str, Sequence[str]]) -> str:
    lines = [f"{json.dumps(key)} = {json.dumps(list(value))}\n" for key, value in values.items()]
    return f"\n[{name}]\n" + "".join(lines)


def table_of(results: Mapping[str, Any]) -> str:
    """The attacks on two tables, a line for each."""
    lines = [
        "| | attack | none | threshold | noise | the most that noise allows | guessing |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in TABLES:
        found = results[name]
        noise, most = found["noise"], found["noise"]["optimum"]
        bound = found["by the bound"]

        def line(title: str, *cells: str, name: str = name) -> None:
            lines.append(f"| {name} | {title} | " + " | ".join(cells) + " |")

        half, one = "50.0 %", f"{1 / found['cells']:.1%}".replace("%", " %")
        line(
            "secret of a person, everybody else known",
            _percent(found["none"]["share"]),
            _percent(found["threshold"]["share"]),
            _measured(noise["secret"]),
            _percent(most["secret"]),
            half,
        )
        line(
            "the same, by whether the weights keep their bound",
            _measured(bound["none"]),
            "–",
            _measured(bound["noise"]),
            _percent(most["secret"]),
            half,
        )
        line(
            "the same, by two versions, nobody else known",
            "–",
            "–",
            _measured(noise["secret, two versions"]),
            _percent(most["secret"]),
            half,
        )
        line(
            "secret and published value, everybody else known",
            "–",
            "–",
            _measured(noise["cell"]),
            _percent(most["cell"]),
            one,
        )
        line(
            "the same, by two versions, nobody else known",
            "–",
            "–",
            _measured(noise["cell, two versions"]),
            _percent(most["cell"]),
            one,
        )
        line("counts guessed exactly", "–", "–", _measured(noise["counts"]), _percent(most["counts"]), "–")
    return "\n".join(lines)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _measured(found: Mapping[str, Any]) -> str:
    return f"{100 * found['share']:.1f} % ({100 * found['low']:.1f}–{100 * found['high']:.1f})"


def releases_of(results: Mapping[str, Any]) -> str:
    """The releases of a thousand people, a line for each."""
    lines = [
        "| frequencies | secrets deduced | of them wrong | published values | kept of H(X) |",
        "|---|---|---|---|---|",
    ]
    for name in RELEASES:
        found = results["thousand"][name]
        if "refused" in found:
            lines.append(f"| {name} | refused: {found['refused']} | | | |")
            continue
        told = found["deduced"] + found["wrong"]
        lines.append(
            f"| {name} | {told} of {results['thousand']['people']:,} | {found['wrong']} "
            f"| {found['published values']:,} | {_percent(found['share kept'])} |"
        )
    return "\n".join(lines)


def page_of(results: Mapping[str, Any]) -> str:
    """The page of results."""
    thousand, whole, trials = results["thousand"], results["whole"], results["small"]["noise"]["secret"]["trials"]
    follows = "follows" if thousand["noise, grouped"]["protocol follows from frequencies.json"] else "does not follow"
    return f"""# What protecting the frequencies withholds

Made by `python -m benchmarks.protection`; all figures are in `protection.json`. The guarantee is LIP 1, the noise of
ε = {EPSILON:g}. *Small*: income and occupation in 3,000 rows of Adult; *adult*: sex and occupation in all of it.

{table_of(results)}

In brackets: limits of the true probability, at {CONFIDENCE:.1%}. All secrets of the person (of the value that a random
record has), or all cells, are equally likely before.

- *None, threshold*: somebody who knows everybody else makes the release of every guess with the same software, and
  compares weights and figures, byte by byte. No draw is involved, so the share is exact over the people who were tried:
  all secrets with all published values under none, with {VALUES} values under threshold. A person is told with
  certainty or not at all: 75 % are half of the people told and the others guessed.
- *Noise*: the guess that is likeliest given `frequencies.json`; {trials:,} people and draws. *The most that noise
  allows* is what the best attacker reaches who knows everybody else, exactly from the distribution of the noise
  (`optimum`): for two secrets e^ε / (1 + e^ε). It holds whatever else is computed from the same documents, for they are
  made of the noisy counts. What a released row tells besides is what the guarantee bounds.
- *By whether the weights keep their bound*: weights are made for the counts there are. An observer who knows everybody
  else rules out every secret with which these weights would exceed it.
- *Two versions*: the second lacks the person; the guess is where the difference of the noisy counts is largest.
- *Counts guessed exactly*: by the noisy count itself, 0 where it is below. What rounding leaves of counts under none is
  [another page](reconstruction.md).

Whole releases of *small* with one person more say the same. For {whole["none"]["yes"]} of {whole["none"]["releases"]}
people no secret but the true one gives the weights of `protocol.json` under none. Under noise `protocol.json` follows
from `frequencies.json`, to the last weight, in {whole["noise"]["yes"]} of {whole["noise"]["releases"]} releases.

## A thousand people of eight columns

The table of [disclosure control](../../docs/disclosure.md#a-thousand-people), whole releases, and an attack on
`protocol.json` and the shares of `report.json` alone (`benchmarks/unmasking.py`). It knows nobody.

{releases_of(results)}

"None" was released with `on_breach = "report"`; by default it is refused. "Noise, grouped" has the groups of ages that
`funnel plan --suggest` prints. Its `protocol.json` {follows} from its `frequencies.json`, to the last weight. The
secret that most people have is had by {thousand["base rate"]}, so that many guesses are right without any file.
"""


def quoted(results: Mapping[str, Any]) -> list[str]:
    """The sentences of ``docs/limitations-figures.md`` that have figures of the results."""
    small, adult = (results[name] for name in TABLES)
    thousand = results["thousand"]

    def both(read: Any) -> str:
        return f"{_percent(read(small))} and {_percent(read(adult))}"

    return [
        f"right for {both(lambda found: found['none']['share'])} under `none`",
        f"for {both(lambda found: found['threshold']['share'])} under `threshold`",
        f"for {both(lambda found: found['noise']['secret']['share'])} under `noise`",
        f"than in {_percent(small['noise']['optimum']['secret'])} of all draws of the noise",
        f"the secret of {thousand['none']['deduced']} of 1,000 people, {thousand['none']['wrong'] or 'none'} wrong",
    ]


def main() -> None:
    """Attack, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    chosen = parser.parse_args()
    results: dict[str, Any] = {}
    for name, joint in sources().items():
        results[name] = measured(joint)
        print(name, json.dumps(results[name]), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        results["whole"] = whole(Path(folder), sources()["small"])
        results["thousand"] = thousand(Path(folder))
    print(json.dumps(results["thousand"]), flush=True)
    (chosen.results / "protection.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (chosen.results / "protection.md").write_text(page_of(results), encoding="utf-8")


if __name__ == "__main__":
    main()
