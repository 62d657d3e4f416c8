"""Weighted frequencies as they are published: shares of the population that classes of survey weights stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from funnel.joint import FloatArray, Joint
from funnel.numbers import numbers_of
from funnel.release.public.rounding import public_shares, share_step
from funnel.release.report_parts import Weighted, WeightedColumn, WeightedValue
from funnel.spec import ReleaseSpec

# Values that are told of each column, the most common ones.
MAX_VALUES = 30


@dataclass(frozen=True)
class ClassWeights:
    """What every class of survey weights stands for.

    Attributes
    ----------
    column : str
        The published column of the classes.
    means : mapping of class to float
        Of every class that there can be its mean; missing weights count nothing.
    """

    column: str
    means: Mapping[str, float]

    @classmethod
    def of(cls, spec: ReleaseSpec) -> Self | None:
        """As a spec says it, with the recoding that the values were made by; None without weights."""
        if spec.weight is None:
            return None
        labels = spec.recode[spec.weight].bin_labels
        told = zip(labels, numbers_of(spec, spec.weight, labels), strict=True)
        return cls(spec.weight, {label: float(mean) for label, mean in told if mean is not None})


def public_weighted(joint: Joint, weights: ClassWeights | None) -> Weighted | None:
    """Weighted shares of the values of every column beside the weights; None without weights.

    Shares of records are multiples of the step of all public shares. Weighted ones are multiples of a step that is at
    least ten of the heaviest records, so that no record moves one by more than a tenth of it.

    Parameters
    ----------
    joint : Joint
        The frequencies that public documents are made of.
    weights : ClassWeights or None
    """
    if weights is None:
        return None
    records = joint.counts.sum(axis=0)
    place = joint.inputs.columns.index(weights.column)
    of_record = np.array([weights.means.get(symbol[place], 0.0) for symbol in joint.inputs.symbols]) * records
    heaviest, n = max(weights.means.values()), int(records.sum())
    # As many records of the heaviest class would weigh as much.
    step = share_step(max(1, int(of_record.sum() / heaviest))) if heaviest > 0 else share_step(n)
    return Weighted(
        weight=weights.column,
        step=step,
        columns=tuple(
            _column(joint, j, records.astype(np.float64), of_record, share_step(n), step)
            for j, column in enumerate(joint.inputs.columns)
            if column != weights.column
        ),
    )


def _column(
    joint: Joint, place: int, records: FloatArray, weighed: FloatArray, step: float, coarser: float
) -> WeightedColumn:
    codes: dict[str, int] = {}
    of_symbol = np.array([codes.setdefault(symbol[place], len(codes)) for symbol in joint.inputs.symbols])
    people = np.bincount(of_symbol, weights=records, minlength=len(codes))
    heavy = np.bincount(of_symbol, weights=weighed, minlength=len(codes))
    shares = public_shares(people / people.sum(), step)
    weighted = public_shares(heavy / max(float(heavy.sum()), 1e-300), coarser)
    labels = list(codes)
    enough = [x for x in range(len(codes)) if people[x] > 0]
    # By public shares, so that their order tells nothing more.
    common = sorted(enough, key=lambda x: (-shares[x], labels[x]))[:MAX_VALUES]
    return WeightedColumn(
        column=joint.inputs.columns[place],
        rows=tuple(WeightedValue(label=labels[x], share=float(shares[x]), weighted=float(weighted[x])) for x in common),
        total=len(enough),
    )
