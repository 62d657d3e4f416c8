"""What everybody who keeps all versions can conclude from one more of them, in exact figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

_Share = Annotated[float, Field(ge=0, le=1)]
_Name = Annotated[str, Field(min_length=1)]


@dataclass(frozen=True)
class ExpectedObserver:
    """How far a version goes for one observer and one secret, over the people who are expected; levels in nats.

    Attributes
    ----------
    observer : str
    secret_of : str or None
    bounded : bool
        As of `FoundObserver`.
    level, of_all : float or None
        Largest level over all histories that are within the bound by themselves, and over all; None if it is infinite.
    outside : float
        Share of the expected people for whom something that can be published now is outside the bound.
    """

    observer: _Name
    secret_of: str | None
    bounded: bool
    level: NonNegativeFloat | None
    of_all: NonNegativeFloat | None
    outside: _Share


@dataclass(frozen=True)
class ExpectedHistory:
    """With noise: the same of the people who are expected, by public tables; and how many were not.

    Attributes
    ----------
    histories : int
        Predicted ones that were followed; that of new people counts.
    level : float
        Largest level over these.
    moved, outside : float
        Shares of the expected people.
    others : float
        Share of the expected people whose history is none of these.
    unpredicted, silent : int
        People who really have another history, and those of them who are drawn from what tells nothing; internal.
    open_people : float or None
        Where the bound holds under every set of tables that noise leaves open: the share of the expected people whose
        history may be outside by itself under one of these, and who draw from what tells nothing. Public.
    observers : tuple of ExpectedObserver
        The same for each observer of whom it is known by public tables, and the secret of each version. Public.
    """

    histories: PositiveInt
    level: NonNegativeFloat
    moved: _Share
    outside: _Share
    others: _Share
    unpredicted: NonNegativeInt
    silent: NonNegativeInt
    open_people: _Share | None = None
    observers: tuple[ExpectedObserver, ...] = ()


@dataclass(frozen=True)
class FoundObserver:
    """How far a version goes for one observer who keeps all versions, in the secret of one of them; levels in nats.

    Attributes
    ----------
    observer : str
        "transitions" or "mover-stayer".
    secret_of : str or None
        The earlier version whose secret it is, by its name in the register; None for the secret of the version itself.
    bounded : bool
        Whether this secret is bounded for this observer; else this only reports how far the version goes.
    level : float or None
        Largest level over all histories that are within the bound by themselves; None if it is infinite.
    moved : int
        People whose history alone is outside the declared bound, as this observer sees people now.
    outside : int
        People for whom something that can be published now is outside it; where it is bounded, all of them are moved.
    moved_level : float or None
        Largest level over all that could be published of people who were moved; None if nobody was, or where a secret
        is ruled out.
    """

    observer: _Name
    secret_of: str | None
    bounded: bool
    level: NonNegativeFloat | None
    moved: NonNegativeInt
    outside: NonNegativeInt
    moved_level: NonNegativeFloat | None

    @property
    def of_all(self) -> float | None:
        """The largest level over everybody, moved or not; None where a secret is ruled out."""
        if self.level is None or (self.moved and self.moved_level is None):
            return None
        return max(self.level, self.moved_level or 0.0)


@dataclass(frozen=True)
class FoundRow:
    """What was decided for the first rows of people with several, the second ones, …, of whole records.

    Attributes
    ----------
    units : int
        People with such a row, of those whose number of rows is not rare.
    histories : int
        Different histories that they had before it.
    level : float
        Largest level over these, nats.
    own : float
        The share of these rows that are expected to be people's own.
    """

    units: PositiveInt
    histories: PositiveInt
    level: NonNegativeFloat
    own: _Share


@dataclass(frozen=True)
class FoundHistory:
    """The part of the findings that is about all versions of a register together; levels and entropies in nats.

    Attributes
    ----------
    register : str
    versions : int
        Published in it so far, this one included.
    histories : int
        Different histories that the people of this version had before it; that of new people counts.
    known : int
        People of this version of whom something was published before.
    forgotten : int
        People of this version whose earlier answers were erased on request; they are drawn from what tells nothing.
    channels : int
        Different channels that they were drawn from.
    level : float
        Largest level over all histories that are not outside the bound by themselves, and over all that could be
        published; never below the exact one, and within the bound.
    level_ratio : str or None
        The exact ratio at one place where it is attained, as ``"numerator/denominator"``.
    worst : tuple of (str, str)
        The history where it is attained: names of versions and labels of what was published.
    worst_output, worst_secret : str
    moved : int
        People whose history alone is outside the declared bound under the frequencies of this version.
    outside : int
        Those of them for whom something that can be published now is outside it too.
    reserve : float
        Share of the budget that was used where histories allowed it.
    utility, alone, bound, entropy : float
        I(X;Y) of the effective channel and of the protocol of this version alone, an upper bound of what could be
        kept, and H(X).
    units : int or None
        People, where they have several rows: ``moved`` and ``outside`` are of these, ``forgotten`` is of rows.
    moved_level : float or None
        Largest level over all that could be published of people who were moved; None if nobody was, or where a secret
        is ruled out.
    expected : ExpectedHistory or None
        With noise, what of this is public: all else is then about who really has which history.
    observers : tuple of FoundObserver
        The same for each observer of whom it is known, and the secret of each version: of people who were in it. What
        stands above is the most of all that is bounded.
    own : float or None
        Where whole records are published: the share of them that are expected to be people's own.
    rare : int or None
        Where these are of people with several rows: rows of people with a rare number of rows, each of which is
        published as anybody's; they are not among ``units``.
    rows : tuple of FoundRow
        The same row by row, in that case.
    """

    register: str
    versions: PositiveInt
    histories: PositiveInt
    known: NonNegativeInt
    forgotten: NonNegativeInt
    channels: PositiveInt
    level: NonNegativeFloat
    level_ratio: Annotated[str, Field(pattern=r"^[0-9]+/[1-9][0-9]*$")] | None
    worst: tuple[tuple[str, str], ...]
    worst_output: str
    worst_secret: str
    moved: NonNegativeInt
    outside: NonNegativeInt
    reserve: Annotated[float, Field(gt=0, le=1)]
    utility: float
    alone: float
    bound: float
    entropy: float
    units: PositiveInt | None = None
    moved_level: NonNegativeFloat | None = None
    expected: ExpectedHistory | None = None
    observers: tuple[FoundObserver, ...] = ()
    own: _Share | None = None
    rare: NonNegativeInt | None = None
    rows: tuple[FoundRow, ...] = ()

    @property
    def read_nothing(self) -> int:
        """Records that are drawn from what depends on nothing, as if their input were outside the alphabet."""
        return self.forgotten + (self.rare or 0)

    @property
    def share(self) -> float:
        """What the effective channel keeps, as a share of what there is to know."""
        return self.utility / self.entropy if self.entropy > 0 else 0.0

    @property
    def share_alone(self) -> float:
        """What the protocol of this version alone would have kept."""
        return self.alone / self.entropy if self.entropy > 0 else 0.0
