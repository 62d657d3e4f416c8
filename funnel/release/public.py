"""What of the counts becomes public, and how precisely: every public figure of a release is made here, rounded first.

Whatever is made of rounded figures afterwards, a table, a chart or a document, tells no more than they do. The exact
figures stay in the internal evidence.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from typing import Any

import numpy as np

from funnel import measures
from funnel.alphabet import Alphabet
from funnel.audit.findings import Findings
from funnel.guarantees import Guarantee
from funnel.joint import FloatArray, Joint
from funnel.protocol import Protocol

# A share is told no finer than this many records, and never finer than to a thousandth.
RECORDS = 10
FINEST_SHARE = 0.001
_COARSEST_SHARE = 0.5
LEVEL_DIGITS = 3
P_VALUE_DIGITS = LIFT_DIGITS = 2
# A lift that could only be told to more than this is not told at all.
_COARSEST_LIFT = 0.5
_FLOAT = re.compile(r"(?<![:,.\d])\d+\.\d+(?:e[-+]?\d+)?")


def share_step(n: int) -> float:
    """The step of every public share of n records: the least of .001, .002, .005, .01, … that is RECORDS of them."""
    return min(_COARSEST_SHARE, max(FINEST_SHARE, _step_above(RECORDS / n)))


def lift_step(lift: float, expected: float) -> float:
    """The step of a public lift: two digits, and no finer than RECORDS of the records expected of this secret and y."""
    return max(10.0 ** (math.floor(math.log10(lift)) + 1 - LIFT_DIGITS), _step_above(RECORDS / expected))


def rounded(value: float, digits: int) -> float:
    """A number to so many significant digits."""
    return _to_digits(value, digits, ROUND_HALF_EVEN)


def rounded_up(value: float, digits: int = LEVEL_DIGITS) -> float:
    """A level to so many significant digits, never below itself."""
    return _to_digits(value, digits, ROUND_CEILING)


def public_level(value: float, guarantee: Guarantee, holds: bool) -> float:
    """A level rounded up; one that is within its budget does not exceed that by being rounded."""
    above = rounded_up(value)
    return min(above, guarantee.budget) if holds and value <= guarantee.budget else above


def p_value(value: float) -> float:
    """A p-value to two significant digits."""
    return rounded(value, P_VALUE_DIGITS)


def count_of_records(count: int) -> str:
    """How many records were treated in some way, in words: to the nearest ten, or to two digits."""
    if count < RECORDS:
        return "no" if count == 0 else f"fewer than {RECORDS}"
    step = max(RECORDS, 10 ** (len(str(count)) - 2))
    return f"about {round(count / step) * step:,}"


def public_text(text: str) -> str:
    """A sentence about figures, each decimal in it to three significant digits, but for those of a guarantee."""
    return _FLOAT.sub(lambda found: f"{rounded(float(found.group()), LEVEL_DIGITS):.15g}", text)


def public_observation(value: Any) -> Any:
    """What a check observed: every float in it to two significant digits."""
    if isinstance(value, float):
        return p_value(value)
    if isinstance(value, dict):
        return {key: public_observation(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [public_observation(part) for part in value]
    return value


@dataclass(frozen=True, eq=False)
class PublicLaws:
    """The frequencies as they are published.

    Attributes
    ----------
    secret, inputs : Alphabet
        Symbols of the secret and of the published columns.
    n : int
        Number of records.
    p_secret, p_input : ndarray, shapes (c,) and (a,)
        Multiples of the step; at least one step for what occurs. They need not sum to one.
    p_output : ndarray, shape (b,)
        P(y), as it follows from the weights and ``p_input``; for a protocol that reads the secret, from shares of
        (x, y) that are multiples of the step.
    posterior : ndarray, shape (b, a)
        P(x|y), likewise; nan where y never occurs.
    step : float
    """

    secret: Alphabet
    inputs: Alphabet
    n: int
    p_secret: FloatArray
    p_input: FloatArray
    p_output: FloatArray
    posterior: FloatArray
    step: float

    @classmethod
    def of(cls, joint: Joint, protocol: Protocol) -> PublicLaws:
        """Of exact counts and a protocol.

        Raises
        ------
        DataError
            If the protocol reads other columns.
        """
        step = share_step(joint.n)
        p_input = public_shares(joint.p_input, step)
        if protocol.inputs.columns == joint.inputs.columns:
            weights = protocol.weights_for(joint.inputs).astype(np.float64) / float(protocol.denominator)
            law = weights.T * (p_input / p_input.sum())[:, np.newaxis]
        else:
            law = public_shares(measures.input_output_law(joint, protocol), step)
            law = law / law.sum()
        p_output = law.sum(axis=0)
        posterior = np.full(law.T.shape, np.nan)
        np.divide(law.T, p_output[:, np.newaxis], out=posterior, where=p_output[:, np.newaxis] > 0)
        p_secret = public_shares(joint.p_secret, step)
        return cls(joint.secret, joint.inputs, joint.n, p_secret, p_input, p_output, posterior, step)

    def nats(self, value: float) -> float:
        """An entropy, or a share of one, as a multiple of the step of shares."""
        return _multiple(value, self.step)

    def compared(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row of the comparison of mechanisms, as `funnel.planning.PlanRow.to_dict` has it, rounded."""
        told = dict(row)
        for name in ("utility", "share", "bound"):
            if told.get(name) is not None:
                told[name] = self.nats(told[name])
        if told.get("level") is not None:
            told["level"] = rounded_up(told["level"])
        if told.get("reason") is not None:
            told["reason"] = public_text(told["reason"])
        return told

    def lifts(self, lift: FloatArray) -> FloatArray:
        """Lifts (c, b) to two digits, and no finer than RECORDS of the records they are about; nan where not told.

        Zero stays zero: that a published value rules a secret out is the worst that can be said of it. Nothing else
        becomes zero.
        """
        expected = self.n * np.outer(self.p_secret, self.p_output)
        told = np.full(lift.shape, np.nan)
        for (s, y), value in np.ndenumerate(lift):
            if value == 0:
                told[s, y] = 0.0
            elif value == value and expected[s, y] > 0:
                step = lift_step(float(value), float(expected[s, y]))
                if step <= _COARSEST_LIFT:
                    told[s, y] = max(step, _multiple(float(value), step))
        return told

    def belief_limits(self, guarantee: Guarantee) -> tuple[FloatArray, FloatArray] | None:
        """Least and largest P(s|y) that the guarantee allows under any prior that is rounded to the published one."""
        below = np.clip(self.p_secret - self.step / 2, 0.0, 1.0)
        # What was lifted to one step may be as rare as one record.
        below = np.where(self.p_secret <= self.step, np.minimum(1 / self.n, self.p_secret), below)
        above = np.where(self.p_secret > 0, np.clip(self.p_secret + self.step / 2, 0.0, 1.0), 0.0)
        least, most = guarantee.posterior_limits(below), guarantee.posterior_limits(above)
        if least is None or most is None:
            return None
        highest, lifts = most[1], guarantee.lift_limits
        if lifts is not None and math.isinf(lifts[1]):
            # What is certain of the rarest secret would limit the others by a share that is known only roughly.
            highest = 1 - lifts[0] * (1 - above)
        return np.clip(least[0], 0.0, 1.0), np.clip(highest, 0.0, 1.0)


@dataclass(frozen=True)
class PublicConsistency:
    """As `funnel.audit.Consistency`: the p-value to two digits."""

    p_value: float
    tests: int
    impossible: int


@dataclass(frozen=True)
class PublicConfidence:
    """As `funnel.ConfidenceSet`, which follows from public numbers but for whether few records are in some cells."""

    alpha: float
    radius: float
    cells: int
    n: int
    doubtful: bool


@dataclass(frozen=True, eq=False)
class PublicFindings:
    """The audit of a release as it is published; names as in `funnel.audit.Findings`.

    Attributes
    ----------
    level, plain_level, robust_level, robust_lift_level : float
        Three significant digits, rounded up.
    level_factor : float or None
        The worst ratio of two probabilities, three digits, rounded up; None where the guarantee bounds something else.
    ratios : ndarray, shape (b,)
        Largest ratio between two secrets under each output, two digits, rounded up to no more than a limit that holds.
    lift : ndarray, shape (c, b)
        As `PublicLaws.lifts`.
    """

    guarantee: str
    holds: bool
    level: float
    level_factor: float | None
    rules_out: bool
    worst_of_many_laws: bool
    witness_output: str
    witness_secret: str
    witness_other_secret: str | None
    witness_upward: bool
    witness_given: tuple[tuple[str, str], ...]
    utility: float
    entropy: float
    share: float
    secret_information: float
    guess_accuracy: float
    prior_guess_accuracy: float
    lift: FloatArray
    ratios: FloatArray
    rows: int
    outside: int
    consistency: PublicConsistency
    confidence: PublicConfidence
    robust_level: float | None
    plain_level: float
    robust_lift_level: float | None

    @classmethod
    def of(cls, findings: Findings, guarantee: Guarantee, laws: PublicLaws) -> PublicFindings:
        """Of exact findings."""
        return cls(
            guarantee=findings.guarantee,
            holds=findings.holds,
            level=public_level(findings.level, guarantee, findings.holds),
            level_factor=_factor(findings),
            rules_out=_rules_out(findings),
            worst_of_many_laws=findings.level_ratio is None,
            witness_output=findings.witness_output,
            witness_secret=findings.witness_secret,
            witness_other_secret=findings.witness_other_secret,
            witness_upward=findings.witness_upward,
            witness_given=findings.witness_given,
            utility=laws.nats(findings.utility),
            # Something to know does not look like nothing.
            entropy=max(laws.nats(findings.entropy), laws.step) if findings.entropy > 0 else 0.0,
            share=laws.nats(findings.share),
            secret_information=rounded(findings.secret_information, LIFT_DIGITS),
            guess_accuracy=laws.nats(findings.guess_accuracy),
            prior_guess_accuracy=laws.nats(findings.prior_guess_accuracy),
            lift=_within(laws.lifts(findings.lift), guarantee, findings.holds),
            ratios=_ratios(findings, guarantee),
            rows=findings.rows,
            outside=findings.outside,
            consistency=PublicConsistency(
                p_value(findings.consistency.p_value), findings.consistency.tests, findings.consistency.impossible
            ),
            confidence=PublicConfidence(
                findings.confidence.alpha,
                rounded(findings.confidence.radius, LEVEL_DIGITS),
                findings.confidence.cells,
                findings.confidence.n,
                findings.confidence.doubtful,
            ),
            robust_level=_up(findings.robust_level),
            plain_level=rounded_up(findings.plain_level),
            robust_lift_level=_up(findings.robust_lift_level),
        )


def public_shares(shares: FloatArray, step: float) -> FloatArray:
    """Shares as multiples of a step, at least one step for what is not nothing."""
    multiples = np.round(shares / step)
    return np.asarray(np.round(np.where(shares > 0, np.maximum(multiples, 1), 0) * step, 12))


def largest_ratios(lift: FloatArray) -> FloatArray:
    """Largest P(y|s)/P(y|s') of every output, shape (b,), from lifts (c, b), since the P(y) cancel.

    Infinite where y excludes a secret that another record of y may have; nan where y never occurs.
    """
    known = ~np.isnan(lift)
    most = np.where(known, lift, -np.inf).max(axis=0)
    least = np.where(known, lift, np.inf).min(axis=0)
    ratios = np.where(known.any(axis=0), np.inf, np.nan)
    return np.asarray(np.divide(most, least, out=ratios, where=known.any(axis=0) & (least > 0)))


def _within(lifts: FloatArray, guarantee: Guarantee, holds: bool) -> FloatArray:
    """Rounded lifts, no further from 1 than limits that are proven to hold."""
    limits = guarantee.lift_limits
    return lifts if limits is None or not holds else np.asarray(np.clip(lifts, *limits))


def _ratios(findings: Findings, guarantee: Guarantee) -> FloatArray:
    ratios = np.array([rounded_up(float(ratio), LIFT_DIGITS) for ratio in largest_ratios(findings.lift)])
    limit = guarantee.ratio_limit
    # Rounding must not seem to break a limit that is proven to hold.
    return ratios if limit is None or not findings.holds else np.minimum(ratios, rounded_up(limit))


def _factor(findings: Findings) -> float | None:
    if findings.level_ratio is not None:
        numerator, _, denominator = findings.level_ratio.partition("/")
        return rounded_up(int(numerator) / int(denominator))
    # Two secrets compared without an exact fraction: a worst case over many laws.
    compared = findings.witness_other_secret is not None and math.isfinite(findings.level)
    return rounded_up(math.exp(findings.level)) if compared else None


def _rules_out(findings: Findings) -> bool:
    """Whether the level is infinite because an output excludes a secret, not because a budget of zero is exceeded."""
    if not math.isinf(findings.level) or findings.level_ratio is not None:
        return False
    return bool(findings.witness_given) or bool((findings.lift == 0).any())


def _up(level: float | None) -> float | None:
    return None if level is None else rounded_up(level)


def _to_digits(value: float, digits: int, rounding: str) -> float:
    if value == 0 or not math.isfinite(value):
        return value
    exact = Decimal(value)
    # Reading the decimal as a double is monotone, so what was rounded up is not below the value.
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=rounding))


def _multiple(value: float, step: float) -> float:
    return round(round(value / step) * step, 12)


def _step_above(least: float) -> float:
    """The least of …, .1, .2, .5, 1, 2, 5, … that is not below a number."""
    power = 10.0 ** math.floor(math.log10(least))
    for factor in (1, 2, 5):
        if factor * power >= least * (1 - 1e-12):
            return round(factor * power, 12)
    return round(10 * power, 12)
