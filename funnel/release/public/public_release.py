"""PublicRelease: all figures of one release that are published; whatever is public is made of this and the protocol."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from funnel.findings.of_release import Audited
from funnel.guarantees import Guarantee
from funnel.protocol import Protocol
from funnel.release.public.findings import PublicFindings
from funnel.release.public.public_distributions import PublicDistributions


@dataclass(frozen=True, eq=False)
class PublicRelease:
    """What is told of the people of a release, beside the rows and the protocol that they were drawn from.

    Attributes
    ----------
    laws : PublicDistributions
    findings : PublicFindings
    mechanisms : tuple of dict
        The comparison of mechanisms, best first, with the keys of `funnel.planning.PlanRow.to_dict`.
    """

    laws: PublicDistributions
    findings: PublicFindings
    mechanisms: tuple[dict[str, Any], ...]

    @classmethod
    def of(
        cls,
        audited: Audited,
        protocol: Protocol,
        guarantee: Guarantee,
        mechanisms: Iterable[dict[str, Any]] = (),
    ) -> Self:
        """Of public frequencies and what was found under them.

        Raises
        ------
        DataError
            If the protocol reads other columns.
        """
        laws = PublicDistributions.of(audited.frequencies, protocol)
        told = tuple(laws.compared(row, guarantee) for row in mechanisms)
        return cls(laws, PublicFindings.of(audited, guarantee, laws), told)
