"""Cross tables of wide releases: every table of two and of three columns, published beside its target and the truth.

``python -m benchmarks.cross_tables [--census census_income_kdd.parquet]`` makes releases of twelve columns of Adult
and of Census-Income with ``funnel release``, without the secret and with it. Every cell of every table of two and of
three published columns is counted in the records, in the snapshot that they were drawn from, and on average over all
draws of the protocol (the target). Writes ``benchmarks/results/cross-tables.json`` and ``cross-tables.md``.
"""

from __future__ import annotations

import argparse
import itertools
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.rows import Row, save_as_they_come, table
from benchmarks.whole_record_cases import CENSUS_SPEC, SPEC
from funnel import load_release
from funnel.joint import FloatArray, IntArray
from funnel.recount.classes import PlainClasses

# Cells of which fewer records are expected to change, as a variance, are too discrete for a z-score.
_LEAST_VARIANCE = 5.0


@dataclass(frozen=True, eq=False)
class Drawn:
    """A release and the snapshot that it was drawn from.

    Attributes
    ----------
    columns : tuple of str
        Of a record, without the secret.
    secret : str or None
        The published one.
    true, published : ndarray of int64, shape (n, 1 + columns)
        Numbers of values; the first is the secret's, 0 where it is not published.
    sizes : tuple of int
        How many values each of them has.
    of_class : ndarray of int64, shape (n,)
        The class of every true record.
    channel : ndarray, shape (c, classes, c, classes)
        P(t, k | s, g); c is 1 where the secret is not published.
    """

    columns: tuple[str, ...]
    secret: str | None
    true: IntArray
    published: IntArray
    sizes: tuple[int, ...]
    of_class: IntArray
    channel: FloatArray

    @classmethod
    def of(cls, project: Path, name: str) -> Drawn:
        """The newest release of a project."""
        release = load_release(project / "releases" / name / "latest")
        (snapshot,) = (project / ".funnel" / name / "snapshots").glob("*/snapshot.parquet")
        source, records = pq.read_table(snapshot), release.table()
        classes = PlainClasses.parse(release.folder.classes.read_bytes())
        inputs = release.protocol.inputs
        secret = next((column for column in inputs.columns if column in source.column_names), None)
        coded, sizes = [], []
        for column in (secret, *classes.columns):
            texts = [part[column].to_pylist() if column else [""] * len(part) for part in (source, records)]
            values = sorted({*texts[0], *texts[1]})
            place = {text: i for i, text in enumerate(values)}
            coded.append([[place[text] for text in part] for part in texts])
            sizes.append(len(values))
        true, published = np.array(coded).transpose(1, 2, 0)
        symbols = list(zip(*(source[column].to_pylist() for column in classes.columns), strict=True))
        number = {symbol: classes.names.index(classes.of(symbol)) for symbol in set(symbols)}
        of_class = np.array([number[symbol] for symbol in symbols])
        secrets = [(text,) for text in sorted(set(source[secret].to_pylist()))] if secret else [()]
        order = [inputs.index((*s, k)) for s in secrets for k in classes.names]
        channel = release.protocol.matrix.T[np.ix_(order, order)]
        shape = (len(secrets), len(classes.names)) * 2
        return cls(classes.columns, secret, true, published, tuple(sizes), of_class, channel.reshape(shape))

    def cells(self, columns: tuple[int, ...]) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Of all cells of a table: published, true and expected counts, and the variance over draws of the protocol.

        A record of (s, g) keeps its other columns where its class stays, and has those of anybody of its class else.
        """
        rest = [column for column in columns if column]
        cells = math.prod(self.sizes[column] for column in rest)
        shape = [self.sizes[column] for column in rest]
        of, shown_of = (np.ravel_multi_index(part.T[rest], shape) for part in (self.true, self.published))
        c, k = self.channel.shape[:2]
        number = (self.true[:, 0] * k + self.of_class) * cells + of
        counts = np.bincount(number, minlength=c * k * cells).reshape(c, k, cells).astype(float)
        stays = np.einsum("sktk->skt", self.channel)
        goes = self.channel.copy()
        goes[:, np.arange(k), :, np.arange(k)] = 0.0
        given = counts.sum(axis=0) / np.maximum(1, counts.sum(axis=(0, 2)))[:, np.newaxis]
        comes = np.einsum("sgtk,kv->sgtv", goes, given)
        if 0 not in columns:
            stays, comes = stays.sum(axis=2, keepdims=True), comes.sum(axis=2, keepdims=True)
        people = counts.sum(axis=2)[:, :, np.newaxis, np.newaxis]
        inside = counts[:, :, np.newaxis]
        within = np.minimum(1.0, comes + stays[..., np.newaxis])
        mean = (inside * within + (people - inside) * comes).sum(axis=(0, 1))
        spread = (inside * within * (1 - within) + (people - inside) * comes * (1 - comes)).sum(axis=(0, 1))
        shown = np.bincount((self.published[:, 0] if 0 in columns else 0) * cells + shown_of, minlength=mean.size)
        truth = counts.sum(axis=1) if 0 in columns else counts.sum(axis=(0, 1))
        return shown.astype(float), truth.ravel(), mean.ravel(), spread.ravel()

    def rows(self, name: str) -> Iterator[Row]:
        """Of all tables of two and of three columns: those without the secret, and those with it."""
        for size, with_secret in itertools.product((2, 3), (False, True) if self.secret else (False,)):
            tables = [
                (*([0] if with_secret else []), *rest)
                for rest in itertools.combinations(range(1, len(self.sizes)), size - with_secret)
            ]
            z, of_truth, off, errors = (np.concatenate(part) for part in zip(*map(self._scores, tables), strict=True))
            farthest = int(np.abs(off).argmax())
            yield {
                "release": name,
                "tables": f"{len(tables)} of {size} columns" + (", one of them the secret" if with_secret else ""),
                "cells": len(z),
                "within target": float((np.abs(z) < 1.96).mean()),
                "largest from target": float(np.abs(z).max()),
                "within truth": float((np.abs(of_truth) < 1.96).mean()),
                "largest from truth": float(np.abs(of_truth).max()),
                "off": float(np.abs(off).max()),
                "error there": float(errors[farthest]),
            }

    def _scores(self, columns: tuple[int, ...]) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Of cells that change enough: z from target and truth, how far the target is off, and the standard error."""
        shown, truth, mean, spread = self.cells(columns)
        some = spread >= _LEAST_VARIANCE
        error = np.sqrt(spread[some])
        return (shown - mean)[some] / error, (shown - truth)[some] / error, (mean - truth)[some], error


def released(spec: str, name: str, folder: Path) -> Drawn:
    """A release of a spec, made in a folder."""
    (folder / f"{name}.toml").write_text(spec, encoding="utf-8")
    command = "from funnel.cli import main; main()"
    subprocess.run([sys.executable, "-c", command, "release", f"{name}.toml"], cwd=folder, check=True)
    return Drawn.of(folder, name)


def specs(census: Path | None) -> Iterator[tuple[str, str, str]]:
    """Title, name and text of every spec."""
    adult = SPEC.read_text(encoding="utf-8").replace('"adult.parquet"', f'"{SPEC.parent / "adult.parquet"}"')
    adult = adult.replace('"../', '"')
    texts = {"Adult": adult}
    if census is not None:
        with_income = CENSUS_SPEC.replace("PATH", str(census.resolve())).replace("publish = [", 'publish = ["income", ')
        texts["Census-Income"] = with_income.replace("lip:1.0", "attribute:1.0")
    for title, text in texts.items():
        name = text.split('name = "')[1].split('"')[0]
        yield f"{title} and income, attribute:1", name, text
        without = text.replace(f'name = "{name}"', f'name = "{name}-lip"').replace("attribute:1.0", "lip:1.0")
        yield f"{title}, lip:1", f"{name}-lip", "".join(without.split('"income",', 1))


def measured(census: Path | None) -> Iterator[Row]:
    """All rows, release by release."""
    for title, name, text in specs(census):
        with tempfile.TemporaryDirectory() as folder:
            yield from released(text, name, Path(folder)).rows(title)


def page(rows: list[Row]) -> str:
    """The rows as a page."""
    head = ["release", "tables", "cells", "z from the target: within 1.96, largest", "z from the truth"]
    head += ["target off the truth, at most", "standard error there"]
    lines = [
        "# Cross tables of wide releases",
        "",
        "`python -m benchmarks.cross_tables`: one release each of [wide tables](../../docs/columns.md) of Adult",
        "(48,842 records) and Census-Income (299,285), made with `funnel release`. Every cell of every table of two",
        "and three of twelve columns, and of the secret with one and two of them where it is published. *Target*:",
        "the mean of the count over all draws of the protocol. *z*: the difference over its standard deviation",
        f"under the protocol, in cells where that is {math.sqrt(_LEAST_VARIANCE):.1f} records or more. 95 % are",
        "expected within 1.96; the largest |z| of independent normal ones is 3.3 of 1,000, and 4.6 of 200,000. Without",
        "the secret the target is the truth, to rounding.",
        "",
        *table(
            head,
            (
                [
                    row["release"],
                    row["tables"],
                    f"{row['cells']:,}",
                    f"{row['within target']:.1%}, {row['largest from target']:.1f}",
                    f"{row['within truth']:.1%}, {row['largest from truth']:.1f}",
                    f"{row['off']:,.1f}",
                    f"{row['error there']:,.1f}",
                ]
                for row in rows
            ),
        ),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--census", type=Path)
    save_as_they_come(measured(parser.parse_args().census), "cross-tables", page)
