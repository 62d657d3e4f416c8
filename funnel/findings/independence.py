"""Whether outputs were drawn without regard to the secret: every (secret, input) by the protocol's weights alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from funnel.drawn import DrawnCounts
from funnel.findings.consistency import distribution_p_values, drawn_by_distribution
from funnel.protocol import Protocol
from funnel.tails import fisher


@dataclass(frozen=True)
class Independence:
    """Result of the test of counts of (secret, input, output).

    Attributes
    ----------
    p_value : float
        Draws from the protocol have one of at most t with a probability of at most t. 0 if an output was drawn that
        the protocol never gives for its input.
    worst_secret, worst_input : int
        Where draws are least likely; c and a stand for values outside their alphabets.
    groups : int
        Number of combinations of secret and input that were drawn for.
    impossible : int
        Records with an output of weight zero.
    """

    p_value: float
    worst_secret: int
    worst_input: int
    groups: int
    impossible: int


def independence(counts: DrawnCounts, protocol: Protocol) -> Independence:
    """Test ``Y independent of S given X``: the counts of every (s, x) against ``Multinomial(n[s, x], Q(.|x))``.

    Under the protocol the distribution of the output is the same, and known, for all records with input x, whatever
    their secret; where the protocol reads the secret, x says it. So an association of output and secret that the
    protocol does not make shows as a deviation of some (s, x) from the weights of x, which the sums over s need not
    show: a test of (x, y) alone passes where what one secret has too many of, another has too few.

    Parameters
    ----------
    counts : DrawnCounts
        Shape (c + 1, a + 1, b).
    protocol : Protocol
        Of a inputs and b outputs.

    Notes
    -----
    *Proof that P(p <= t) <= t.* Given the secrets and the inputs, rows of counts are independent and multinomial with
    the weights of their inputs. For each row, `funnel.findings.consistency.distribution_p_values` gives exact p-values
    of single outputs and one of all outputs together, each at most t with a probability of at most t. Three families
    are made: (1) all of these; (2) for every secret Fisher's combination of the latter over its inputs, which are
    independent; (3) one combination over all. Each family is corrected by the number of its tests, and the smallest of
    the three results by three. Which tests are made depends on the weights and on the numbers of records, not on the
    draws. ∎

    Time for the outputs that are possible in each of the combinations of secret and input.
    """
    smallest: list[tuple[float, int, int]] = []
    tests = impossible = 0
    together: dict[int, list[tuple[float, int]]] = {}
    worst_impossible: tuple[int, int, int] = (0, 0, 0)
    for s, x, outputs, records in counts.rows():
        drawn, weights, forbidden = drawn_by_distribution(protocol, x, outputs, records)
        impossible += forbidden
        worst_impossible = max(worst_impossible, (forbidden, s, x))
        if forbidden:
            continue
        p_values, combined, _ = distribution_p_values(drawn, weights)
        tests += len(p_values) + 1
        smallest.append((min(combined, float(p_values.min(initial=1.0))), s, x))
        together.setdefault(s, []).append((combined, x))
    groups = len(np.unique(counts.cells // counts.shape[2]))
    if impossible:
        return Independence(0.0, worst_impossible[1], worst_impossible[2], groups, impossible)
    if not smallest:
        return Independence(1.0, 0, 0, 0, 0)
    single, s, x = min(smallest)
    by_secret = [(fisher(np.array([p for p, _ in some])), t) for t, some in together.items()]
    every = fisher(np.array([p for some in together.values() for p, _ in some]))
    of_secret, t = min(by_secret)
    if of_secret * len(by_secret) < single * tests:
        s, x = t, min(together[t])[1]
    p_value = min(single * tests, of_secret * len(by_secret), every)
    return Independence(min(1.0, 3 * p_value), s, x, groups, 0)
