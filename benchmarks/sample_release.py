"""The first picture of the README: a cross table of the sample, true and published, and what observers can believe.

``python -m benchmarks.sample_release [RELEASE]`` reads the release that ``make release`` has left, or another one of
the same columns, with its internal counts. The figures go to ``benchmarks/results/sample-release.json`` and
``sample-release.md`` and into the tables of the README, the picture to ``docs/pictures/sample.svg``. ``--picture``
draws it from the figures that are kept.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.rows import RESULTS, Row, save, table
from funnel import Joint, Protocol, load_release
from funnel.analysis.release import Release
from funnel.release.documents import JointDocument

ROOT = Path(__file__).parents[1]
LATEST = ROOT / "releases" / "adult-income" / "latest"
README, PICTURE = ROOT / "README.md", ROOT / "docs" / "pictures" / "sample.svg"
EDUCATION = ["Below high school", "HS-grad", "Some-college", "Associate", "Bachelors", "Postgraduate"]
INCOME, HIGH = ["<=50K", ">50K"], 1
# The person of the table of the README, in the order of the columns of the release.
PERSON = {"education": "Bachelors", "sex": "Male", "age": "40 and over"}
EPSILON = 1.0
_TRUE, _PUBLISHED = "true", "published"


def cells(joint: Joint, protocol: Protocol, records: pd.DataFrame) -> list[Row]:
    """Education by income: true and published counts, and the standard error that the random changes give a count."""
    read = joint.over_published(protocol.inputs.columns)
    counts, channel = read.counts.sum(axis=0), protocol.weights_for(read.inputs) / float(protocol.denominator)
    places = [protocol.inputs.columns.index(name) for name in ("education", "income")]
    found = []
    for education, income in itertools.product(EDUCATION, INCOME):
        inside = np.array([(x[places[0]], x[places[1]]) == (education, income) for x in read.inputs.symbols])
        shown = int(((records["education"] == education) & (records["income"] == income)).sum())
        ends_here = channel[inside].sum(axis=0)
        error = float(np.sqrt(counts @ (ends_here * (1 - ends_here))))
        row = {"education": education, "income": income, _TRUE: int(counts[inside].sum()), _PUBLISHED: shown}
        found.append({**row, "error": round(error, 1)})
    return found


def beliefs(joint: Joint, protocol: Protocol) -> list[Row]:
    """For every set of other columns and their values: the belief in a high income, before and after a record is seen.

    The observer knows the true shares and these values of a person. Least and largest are over all published records.
    """
    read = joint.over_published(protocol.inputs.columns)
    channel = protocol.weights_for(read.inputs) / float(protocol.denominator)
    columns, c = joint.inputs.columns, len(joint.secret)
    # P(s, u, y) at [s, u, y]; the secret is the slowest of what is read.
    masses = (channel * read.p_input).T.reshape(c, len(joint.inputs), -1)
    found = []
    for size in range(len(columns) + 1):
        for known in itertools.combinations(range(len(columns)), size):
            values = sorted({tuple(u[j] for j in known) for u in joint.inputs.symbols})
            for value in values:
                those = [tuple(u[j] for j in known) == value for u in joint.inputs.symbols]
                seen = masses[:, those].sum(axis=1)
                after = seen[HIGH][seen.sum(axis=0) > 0] / seen.sum(axis=0)[seen.sum(axis=0) > 0]
                before = float(joint.p[HIGH, those].sum() / joint.p[:, those].sum())
                row = {"knows": dict(zip((columns[j] for j in known), value, strict=True)), "before": round(before, 4)}
                found.append({**row, "least": round(float(after.min()), 4), "most": round(float(after.max()), 4)})
    return found


def cross_table(rows: list[Row]) -> list[str]:
    """The lines of the cross table in Markdown."""
    by = {(row["education"], row["income"]): row for row in rows if "income" in row}
    head = ["education", *(f"{income}, {which}" for income in INCOME for which in (_TRUE, _PUBLISHED))]
    return table(
        head,
        [[name, *(f"{by[name, i][which]:,}" for i in INCOME for which in (_TRUE, _PUBLISHED))] for name in EDUCATION],
    )


def belief_table(rows: list[Row]) -> list[str]:
    """The lines of what observers can believe of one person, in Markdown: each knows one column more."""
    steps = [dict(itertools.islice(PERSON.items(), known)) for known in range(len(PERSON) + 1)]
    return _beliefs_of([row for row in rows if row.get("knows") in steps])


def _beliefs_of(rows: list[Row]) -> list[str]:
    found = [
        [", ".join(row["knows"].values()) or "nothing", *(f"{row[key]:.1%}" for key in ("before", "least", "most"))]
        for row in rows
    ]
    return table(["the observer knows", "belief in >50K before", "least after", "largest after"], found)


def with_tables(readme: str, rows: list[Row]) -> str:
    """The README with both tables of these figures in the place of those that begin with the same line."""
    lines = readme.splitlines()
    for new in (cross_table(rows), belief_table(rows)):
        first = lines.index(new[0])
        length = sum(1 for _ in itertools.takewhile(lambda line: line.startswith("|"), lines[first:]))
        lines[first : first + length] = new
    return "\n".join(lines) + "\n"


def page(rows: list[Row]) -> str:
    """The page of results."""
    errors = [row["error"] for row in rows if "error" in row]
    lines = [
        "# The sample, true and published",
        "",
        "Made by `python -m benchmarks.sample_release` of the release that `make release` makes.",
        "",
        *cross_table(rows),
        "",
        f"The random changes give these counts a standard error of {min(errors):.0f} to {max(errors):.0f} records; the "
        "noise of the counts that the protocol was made for comes on top of that.",
        "",
        *_beliefs_of([row for row in rows if "knows" in row]),
        "",
    ]
    return "\n".join(lines)


def picture(rows: list[Row]) -> Figure:
    """The true table, the published one, and beliefs before and after."""
    figure = Figure(figsize=(10.5, 3.7), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=(1, 1, 1.5))
    for axis, which in zip(axes, (_TRUE, _PUBLISHED), strict=False):
        _draw_table(axis, [row for row in rows if "income" in row], which)
    axes[1].set_yticks([])
    _draw_beliefs(axes[2], [row for row in rows if "knows" in row])
    return figure


def _draw_table(axis: Axes, rows: list[Row], which: str) -> None:
    counts = np.array([row[which] for row in rows]).reshape(len(EDUCATION), len(INCOME))
    most = max(row[_TRUE] for row in rows)
    axis.imshow(counts, cmap="Blues", vmin=0, vmax=1.2 * most, aspect="auto")
    for (y, x), count in np.ndenumerate(counts):
        axis.text(x, y, f"{count:,}", ha="center", va="center", color="white" if count > 0.6 * most else "black")
    axis.set_xticks(range(len(INCOME)), INCOME)
    axis.set_yticks(range(len(EDUCATION)), EDUCATION)
    axis.tick_params(length=0)
    axis.set_title(f"{which} records", fontsize="medium")


def _draw_beliefs(axis: Axes, rows: list[Row]) -> None:
    before = np.linspace(0, 1, 201)
    odds = np.exp(EPSILON)
    most = np.minimum(before * odds, 1 - (1 - before) / odds)
    least = np.maximum(before / odds, 1 - (1 - before) * odds)
    axis.fill_between(before, least, most, color="0.92", label="allowed")
    axis.plot(before, before, color="0.6", linewidth=0.8)
    names = ["nothing", "one column", "two columns", "all columns"]
    for known, (name, colour) in enumerate(zip(names, ("black", "tab:green", "tab:orange", "tab:red"), strict=True)):
        some = [row for row in rows if len(row["knows"]) == known]
        x = [row["before"] for row in some]
        axis.vlines(x, [row["least"] for row in some], [row["most"] for row in some], color=colour, label=name)
    axis.set_xlim(0, 1)
    axis.set_ylim(0, 1)
    axis.set_xlabel("belief in >50K before the record is seen")
    axis.set_ylabel("least to largest belief after")
    axis.set_title("observers who know …", fontsize="medium")
    axis.legend(fontsize="small", loc="lower right")


def main() -> None:
    """Measure the release, keep the figures, and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("release", nargs="?", default=str(LATEST))
    parser.add_argument("--picture", action="store_true", help="draw the picture from the figures that are kept")
    asked = parser.parse_args()
    kept = RESULTS / "sample-release.json"
    if not asked.picture:
        released = load_release(asked.release)
        assert isinstance(released, Release)
        protocol = released.protocol
        joint = JointDocument.from_json(released.folder.joint.read_bytes()).joint
        save([*cells(joint, protocol, released.table().to_pandas()), *beliefs(joint, protocol)], kept)
    rows = json.loads(kept.read_text(encoding="utf-8"))
    (RESULTS / "sample-release.md").write_text(page(rows), encoding="utf-8")
    README.write_text(with_tables(README.read_text(encoding="utf-8"), rows), encoding="utf-8")
    mpl.rcParams["svg.hashsalt"] = "funnel"
    picture(rows).savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
