"""What the audit of one release finds: exact leakage with its witness, utility, lifts, and the draws themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from funnel import measures
from funnel.alphabet import product
from funnel.confidence import ConfidenceSet, confidence_set
from funnel.drawn import DrawnCounts
from funnel.findings.consistency import Consistency, draw_consistency
from funnel.findings.followed import FoundHistory
from funnel.frequencies.public_counts import Frequencies
from funnel.guarantees import ALIP, LDP, LIP, PML, RLDP, Guarantee, robustly
from funnel.joint import FloatArray, IntArray, Joint
from funnel.measures.utilities import INFORMATION, Explained, Utility
from funnel.protocol import Protocol
from funnel.rounding import integer_weights

# Outputs times cells beyond which the worst case over boxes takes longer than the rest of an audit.
_LARGEST = 10_000_000


@dataclass(frozen=True, eq=False, kw_only=True)
class DistributionFindings:
    """What a protocol reveals under one distribution of secret and input; entropies and levels in nats.

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
    confidence : ConfidenceSet
        How far the true distribution may be from the estimate.
    robust_level : float or None
        LDP level over all distributions in the boxes of the same α (`funnel.RLDP`): what estimation error could cost.
        None where a value of the secret was never seen, or the protocol is too large to compute it in the time of an
        audit.
    plain_level : float
        LDP level under the estimate, to compare it with.
    robust_lift_level : float or None
        For LIP, ALIP and PML, their own level over the same boxes (`funnel.guarantees.robustly`). None for other
        guarantees, and where ``robust_level`` is.
    explained : Explained or None
        How much of numbers is explained, where the protocol was chosen by that.
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
    confidence: ConfidenceSet
    robust_level: float | None
    plain_level: float
    robust_lift_level: float | None = None
    explained: Explained | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Findings(DistributionFindings):
    """The audit of one release by an observer who knows the counts and the draws; internal.

    Attributes
    ----------
    rows, outside : int
        Records released; records among them whose input was outside the protocol's alphabet.
    consistency : Consistency
        Whether the draws look like draws from the protocol.
    proven_level : float or None
        The level for every table of counts that published frequencies with noise do not rule out; None where these are
        the counted ones. ``level`` then is that of an observer who knows the true counts.
    history : FoundHistory or None
        What all versions together tell; None where every version is about other people, and of a first one.
    drift : mapping or None
        How frequencies differ from the version before, as `funnel.history.Drift.to_dict` has it, with its
        ``sentence``; None where that is not compared.
    absent : int or None
        Released records whose combination of published values no counted record has; None where outputs are sets.
    """

    rows: int
    outside: int
    consistency: Consistency
    proven_level: float | None = None
    history: FoundHistory | None = None
    drift: Mapping[str, Any] | None = None
    absent: int | None = None


@dataclass(frozen=True, eq=False)
class DrawnRelease:
    """What an audit is about: a protocol with its declared bound, and the records that were drawn.

    Attributes
    ----------
    protocol : Protocol
    guarantee : Guarantee
        The declared bound.
    pair_counts : ndarray of int64, shape (a' + 1, b), or DrawnCounts
        Drawn records by the symbol the protocol read (a' of them, the last row for those outside) and output.
    alpha : float
        Significance of the confidence set around the joint distribution.
    drawn_with : Protocol, optional
        What the records were drawn with, and what ``pair_counts`` are by, where that is not the published protocol.
    history : FoundHistory, optional
        What all versions together tell.
    """

    protocol: Protocol
    guarantee: Guarantee
    pair_counts: IntArray | DrawnCounts
    alpha: float = 0.05
    drawn_with: Protocol | None = None
    history: FoundHistory | None = None

    @cached_property
    def records(self) -> DrawnCounts:
        """The drawn records."""
        return DrawnCounts.of_pairs(self.pair_counts)

    @property
    def outside(self) -> int:
        """Records whose input was outside the alphabet; of some nothing is read, as if it were, and it is not."""
        return self.records.outside - (0 if self.history is None else self.history.read_nothing)

    @property
    def consistency(self) -> Consistency:
        """Whether the records look like draws."""
        return draw_consistency(self.records, self.drawn_with or self.protocol)

    def under(self, joint: Joint, utility: Utility) -> DistributionFindings:
        """What the protocol reveals under a distribution."""
        return distribution_findings(joint, self.protocol, self.guarantee, self.alpha, utility)


@dataclass(frozen=True, eq=False)
class Audited:
    """What may be told of a release once rounded, under its public frequencies, for an observer who knows no more.

    Attributes
    ----------
    frequencies : Frequencies
    distribution : DistributionFindings
        Under these frequencies, and where they have bounds over every table of counts within them.
    rows : int
        Records released, as the table shows.
    outside : int or None
    consistency : Consistency or None
        As of `Findings`. None where frequencies are protected by noise: both are of the true values of people.
    history : FoundHistory or None
    drawn : ndarray of int64, shape (b,)
        Records by output, as the table shows.
    """

    frequencies: Frequencies
    distribution: DistributionFindings
    rows: int
    outside: int | None
    consistency: Consistency | None
    history: FoundHistory | None
    drawn: IntArray

    @classmethod
    def of(cls, frequencies: Frequencies, release: DrawnRelease, utility: Utility = INFORMATION) -> Self:
        """Audit a release under public frequencies; of the draws, only what they allow to be told.

        Parameters
        ----------
        frequencies : Frequencies
        release : DrawnRelease
        utility : Utility
            What the protocol was chosen by.
        """
        distribution, drawn = release.under(frequencies.joint, utility), release.records
        noisy = frequencies.kind.is_noisy
        outside, consistency = (None, None) if noisy else (release.outside, release.consistency)
        return cls(frequencies, distribution, drawn.n, outside, consistency, release.history, drawn.by_output)


def audit_release(
    joint: Joint,
    release: DrawnRelease,
    utility: Utility = INFORMATION,
    *,
    drift: Mapping[str, Any] | None = None,
    audited: Audited | None = None,
    absent: int | None = None,
) -> Findings:
    """Audit a protocol and the records drawn with it against a declared bound, knowing the counts.

    Parameters
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a).
    release : DrawnRelease
    utility : Utility
        What the protocol was chosen by.
    drift : mapping, optional
        How frequencies differ from the version before.
    audited : Audited, optional
        What was found under the public frequencies of this release.
    absent : int, optional
        Released records whose combination of published values no counted record has (`funnel.findings.absent`).
    """
    same = audited is not None and audited.frequencies.joint is joint
    distribution = audited.distribution if audited is not None and same else release.under(joint, utility)
    noisy = audited is not None and audited.frequencies.kind.is_noisy
    return Findings(
        **{part.name: getattr(distribution, part.name) for part in fields(DistributionFindings)},
        rows=release.records.n,
        outside=release.outside,
        consistency=release.consistency,
        proven_level=audited.distribution.level if audited is not None and noisy else None,
        history=release.history,
        drift=drift,
        absent=absent,
    )


def distribution_findings(
    joint: Joint, protocol: Protocol, guarantee: Guarantee, alpha: float = 0.05, utility: Utility = INFORMATION
) -> DistributionFindings:
    """What a protocol reveals under a distribution; where that has bounds, levels are over all counts within them.

    Utility is about the published columns: with the secret, where that is one of them.

    Parameters
    ----------
    joint : Joint
        Counts of (S, X), shape (c, a).
    protocol : Protocol
    guarantee : Guarantee
        The declared bound.
    alpha : float
        Significance of the confidence set around the joint distribution.
    utility : Utility
        What the protocol was chosen by.
    """
    level = guarantee.level(joint, protocol)
    of_class, from_class = joint.by_class, _from_classes(joint, protocol)
    published = joint.over_published(protocol.outputs.columns)
    witness = level.witness
    ratio = witness.ratio
    return DistributionFindings(
        guarantee=str(guarantee),
        holds=guarantee.holds(joint, protocol),
        level=level.value,
        level_ratio=None if ratio is None else f"{ratio.numerator}/{ratio.denominator}",
        witness_output=protocol.outputs.labels[witness.output],
        witness_secret=joint.secret.labels[witness.secret],
        witness_other_secret=None if witness.other_secret is None else joint.secret.labels[witness.other_secret],
        witness_upward=witness.upward,
        witness_given=witness.given,
        utility=measures.mutual_information(published, protocol),
        entropy=published.entropy,
        share=measures.normalised_mutual_information(published, protocol),
        secret_information=measures.secret_information(joint, protocol),
        guess_accuracy=measures.guess_accuracy(published, protocol),
        prior_guess_accuracy=float(published.p_input.max()),
        lift=measures.lift(joint, protocol),
        confidence=confidence_set(joint, alpha),
        robust_level=_robust_level(of_class, from_class, alpha),
        plain_level=LDP(1.0).level(of_class, from_class).value,
        robust_lift_level=_robust_lift_level(of_class, from_class, guarantee, alpha),
        explained=Explained.of(utility, published, protocol),
    )


def _from_classes(joint: Joint, protocol: Protocol) -> Protocol:
    """What is published for somebody in a class, whatever the part: where there are no parts, the protocol."""
    if joint.parts is None:
        return protocol
    class_of, classes = joint.parts.class_of, joint.parts.classes
    within: FloatArray = np.zeros((len(class_of), len(classes)))
    within[np.arange(len(class_of)), class_of] = joint.p_input / joint.by_class.p_input[class_of]
    if protocol.inputs.columns != joint.inputs.columns:
        # A part of a class is as common whatever the secret, as far as is believed.
        within = np.asarray(np.kron(np.eye(len(joint.secret)), within), dtype=np.float64)
        classes = product(joint.secret, classes)
    return replace(protocol, weights=integer_weights(protocol.matrix @ within), inputs=classes, mechanism="")


def _robust_level(joint: Joint, protocol: Protocol, alpha: float) -> float | None:
    """The level of LDP over boxes, where it can be computed within seconds."""
    if not _computable(joint, protocol):
        return None
    return RLDP(1.0, alpha).level(joint, protocol).value


def _robust_lift_level(joint: Joint, protocol: Protocol, guarantee: Guarantee, alpha: float) -> float | None:
    """The level of LIP, ALIP or PML over boxes, where it can be computed within seconds."""
    robust = robustly(guarantee, alpha) if isinstance(guarantee, LIP | ALIP | PML) else None
    if robust is None or not _computable(joint, protocol):
        return None
    return robust.level(joint, protocol).value


def _computable(joint: Joint, protocol: Protocol) -> bool:
    c, a = joint.counts.shape
    return bool(joint.counts.any(axis=1).all()) and len(protocol.outputs) * c * a <= _LARGEST
