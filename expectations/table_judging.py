"""Judging a released table by its protocol.json, for somebody who has these two files and nothing else."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from funnel.alphabet import Alphabet
from funnel.audit.false_alarms import SHARES
from funnel.pipeline.expectations.data_docs import data_docs
from funnel.pipeline.expectations.judging import judge
from funnel.pipeline.expectations.laws import STEPS
from funnel.pipeline.expectations.table_evidence import TableEvidence
from funnel.release.documents import ProtocolDocument
from funnel.release.verdict import Verdict

if TYPE_CHECKING:
    from funnel.pipeline.expectations.custom.base import ReleaseExpectation


def judge_table(
    table: str | os.PathLike[str],
    protocol: str | os.PathLike[str],
    docs: str | os.PathLike[str] | None = None,
) -> Verdict:
    """Judge a released table by the protocol that it says it was drawn with.

    It judges columns, types, categories and combinations, metadata and hidden dictionaries, and whether every output is
    about as often there as the protocol and its frequencies give it. Whether the bound holds for the people of the
    source nobody can tell from these two files: see ``docs/gate.md``.

    Parameters
    ----------
    table : path
        ``data/records.parquet`` of a release, or a copy of it.
    protocol : path
        ``protocol.json`` of the same release.
    docs : path, optional
        A folder for pages that show what was expected and found.

    Returns
    -------
    Verdict

    Raises
    ------
    DataError
        If ``protocol.json`` is missing, damaged, or does not match its own digest.

    Examples
    --------
    >>> from funnel.pipeline.expectations import judge_table
    >>> verdict = judge_table("data/records.parquet", "protocol.json")  # doctest: +SKIP
    >>> verdict.sentence()  # doctest: +SKIP
    'all 7 expectations hold'
    """
    evidence = StatedEvidence.of(Path(table), ProtocolDocument.read(Path(protocol)))
    return judge(evidence) if docs is None else data_docs(evidence, Path(docs))


@dataclass(frozen=True, eq=False)
class StatedEvidence(TableEvidence):
    """A released table, its protocol, and the least and largest probability of every output that it states.

    Attributes
    ----------
    law : tuple of (least, most), or None
        None where the protocol reads the secret, whose frequencies are not published.
    """

    law: tuple[tuple[float, float], ...] | None

    @classmethod
    def of(cls, released: Path, document: ProtocolDocument) -> StatedEvidence:
        """Of the two files."""
        protocol = document.protocol
        if protocol.inputs.columns != document.prior.columns:
            return cls(released, protocol, None)
        weights = protocol.sparse_for(Alphabet(document.prior.columns, document.prior.symbols))
        shares = document.prior.probabilities
        step = _step(shares)
        law = []
        for y in range(weights.shape[0]):
            inputs, values = weights.row(y)
            row = [
                (weight / protocol.denominator, shares[x])
                for x, weight in zip(inputs.tolist(), values.tolist(), strict=True)
            ]
            # A share of one step may stand for a single record.
            least = sum(w * (p - step / 2) for w, p in row if p > step)
            most = sum(w * (p + step / 2) for w, p in row if p > 0)
            law.append((max(0.0, least), min(1.0, most)))
        return cls(released, protocol, tuple(law))

    def declared(self) -> list[ReleaseExpectation]:
        """What is expected of it."""
        from funnel.pipeline.expectations.custom.stated_law import ExpectOutputsToFollowStatedLaw

        declared = super().declared()
        if self.law is None:
            return declared
        return [
            *declared,
            ExpectOutputsToFollowStatedLaw(
                labels=list(self.protocol.outputs.labels),
                least=[low for low, _ in self.law],
                most=[high for _, high in self.law],
                significance=SHARES["draws"],
                description="Every output is about as often in the file as the protocol and its frequencies give it.",
            ),
        ]


def _step(shares: tuple[float, ...]) -> float:
    """The coarsest step that all shares are multiples of, which is not finer than the one they were rounded to."""
    fits = (step for step in reversed(STEPS) if all(abs(p / step - round(p / step)) < 1e-6 for p in shares))
    return next(fits, STEPS[0])
