"""Following: the next version about people who have histories, at the bound that was declared for all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from funnel.errors import SpecError
from funnel.guarantees.base import Guarantee
from funnel.history.aim import Aim, Unchanged
from funnel.history.allowed import Kept, require_posterior
from funnel.history.corrected import right_on_average
from funnel.history.expected import as_expected
from funnel.history.history_status import stand
from funnel.history.kept_rows import KeptRows, digest_of
from funnel.history.observed import Observed
from funnel.history.past import Past
from funnel.history.prove import proven_weights
from funnel.history.row_choice import INSIDE, RowChoice
from funnel.history.score_aims import aim_for
from funnel.history.step import Step
from funnel.history.whole import Whole
from funnel.joint import FloatArray, Joint
from funnel.measures import mutual_information
from funnel.measures.utilities import INFORMATION, Utility
from funnel.progress import Progress, quiet
from funnel.protocol import Protocol
from funnel.solver.budget import Budget
from funnel.solver.invariant import counted
from funnel.solver.optimum import optimal

# Seconds of work for the rows of histories, and the share of a budget that the optimum of the version alone may take.
_SECONDS, _SHARE = 20.0, 0.75
FEWEST_ROWS: Final = 100
"""Second, third, … rows of units are put right on average where these are at least so many; fewer tell nothing.

What is put right follows from what all of them are, and would tell what a few are.
"""


@dataclass(frozen=True, eq=False)
class VersionTerms:
    """What a release, a plan and a panel say of the next version, whoever its people are.

    Parameters
    ----------
    guarantee : Guarantee
        The declared bound: lip, alip, ldp or perfect.
    version : str
        Its name, distinct in the register.
    target : Protocol, optional
        What is aimed at, over the inputs of the version; by default the certified optimum of this version alone, at the
        reserved budget. That of units is one for all rows, read as rows of different people.
    reserve : float
        In (0, 1]: the share of the budget that is used where the histories allow it, so that frequencies may move.
    utility : Utility
        What the effective channel is to reach the most of, and the target where none is given.
    worth : ndarray of shape (a,), optional
        Where the target is invariant: what every input counts whose records stay unchanged, by default by the root of
        its share of the records.
    right : bool
        Whether the table of an invariant version has to be right on average for the people there are, to within a
        record for each value (`funnel.history.corrected`). The effective channel is then theirs.
    budget : float or Budget, optional
        Seconds of processor time of the reference machine, counted as work (`funnel.solver.budget`); by default 20 for
        the rows of histories, and as much as it takes for the target.
    progress : Progress
    kept : KeptRows, optional
        Where rows that were searched before for the same are, and those that are searched are kept.
    """

    guarantee: Guarantee
    version: str
    target: Protocol | None = None
    reserve: float = 1.0
    utility: Utility = INFORMATION
    worth: FloatArray | None = None
    right: bool = False
    budget: float | Budget | None = None
    progress: Progress = quiet
    kept: KeptRows | None = None

    @property
    def aim(self) -> Protocol:
        """The target, which has been chosen."""
        if self.target is None:
            raise ValueError("a version is decided for a target")
        return self.target

    def decide(self, past: Past, observed: Observed, *, read_alone: bool = True, whole: Whole | None = None) -> Step:
        """Decide the version: a channel for every history that people have, at one bound for all versions together.

        Every history h gets rows R(y|x, h) for which P(S | h, y) is within the guarantee for every y, or, where
        P(S | h) is outside it by itself, no worse in any respect than P(S | h). Among them those are chosen for
        which the effective channel tells most of X: its information is convex, so a tangent is a lower bound, and that
        separates over histories (METHOD section 9). The tangent is taken again where it has led, while anything is
        gained. Another utility has tangents too; where it is not convex, only as much of a step is made as it gains by.

        Where the target is invariant, those are chosen instead for which most records stay unchanged, with an effective
        channel that is invariant as well: ``Σ_x p_x W(y|x) = p_y``, so that the table of the version is right on
        average over all draws of its people so far, if people change as the frequencies say (METHOD section 17).

        The rows depend on the frequencies, on how many people have each history, and on nothing else of these people:
        never on the inputs that those with a history really have, unless the table has to be right for these.

        Parameters
        ----------
        past : Past
            What has been published about the people of this register.
        observed : Observed
            The people of this version, as counts.
        read_alone : bool
            Whether the effective channel has to meet the guarantee for this version alone as well, for an analyst who
            downloads it alone with its frequencies and its protocol. Whoever cannot link versions is covered without
            that, since a mean of posteriors within the bound is within it; but not what a reader would conclude who
            takes the published frequencies and W for all there is, as if histories told nothing of the secret.
        whole : Whole, optional
            Where these are only some rows of the version: all of them, for which the target is, and which the effective
            channel has to let meet the guarantee where it is read alone.

        Raises
        ------
        SpecError
            If the guarantee is not on the posterior of the secret, the version is there already, or the target does not
            meet the guarantee or reads something else.
        DataError
            If changes from the last version of some history are missing.
        SolverError
            If a programme fails.

        Notes
        -----
        One small linear programme for every kind of history and round; distributions and proofs are matrix products.
        """
        declared, reserve, target, bound = require_posterior(self.guarantee), self.reserve, self.target, None
        if self.version in {chapter.version for chapter in past.chapters}:
            raise SpecError(f"version {self.version!r} has been published already; give the next one another name")
        joint, inner = observed.joint, inner_bound(declared, reserve)
        if target is None:
            self.progress("optimum of the version alone", 0, None)
            limit = None if self.budget is None else Budget.of(self.budget).part(_SHARE)
            solution = optimal(joint, inner, utility=self.utility, time_limit=limit)
            target = solution.protocol
            if reserve == 1 and self.utility is INFORMATION:
                bound = solution.bound + _hair(joint, declared)
        _check_target(joint if whole is None else whole.joint, declared, target)
        status = stand(past, observed, declared, reserve)
        only_new = len(status.nodes) == 1 and status.nodes[0] == 0
        aim: Aim = aim_for(self.utility, joint, target.matrix)
        # Whom W is an average over.
        people = observed
        if target.is_invariant:
            # Balance asks what people with a history are, and must not ask these people.
            people = observed if only_new or observed.totals is not None else as_expected(past, observed)
            aim = Unchanged.of(past, status, people, counted(joint, "root") if self.worth is None else self.worth)
        is_too_few = whole is not None and target.is_invariant and observed.row > 1 and joint.n < FEWEST_ROWS
        corrects = (
            self.right and not is_too_few and target.is_invariant and (people is not observed or whole is not None)
        )
        # Else W is a mixture that need not be among what the bound is about.
        is_protocol_alone = only_new or read_alone
        # A target for the whole budget leaves no reserve, also of new people.
        reserved = declared if reserve == 1 else inner
        if status.possible is not None:
            reserved = status.possible.for_new_people(reserved)
        deciding = RowChoice(status, people, target, aim, read_alone, whole)
        if whole is not None and is_too_few:
            proven = deciding.silent(whole)
        elif only_new and reserved.holds_for(joint, target.weights) and _is_expected(joint, target):
            proven = proven_weights(status, target.weights[None], np.zeros(1, np.int64), np.zeros(1, np.int64))
        else:
            work, digest = Budget.of(_SECONDS if self.budget is None else self.budget), ""
            if self.kept is not None:
                asked = (
                    past.chapters,
                    observed,
                    str(declared),
                    reserve,
                    read_alone,
                    whole,
                    self.worth,
                    *self.utility.content,
                )
                digest = digest_of(asked, target.weights, target.outputs.symbols, target.is_invariant, work.remaining)
            proven = deciding.best(inner, work, self.progress, self.kept, digest)
        # All rows of a version are brought into balance, and not those that come next by themselves.
        proven, channel = deciding.alone(proven, aim.balanced if whole is None else None)
        if corrects and people is not observed:
            # These rows are in balance for people who change as frequencies say; what is published is of those there.
            proven, channel = replace(deciding, observed=observed).alone(proven, None)
        step = Step(
            version=self.version,
            guarantee=declared,
            reserve=reserve,
            past=past,
            observed=observed,
            target=target,
            channel=channel,
            library=proven.library,
            followed=status.nodes,
            drawn_from=proven.drawn_from,
            utility=mutual_information(joint, channel),
            alone=mutual_information(joint, target),
            bound=min(bound, joint.entropy) if bound is not None and is_protocol_alone else joint.entropy,
            entropy=joint.entropy,
            **proven.figures(status, observed),
        )
        return right_on_average(step, whole) if corrects else step


def inner_bound(declared: Kept, reserve: float) -> Kept:
    """What programmes are solved for: the reserve, and a hair inside, so that proofs by intervals go through."""
    return declared if declared.is_perfect else declared.with_budget(declared.budget * reserve * (1 - INSIDE))


def _hair(joint: Joint, declared: Kept) -> float:
    """What the optimum at the declared budget can exceed that at the inner one by, in nats.

    Mixed with its own distribution of the output by a share λ, a protocol for the declared budget is one for the inner.
    The two give the same output but with probability λ, so their informations are at most ``h(λ) + λ ln a`` apart
    (Alhejji and Smith 2020). ``λ <= m ε e^ε / (e^ε - 1) <= m (1 + ε)`` for a budget smaller by a share m.
    """
    share = 0.0 if declared.is_perfect else min(0.5, INSIDE * (1 + declared.budget))
    uncertain = -share * math.log(share) - (1 - share) * math.log1p(-share) if share else 0.0
    return uncertain + share * math.log(len(joint.inputs))


def _check_target(joint: Joint, guarantee: Kept, target: Protocol) -> None:
    if target.inputs != joint.inputs:
        raise SpecError(
            f"the target reads {list(target.inputs.columns)} with {len(target.inputs)} symbols, which are not the "
            f"{len(joint.inputs)} of this version; fit it to the joint distribution of this version"
        )
    if not guarantee.holds_for(joint, target.weights):
        raise SpecError(f"the target does not meet {guarantee} for this version alone; fit it under that bound")


def _is_expected(joint: Joint, target: Protocol) -> bool:
    """Whether an observer who knows the counts expects every output that anybody can get."""
    seen = joint.counts.any(axis=0)
    return bool((target.weights[:, seen].any(axis=1) | ~target.weights.any(axis=1)).all())
