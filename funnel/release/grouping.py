"""Grouping: the groups of a spec made into a protocol, and what becomes of every column; for releases and plans."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from funnel.disclosure import Disclosure
from funnel.disclosure.groups import broken_groups, may_be_together, rules_given_prefixes
from funnel.errors import InfeasibleGuarantee
from funnel.estimation import TableErrors
from funnel.estimation.grouped_errors import grouped_errors
from funnel.groups import GroupedSolution, Shown, publish_groups
from funnel.groups.halves import Halves
from funnel.groups.purposes import values_of
from funnel.groups.robust import made_by_some
from funnel.guarantees import Guarantee
from funnel.guarantees.robust import Robust
from funnel.joint import Joint
from funnel.numbers import numbers_for
from funnel.progress import Progress
from funnel.release.effective_channels import channel_rows, told_channels
from funnel.release.grouped_findings import Choice, FoundColumn
from funnel.spec import ReleaseSpec

# All channels of all stages together may take so many times what one optimisation of a joint release may.
_OPTIMISATIONS: Final = 4
# A robust protocol that keeps less of H(X) is of no use, as elsewhere (`funnel.sample_size`).
_USEFUL: Final = 0.01


def seconds_for_groups(spec: ReleaseSpec) -> float:
    """Seconds of work that all channels may take."""
    return _OPTIMISATIONS * spec.mechanism.time_limit


def choice_of(spec: ReleaseSpec) -> Choice:
    """What of the groups the spec leaves open."""
    if spec.groups.is_auto:
        return "auto"
    return "order" if spec.groups.of is None else "given"


def known_groups(spec: ReleaseSpec) -> tuple[tuple[str, ...], ...]:
    """The groups of a spec; where they are chosen, its columns alone, which are in some group whatever is chosen."""
    return spec.groups.known(spec.publish)


def make_groups(spec: ReleaseSpec, joint: Joint, guarantee: Guarantee, progress: Progress) -> GroupedSolution:
    """The protocol of groups that a spec asks for, the best of those that were tried by its utility.

    Parameters
    ----------
    spec : ReleaseSpec
        With the recoding that the values were made by, where it asks for variance: bins stand for numbers.
    joint : Joint
    guarantee : Guarantee
    progress : callable

    Raises
    ------
    SpecError
        If fewer people are in the table than a channel is made for, or groups cannot keep the guarantee.
    InfeasibleGuarantee
        If the data are too few for a robust guarantee.
    SolverError
        If its bound is not proven, which is a defect.
    """
    # Who proves says nothing of what is made, also not which columns may be one group.
    robust = isinstance(guarantee, Robust)
    known = made_by_some(joint, Halves.of(joint, spec.name)).joint if robust else joint
    made = publish_groups(
        joint,
        spec.publish if spec.groups.of is None else spec.groups.of,
        guarantee,
        people=spec.groups.people,
        time_limit=seconds_for_groups(spec),
        progress=progress,
        together=may_be_together(spec, known),
        rules=rules_given_prefixes(spec),
        # The same people prove, however often it is tried.
        seed=spec.name,
        utility=spec.utility,
        numbers=numbers_for(spec, values_of(joint.inputs)),
    )
    told = share(made.utility / made.entropy) if made.entropy else 1.0
    # A draw spends what may be told of people, so one that is of no use is not made.
    if made.proven is not None and told < _USEFUL:
        rarest = joint.secret.labels[int(joint.counts.sum(axis=1).argmin())]
        raise InfeasibleGuarantee(
            f"the data are too few for this bound: {made.proven.proving:,} people prove next to nothing under "
            f"{guarantee}; group rare values of {', '.join(joint.secret.columns)}, such as {rarest!r}, publish fewer "
            "columns, or use a guarantee that is not robust"
        )
    return made


def found_columns(shown: Shown) -> tuple[FoundColumn, ...]:
    """Of every published column, in the order of the table, what is told of it."""
    protocol = shown.protocol
    of_column = {column: number for number, stage in enumerate(protocol.stages, start=1) for column in stage.columns}
    found = []
    for column in protocol.columns:
        channel = shown.channel([column])
        told, entropy = channel.information, channel.entropy
        found.append(
            FoundColumn(
                column=column,
                group=of_column[column],
                plain=share(shown.plain[column]),
                kept=share(told / entropy) if entropy else 1.0,
                entropy=entropy,
                information=told,
            )
        )
    return tuple(found)


def share(value: float) -> float:
    """A quotient of sums, which may be a hair outside 0 and 1, as a share."""
    return min(1.0, max(0.0, float(value)))


@dataclass(frozen=True, eq=False)
class PlannedGroups:
    """What a grouped release under one guarantee would be.

    Attributes
    ----------
    guarantee : Guarantee
    solution : GroupedSolution
    columns : tuple of FoundColumn
    seconds : float
        That making and proving the protocol took.
    size : int
        Bytes of ``protocol.json``, but for what it says beside the weights.
    broken : list of Disclosure
        Groups that break a rule of [disclosure].
    errors : tuple of TableErrors
        Of estimates of every column and pair, by what a release would tell of its channels.
    """

    guarantee: Guarantee
    solution: GroupedSolution
    columns: tuple[FoundColumn, ...]
    seconds: float
    size: int
    broken: list[Disclosure]
    errors: tuple[TableErrors, ...]

    @property
    def share(self) -> float:
        """I(X;Y) / H(X) of whole records."""
        return share(self.solution.utility / self.solution.entropy) if self.solution.entropy else 1.0

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON-ready values."""
        made = self.solution
        return {
            "guarantee": str(self.guarantee),
            "groups": [list(group) for group in made.groups],
            "reason": made.reason,
            "tried": [
                {
                    "groups": [list(group) for group in one.groups],
                    "schedule": str(one.schedule),
                    "kept": one.kept,
                    "worth": one.worth,
                }
                for one in made.tried
            ],
            "level": made.level,
            "utility": made.utility,
            "entropy": made.entropy,
            "share": self.share,
            "chosen_by": made.chosen_by,
            "explained": dict(made.explained),
            "worth": made.worth,
            "people": made.protocol.people,
            "prefixes": list(made.prefixes),
            "columns": [one.model_dump() for one in self.columns],
            "seconds": self.seconds,
            "protocol_bytes": self.size,
            "disclosure": [
                {"group": list(one.joint.inputs.columns), "broken": list(one.broken)} for one in self.broken
            ],
            "errors": [one.to_dict() for one in self.errors],
        }


def plan_groups(
    spec: ReleaseSpec,
    joint: Joint,
    guarantee: Guarantee,
    progress: Progress,
    clock: Callable[[], float] = time.perf_counter,
) -> PlannedGroups:
    """What a release of these groups would keep under a guarantee, and what it would take.

    Raises
    ------
    SpecError
        As `make_groups`.
    """
    began = clock()
    made = make_groups(spec, joint, guarantee, progress)
    seconds = clock() - began
    shown = Shown.of(joint, made.protocol)
    columns = found_columns(shown)
    size = len(made.protocol.to_json().encode())
    progress("computing what estimates will be worth", 0, None)
    errors = grouped_errors(told_channels(made.protocol, channel_rows(shown, made.protocol.people), joint.n))
    return PlannedGroups(guarantee, made, columns, seconds, size, broken_groups(spec, joint, made.groups), errors)
