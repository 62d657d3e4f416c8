"""Rules of disclosure control on a table of counts: minimum cell, dominance, uniqueness; and who breaks them.

They are the rules of the handbooks for frequency tables, read for a table of (secret, published combination):
Hundepool et al., *Statistical Disclosure Control* (Wiley, 2012), and the *Handbook on Statistical Disclosure Control*
(second edition, 2024), sections 3.3, 4.2 and 5.2. docs/disclosure.md says which is which.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from funnel.alphabet import Alphabet
from funnel.joint import Joint
from funnel.settings.disclosure_rules import BoolArray, IntArray, Rules


@dataclass(frozen=True, eq=False)
class Disclosure:
    """What a table of counts breaks.

    Parameters
    ----------
    joint : Joint
        Counts (c, a); of published combinations that nobody has nothing is asked. Where they are known up to noise, a
        rule is broken if it is for every table of counts within their bounds: that is what anybody can be sure of.
    rules : Rules
    """

    joint: Joint
    rules: Rules

    @cached_property
    def _least(self) -> IntArray:
        return self.joint.counts if self.joint.bounds is None else self.joint.bounds.lower

    @cached_property
    def _most(self) -> IntArray:
        return self.joint.counts if self.joint.bounds is None else self.joint.bounds.upper

    @cached_property
    def _totals(self) -> IntArray:
        """Records of a combination, at most."""
        return np.asarray(self._most.sum(axis=0))

    @cached_property
    def _occurs(self) -> BoolArray:
        """Combinations that somebody has for certain."""
        return np.asarray(self._least.sum(axis=0) > 0)

    @cached_property
    def small(self) -> BoolArray:
        """Cells with fewer records than the minimum, but some; shape (c, a)."""
        return np.asarray((self._least > 0) & (self._most < self.rules.minimum_cell))

    @cached_property
    def dominated(self) -> BoolArray:
        """Cells whose secret has too large a share of its combination, as `Rules.dominant` has it; shape (c, a)."""
        # Itself at its least, all others at their most.
        others = self._totals[None, :] - self._most
        return self.rules.dominant(self._least, self._least + others, self.joint.counts.sum(axis=1), self.joint.n)

    @cached_property
    def alone(self) -> BoolArray:
        """Combinations of a single record; shape (a,)."""
        return np.asarray(self._occurs & (self._totals == 1))

    @property
    def n_alone(self) -> int:
        """Records whose combination is theirs alone."""
        return int(self.alone.sum())

    @property
    def n_below(self) -> int:
        """Records whose combination has fewer records than the minimum of a cell."""
        return int(self._totals[self._occurs & (self._totals < self.rules.minimum_cell)].sum())

    @property
    def combinations(self) -> int:
        """Published combinations that occur."""
        return int((self.joint.counts.sum(axis=0) > 0).sum())

    @property
    def too_unique(self) -> bool:
        """Whether more records are alone in their combination than the rules allow."""
        return self.rules.lone(self.n_alone, self.joint.n)

    @cached_property
    def breaking(self) -> BoolArray:
        """Cells that break a rule; shape (c, a). Lone records count where there are too many of them."""
        lone = self.alone[None, :] & (self.joint.counts > 0) if self.too_unique else False
        return np.asarray(self.small | self.dominated | lone)

    @property
    def passes(self) -> bool:
        """Whether no rule is broken."""
        return not self.breaking.any()

    @property
    def broken(self) -> tuple[str, ...]:
        """Names of the rules that are broken, as settings."""
        found = {
            "minimum_cell": bool(self.small.any()),
            "dominance": bool(self.dominated.any()),
            "unique_share": self.too_unique,
        }
        return tuple(name for name, is_broken in found.items() if is_broken)

    def values(self) -> dict[str, dict[str, int]]:
        """By column and value, the breaking cells that have this value; most of them first. **Internal.**

        In a column of which every value is in the same number of breaking cells there is nothing to choose from; all
        are listed alike.
        """
        found: dict[str, dict[str, int]] = {}
        secret, combination = np.nonzero(self.breaking)
        for alphabet, places in ((self.joint.secret, secret), (self.joint.inputs, combination)):
            for j, column in enumerate(alphabet.columns):
                met: dict[str, int] = {}
                for place in places.tolist():
                    value = alphabet.symbols[place][j]
                    met[value] = met.get(value, 0) + 1
                found[column] = dict(sorted(met.items(), key=lambda entry: -entry[1]))
        return found

    def columns(self) -> tuple[str, ...]:
        """Columns in which some values are in more breaking cells than others, so that grouping them would help.

        All columns where every value of every column breaks alike.
        """
        found = self.values()
        axes = {**_sizes(self.joint.secret), **_sizes(self.joint.inputs)}
        uneven = tuple(
            column for column, met in found.items() if met and (len(met) < axes[column] or len(set(met.values())) > 1)
        )
        return uneven or tuple(column for column, met in found.items() if met)


def _sizes(alphabet: Alphabet) -> dict[str, int]:
    return {column: len({symbol[j] for symbol in alphabet.symbols}) for j, column in enumerate(alphabet.columns)}
