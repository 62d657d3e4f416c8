"""The invariant channel that leaves most records unchanged under a guarantee, with a bound on all others (METHOD 17).

Outputs are the inputs, and under the distribution that the channel is made for the output has the distribution of the
input, so that tables are right on average. That is a linear programme: its pairs (x, y) and conditions are added as
they are needed, and prices of any of its rounds prove a bound on the optimum.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from funnel.certificate import Weighting
from funnel.errors import SolverError, SpecError
from funnel.guarantees.base import Guarantee, PosteriorGuarantee
from funnel.guarantees.families import Families
from funnel.guarantees.published import check_published_secret
from funnel.guarantees.several import parts_of
from funnel.joint import FloatArray, Joint
from funnel.progress import Progress, quiet
from funnel.protocol import INVARIANT, Protocol
from funnel.rounding import marginal_weights
from funnel.solver.budget import CALL, Budget, Ended
from funnel.solver.by_posterior import PosteriorProgramme
from funnel.solver.conditions import Conditions
from funnel.solver.exchange import FEW, Exchanged, ExchangeProgramme, proven_bound
from funnel.solver.integer_balance import IMBALANCE, imbalance, in_balance, proven_weights
from funnel.solver.interior import InteriorProgramme
from funnel.solver.part_programme import best_moves
from funnel.solver.presolve import merge_alike, split_flows
from funnel.solver.request import Request, Solution
from funnel.solver.within_classes import Found, reads_secret_and_class, within_classes

# Pairs that a value or an output asks for in one round, and how much a pair has to be worth to be asked for.
_PAIRS, _LEAST_GAIN = 4, 1e-9
_TINY = 1e-300
_NO_END = "the search for an invariant channel does not end; change epsilon slightly"
# Conditions broken by less are none that a linear programme could tell from rounding; and, of outputs that have to be
# moved inside, those that the margin takes.
_BROKEN, _NOTED = 1e-9, 1e-8
# The bound at which a round is thought to be near the end, so that sets are asked for conditions; and the most rounds.
_NEAR, _ROUNDS = 1e-2, 2_000
# Interior points: the gap of the first round, by how much it falls in each, how much less than the request is asked for
# in the end; the margin of ratios, as a share of the gap; the share of it that is near enough,
# since the last steps cost a little; the least room of a constant row.
_FIRST_GAP, _FINER, _PRECISION, _SLACK, _ENOUGH, _ROOM = 0.03, 6.0, 0.25, 0.5, 0.8, 1e-4
# Entries of conditions beyond which the simplex method takes too many steps.
_MANY = 4_000
# The same between outputs and sources; which pairs are kept there.
_LEAST_ROOM, _SEED = 1e-9, 17
# The relatively smaller budget that is optimised for, so that rounding does not leave the bound.
_MARGIN = 1e-7
# Outputs that draw anew: how much more of them than they need, and of all others, as a multiple of what those need.
_MORE, _OTHERS, _REDRAWN = 2.0, 2.0, 12
# Where interior points came so close, rounding is what is left: pairs as needed get so many times their work.
_CLOSE, _FURTHER = 1e-4, 4.0
# Roundings of sums, relative to their largest term.
_ROUNDING = 2.0**-40


def invariant_optimum(
    joint: Joint,
    guarantee: Guarantee,
    weights: Weighting = "root",
    gap: float = 1e-6,
    budget: Budget | None = None,
    progress: Progress = quiet,
) -> Solution:
    """The invariant protocol with the largest weighted share of records unchanged.

    Parameters
    ----------
    joint : Joint
        The distribution (c, a) over what the protocol reads and publishes: beliefs, conditions, balance and target are
        functions of it.
    guarantee : Guarantee
        One or several, each a cone on rows or over a set of distributions.
    weights : "root", "share" or "uniform"
        What values count that stay as they are: by √p_x, p_x, or alike.
    gap : float
        Requested bound - utility.
    budget : Budget, optional
    progress : callable

    Returns
    -------
    Solution
        Verified: the guarantee holds and the output has the distribution of the input to `IMBALANCE`, in whole numbers.

    Raises
    ------
    SpecError
        If the guarantee is not linear in the rows of a channel, does not protect a secret that is published itself, or
        weights are of another name.
    SolverError
        If a linear programme fails.

    Notes
    -----
    For prices π >= 0 of conditions and β of balance every invariant channel leaves at most ``Σ_y β_y + Σ_x max_y
    (v_x 1[x = y] - (p_x / p_y) (Σ_k π_yk h_kx + β_y))`` unchanged, v what values count: a bound whatever the solver's
    tolerances are.

    Where the secret is published beside classes of whole records, the best protocol is that of `within_classes`, and
    the bound is on those of its kind. Between parts of classes it is on those whose donors are drawn evenly.
    """
    if joint.parts is not None:
        return _between_parts(Request(joint, guarantee, gap, Budget.of(budget), progress=progress), weights)
    check_published_secret(guarantee, joint)
    request = Request(joint, guarantee, gap, Budget.of(budget), progress=progress)
    worth = counted(joint, weights)
    with request.budget.interruptible():
        if reads_secret_and_class(joint):
            best = within_classes(joint, guarantee, worth, _MARGIN, gap, request.budget, progress)
        else:
            best = _searched(request, worth, weights, progress)
    found = proven_weights(joint, guarantee, best.channel)
    protocol = Protocol(found, marginal_weights(joint, found), joint.inputs, joint.inputs, INVARIANT, str(guarantee))
    unchanged = float(worth @ np.diagonal(protocol.matrix))
    return request.answer(protocol, unchanged, best.bound, best.size, "exchange", best.ended is None, best.ended)


def _between_parts(request: Request, weights: Weighting) -> Solution:
    """The same where inputs are parts of classes: one linear programme, which takes neither gap nor budget."""
    if weights != "share":
        raise SpecError(f"records of parts of classes count alike, and not by {weights!r}; leave weights out")
    joint, guarantee = request.joint, request.guarantee
    found = best_moves(joint, guarantee, request.progress or quiet)
    marginal = marginal_weights(joint, found.weights)
    protocol = Protocol(found.weights, marginal, joint.inputs, joint.inputs, INVARIANT, str(guarantee))
    return request.answer(protocol, found.unchanged, found.bound, found.weights.size, "exchange")


def share_kept(joint: Joint, protocol: Protocol, weights: Weighting) -> float:
    """The weighted share of records that an invariant protocol leaves unchanged; -1 where it is none."""
    alike = protocol.inputs == protocol.outputs == joint.inputs
    if not alike or imbalance(joint, protocol.weights) > IMBALANCE:
        return -1.0
    return float(counted(joint, weights) @ np.diagonal(protocol.matrix))


def counted(joint: Joint, weights: Weighting) -> FloatArray:
    """What every value counts that stays as it is, shape (a,), summing to 1; zero for values that nobody has.

    Raises
    ------
    SpecError
        If there are no weights of this name.
    """
    if weights not in get_args(Weighting):
        raise SpecError(f"records unchanged are weighted by {', '.join(get_args(Weighting))}, not by {weights!r}")
    p = joint.p_input
    by = {"root": np.sqrt(p), "share": p, "uniform": (p > 0).astype(np.float64)}[weights]
    return np.asarray(by / by.sum())


def _searched(request: Request, worth: FloatArray, weights: Weighting, progress: Progress) -> Found:
    """The best channel of a search; values that no condition tells apart and that count alike are one to it."""
    joint, guarantee, gap, budget = request.joint, request.guarantee, request.gap, request.budget
    sizes = joint.counts.sum(axis=0)
    merged = merge_alike(joint, np.zeros_like(sizes) if weights == "share" else sizes)
    apart = joint.bounds is not None or not all(isinstance(part, PosteriorGuarantee) for part in parts_of(guarantee))
    if apart or len(merged.members) == np.count_nonzero(sizes):
        return _Search(joint, guarantee, worth, gap, budget, progress).best()
    of_merged = np.array([worth[list(group)].sum() for group in merged.members])
    best = _Search(merged.joint, guarantee, of_merged, gap, budget, progress).best()
    flows = split_flows(merged, best.channel * merged.joint.p_input)
    return best._replace(channel=flows / flows.sum(axis=0))


class _Search:
    """Rounds of the linear programme, with further pairs and conditions in each."""

    def __init__(
        self,
        joint: Joint,
        guarantee: Guarantee,
        worth: FloatArray,
        gap: float,
        budget: Budget,
        progress: Progress,
    ) -> None:
        seen = joint.p_input > 0
        self._distribution, self._worth, self._gap = joint.p_input[seen], worth[seen], gap
        self._budget, self._progress = budget, progress
        self._conditions, self._perfect = Conditions.of(joint, guarantee, _MARGIN), guarantee.is_perfect
        self._programme = ExchangeProgramme(self._distribution, self._worth, budget)
        # The same half-spaces without the margin are what the bound is proven with.
        self._spaces, self._all = self._conditions.inside, self._conditions.fixed
        self._programme.know(self._spaces)
        self._programme.add_conditions(*np.nonzero(self._broken(np.diag(self._distribution)).where))
        self.bound = 1.0
        # What would stay, moved inside, of the best flows so far.
        self._inside, self._best = -np.inf, np.outer(self._distribution, self._distribution)
        self.ended: Ended | None = None
        # Units of work after which what is there is taken.
        self._enough = np.inf
        self._gains = np.zeros((0, 0))

    def best(self) -> Found:
        """The best channel, once it is moved inside of all conditions."""
        return Found(self.inside(self.run()), self.bound, self._programme.size[0], self.ended)

    def run(self) -> FloatArray:
        """The best flows (n, n) in balance, conditions met but for numerical error; or what there is time for."""
        if len(self._distribution) == 1:
            return np.ones((1, 1))
        if self._run_by_posterior():
            return self._best
        by_points = len(self._distribution) <= FEW and (self._spaces @ self._distribution < -_ROOM).all()
        # Of values with hardly any records interior points say little: pairs as needed do.
        if by_points and (self._conditions.sets or self._spaces.size > _MANY):
            before = self._budget.spent
            if self._run_inside():
                return self._best
            if self.bound - self._inside <= _CLOSE:
                self._enough = self._budget.spent + _FURTHER * (self._budget.spent - before)
        # Equations have no interior.
        self._run_exchanging(patiently=self._perfect)
        return self._best

    def _run_by_posterior(self) -> bool:
        """`run` between outputs and sources of the same posterior, for many values; False where that is not for these.

        The first solution, over all pairs, proves the bound; the second has few pairs.
        """
        no_interior = self._perfect or not (self._spaces @ self._distribution < -_LEAST_ROOM).all()
        if len(self._distribution) <= FEW or self._conditions.sets or no_interior:
            return False
        programme = PosteriorProgramme(self._distribution, self._worth, self._spaces, self._budget)
        if not programme.is_suited or not self._budget.allows(programme.work):
            return False
        for _ in range(2):
            try:
                found = programme.solve(self._gap * _PRECISION)
            except SolverError:
                break
            self._prove(found)
            shares = self._broken(found.flows).shares
            inside = found.value - float(self._worth @ _pooled(shares, self._distribution))
            if self._inside == -np.inf or self.bound - inside <= self._gap:
                self._inside, self._best = inside, found.flows
            self._progress(f"{self._inside:.5f} of the records unchanged, at most {self.bound:.5f}", 0, None)
            if not self._budget.allows(programme.work):
                break
            programme.keep_few(np.random.default_rng(_SEED))
        self.ended = self._budget.ended_by
        return self.ended is not None or self.bound - self._inside <= _NEAR

    def _run_exchanging(self, patiently: bool) -> None:
        """`run` by pairs and conditions as they are needed."""
        programme, most = self._programme, max(_NEAR, self._gap)
        for _ in range(_ROUNDS):
            found = programme.solve(patiently)
            if found is None:
                self._run_inside()
                return
            self._prove(found)
            settled = self.bound - found.value <= most
            pairs, broken = self._further_pairs(), self._broken(found.flows)
            lacking = broken.where & ~programme.has_condition()
            programme.add_conditions(*np.nonzero(lacking))
            new, shares = lacking.any(), broken.shares
            if not pairs or settled:
                spaces, further = self._conditions.beyond(found.flows / self._distribution)
                self._spaces, self._all = np.vstack([self._spaces, spaces]), np.vstack([self._all, spaces])
                programme.know(spaces)
                again = self._broken(found.flows).where & ~programme.has_condition()
                programme.add_conditions(*np.nonzero(again))
                new, shares = new or again.any(), np.maximum(shares, further)
            if self._is_done(found, shares) or not (pairs or new or found.broken > _BROKEN):
                return
            if found.broken > _BROKEN and (settled or not pairs):
                programme.raise_prices()
        raise SolverError(_NO_END)

    def _run_inside(self) -> bool:
        """`run` by interior points, over all pairs, with whole families of conditions where these are over sets.

        False where rounding keeps them from getting near enough.
        """
        p = self._distribution
        programme = InteriorProgramme(p, self._worth, (self._spaces * p, self._all * p), self._budget)
        least = self._gap * _PRECISION
        gap = max(_FIRST_GAP, least) if self._conditions.sets else least
        for _ in range(_ROUNDS):
            found = programme.solve(gap)
            self._prove(found)
            # What flows out of balance seem to reach, no channel does.
            balanced = in_balance(found.flows, p)
            families, shares = self._families(balanced, _SLACK * self._gap)
            shares = np.maximum(shares, self._broken(balanced * p).shares)
            found = replace(found, value=float(self._worth @ np.diagonal(balanced)))
            done = self._is_done(found, shares, _ENOUGH)
            if not done and gap == least and float(self._worth @ _pooled(shares, p)) <= least:
                # What is left is the bound, and what the margin takes off it.
                self._prove(programme.solve(least, with_margin=False))
                done = self._is_done(found, shares, _ENOUGH)
            if done:
                return True
            if not len(families) and gap == least:
                return False
            if gap > least:
                # Only then, so that what is dropped and added again comes to an end.
                programme.drop_loose()
            gap = max(gap / _FINER, least)
            programme.add(families)
        raise SolverError(_NO_END)

    def _families(self, rows: FloatArray, margin: float) -> tuple[Families, FloatArray]:
        """The families that rows T (n, n) break, and the shares (n,) of a constant row that would do about these."""
        families, shares = self._conditions.families(rows / self._distribution[:, None], margin), np.zeros(len(rows))
        np.maximum.at(shares, families.of, families.share)
        self._budget.spend(CALL * 500 * len(families) ** 0.5 + 100.0 * families.least.size)
        return families, shares

    def _is_done(self, found: Exchanged, shares: FloatArray, enough: float = 1.0) -> bool:
        """Whether the best flows, once moved inside, are near enough to the bound; or no time is left."""
        constant = float(self._worth @ self._distribution)
        inside = max(constant, found.value - float(self._worth @ _pooled(shares, self._distribution)))
        if inside > self._inside:
            self._inside, self._best = inside, found.flows
        self._progress(f"{self._inside:.5f} of the records unchanged, at most {self.bound:.5f}", 0, None)
        if self.bound - self._inside <= enough * self._gap:
            return True
        self.ended = self._budget.ended_by
        return self.ended is not None or self._budget.spent > self._enough

    def inside(self, flows: FloatArray) -> FloatArray:
        """A channel T (n, n) in balance, from flows whose outputs draw anew among themselves as far as they need to."""
        distribution, shares = self._distribution, np.zeros(len(self._distribution))
        balanced = moved = in_balance(flows, distribution)
        for _ in range(_REDRAWN):
            further = np.maximum(self._broken(moved * distribution).shares, self._families(moved, 0.0)[1])
            if not further.any():
                break
            shares = np.minimum(1.0, shares + 2 * further)
            drawn = _pooled(shares, distribution)
            pool = drawn @ balanced / (drawn @ distribution)
            moved = (1 - drawn)[:, None] * balanced + (drawn * distribution)[:, None] * pool
        return moved

    def _prove(self, found: Exchanged) -> None:
        """Lower the bound to what the prices of a round prove, and remember what pairs are worth at them."""
        distribution, n = self._distribution, len(self._distribution)
        asked = found.conditions @ self._all[: found.conditions.shape[1]] + found.taken + found.balance[:, None]
        self.bound = min(
            self.bound,
            proven_bound(distribution, self._worth, asked, found.balance)
            + _ROUNDING * float((np.abs(asked) * (distribution / distribution[:, None])).max()),
        )
        gains = -asked * (distribution / distribution[:, None])
        gains[np.arange(n), np.arange(n)] += self._worth
        # What an output y would gain by records of x, by the mass that can move between them.
        stay = gains[np.arange(n), np.arange(n)]
        self._gains = (gains - stay) / distribution * np.minimum.outer(distribution, distribution)
        self._budget.spend(CALL * 20 + 10.0 * n * n + 2.0 * found.conditions.nnz * n)

    def _further_pairs(self) -> int:
        """Add the pairs that are worth most, to every value and to every output; how many are new."""
        gains, n = self._gains, len(self._distribution)
        most = min(_PAIRS, n)
        into = np.argpartition(-gains, most - 1, axis=0)[:most]
        out = np.argpartition(-gains, most - 1, axis=1)[:, :most]
        every = np.arange(n)
        places = np.concatenate([into.ravel(), np.repeat(every, most)])
        sources = np.concatenate([np.tile(every, most), out.ravel()])
        worth_it = gains[places, sources] > _LEAST_GAIN * self._gap
        return self._programme.add_pairs(places[worth_it], sources[worth_it])

    def _broken(self, flows: FloatArray) -> _Broken:
        """Which of the known conditions flows break."""
        by = self._at(flows)
        excess = np.where(by > _NOTED, by, 0.0)
        room = -(self._spaces @ self._distribution)
        shares = (excess / np.maximum(excess + room, _TINY)).max(axis=1, initial=0.0)
        return _Broken(by > _BROKEN, shares)

    def _at(self, flows: FloatArray) -> FloatArray:
        """What the half-spaces of cones are at flows, shape (n, K); a constant row has ``-room``."""
        self._budget.spend(CALL * 20 + 2.0 * flows.size * len(self._spaces))
        return np.asarray(flows @ self._spaces.T / self._distribution[:, None])


class _Broken(NamedTuple):
    """Conditions (n, K) that are broken, and the shares (n,) of a constant row by which rows would be inside."""

    where: npt.NDArray[np.bool_]
    shares: FloatArray


def _pooled(shares: FloatArray, distribution: FloatArray) -> FloatArray:
    """Shares of all outputs that draw anew among themselves, where some need these shares of a constant row.

    All others take part a little, so that what is drawn anew is as good as a constant row.
    """
    return np.asarray(np.minimum(1.0, np.maximum(shares * _MORE, _OTHERS * float(shares @ distribution))))
