"""Threshold: values grouped before anything else, until no count of (secret, published combination) is small."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from funnel.alphabet import Alphabet
from funnel.disclosure.suggest import Suggestion, suggest
from funnel.joint import Joint
from funnel.protocol import INVARIANT
from funnel.settings.disclosure_rules import Rules
from funnel.settings.recode import Recode
from funnel.spec import ReleaseSpec
from funnel.wording import listed, toml_text


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


def blank_columns(spec: ReleaseSpec, found: Suggestion | None) -> tuple[str, ...]:
    """Published columns of which a grouping leaves one value, and the spec does not accept that."""
    if found is None:
        return ()
    grouping = found.grouping
    blank = [axis.column for axis, of in zip(grouping.table.axes, grouping.of, strict=True) if not of.any()]
    return tuple(column for column in blank if column in spec.inputs and column not in spec.disclosure.blank)


def why_blank(spec: ReleaseSpec, columns: Sequence[str]) -> str:
    """What is wrong with columns that would be published as one value, and what to write instead."""
    several = "each of the columns" if len(columns) > 1 else "the column"
    why_not = spec.not_by_class
    whole = (
        f'write mechanism = "{INVARIANT}", which publishes whole records with all columns, or '
        if why_not is None
        else "write "
    )
    accepted = ", ".join(map(toml_text, (*spec.disclosure.blank, *columns)))
    return (
        f"so that no combination has fewer than {spec.frequencies.threshold:,} records, all values of {several} "
        f'{listed(columns)} would be one, "any value" in every record; {whole}protection = "noise" in [frequencies], '
        f"or publish fewer columns; to publish it so, write blank = [{accepted}] in [disclosure]"
    )


def _values_of(counted: Joint, column: str) -> Joint:
    """Counts of the values of one column, whatever the secret."""
    place = counted.inputs.columns.index(column)
    totals: Counter[str] = Counter()
    for symbol, count in zip(counted.inputs.symbols, counted.counts.sum(axis=0).tolist(), strict=True):
        totals[symbol[place]] += count
    everybody = Alphabet(counted.secret.columns, (("",) * len(counted.secret.columns),))
    values = Alphabet((column,), tuple((text,) for text in totals))
    return Joint(np.array([list(totals.values())], dtype=np.int64), everybody, values)
