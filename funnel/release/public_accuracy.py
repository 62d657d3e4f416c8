"""How well the true shares of a release can be estimated from its records: computed from public figures alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.joint import FloatArray
from funnel.release.public import PublicLaws, rounded_up

DIGITS = 2
# The singular values of a matrix of more values take longer than all the rest of a report.
LARGEST = 500
# Directions in which the information is smaller than this part of the largest tell nothing.
_NOTHING = 1e-10


@dataclass(frozen=True, eq=False)
class PublicAccuracy:
    """Standard errors of estimated shares.

    Attributes
    ----------
    errors : ndarray, shape (a,)
        What drawing adds to the error of an efficient estimate of the share of each true value, two digits, rounded up;
        nan where the records alone cannot tell the share. Zero where nothing is drawn.
    """

    errors: FloatArray

    @classmethod
    def of(cls, laws: PublicLaws) -> PublicAccuracy | None:
        """Of published laws; None where there are too many values.

        The law of the outputs is that of one column of Q = P(y|x) for each value, so the Fisher information of n
        records about the shares p is ``I = n Qᵀ diag(1/q) Q``, restricted to changes of p that sum to zero. Its
        inverse is the covariance of an efficient estimate of p; of that, ``p (1 - p) / n`` is there without a protocol.
        """
        occurring = laws.p_input > 0
        shares = laws.p_input[occurring] / laws.p_input.sum()
        if len(shares) > LARGEST or not isinstance(laws.posterior, np.ndarray):
            return None
        errors = np.full(len(occurring), np.nan)
        law = np.nan_to_num(laws.posterior[:, occurring]) * laws.p_output[:, np.newaxis]
        seen = law.sum(axis=1) > 0
        channel = law[seen] / law[seen].sum(axis=0)
        output = channel @ shares
        # In units of √p, where the information is between 0 and n whatever the shares.
        roots = np.sqrt(shares)
        scaled = channel * roots / np.sqrt(output)[:, np.newaxis]
        _, roots_known, directions = np.linalg.svd(scaled, full_matrices=False)
        telling = roots_known**2 > _NOTHING * roots_known[0] ** 2
        seen_along = directions[telling].T
        # What of the direction of one share alone lies in none that is told; all growing alike is the largest of these.
        told = 1 - (seen_along**2).sum(axis=1) < np.sqrt(_NOTHING)
        within = seen_along / roots_known[telling]
        variance = shares * ((within**2).sum(axis=1) - shares) / laws.n
        added = np.sqrt(np.maximum(0.0, variance - shares * (1 - shares) / laws.n))
        # What is left of a difference of equal numbers is no error.
        added[added < 1e-9] = 0.0
        errors[occurring] = [
            rounded_up(float(error), DIGITS) if is_told else np.nan for error, is_told in zip(added, told, strict=True)
        ]
        return cls(errors)
