"""Threshold: values grouped before anything else, until no count of (secret, published combination) is small."""

from __future__ import annotations

from funnel.disclosure.rules import Rules
from funnel.disclosure.suggest import suggest
from funnel.joint import Joint
from funnel.settings.recode import Recode
from funnel.spec import ReleaseSpec


def threshold_rules(spec: ReleaseSpec) -> Rules:
    """The rules that values are grouped for: those of [disclosure], and no cell below the threshold."""
    rules = spec.disclosure.rules
    return Rules(max(spec.frequencies.threshold, rules.minimum_cell), rules.dominance, rules.unique_share)


def threshold_recode(spec: ReleaseSpec, counted: Joint) -> dict[str, Recode]:
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
    found = suggest(spec, counted, rules, named_from=rules.minimum_cell)
    return {} if found is None else dict(found.recode)
