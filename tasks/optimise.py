"""Optimise: from public frequencies to the protocol, with what every other mechanism would have given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from funnel.disclosure.blank import untold_columns, why_untold
from funnel.errors import InfeasibleGuarantee, ReleaseRefused
from funnel.frequencies.public_counts import Frequencies
from funnel.guarantees import parse_guarantee
from funnel.joint import Joint
from funnel.measures.utilities import Utility
from funnel.pipeline.tasks.step import step, tell
from funnel.planning import MechanismChoice, choose, contenders, drawn_over_versions, of_budget_fraction
from funnel.protocol import Protocol
from funnel.release.cache import Cache
from funnel.release.coarse import coarsened
from funnel.release.comparison import ComparisonDocument, comparison_document
from funnel.release.documents import JointDocument
from funnel.sample_size import too_few
from funnel.spec import ReleaseSpec
from funnel.tradeoff.fitted import FittedRows

PROTOCOL, COMPARISON = "protocol.json", "comparison.json"


@dataclass(frozen=True, eq=False)
class Optimised:
    """The chosen protocol and the comparison it came out of.

    Attributes
    ----------
    protocol : Protocol
    comparison : ComparisonDocument
    cached : bool
        Whether an earlier run made them.
    """

    protocol: Protocol
    comparison: ComparisonDocument
    cached: bool


@step
def optimise(spec: ReleaseSpec, frequencies: Frequencies, workspace: Path, useful: Utility) -> Optimised:
    """Fit what the spec asks for, and choose by the utility that it asks for; cached by content.

    Raises
    ------
    InfeasibleGuarantee
        If the mechanism, or every mechanism, cannot meet the guarantee, or the data are too few for a robust one.
    ReleaseRefused
        If it would tell nothing of a column, and the spec does not accept that.
    """
    cache = Cache(workspace / "protocols")
    asked, joint = spec.mechanism, frequencies.joint.over_published(spec.publish)
    key = cache.key(
        JointDocument.like(joint).content(),
        *_bounds(joint),
        spec.guarantee.canonical,
        *(() if (share := _reserve(spec)) == 1 else (share,)),
        asked.name,
        asked.reads_secret,
        asked.time_limit,
        *(() if asked.weights == "root" else (asked.weights,)),
        *useful.content,
    )
    found = cache.find(key)
    if found is None:
        found = _fit(spec, joint, useful, FittedRows.within(workspace))
        cache.keep(key, found)
        cached = False
    else:
        cached = True
    tell("taken from the cache" if cached else "done")
    protocol = Protocol.from_json(found[PROTOCOL].decode())
    # What is found is kept, so that a spec which accepts it goes on from there.
    if untold := untold_columns(spec, joint, protocol):
        raise ReleaseRefused(why_untold(spec, untold))
    return Optimised(protocol, ComparisonDocument.from_json(found[COMPARISON]), cached)


def _fit(spec: ReleaseSpec, joint: Joint, useful: Utility, kept: FittedRows) -> dict[str, bytes]:
    declared, asked = parse_guarantee(spec.guarantee.canonical), spec.mechanism
    bound = of_budget_fraction(declared, _reserve(spec))
    choice = MechanismChoice(asked.name, asked.reads_secret, asked.time_limit, asked.weights)
    rows = contenders(joint, bound, choice, tell, utility=useful, kept=kept)
    chosen = choose(rows if spec.register is None else drawn_over_versions(rows, asked.name))
    # A draw spends what may be told of people, so one that is of no use is not made.
    if (useless := too_few(joint, bound, [chosen], useful)) is not None:
        # A search that time ended has next to nothing as well, however many records there are.
        ended = "" if chosen.finished else "; the search had not ended either, so raise [mechanism] time_limit first"
        raise InfeasibleGuarantee(f"{useless}{ended}")
    if chosen.protocol is None:
        raise ValueError("a usable mechanism has a protocol")
    tell("fewer digits")
    protocol = coarsened(joint, bound, chosen.protocol, useful).named(guarantee=str(declared))
    drawn = replace(
        chosen,
        protocol=protocol,
        utility=useful.told(joint, protocol),
        share=useful.share(joint, protocol),
        level=declared.level(joint, protocol).value,
    )
    told = [drawn if row is chosen else row for row in rows]
    return {PROTOCOL: protocol.to_json().encode(), COMPARISON: comparison_document(told, useful.name).to_bytes()}


def _bounds(joint: Joint) -> tuple[object, ...]:
    """What the true counts may be, where these are known up to noise; and which classes inputs are parts of."""
    if joint.parts is not None:
        return tuple(joint.parts.content)
    if joint.bounds is None:
        return ()
    return joint.bounds.lower.tolist(), joint.bounds.upper.tolist(), joint.bounds.totals.tolist()


def _reserve(spec: ReleaseSpec) -> float:
    """The share of the budget that is used while frequencies may still move."""
    return 1.0 if spec.history is None else spec.history.budget_fraction
