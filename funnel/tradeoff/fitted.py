"""Fitted rows, kept in the private workspace: what a plan fitted a release takes, and the other way round."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

from funnel.certificate import Certificate
from funnel.guarantees import Guarantee
from funnel.joint import Joint
from funnel.planning import PlanRow
from funnel.protocol import Protocol
from funnel.release.cache import Cache

_FILE = "row.json"


@dataclass(frozen=True)
class FittedRows:
    """Rows of plans by public counts, guarantee, mechanism, units of work, what they were chosen by, and the code.

    Attributes
    ----------
    cache : Cache
        ``fits`` in the workspace of a release.
    """

    cache: Cache

    @classmethod
    def within(cls, workspace: Path) -> Self:
        """Those of a private workspace, ``<workspace>/<name of the release>``."""
        return cls(Cache(workspace / "fits"))

    def find(self, joint: Joint, guarantee: Guarantee, name: str, work: float, *chosen_by: object) -> PlanRow | None:
        """The row of a mechanism that was fitted with the same work; None if there is none that is whole."""
        kept = self.cache.find(self._key(joint, guarantee, name, work, *chosen_by))
        if kept is None:
            return None
        content = json.loads(kept[_FILE])
        protocol, certificate = content.pop("protocol"), content.pop("certificate")
        return PlanRow(
            **content,
            protocol=None if protocol is None else Protocol.from_dict(protocol),
            certificate=None if certificate is None else Certificate(**certificate),
        )

    def keep(self, row: PlanRow, joint: Joint, guarantee: Guarantee, work: float, *chosen_by: object) -> None:
        """Keep a row.

        Raises
        ------
        OSError, OutputError
            If it cannot be written.
        """
        content = asdict(replace(row, protocol=None))
        content["protocol"] = None if row.protocol is None else row.protocol.to_dict()
        key = self._key(joint, guarantee, row.mechanism, work, *chosen_by)
        self.cache.keep(key, {_FILE: json.dumps(content).encode()})

    def _key(self, joint: Joint, guarantee: Guarantee, name: str, work: float, *chosen_by: object) -> str:
        return self.cache.key(joint.digest, str(guarantee), name, work, *chosen_by)
