"""What the audit of one release finds: exact leakage with its witness, utility, lifts, and the draws themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from funnel import measures
from funnel.audit.consistency import Consistency, draw_consistency
from funnel.audit.followed import FoundHistory
from funnel.confidence import ConfidenceSet, confidence_set
from funnel.guarantees import ALIP, LDP, LIP, RLDP, Guarantee
from funnel.joint import FloatArray, IntArray, Joint
from funnel.protocol import Protocol

# Outputs times cells beyond which the worst case over the confidence set takes longer than the rest of an audit.
_LARGEST = 50_000


@dataclass(frozen=True, eq=False)
class Findings:
    """The audit of one release; entropies and levels in nats.

    Attributes
    ----------
    guarantee : str
        The declared bound, such as ``"lip:1.0"``.
    holds : bool
        Decided in rational arithmetic on the integer weights.
    level : float
        Smallest ε that holds; never below the exact value.
    level_ratio : str or None
        The exact worst ratio of two probabilities as ``"numerator/denominator"``; None if it is infinite or the
        guarantee bounds something else.
    witness_output, witness_secret : str
        Labels of the place of the largest leakage.
    witness_other_secret : str or None
        The secret value compared with, for guarantees that compare two.
    witness_upward : bool
        Whether the output makes the secret likelier.
    witness_given : tuple of (column, value)
        What the observer knows of the record besides, for guarantees with side channels.
    utility, entropy, share, secret_information : float
        I(X;Y), H(X), I(X;Y)/H(X), I(S;Y).
    guess_accuracy, prior_guess_accuracy : float
        Probability of guessing x right from y, and without y.
    lift : ndarray, shape (c, b)
        P(s|y)/P(s); nan where s or y never occurs.
    rows, outside : int
        Records released; records among them whose input was outside the protocol's alphabet.
    consistency : Consistency
        Whether the draws look like draws from the protocol.
    confidence : ConfidenceSet
        How far the true law may be from the estimate.
    robust_level : float or None
        LDP level over the whole confidence set (`funnel.RLDP`): what estimation error could cost. None where a value
        of the secret was never seen, or the protocol is too large to compute it in the time of an audit.
    plain_level : float
        LDP level under the estimate, to compare it with.
    robust_lift_level : float or None
        For LIP and ALIP, their own level over the whole confidence set (`funnel.measures.robust_lifts`), never below
        the true one. None for other guarantees, and where ``robust_level`` is.
    history : FoundHistory or None
        What all versions together tell; None where every version is about other people, and of a first one.
    drift : mapping or None
        How frequencies differ from the version before, as `funnel.history.Drift.to_dict` has it, with its
        ``sentence``; None where that is not compared.
    """

    guarantee: str
    holds: bool
    level: float
    level_ratio: str | None
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
    rows: int
    outside: int
    consistency: Consistency
    confidence: ConfidenceSet
    robust_level: float | None
    plain_level: float
    robust_lift_level: float | None = None
    history: FoundHistory | None = None
    drift: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; an infinite level and an undefined lift become None."""
        content = asdict(self)
        for name in ("level", "plain_level", "robust_level", "robust_lift_level"):
            if content[name] is not None and math.isinf(content[name]):
                content[name] = None
        content["lift"] = [[None if np.isnan(v) else float(v) for v in row] for row in self.lift]
        return content


def audit_release(
    joint: Joint,
    protocol: Protocol,
    guarantee: Guarantee,
    pair_counts: IntArray,
    alpha: float = 0.05,
    *,
    drawn_with: Protocol | None = None,
    history: FoundHistory | None = None,
    drift: Mapping[str, Any] | None = None,
) -> Findings:
    """Audit a protocol and the records drawn with it against a declared bound.

    Parameters
    ----------
    joint : Joint
        Estimated counts of (S, X), shape (c, a).
    protocol : Protocol
    guarantee : Guarantee
        The declared bound.
    pair_counts : ndarray of int64, shape (a' + 1, b)
        Drawn records by the symbol the protocol read (a' of them, the last row for those outside) and output.
    alpha : float
        Significance of the confidence set around the joint law.
    drawn_with : Protocol, optional
        What the records were drawn with, and what ``pair_counts`` are by, where that is not the published protocol.
    history : FoundHistory, optional
        What all versions together tell.
    drift : mapping, optional
        How frequencies differ from the version before.
    """
    level = guarantee.level(joint, protocol)
    witness = level.witness
    ratio = witness.ratio
    return Findings(
        guarantee=str(guarantee),
        holds=guarantee.holds(joint, protocol),
        level=level.value,
        level_ratio=None if ratio is None else f"{ratio.numerator}/{ratio.denominator}",
        witness_output=protocol.outputs.labels[witness.output],
        witness_secret=joint.secret.labels[witness.secret],
        witness_other_secret=None if witness.other_secret is None else joint.secret.labels[witness.other_secret],
        witness_upward=witness.upward,
        witness_given=witness.given,
        utility=measures.mutual_information(joint, protocol),
        entropy=joint.entropy,
        share=measures.normalised_mutual_information(joint, protocol),
        secret_information=measures.secret_information(joint, protocol),
        guess_accuracy=measures.guess_accuracy(joint, protocol),
        prior_guess_accuracy=float(joint.p_input.max()),
        lift=measures.lift(joint, protocol),
        rows=int(pair_counts.sum()),
        # Those who are forgotten are drawn as if they were outside, so that nothing about them enters; they are not.
        outside=int(pair_counts[-1].sum()) - (0 if history is None else history.forgotten),
        consistency=draw_consistency(pair_counts, drawn_with or protocol),
        confidence=confidence_set(joint, alpha),
        robust_level=_robust_level(joint, protocol, alpha),
        plain_level=LDP(1.0).level(joint, protocol).value,
        robust_lift_level=_robust_lift_level(joint, protocol, guarantee, alpha),
        history=history,
        drift=drift,
    )


def _robust_level(joint: Joint, protocol: Protocol, alpha: float) -> float | None:
    """The level of RLDP, where it can be computed within seconds."""
    if not _computable(joint, protocol):
        return None
    return RLDP(1.0, alpha).level(joint, protocol).value


def _robust_lift_level(joint: Joint, protocol: Protocol, guarantee: Guarantee, alpha: float) -> float | None:
    """The level of LIP or ALIP over the confidence set, where it can be computed within seconds."""
    if not isinstance(guarantee, LIP | ALIP) or not _computable(joint, protocol):
        return None
    return measures.robust_lifts(joint, protocol, alpha).level_of(guarantee)


def _computable(joint: Joint, protocol: Protocol) -> bool:
    c, a = joint.counts.shape
    return bool(joint.counts.any(axis=1).all()) and len(protocol.outputs) * c * a <= _LARGEST
