"""Register: what was ever published about some people, so that the next version can take it into account."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from funnel.register.register import Register
    from funnel.spec import ReleaseSpec


def register_of(spec: ReleaseSpec) -> Register | None:
    """The register that a spec names, as it is now; None without one."""
    if spec.register is None:
        return None
    # Imported here: most series have no register, and its code knows the arithmetic of histories.
    from funnel.register.register import Register

    return Register.of(spec.workspace_folder, spec.register)
