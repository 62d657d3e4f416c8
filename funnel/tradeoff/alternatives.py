"""Alternatives: what would be kept with a column left out, or with rare values made one, and the lines for that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import numpy as np

from funnel.alphabet import Alphabet
from funnel.certificate import Weighting
from funnel.disclosure.suggest import made_one, table_of
from funnel.disclosure.table import Axis
from funnel.errors import FunnelError
from funnel.frequencies.helping import expected
from funnel.frequencies.noise import Noise
from funnel.guarantees import Guarantee, parse_guarantee
from funnel.joint import Joint
from funnel.measures.utilities import INFORMATION, Utility
from funnel.mechanisms.instead import best_for
from funnel.planning import MechanismChoice, choose, contenders
from funnel.protocol import INVARIANT
from funnel.settings.recode import OTHER
from funnel.spec import ReleaseSpec
from funnel.tradeoff.sweep import SECONDS
from funnel.tradeoff.trials import Trials
from funnel.tradeoff.unchanged_by_budget import SECONDS as UNCHANGED_SECONDS
from funnel.tradeoff.unchanged_by_budget import share_unchanged
from funnel.wording import toml_text

# Values that together have at most this share of the records are rare.
RARE = 0.1
# Groups that are looked at in one column.
_GROUPS = 4


@dataclass(frozen=True)
class Alternative:
    """Something else that could be published, and what would be kept of it.

    Attributes
    ----------
    kind : "as it is", "without" or "together"
    column : str
        Empty for what the spec says.
    values : tuple of str
        That are made one.
    records : float
        Share of the records that have these values; 0 where none are made one.
    secret : bool
        Whether the column is secret.
    lines : str
        To write into the spec.
    kept : float or None
        Share of H(X) of what is published then, or of its variance that is explained, or of the records that stay
        unchanged where the spec asks for an invariant protocol; None where nothing can be.
    nats : float or None
        The same as I(X;Y); None by another utility.
    entropy : float
        H(X) of what is published then, nats.
    """

    kind: Literal["as it is", "without", "together"]
    column: str
    values: tuple[str, ...]
    records: float
    secret: bool
    lines: str
    kept: float | None
    nats: float | None
    entropy: float


@dataclass(frozen=True, eq=False)
class Table:
    """An alternative before it is known what it keeps."""

    said: Alternative
    joint: Joint


def alternatives(
    spec: ReleaseSpec,
    joint: Joint,
    guarantee: Guarantee,
    noise: Noise | None,
    trials: Trials,
    *,
    seconds: float | None = None,
    utility: Utility = INFORMATION,
    fitted: float | None = None,
) -> tuple[Alternative, ...]:
    """What the best protocol that reads the published columns alone keeps of everything else that could be published.

    Where the spec asks for an invariant protocol, the records that this one leaves unchanged.

    Every published column left out, where there are several; rare values of every column made one, the rarest first.

    Parameters
    ----------
    spec : ReleaseSpec
    joint : Joint
        Public counts (c, a) after the recoding of the spec.
    guarantee : Guarantee
    noise : Noise or None
        With which these counts, and those of an alternative, are protected. What such noise would leave open of an
        alternative is taken, with the counts that are public now; nothing is drawn.
    trials, utility
        As for `sweep`.
    seconds : float, optional
        For one protocol, as work that is counted; by default what points of curves have.
    fitted : float, optional
        The utility of the best protocol for what the spec says, or the records that an invariant one leaves unchanged,
        where a longer search has found it.

    By another utility than information, only what leaves the published values as they are: others have no number.

    Returns
    -------
    tuple of Alternative
        What the spec says first, then by what is kept.
    """
    tables = [_as_it_is(joint), *without(spec, joint), *_together(spec, joint)]
    invariant = spec.mechanism.name == INVARIANT
    if seconds is None:
        seconds = UNCHANGED_SECONDS if invariant else SECONDS
    if utility != INFORMATION and not invariant:
        tables = [table for table in tables if table.joint.inputs == joint.inputs]
    known = [table.joint if noise is None else expected(table.joint, noise) for table in tables]
    if invariant:
        read = [one.with_secret() if spec.publishes_secret else one for one in known]
        choice, first = spec.mechanism.weights, int(fitted is not None)
        kept = trials.results(_stays, [(one, str(guarantee), choice, seconds) for one in read[first:]], Kept)
        shares = [*[fitted] * first, *(found.nats for found in kept)]
        made = [_with_utility(table, share, None) for table, share in zip(tables, shares, strict=True)]
    else:
        kept = trials.results(_kept, [(one, str(guarantee), seconds, utility) for one in known], Kept)
        if fitted is not None:
            kept[0] = Kept(max(fitted, kept[0].nats or 0.0))
        made = [_useful(table, found.nats, utility) for table, found in zip(tables, kept, strict=True)]
    return (made[0], *sorted(made[1:], key=lambda one: -(one.kept or 0.0)))


@dataclass(frozen=True)
class Kept:
    """The utility of the best protocol, I(X;Y) in nats or another, or records unchanged; None where there is none."""

    nats: float | None


def _kept(joint: Joint, text: str, seconds: float, utility: Utility = INFORMATION) -> Kept:
    guarantee, found = parse_guarantee(text), []
    # In so short a search the optimum may keep less than randomised response does.
    for name in (best_for(guarantee), "grr"):
        choice = MechanismChoice(name, time_limit=seconds)
        try:
            found.append(choose(contenders(joint, guarantee, choice, utility=utility)).utility)
        except FunnelError:
            continue
    return Kept(max((nats for nats in found if nats is not None), default=None))


def _stays(joint: Joint, text: str, weights: Weighting, seconds: float) -> Kept:
    return Kept(share_unchanged(joint, text, weights, seconds))


def _part_of(utility: float | None, whole: float) -> float | None:
    return None if utility is None or whole == 0 else min(1.0, utility / whole)


def _useful(table: Table, kept: float | None, utility: Utility) -> Alternative:
    return _with_utility(table, _part_of(kept, utility.whole(table.joint)), kept if utility == INFORMATION else None)


def _with_utility(table: Table, kept: float | None, nats: float | None) -> Alternative:
    return Alternative(**{**vars(table.said), "kept": kept, "nats": nats, "entropy": table.joint.entropy})


def _as_it_is(joint: Joint) -> Table:
    said = Alternative("as it is", "", (), 0.0, False, "", None, None, 0.0)
    return Table(said, joint.as_published)


def without(spec: ReleaseSpec, joint: Joint) -> Iterator[Table]:
    """Every published column left out, where there are several."""
    columns = joint.inputs.columns
    for j, column in enumerate(columns if len(columns) > 1 else ()):
        left = tuple(other for other in columns if other != column)
        of = {symbol: symbol[:j] + symbol[j + 1 :] for symbol in joint.inputs.symbols}
        symbols = {symbol: place for place, symbol in enumerate(dict.fromkeys(of.values()))}
        counts = np.zeros((len(joint.secret), len(symbols)), dtype=np.int64)
        places = np.array([symbols[of[symbol]] for symbol in joint.inputs.symbols])
        np.add.at(counts.T, places, joint.counts.T)
        lines = f"publish = [{', '.join(map(toml_text, (one for one in spec.publish if one != column)))}]"
        said = Alternative("without", column, (), 0.0, False, lines, None, None, 0.0)
        yield Table(said, Joint(counts, joint.secret, Alphabet(left, tuple(symbols))))


def _together(spec: ReleaseSpec, joint: Joint) -> Iterator[Table]:
    table = table_of(spec, joint)
    for j, axis in enumerate(table.axes):
        counts = np.bincount(table.places[:, j], table.counts, len(axis.values))
        # What stands for other values, or for none, is no value that a group could name.
        recode = spec.recode.get(axis.column)
        unnamed = {spec.source.missing_label, OTHER if recode is None else recode.other}
        named = np.array([value not in unnamed for value in axis.values])
        for places in _rare(axis, np.where(named, counts / table.n, 1.0)):
            values = tuple(axis.values[place] for place in places)
            found = made_one(spec, joint.as_published, axis.column, values)
            records = float(counts[list(places)].sum() / table.n)
            lines = found.toml.strip()
            said = Alternative("together", axis.column, values, records, axis.secret, lines, None, None, 0.0)
            yield Table(said, found.joint)


def _rare(axis: Axis, shares: np.ndarray) -> Iterator[tuple[int, ...]]:
    """Places of rare values to be made one: the rarest two, three, …; of values in order, those at either end."""
    size = len(axis.values)
    if axis.ordered:
        ends = (range(size), range(size - 1, -1, -1))
        for end in ends:
            number = _within(shares[list(end)])
            if 2 <= number < size:
                yield tuple(sorted(list(end)[:number]))
        return
    order = np.argsort(shares, kind="stable")
    most = min(_within(shares[order]), size - 1)
    numbers = [*range(2, most + 1)]
    # The smallest groups, and the largest.
    for number in dict.fromkeys([*numbers[: _GROUPS - 1], *numbers[-1:]]):
        yield tuple(sorted(int(place) for place in order[:number]))


def _within(shares: np.ndarray) -> int:
    """How many of these, from the first on, are rare together."""
    return sum(total <= RARE for total in accumulate(shares.tolist()))
