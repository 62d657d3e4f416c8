"""Share estimate: shares of cells as they were estimated, with errors and intervals, as text and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from funnel.estimation.layout import errors_of, json_cells, json_settings, shown, table
from funnel.joint import FloatArray


@dataclass(frozen=True, eq=False)
class Together:
    """Cells whose shares are told only in sum.

    Attributes
    ----------
    cells : tuple of tuple of str
    frequency, error, lower, upper : float
        Of their sum.
    """

    cells: tuple[tuple[str, ...], ...]
    frequency: float
    error: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated shares of true values, or of cells of them.

    Attributes
    ----------
    columns : tuple of str
        What is estimated: all columns the protocol reads, or those asked for.
    given : tuple of str
        Those of them that make groups, or that shares are within: shares are of the records with the same values there.
    cells : tuple of tuple of str
        Their values; by default in the order of ``protocol.inputs``.
    frequencies : ndarray, shape (cells,)
        Shares of all records, or of those of a group; nan where the records cannot tell.
    errors : ndarray, shape (cells,)
        Standard errors, nan where the records cannot tell.
    lower, upper : ndarray, shape (cells,)
        Intervals; of a share that cannot be told, what is left of it.
    together : tuple of Together
        Cells that are told only in sum.
    records : int
    method : "count", "em", "inverse" or "combined"
        The last is of records and noisy counts together.
    sampling : bool
        Whether errors are of the distribution that the records are a sample of, or of these records.
    confidence : float
        Of each interval by itself, or of all together.
    simultaneous : bool
        Whether it is of all together.
    rare : tuple of (tuple of str, float)
        Values that were taken to be rare, and the largest share of all records that each was said to have.
    r : ndarray, shape (cells,), or None
        Of plain counts: usual variances for the population are multiplied by 1 + r. From 0 to 1; nan where a share is
        within a part of which no record was published.
    chi_square_r : float or None
        Of plain counts of two columns crossed: chi-square statistics of independence are divided by 1 + this.
    rounded : float
        By how much each probability of the published channel may be off; intervals have room for it, errors have not.

    Examples
    --------
    >>> import funnel, numpy as np
    >>> joint = funnel.Joint.from_counts([[300, 100], [100, 500]], inputs=["u", "v"])
    >>> print(funnel.estimate(np.array([430, 570]), funnel.fit("grr", joint, funnel.LIP(0.5)), sampling=True))
    ...                                                          # doctest: +ELLIPSIS
    X   share   error    from      to
    u  0.3...
    """

    columns: tuple[str, ...]
    given: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    frequencies: FloatArray
    errors: FloatArray
    lower: FloatArray
    upper: FloatArray
    together: tuple[Together, ...]
    records: int
    method: str
    sampling: bool
    confidence: float
    simultaneous: bool
    rare: tuple[tuple[tuple[str, ...], float], ...] = ()
    r: FloatArray | None = None
    chi_square_r: float | None = None
    rounded: float = 0.0

    @property
    def about(self) -> str:
        """What errors are of, in one sentence."""
        random = "answers and of the noise" if self.method == "combined" else "answers"
        randomness = errors_of(random if self.r is None else "changes", self.sampling)
        together = ", all of them together" if self.simultaneous else ""
        groups = f"; shares are given {' and '.join(self.given)}" if self.given else ""
        usual = "" if self.r is None else ", counted as usual"
        noisy = ", with their noisy counts" if self.method == "combined" else ""
        of = f"{self.records:,} records{usual}{noisy}{groups}"
        told = f"{of}; {randomness}; intervals at {self.confidence:.0%}{together}"
        if self.rounded:
            told += f", with room for the rounding of the published probabilities, of {self.rounded:.2g} at most"
        if self.r is not None:
            told += "; usual standard errors for the population are multiplied by √(1 + r)"
        if self.chi_square_r is not None:
            told += f", chi-square of independence is divided by {1 + self.chi_square_r:.3f}"
        if not self.rare:
            return told
        most = sum(share for _, share in self.rare)
        number = "a value" if len(self.rare) == 1 else f"{len(self.rare):,} values"
        return (
            f"{told}; {number} with at most {most:.2%} of the records in all cannot be told, and intervals allow for it"
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values; what cannot be told is None."""

        names = ("columns", "given", "records", "method", "sampling", "confidence", "simultaneous")
        ratios = {} if self.r is None else {"r": self.r}
        content = {
            **json_settings(self, *names),
            "cells": json_cells(
                self.cells, frequency=self.frequencies, error=self.errors, lower=self.lower, upper=self.upper, **ratios
            ),
            "rare": [{"values": list(symbol), "at_most": share} for symbol, share in self.rare],
            "together": [
                {
                    "values": [list(cell) for cell in group.cells],
                    **json_settings(group, "frequency", "error", "lower", "upper"),
                }
                for group in self.together
            ],
        }
        if self.r is not None:
            content["chi_square_r"] = self.chi_square_r
        return content

    def __repr__(self) -> str:
        rows = [(*self.columns, "share", "error", "from", "to", *([] if self.r is None else ["r"]))]
        for place, (cell, low, up) in enumerate(zip(self.cells, self.lower, self.upper, strict=True)):
            # An interval of all shares there are says nothing, whatever stands beside it.
            share = np.nan if low <= 0 and up >= 1 else self.frequencies[place]
            ratios = [] if self.r is None else ["–" if np.isnan(share) else f"{self.r[place]:.3f}"]
            rows.append((*cell, *shown(share, self.errors[place]), f"{low:.4f}", f"{up:.4f}", *ratios))
        for group in self.together:
            label = " + ".join(" · ".join(cell) for cell in group.cells)
            blank = ("",) * (len(self.columns) - 1)
            figures = f"{group.lower:.4f}", f"{group.upper:.4f}"
            rows.append((label, *blank, *shown(group.frequency, group.error), *figures))
        return table(rows, len(self.columns), self.about)
