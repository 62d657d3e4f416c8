"""What `funnel estimate` is asked about releases, and which estimate answers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from funnel.errors import SpecError
from funnel.estimation import Estimate, NumberEstimate, OddsRatios, Trend, estimate_trend
from funnel.estimation.methods import Method
from funnel.estimation.numbers import QUARTILES
from funnel.estimation.odds import plain_odds
from funnel.estimation.weighted import WeightedEstimate
from funnel.readers.cells import number_in
from funnel.release.counted_as_usual import counted_as_usual
from funnel.release.estimated import estimate_numbers_of, estimate_release
from funnel.release.layout import ReleaseFolder
from funnel.release.reading import open_release
from funnel.release.weighted import estimate_release_weighted

Answer = Estimate | NumberEstimate | OddsRatios | Trend | WeightedEstimate


@dataclass(frozen=True)
class Question:
    """What is asked of one release or of several.

    Attributes
    ----------
    by : tuple of str
        Columns that are crossed; all without any.
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
    method: Method | None = None

    def answer(self, folders: Sequence[ReleaseFolder]) -> Answer:
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
        if self.of is not None and (self.within or self.weighted or len(folders) > 1):
            raise SpecError("--of is about the records of one release, and its cells are named with --by")
        if self.weighted and (self.within or len(folders) > 1):
            raise SpecError("--weighted is about one release, and shares of all of its population")
        if self.weighted and self.method == "inverse":
            raise SpecError("--weighted estimates are the likeliest ones; take --method inverse out")
        method, by = self.method, self.by or None
        if self.odds:
            return self._odds(folders)
        if self.of is not None:
            return estimate_numbers_of(
                folders[0],
                self.of,
                self.by,
                numbers=dict(map(_stands_for, self.numbers)),
                quantiles=self.quantiles or QUARTILES,
                method=method,
                sampling=self.sampling,
            )
        if self.weighted:
            return estimate_release_weighted(folders[0], by, sampling=self.sampling)
        if len(folders) > 1:
            return estimate_versions(folders, by, within=self.within, method=method, sampling=self.sampling)
        return estimate_release(folders[0], by, within=self.within, method=method, sampling=self.sampling)

    def _odds(self, folders: Sequence[ReleaseFolder]) -> OddsRatios:
        if self.of is not None or self.within or self.weighted or len(folders) > 1 or len(self.by) != 2:
            raise SpecError("--odds is about the records of one release and two columns: --by COLUMN --by COLUMN")
        if self.method not in (None, "count"):
            raise SpecError("--odds ratios are counted as usual; take --method out")
        plain, _ = counted_as_usual(folders[0])
        return plain_odds(plain, *self.by, sampling=self.sampling)


def estimate_versions(
    folders: Sequence[ReleaseFolder],
    by: str | Sequence[str] | None = None,
    *,
    within: str | Sequence[str] = (),
    method: Method | None = None,
    sampling: bool = False,
    confidence: float = 0.95,
) -> Trend:
    """`funnel.estimate_trend` of several versions.

    They are taken to be about different people where they are of one series, and each says so; else answers may
    depend on each other in any way.

    Parameters
    ----------
    folders : sequence of ReleaseFolder
        In order of time.
    by, within, method, sampling, confidence
        As of `funnel.estimate`.

    Raises
    ------
    DataError, SpecError
        As `estimate_release` and `funnel.estimate_trend`.
    """
    opened = [open_release(folder.root) for folder in folders]
    found = [
        estimate_release(folder, by, within=within, method=method, sampling=sampling, confidence=confidence)
        for folder in folders
    ]
    names = {one.package.get("name") for one in opened}
    different = len(names) == 1 and all(one.privacy.people == "different" for one in opened)
    versions = [one.version if len(names) == 1 else f"{one.package.get('name')} {one.version}" for one in opened]
    return estimate_trend(found, same_people=not different, versions=versions)


def _stands_for(text: str) -> tuple[str, float | tuple[float, float]]:
    label, _, number = text.rpartition("=")
    ends = [number_in(end) for end in number.split("..")]
    match ends if label else []:
        case [float() as one]:
            return label, one
        case [float() as least, float() as largest]:
            return label, (least, largest)
    raise SpecError(f"--number {text!r} is no VALUE=NUMBER, such as 'under 25=20', nor VALUE=LEAST..LARGEST")
