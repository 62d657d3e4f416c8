"""What a data user can recover of true frequencies, and how exactly."""

from funnel.estimation.estimating import estimate
from funnel.estimation.estimation_utility import certain, utility_of_estimates, wanted_shares
from funnel.estimation.expected_errors import ExpectedErrors, TableErrors, expected_errors, tables_of
from funnel.estimation.means import estimate_numbers
from funnel.estimation.number_estimate import NumberEstimate
from funnel.estimation.odds import OddsRatios, estimate_odds
from funnel.estimation.share_estimate import Estimate
from funnel.estimation.share_information import ShareInformation
from funnel.estimation.trend import Trend, estimate_trend
from funnel.estimation.variance_ratios import chi_square_ratio, variance_ratio
from funnel.estimation.weighted import estimate_weighted

__all__ = [
    "Estimate",
    "ExpectedErrors",
    "NumberEstimate",
    "OddsRatios",
    "ShareInformation",
    "TableErrors",
    "Trend",
    "certain",
    "chi_square_ratio",
    "estimate",
    "estimate_numbers",
    "estimate_odds",
    "estimate_trend",
    "estimate_weighted",
    "expected_errors",
    "tables_of",
    "utility_of_estimates",
    "variance_ratio",
    "wanted_shares",
]
