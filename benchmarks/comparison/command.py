"""Releases as the command makes them of a table that nobody has prepared: `funnel init`, then `funnel release`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import funnel
from benchmarks.comparison.releases import Release
from benchmarks.comparison.tables import BoolArray, Study, Trial
from funnel.alphabet import CLASS_COLUMN
from funnel.joint import FloatArray, IntArray
from funnel.settings.source import SourceSettings

MISSING = SourceSettings.model_fields["missing_label"].default


def by_command(trial: Trial, random: np.random.Generator) -> Release:
    """All columns with the secret, by a spec as `funnel init` writes it; its draws are from secure bits.

    Raises
    ------
    ChildProcessError
        If a command fails, or the spec has another bound than the one that the page states.
    """
    study, place = trial.study, TemporaryDirectory()
    folder, (secret, *_) = Path(place.name), study.columns
    pq.write_table(pa.Table.from_pandas(study.frame(trial.inside)), folder / "people.parquet")
    published = ",".join(study.columns)
    _run(folder, "init", "people.parquet", "--secret", secret, "--publish", published, "-o", "people.toml")
    if '\nguarantee = "attribute:1.0"\n' not in (folder / "people.toml").read_text():
        raise ChildProcessError("funnel init chose another bound than attribute:1.0")
    _run(folder, "release", "people.toml")
    released = funnel.load_release(folder / "releases" / "people")
    table = released.table()
    alone = _alone(study, table)
    codes = _codes(study, alone, table)
    groups = tuple(np.where(single, np.arange(len(single)), single.argmin()) for single in alone)
    # Values of a group are drawn evenly for counting.
    leaves = codes.copy()
    for j, single in enumerate(alone):
        grouped = ~single[codes[:, j]]
        leaves[grouped, j] = random.choice(np.flatnonzero(~single), grouped.sum()) if grouped.any() else 0
    # Of a class the chance of each published secret, given the true one: inputs are of (secret, …, class).
    symbols, matrix, marginal = released.protocol.inputs.symbols, released.protocol.matrix, released.protocol.marginal
    secrets = np.array([study.categories[0].index(symbol[0]) for symbol in symbols])
    shown = np.stack([matrix[secrets == v].sum(axis=0) for v in range(study.sizes[0])])
    classes = np.array([symbol[-1] for symbol in symbols])
    kept = {name: _kept(shown, secrets, np.where(classes == name, marginal, 0)) for name in np.unique(classes)}
    # A target's class is that of the published records with the same other columns.
    class_of = dict(zip(map(tuple, codes[:, 1:].tolist()), table[CLASS_COLUMN].to_pylist(), strict=True))
    anybody = _kept(shown, secrets, marginal)
    known = np.stack([group[values] for group, values in zip(groups[1:], trial.known.T, strict=True)], axis=1)
    names = [class_of.get(tuple(row)) for row in known.tolist()]

    def ratio(influence: Callable[[IntArray], FloatArray]) -> FloatArray:
        assert place.name  # The folder is there as long as this is.
        return released.variance_ratio(lambda rows: influence(_codes(study, alone, rows)))

    keep = np.stack([anybody if name is None else kept[name] for name in names])
    return Release(leaves, keep, grouped=groups, grouped_codes=codes, ratio=ratio)


def _kept(shown: FloatArray, secrets: IntArray, weights: FloatArray) -> FloatArray:
    """P(published secret | secret) of inputs with these weights, shape (c, c); as it is where a secret has none."""
    c = len(shown)
    parts = [weights * (secrets == s) for s in range(c)]
    return np.stack([shown @ part / part.sum() if part.any() else np.eye(c)[s] for s, part in enumerate(parts)])


def _alone(study: Study, table: pa.Table) -> tuple[BoolArray, ...]:
    """Of every column which values are published by themselves; others are grouped, as values of few people are."""
    texts = [[MISSING if name == "?" else name for name in names] for names in study.categories]
    return tuple(np.isin(t, table[c].unique().to_pylist()) for c, t in zip(study.columns, texts, strict=True))


def _codes(study: Study, alone: tuple[BoolArray, ...], table: pa.Table) -> IntArray:
    """Records in the numbers of the study's values; a group has that of the first of its values."""
    found = []
    for column, names, single in zip(study.columns, study.categories, alone, strict=True):
        # A question mark was read as a missing value.
        numbers = {MISSING if name == "?" else name: number for number, name in enumerate(names)}
        group = int(single.argmin())
        found.append(np.array([numbers.get(text, group) for text in table[column].to_pylist()], dtype=np.int64))
    return np.stack(found, axis=1)


def _run(folder: Path, *words: str) -> None:
    done = subprocess.run([sys.executable, "-m", "funnel", *words], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise ChildProcessError(f"funnel {words[0]} failed: {done.stderr.strip().splitlines()[-1]}")
