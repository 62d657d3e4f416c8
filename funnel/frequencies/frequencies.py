"""Frequencies: public counts, and how exact ones become public; all that public writers take of counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from funnel.errors import DataError, SpecError
from funnel.frequencies.limits import bounds_of
from funnel.frequencies.noise import Noise, draw_noise
from funnel.frequency_settings import FrequencySettings
from funnel.joint import Joint

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Counts that may be public, and what they cost.

    Attributes
    ----------
    joint : Joint
        Public counts, shape (c, a); with bounds where they are protected by noise.
    protection : "none", "threshold" or "noise"
    noise : Noise or None
        What was added; None without noise.
    noisy : ndarray of int64, shape (c, a), or None
        The counts before they were clipped at 0; read-only.
    spent : float
        Epsilon (nats) that all versions about these people have spent, this one included; 0 without noise.
    """

    joint: Joint
    protection: Literal["none", "threshold", "noise"]
    noise: Noise | None
    noisy: IntArray | None
    spent: float

    def __post_init__(self) -> None:
        noisy = self.noisy
        has_noise = self.noise is not None and noisy is not None and self.joint.bounds is not None
        if has_noise != (self.protection == "noise"):
            raise SpecError("frequencies have noise and bounds where they are protected by noise, and nowhere else")
        if noisy is not None:
            if not np.array_equal(np.maximum(noisy, 0), self.joint.counts):
                raise SpecError("public counts are the noisy ones, clipped at 0")
            noisy.setflags(write=False)


def protect(counted: Joint, settings: FrequencySettings, *, spent_before: float = 0.0) -> Frequencies:
    """Make exact counts public ones: the one place where that happens.

    With noise every count of the table gets its own, so the table must be over all combinations that may occur, whether
    anybody has them or not.

    Parameters
    ----------
    counted : Joint
        Exact counts over a public alphabet.
    settings : FrequencySettings
    spent_before : float
        Epsilon (nats) that earlier versions about these people have spent.

    Raises
    ------
    SpecError
        If more would be spent than the settings allow in all.
    DataError
        If no public count is above zero.
    """
    if settings.protection != "noise":
        return Frequencies(counted, settings.protection, None, None, 0.0)
    noise = Noise(settings.epsilon, 0.0, settings.beta)
    spent = spent_before + settings.epsilon
    if settings.total is not None and spent > settings.total:
        raise SpecError(
            f"earlier versions about these people have spent {spent_before:g} of the total of {settings.total:g} in "
            f"[frequencies], and this one would spend {settings.epsilon:g} more; lower epsilon or raise total"
        )
    noisy = counted.counts + draw_noise(counted.counts.size, noise.epsilon).reshape(counted.counts.shape)
    public = np.maximum(noisy, 0)
    if not public.any():
        raise DataError("nothing is left of the frequencies under so much noise; raise epsilon in [frequencies]")
    joint = Joint(public, counted.secret, counted.inputs, bounds_of(noisy, noise))
    return Frequencies(joint, "noise", noise, noisy, spent)
