"""Threshold: values grouped before anything else, until no count of (secret, published combination) is small."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from funnel.alphabet import Alphabet
from funnel.disclosure.suggest import Suggestion, suggest
from funnel.joint import Joint
from funnel.settings.disclosure_rules import Rules
from funnel.settings.recode import Recode
from funnel.spec import ReleaseSpec


def threshold_rules(spec: ReleaseSpec, by_class: bool = False) -> Rules:
    """The rules that values are grouped for: those of [disclosure], and no cell below the threshold."""
    rules = spec.rules_of(by_class)
    return replace(rules, minimum_cell=max(spec.frequencies.threshold, rules.minimum_cell))


def class_rules(spec: ReleaseSpec) -> Rules:
    """The rules that classes of records keep: of a threshold, where there is one."""
    return threshold_rules(spec, True) if spec.frequencies.kind.groups_values else spec.rules_of(True)


def threshold_recode(spec: ReleaseSpec, counted: Joint) -> Suggestion | None:
    """The recoding of every column whose values have to be grouped; of the others that of the spec stays.

    A value that fewer records have than the threshold is not named in that of its group.

    Parameters
    ----------
    spec : ReleaseSpec
    counted : Joint
        Exact counts after the recoding of the spec.

    Raises
    ------
    DataError
        If no grouping leaves two values.
    """
    rules = threshold_rules(spec)
    return suggest(spec, counted, rules, named_from=rules.minimum_cell)


def class_recode(spec: ReleaseSpec, counted: Joint) -> dict[str, Recode]:
    """The same where records are counted by their class, which keep the rules by themselves.

    What is grouped are values of single columns that too few records have.
    """
    rules, recode = threshold_rules(spec), dict[str, Recode]()
    for column in counted.inputs.columns:
        found = suggest(spec, _values_of(counted, column), Rules(rules.minimum_cell, 1.0, 1.0), rules.minimum_cell)
        recode.update({} if found is None else found.recode)
    return recode


def _values_of(counted: Joint, column: str) -> Joint:
    """Counts of the values of one column, whatever the secret."""
    place = counted.inputs.columns.index(column)
    totals: Counter[str] = Counter()
    for symbol, count in zip(counted.inputs.symbols, counted.counts.sum(axis=0).tolist(), strict=True):
        totals[symbol[place]] += count
    everybody = Alphabet(counted.secret.columns, (("",) * len(counted.secret.columns),))
    values = Alphabet((column,), tuple((text,) for text in totals))
    return Joint(np.array([list(totals.values())], dtype=np.int64), everybody, values)
