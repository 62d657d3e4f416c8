"""What a data package says of the protection of frequencies: by its kind, whoever is followed."""

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


def test_noise_protects_the_changes_of_people_who_are_followed_too() -> None:
    noisy = protect(COUNTED, FrequencySettings(protection="noise", epsilon=1.0, beta=0.01))
    protocol = fit("grr", noisy.joint, LIP(1.0))
    audited = Audited.of(noisy, protocol, LIP(1.0), expected_pairs(COUNTED, protocol))
    alone = PublicFindings.of(audited, LIP(1.0), PublicLaws.of(noisy, protocol))
    told = [
        _frequencies(protection_of(noisy), FILES, dataclasses.replace(alone, history=history))
        for history in (None, PublicHistory(1, 0.5, 0.1), PublicHistory(3, 0.5, 0.1))
    ]
    assert told[0] == told[1] == told[2]
    assert told[0]["meaning"].endswith("and never from the exact ones")
    assert told[0]["hash"] == "sha256:" + "0" * 64
    assert _frequencies(UNPROTECTED, FILES, alone)["meaning"].startswith("not protected")
