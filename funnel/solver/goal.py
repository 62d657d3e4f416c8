"""Goal: the convex function of posteriors whose average a protocol maximises, as the solver needs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from funnel.joint import FloatArray, Joint
from funnel.measures.utilities import Utility, Variance

# What a bound over listed vertices is raised by: they are known to about 1e-11, and v ln v is steep near zero.
_SLACK = 1e-9


def negative_entropy(posteriors: FloatArray) -> FloatArray:
    """g(v) = Σ_x v_x ln v_x of each row, in nats: convex, 0 for a point mass; shape (k, a) to (k,)."""
    return np.asarray(xlogy(posteriors, posteriors).sum(axis=-1))


class Goal(ABC):
    """A convex g of what the utility counts of a posterior; a utility is ``Σ_y P(y) g(v_y) - g(p_X)``.

    The theorem of METHOD section 3 uses nothing of g but that it is convex: some optimum uses vertices of the region
    only, and for any prices λ no protocol has more than ``λ·p_X + max (g(v) - λ·v) - g(p_X)``.
    """

    @abstractmethod
    def gains(self, counted: FloatArray) -> FloatArray:
        """g of each row (k, d); shape (k,)."""

    @abstractmethod
    def slopes(self, counted: FloatArray) -> FloatArray:
        """Slopes of ``P(y) g(v_y)`` in the masses ``P(x, y)``, ``g'(v) - g'(v)·v + g(v)`` at each row; shape (k, d)."""

    @abstractmethod
    def first_prices(self, reach: FloatArray) -> FloatArray:
        """Prices (d,) at which no posterior has a positive ``g - λ·v``, so that they cost no search.

        Parameters
        ----------
        reach : ndarray, shape (d,)
            Upper bounds on every coordinate in the region.
        """

    def most(self, distribution: FloatArray) -> float:
        """What no average of g exceeds, of a mixture of posteriors that is p_X, shape (d,)."""
        return float(distribution @ self.first_prices(np.ones(len(distribution))))

    @property
    def slack(self) -> float:
        """What a bound over listed vertices, whose coordinates have rounding errors, is to be raised by."""
        return _SLACK


@dataclass(frozen=True)
class Entropy(Goal):
    """``g(v) = Σ v ln v``, in nats: the utility is I(X;Y)."""

    def gains(self, counted: FloatArray) -> FloatArray:
        """Σ v ln v."""
        return negative_entropy(counted)

    def slopes(self, counted: FloatArray) -> FloatArray:
        """Ln v, that of a zero being finite."""
        return np.asarray(np.log(np.maximum(counted, 1e-300)))

    def first_prices(self, reach: FloatArray) -> FloatArray:
        """Ln of the reach: v ln v is at most v ln r where v is at most r, a bound on min-entropy."""
        return np.asarray(np.log(reach))


ENTROPY = Entropy()


@dataclass(frozen=True, eq=False)
class SquaredMean(Goal):
    """``g(v) = (m·v)²``: the utility is the variance that the output explains of numbers m, Var E[m|Y].

    Attributes
    ----------
    numbers : ndarray, shape (a,)
        m, of mean 0 and variance 1 under p_X: the utility is then the share of the variance that is explained.
    """

    numbers: FloatArray

    @classmethod
    def of(cls, numbers: FloatArray, distribution: FloatArray) -> SquaredMean:
        """From numbers (a,) of any mean and variance; where they do not vary there is nothing to explain."""
        # From one of them first: numbers that are all one are then exactly 0.
        centred = numbers - numbers[0]
        centred = centred - float(centred @ distribution)
        spread = float(np.sqrt(distribution @ centred**2))
        return cls(centred / spread if spread > 0 else np.zeros_like(centred))

    def gains(self, counted: FloatArray) -> FloatArray:
        """(m·v)²."""
        return np.asarray((counted @ self.numbers) ** 2)

    def slopes(self, counted: FloatArray) -> FloatArray:
        """2 (m·v) m - (m·v)²."""
        means = (counted @ self.numbers)[..., None]
        return np.asarray(2 * means * self.numbers - means**2)

    def first_prices(self, reach: FloatArray) -> FloatArray:
        """m²: a square of a mean is at most the mean of the squares."""
        return np.asarray(self.numbers**2)

    @property
    def slack(self) -> float:
        """For numbers far from the mean, as much more as their squares are."""
        return _SLACK * max(1.0, float((self.numbers**2).max()))


def goal_of(utility: Utility, joint: Joint, places: npt.NDArray[np.intp], distribution: FloatArray) -> Goal:
    """The goal that a utility is for posteriors over some of the inputs.

    Parameters
    ----------
    utility : Utility
    joint : Joint
        Over X.
    places : ndarray of int, shape (k,)
        The x of every coordinate of a posterior.
    distribution : ndarray, shape (k,)
        What posteriors average to.
    """
    if isinstance(utility, Variance):
        return SquaredMean.of(utility.of_inputs(joint.inputs, joint.p_input)[places], distribution)
    return ENTROPY
