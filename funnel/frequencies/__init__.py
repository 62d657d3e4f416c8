"""Frequencies: the one place where exact counts become public ones."""

from funnel.frequencies.noise import Noise
from funnel.frequencies.public_counts import Frequencies, protect

__all__ = ["Frequencies", "Noise", "protect"]
