"""Measures of utility and leakage that are no guarantees, for a protocol over a joint law; information in nats.

Conventions, in every measure: secrets and inputs that never occur (probability 0 under the counts) are left out, as are
outputs that never occur; results per output are nan there. Cells of probability zero contribute their limit: nothing to
averages, infinity to inverse lifts.

Examples
--------
Those of the measures are about these two:

>>> import funnel
>>> joint = funnel.Joint.from_counts([[30, 10, 0], [10, 30, 20]], secret=["ill", "well"])
>>> protocol = funnel.fit("grr", joint, funnel.LIP(0.5))
"""

from __future__ import annotations

from funnel.measures.breaches import Breach, breaches_excluded, downward_breach, upward_breach
from funnel.measures.distributions import (
    Counted,
    counted_distribution,
    input_output_distribution,
    posterior,
    record_output_distribution,
    secret_output_distribution,
)
from funnel.measures.information import (
    chi_squared_divergence,
    mutual_information,
    normalised_mutual_information,
    secret_information,
    total_variation,
)
from funnel.measures.lifts import (
    alpha_lift,
    alpha_lift_inverse,
    chi_squared_lift,
    chi_squared_lift_inverse,
    l1_lift,
    l1_lift_inverse,
    lift,
    max_lift,
    min_lift,
)
from funnel.measures.orders import (
    arimoto_information,
    guess_accuracy,
    maximal_leakage,
    min_entropy_leakage,
    sibson_information,
)
from funnel.measures.unchanged_shares import Unchanged, unchanged
from funnel.measures.utilities import Estimation, Information, Utility, Variance

__all__ = [
    "Breach",
    "Counted",
    "Estimation",
    "Information",
    "Unchanged",
    "Utility",
    "Variance",
    "alpha_lift",
    "alpha_lift_inverse",
    "arimoto_information",
    "breaches_excluded",
    "chi_squared_divergence",
    "chi_squared_lift",
    "chi_squared_lift_inverse",
    "counted_distribution",
    "downward_breach",
    "guess_accuracy",
    "input_output_distribution",
    "l1_lift",
    "l1_lift_inverse",
    "lift",
    "max_lift",
    "maximal_leakage",
    "min_entropy_leakage",
    "min_lift",
    "mutual_information",
    "normalised_mutual_information",
    "posterior",
    "record_output_distribution",
    "secret_information",
    "secret_output_distribution",
    "sibson_information",
    "total_variation",
    "unchanged",
    "upward_breach",
]
