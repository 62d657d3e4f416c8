"""Public figures of a protocol under counts that nothing protects, for tests of what is made of them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from funnel.findings import Audited, DrawnRelease
from funnel.findings.of_release import DistributionFindings
from funnel.frequencies.public_counts import Frequencies
from funnel.guarantees import Guarantee
from funnel.joint import Joint
from funnel.preview.counted import Preview
from funnel.protocol import Protocol
from funnel.release.protected import ProtectionContext, public_frequencies
from funnel.release.protection import ProtectedCounts, Protection, numbers_of
from funnel.release.public.findings import PublicRelease
from funnel.report.content import ReportContent
from funnel.spec import ReleaseSpec

UNPROTECTED = Protection(protection="none", epsilon=None, delta=None, beta=None, spent=None, unprotected=0)
# The same, as the record of a version has it.
OPEN_COUNTS = ProtectedCounts(**UNPROTECTED.model_dump(), counted="0" * 64, noisy=None, values=None)


def counted(joint: Joint) -> Frequencies:
    """Counts that are public as they are."""
    return Frequencies(joint, "none")


def protection_of(frequencies: Frequencies, unprotected: int = 0) -> Protection:
    """What is said of these, and of how many versions about the same people before them had no noise."""
    return Protection(**numbers_of(frequencies), unprotected=unprotected)


def public_of(joint: Joint, protocol: Protocol, guarantee: Guarantee) -> PublicRelease:
    """What is published of these counts; one record of every kind is drawn."""
    pairs = np.ones((len(protocol.inputs) + 1, len(protocol.outputs)), dtype=np.int64)
    return PublicRelease.of(Audited.of(counted(joint), DrawnRelease(protocol, guarantee, pairs)), protocol, guarantee)


def audited_again(content: ReportContent, **changes: Any) -> ReportContent:
    """What a report shows with other findings, of an observer who knows the counts and of the public alike."""
    audited, names = content.audited, {part.name for part in fields(DistributionFindings)}
    distribution = replace(audited.distribution, **{name: value for name, value in changes.items() if name in names})
    told = {name: changes[name] for name in ("rows", "outside", "consistency", "history") if name in changes}
    return replace(
        content,
        findings=replace(content.findings, **changes),
        audited=replace(audited, distribution=distribution, **told),
    )


def previewed(spec: ReleaseSpec, joint: Joint) -> Preview:
    """What a plan sees of counts that are as public as they are."""
    context = ProtectionContext(spec)
    return Preview(spec, joint, public_frequencies(context, joint), context)
