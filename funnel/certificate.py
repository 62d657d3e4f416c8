"""Certificate: by how much another protocol could be better than one that was found, at most, and counted in what."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

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
        that stay unchanged, with the weights that were asked for. "classes": the same, of protocols that move whole
        records by their class alone.
    gap : float
        From 0 to 1.
    """

    of: Literal["kept", "unchanged", "classes"]
    gap: float

    @classmethod
    def of_utility(cls, found: float, bound: float, share: float) -> Certificate:
        """Of a utility, which is this share of all there is, and that of no other protocol is above a bound.

        A bound that rounding leaves below what was found is taken for as much.
        """
        most = 1.0 if found == 0 else min(1.0, max(bound, found) / found * share)
        return cls("kept", most - share)

    def sentence(self, share: float) -> str:
        """What it says beside the share that the protocol keeps."""
        if self.of != "kept":
            return (
                f"no protocol that {_READS[self.of]} leaves more than {_rounded_up(100 * self.gap, 2):.2f} points more "
                "of the records unchanged, with the weights that it was asked for"
            )
        most, gap = (_rounded_up(100 * one, 1) for one in (share + self.gap, self.gap))
        return f"no protocol that reads the same keeps more than {most:.1f}%, {gap:.1f} points more"


def _rounded_up(value: float, digits: int) -> float:
    """To so many decimals; what floats add to a decimal number is none."""
    unit = float(10**digits)
    return math.ceil(value * unit - 1e-6) / unit
