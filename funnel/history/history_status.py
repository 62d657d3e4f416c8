"""History status: the histories that people have before a version, and where each stands under today's frequencies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from funnel.errors import DataError, SpecError
from funnel.guarantees.base import Guarantee
from funnel.guarantees.known_columns import Given, known_values
from funnel.guarantees.reading import reads_secret
from funnel.guarantees.rsrlip import RSRLIP
from funnel.guarantees.srlip import SRLIP
from funnel.history.allowed import Allowed, Kept, Reserved, allowed_by, bound_given, lifts_of, require_posterior
from funnel.history.changes import Changes
from funnel.history.distributions import UNIT, BoolArray, HistoryDistributions, cells_of
from funnel.history.exact_distribution import WholeNumbers, moved_on
from funnel.history.observed import Observed
from funnel.history.observers import Observer, observers_of
from funnel.history.past import Past
from funnel.history.possible_distributions import DistributionSet
from funnel.joint import FloatArray, IntArray, Joint


@dataclass(frozen=True, eq=False)
class HistoryStatus:
    """Every history that somebody has, before a version.

    Attributes
    ----------
    nodes : ndarray of int64, shape (h,)
        Sorted.
    people : ndarray of int64, shape (h,)
    distributions : HistoryDistributions
        P(s, x | h), values (h, c, a), where s may be the secret of an earlier version.
    priors : tuple of ndarray of whole numbers, each (c,)
        How common secrets are: of all people, and of those who are in an earlier version too.
    prior_of : ndarray of int64, shape (h,)
        Which of them is the prior of each history. Rows of a unit that share a secret have that of the first; of a row
        with a secret of its own it is what follows from first rows, and changes from a row to the next.
    moved : ndarray of bool, shape (h,)
        Whether P(S | h) alone is outside the declared bound, decided.
    observer : Observer
        Whose beliefs these are.
    joint : Joint
    guarantee : Kept
        The declared bound.
    allowed : Allowed
        What it allows.
    reserved : Reserved or None
        What may be spent of it now, where that is not all.
    reserves : ndarray of bool, shape (h,)
        Which histories must stay within that: all that are not beyond it by themselves.
    secret_of : int or None
        Whose secret it is: the chapter of an earlier version, or of another row of the unit, in which the people of all
        these histories were or may come to be; None for that of the version, or the row, itself.
    secret_name : str or None
        The name of the earlier version whose secret it is; None for those of the version itself.
    bounded : bool
        Whether what is believed of this secret is bounded for this observer; else it is only reported how far it goes.
    given : tuple of (column, value)
        What the observer knows of a person besides, of the version whose secret it is.
    inside : ndarray of bool or None
        The inputs of that version that go with it; None where nothing is known besides.
    knows_all : bool
        Whether that is of all of its published columns.
    share : ndarray or None
        Of how many of the people with each history it goes with it, as the observer expects, (h,).
    others : tuple of HistoryStatus
        Where the same histories, or those of them that were in an earlier version, stand for other observers and in
        other secrets, as far as these are bounded.
    reported : tuple of HistoryStatus
        The same where they are not.
    possible : DistributionSet or None
        Where the bound is kept under every set of tables that noise leaves open: what these are.
    """

    nodes: IntArray
    people: IntArray
    distributions: HistoryDistributions
    priors: tuple[IntArray, ...]
    prior_of: IntArray
    moved: BoolArray
    observer: Observer
    joint: Joint
    guarantee: Kept
    allowed: Allowed
    reserved: Reserved | None
    reserves: BoolArray
    secret_of: int | None = None
    secret_name: str | None = None
    bounded: bool = True
    given: Given = ()
    inside: BoolArray | None = None
    knows_all: bool = False
    share: FloatArray | None = None
    others: tuple[HistoryStatus, ...] = ()
    reported: tuple[HistoryStatus, ...] = ()
    possible: DistributionSet | None = None

    @property
    def everybody(self) -> tuple[HistoryStatus, ...]:
        """Where histories stand for every observer and secret that are bounded, this one first."""
        return (self, *self.others)

    @property
    def who(self) -> str:
        """The name of the observer, with the columns that are known besides."""
        return named(self.observer.name, tuple(column for column, _ in self.given))

    @property
    def error(self) -> float:
        """Up to which P(s, y | h) is known, relatively."""
        return self.distributions.error + rounding(self.distributions)

    def among(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        """Which of some histories (k,) are here, and at which places."""
        if not len(self.nodes):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        places = np.minimum(np.searchsorted(self.nodes, nodes), len(self.nodes) - 1)
        here = np.flatnonzero(self.nodes[places] == nodes)
        return here, places[here]

    def masses(self) -> FloatArray:
        """P(h, x) as an observer expects it, shape (h, a).

        Never the inputs that the people with a history really have: rows that were chosen by these would tell them,
        whatever the rows themselves say.
        """
        return np.asarray(self.distributions.values.sum(axis=1) * (self.people / self.people.sum())[:, None])

    def nats(self, lifts: FloatArray) -> FloatArray:
        """The level of every output in nats, lifts (k, c, b) to (k, b); infinite where no budget would do."""
        return self.allowed.nats(lifts, self.guarantee)

    def exact_distribution(self, place: int) -> WholeNumbers:
        """P(s, x | h) of the history at this place, times some whole number; (c, a)."""
        return self.observer.exact_distribution(int(self.nodes[place]), self.secret_of, self.inside)


def stand(past: Past, observed: Observed, guarantee: Guarantee, reserve: float = 1.0) -> HistoryStatus:
    """Where all histories stand before a version, of whose budget so much may be spent now.

    Raises
    ------
    SpecError
        If the guarantee is no bound on the posterior of the secret alone.
    DataError
        If changes from the last version of some history are missing, or earlier secrets are to be bounded under all
        that noise, or a sample, leaves open.

    Notes
    -----
    As `distributions_before`; whole numbers where floats cannot tell whether a history has been moved.
    """
    nodes, places = np.unique(observed.nodes, return_inverse=True)
    people = np.zeros(len(nodes), dtype=np.int64)
    # Of expected people, those of whom nobody knows the history are in no history.
    np.add.at(people, places, observed.records if observed.totals is None else observed.spoken)
    declared = require_posterior(guarantee)
    possible = DistributionSet.of(past, observed, allowed_by(declared))
    for_known = isinstance(declared, SRLIP | RSRLIP)
    secrets = [*_secrets_now(past, nodes, observed), *_earlier_secrets(past, nodes, observed, for_known)]
    first, *others = (
        _stand(observer, secret, given, inside, people[secret.places], observed, declared, reserve)
        for observer in observers_of(past, observed)
        for secret in secrets
        for given, inside in _known(declared, secret.joint)
    )
    if for_known:
        if possible is not None and isinstance(declared, SRLIP):
            raise DataError(
                f"{declared} is not bounded under all that noise leaves open for observers who know some of the "
                "published columns; take robust out of [history]"
            )
        if reads_secret(observed.joint):
            raise SpecError(
                f"{declared} is not bounded over versions that publish the secret; take it out of the published columns"
            )
    if possible is not None and any(one.bounded and one.secret_name is not None for one in others):
        raise DataError("secrets of earlier versions are not bounded under all that noise, or a sample, leaves open")
    return replace(
        first,
        others=tuple(one for one in others if one.bounded),
        reported=tuple(one for one in others if not one.bounded),
        possible=possible,
    )


def named(observer: str, known: Sequence[str]) -> str:
    """The name of an observer who knows some published columns of everybody."""
    return f"{observer}, knowing {' and '.join(known)}" if known else observer


def _known(guarantee: Kept, joint: Joint) -> Iterator[tuple[Given, BoolArray | None]]:
    """What the observers of a guarantee know besides: nothing, and under srlip any values of any published columns.

    Also of all columns: an answer tells nothing more of a secret then, but those of other versions do.
    """
    for given, inside in known_values(joint, every=True):
        if not given or isinstance(guarantee, SRLIP | RSRLIP):
            yield given, inside if given else None


@dataclass(frozen=True, eq=False)
class _Secret:
    """A secret that something is believed of: whose it is, in which version, and the histories it is one of.

    Counts ``cells`` (c, a) of the people whose secrets it is common among, and which of these each history has.
    """

    of: int | None
    name: str | None
    joint: Joint
    nodes: IntArray
    places: IntArray
    cells: tuple[IntArray, ...]
    prior_of: IntArray


def _secrets_now(past: Past, nodes: IntArray, observed: Observed) -> Iterator[_Secret]:
    """That of the version; of all rows of a unit that have secrets of their own, first that of the row itself."""
    joint, changes, begun, before = observed.joint, observed.changes, observed.row - 1, nodes
    every = np.arange(len(nodes))
    if begun:
        # How common secrets are among units is what an observer starts from; another row is no news of that.
        first = past.chapters[len(past) - begun]
        joint, changes, before = first.joint, first.changes, past.before_rows(nodes, begun)
    members = observed.members
    if members is None:
        yield _Secret(None, None, joint, nodes, every, *_priors(past, before, joint, changes))
        return
    for row in sorted(range(members.rows), key=lambda row: row != begun):
        # Chapters of rows that are to come go on from those that there are.
        of = None if row == begun else len(past) - begun + row
        yield _Secret(of, None, joint, nodes, every, *_priors(past, before, joint, changes, members.changes, row))


def _earlier_secrets(past: Past, nodes: IntArray, observed: Observed, every_row: bool) -> Iterator[_Secret]:
    """Those of all versions before, each of the histories of people who were in it, and of rows of their own.

    Of every row, where it matters of which an observer knows columns.
    """
    for number, chapter in enumerate(past.chapters[: len(past) - (observed.row - 1)]):
        if not (every_row or chapter.begins_secret):
            continue
        begun = chapter.row - 1
        first, within = past.chapters[number - begun], chapter.changes.get(number - 1)
        then = past.until(nodes, number)
        places = np.flatnonzero(then >= chapter.first)
        before = past.until(then[places], number - begun)
        before = first.parents[before - first.first]
        yield _Secret(
            number,
            first.version,
            first.joint,
            nodes[places],
            places,
            *_priors(past, before, first.joint, first.changes, within if begun else None, begun),
        )


def _stand(
    observer: Observer,
    secret: _Secret,
    given: Given,
    inside: BoolArray | None,
    people: IntArray,
    observed: Observed,
    guarantee: Kept,
    reserve: float,
) -> HistoryStatus:
    """Where histories stand for one observer in one secret; all compare with how common secrets are.

    Of those who know something besides, the histories that go with it.
    """
    knows_all = len(given) == len(secret.joint.inputs.columns)
    allowed = allowed_by(guarantee if inside is None else bound_given(guarantee, knows_all))
    nodes, prior_of = secret.nodes, secret.prior_of
    priors = tuple(cells.sum(axis=1) if inside is None else cells[:, inside].sum(axis=1) for cells in secret.cells)
    distributions, share = observer.distributions(nodes, secret.of, inside), None
    if inside is not None:
        share = distributions.likely / observer.distributions(nodes).likely
        occurs = np.array([bool(prior.any()) for prior in priors])
        these = np.flatnonzero(distributions.values.any(axis=(1, 2)) & occurs[prior_of])
        nodes, people, prior_of = nodes[these], people[these], prior_of[these]
        distributions, share = distributions.at(these), share[these]
    error = distributions.error + rounding(distributions)
    reserved = Reserved.of(guarantee, reserve, knows_all and inside is not None)
    moved, reserves = np.zeros(len(nodes), dtype=bool), np.full(len(nodes), reserved is not None)
    for group, prior in enumerate(priors):
        here = np.flatnonzero(prior_of == group)
        if not len(here):
            continue
        lifts = lifts_of(distributions.values[here].sum(axis=2)[:, :, None], prior)
        holds, breaks = allowed.within(lifts, error)
        moved[here] = breaks[:, 0]
        if reserved is not None:
            reserves[here] = ~(reserved.beyond.within(lifts, error)[1][:, 0] & distributions.sound[here])
        for place in here[~(holds | breaks)[:, 0] | ~distributions.sound[here]].tolist():
            alone = observer.exact_distribution(int(nodes[place]), secret.of, inside).sum(axis=1)
            moved[place] = not allowed.within_exactly(alone[:, None], prior)
    bounded = observer.bounded and (secret.name is None or observed.secrets == "all")
    return HistoryStatus(
        nodes,
        people,
        distributions,
        priors,
        prior_of,
        moved,
        observer,
        observed.joint,
        guarantee,
        allowed,
        reserved,
        reserves,
        secret.of,
        secret.name,
        bounded,
        given,
        inside,
        knows_all,
        share,
    )


def _priors(
    past: Past,
    nodes: IntArray,
    joint: Joint,
    changes: Mapping[int, Changes],
    within: Changes | None = None,
    rows: int = 0,
) -> tuple[tuple[IntArray, ...], IntArray]:
    """Counts (c, a) of the people of a version that histories (k,) came to it with, and which of these each has.

    Or in a later row of units, so many after the first, by the changes from a row to the next within the version.
    """
    versions, prior_of = np.unique(past.versions_of(nodes), return_inverse=True)
    heads = past.heads_of(versions)
    kept, group = np.unique(heads, return_inverse=True)
    last = {int(head): int(version) for head, version in zip(heads, versions, strict=True)}
    priors = []
    for head in kept:
        came = changes.get(last[int(head)])
        if within is None or not rows:
            priors.append(cells_of(joint, came))
            continue
        cells = cells_of(joint, came).astype(object)
        for _ in range(rows):
            cells = moved_on(cells, joint, within)
        priors.append(cells)
    return tuple(priors), np.asarray(group[prior_of])


def rounding(distributions: HistoryDistributions) -> float:
    """What sums over all inputs add to the relative error of distributions, and those over secrets."""
    _, secrets, inputs = distributions.values.shape
    return float((inputs + secrets + 16) * UNIT)
