"""SpecPlan: what a spec would give under one bound or several, as the command and the flow ``plan`` both show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from funnel.certainty import Certainty, certainty
from funnel.disclosure.rule_forecast import RuleForecast, forecast_rules
from funnel.estimation.expected_errors import ExpectedErrors, expected_errors
from funnel.frequencies.noise_forecast import NoiseForecast, forecast_noise
from funnel.guarantees import Guarantee, parse_guarantee
from funnel.history.version_forecast import VersionForecast
from funnel.joint import Joint
from funnel.numbers import utility_for
from funnel.planning import MechanismChoice, PlanRow, best_protocol, plan
from funnel.preview.counted import preview
from funnel.preview.transition_matrix import CheckedMatrix, check_matrix
from funnel.preview.version_plan import plan_version
from funnel.progress import WARNING, Progress
from funnel.protocol import INVARIANT
from funnel.release.protection import Protection
from funnel.release.secret import Reader
from funnel.sample_size import rare_secrets, warnings
from funnel.settings.agreement import NO_ROWS
from funnel.source.columns import resolved_columns
from funnel.spec import ReleaseSpec
from funnel.tradeoff.fitted import FittedRows


@dataclass(frozen=True, eq=False)
class BoundPlan:
    """What a spec would give under one bound.

    Attributes
    ----------
    guarantee : str
    rows : sequence of PlanRow
        Every mechanism.
    warnings : sequence of str
    certainty : Certainty or None
        What the bound costs and buys beside the same for the frequencies as they are, where it is more.
    errors : ExpectedErrors or None
        How exactly shares could be estimated from the best mechanism's release.
    forecast : VersionForecast or None
        What can be kept given everything published before, where versions are about the same people.
    noise : NoiseForecast or None
        What noise on the frequencies costs; None where it was not asked, or the bound is none that covers noise.
    matrix : CheckedMatrix or None
        A transition matrix of others, checked under the bound; None where none was given.
    """

    guarantee: str
    rows: Sequence[PlanRow]
    warnings: Sequence[str] = ()
    certainty: Certainty | None = None
    errors: ExpectedErrors | None = None
    forecast: VersionForecast | None = None
    noise: NoiseForecast | None = None
    matrix: CheckedMatrix | None = None


@dataclass(frozen=True, eq=False)
class SpecPlan:
    """What a spec would give, exactly as it was found.

    Attributes
    ----------
    spec : ReleaseSpec
        What the counts are about: where a record has many columns, by its class.
    joint : Joint
        Public counts of the secret and the published columns.
    protection : Protection
        Of these counts.
    bounds : sequence of BoundPlan
    disclosure : RuleForecast or None
    costing : bool
        Whether it was asked what noise costs.
    """

    spec: ReleaseSpec
    joint: Joint
    protection: Protection
    bounds: Sequence[BoundPlan]
    disclosure: RuleForecast | None = None
    costing: bool = False

    @property
    def compared(self) -> dict[str, Sequence[PlanRow]]:
        """The rows of every bound."""
        return {bound.guarantee: bound.rows for bound in self.bounds}

    def documents(self) -> Iterator[dict[str, Any]]:
        """JSON-ready values, one object a bound: the form is the same however many there are."""
        spec, joint = self.spec, self.joint
        for bound in self.bounds:
            yield {
                "guarantee": bound.guarantee,
                "records": joint.n,
                "secret": list(spec.secret),
                "publish": list(spec.publish),
                "entropy": joint.entropy,
                "utility": spec.utility,
                "frequencies": {**self.protection.model_dump(), "outlook": _content(bound.noise)},
                "mechanisms": [row.to_dict() for row in bound.rows],
                "certainty": _content(bound.certainty),
                "history": _content(bound.forecast),
                "disclosure": None if self.disclosure is None else self.disclosure.to_dict(bound.guarantee),
                "estimates": _content(bound.errors),
                "matrix": _content(bound.matrix),
                "page": None,
                "warnings": list(bound.warnings),
            }


def _content(
    part: NoiseForecast | Certainty | VersionForecast | ExpectedErrors | CheckedMatrix | None,
) -> dict[str, Any] | None:
    return None if part is None else part.to_dict()


class Planner:
    """Counts the source of a spec, compares mechanisms under its bounds, and forecasts what follows; draws nothing.

    Parameters
    ----------
    spec : ReleaseSpec
    guarantees : sequence of str
        Bounds to plan for; that of the spec without any.
    progress : callable
    read : callable, optional
        As in `funnel.release.secret.find_secret`.

    Raises
    ------
    FunnelError
        As of the steps of a release.
    """

    def __init__(
        self, spec: ReleaseSpec, guarantees: Sequence[str], progress: Progress, read: Reader | None = None
    ) -> None:
        spec = resolved_columns(spec)
        self._bounds = [parse_guarantee(text) for text in dict.fromkeys(guarantees) or (spec.guarantee.canonical,)]
        self._progress, self._read = progress, read
        self.found = preview(spec, progress, read)
        for misfit in self.found.misfits:
            progress(f"{WARNING}{misfit}", 0, None)
        self.spec = self.found.spec
        self._settled = self.found.settled or self.spec
        self._counted = self.found.protected.frequencies.joint
        self.joint = self._counted.over_published(self.spec.publish)
        self._useful = utility_for(self._settled, self.joint)
        self._compared: list[tuple[Guarantee, tuple[PlanRow, ...]]] = []
        self._checked: dict[Guarantee, CheckedMatrix] = {}

    @property
    def guarantees(self) -> list[str]:
        """The names of the bounds."""
        return [str(bound) for bound in self._bounds]

    @property
    def protection(self) -> Protection:
        """Of the public counts."""
        return self.found.protected.protection

    @property
    def is_one_family(self) -> bool:
        """Whether nothing else may be used than the mechanism of the spec: under a published secret, or by class."""
        return self.spec.publishes_secret or self.spec.is_by_class

    def warn_of_rare_secrets(self) -> None:
        """Report values of the secret that are too rare for a bound."""
        for bound in () if self.is_one_family else self._bounds:
            if (rare := rare_secrets(self._settled, self._counted, bound)) is not None:
                self._progress(f"{WARNING}{rare}", 0, None)

    def check(self, matrices: Sequence[Path]) -> None:
        """Check the transition matrix of each column under every bound; as `funnel.preview.transition_matrix`."""
        limit = self.spec.mechanism.time_limit
        self._checked = {
            bound: check_matrix(matrices, self.joint, bound, limit, self._progress) for bound in self._bounds
        }

    def compare(self, forbidden: bool = False, shown: Callable[[str, PlanRow], None] | None = None) -> None:
        """Fit every mechanism under every bound, the smallest one first, since what meets it meets larger ones too.

        Parameters
        ----------
        forbidden : bool
            Also those that read the secret although they may not.
        shown : callable, optional
            Given each bound and row as soon as it is there.
        """
        mechanism = self.spec.mechanism
        found: dict[Guarantee, tuple[PlanRow, ...]] = {}
        for bound in sorted(self._bounds, key=lambda bound: bound.budget):
            found[bound] = plan(
                self.joint,
                bound,
                (mechanism.name,) if self.is_one_family else None,
                reads_secret=mechanism.reads_secret,
                time_limit=mechanism.time_limit,
                progress=self._progress,
                forbidden=forbidden,
                told=None if shown is None else partial(shown, str(bound)),
                utility=self._useful,
                weights=mechanism.weights,
                named=mechanism.name,
                kept=FittedRows.within(self.spec.workspace_folder / self.spec.name),
                ruled_out={INVARIANT: NO_ROWS} if self._has_noisy_rows else None,
                others=[row for rows in found.values() for row in rows],
            )
        self._compared = [(bound, found[bound]) for bound in self._bounds]

    @property
    def _has_noisy_rows(self) -> bool:
        return self.spec.follows_units and self.spec.frequencies.kind.is_noisy

    def planned(self, suggest: bool = False, costing: bool = False, in_full: bool = True) -> SpecPlan:
        """All that follows from the comparison.

        Parameters
        ----------
        suggest : bool
            Also the grouping that [disclosure] needs.
        costing : bool
            Also what noise on the frequencies costs.
        in_full : bool
            Also what the bound costs beside that of the frequencies alone, and the errors of estimates.
        """
        named = tuple((str(bound), rows) for bound, rows in self._compared)
        doubts = [tuple(warnings(self.joint, bound, rows, self._useful)) for bound, rows in self._compared]
        sure = [self._certainty(bound, rows) if in_full else None for bound, rows in self._compared]
        best = [best_protocol(rows, self.spec.mechanism.name) if in_full else None for _, rows in self._compared]
        errors = [None if protocol is None else expected_errors(self.joint, protocol) for protocol in best]
        forecasts = plan_version(self.spec, self.found, named, self._progress, self._read)
        disclosure = forecast_rules(self._settled, self._counted, named, suggest, self._progress)
        noise = [self._noise(bound) if costing else None for bound, _ in self._compared]
        checked = [self._checked.get(bound) for bound, _ in self._compared]
        parts = zip(named, doubts, sure, errors, forecasts, noise, checked, strict=True)
        bounds = tuple(BoundPlan(*bound, *rest) for bound, *rest in parts)
        return SpecPlan(self.spec, self.joint, self.protection, bounds, disclosure, costing)

    def _certainty(self, bound: Guarantee, rows: Sequence[PlanRow]) -> Certainty | None:
        if self.is_one_family:
            return None
        asked = self.spec.mechanism
        choice = MechanismChoice(asked.name, asked.reads_secret, asked.time_limit, asked.weights)
        return certainty(self.joint, bound, rows, choice, self._progress, self._useful)

    def _noise(self, bound: Guarantee) -> NoiseForecast | None:
        settings, part = self.spec.frequencies, self.found.protected.frequencies.part
        return forecast_noise(self.joint, bound, settings, part, progress=self._progress)
