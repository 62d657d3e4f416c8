"""Public figures of a protocol, for tests of what is made of them."""

from __future__ import annotations

import numpy as np

from funnel.audit import audit_release
from funnel.guarantees import Guarantee
from funnel.joint import Joint
from funnel.protocol import Protocol
from funnel.release.public import PublicRelease


def public_of(joint: Joint, protocol: Protocol, guarantee: Guarantee) -> PublicRelease:
    """What is published of these counts; one record of every kind is drawn."""
    pairs = np.ones((len(protocol.inputs) + 1, len(protocol.outputs)), dtype=np.int64)
    return PublicRelease.of(joint, protocol, guarantee, audit_release(joint, protocol, guarantee, pairs))
