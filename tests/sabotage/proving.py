"""Sabotage of releases of groups that are proven in the population: who proves, how many limits hold, what is cut."""

from __future__ import annotations

from tests.sabotage.mutant import Mutant
from tests.sabotage.scenes import GROUPED_ROBUST

_LEVEL = "expect_plain_level_to_meet_bound"

PROVING = [
    Mutant(name, breaks, module, old, new, caught, GROUPED_ROBUST)
    for name, breaks, module, old, new, caught in (
        (
            "provers who also make",
            "limits are of people whom the channels were fitted to",
            "funnel.groups.halves",
            "        for _, _, s, r in found[:number]:",
            "        for _, _, s, r in found:",
            _LEVEL,
        ),
        (
            "provers drawn with replacement",
            "half of the people prove twice, and limits are those of twice as many",
            "funnel.groups.halves",
            "proving = sorted(found[number:], key=",
            "proving = sorted(found[number::2] * 2, key=",
            _LEVEL,
        ),
        (
            "another seed",
            "seeds can be tried until one pleases",
            "funnel.groups.halves",
            "said = [seed, *joint.secret.symbols[s]",
            'said = [seed + "!", *joint.secret.symbols[s]',
            _LEVEL,
        ),
        (
            "a part of people other than is said",
            "half of the people make, and three quarters are said to prove",
            "funnel.groups.halves",
            "number = int(share * len(found))",
            "number = int(2 * share * len(found))",
            _LEVEL,
        ),
        (
            "limits as if there were one",
            "each of all limits holds, and not all of them together",
            "funnel.groups.robust",
            "(statements(guarantee.sides, number) * (cells + 2))",
            "statements(guarantee.sides, number)",
            _LEVEL,
        ),
        (
            "as many limits as leaves",
            "limits are said to be of what was left after the people were asked",
            "funnel.groups.robust",
            "        tree.cells,",
            "        len(pruned.leaves),",
            _LEVEL,
        ),
        (
            "fewer leaves told",
            "the proof says less than there is",
            "funnel.groups.robust",
            "        len(pruned.leaves),",
            "        len(pruned.leaves) - 1,",
            _LEVEL,
        ),
        (
            "limits of the counts alone",
            "what is proven is a bound for this table, and none for the population",
            "funnel.groups.proving",
            "self.bound.holds(ratios) and self.bound.holds(counted)",
            "self.bound.holds(counted)",
            _LEVEL,
        ),
        (
            "limits at the wrong side",
            "shares of secrets are taken to be as near as they may, where they have to be as far",
            "funnel.groups.posteriors",
            "return Fraction(low, UNIT), Fraction(high, UNIT)",
            "return Fraction(high, UNIT), Fraction(low, UNIT)",
            _LEVEL,
        ),
        (
            "a lower limit at the wrong side",
            "what makes a secret less likely is not bounded",
            "funnel.groups.posteriors",
            "yield _quotient(self.prior.share(s)[1], posterior.share(s)[0])",
            "yield _quotient(self.prior.share(s)[0], posterior.share(s)[1])",
            _LEVEL,
        ),
        (
            "provers who stand for anything",
            "limits are of the whole table, whatever an output says",
            "funnel.groups.proving",
            "standing = self.halves.word[person] <= np.repeat(last, lengths)",
            "standing = self.halves.word[person] >= 0 * np.repeat(last, lengths)",
            _LEVEL,
        ),
        (
            "an output that nobody proved",
            "nothing is cut off the tree",
            "funnel.groups.pruning",
            "proven = self.found is None or self.found[id(prefix)][cell].holds",
            "proven = True",
            _LEVEL,
        ),
        (
            "what follows an output taken for proven",
            "something is said after outputs of which some was not proven",
            "funnel.groups.pruning",
            "all(self.good(prefix, cell) for cell in prefix.joins[-1])",
            "any(self.good(prefix, cell) for cell in prefix.joins[-1])",
            _LEVEL,
        ),
    )
]
