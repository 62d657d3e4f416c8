"""Pairing: records that move find places that are left, close to their own, until all are taken."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from funnel.joint import IntArray

Keys = npt.NDArray[np.uint64]

# Sets of columns to agree on that are tried before the chain of the first columns.
_SETS = 100
# Constants of splitmix64, a bijection that spreads the bits of a number.
_STEP, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def agreements(columns: int) -> Iterator[tuple[int, ...]]:
    """Sets of columns to agree on, largest first; of equally large ones those that leave out late columns first.

    At most a hundred, and then ever fewer of the first columns, down to none: everything is paired in the end.
    """
    sizes, number = 0, 0
    for left_out in range(1, columns):
        of_size = list(itertools.combinations(reversed(range(columns)), left_out))
        if number + len(of_size) > _SETS:
            break
        for out in of_size:
            yield tuple(j for j in range(columns) if j not in out)
        sizes, number = left_out, number + len(of_size)
    for kept in range(columns - sizes - 1, -1, -1):
        yield tuple(range(kept))


def paired(
    codes: IntArray,
    movers: tuple[IntArray, IntArray, IntArray],
    places: tuple[IntArray, IntArray, IntArray],
) -> tuple[IntArray, IntArray, IntArray]:
    """Which records move where.

    Parameters
    ----------
    codes : ndarray of int64, shape (a, columns)
        The values of every record, the columns that are to agree most first.
    movers : tuple of three arrays, each (m,)
        Records, the classes that they are of, and the masses that leave them.
    places : tuple of three arrays, each (k,)
        Records, the classes that masses are to come from, and these masses; class by class they sum to those of the
        movers.

    Returns
    -------
    tuple of three arrays
        Record that is left, record that is taken, and mass; every pair once, at most m + k of them.

    Notes
    -----
    O((m + k) log(m + k)) for each of about a hundred sets of columns. Masses below 2^62 in all.
    """
    leaving, taking = np.array(movers[2]), np.array(places[2])
    numbers = hashed(codes)
    found: list[tuple[IntArray, IntArray, IntArray]] = []
    for kept in agreements(codes.shape[1]):
        some, others = np.flatnonzero(leaving), np.flatnonzero(taking)
        if not len(some):
            break
        agreed = numbers[:, list(kept)].sum(axis=1, dtype=np.uint64)
        of_movers, of_places = (
            agreed[records[at]] + spread(classes[at].astype(np.uint64))
            for records, classes, at in ((*movers[:2], some), (*places[:2], others))
        )
        left, taken, mass = _along(of_movers, of_places, leaving[some], taking[others])
        np.subtract.at(leaving, some[left], mass)
        np.subtract.at(taking, others[taken], mass)
        found.append((movers[0][some[left]], places[0][others[taken]], mass))
    return _once([np.concatenate(part) for part in zip(*found, strict=True)], len(codes))


def _along(mover_keys: Keys, place_keys: Keys, leaving: IntArray, taking: IntArray) -> tuple[IntArray, ...]:
    """Pair movers and places of equal keys, each in its order: positions among both, and masses.

    Laid end to end, key by key, both sides are cut at the ends of either: every piece is of one mover and one place.
    """
    keys, of = np.unique(np.concatenate([mover_keys, place_keys]), return_inverse=True)
    of_movers, of_places = of[: len(mover_keys)], of[len(mover_keys) :]
    most = np.minimum(_totals(of_movers, leaving, len(keys)), _totals(of_places, taking, len(keys)))
    movers, out = _laid(of_movers, leaving, most)
    places, into = _laid(of_places, taking, most)
    cuts = np.union1d(out, into)
    mass = np.diff(cuts, prepend=0)
    return movers[np.searchsorted(out, cuts)], places[np.searchsorted(into, cuts)], mass


def _totals(keys: IntArray, masses: IntArray, size: int) -> IntArray:
    totals = np.zeros(size, dtype=np.int64)
    np.add.at(totals, keys, masses)
    return totals


def _laid(keys: IntArray, masses: IntArray, most: IntArray) -> tuple[IntArray, IntArray]:
    """Positions in order of their keys, as far as a key's mass goes, and where each ends."""
    order = np.argsort(keys, kind="stable")
    upto = np.cumsum(masses[order])
    begin = np.searchsorted(keys[order], keys[order])
    before = upto - masses[order]
    used = np.minimum(masses[order], most[keys[order]] - (before - before[begin]))
    there = used > 0
    return order[there], np.cumsum(used[there])


def _once(pairs: Sequence[IntArray], size: int) -> tuple[IntArray, IntArray, IntArray]:
    """Every pair once, with its mass in all."""
    flat, of = np.unique(pairs[0] * size + pairs[1], return_inverse=True)
    return flat // size, flat % size, _totals(of, pairs[2], len(flat))


def hashed(codes: IntArray) -> Keys:
    """A number for every value of every column, (a, columns): sums of them tell combinations apart.

    That two combinations have one sum is as likely as a collision of 64 random bits, and would only pair records that
    are further apart.
    """
    width = np.arange(codes.shape[1], dtype=np.uint64) << np.uint64(40)
    return spread(spread(codes.astype(np.uint64) + width))


def spread(numbers: Keys) -> Keys:
    with np.errstate(over="ignore"):
        mixed = (numbers + np.uint64(1)) * _STEP
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
        mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
