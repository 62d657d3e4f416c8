"""`funnel.protect`: the joint distribution of a library user, with noise and with bounds."""

from __future__ import annotations

from pydantic import ValidationError

from funnel.errors import SpecError
from funnel.frequencies.public_counts import protect as protected
from funnel.joint import Joint
from funnel.settings.protection_settings import FrequencySettings
from funnel.validation_message import validation_sentence


def protect(joint: Joint, epsilon: float = 1.0, beta: float = 0.01) -> Joint:
    """The joint distribution with noise on every count: what is made of it may be public.

    Differentially private with ``epsilon`` for one record more or less, as long as the alphabets of the distribution
    are no secret: name all values that there may be, not only those that occur. The result knows what the true counts
    may be: guarantees of protocols that are made for it hold for all of them, with a probability of at least 1 -
    ``beta``. Every call draws its own noise and spends its own epsilon: keep the result.

    Parameters
    ----------
    joint : Joint
        Exact counts.
    epsilon : float
        Nats; the noise of a count is about 1 / epsilon in size.
    beta : float
        Probability, at most, that the true counts are outside ``bounds`` of the result.

    Returns
    -------
    Joint
        Over the same alphabets; ``counts`` are noisy ones, clipped at 0, within ``bounds``.

    Raises
    ------
    SpecError
        If epsilon or beta is out of range, or the distribution is noisy already.
    DataError
        If nothing is left of the counts under the noise.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[300, 100], [100, 500]], secret=["ill", "well"])
    >>> noisy = funnel.protect(joint, epsilon=1.0)
    >>> noisy.secret == joint.secret, noisy.bounds.beta, noisy.bounds.hold(noisy.counts)
    (True, 0.01, True)

    Bounds are as wide as the noise of this size needs, wherever it has put the counts:

    >>> (noisy.bounds.upper - noisy.counts).tolist()
    [[7, 7], [7, 7]]

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2012): Universally utility-maximizing privacy mechanisms. Canonne, Kamath and
    Steinke (2020): The discrete Gaussian for differential privacy.
    """
    try:
        settings = FrequencySettings(protection="noise", epsilon=epsilon, beta=beta)
    except ValidationError as error:
        raise SpecError(validation_sentence(error, FrequencySettings)) from error
    return protected(joint, settings).joint
