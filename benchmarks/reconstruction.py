"""What the public files of a release tell of the exact counts of (secret, published): attacks, and cells recovered.

    python benchmarks/reconstruction.py FOLDER [--neighbour FOLDER] [--json RESULT]

The attacks read ``protocol.json`` and ``report.html`` of a release folder, and know how many records there are; the
internal counts are read afterwards, to say how many cells were recovered exactly. A cell counts as recovered if what
the files say leaves one value for it (decided by HiGHS: smallest and largest value of the cell over all whole counts
that fit), and for attacks that guess, if the guess is right.
"""

from __future__ import annotations

import argparse
import html
import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from funnel.joint import FloatArray, IntArray
from funnel.release.documents import read_joint
from funnel.release.public import lift_step, share_step

# Branches of one integer programme, and programmes of one attack: work, not seconds.
NODES, PROGRAMMES = 1, 4


@dataclass
class Public:
    """What the public files say, as numbers with the interval that their rounding leaves."""

    n: int
    weights: FloatArray
    marginal: list[Fraction]
    prior: list[tuple[float, float]]
    level: str
    secrets: int
    lifts: dict[tuple[int, int], tuple[float, float]]
    dots: dict[int, list[float]]
    beliefs: list[tuple[float, float]]
    shares: list[tuple[float, float]]
    secret_labels: list[str] = field(default_factory=list)


def interval(text: str) -> tuple[float, float] | None:
    """The values that a written number may stand for: half a unit of its last digit to either side."""
    plain = text.replace("\u00a0", "").replace("%", "").replace(",", "").strip()
    if not re.fullmatch(r"\d+(\.\d+)?", plain):
        return None
    unit = 10.0 ** -len(plain.partition(".")[2])
    scale = 100.0 if "%" in text else 1.0
    return (float(plain) - unit / 2) / scale, (float(plain) + unit / 2) / scale


def rows_of(page: str, caption: str) -> list[list[list[str]]]:
    """Tables whose caption begins so, each a list of rows of texts, the head first."""
    found = []
    for table in re.findall(r"<table.*?</table>", page, flags=re.DOTALL):
        words = " ".join(re.sub(r"<[^>]+>", "", re.search(r"<caption.*?</caption>", table, re.DOTALL)[0]).split())  # type: ignore[index]
        if words.startswith(caption):
            found.append(
                [
                    [
                        html.unescape(re.sub(r"<[^>]+>", "", cell)).strip()
                        for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.DOTALL)
                    ]
                    for row in re.findall(r"<tr.*?</tr>", table, flags=re.DOTALL)
                ]
            )
    return found


def dots_of(page: str, secrets: list[str]) -> dict[int, list[float]]:
    """The lifts that the coordinates of the chart's dots give, line by line, in the order they are drawn in."""
    if 'id="lift-figure' not in page:
        return {}
    chart = page[page.index('id="lift-figure') :]
    chart = chart[: chart.index("</svg>")]
    ticks = re.findall(r'x="([\d.]+)" y="[\d.]+" transform="[^"]*">([÷×] [\d.]+|no change)<', chart)
    places = [(0.0 if t[0] == "n" else math.log(float(t[2:])) * (1 if t[0] == "×" else -1), float(x)) for x, t in ticks]
    zero = next(x for value, x in places if value == 0)
    value, end = max(places)
    found: dict[float, list[float]] = {}
    for x, y in re.findall(r'<use [^>]*x="([\d.]+)" y="([\d.]+)"', chart):
        found.setdefault(float(y), []).append(math.exp((float(x) - zero) * value / (end - zero)))
    return {s: found[y] for s, y in enumerate(sorted(found)) if len(found) == len(secrets)}


def read_public(folder: Path) -> Public:
    """What is public of a release."""
    protocol = json.loads((folder / "protocol.json").read_text(encoding="utf-8"))
    package = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))
    page = (folder / "report.html").read_text(encoding="utf-8")
    whole = int(protocol["denominator"])
    n = int(package["funnel:privacy"]["records"])
    weights = np.array([[int(w) / whole for w in row] for row in protocol["weights"]])
    blocks = rows_of(page, "Lift of each value")
    secrets = [label for block in blocks for label in block[0][1:] if not label.startswith("Largest ratio")]
    lifts, offset = {}, 0
    for block in blocks:
        for y, row in enumerate(block[1:]):
            for s, text in enumerate(row[1:]):
                if (found := interval(text)) is not None and offset + s < len(secrets):
                    lifts[offset + s, y] = found
        offset += len(block[0]) - 1
    if len(repr(protocol["guarantee"]["level"])) <= 6:
        lifts = widened(lifts, page, weights, protocol["prior"]["probabilities"], n)
    told = [(row[1], row[-2], row[-1]) for table in rows_of(page, "What can be believed") for row in table[1:]]
    # Shares of the present software are multiples of a step; of the one before, of their last digit.
    probabilities = protocol["prior"]["probabilities"]
    step = share_step(n)
    if not multiples(probabilities, step):
        step = 1e-4
    prior = [(0.0 if p <= step else p - step / 2, p + step / 2) for p in probabilities]
    beliefs = [(0.0, 1.0) if (b := interval(text[0])) is None else b for text in told]
    if step > 1e-4:
        middles = [(low + high) / 2 for low, high in beliefs]
        beliefs = [(0.0 if p <= 1.0001 * step else p - step / 2, p + step / 2) for p in middles]
    return Public(
        n,
        weights,
        [Fraction(int(w), whole) for w in protocol["marginal"]],
        prior,
        repr(protocol["guarantee"]["level"]),
        len(secrets) or len(beliefs),
        lifts,
        dots_of(page, secrets),
        beliefs,
        [],
        secrets,
    )


def widened(
    lifts: dict[tuple[int, int], tuple[float, float]], page: str, weights: FloatArray, prior: list[float], n: int
) -> dict[tuple[int, int], tuple[float, float]]:
    """The intervals of lifts under the rule of the present software, which everybody may read."""
    shares = [interval(row[1]) for table in rows_of(page, "What can be believed") for row in table[1:]]
    outputs = weights @ np.array(prior) / sum(prior)
    found = {}
    for (s, y), (low, high) in lifts.items():
        value, share = (low + high) / 2, shares[s]
        if share is None or value <= 0:
            continue
        step = lift_step(value, n * (share[0] + share[1]) / 2 * float(outputs[y]))
        found[s, y] = (0.0 if value <= step else value - step / 2, value + step / 2)
    return found


def multiples(values: Iterable[float], unit: float) -> bool:
    """Whether all are multiples of a unit."""
    return all(abs(value / unit - round(value / unit)) < 1e-6 for value in values)


class Whole:
    """Whole counts (c, a) that fit linear conditions; asks HiGHS which cells they leave no choice."""

    def __init__(self, secrets: int, inputs: int, n: int) -> None:
        self.shape = (secrets, inputs)
        self.rows: list[FloatArray] = [np.ones(secrets * inputs)]
        self.low, self.high = [float(n)], [float(n)]
        self.n = n

    def between(self, row: FloatArray, low: float, high: float) -> None:
        """The sum of counts times row (c, a) lies between two numbers."""
        size = max(float(np.abs(row).max()), 1e-12)
        self.rows.append(row.ravel() / size)
        self.low.append(low / size - 1e-7)
        self.high.append(high / size + 1e-7)

    def allows(self, truth: IntArray) -> bool:
        """Whether the true counts meet the conditions: else the attack misread something."""
        values = np.array(self.rows) @ truth.ravel()
        return bool((values >= np.array(self.low) - 1e-6).all() and (values <= np.array(self.high) + 1e-6).all())

    def unique(self) -> dict[tuple[int, int], int]:
        """Cells that have one possible value, as far as the work reaches; empty if nothing fits."""
        found: dict[tuple[int, int], int] = {}
        some = np.zeros(len(self.rows[0]))
        if self._relaxed(some) is None:
            return found
        done = 0
        for i in range(len(some)):
            cost = np.zeros(len(some))
            cost[i] = 1.0
            least, most = self._relaxed(cost), self._relaxed(-cost)
            # Whole numbers only where real ones leave little choice, and as far as the work reaches.
            if least is not None and most is not None and 0.999 < -most - least < 3 and done < PROGRAMMES:
                least, most = self._bound(cost), self._bound(-cost)
                done += 2
            if least is not None and most is not None and math.ceil(least - 1e-6) == math.floor(-most + 1e-6):
                found[divmod(int(i), self.shape[1])] = math.ceil(least - 1e-6)
        return found

    def _result(self, cost: FloatArray) -> Any:
        return milp(
            cost,
            integrality=np.ones(len(cost)),
            bounds=Bounds(0, self.n),
            constraints=LinearConstraint(csr_array(np.array(self.rows)), self.low, self.high),
            options={"node_limit": NODES},
        )

    def _relaxed(self, cost: FloatArray) -> float | None:
        """The least that real numbers allow."""
        found = milp(
            cost,
            bounds=Bounds(0, self.n),
            constraints=LinearConstraint(csr_array(np.array(self.rows)), self.low, self.high),
        )
        return None if found.x is None else float(found.fun)

    def _bound(self, cost: FloatArray) -> float | None:
        """A bound that is proven even where the search is cut short."""
        found = self._result(cost)
        bound = getattr(found, "mip_dual_bound", None)
        return None if bound is None or not math.isfinite(bound) else float(bound)


def input_counts(public: Public) -> list[int] | None:
    """Exact counts of the published values, from the marginal: the weights times whole counts over n."""
    q = np.array([float(m) for m in public.marginal])
    shares, *_ = np.linalg.lstsq(public.weights, q, rcond=None)
    counts = shares * public.n
    near = np.abs(counts - np.round(counts)).max() < 1e-3 and np.round(counts).min() >= 0
    return [round(c) for c in counts] if near and round(float(counts.sum())) == public.n else None


def _frame(public: Public, counts: list[int] | None) -> Whole:
    """What is known of the margins."""
    c, a = public.secrets, public.weights.shape[1]
    whole = Whole(c, a, public.n)
    for x in range(a):
        row = np.zeros((c, a))
        row[:, x] = 1
        low, high = public.prior[x] if counts is None else (counts[x] / public.n, counts[x] / public.n)
        whole.between(row, low * public.n, high * public.n)
    return whole


def _outputs(public: Public, counts: list[int] | None) -> list[tuple[float, float]]:
    if counts is not None:
        return [(float(q), float(q)) for q in public.weights @ np.array(counts) / public.n]
    low, high = np.array(public.prior).T
    return list(zip(public.weights @ low, np.minimum(1, public.weights @ high), strict=True))


def _lift_conditions(
    whole: Whole, public: Public, lifts: dict[tuple[int, int], tuple[float, float]], counts: list[int] | None
) -> None:
    """N(s, y) lies between the limits of the lift times n_s q_y: linear in the counts."""
    outputs = _outputs(public, counts)
    for (s, y), (low, high) in lifts.items():
        for limit, sign in ((low * outputs[y][0], 1), (high * outputs[y][1], -1)):
            row = np.zeros(whole.shape)
            row[s] = sign * (public.weights[y] - limit)
            whole.between(row, 0, math.inf)


def chart(public: Public) -> dict[tuple[int, int], int]:
    """From the coordinates of the dots, which give lifts to six digits: linear equations for n_s(x) / n_s."""
    counts, found = input_counts(public), {}
    if counts is None or not public.dots:
        return found
    b = len(public.weights)
    q = public.weights @ np.array(counts) / public.n
    shares, solved = [], True
    for s in range(public.secrets):
        dots = public.dots.get(s, [])
        if len(dots) != b:
            return found
        given, *_ = np.linalg.lstsq(public.weights, np.array(dots) * q, rcond=None)
        shares.append(given)
        solved &= bool(np.abs(given.sum() - 1) < 1e-2)
    # Secrets' own counts from sum_s n_s P(x|s) = n_x.
    sizes, *_ = np.linalg.lstsq(np.array(shares).T, np.array(counts, dtype=float), rcond=None)
    for s, given in enumerate(shares):
        n_s = round(float(sizes[s]))
        for x, share in enumerate(given):
            found[s, x] = round(float(share) * n_s)
    return found if solved else {}


def table(public: Public) -> dict[tuple[int, int], int]:
    """From the table of lifts, by integer programming over the intervals that rounding leaves."""
    return _told_by_lifts(public).unique()


def _told_by_lifts(public: Public) -> Whole:
    counts = input_counts(public)
    whole = _frame(public, counts)
    _beliefs(whole, public)
    _lift_conditions(whole, public, public.lifts, counts)
    return whole


def _beliefs(whole: Whole, public: Public) -> None:
    for s, (low, high) in enumerate(public.beliefs):
        row = np.zeros(whole.shape)
        row[s] = 1
        whole.between(row, low * public.n, high * public.n)


def belief_table(public: Public) -> dict[tuple[int, int], int]:
    """From the shares of the secret and of the published values alone."""
    whole = _frame(public, None)
    _beliefs(whole, public)
    return whole.unique()


def protocol_alone(public: Public) -> tuple[list[int] | None, dict[tuple[int, int], int]]:
    """From protocol.json: counts of values from the marginal, and the conditions of LIP 1, tight ones as equations."""
    counts = input_counts(public)
    whole = _frame(public, counts)
    outputs = _outputs(public, counts)
    everything = {(s, y): (math.exp(-1), math.e) for s in range(public.secrets) for y in range(len(outputs))}
    _lift_conditions(whole, public, everything, counts)
    return counts, whole.unique()


def level(public: Public, truth: IntArray) -> str:
    """How many of the counts where one person has another secret the digits of the level exclude.

    An observer who knows everybody but one person tries both secrets: does only one fit the digits?
    """
    from funnel import LIP, Joint

    weights = np.array([[round(w * 2**40) << 23 for w in row] for row in public.weights.tolist()], dtype=np.uint64)

    def told(counts: IntArray) -> float:
        return LIP(1.0).level_for(Joint.from_counts(counts), weights).value

    digits = len(public.level.replace(".", "").lstrip("0"))
    tolerance = 10.0 ** -(digits - 1) if digits > 4 else 10.0**-3
    here = told(truth)
    cells = np.argwhere(truth > 0)
    differ = 0
    for s, x in cells:
        other = truth.copy()
        other[s, x] -= 1
        other[(s + 1) % len(truth), x] += 1
        differ += abs(told(other) - here) > tolerance
    return f"{differ} of {len(cells)}"


def difference(one: Public, two: Public) -> bool:
    """Whether two releases whose sources differ by one person give that person's value and secret."""
    first, second = input_counts(one), input_counts(two)
    if first is None or second is None:
        return False
    changed = [x for x, (a, b) in enumerate(zip(first, second, strict=False)) if a != b]
    cells = [chart(public) or table(public) for public in (one, two)]
    moved = [cell for cell in cells[0] if cell in cells[1] and cells[0][cell] != cells[1][cell]]
    return len(changed) == 1 and len(moved) == 1 and moved[0][1] == changed[0]


def right(found: dict[tuple[int, int], int], truth: IntArray) -> int:
    """Cells recovered exactly."""
    return sum(int(truth[cell] == value) for cell, value in found.items())


def attacked(folder: Path, neighbour: Path | None) -> dict[str, Any]:
    """All attacks on one release."""
    public = read_public(folder)
    joint = read_joint((folder / "audit" / "joint.json").read_bytes())
    truth = joint.counts
    order = [joint.secret.labels.index(label) for label in public.secret_labels] if public.secret_labels else []
    truth = truth[order] if order else truth
    counts, alone = protocol_alone(public)
    margins = 0 if counts is None else int((np.array(counts) == truth.sum(axis=0)).sum())
    return {
        "records": public.n,
        "cells": int(truth.size),
        "chart": right(chart(public), truth),
        "table": right(table(public), truth),
        "the true counts fit the table": _told_by_lifts(public).allows(truth),
        "protocol": right(alone, truth),
        "counts of values from the marginal": f"{margins} of {truth.shape[1]}",
        "beliefs": right(belief_table(public), truth),
        "level excludes another secret of one person": level(public, truth),
        "one person from two releases": None if neighbour is None else difference(public, read_public(neighbour)),
    }


def main() -> None:
    """Attack the releases that are named, and write what was recovered."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--neighbour", action="append", default=[], type=Path, help="in the order of the folders")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    neighbours = [*chosen.neighbour, *[None] * len(chosen.folders)]
    results = {}
    for folder, neighbour in zip(chosen.folders, neighbours, strict=False):
        results[folder.parent.name] = attacked(folder, neighbour)
        print(folder.parent.name, json.dumps(results[folder.parent.name]), flush=True)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
