"""What `funnel estimate` is asked about releases, and which estimate answers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from funnel.alphabet import CLASS_COLUMN
from funnel.analysis.release import Release
from funnel.errors import SpecError
from funnel.estimation.fit import Method
from funnel.estimation.means import QUARTILES
from funnel.estimation.number_estimate import NumberEstimate
from funnel.estimation.odds import OddsRatios
from funnel.estimation.share_estimate import Estimate
from funnel.estimation.trend import Trend
from funnel.estimation.weighted import WeightedEstimate
from funnel.readers.cells import number_in
from funnel.release.layout import find_release
from funnel.wording import names_in


@dataclass(frozen=True)
class ColumnShares:
    """Shares of the values of each column by itself: of whole records, whose combinations are too many to list.

    Attributes
    ----------
    columns : tuple of Estimate
    """

    columns: tuple[Estimate, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"columns": [one.to_dict() for one in self.columns]}

    def __str__(self) -> str:
        """One table after another, and what they have in common."""
        tables, notes = zip(*(str(one).rsplit("\n", 1) for one in self.columns), strict=True)
        return "\n\n".join((*tables, *dict.fromkeys(notes)))


Answer = Estimate | NumberEstimate | OddsRatios | Trend | WeightedEstimate | ColumnShares


@dataclass(frozen=True)
class Question:
    """What is asked of one release or of several.

    Attributes
    ----------
    by : tuple of str
        Columns that are crossed; without any all, or each by itself where whole records are published.
    within : tuple of str
        Columns in every cell of which shares are asked for.
    of : str or None
        A column of numbers, whose mean, total and quantiles are asked for.
    quantiles : tuple of float
        Quartiles without any.
    numbers : tuple of str
        What values of that column stand for: ``VALUE=NUMBER`` or ``VALUE=LEAST..LARGEST``.
    odds : bool
        Whether odds ratios of the two columns of `by` are asked for.
    weighted : bool
        Whether the population is meant that the published classes of weights stand for.
    sampling : bool
    design_effect : float or None
        Of the sample, for weighted estimates; None if none is given.
    method : "count", "em", "inverse" or None
        Of shares; None for the usual one.
    """

    by: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    of: str | None = None
    quantiles: tuple[float, ...] = ()
    numbers: tuple[str, ...] = ()
    odds: bool = False
    weighted: bool = False
    sampling: bool = False
    design_effect: float | None = None
    method: Method | None = None

    def answer(self, releases: Sequence[Path]) -> Answer:
        """The estimate that answers it.

        Raises
        ------
        SpecError
            If what is asked does not go together, or a column is not known.
        DataError
            If a release cannot be read.
        """
        if self.of is None and (self.quantiles or self.numbers):
            raise SpecError("--quantile and --number go with --of COLUMN: they are about a column of numbers")
        if self.of is not None and (self.within or self.weighted or len(releases) > 1):
            raise SpecError("--of is about the records of one release, and its cells are named with --by")
        if self.weighted and (self.within or len(releases) > 1):
            raise SpecError("--weighted is about one release, and shares of all of its population")
        if self.weighted and self.method == "inverse":
            raise SpecError("--weighted estimates are the likeliest ones; take --method inverse out")
        if self.design_effect is not None and not (self.weighted and self.sampling):
            raise SpecError("--design-effect is of a sample and its weights: it goes with --weighted and --sampling")
        release, *later = (Release(find_release(path)) for path in releases)
        return self._named(release)._of(release, later)

    def _named(self, release: Release) -> Question:
        """The same, with columns that were named in one text with commas named one by one."""
        columns = release.columns
        return replace(self, by=names_in(self.by, columns), within=names_in(self.within, columns))

    def _of(self, release: Release, later: Sequence[Release]) -> Answer:
        by = self.by or None
        if self.odds:
            return self._odds(release, later)
        if self.of is not None:
            return release.mean(
                self.of,
                self.by,
                numbers=dict(map(_stands_for, self.numbers)),
                quantiles=self.quantiles or QUARTILES,
                method=self.method,
                sampling=self.sampling,
            )
        if self.weighted:
            effect = 1.0 if self.design_effect is None else self.design_effect
            return release.weighted(by, sampling=self.sampling, design_effect=effect)
        if later:
            return release.trend(later, by, within=self.within, method=self.method, sampling=self.sampling)
        if by is None and CLASS_COLUMN in release.columns:
            each = [column for column in release.columns if column not in (CLASS_COLUMN, *self.within)]
            return ColumnShares(tuple(replace(self, by=(column,))._shares(release) for column in each))
        return self._shares(release)

    def _shares(self, release: Release) -> Estimate:
        return release.shares(self.by or None, within=self.within, method=self.method, sampling=self.sampling)

    def _odds(self, release: Release, later: Sequence[Release]) -> OddsRatios:
        if self.of is not None or self.within or self.weighted or later or len(self.by) != 2:
            raise SpecError("--odds is about the records of one release and two columns: --by COLUMN,COLUMN")
        if self.method not in (None, "count"):
            raise SpecError("--odds ratios are counted as usual; take --method out")
        return release.odds(*self.by, sampling=self.sampling)


def _stands_for(text: str) -> tuple[str, float | tuple[float, float]]:
    label, _, number = text.rpartition("=")
    ends = [number_in(end) for end in number.split("..")]
    match ends if label else []:
        case [float() as one]:
            return label, one
        case [float() as least, float() as largest]:
            return label, (least, largest)
    raise SpecError(f"--number {text!r} is no VALUE=NUMBER, such as 'under 25=20', nor VALUE=LEAST..LARGEST")
