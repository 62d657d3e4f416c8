"""Estimate: from a snapshot to the counts of (secret, input) and the confidence set around them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from prefect import task
from prefect.context import TaskRunContext

from funnel.confidence import confidence_set
from funnel.joint import Joint
from funnel.pipeline.tasks.engines import workers_of
from funnel.pipeline.tasks.files import FileRef, private_folder, write_whole
from funnel.pipeline.tasks.ingest import Snapshot
from funnel.pipeline.tasks.step import plain_errors, tell
from funnel.release.documents import dump, joint_document, read_joint
from funnel.sampling import count_partition, partition_groups
from funnel.settings import EngineSettings
from funnel.source import require_inputs


@dataclass(frozen=True)
class Estimate:
    """The estimated joint law.

    Attributes
    ----------
    joint : FileRef
        JSON of the counts and alphabets.
    confidence : FileRef
        JSON of the confidence set: level alpha, radius B.
    """

    joint: FileRef
    confidence: FileRef

    def read_joint(self) -> Joint:
        """The counts of (secret, input)."""
        return read_joint(self.joint.checked().read_text(encoding="utf-8"))


def _cache_key(context: TaskRunContext, parameters: dict[str, Any]) -> str:
    """Everything the result depends on; the working folder is in it because the result refers to files there."""
    snapshot: Snapshot = parameters["snapshot"]
    said = [
        "estimate-1",
        snapshot.data.sha256,
        snapshot.codings.sha256,
        *parameters["secret"],
        "/",
        *parameters["publish"],
        repr(parameters["alpha"]),
        repr(parameters["max_inputs"]),
        parameters["workspace"],
    ]
    return "\x1f".join(said)


@task(name="estimate", cache_key_fn=_cache_key, persist_result=True)
@plain_errors
def estimate(
    snapshot: Snapshot,
    secret: tuple[str, ...],
    publish: tuple[str, ...],
    alpha: float,
    max_inputs: int,
    workspace: str,
    engine: EngineSettings = EngineSettings(),  # noqa: B008 - immutable
) -> Estimate:
    """Count the joint law of the secret and the published columns, partition by partition.

    Parameters
    ----------
    engine : EngineSettings, optional
        Who does the work; the counts do not depend on it.

    Raises
    ------
    DataError
        If the published columns have more than ``max_inputs`` combinations.
    """
    order = {column: coding.labels for column, coding in snapshot.read_codings().items()}
    path = str(snapshot.data.checked())
    tasks = [(path, groups, secret, publish, order) for groups in partition_groups(path)]
    parts: dict[int, Joint] = {}
    tell("counting", 0, snapshot.rows)
    with workers_of(engine) as workers:
        for i, part in workers.run(count_partition, tasks):
            parts[i] = part
            tell("counting", sum(one.n for one in parts.values()), snapshot.rows)
    joint = Joint.from_parts([parts[i] for i in sorted(parts)], order)
    require_inputs(joint, max_inputs)
    folder = private_folder(Path(workspace) / "joints" / snapshot.data.sha256[:16])
    return Estimate(
        write_whole(folder / "joint.json", joint_document(joint).to_bytes()),
        write_whole(folder / "confidence.json", dump(asdict(confidence_set(joint, alpha)))),
    )
