"""Rule forecast: whether a release would meet the rules of disclosure control, and what would mend it cheapest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from funnel.disclosure.rule_texts import breaches_sentence, rules_sentence
from funnel.disclosure.rules import Disclosure
from funnel.disclosure.suggest import Suggestion, suggest
from funnel.guarantees import parse_guarantee
from funnel.joint import Joint
from funnel.planning import PlanRow, best_first, plan
from funnel.progress import Progress
from funnel.spec import ReleaseSpec
from funnel.wording import listed


@dataclass(frozen=True)
class Kept:
    """What the best mechanism that may be used keeps of the published columns, before grouping and after.

    Attributes
    ----------
    before, after : float or None
        I(X;Y) in nats; None where no mechanism meets the guarantee.
    share : float or None
        After grouping, of H(X) of the grouped columns.
    mechanism : str or None
    """

    before: float | None
    after: float | None
    share: float | None
    mechanism: str | None


@dataclass(frozen=True, eq=False)
class RuleForecast:
    """What a plan tells of disclosure control.

    Attributes
    ----------
    found : Disclosure
    refuses : bool
        Whether a release that breaks a rule would be refused.
    asked : bool
        Whether a suggestion was asked for.
    suggestion : Suggestion or None
        None where nothing breaks a rule, or none was asked for.
    kept : mapping of guarantee to Kept
        With the suggestion.
    """

    found: Disclosure
    refuses: bool
    asked: bool
    suggestion: Suggestion | None
    kept: Mapping[str, Kept]

    def to_dict(self, guarantee: str) -> dict[str, Any]:
        """As JSON, with what is kept under one of the guarantees."""
        kept = self.kept.get(guarantee)
        return {
            "passes": self.found.passes,
            "broken": list(self.found.broken),
            "refused": self.refuses and not self.found.passes,
            "small_cells": int(self.found.small.sum()),
            "dominated": int(self.found.dominated.any(axis=0).sum()),
            "alone": self.found.n_alone,
            "combinations": self.found.combinations,
            "columns": list(self.found.columns()) if not self.found.passes else [],
            "suggestion": None if self.suggestion is None else self.suggestion.to_dict(),
            "kept": None if kept is None else vars(kept),
        }

    def lines(self) -> Iterator[str]:
        """What a console says of it."""
        if self.found.passes:
            held = "all of this holds" if self.found.joint.bounds is None else "noise leaves no breach beyond doubt"
            yield f"disclosure control: {rules_sentence(self.found.rules)}; {held}"
        else:
            consequence = "a release would be refused" if self.refuses else "a release would tell of it"
            hint = "" if self.asked else "; --suggest proposes which values to group"
            yield f"disclosure control: {breaches_sentence(self.found)}; {consequence}{hint}"
        if self.suggestion is not None:
            yield from self.suggested()
            yield ""
            yield from self.suggestion.toml.splitlines()

    def suggested(self) -> Iterator[str]:
        """What the suggestion keeps, without its lines for the spec; nothing if there is none."""
        if self.suggestion is None:
            return
        grouping = self.suggestion.grouping
        certain = "the most that the rules allow" if grouping.is_best else f"at most {grouping.bound:.4f} are possible"
        yield (
            "with the lines below, in place of sections of the same name, H(secret) + H(published) is "
            f"{grouping.kept:.4f} of {grouping.before:.4f} nats, {certain}; "
            f"{len(self.suggestion.joint.inputs):,} published combinations are left"
        )
        if empty := [axis.column for axis, of in zip(grouping.table.axes, grouping.of, strict=True) if not of.any()]:
            out = "it" if len(empty) == 1 else "them"
            yield f"nothing is left of {listed(empty)}: leave {out} out of publish instead"
        for guarantee, kept in self.kept.items():
            if kept.after is not None and kept.share is not None:
                before = "nothing" if kept.before is None else f"{kept.before:.4f} nats"
                yield (
                    f"{guarantee}: {kept.mechanism} keeps {kept.after:.4f} nats ({kept.share:.1%} of H(X)) then, "
                    f"{before} as it is"
                )


def forecast_rules(
    spec: ReleaseSpec,
    joint: Joint,
    compared: Sequence[tuple[str, Sequence[PlanRow]]],
    suggesting: bool,
    progress: Progress,
) -> RuleForecast:
    """Hold public counts against the rules of a spec and, if asked, compute what would mend them.

    Parameters
    ----------
    spec : ReleaseSpec
    joint : Joint
        Public counts.
    compared : sequence of (guarantee, rows)
        What the plan found for these counts.
    suggesting : bool
    progress : callable

    Raises
    ------
    DataError
        If a suggestion is asked for, and no grouping meets the rules.
    """
    joint = joint.by_class
    found = Disclosure(joint, spec.rules)
    suggestion = None
    kept: dict[str, Kept] = {}
    # Of noisy counts few are surely small; groups are made so that none looks small, which noise then changes less.
    if suggesting and not Disclosure(joint.as_published, found.rules).passes:
        progress("grouping values", 0, None)
        suggestion = suggest(spec, joint, found.rules)
    if suggestion is not None:
        for guarantee, rows in compared:
            first = _best(rows)
            # The others were worse before, and fitting them takes longest.
            after = plan(
                suggestion.joint,
                parse_guarantee(guarantee),
                None if first is None else [first.mechanism],
                spec.mechanism.reads_secret,
                spec.mechanism.time_limit,
                progress,
                weights=spec.mechanism.weights,
            )
            kept[guarantee] = _kept(first, _best(after))
    return RuleForecast(found, spec.disclosure.refuses(spec.frequencies.protection), suggesting, suggestion, kept)


def _kept(first: PlanRow | None, then: PlanRow | None) -> Kept:
    return Kept(
        None if first is None else first.utility,
        None if then is None else then.utility,
        None if then is None else then.share,
        None if then is None else then.mechanism,
    )


def _best(rows: Sequence[PlanRow]) -> PlanRow | None:
    """The most useful mechanism that may be used."""
    return next((row for row in best_first(rows) if row.reason is None and row.utility is not None), None)
