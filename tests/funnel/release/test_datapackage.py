"""What a data package says of the protection of frequencies: by its kind, and of people who are followed otherwise."""

from __future__ import annotations

import dataclasses

from funnel import LIP, Joint, fit
from funnel.audit import Audited
from funnel.frequencies import protect
from funnel.frequency_settings import FrequencySettings
from funnel.release.datapackage import _frequencies
from funnel.release.public import PublicFindings, PublicLaws
from funnel.release.public.findings import PublicHistory
from tests.funnel.report.conftest import expected_pairs
from tests.public import UNPROTECTED, protection_of

COUNTED = Joint.from_counts([[300, 100, 250], [100, 500, 400]])
FILES = {"frequencies.json": ("0" * 64, 1)}


def test_people_who_are_followed_are_not_told_that_noise_protects_their_changes() -> None:
    noisy = protect(COUNTED, FrequencySettings(protection="noise", epsilon=1.0, beta=0.01))
    protocol = fit("grr", noisy.joint, LIP(1.0))
    audited = Audited.of(noisy, protocol, LIP(1.0), expected_pairs(COUNTED, protocol))
    alone = PublicFindings.of(audited, LIP(1.0), PublicLaws.of(noisy, protocol))
    told = {
        versions: _frequencies(protection_of(noisy), FILES, dataclasses.replace(alone, history=history))
        for versions, history in [(0, None), *((n, PublicHistory(n, 0.5, 0.1)) for n in (1, 2, 3))]
    }
    assert told[0] == told[1]
    assert told[2] == told[3]
    assert told[1].pop("meaning").endswith("and never from the exact ones")
    assert "which no noise protects" in told[2].pop("meaning")
    assert told[1] == told[2]
    assert told[1]["hash"] == "sha256:" + "0" * 64
    assert _frequencies(UNPROTECTED, FILES, alone)["meaning"].startswith("not protected")
