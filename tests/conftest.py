"""What all tests share: how hypothesis draws its examples."""

from __future__ import annotations

import os

from hypothesis import settings

# The machines that run the tests are small and shared, so no example is failed for being slow.
settings.register_profile("local", deadline=None)
# In CI the same examples every time: a change is not failed for what another one broke.
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")
