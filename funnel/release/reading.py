"""`funnel.open_release`: a published release as its users read it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from funnel.errors import DataError
from funnel.protocol import Protocol
from funnel.release.documents import ProtocolDocument
from funnel.release.layout import ReleaseFolder, find_release
from funnel.release.privacy_block import KEY, PrivacyBlock
from funnel.tables import open_paged

if TYPE_CHECKING:
    import numpy.typing as npt

    from funnel.estimation import Estimate, NumberEstimate, OddsRatios
    from funnel.estimation.number_categories import StandFor
    from funnel.estimation.plain_counts import PlainCounts
    from funnel.estimation.weighted import WeightedEstimate
    from funnel.joint import FloatArray, IntArray


@dataclass(frozen=True)
class Release:
    """A release that somebody reads.

    Attributes
    ----------
    folder : ReleaseFolder
        Where its files are.
    package : mapping
        Content of ``datapackage.json``.
    privacy : PrivacyBlock
        What it promises.
    document : ProtocolDocument
        Content of ``protocol.json``.
    """

    folder: ReleaseFolder
    package: Mapping[str, Any]
    privacy: PrivacyBlock
    document: ProtocolDocument

    @cached_property
    def protocol(self) -> Protocol:
        """The channel that the records came through; shape (outputs, inputs)."""
        return self.document.protocol

    @property
    def version(self) -> str:
        """Its version."""
        return str(self.package["version"])

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
        try:
            with open_paged(self.folder.data) as file:
                names = file.schema_arrow.names
                for column in columns or ():
                    if column not in names:
                        raise DataError(f"the release has no column {column!r}; its columns are {', '.join(names)}")
                return file.read(columns=None if columns is None else list(columns))
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.folder.data} cannot be read as parquet; the release is damaged") from error

    def estimate(
        self,
        by: str | Sequence[str] | None = None,
        *,
        within: str | Sequence[str] = (),
        sampling: bool = False,
    ) -> Estimate:
        """`funnel.estimate` of its records; values that are published to be rare are taken to be so where that helps.

        Parameters
        ----------
        by, within : str or sequence of str, optional
            Columns that are crossed, and columns in every cell of which shares are estimated.
        sampling : bool
            Whether errors are also those of a sample: then the estimates are of the population it is from.
        """
        from funnel.release.estimated import estimate_release

        return estimate_release(self.folder, by, within=within, sampling=sampling)

    def estimate_numbers(
        self,
        of: str,
        by: str | Sequence[str] = (),
        *,
        numbers: StandFor | None = None,
        quantiles: Sequence[float] = (0.25, 0.5, 0.75),
        sampling: bool = False,
    ) -> NumberEstimate:
        """`funnel.estimate_numbers` of its records: mean, total and quartiles of a column, in every cell of others.

        Parameters
        ----------
        of : str
        by : str or sequence of str, optional
        numbers : mapping of str to float, pair of float or None, optional
            What categories stand for, where the release does not say it.
        quantiles : sequence of float
            Between 0 and 1.
        sampling : bool
            As of `estimate`.
        """
        from funnel.release.estimated import estimate_numbers_of

        return estimate_numbers_of(self.folder, of, by, numbers=numbers, quantiles=quantiles, sampling=sampling)

    def estimate_odds(self, one: str, other: str, *, sampling: bool = False) -> OddsRatios:
        """`funnel.estimate_odds` of the records of an invariant release: odds ratios of two of its columns.

        Parameters
        ----------
        one, other : str
        sampling : bool
            As of `estimate`.
        """
        from funnel.estimation.odds import plain_odds

        return plain_odds(self._counted[0], one, other, sampling=sampling)

    def variance_ratio(self, influence: npt.ArrayLike | Callable[[pa.Table], npt.ArrayLike]) -> FloatArray:
        """r of any statistic of the records of an invariant release, whole records too.

        Usual variances for the population are multiplied by 1 + r.

        Parameters
        ----------
        influence : array, shape (records,) or (k, records), or callable
            The influence of every record of `table` on each of k statistics, as of
            `funnel.estimation.variance_ratio`; or a function of a table like it that gives the influence of its rows.
            Whole records with their secret need a function, since r depends on records with other secrets too.

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
        from funnel.estimation.cells import published_columns

        plain, _ = self._counted
        named = (columns,) if isinstance(columns, str) else columns
        return plain.stays(plain.values.columns if named is None else published_columns(plain.values, *named))

    @cached_property
    def _counted(self) -> tuple[PlainCounts, IntArray]:
        from funnel.release.counted_as_usual import counted_as_usual

        return counted_as_usual(self.folder)

    def estimate_weighted(self, by: str | Sequence[str] | None = None) -> WeightedEstimate:
        """`funnel.estimate_weighted` of its records, by the classes of weights that it publishes.

        Parameters
        ----------
        by : str or sequence of str, optional
        """
        from funnel.release.weighted import estimate_release_weighted

        return estimate_release_weighted(self.folder, by)


def open_release(path: str | Path) -> Release:
    """Open a release that is in a folder here.

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
        If there is no release, it is damaged, or a newer funnel wrote it. Whether it is whole and holds what it
        promises is what ``funnel audit`` tells, and not this.

    Examples
    --------
    >>> import funnel
    >>> funnel.open_release("releases/none-of-this-name")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    funnel.errors.DataError: there is no release at releases/none-of-this-name; ...
    """
    folder = find_release(Path(path))
    document = ProtocolDocument.read(folder.protocol)
    package, block = _package(folder)
    privacy = PrivacyBlock.from_json(json.dumps(block), f"in {folder.package}")
    return Release(folder, package, privacy, document)


def _package(folder: ReleaseFolder) -> tuple[dict[str, Any], dict[str, Any]]:
    """The data package, and a copy of its block on privacy."""
    try:
        package = json.loads(folder.package.read_bytes())
        return package, dict(package[KEY])
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise DataError(f"{folder.package} cannot be read: {reason}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{folder.package} is no data package of a release; the release is damaged") from error
