"""A guarantee over a set of laws, asked for fewer of them: those under which nobody has certain inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from funnel.guarantees.laws import Laws
from funnel.guarantees.over_laws import SetGuarantee, Sides
from funnel.guarantees.reading import reads_secret
from funnel.joint import FloatArray, Joint


@dataclass(frozen=True, eq=False)
class KnownInputs(SetGuarantee):
    """What a guarantee asks of the rows of a channel at some inputs, whatever it does with the others.

    A channel that meets the guarantee under every law of a set does so under those laws under which nobody has the
    other inputs; and of these no condition looks at what the others get. So this is weaker than the guarantee, for
    every channel: a bound on what can be reached under it is one for the guarantee. It decides about no protocol.

    Parameters
    ----------
    base : SetGuarantee
        Over boxes.
    known : ndarray of bool, shape (a,)
        The inputs that are looked at, of what the channel reads.
    """

    base: SetGuarantee
    known: npt.NDArray[np.bool_]

    @property
    def budget(self) -> float:
        """That of the base."""
        return self.base.budget

    def with_budget(self, budget: float) -> Self:
        """With the base of another budget."""
        return type(self)(self.base.with_budget(budget), self.known)

    @property
    def sides(self) -> Sides:
        """Those of the base."""
        return self.base.sides

    def as_level(self, nats: float, budget: float) -> float:
        """As the base has it."""
        return self.base.as_level(nats, budget)

    @property
    def is_perfect(self) -> bool:
        """As the base has it."""
        return self.base.is_perfect

    def laws(self, joint: Joint) -> Laws:
        """Those of the base under which nobody has another input.

        Raises
        ------
        ValueError
            If there are none.
        """
        found = self._found(joint)
        if found is None:
            raise ValueError("under every law of the set some have other inputs")
        return found

    def _found(self, joint: Joint) -> Laws | None:
        laws = self.base.laws(joint)
        others = ~self.known.reshape(laws.shape if reads_secret(joint) else (1, -1))
        return laws.without(np.broadcast_to(others, laws.shape))

    def is_possible(self, joint: Joint) -> bool:
        """Whether some law of the set has none of the other inputs."""
        return self._found(joint) is not None

    def starting_cone(self, joint: Joint) -> FloatArray:
        """None to begin with: the counts themselves may have other inputs."""
        return np.zeros((0, len(joint.inputs)))

    def __str__(self) -> str:
        return str(self.base)


def limited(guarantee: SetGuarantee, joint: Joint, known: npt.NDArray[np.bool_]) -> SetGuarantee | None:
    """A guarantee as it is on some inputs alone: itself if no law has others, None if all of them have."""
    laws = guarantee.laws(joint)
    others = ~known.reshape(laws.shape if reads_secret(joint) else (1, -1))
    if not (laws.conceivable & others).any():
        return guarantee
    found = KnownInputs(guarantee, known)
    return found if found.is_possible(joint) else None
