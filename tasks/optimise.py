"""Optimise: from a joint law to the protocol, with what every other mechanism would have given."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from prefect import task
from prefect.context import TaskRunContext

from funnel.errors import InfeasibleGuarantee
from funnel.guarantees import parse_guarantee
from funnel.pipeline.tasks.estimate import Estimate
from funnel.pipeline.tasks.files import FileRef, private_folder, write_whole
from funnel.pipeline.tasks.step import plain_errors, tell
from funnel.planning import choose, contenders
from funnel.protocol import Protocol
from funnel.release.documents import dump
from funnel.sample_size import too_few


@dataclass(frozen=True)
class Optimised:
    """The chosen protocol and the comparison it came out of.

    Attributes
    ----------
    protocol : FileRef
        JSON of the protocol.
    comparison : FileRef
        JSON list with a row for each mechanism.
    """

    protocol: FileRef
    comparison: FileRef

    def read_protocol(self) -> Protocol:
        """The chosen protocol."""
        return Protocol.from_json(self.protocol.checked().read_text(encoding="utf-8"))

    def read_comparison(self) -> list[dict[str, Any]]:
        """Rows with mechanism, utility, share, level, seconds and reason."""
        rows: list[dict[str, Any]] = json.loads(self.comparison.checked().read_text(encoding="utf-8"))
        return rows


def _cache_key(context: TaskRunContext, parameters: dict[str, Any]) -> str:
    said = [
        "optimise-2",
        parameters["estimate"].joint.sha256,
        parameters["guarantee"],
        parameters["mechanism"],
        repr(parameters["reads_secret"]),
        repr(parameters["time_limit"]),
        parameters["workspace"],
    ]
    return "\x1f".join(said)


@task(name="optimise", cache_key_fn=_cache_key, persist_result=True)
@plain_errors
def optimise(
    estimate: Estimate, guarantee: str, mechanism: str, reads_secret: bool, time_limit: float, workspace: str
) -> Optimised:
    """Fit the named mechanism or, for ``auto``, those that can win, and choose the one of highest utility.

    Raises
    ------
    InfeasibleGuarantee
        If the mechanism, or every mechanism, cannot meet the guarantee, or the data are too few for a robust one.
    """
    joint = estimate.read_joint()
    bound = parse_guarantee(guarantee)
    rows = contenders(joint, bound, mechanism, reads_secret, time_limit, tell)
    chosen = choose(rows)
    # A draw spends what may be told of people, so one that is of no use is not made.
    if (useless := too_few(joint, bound, [chosen])) is not None:
        raise InfeasibleGuarantee(useless)
    if chosen.protocol is None:
        raise ValueError("a usable mechanism has a protocol")
    key = sha256(f"{estimate.joint.sha256} {guarantee} {mechanism} {reads_secret} {time_limit}".encode()).hexdigest()
    folder = private_folder(Path(workspace) / "protocols" / key[:16])
    return Optimised(
        write_whole(folder / "protocol.json", chosen.protocol.to_json().encode()),
        write_whole(folder / "comparison.json", dump([row.to_dict() for row in rows])),
    )
