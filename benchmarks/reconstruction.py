"""What public files tell of the exact counts of (secret, published): attacks, and the cells that they recover.

``python -m benchmarks.reconstruction [--census PATH]`` makes the optimum for LIP 1 of three sources, publishes its
figures as they were before decision 0026 and as they are now (`funnel.release.public`, of which alone public files are
made: tests hold that), and attacks both. Rows go to ``benchmarks/results/reconstruction.json`` as they come, and the
table to ``benchmarks/results/reconstruction.md``. Attackers know the method, the number of records and the alphabets.
A cell counts as recovered if one value of it is left among all whole counts that fit (`benchmarks.attacks`).
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.attacks import NODES, Conditions, recovered, told_by_two
from funnel import LIP, Joint, Protocol, fit
from funnel.findings import Audited, DrawnRelease
from funnel.frequencies.public_counts import Frequencies
from funnel.joint import FloatArray
from funnel.release.coarse import coarsened
from funnel.release.public.findings import PublicRelease
from funnel.release.public.rounding import lift_step

HERE = Path(__file__).parent
RESULTS = HERE / "results"
SAMPLE = HERE.parent / "data" / "adult.parquet"
GUARANTEE = LIP(1.0)
PERSONS = 25
# Before: shares in the report to a thousandth, in protocol.json to 1e-4, lifts to three digits, places of dots to 1e-6
# of some 150 pixels for a factor e.
OLD_SHARE, OLD_PRIOR, OLD_DIGITS, OLD_PLACE = 1e-3, 1e-4, 3, 1e-8
# Weights of the optimum leave this of the bound, relative; on a grid of 2^-k they may be moved by so many steps.
TIGHT, STEPS = 1e-7, 3
WORD = 63
Interval = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Told:
    """Public figures as somebody reads them: intervals that rounding leaves.

    Attributes
    ----------
    n : int
    weights : ndarray, shape (b, a)
    output : ndarray, shape (b,), or None
        P(y), where the marginal tells it.
    prior, secret : pairs of ndarrays, shapes (a,) and (c,)
    table, chart : pairs of ndarrays, shape (c, b)
        Lifts; nan where they are not told.
    tight : pair of ndarrays, shape (c, b)
        Lifts on the bound, as the weights of a vertex of the cone tell them; the attack is told which these are.
    """

    n: int
    weights: FloatArray
    output: FloatArray | None
    prior: Interval
    secret: Interval
    table: Interval
    chart: Interval
    tight: Interval


def before(joint: Joint, protocol: Protocol) -> Told:
    """As figures were published before."""
    weights, lift, output = _exact(joint, protocol)
    half = 0.5 * 10.0 ** (np.floor(np.log10(np.maximum(lift, 1e-300))) + 1 - OLD_DIGITS)
    rounded = np.round(lift / (2 * half)) * 2 * half
    return Told(
        joint.n,
        weights,
        output,
        _around(joint.p_input, OLD_PRIOR),
        _around(joint.p_secret, OLD_SHARE),
        (rounded - half, rounded + half),
        (lift * (1 - OLD_PLACE), lift * (1 + OLD_PLACE)),
        _tight(lift, np.full(len(output), TIGHT)),
    )


def after(joint: Joint, protocol: Protocol) -> Told:
    """As figures are published now."""
    weights, exact, output = _exact(joint, protocol)
    public = published(joint, protocol)
    distributions, lift = public.distributions, public.findings.lift
    low, high = np.full(lift.shape, np.nan), np.full(lift.shape, np.nan)
    expected = joint.n * np.outer(distributions.p_secret, distributions.p_output)
    limits = math.exp(-GUARANTEE.epsilon), math.exp(GUARANTEE.epsilon)
    for (s, y), value in np.ndenumerate(lift):
        if value == value and value > 0:
            step = lift_step(float(value), float(expected[s, y]))
            # What would be told further out than the bound is told at it; what would be told as zero, as a step.
            low[s, y] = max(limits[0], 0.0 if value <= step else value - step)
            high[s, y] = min(limits[1], value + step)
    bits = WORD - min(int(w) & -int(w) for w in protocol.weights.ravel() if w).bit_length() + 1
    return Told(
        joint.n,
        weights,
        None,
        _multiples(distributions.p_input, distributions.step, joint.n),
        _multiples(distributions.p_secret, distributions.step, joint.n),
        (low, high),
        (low, high),
        _tight(exact, STEPS * 2.0**-bits / np.maximum(output, 1e-300)),
    )


def published(joint: Joint, protocol: Protocol) -> PublicRelease:
    """All public figures; as many draws of every kind as the weights let expect, for they are published anyway."""
    pairs = np.zeros((len(protocol.inputs) + 1, len(protocol.outputs)), dtype=np.int64)
    pairs[:-1] = np.round(joint.p_input[:, np.newaxis] * joint.n * protocol.matrix.T)
    audited = Audited.of(Frequencies(joint, "none"), DrawnRelease(protocol, GUARANTEE, pairs))
    return PublicRelease.of(audited, protocol, GUARANTEE)


def _exact(joint: Joint, protocol: Protocol) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights (b, a), lifts (c, b) and P(y) (b,)."""
    weights = protocol.weights_for(joint.inputs).astype(np.float64) / float(protocol.denominator)
    distribution = joint.p @ weights.T
    output = distribution.sum(axis=0)
    return weights, distribution / np.outer(joint.p_secret, output), output


def _around(shares: FloatArray, unit: float) -> Interval:
    rounded = np.round(shares / unit) * unit
    return np.maximum(0.0, rounded - unit / 2), rounded + unit / 2


def _multiples(shares: FloatArray, step: float, n: int) -> Interval:
    low = np.where(shares <= 1.0001 * step, np.minimum(1 / n, shares), shares - step / 2)
    return low, np.where(shares > 0, shares + step / 2, 0.0)


def _tight(lift: FloatArray, slack: FloatArray) -> Interval:
    low, high = np.full(lift.shape, np.nan), np.full(lift.shape, np.nan)
    for limit, inward in ((math.exp(GUARANTEE.epsilon), -1), (math.exp(-GUARANTEE.epsilon), 1)):
        inner = limit * (1 + inward * slack) * np.ones_like(lift)
        on = np.abs(lift - limit) <= np.abs(inner - limit)
        low[on], high[on] = np.minimum(inner, limit)[on], np.maximum(inner, limit)[on]
    return low, high


def read(told: Told, *kinds: str) -> Conditions:
    """Conditions on the counts from some of the files: ``prior``, ``secret``, ``table``, ``chart``, ``tight``."""
    c, a = len(told.secret[0]), told.weights.shape[1]
    conditions = Conditions((c, a), told.n)
    conditions.inputs(*told.prior)
    low, high = (told.weights @ side for side in told.prior)
    output = (low, np.minimum(1.0, high))
    if told.output is not None:
        conditions.outputs(told.weights, told.output, 1e-12)
        output = (told.output, told.output)
    bound = np.full((c, len(told.weights)), math.exp(-GUARANTEE.epsilon)), np.full((c, len(told.weights)), math.e)
    conditions.lifts(told.weights, output, *bound)
    if "secret" in kinds:
        conditions.secrets(*told.secret)
    for kind in ("table", "chart", "tight"):
        if kind in kinds:
            conditions.lifts(told.weights, output, *getattr(told, kind))
    return conditions


def attacked(joint: Joint, protocol: Protocol, told: Told) -> dict[str, Any]:
    """What single releases tell."""
    everything = ("secret", "table", "chart", "tight")
    return {
        "chart": recovered(read(told, "secret", "chart"), joint.counts).to_dict(),
        "table": recovered(read(told, "secret", "table"), joint.counts).to_dict(),
        "protocol": recovered(read(told, "tight"), joint.counts).to_dict(),
        "all": recovered(read(told, *everything), joint.counts).to_dict(),
        "lifts on the bound": int((~np.isnan(told.tight[0])).sum()),
    }


def persons_of(joint: Joint) -> list[int]:
    """Positions of the cells of some people, rare cells as likely as common ones."""
    cells = np.flatnonzero(joint.counts.ravel())
    return [int(cell) for cell in np.random.default_rng(13).permutation(cells)[:PERSONS]]


def without(joint: Joint, cell: int, instead: int | None = None) -> Joint:
    """The same people but one, who is left out or is in another cell."""
    counts = joint.counts.copy()
    counts.ravel()[cell] -= 1
    if instead is not None:
        counts.ravel()[instead] += 1
    return Joint.from_counts(counts, joint.secret, joint.inputs)


def by_an_insider(joint: Joint, protocol: Protocol, was: bool) -> dict[str, Any]:
    """Somebody who knows everybody else, and what one person published, tries every secret of that person."""
    a = len(joint.inputs)
    known = {"level": 0, "bound": 0, "figures": 0}
    excluded = dict.fromkeys(known, 0)
    tried = 0
    weights = protocol.weights_for(joint.inputs)
    here = GUARANTEE.level_for(joint, weights).value
    figures = None if was else told_figures(published(joint, protocol))
    for cell in persons_of(joint):
        others = [s * a + cell % a for s in range(len(joint.secret)) if s != cell // a]
        differ: dict[str, int] = dict.fromkeys(known, 0)
        for other in others:
            instead = without(joint, cell, other)
            level = GUARANTEE.level_for(instead, weights).value
            outside = level > GUARANTEE.epsilon
            differ["bound"] += outside
            differ["level"] += level != here if was else outside
            if figures is not None:
                differ["figures"] += outside or figures != told_figures(published(instead, protocol))
        tried += len(others)
        for kind in known:
            known[kind] += differ[kind] == len(others)
            excluded[kind] += differ[kind]
    kinds = ("level", "bound") if was else ("level", "bound", "figures")
    return {kind: {"told": known[kind], "excluded": round(excluded[kind] / tried, 3)} for kind in kinds}


def told_figures(public: PublicRelease) -> str:
    """All public figures as a text, to compare; the test of the draws is about the draws."""
    distributions, found = vars(public.distributions), vars(public.findings)
    with np.printoptions(threshold=10**9, precision=17):
        return repr([distributions, {key: value for key, value in found.items() if key != "consistency"}])


def releases_of(joint: Joint) -> dict[str, Protocol]:
    """The protocol as it was published before, and as it is now."""
    protocol = fit("optimal", joint, GUARANTEE)
    return {"before": protocol, "after": coarsened(joint, GUARANTEE, protocol)}


READ = {"before": before, "after": after}


def differenced(joint: Joint, told: dict[str, Told], protocols: dict[str, Protocol]) -> dict[str, Any]:
    """Pairs of releases whose sources differ by one person; and whether the protocol alone differs."""
    results: dict[str, Any] = {mode: {"yes": 0, "no": 0, "undecided": 0, "other weights": 0} for mode in READ}
    everything = ("secret", "table", "chart")
    for cell in persons_of(joint):
        fewer = without(joint, cell)
        if (fewer.counts.sum(axis=0) == 0).any() or (fewer.counts.sum(axis=1) == 0).any():
            # The alphabet itself tells of the last one of a kind.
            for mode in READ:
                results[mode]["yes"] += 1
            continue
        for mode, protocol in releases_of(fewer).items():
            two = READ[mode](fewer, protocol)
            results[mode][told_by_two(read(told[mode], *everything), read(two, *everything), joint.counts, cell)] += 1
            same = np.array_equal(protocol.weights, protocols[mode].weights)
            results[mode]["other weights"] += not same
    return results


def sources(census: Path | None) -> dict[str, Joint]:
    """The three sources: a small table, the embedded sample, and Census-Income where it is."""
    adult = pq.read_table(SAMPLE)
    found = {
        "small": Joint.from_table(adult.slice(0, 1000), "income", ["race", "sex"]),
        "adult": Joint.from_table(adult, "marital-status", "education"),
    }
    if census is not None:
        found["census"] = Joint.from_table(
            pq.read_table(census, columns=["marital-stat", "education"]), "marital-stat", "education"
        )
    return found


def measured(joint: Joint) -> dict[str, Any]:
    """All attacks on one source, before and after."""
    protocols = releases_of(joint)
    told = {mode: READ[mode](joint, protocol) for mode, protocol in protocols.items()}
    pairs = differenced(joint, told, protocols)
    return {
        "records": joint.n,
        "cells": int(joint.counts.size),
        "persons": len(persons_of(joint)),
        **{
            mode: {
                **attacked(joint, protocols[mode], told[mode]),
                "insider": by_an_insider(joint, protocols[mode], mode == "before"),
                "two releases": pairs[mode],
            }
            for mode in READ
        },
    }


def table_of(results: dict[str, Any]) -> str:
    """The results as a table of Markdown, a column for every source and mode."""
    columns = [(name, mode) for name in results for mode in READ]

    def line(title: str, cell: Any) -> str:
        return f"| {title} | " + " | ".join(cell(results[name], results[name][mode]) for name, mode in columns) + " |"

    def cells(kind: str) -> Any:
        def shown(_: dict[str, Any], found: dict[str, Any]) -> str:
            text = f"{found[kind]['recovered']} of {found[kind]['cells']}"
            zeros, undecided = found[kind]["of these, nobody"], found[kind]["undecided"]
            text += f", {zeros} of them 0" if zeros else ""
            return text + (f" ({undecided} undecided)" if undecided else "")

        return shown

    def insider(kind: str) -> Any:
        def shown(source: dict[str, Any], found: dict[str, Any]) -> str:
            told = found["insider"].get(kind)
            return "–" if told is None else f"{told['told']} of {source['persons']}, {told['excluded']:.0%} excluded"

        return shown

    def pairs(source: dict[str, Any], found: dict[str, Any]) -> str:
        two = found["two releases"]
        text = f"{two['yes']} of {source['persons']}"
        return text + (f" ({two['undecided']} undecided)" if two["undecided"] else "")

    return "\n".join(
        [
            "| | " + " | ".join(f"{name}, {mode}" for name, mode in columns) + " |",
            "|" + "---|" * (len(columns) + 1),
            line("records", lambda source, _: f"{source['records']:,}"),
            line("cells from the chart", cells("chart")),
            line("cells from the table of lifts", cells("table")),
            line("cells from protocol.json alone, told which lifts are on the bound", cells("protocol")),
            line("cells from all public figures, told which lifts are on the bound", cells("all")),
            line("people told by two releases", pairs),
            line(
                "of these pairs, with other weights",
                lambda source, found: f"{found['two releases']['other weights']} of {source['persons']}",
            ),
            line("people told by the level to those who know all others", insider("level")),
            line("by the bound alone", insider("bound")),
            line("by all figures", insider("figures")),
        ]
    )


def page_of(results: dict[str, Any]) -> str:
    """The page of results."""
    return f"""# What public files tell of the exact counts

Made by `python -m benchmarks.reconstruction --census PATH`; all figures are in `reconstruction.json`. The optimum for
LIP 1 of three sources: income given race and sex in 1,000 rows of Adult (*small*), marital status given education in
all of Adult (*adult*), and marital status given education in Census-Income (*census*). *Before* is what was public
before [decision 0026](../../docs/decisions/0026-one-door-for-public-figures.md), *after* what is public now.

{table_of(results)}

A cell is *recovered* if one value of it is left among all whole counts that fit the public figures, and open if
another table that fits is known. For every cell that no simple exchange of people opens, the least and the largest
value are asked of one linear programme each, and then of one integer programme each, whole in the counts of the cell's
own secret, of {NODES} branches; what these leave is *undecided*. The attack on protocol.json is told which lifts are on
the bound, which a real attacker has to guess: it recovers no less than one. *Two releases*: the second source lacks one
person; a person is told if no other cell fits both releases. The people are drawn by cell, one of each, so that rare
cells are as likely as common ones. *Those who know all others* know as well what the person's true published value is,
and try every secret: excluded is the share of wrong secrets that would have given other figures, or a level above the
bound, under the very same weights.

What this does not show: somebody who knows all others and runs the optimiser on every guess compares the weights
themselves, which tell whatever the last rows do, and more where the optimum moves (*other weights*). Rounding cannot
end that. Noise does: [what protecting the frequencies withholds](protection.md).
"""


def quoted(results: dict[str, Any]) -> list[str]:
    """The sentences of ``docs/limitations-figures.md`` that have figures of the results."""

    def each(mode: str, kind: str) -> str:
        return _and(f"{found[mode][kind]['recovered']} of {found['cells']}" for found in results.values())

    def insiders(kind: str) -> str:
        return _and(f"{found['after']['insider'][kind]['told']} of {found['persons']}" for found in results.values())

    def pairs(mode: str, kind: str) -> str:
        return _and(f"{found[mode]['two releases'][kind]} of {found['persons']}" for found in results.values())

    exposed = [found["after"]["all"] for found in results.values()]
    zeros = all(found["of these, nobody"] == found["recovered"] for found in exposed)
    undecided = sum(found["after"]["table"]["undecided"] for found in results.values())
    return [
        f"recovered {each('before', 'table')} counts of three tables from the table of lifts before that, "
        f"{each('before', 'chart')} from its chart, and {each('after', 'table')} from either now "
        f"({undecided} undecided)",
        f"{each('after', 'all')} if it is reported which lifts are on the bound"
        f"{', each of them a zero' if zeros else ''}",
        f"told the value and the secret of {pairs('before', 'yes')} people before, and of {pairs('after', 'yes')} now",
        f"know the secret of {insiders('bound')} people from the bound alone, and of {insiders('figures')} from all "
        "figures together",
        f"the weights differed in {pairs('after', 'other weights')} pairs",
    ]


def _and(parts: Iterable[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def main() -> None:
    """Attack the sources, and write what was recovered."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--census", type=Path, help="Census-Income as parquet, the third source")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    chosen = parser.parse_args()
    results: dict[str, Any] = {}
    for name, joint in sources(chosen.census).items():
        results[name] = measured(joint)
        print(name, json.dumps(results[name]), flush=True)
        (chosen.results / "reconstruction.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (chosen.results / "reconstruction.md").write_text(page_of(results), encoding="utf-8")


if __name__ == "__main__":
    main()
