"""Posterior classes: records after which the secret has one and the same distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.alphabet import Alphabet
from funnel.joint import IntArray, Joint


@dataclass(frozen=True, eq=False)
class PosteriorClasses:
    """The records of a joint distribution by their posterior P(S | x).

    A bound on the posterior sees of a channel only how many records of which posterior an output comes from. Hence the
    best channel over classes is as good as the best one over records (docs/columns.md), and there are few classes:
    most records of a wide table are one respondent's, so that their posterior is certain.

    Attributes
    ----------
    of_record : ndarray of int64, shape (a,)
        The class of every record.
    joint : Joint
        Counts (c, g) of secrets and classes.
    """

    of_record: IntArray
    joint: Joint

    @classmethod
    def of(cls, joint: Joint) -> PosteriorClasses:
        """The classes of a joint distribution whose inputs all occur: compared as fractions, exactly."""
        counts = joint.counts
        lowest = counts // np.gcd.reduce(counts, axis=0)
        found, of_record = np.unique(lowest, axis=1, return_inverse=True)
        of_record = of_record.reshape(-1)
        merged = np.zeros((len(counts), found.shape[1]), dtype=np.int64)
        for of_class, row in zip(merged, counts, strict=True):
            np.add.at(of_class, of_record, row)
        return cls(of_record, Joint(merged, joint.secret, Alphabet.of(None, found.shape[1], "class")))
