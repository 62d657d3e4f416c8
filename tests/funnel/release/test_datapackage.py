"""What a data package says of the protection of frequencies: by its kind, and nothing of noise where there is none."""

from __future__ import annotations

from funnel import Joint
from funnel.frequencies.public_counts import protect
from funnel.release.datapackage import protected_by
from funnel.settings.protection_settings import FrequencySettings
from tests.public import UNPROTECTED, protection_of

COUNTED = Joint.from_counts([[300, 100, 250], [100, 500, 400]])
FILES = {"frequencies.json": ("0" * 64, 1)}


def test_what_protects_the_frequencies_is_told_by_its_kind() -> None:
    noisy = protect(COUNTED, FrequencySettings(protection="noise", epsilon=1.0, beta=0.01))
    told = protected_by(protection_of(noisy, 2), FILES)
    assert told.meaning.endswith("and never from the exact ones")
    assert (told.hash, told.epsilon, told.unprotected_versions) == ("sha256:" + "0" * 64, 1.0, 2)
    plain = protected_by(UNPROTECTED, FILES)
    assert plain.meaning.startswith("not protected")
    assert (plain.path, plain.hash, plain.epsilon, plain.unprotected_versions) == (None, None, None, None)
