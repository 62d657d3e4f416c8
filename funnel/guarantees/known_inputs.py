"""A guarantee over a set of distributions, asked for fewer of them: those under which nobody has certain inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funnel.guarantees.by_event import ByEvent, Part, SideChannels
from funnel.guarantees.over_distributions import OfBase, RatioGuarantee, SetGuarantee, Sides
from funnel.guarantees.possible_distributions import DistributionSet
from funnel.guarantees.reading import reads_secret
from funnel.joint import FloatArray, Joint


@dataclass(frozen=True, eq=False)
class KnownInputs(OfBase, RatioGuarantee):
    """What a guarantee asks of the rows of a channel at some inputs, whatever it does with the others.

    A channel that meets the guarantee under every distribution of a set does so under those distributions under which
    nobody has the other inputs; and of these no condition looks at what the others get. So this is weaker than the
    guarantee, for every channel: a bound on what can be reached under it is one for the guarantee. It decides about no
    protocol.

    Parameters
    ----------
    base : RatioGuarantee
        Over boxes.
    known : ndarray of bool, shape (a,)
        The inputs that are looked at, of what the channel reads.
    """

    base: RatioGuarantee
    known: npt.NDArray[np.bool_]

    @property
    def sides(self) -> Sides:
        """Those of the base."""
        return self.base.sides

    def distributions(self, joint: Joint) -> DistributionSet:
        """Those of the base under which nobody has another input.

        Raises
        ------
        ValueError
            If there are none.
        """
        found = self._found(joint)
        if found is None:
            raise ValueError("under every distribution of the set some have other inputs")
        return found

    def _found(self, joint: Joint) -> DistributionSet | None:
        distributions = self.base.distributions(joint)
        others = ~self.known.reshape(distributions.shape if reads_secret(joint) else (1, -1))
        return distributions.without(np.broadcast_to(others, distributions.shape))

    def is_possible(self, joint: Joint) -> bool:
        """Whether some distribution of the set has none of the other inputs."""
        return self._found(joint) is not None

    def starting_cone(self, joint: Joint) -> FloatArray:
        """None to begin with: the counts themselves may have other inputs."""
        return np.zeros((0, len(joint.inputs)))


@dataclass(frozen=True, eq=False)
class KnownInputsByEvent(OfBase, ByEvent):
    """The same of a guarantee that is asked for event by event.

    Parameters
    ----------
    base : ByEvent
    known : ndarray of bool, shape (a,)
        The inputs that are looked at, of what the channel reads.
    """

    base: ByEvent
    known: npt.NDArray[np.bool_]

    @property
    def bounded(self) -> SideChannels:
        """As the base has it."""
        return self.base.bounded

    def parts(self, joint: Joint) -> Iterator[Part]:
        """Those events that some distribution has without the other inputs."""
        for event, part in self.base.parts(joint):
            found = _limited_ratios(part, event.joint, self.known[event.inside])
            if found is not None:
                yield event, found

    def label_inputs(self, joint: Joint) -> npt.NDArray[np.bool_] | None:
        """Those that are looked at."""
        labels = self.base.label_inputs(joint)
        return None if labels is None else labels & self.known.reshape(labels.shape)


def limited(guarantee: SetGuarantee, joint: Joint, known: npt.NDArray[np.bool_]) -> SetGuarantee | None:
    """A guarantee as it is on some inputs alone: itself if none has others, None if nothing is left to be asked.

    Of several guarantees at once nothing is, which is less than could be.
    """
    if isinstance(guarantee, RatioGuarantee):
        return _limited_ratios(guarantee, joint, known)
    if known.all():
        return guarantee
    return KnownInputsByEvent(guarantee, known) if isinstance(guarantee, ByEvent) else None


def _limited_ratios(guarantee: RatioGuarantee, joint: Joint, known: npt.NDArray[np.bool_]) -> RatioGuarantee | None:
    distributions = guarantee.distributions(joint)
    others = ~known.reshape(distributions.shape if reads_secret(joint) else (1, -1))
    if not (distributions.conceivable & others).any():
        return guarantee
    found = KnownInputs(guarantee, known)
    return found if found.is_possible(joint) else None
