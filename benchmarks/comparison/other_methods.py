"""Releases by other methods: k-anonymity, PRAM, and synthetic data.

opendp (with mbi) and anjana are not dependencies of the project: what is not installed is left out and said so.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

import funnel
from benchmarks.comparison.releases import Release, identity, read_secrets
from benchmarks.comparison.tables import Trial
from funnel import Joint
from funnel.joint import FloatArray, IntArray

K, SUPPRESSED = 5, 10
DIAGONAL, ALPHA = 0.8, 0.5
# Smaller cliques (80 MB by default) and fewer rounds (16 a column): with the defaults one release takes many minutes of
# processor time.
AIM_SETTINGS: dict[str, Any] = {"max_size": 1.0, "rounds": 6}


def _hierarchy(names: tuple[str, ...], ordered: bool) -> list[IntArray]:
    """Levels of groups: values, then halves of their number (neighbours, or the commonest apart), then one group."""
    levels = [np.arange(len(names))]
    while levels[-1].max() > 0:
        levels.append(levels[-1] // (2 if ordered or levels[-1].max() < 4 else 4))
    return levels


def k_anonymous(diverse: int | None, close: float | None, trial: Trial, random: np.random.Generator) -> Release:
    """Groups of values for whole columns, and records suppressed, by anjana; other columns are quasi-identifiers."""
    anonymity, study = importlib.import_module("anjana.anonymity"), trial.study
    # Alike values are neighbours: in the order of how often they go with the commonest secret.
    ranks, hierarchies, levels_of = [], {}, []
    shares = np.bincount(trial.inside[:, 0])
    for j, (column, size) in enumerate(zip(study.columns[1:], study.sizes[1:], strict=True), 1):
        table = np.zeros((size, 2))
        np.add.at(table, (trial.inside[:, j], (trial.inside[:, 0] == shares.argmax()).astype(int)), 1)
        order = np.arange(size) if column == "age" else np.argsort(table[:, 1] / np.maximum(table.sum(axis=1), 1))
        rank = np.argsort(order)
        ranks.append(rank)
        levels = _hierarchy(study.categories[j], column == "age")
        levels_of.append(levels)
        hierarchies[column] = {n: np.array([f"{n}:{g}" for g in level], dtype=object) for n, level in enumerate(levels)}
    coded = np.stack([rank[column] for rank, column in zip(ranks, trial.inside.T[1:], strict=True)])
    frame = pd.DataFrame(
        {
            c: pd.Series([f"0:{v}" for v in column], dtype=object)
            for c, column in zip(study.columns[1:], coded, strict=True)
        }
    )
    frame[study.columns[0]] = pd.Series([str(v) for v in trial.inside[:, 0]], dtype=object)
    frame["row"] = np.arange(len(frame))
    asked = [frame, ["row"], list(study.columns[1:]), study.columns[0], K]
    # Texts as objects, which anjana was written for.
    with pd.option_context("future.infer_string", False):
        if diverse is not None:
            out = anonymity.l_diversity(*asked, diverse, SUPPRESSED, hierarchies)
        else:
            out = anonymity.t_closeness(*asked, close, SUPPRESSED, hierarchies)
    level = [int(str(out[c].iloc[0]).split(":")[0]) for c in study.columns[1:]]
    # Of every value of every column its group, and the values of every group.
    groups = [levels[n][rank] for levels, n, rank in zip(levels_of, level, ranks, strict=True)]
    grouped = tuple([np.arange(study.sizes[0]), *groups])
    secrets = out[study.columns[0]].to_numpy().astype(np.int64)
    found = np.array([[int(v.split(":")[1]) for v in out[c]] for c in study.columns[1:]]).T
    codes = np.column_stack([secrets, found])
    leaves = codes.copy()
    for j, group in enumerate(groups, 1):
        order = np.argsort(group, kind="stable")
        sizes = np.bincount(group)
        starts = np.cumsum(sizes) - sizes
        chosen = (random.random(len(codes)) * sizes[codes[:, j]]).astype(np.int64)
        leaves[:, j] = order[starts[codes[:, j]] + chosen]
    # Suppressed records are those of groups of the other columns that are not published.
    published = {tuple(row) for row in np.unique(found, axis=0).tolist()}
    own = np.stack([g[v] for g, v in zip(groups, trial.known.T, strict=True)], axis=1)
    there = np.array([tuple(row) in published for row in own.tolist()])
    evidence = np.where(there[:, np.newaxis], read_secrets(trial, trial.inside[trial.targets, 0]), 1.0)
    return Release(leaves, identity(trial), evidence, grouped, codes)


def invariant_matrix(shares: FloatArray, diagonal: FloatArray, alpha: float) -> FloatArray:
    """Invariant PRAM in two steps, as sdcMicro has it: P(published | true) (rows are true values).

    Parameters
    ----------
    shares : ndarray, shape (c,)
    diagonal : ndarray, shape (c,)
        Of a first matrix, whose other entries of a row are alike.
    alpha : float
        The weight of the invariant matrix beside the identity.
    """
    c = len(shares)
    first = np.tile(((1 - diagonal) / max(c - 1, 1))[:, np.newaxis], (1, c))
    np.fill_diagonal(first, diagonal)
    joint = shares[:, np.newaxis] * first
    # Back from a value to where it may have come from.
    back = (joint / joint.sum(axis=0)).T
    return np.asarray(alpha * first @ back + (1 - alpha) * np.eye(c))


def _draw(matrix: FloatArray, values: IntArray, random: np.random.Generator) -> IntArray:
    """A value of each row of a matrix (c, c) of P(published | true)."""
    limits = np.cumsum(matrix, axis=1)[:, :-1]
    return np.asarray((random.random((len(values), 1)) > limits[values]).sum(axis=1))


def pram_all(trial: Trial, random: np.random.Generator) -> Release:
    """Every column by itself, as offices tune it."""
    return _pram(trial, *draw_columns(trial, random))


def draw_columns(trial: Trial, random: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """PRAM of every column by sdcMicro's defaults (diagonal at least 0.8, alpha 0.5); and the secret's matrix."""
    codes, secret = trial.inside.copy(), np.eye(trial.study.sizes[0])
    for j, size in enumerate(trial.study.sizes):
        shares = np.maximum(np.bincount(codes[:, j], minlength=size), 0.5) / len(codes)
        matrix = invariant_matrix(shares / shares.sum(), random.uniform(DIAGONAL, 1, size), ALPHA)
        secret = matrix if j == 0 else secret
        codes[:, j] = _draw(matrix, codes[:, j], random)
    return codes, secret


def pram_secret(epsilon: float, trial: Trial, random: np.random.Generator) -> Release:
    """The secret alone, under the same bound as funnel: the best invariant channel, of other columns independent."""
    c = trial.study.sizes[0]
    counts = np.bincount(trial.inside[:, 0], minlength=c)
    joint = Joint.from_counts(np.diag(counts))
    found = funnel.optimal(joint, funnel.LDP(epsilon), utility="unchanged", weights="share", gap=1e-4)
    matrix = found.protocol.matrix.T
    codes = trial.inside.copy()
    codes[:, 0] = _draw(matrix, codes[:, 0], random)
    return _pram(trial, codes, matrix)


def response(epsilon: float, trial: Trial, random: np.random.Generator) -> Release:
    """Randomised response of the secret alone, from which tables are estimated by the inverse of the channel."""
    c = trial.study.sizes[0]
    matrix = np.ones((c, c)) + (math.exp(epsilon) - 1) * np.eye(c)
    matrix /= matrix.sum(axis=1)[0]
    codes = trial.inside.copy()
    codes[:, 0] = _draw(matrix, codes[:, 0], random)
    return replace(_pram(trial, codes, matrix), channel=matrix)


def _pram(trial: Trial, codes: IntArray, secret: FloatArray) -> Release:
    keep = np.broadcast_to(secret, (len(trial.targets), *secret.shape))
    shown = codes[trial.targets, 0]
    return Release(codes, keep, secret[trial.candidates, shown[:, np.newaxis]])


def cart(trial: Trial, random: np.random.Generator) -> Release:
    """Column after column from a tree that predicts it by those before, as synthpop does; not private.

    Leaves have five records or more, and a value is drawn from those of the leaf.
    """
    from sklearn.tree import DecisionTreeClassifier

    true, sizes = trial.inside, trial.study.sizes
    made = np.empty_like(true)
    order = [*range(1, len(sizes)), 0]
    made[:, order[0]] = random.choice(true[:, order[0]], len(true))
    for place in range(1, len(order)):
        column, before = order[place], order[:place]
        tree = DecisionTreeClassifier(min_samples_leaf=5, random_state=int(random.integers(2**31)))
        tree.fit(_ones(true, before, sizes), true[:, column])
        of_true, of_made = tree.apply(_ones(true, before, sizes)), tree.apply(_ones(made, before, sizes))
        in_leaf = np.argsort(of_true, kind="stable")
        counts = np.bincount(of_true)
        starts = np.cumsum(counts) - counts
        chosen = (random.random(len(made)) * counts[of_made]).astype(np.int64)
        made[:, column] = true[in_leaf[starts[of_made] + chosen], column]
    return Release(made, identity(trial))


def _ones(codes: IntArray, columns: list[int], sizes: tuple[int, ...]) -> FloatArray:
    return np.concatenate([np.eye(sizes[j], dtype=np.float32)[codes[:, j]] for j in columns], axis=1)


def private(name: str, epsilon: float, trial: Trial, random: np.random.Generator) -> Release:
    """A synthetic table by OpenDP, differentially private for whole records (pure ε; the categories are public).

    Its noise is OpenDP's own and cannot be seeded. Records are drawn from the model (``sample``); its default way of
    rounding makes columns dependent that the model takes for independent.
    """
    dp, pl = importlib.import_module("opendp.prelude"), importlib.import_module("polars")
    dp.enable_features("contrib")
    columns = [f"c{j}" for j in range(len(trial.study.sizes))]
    context = dp.Context.compositor(
        data=pl.LazyFrame({c: values for c, values in zip(columns, trial.inside.T, strict=True)}),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=epsilon, delta=0.0),
    )
    algorithm = dp.mbi.MST() if name == "MST" else dp.mbi.AIM(**AIM_SETTINGS)
    keys = {c: list(range(size)) for c, size in zip(columns, trial.study.sizes, strict=True)}
    table = context.query(epsilon=epsilon, delta=0.0).select(*columns).contingency_table(keys=keys, algorithm=algorithm)
    np.random.seed(int(random.integers(2**31)))
    # OpenDP adds a value to every column for those that are not named, and noise may give it a few records.
    made = table.release().synthesize(rows=len(trial.inside), method="sample").select(columns).drop_nulls().to_numpy()
    is_named = ((made >= 0) & (made < np.array(trial.study.sizes))).all(axis=1)
    return Release(made[is_named].astype(np.int64), identity(trial))
