"""Certificate: by how much another protocol could be better than one that was found, at most, and counted in what."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Weighting = Literal["root", "share", "uniform"]
"""What values count that stay as they are: by the root of their share of the records, by their share, or alike."""
WEIGHTED: dict[Weighting, str] = {
    "root": "rare values count for more than their share of the records",
    "share": "every record counts alike",
    "uniform": "every value counts alike, however rare",
}
"""The same in words."""

_READS = {
    "unchanged": "keeps values as they are and tables right on average",
    "classes": "moves whole records by their class alone and keeps tables right on average",
}


@dataclass(frozen=True)
class Certificate:
    """No protocol of the same kind that meets the guarantee is better by more than a gap.

    Attributes
    ----------
    of : "kept", "unchanged" or "classes"
        "kept": of protocols that read the same, as a share of what there is of the utility, such as H(X).
        "unchanged": of protocols that keep values as they are and tables right on average, as a share of the records
        that stay unchanged. "classes": the same, of protocols that move whole records by their class alone.
    gap : float
        From 0 to 1.
    weights : "root", "share", "uniform" or None
        What values, or classes, count that stay as they are; None for "kept".
    """

    of: Literal["kept", "unchanged", "classes"]
    gap: float
    weights: Weighting | None = None

    def __post_init__(self) -> None:
        """Refuse records unchanged without their weights, and weights of anything else.

        Raises
        ------
        ValueError
            If there are some of the one, or none of the other.
        """
        if (self.weights is None) != (self.of == "kept"):
            raise ValueError(f"a certificate of records {self.of!r} has the weights {self.weights!r}")

    @classmethod
    def of_utility(cls, found: float, bound: float, share: float) -> Certificate:
        """Of a utility, which is this share of all there is, and that of no other protocol is above a bound.

        A bound that rounding leaves below what was found is taken for as much.
        """
        most = 1.0 if found == 0 else min(1.0, max(bound, found) / found * share)
        return cls("kept", most - share)

    def sentence(self, share: float) -> str:
        """What it says beside the share that the protocol keeps."""
        if self.weights is not None:
            return (
                f"no protocol that {_READS[self.of]} leaves more than {_rounded_up(100 * self.gap, 2):.2f} points more "
                f"of the records unchanged, where {WEIGHTED[self.weights]}"
            )
        most, gap = (_rounded_up(100 * one, 1) for one in (share + self.gap, self.gap))
        return f"no protocol that reads the same keeps more than {most:.1f}%, {gap:.1f} points more"


def _rounded_up(value: float, digits: int) -> float:
    """To so many decimals; what floats add to a decimal number is none."""
    unit = float(10**digits)
    return math.ceil(value * unit - 1e-6) / unit
