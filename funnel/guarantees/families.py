"""Families of half-spaces: what all distributions with the same share of each secret ask of a row of a channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from funnel.guarantees.greedy import Places
from funnel.joint import FloatArray

# Of a distribution whose limits leave less than this open, nothing is taken to be open.
_CLOSED = 1e-9
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Families:
    """Half-spaces ``g · T <= 0`` that a row T meets, infinitely many at once.

    Family f has all ``g = least_f + Σ_j sign_j q_j e_x(j)`` over its open entries j: each ``q_j`` is between 0 and
    ``width_j``, and those of a term add up to its ``rest``. A term is one secret of the family: how the records of
    that secret may be spread over inputs.

    A guarantee is asked for with a limit that is a little tighter than its own. What it asks for itself has the same
    shape: ``proven`` instead of ``least``, and ``ease_k`` times the open entries of term k.

    Attributes
    ----------
    of : ndarray of int, shape (F,)
        The row that breaks each family.
    share : ndarray, shape (F,)
        How far it breaks the guarantee itself: the share of a constant row by which it would not, in the worst case.
    least, proven : ndarray, shape (F, a)
    family : ndarray of int, shape (K,)
        The family of each term.
    rest, sign, ease : ndarray, shape (K,)
    term : ndarray of int, shape (J,)
        The term of each open entry.
    place : ndarray of int, shape (J,)
        Its input.
    width : ndarray, shape (J,)
    """

    of: Places
    share: FloatArray
    least: FloatArray
    proven: FloatArray
    family: Places
    rest: FloatArray
    sign: FloatArray
    ease: FloatArray
    term: Places
    place: Places
    width: FloatArray

    def __len__(self) -> int:
        return len(self.of)

    @classmethod
    def none(cls, inputs: int) -> Self:
        """No family."""
        return cls.alone(np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros((0, inputs)))

    @classmethod
    def alone(cls, of: Places, share: FloatArray, spaces: FloatArray) -> Self:
        """Half-spaces (m, a), each a family of its own."""
        no, number = np.zeros(0, dtype=np.intp), np.zeros(0)
        return cls(of, share, spaces, spaces, no, number, number, number, no, no, number)

    @classmethod
    def spread(
        cls,
        of: Places,
        share: FloatArray,
        amounts: tuple[FloatArray, FloatArray],
        lower: FloatArray,
        upper: FloatArray,
        places: Places,
    ) -> Self:
        """``Σ_t amount_t Σ_x p(x|t) T_{t,x} <= 0`` for all p(x|t) between limits.

        Parameters
        ----------
        of : ndarray of int, shape (m,)
        share : ndarray, shape (m,)
        amounts : two ndarrays, shape (m, c)
            For the tighter limit, and for that of the guarantee.
        lower, upper : ndarray, shape (m, c, u)
        places : ndarray of int, shape (c, u)
            Inputs.
        """
        tight, own = amounts
        sizes, upper = np.abs(tight), np.minimum(upper, 1.0)
        rest, width = 1 - lower.sum(axis=2), upper - lower
        full = width.sum(axis=2) - rest <= _CLOSED
        lower = np.where((full & (rest > _CLOSED))[..., None], upper, lower)
        is_open = ~full & (rest > _CLOSED) & (sizes > _CLOSED) & (np.abs(own) > _CLOSED)
        family, secret = np.nonzero(is_open)
        number = np.zeros(is_open.shape, dtype=np.intp)
        number[family, secret] = np.arange(len(family))
        f, t, x = np.nonzero((width > 0) & is_open[..., None])
        return cls(
            of,
            share,
            _summed(tight, lower, places),
            _summed(own, lower, places),
            family,
            (sizes * rest)[family, secret],
            np.sign(tight)[family, secret],
            (own / np.where(is_open, tight, 1.0))[family, secret],
            number[f, t],
            places[t, x],
            sizes[f, t] * width[f, t, x],
        )

    @classmethod
    def joined(cls, several: Sequence[Self]) -> Self:
        """All of them; at least one."""
        families = np.cumsum([0, *(len(one) for one in several)])
        terms = np.cumsum([0, *(len(one.rest) for one in several)])
        moved = [
            replace(one, family=one.family + first, term=one.term + before)
            for one, first, before in zip(several, families, terms, strict=False)
        ]
        return cls(*(np.concatenate([getattr(one, name) for one in moved]) for name in cls.__dataclass_fields__))

    def by_row(self) -> Self:
        """The same, families by the rows that break them, terms by their families, and entries by their terms."""
        families = np.argsort(self.of, kind="stable")
        terms = np.argsort(_places_of(families)[self.family], kind="stable")
        entries = np.argsort(_places_of(terms)[self.term], kind="stable")
        return self._taken((families, terms, entries), _places_of(families), _places_of(terms))

    def _taken(self, some: tuple[Any, Any, Any], number: Places, of_term: Places) -> Self:
        """Some families, terms and entries, by new numbers of all families and terms."""
        families, terms, entries = some
        return type(self)(
            self.of[families],
            self.share[families],
            self.least[families],
            self.proven[families],
            number[self.family[terms]],
            self.rest[terms],
            self.sign[terms],
            self.ease[terms],
            of_term[self.term[entries]],
            self.place[entries],
            self.width[entries],
        )

    def without_margin(self) -> Self:
        """What the guarantee itself asks for."""
        size = np.abs(self.ease)
        return replace(
            self,
            least=self.proven,
            rest=self.rest * size,
            sign=self.sign * np.sign(self.ease),
            ease=np.ones_like(size),
            width=self.width * size[self.term],
        )

    def over(self, places: Places, inputs: int) -> Self:
        """Over so many inputs, where those of these families are at the places (a,): several may be at one."""
        moved = np.zeros((2, len(self), inputs))
        for place in range(len(places)):
            moved[:, :, places[place]] += self.least[:, place], self.proven[:, place]
        return replace(self, least=moved[0], proven=moved[1], place=places[self.place])

    def only(self, kept: npt.NDArray[np.bool_]) -> Self:
        """Those of the families (F,) that are kept."""
        terms = kept[self.family]
        return self._taken((kept, terms, terms[self.term]), _renumbered(kept), _renumbered(terms))


def share_of(value: FloatArray, constant: FloatArray) -> FloatArray:
    """The share of a constant row that takes rows to the edge of half-spaces, for what both are there; 0 inside."""
    excess = np.maximum(value, 0.0)
    return np.asarray(excess / np.maximum(excess - constant, _TINY))


def _summed(amounts: FloatArray, lower: FloatArray, places: Places) -> FloatArray:
    """``Σ_t amount_t lower_t``, shape (m, a)."""
    least = np.zeros((len(lower), int(places.max()) + 1))
    for t, place in enumerate(places):
        # An input occurs once for a secret.
        least[:, place] += amounts[:, t, None] * lower[:, t]
    return least


def _places_of(order: Places) -> Places:
    """Where an order puts every one."""
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places


def _renumbered(kept: npt.NDArray[np.bool_]) -> Places:
    return np.cumsum(kept) - 1
