"""Groups of columns under the rules of disclosure control: the table of the secret and each group by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from funnel.disclosure.rules import Disclosure
from funnel.groups.records import Records
from funnel.joint import Joint
from funnel.spec import ReleaseSpec


def broken_groups(spec: ReleaseSpec, joint: Joint, groups: Sequence[tuple[str, ...]]) -> list[Disclosure]:
    """What was found of every group whose table with the secret breaks a rule of the spec."""
    records = Records.of(joint)
    found = (Disclosure(records.marginal(group), spec.disclosure.rules) for group in groups)
    return [one for one in found if not one.passes]


def may_be_together(spec: ReleaseSpec, joint: Joint) -> Callable[[tuple[str, ...]], bool]:
    """Whether columns may become one group where groups are chosen: if no rule is broken by that."""
    if not spec.disclosure.refuses(spec.frequencies.protection):
        return lambda columns: True
    records, rules = Records.of(joint), spec.disclosure.rules
    return lambda columns: Disclosure(records.marginal(columns), rules).passes
