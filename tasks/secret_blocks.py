"""Secret blocks: secrets as the orchestrator keeps them, beside those in files and in the environment."""

from __future__ import annotations

from typing import Any

from funnel.errors import SpecError
from funnel.release.secret import ReleaseSecret, read_secret
from funnel.sampling.keyed import RecordKey
from funnel.spec import ReleaseSpec


def read_secret_block(place: str) -> str:
    """The text of a secret in a file, in the environment, or in a Secret block of the orchestrator.

    Raises
    ------
    SpecError
        If it cannot be read.
    """
    kind, _, name = place.partition(":")
    return _read_block(name) if kind == "prefect" else read_secret(place)


def record_key_of(spec: ReleaseSpec, secret: ReleaseSecret | None) -> RecordKey | None:
    """What random bits of records are made with, read anew; None where records have no keys."""
    if secret is None or spec.record_key is None:
        return None
    return secret.record_key(spec.record_key, read_secret_block)


def _read_block(name: str) -> str:
    from prefect.blocks.system import Secret

    try:
        # Typed as a coroutine for asynchronous callers too; this one is not.
        block: Any = Secret.load(name)
        value = block.get()
    except ValueError:
        value = None
    if not isinstance(value, str):
        raise SpecError(
            f"there is no Secret block {name!r} with a text on the orchestrator's server; make it, or change "
            "record_secret"
        )
    return value
