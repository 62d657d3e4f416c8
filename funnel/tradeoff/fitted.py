"""Fitted rows, kept in the private workspace: what a plan fitted a release takes, and the other way round."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from funnel.certificate import Certificate
from funnel.guarantees import Guarantee
from funnel.history.kept_rows import FoundRows
from funnel.joint import Joint
from funnel.planning import PlanRow
from funnel.protocol import Protocol
from funnel.release.cache import Cache

_FILE, _ARRAYS = "row.json", "rows.npz"
# Bytes of all that is kept of a release; a fit that no plan or release has used for the longest time goes first.
_MOST_BYTES = 2**28


@dataclass(frozen=True)
class FittedRows:
    """Rows of plans by public counts, guarantee, mechanism, units of work, what they were chosen by, and the code.

    And the rows of versions about people with histories, by the digest of all that these were searched for.

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
        self._keep(key, {_FILE: json.dumps(content).encode()})

    def find_rows(self, digest: str) -> FoundRows | None:
        """The rows of a version that were searched for the same; None if there are none that are whole."""
        kept = self.cache.find(self.cache.key(digest))
        if kept is None:
            return None
        with np.load(io.BytesIO(kept[_ARRAYS]), allow_pickle=False) as arrays:
            return FoundRows(arrays["library"], arrays["assigned"], float(arrays["work"]))

    def keep_rows(self, digest: str, rows: FoundRows) -> None:
        """Keep the rows of a version.

        Raises
        ------
        OSError, OutputError
            If they cannot be written.
        """
        content = io.BytesIO()
        np.savez(content, library=rows.library, assigned=rows.assigned, work=rows.work)
        self._keep(self.cache.key(digest), {_ARRAYS: content.getvalue()})

    def _keep(self, key: str, files: Mapping[str, bytes]) -> None:
        self.cache.keep(key, files)
        self.cache.forget_oldest(_MOST_BYTES)

    def _key(self, joint: Joint, guarantee: Guarantee, name: str, work: float, *chosen_by: object) -> str:
        return self.cache.key(joint.digest, str(guarantee), name, work, *chosen_by)
