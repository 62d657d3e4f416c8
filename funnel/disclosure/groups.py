"""Groups of columns under the rules of disclosure control: the secret and each group, and what channels are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from funnel.disclosure.rules import Disclosure, Rules
from funnel.disclosure.threshold import threshold_rules
from funnel.groups.records import Records
from funnel.joint import Joint
from funnel.spec import ReleaseSpec


def broken_groups(spec: ReleaseSpec, joint: Joint, groups: Sequence[tuple[str, ...]]) -> list[Disclosure]:
    """What was found of every group whose table with the secret breaks a rule of the spec."""
    records = Records.of(joint)
    rules = _asked(spec)
    found = (Disclosure(records.marginal(group), rules) for group in groups)
    return [one for one in found if not one.passes]


def may_be_together(spec: ReleaseSpec, joint: Joint) -> Callable[[tuple[str, ...]], bool]:
    """Whether columns may become one group where groups are chosen: if no rule is broken by that."""
    rules = rules_given_prefixes(spec)
    if rules is None:
        return lambda columns: True
    records = Records.of(joint)
    return lambda columns: Disclosure(records.marginal(columns), rules).passes


def rules_given_prefixes(spec: ReleaseSpec) -> Rules | None:
    """What the table of the secret and what is read has to keep for all who draw from one channel; None for no rule.

    Where a breach is only reported nothing is grouped for it, unless a threshold is asked for.
    """
    if spec.frequencies.protection == "threshold" or spec.disclosure.refuses(spec.frequencies.protection):
        return _asked(spec)
    return None


def _asked(spec: ReleaseSpec) -> Rules:
    return threshold_rules(spec) if spec.frequencies.protection == "threshold" else spec.disclosure.rules
