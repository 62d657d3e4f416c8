"""Measures of utility and leakage that are no guarantees, for a protocol over a joint distribution, in nats.

Conventions, in every measure: secrets and inputs that never occur (probability 0 under the counts) are left out, as are
outputs that never occur; results per output are nan there. Cells of probability zero contribute nothing to averages.

Examples
--------
Those of the measures are about these two:

>>> import funnel
>>> joint = funnel.Joint.from_counts([[30, 10, 0], [10, 30, 20]], secret=["ill", "well"])
>>> protocol = funnel.fit("grr", joint, funnel.LIP(0.5))
"""

from __future__ import annotations

from funnel.measures.distributions import (
    Counted,
    counted_distribution,
    input_output_distribution,
    lift,
    record_output_distribution,
    secret_output_distribution,
)
from funnel.measures.information import (
    guess_accuracy,
    mutual_information,
    normalised_mutual_information,
    secret_information,
)
from funnel.measures.unchanged_shares import Unchanged, unchanged
from funnel.measures.utilities import Estimation, Information, Utility, Variance

__all__ = [
    "Counted",
    "Estimation",
    "Information",
    "Unchanged",
    "Utility",
    "Variance",
    "counted_distribution",
    "guess_accuracy",
    "input_output_distribution",
    "lift",
    "mutual_information",
    "normalised_mutual_information",
    "record_output_distribution",
    "secret_information",
    "secret_output_distribution",
    "unchanged",
]
