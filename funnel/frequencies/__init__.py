"""Frequencies: the one place where exact counts become public ones."""

from funnel.frequencies.frequencies import Frequencies, protect
from funnel.frequencies.limits import bounds_of
from funnel.frequencies.noise import Noise

__all__ = ["Frequencies", "Noise", "bounds_of", "protect"]
