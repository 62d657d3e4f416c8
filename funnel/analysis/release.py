"""`funnel.load_release`: a published release as analysts read it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from funnel.errors import DataError
from funnel.protocol import Protocol
from funnel.release.layout import ReleaseFolder, find_release, last_part, led_by_latest
from funnel.release.privacy_block import KEY, PrivacyBlock
from funnel.release.protocol_document import ProtocolDocument
from funnel.tables import open_paged

if TYPE_CHECKING:
    import numpy.typing as npt

    from funnel.audit.check import Result
    from funnel.estimation.fit import Method
    from funnel.estimation.number_categories import StandFor
    from funnel.estimation.number_estimate import NumberEstimate
    from funnel.estimation.odds import OddsRatios
    from funnel.estimation.plain_counts import PlainCounts
    from funnel.estimation.regression import Family, Regression
    from funnel.estimation.share_estimate import Estimate
    from funnel.estimation.trend import Trend
    from funnel.estimation.weighted import WeightedEstimate
    from funnel.joint import FloatArray, IntArray


@dataclass(frozen=True)
class Release:
    """A published release.

    Attributes
    ----------
    folder : ReleaseFolder
        Where its files are, which are read when they are needed.
    asked : Path or None
        The path that it was asked for by, such as that of its series.
    """

    folder: ReleaseFolder
    asked: Path | None = None

    @cached_property
    def package(self) -> Mapping[str, Any]:
        """Content of ``datapackage.json``."""
        try:
            package = json.loads(self.folder.package.read_bytes())
            return {**package, KEY: dict(package[KEY])}
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise DataError(f"{self.folder.package} cannot be read: {reason}") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(f"{self.folder.package} is no data package of a release; the release is damaged") from error

    @cached_property
    def privacy(self) -> PrivacyBlock:
        """What it promises."""
        return PrivacyBlock.from_json(json.dumps(self.package[KEY]), f"in {self.folder.package}")

    @cached_property
    def document(self) -> ProtocolDocument:
        """Content of ``protocol.json``."""
        return ProtocolDocument.read(self.folder.protocol)

    @property
    def protocol(self) -> Protocol:
        """The channel that the records came through; shape (outputs, inputs)."""
        return self.document.protocol

    @property
    def version(self) -> str:
        """Its version."""
        return str(self.package["version"])

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of its records.

        Raises
        ------
        DataError
            If their file cannot be read.
        """
        try:
            with open_paged(self.folder.data) as file:
                return tuple(file.schema_arrow.names)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.folder.data} cannot be read as parquet; the release is damaged") from error

    def verify(
        self, public_key: str | None = None, *, internal: bool = False, index: str | Path | None = None
    ) -> list[Result]:
        """Check the release again, from its files alone, as ``funnel audit`` does.

        Parameters
        ----------
        public_key : str, optional
            The publisher's, from elsewhere than the release: hexadecimal, base64, PEM, or the path of a file with one.
            Without it the signature proves only that no file was changed since.
        internal : bool
            Whether to check its internal files, too, which only the publisher has.
        index : str or Path, optional
            The publisher's ``versions.json`` of the series, where it is not beside the folder: an old copy fails.

        Returns
        -------
        list of Result
            All of them passed.

        Raises
        ------
        LeakageExceeded
            If a check failed.
        NotChecked
            If none failed and some could not be made.
        DataError
            If a public document cannot be read at all.
        """
        from funnel.audit.check import error_of
        from funnel.audit.files import read_document
        from funnel.audit.recheck import Told, recheck
        from funnel.release.signature import parse_public_key
        from funnel.rendering import figures_again, page_renderer

        key = None if public_key is None else parse_public_key(public_key)
        asked = self.asked or self.folder.root
        told = Told(
            key,
            not internal,
            render=page_renderer(),
            figures=figures_again(),
            asked=last_part(asked),
            by_latest=led_by_latest(asked, self.folder),
            index=None if index is None else read_document(Path(index)),
        )
        checks = recheck(self.folder, told)
        if (complaint := error_of(str(self.folder.root), checks)) is not None:
            raise complaint
        return checks

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The records, as dictionary columns.

        Parameters
        ----------
        columns : sequence of str, optional
            Of these columns; of all without it.

        Raises
        ------
        DataError
            If there is no such column, or the file cannot be read.

        Notes
        -----
        O(records) memory, a byte or two for each and column.
        """
        for column in columns or ():
            if column not in self.columns:
                raise DataError(f"the release has no column {column!r}; its columns are {', '.join(self.columns)}")
        try:
            with open_paged(self.folder.data) as file:
                return file.read(columns=None if columns is None else list(columns))
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.folder.data} cannot be read as parquet; the release is damaged") from error

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The records for any library of Arrow tables: ``polars.DataFrame(release)``."""
        return self.table().__arrow_c_stream__(requested_schema)

    def shares(
        self,
        by: str | Sequence[str] | None = None,
        *,
        within: str | Sequence[str] = (),
        method: Method | None = None,
        sampling: bool = False,
    ) -> Estimate:
        """How common true values are, by `funnel.estimate`; rare values are taken to be as rare as is published.

        Parameters
        ----------
        by, within : str or sequence of str, optional
            Columns that are crossed, and columns in every cell of which shares are estimated.
        method : "count", "em" or "inverse", optional
            As of `funnel.estimate`.
        sampling : bool
            Whether errors are also those of a sample: then the estimates are of the population it is from.
        """
        from funnel.analysis.estimated import estimate_release

        return estimate_release(self.folder, by, within=within, method=method, sampling=sampling)

    def mean(
        self,
        column: str,
        by: str | Sequence[str] = (),
        *,
        numbers: StandFor | None = None,
        quantiles: Sequence[float] = (0.25, 0.5, 0.75),
        method: Method | None = None,
        sampling: bool = False,
    ) -> NumberEstimate:
        """Mean, total and quartiles of a column of numbers, in every cell of others.

        Parameters
        ----------
        column : str
        by : str or sequence of str, optional
        numbers : mapping of str to float, pair of float or None, optional
            What categories stand for, where the release does not say it.
        quantiles : sequence of float
            Between 0 and 1.
        method, sampling
            As of `shares`.
        """
        from funnel.analysis.estimated import estimate_numbers_of

        return estimate_numbers_of(
            self.folder, column, by, numbers=numbers, quantiles=quantiles, method=method, sampling=sampling
        )

    def odds(self, one: str, other: str, *, sampling: bool = False) -> OddsRatios:
        """Odds ratios of two columns of an invariant release, each value against the commonest one.

        Parameters
        ----------
        one, other : str
        sampling : bool
            As of `shares`.
        """
        from funnel.estimation.odds import plain_odds

        return plain_odds(self._counted[0], one, other, sampling=sampling)

    def regress(
        self,
        formula: str,
        *,
        family: Family = "linear",
        event: str | Collection[str] | None = None,
        numbers: Mapping[str, StandFor] | None = None,
        sampling: bool = True,
        confidence: float = 0.95,
    ) -> Regression:
        """Linear or logistic regression of true values, with errors for the random changes of the release.

        Parameters
        ----------
        formula : str
            Wilkinson's notation, such as ``"income ~ education + sex"``: the outcome is a column, and terms are of
            columns. Columns whose values are all numbers, or intervals of numbers, are numbers, others categories.
        family : "linear" or "logistic"
        event : str or collection of str, optional
            The values of the outcome whose probability a logistic regression is of.
        numbers : mapping of column to mapping of str to float, optional
            What values of a column stand for, where the release does not say it.
        sampling : bool
            Whether errors are also those of a sample, as usual regressions have them; if not, coefficients are those
            that a regression on the true records would give.
        confidence : float
            Of each interval by itself.

        Raises
        ------
        SpecError
            If the formula does not fit the columns, the records do not tell a coefficient, or formulaic is not
            installed (the extra ``formulas``).
        SolverError
            If no coefficients solve the equations.

        Notes
        -----
        Of records that are counted as usual it is the usual regression, with sandwich errors times √(1 + r). Of
        others the estimating equations are weighted by the inverse of the channel (`funnel.estimation.regression`).
        """
        from funnel.analysis.estimated import intervals_of, linear_source
        from funnel.estimation.regression import regress

        source, asked = linear_source(self.folder, sampling), numbers or {}
        known = {name: {**intervals_of(self.folder, name), **asked.get(name, {})} for name in source.values.columns}
        return regress(
            source,
            formula,
            family=family,
            event=event,
            numbers={name: stand_for for name, stand_for in known.items() if stand_for},
            sampling=sampling,
            confidence=confidence,
        )

    def weighted(
        self, by: str | Sequence[str] | None = None, *, sampling: bool = False, design_effect: float = 1.0
    ) -> WeightedEstimate:
        """Shares of the population, by the classes of survey weights that the release publishes.

        Parameters
        ----------
        by : str or sequence of str, optional
        sampling : bool
            As of `shares`.
        design_effect : float
            Of the sample, with ``sampling``, as of `funnel.estimation.weighted.estimate_weighted`: replicate
            weights are never published.
        """
        from funnel.analysis.weighted import estimate_release_weighted

        return estimate_release_weighted(self.folder, by, sampling=sampling, design_effect=design_effect)

    def trend(
        self,
        others: Sequence[Release | str | Path],
        by: str | Sequence[str] | None = None,
        *,
        within: str | Sequence[str] = (),
        method: Method | None = None,
        sampling: bool = False,
    ) -> Trend:
        """How shares change from this release to later ones.

        Releases of one series are taken to be about different people if each says so; the answers of others may depend
        on each other in any way.

        Parameters
        ----------
        others : sequence of Release or path
            Later ones, in order of time.
        by, within, method, sampling
            As of `shares`.
        """
        from funnel.estimation.trend import estimate_trend

        opened = [self, *(one if isinstance(one, Release) else load_release(one) for one in others)]
        found = [one.shares(by, within=within, method=method, sampling=sampling) for one in opened]
        names = {one.package.get("name") for one in opened}
        different = len(names) == 1 and all(one.privacy.people == "different" for one in opened)
        versions = [one.version if len(names) == 1 else f"{one.package.get('name')} {one.version}" for one in opened]
        return estimate_trend(found, same_people=not different, versions=versions)

    def draw_numbers(self, column: str | None = None) -> pa.Table:
        """The records with a number for each, drawn at random from what its published value stands for.

        Parameters
        ----------
        column : str, optional
            The column of numbers, where several are published.

        Returns
        -------
        pyarrow.Table
            The published columns, and ``COLUMN (drawn)``: float64, null where the value has no number.
        """
        from funnel.analysis.within import draw_within

        return draw_within(self.folder, column)

    def variance_ratio(self, influence: npt.ArrayLike | Callable[[pa.Table], npt.ArrayLike]) -> FloatArray:
        """r of any statistic of the records of an invariant release, whole records too.

        Usual variances for the population are multiplied by 1 + r.

        Parameters
        ----------
        influence : array, shape (records,) or (k, records), or callable
            The influence of every record of `table` on each of k statistics, as of
            `funnel.estimation.variance_ratios.variance_ratio`; or a function of a table like it that gives the
            influence of its rows. Whole records with their secret need a function, since r depends on records with
            other secrets too.

        Returns
        -------
        ndarray, shape () or (k,)

        Raises
        ------
        SpecError
            If the protocol is not invariant, influence does not fit the records, or has to be a function.
        """
        from funnel.estimation.variance_ratios import influence_ratio, rows_of

        plain, places = self._counted
        if callable(influence):
            return influence_ratio(plain, influence(rows_of(plain, self.table(plain.values.columns))))
        return influence_ratio(plain, influence, places)

    def chi_square_ratio(self, one: str, other: str) -> float:
        """r of the chi-square test of independence of two published columns: its statistic is divided by 1 + r.

        Parameters
        ----------
        one, other : str
            Columns of an invariant release, of whole records too.

        Raises
        ------
        SpecError
            If the protocol is not invariant, or these are not two of its columns.
        """
        from funnel.estimation.variance_ratios import table_ratio

        return table_ratio(self._counted[0], one, other)

    def unchanged(self, columns: str | Sequence[str] | None = None) -> float:
        """The share of the records of an invariant release that are expected to be true in some columns.

        Parameters
        ----------
        columns : str or sequence of str, optional
            True in all of these at once; in every column without it.

        Returns
        -------
        float
            By the published records and the protocol: for every published record the probability that a true one
            with these values was published so.

        Raises
        ------
        SpecError
            If the protocol is not invariant, or a column is not published.
        """
        from funnel.estimation.value_cells import published_columns

        plain, _ = self._counted
        named = (columns,) if isinstance(columns, str) else columns
        return plain.stays(plain.values.columns if named is None else published_columns(plain.values, *named))

    @cached_property
    def _counted(self) -> tuple[PlainCounts, IntArray]:
        from funnel.release.counted_as_usual import counted_as_usual

        return counted_as_usual(self.folder)


def load_release(path: str | Path) -> Release:
    """Load a release from a folder.

    Parameters
    ----------
    path : path
        Of a version, or of a series, whose latest version is meant.

    Returns
    -------
    Release

    Raises
    ------
    DataError
        If there is no release, it is damaged, or a newer funnel wrote it. `Release.verify` checks whether it is whole
        and holds what it promises.

    Examples
    --------
    >>> import funnel
    >>> funnel.load_release("releases/none-of-this-name")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    funnel.errors.DataError: there is no release at releases/none-of-this-name; ...
    """
    release = Release(find_release(Path(path)), Path(path))
    # What is damaged is an error here, and not where it is used first.
    _ = release.document, release.privacy
    return release
