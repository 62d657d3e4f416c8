"""False alarms: how often a faultless release may be refused by chance, and what each statistical check takes.

Whatever is judged without chance (counts, weights, levels, digests) is never a false alarm. The tests below have
p-values that are at most t with a probability of at most t, whatever the release, so a release that was drawn as
declared is refused with a probability of at most the sum of their shares. The audit that is made right before a
publication adds at most 10⁻⁹ for each of its other statistical checks, of which there are five.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

FALSE_ALARM: Final = 1e-8
"""Of the whole gate. It may be 1e-4; but this project's tests release hundreds of times a run, and must not fail."""

_PARTS = MappingProxyType({"draws": 1, "independence": 1, "order": 1, "words": 1})
SHARES: Final = MappingProxyType({name: FALSE_ALARM * part / sum(_PARTS.values()) for name, part in _PARTS.items()})
"""The significance of each statistical check, that of draws in an audit too; they add up to `FALSE_ALARM`."""
