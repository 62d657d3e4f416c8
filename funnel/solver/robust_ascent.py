"""Joint ascent over the χ² set: all outputs of a protocol improved together, each under half-spaces of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.errors import SolverError
from funnel.guarantees.chi2_ball import attaining, tilt
from funnel.guarantees.exact import capped_exp
from funnel.guarantees.reading import reads_secret, rows_by_secret
from funnel.guarantees.worst_case import pair_ratios, refined
from funnel.joint import FloatArray
from funnel.solver.budget import CALL, Budget
from funnel.solver.cuts import SetProblem
from funnel.solver.lp import MasterProgramme, sparse_programme

Places = npt.NDArray[np.intp]

# Shares of the deviation that are looked at, as sin² of so many angles, unless more are asked for.
_ANGLES = 13
# Half-spaces of an output and round: the worst pairs, down to those that hold by so much of the average row in early
# rounds, and in later ones.
_PAIRS, _SPARE, _EARLY, _LATER = 12, 0.3, 4, 0.02
# Factors between which entries may change in a round, at first; rounds with it; what it falls by after; the least.
_FACTOR, _FREE, _FALL, _LEAST = 2.0, 15, 0.85, 1.05
_ROUNDS = 60
# Half-spaces that hold by so much of the sum of their terms are forgotten.
_FAR = 0.2
# How many times the factors may be widened where no change meets the half-spaces.
_TRIES = 3
# The share of pairs that is looked at closely at the end.
_OPEN = 0.2
# Rounds end where outputs are moved inside by less than this on average, and less (nats) was gained.
_MOVED, _GAINED = 1e-4, 3e-5
# The relatively smaller limit that outputs are moved into, far more than rounding to integers.
_MARGIN = 1e-9
# What outputs are moved inside more than by what the share of the worst distribution says.
_CARE = 1.001
# The share of p_X that no posterior of a start has, and by which these are made less until the rest is inside.
_RESTING, _LESS, _HALVINGS = 0.05, 0.8, 60
_BY_ENTRY = 46 * 6.0
# Mixtures that are crossed evenly.
_CROSSED = 7


@dataclass(frozen=True, eq=False)
class Kept:
    """A mixture of outputs each of which meets the guarantee by the exact worst case, up to rounding.

    Attributes
    ----------
    posteriors : ndarray, shape (k, a)
    mass : ndarray, shape (k,)
    value : float
        ``Σ P(y) g(v_y)``, nats.
    """

    posteriors: FloatArray
    mass: FloatArray
    value: float


class RobustCone:
    """Rows over the inputs that occur, as masses ``v = p T``, and how far each is outside of RLDP over F.

    Parameters
    ----------
    problem : SetProblem
        Over F.
    budget : Budget
        Charged.
    angles : int
        Shares of the deviation that are looked at. What shares between them break is lost at the end.
    """

    def __init__(self, problem: SetProblem, budget: Budget, angles: int = _ANGLES) -> None:
        self.problem, self.near, self.distribution, self.budget = problem, problem.near, problem.distribution, budget
        self.gains = problem.gains
        self._limit = capped_exp(problem.guarantee.budget) * (1 - _MARGIN)
        shares = np.sin(np.linspace(0.0, np.pi / 2, angles)) ** 2
        rate = self.near.deviation / self.near.prior[:, None]
        self._above, self._below = (1 + shares * rate) ** 2, (1 + (1 - shares) * rate) ** 2

    def slopes(self, posteriors: FloatArray) -> FloatArray:
        """Slopes of ``P(y) g(v_y)`` in the masses of each output at posteriors (k, seen); the same shape."""
        slopes = self.problem.goal.slopes(self.problem.counts(posteriors))
        return slopes if self.problem.image is None else np.asarray(slopes @ self.problem.image)

    def rows(self, posteriors: FloatArray) -> FloatArray:
        """T over (s, u) of posteriors (k, seen), shape (k, c, u); the average row is 1."""
        whole = np.ones((len(posteriors), len(self.problem.seen)))
        whole[:, self.problem.seen] = posteriors / self.distribution
        return rows_by_secret(self.problem.read, whole)

    def looked_at(self, posteriors: FloatArray) -> _Looked:
        """The largest and least P(y|s) of posteriors (k, seen) over the balls of every share."""
        rows, near = self.rows(posteriors), self.near
        k, c, u = rows.shape
        angles = self._above.shape[1]
        self.budget.spend(100 * CALL + 2 * _BY_ENTRY * rows.size * angles)
        flat = np.repeat(rows.reshape(k * c, u), angles, axis=0)
        distribution = np.tile(np.repeat(near.distribution, angles, axis=0), (k, 1))
        above, below = np.tile(self._above.ravel(), k), np.tile(self._below.ravel(), k)
        upward, downward = tilt(flat, distribution, above), tilt(-flat, distribution, below)
        shape = (k, c, angles)
        high, low = upward.above(above).reshape(shape), -downward.above(below).reshape(shape)
        return _Looked(rows, high, low, upward.distance.reshape(shape), downward.distance.reshape(shape), self._limit)

    def inside(self, posteriors: FloatArray, exactly: bool = False) -> FloatArray:
        """Each posterior (k, seen) moved towards the average row until it meets the guarantee; shape (k, seen).

        The worst distributions for T are worst for ``(1 - t) T + t`` too, and give the average row the same.

        Parameters
        ----------
        posteriors : ndarray, shape (k, seen)
        exactly : bool
            Whether between the shares that are looked at, too.
        """
        looked = self.looked_at(posteriors)
        moved = self._moved(posteriors, looked.over.max(axis=(1, 2, 3)))
        if not exactly:
            return moved
        looked = self.looked_at(moved)
        k, c, _ = looked.rows.shape
        self.budget.spend(200 * CALL + 20 * _BY_ENTRY * looked.rows.size * (1 + c * _OPEN))
        pairs = pair_ratios(looked.rows, self.near)
        places = np.argwhere(pairs.above > self._limit)
        if not len(places):
            return moved
        ratios, shares = refined(looked.rows, self.near, pairs, places, self._limit)
        y, _, t = places.T
        divergence = self.near.divergence(t, 1 - shares)
        rows = -looked.rows[y, t]
        low = -tilt(rows, self.near.distribution[t], divergence).above(divergence)
        over = np.zeros(k)
        # hi - limit lo where hi / lo is known.
        np.maximum.at(over, y, np.nan_to_num((ratios - self._limit) * low, nan=0.0) * _CARE)
        return self._moved(moved, over)

    def _moved(self, posteriors: FloatArray, over: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            share = np.where(over > 0, np.where(np.isinf(over), 1.0, over / (over + self._limit - 1)), 0.0)[:, None]
        return np.asarray((1 - share) * posteriors + share * self.distribution)

    def half_spaces(self, looked: _Looked, spare: float) -> tuple[FloatArray, Places]:
        """Conditions on masses, rows (m, seen), and the output that each is for (m,): the worst pairs of every one.

        spare: down to those that hold by so much.
        """
        over = looked.over
        worst = over.max(axis=3)
        k, c, _ = worst.shape
        order = np.argsort(-worst.reshape(k, c * c), axis=1, kind="stable")[:, :_PAIRS]
        outputs = np.repeat(np.arange(k), order.shape[1])
        s, t = np.divmod(order.ravel(), c)
        chosen = (s != t) & (worst[outputs, s, t] > -spare)
        y, s, t = outputs[chosen], s[chosen], t[chosen]
        share = over[y, s, t].argmax(axis=1)
        distribution, rows = self.near.distribution, looked.rows
        one = attaining(looked.upward[y, s, share], rows[y, s], distribution[s], self._above[s, share])
        two = attaining(looked.downward[y, t, share], -rows[y, t], distribution[t], self._below[t, share])
        self.budget.spend(100 * CALL + 20.0 * len(y) * len(self.problem.seen))
        return (self._functionals(s, one) - self._limit * self._functionals(t, two)) / self.distribution, y

    def _functionals(self, secrets: Places, distributions: FloatArray) -> FloatArray:
        """What each distribution (m, u) gives to the average of its secret's row, shape (m, seen)."""
        number, both = len(secrets), reads_secret(self.problem.read)
        full = np.zeros((number, *self.near.distribution.shape)) if both else distributions
        if both:
            full[np.arange(number), secrets] = distributions
        return self.problem.on_seen(full.reshape(number, len(self.problem.seen)))


@dataclass(frozen=True, eq=False)
class _Looked:
    rows: FloatArray
    high: FloatArray
    low: FloatArray
    upward: FloatArray
    downward: FloatArray
    limit: float

    @property
    def over(self) -> FloatArray:
        """``hi_s - limit lo_t`` of every output, pair and share, (k, c, c, shares)."""
        over = self.high[:, :, None] - self.limit * self.low[:, None]
        same = np.arange(over.shape[1])
        over[:, same, same] = -np.inf
        return np.asarray(over)


def nothing_disclosed(cone: RobustCone) -> Kept:
    """The average row alone."""
    return Kept(cone.distribution[None], np.ones(1), float(cone.gains(cone.distribution[None])[0]))


def ascended(cone: RobustCone, posteriors: FloatArray, best: Kept, budget: Budget) -> Kept:
    """The better of the best so far and what an ascent from posteriors (k, seen) finds, inside or not."""
    start = with_rest(cone, cone.inside(posteriors))
    return best if start is None else climbed(cone, start, best, budget)


def crossed(cone: RobustCone, found: list[Kept], best: Kept, budget: Budget, evenly: bool) -> Kept:
    """The better of the best so far and an ascent from the outputs of several together.

    Parameters
    ----------
    cone : RobustCone
    found : list of Kept
        Of different starts.
    best : Kept
    budget : Budget
    evenly : bool
        Start from the even mixture of the best of them, else from the best mixture of all their outputs. The first has
        more to choose from, and takes longer.
    """
    everything = [best, *found]
    if evenly:
        chosen = sorted(everything, key=lambda one: -one.value)[:_CROSSED]
        posteriors = np.vstack([one.posteriors for one in chosen])
        mass = np.concatenate([one.mass for one in chosen]) / len(chosen)
        return climbed(cone, Kept(posteriors, mass, -np.inf), best, budget)
    posteriors = np.vstack([one.posteriors for one in everything])
    start = best_mixture(cone, posteriors, cone.gains(posteriors))
    return best if start is None else climbed(cone, start, best, budget)


def best_mixture(cone: RobustCone, posteriors: FloatArray, gains: FloatArray, share: float = 1.0) -> Kept | None:
    """The best mixture of posteriors (k, seen) of a share of p_X; None where the programme fails."""
    master = MasterProgramme(share * cone.distribution, cone.budget)
    for posterior, gain in zip(posteriors, gains, strict=True):
        master.add(posterior, float(gain))
    try:
        mass, _ = master.solve(bounded=True)
    except SolverError:
        return None
    used = mass > 1e-12
    return Kept(posteriors[used], mass[used], float(gains[used] @ mass[used]))


def with_rest(cone: RobustCone, posteriors: FloatArray) -> Kept | None:
    """A mixture of p_X that has much of these posteriors (k, seen), which are inside, and a rest that is inside too."""
    distribution = cone.distribution
    everything = np.vstack([posteriors, np.eye(len(distribution))])
    # What is left of an input tells nothing, and is worth what it is in the average row.
    gains = np.append(cone.gains(posteriors), cone.slopes(distribution[None])[0])
    found = best_mixture(cone, everything, gains, 1 - _RESTING)
    if found is None:
        return None
    chosen = found.posteriors.max(axis=1) < 1
    posteriors, mass = found.posteriors[chosen], found.mass[chosen]
    told = mass @ posteriors
    part = 1.0
    # Where the parts are small the rest is nearly the average row.
    for _ in range(_HALVINGS):
        rest = distribution - part * told
        total = float(rest.sum())
        if (cone.looked_at(rest[None] / total).over <= 0).all():
            posteriors, mass = np.vstack([posteriors, rest / total]), np.append(part * mass, total)
            return Kept(posteriors, mass, float(cone.gains(posteriors) @ mass))
        part *= _LESS
    return None


def climbed(cone: RobustCone, start: Kept, best: Kept, budget: Budget) -> Kept:
    """Maximise the tangent of the utility over all outputs at once, repeatedly; the best mixture inside, or ``best``.

    The utility is convex in the masses, so a tangent's optimum never lowers it. Half-spaces of an output are those of
    the distributions that were worst for it in some round. Entries change by a factor in each, so that these say
    enough.

    Parameters
    ----------
    cone : RobustCone
    start : Kept
        Outputs without zeros that should stay positive.
    best : Kept
        The best so far.
    budget : Budget
        Ends the ascent with the best so far.
    """
    import scipy.sparse as sp

    masses = start.posteriors * start.mass[:, None]
    a = len(cone.distribution)
    conditions, outputs = np.zeros((0, a)), np.zeros(0, dtype=np.intp)
    factor, last = _FACTOR, -np.inf

    for number in range(_ROUNDS):
        mass = masses.sum(axis=1)
        posteriors = masses / mass[:, None]
        looked = cone.looked_at(posteriors)
        inner = np.vstack([cone.inside(posteriors), cone.distribution])
        found = best_mixture(cone, inner, cone.gains(inner))
        if found is not None and found.value > best.value:
            best = found
        value = float(cone.gains(posteriors) @ mass)
        over = np.maximum(looked.over.max(axis=(1, 2, 3)), 0.0)
        if budget.expired or (number and float(over @ mass) < _MOVED and value - last < _GAINED):
            break
        last = value
        rows, of = cone.half_spaces(looked, _SPARE if number < _EARLY else _LATER)
        conditions, outputs = np.vstack([conditions, rows]), np.append(outputs, of)
        output, symbol = np.nonzero(masses > 1e-14)
        rank = np.full(masses.shape, -1, dtype=np.intp)
        rank[output, symbol] = np.arange(len(output))
        # Those that hold by far say nothing within a factor.
        spare = (conditions * masses[outputs]).sum(axis=1) < -_FAR * np.abs(conditions * masses[outputs]).sum(axis=1)
        conditions, outputs = conditions[~spare], outputs[~spare]
        entries = conditions * masses[outputs]
        entries /= np.abs(entries).max(axis=1, keepdims=True)
        row, column = np.nonzero((entries != 0) & (rank[outputs] >= 0))
        sparse = sp.csr_matrix(
            (entries[row, column], (row, rank[outputs[row], column])), shape=(len(entries), len(output))
        )
        totals = sp.csr_matrix((masses[output, symbol] / cone.distribution[symbol], (symbol, np.arange(len(output)))))
        slopes = cone.slopes(posteriors)
        gain = masses[output, symbol] * slopes[output, symbol]
        moves = None
        for wider in range(_TRIES):
            ends = (0.5**wider / factor, 2.0**wider * factor)
            moves = sparse_programme(gain, sparse, totals, np.ones(a), budget, ends)
            if moves is not None or budget.expired:
                break
        if moves is None:
            break
        masses = masses.copy()
        masses[output, symbol] *= moves.values
        used = masses.sum(axis=1) > 1e-9
        if not used.all():
            kept = used[outputs]
            conditions, outputs = conditions[kept], (np.cumsum(used) - 1)[outputs[kept]]
            masses = masses[used]
        if number >= _FREE:
            factor = max(_LEAST, 1 + (factor - 1) * _FALL)
    return best
