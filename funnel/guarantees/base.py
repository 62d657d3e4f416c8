"""What a guarantee is: an exact level with its witness, an exact decision, and where it has one a cone on rows."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import numpy.typing as npt

from funnel.alphabet import Alphabet
from funnel.errors import SpecError
from funnel.joint import FloatArray, Joint
from funnel.protocol import Protocol, WeightArray
from funnel.sparse_weights import SparseWeights

if TYPE_CHECKING:
    from funnel.guarantees.over_distributions import SetGuarantee

# Outputs of a sparse protocol that are judged at once.
_OUTPUTS = 256


@dataclass(frozen=True)
class Witness:
    """The place where a channel leaks most.

    Attributes
    ----------
    output : int
        Index y of the released symbol.
    secret : int
        Index s of the secret value; where a guarantee adds up all of them, the one that contributes most.
    other_secret : int or None
        Index s' of the value it is compared with; None when compared with the average record.
    ratio : Fraction or None
        The exact worst ratio of two probabilities (at least 1); None when it is infinite or the guarantee bounds
        something else than a ratio.
    upward : bool
        True if the output makes the secret likelier, False if it makes it less likely.
    given : tuple of (column, value)
        What the observer knows about the record besides; empty for guarantees without side channels.
    distribution : tuple of tuple of float, or None
        For robust guarantees the distribution of (S, X), shape (c, a), under which the channel leaks most.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]], secret=["ill", "well"])
    >>> worst = funnel.LIP(1.0).level(joint, funnel.fit("identity", joint, funnel.LIP(1.0))).witness
    >>> joint.secret.symbols[worst.secret], worst.upward, worst.ratio
    (('well',), False, Fraction(12, 5))
    """

    output: int
    secret: int
    other_secret: int | None
    ratio: Fraction | None
    upward: bool
    given: tuple[tuple[str, str], ...] = ()
    distribution: tuple[tuple[float, ...], ...] | None = None


@dataclass(frozen=True)
class Level:
    """The smallest budget (nats) for which a guarantee holds, and where it is attained.

    Attributes
    ----------
    value : float
        Never below the exact level and at most a few ulps above it; infinite if no budget would do.
    witness : Witness

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> level = funnel.LIP(1.0).level(joint, funnel.fit("identity", joint, funnel.LIP(1.0)))
    >>> round(level.value, 6), level.witness.ratio
    (0.875469, Fraction(12, 5))
    """

    value: float
    witness: Witness

    def __float__(self) -> float:
        return self.value


# Exact levels by guarantee, digest of the joint distribution and digest of the protocol; None outside of
# `levels_remembered`.
_known_levels: ContextVar[dict[tuple[Guarantee, str, str], Level] | None] = ContextVar("known_levels", default=None)


@contextmanager
def levels_remembered() -> Iterator[None]:
    """Within it `Guarantee.level` finds the level of the same guarantee, joint distribution and protocol once."""
    token = _known_levels.set({})
    try:
        yield
    finally:
        _known_levels.reset(token)


class Guarantee(ABC):
    """A bound on what an output tells about the secret; a frozen dataclass whose fields are its numbers.

    A new guarantee is one file: its numbers, ``level_for``, and, where each output is judged alone or by linear
    conditions, the methods of `OutputGuarantee`, `ConeGuarantee` or `PosteriorGuarantee`. Registered in
    ``funnel.guarantees``, it is read from specs, calibrated to, audited, validated and reported like every other.

    Attributes
    ----------
    name : str
        How a spec and the command line spell it.
    title : str
        What people call it.
    example : str
        How it is written, for error messages.
    extent : str
        Over what the bound is a maximum, and over what an average.

    Examples
    --------
    >>> import funnel
    >>> bound = funnel.parse_guarantee("lip:1.0")
    >>> isinstance(bound, funnel.Guarantee), str(bound), bound.budget
    (True, 'lip:1.0', 1.0)
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    example: ClassVar[str] = ""
    # Over what the bound is a maximum, and over what an average, in the words of a report.
    extent: ClassVar[str] = "a maximum over all published values and all values of the secret"
    # What an observer may know besides, and whom the bound does not cover, in the words of a report.
    beyond: ClassVar[str] = (
        "The bound starts from the estimated share of each value. An observer who knows more about a person "
        "starts from "
        "another belief, which the record can change by more."
    )

    @property
    @abstractmethod
    def budget(self) -> float:
        """What a level is compared with, in nats."""

    @abstractmethod
    def with_budget(self, budget: float) -> Self:
        """The same kind of guarantee with another budget (nats); several numbers keep their proportion."""

    @abstractmethod
    def level_for(self, joint: Joint, weights: WeightArray) -> Level:
        """`level` for bare weights (b, a) over the joint distribution (c, a) that they read."""

    def holds_for(self, joint: Joint, weights: WeightArray) -> bool:
        """`holds` for bare weights (b, a) over the joint distribution (c, a) that they read."""
        return self.level_for(joint, weights).value <= self.budget

    def level(self, joint: Joint, protocol: Protocol) -> Level:
        """The smallest budget (nats) for which this kind of guarantee holds for the protocol, with its witness.

        Raises
        ------
        DataError
            If the protocol reads other columns than the joint distribution describes.
        SpecError
            If that is over parts of classes, and the guarantee is not decided between these.
        """
        read, known = self._read_by(protocol, joint), _known_levels.get()
        if known is None:
            return self._level_of(read, protocol)
        key = self, read.digest, protocol.digest
        if key not in known:
            known[key] = self._level_of(read, protocol)
        return known[key]

    def _read_by(self, protocol: Protocol, joint: Joint) -> Joint:
        read = joint.read_by(protocol.inputs.columns)
        if read.parts is not None and not self.covers_parts:
            raise SpecError(f"{self} is not decided between parts of classes of records; choose lip and srlip")
        return read

    def _level_of(self, read: Joint, protocol: Protocol) -> Level:
        if isinstance(self, PosteriorGuarantee) and _is_sparse(read, protocol):
            return self.sparse_level(read.occurring, protocol.sparse_for(read.occurring.inputs))
        return self.level_for(read, protocol.weights_for(read.inputs))

    def holds(self, joint: Joint, protocol: Protocol) -> bool:
        """Whether the protocol meets this guarantee: decided in exact arithmetic on its integer weights.

        Raises
        ------
        DataError
            If the protocol reads other columns than the joint distribution describes.
        SpecError
            If that is over parts of classes, and the guarantee is not decided between these.
        """
        read, known = self._read_by(protocol, joint), _known_levels.get()
        level = None if known is None else known.get((self, read.digest, protocol.digest))
        # Levels are never rounded down; one that is rounded up beyond the budget decides nothing.
        if level is not None and level.value <= self.budget:
            return True
        if isinstance(self, PosteriorGuarantee) and _is_sparse(read, protocol):
            return self.sparse_holds(read.occurring, protocol.sparse_for(read.occurring.inputs))
        return self.holds_for(read, protocol.weights_for(read.inputs))

    def over_set(self, joint: Joint) -> SetGuarantee | None:
        """The same over a set around this joint distribution; None where it is decided for its counts."""
        return None

    @property
    def is_perfect(self) -> bool:
        """Whether it asks for independence: equations, which mixing never reaches (`funnel.solver.lattice`)."""
        return self.budget == 0

    @property
    def precision(self) -> float:
        """How closely levels are known, relatively: calibration need not go further."""
        return 0.0

    @property
    def arithmetic(self) -> str:
        """How it is proven, in the words of a report."""
        return "in exact arithmetic"

    @property
    def covers_noise(self) -> bool:
        """Whether it is decided for every table of counts within the bounds of a joint distribution known up to noise.

        Where it is not, it holds for an observer who takes the published counts for the true ones.
        """
        return False

    @property
    def covers_parts(self) -> bool:
        """Whether it is decided for observers of records between parts of classes of which donors are drawn evenly."""
        return False

    @property
    def significance(self) -> float | None:
        """α of the confidence set over all of which the bound holds; None where it holds for the estimate only."""
        return None

    @property
    def meaning(self) -> str:
        """What it promises about one published record, as a sentence for people who are no mathematicians."""
        return f"The declared bound is {self} ({self.title})."

    def tightened(self, margin: float) -> Self:
        """The same guarantee with a budget smaller by a relative margin."""
        return self.with_budget(self.budget * (1 - margin))

    def posterior_limits(self, prior: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Least and largest P(s|y) that the guarantee allows, each (c,); None where it sets no limit one by one.

        For reports: what a reader with the estimated prior, shape (c,), may come to believe at most.
        """
        return None

    @property
    def lift_limits(self) -> tuple[float, float] | None:
        """Least and largest lift P(s|y)/P(s) allowed, where the guarantee limits lifts one by one; for reports."""
        return None

    @property
    def ratio_limit(self) -> float | None:
        """Largest P(y|s)/P(y|s') allowed, where the guarantee compares secrets; for reports."""
        return None

    @property
    def settings(self) -> dict[str, float | str]:
        """Its numbers and words by name, as a spec's table states them (`guarantee_of` reads them)."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    def __str__(self) -> str:
        values = [repr(getattr(self, field.name)) for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        return f"{self.name}:{','.join(values)}" if values else self.name


class OutputGuarantee(Guarantee):
    """A guarantee that judges every output alone, so that outputs can be checked and merged one by one."""

    @abstractmethod
    def output_levels(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """The level (nats) of each row T of a channel, rows (k, a) to (k,): in floats, for searches only."""

    def risks(self, joint: Joint, rows: FloatArray) -> FloatArray:
        """What subset merging orders its subsets by (ω of ALIP algorithm 1): rows (k, a) to (k,)."""
        return self.output_levels(joint, rows)


class ConeGuarantee(OutputGuarantee):
    """A guarantee that is a polyhedral cone on the rows of a channel (METHOD section 2): it has an optimum."""

    @abstractmethod
    def cone(self, joint: Joint) -> FloatArray:
        """Rows G, shape (m, a), such that a row T >= 0 of a channel meets the guarantee iff G T <= 0.

        Secrets that never occur set no condition.
        """


class PosteriorGuarantee(ConeGuarantee):
    """A guarantee on the posterior of the secret alone: P(S|y) must lie in a cone that depends on the prior only."""

    @abstractmethod
    def posterior_cone(self, prior: FloatArray) -> FloatArray:
        """Rows M, shape (m, c), such that an output meets the guarantee iff M P(S|y) <= 0; prior: shape (c,), > 0."""

    def levelled_cone(self, prior: FloatArray) -> FloatArray | None:
        """The same cone by fewer conditions and a level between 0 and 1, shape (m', c + 1); None where there is none.

        A posterior meets the guarantee iff some level, the last coordinate, meets these conditions with it.
        """
        return None

    def cone(self, joint: Joint) -> FloatArray:
        """The cone on the posterior, seen by a row T of the channel through ``P(y) P(s|y) = Σ_x p(s, x) T_x``."""
        seen = joint.p_secret > 0
        return np.asarray(self.posterior_cone(joint.p_secret[seen]) @ joint.p[seen])

    def sparse_holds(self, joint: Joint, weights: SparseWeights) -> bool:
        """`holds_for` for sparse weights without bounds: as exact, and O(c) for every entry."""
        return all(self.holds_for(part, rows) for _, part, rows in _some_outputs(joint, weights))

    def sparse_level(self, joint: Joint, weights: SparseWeights) -> Level:
        """`level_for` for sparse weights over a joint distribution without bounds."""
        found = ((outputs, self.level_for(part, rows)) for outputs, part, rows in _some_outputs(joint, weights))
        # Every record that occurs is published as something, so there is one.
        outputs, worst = max(found, key=lambda one: one[1].value)
        return Level(worst.value, dataclasses.replace(worst.witness, output=int(outputs[worst.witness.output])))


def _is_sparse(read: Joint, protocol: Protocol) -> bool:
    """Whether a posterior is decided entry by entry: of counts without bounds, whose inputs are no parts of classes."""
    return protocol.is_sparse and read.bounds is None and read.parts is None


def checked_number(guarantee: Guarantee, field: str, infinite: bool = False, unit: str = " (nats)") -> None:
    """Make a field of a guarantee a float >= 0; the unit is for the message.

    Raises
    ------
    SpecError
        If it is no number, negative, or not finite where it must be.
    """
    given: object = getattr(guarantee, field)
    try:
        value = math.nan if isinstance(given, bool) or not isinstance(given, Real) else float(given)
    except OverflowError:
        value = math.inf
    if not value >= 0 or (math.isinf(value) and not infinite):
        kind = "" if infinite else "finite "
        raise SpecError(f"{guarantee.name} needs a {kind}{field} >= 0{unit}, not {given!r}")
    object.__setattr__(guarantee, field, value)


def _some_outputs(joint: Joint, weights: SparseWeights) -> Iterator[tuple[npt.NDArray[np.intp], Joint, WeightArray]]:
    """Outputs that occur, a few at a time, with the joint distribution over what they look at and their weights.

    The posterior of the secret given an output is a matter of the inputs that can produce it. All others are one input
    with a weight of zero, so that the prior, the number of records and every P(s, y) are what they were.
    """
    everybody = joint.counts.sum(axis=1)
    for first, inputs, rows in weights.blocks(_OUTPUTS):
        seen = joint.counts[:, inputs]
        occur = np.flatnonzero((seen.any(axis=0) & (rows > 0)).any(axis=1))
        if not len(occur):
            continue
        counts = np.column_stack([seen, everybody - seen.sum(axis=1)])
        part = Joint(counts, joint.secret, Alphabet.of(None, counts.shape[1], "X"))
        nothing = np.zeros((len(occur), 1), dtype=np.uint64)
        yield occur + first, part, np.hstack([rows[occur], nothing])
