"""The way of the data: every step in order, from a spec to a published version, one held for approval, or a refusal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from funnel.errors import ReleaseRefused
from funnel.findings import Audited
from funnel.findings.population import in_population
from funnel.guarantees import parse_guarantee
from funnel.guarantees.base import levels_remembered
from funnel.measures.utilities import Utility
from funnel.numbers import utility_for
from funnel.pipeline.flows.answer import answer_of
from funnel.pipeline.flows.look import held, nothing_to_do, release_secret, superseded
from funnel.pipeline.flows.register_of_run import open_people
from funnel.pipeline.ledger.account import Account, accounting
from funnel.pipeline.tasks.audit import audit
from funnel.pipeline.tasks.classify import classify
from funnel.pipeline.tasks.committed import commit_answer
from funnel.pipeline.tasks.describe import describe
from funnel.pipeline.tasks.estimate import estimate
from funnel.pipeline.tasks.explain import explain
from funnel.pipeline.tasks.follow import entry_of, follow, forget_followed, look_up, pending
from funnel.pipeline.tasks.ingest import ingest
from funnel.pipeline.tasks.optimise import Optimised, optimise
from funnel.pipeline.tasks.protect import disclose, protect, protect_changes
from funnel.pipeline.tasks.publish import Published, hold, publish, require_passed
from funnel.pipeline.tasks.run import Draft, Run
from funnel.pipeline.tasks.sanitise import sanitise
from funnel.pipeline.tasks.step import plain_errors, tell
from funnel.pipeline.tasks.validate import validate
from funnel.progress import WARNING
from funnel.protocol import Protocol
from funnel.recount.run_results import results_remembered
from funnel.register.register import Register
from funnel.release.approval import Approval
from funnel.release.decision import Draw, Rejected, TakeOver, Unchanged, Waiting, decide, origin_of, require_people
from funnel.release.earlier import Submitted, warning_of_withdrawn
from funnel.release.known_keys import keep_keys, require_other_people, warning_of_other_series
from funnel.release.layout import Version
from funnel.release.learned import recall_values
from funnel.release.protected import Protected
from funnel.release.public.findings import PublicRelease
from funnel.release.rows import forget_rows
from funnel.release.secret import ReleaseSecret, commit_secret
from funnel.release.series import Series, open_series
from funnel.release.snapshot import Snapshot, forget_other_snapshots
from funnel.sample_size import doubts, rare_secrets
from funnel.source.columns import resolved_columns
from funnel.source.fitting import misfits
from funnel.spec import ReleaseSpec


@dataclass(frozen=True, eq=False)
class Done:
    """A version that was published, and what it came out of.

    Attributes
    ----------
    published : Published
    snapshot : Snapshot
    protected : Protected
        The frequencies that everything public is made from.
    optimised : Optimised
    channel : Protocol
        What its public files tell of.
    audited : Audited
        What was found under these frequencies.
    """

    published: Published
    snapshot: Snapshot
    protected: Protected
    optimised: Optimised
    channel: Protocol
    audited: Audited

    @property
    def public(self) -> PublicRelease:
        """What of it is public, rounded."""
        guarantee = parse_guarantee(self.audited.distribution.guarantee)
        compared = self.optimised.comparison.content()["rows"]
        return PublicRelease.of(self.audited, self.channel, guarantee, compared)


@plain_errors
def run_release(spec: ReleaseSpec, again: bool, rotate: bool) -> tuple[dict[str, Any], Done | None]:
    """Release the data of a spec, unless this very release is already published or held for approval.

    Parameters
    ----------
    spec : ReleaseSpec
        Read once, by whoever calls.
    again, rotate : bool
        As in the release flow.

    Returns
    -------
    tuple of dict and Done or None
        What is told of the run, as `funnel.pipeline.flows.release.release` describes it; and what was published, if
        anything was.

    Raises
    ------
    FunnelError
        With one clear sentence; nothing is then published and what was published before is untouched.
    """
    spec = resolved_columns(spec)
    with _opened(spec) as opened, levels_remembered(), results_remembered():
        return _run_steps(spec, opened, again, rotate)


@plain_errors
def run_approved(
    spec: ReleaseSpec, approval: Approval, version: Version | None = None
) -> tuple[dict[str, Any], Done | None]:
    """Publish the version that is held, with the approval of somebody: documents written and judged again, no draw.

    Parameters
    ----------
    spec : ReleaseSpec
    approval : Approval
    version : Version, optional
        Of which they approve; by default of the one that is held.

    Returns
    -------
    tuple of dict and Done or None
        As `run_release`.

    Raises
    ------
    FunnelError
        With one clear sentence; the version is then still held.
    """
    spec = resolved_columns(spec)
    with _opened(spec) as opened, levels_remembered(), results_remembered():
        held_versions = opened.series.held
        held_versions.check(held_versions.require_waiting(version))
        return _run_steps(spec, opened, approval=approval)


class _Opened(NamedTuple):
    """What a run holds while it lasts."""

    series: Series
    register: Register | None
    account: Account


@contextmanager
def _opened(spec: ReleaseSpec) -> Iterator[_Opened]:
    """Hold a series, its people and their place in the ledger; each agrees with what is published."""
    with (
        open_series(spec) as series,
        accounting(spec, series, progress=tell) as account,
        open_people(spec, series) as register,
    ):
        if register is not None:
            account.require_register(register)
        yield _Opened(series, register, account)


def _count(
    spec: ReleaseSpec, opened: _Opened, rotate: bool, approval: Approval | None
) -> tuple[Run, Snapshot, list[str]]:
    """Take a snapshot of the source and count it: the run, the whole snapshot, and what came from the cache."""
    series = opened.series
    secret = release_secret(spec, series, rotate)
    workspace = spec.workspace_folder / spec.name
    held_before = [] if series.held.waiting is None else [series.held.waiting.held]
    recall_values((*series.earlier, *held_before), workspace)
    snapshot = taken = ingest(spec, workspace, secret)
    # Told to whoever runs this, and not among the warnings that the orchestrator shows others: it is about the source.
    for misfit in misfits(spec, snapshot.read_codings()):
        tell(f"{WARNING}{misfit}")
    estimated = estimate(spec, snapshot, workspace, secret)
    cached = ["estimate"] if estimated.cached else []
    people = opened.register
    # Versions about the same people are all of whole records, or none is.
    before = people if people is not None and people.entries else None
    if estimated.wide if before is None else before.classes is not None:
        spec, snapshot, estimated = classify(spec, snapshot, estimated, workspace, people)
    run = Run(spec, series, opened.account, snapshot, estimated, secret, people, approval)
    return run, taken, cached


def _run_steps(
    spec: ReleaseSpec, opened: _Opened, again: bool = False, rotate: bool = False, approval: Approval | None = None
) -> tuple[dict[str, Any], Done | None]:
    run, taken, cached = _count(spec, opened, rotate, approval)
    spec, series, secret, workspace = run.spec, run.series, run.secret, run.workspace
    earlier, waiting = run.earlier, series.held.waiting
    fingerprint = None if secret is None else secret.fingerprint
    require_others = partial(
        require_other_people,
        series.records.folder,
        spec,
        taken,
        run.snapshot.content_sha256,
        fingerprint,
        run.estimated.joint,
        earlier,
        again or rotate,
    )
    drawn = [*earlier, *(one.held for one in series.held.all)]
    if approval is None and all(one.record.origin.snapshot != run.snapshot.content_sha256 for one in drawn):
        # Of other records there are no rows to take over: what is refused after the optimisation is refused before.
        require_people(spec, earlier, rotate)
        require_others()
    prepared = _prepare(run)
    cached += ["optimise"] if prepared.optimised.cached else []
    head = None if run.register is None else run.register.head_sha256
    decision = decide(
        spec,
        origin_of(spec, run.snapshot, prepared.optimised.protocol, fingerprint),
        earlier,
        protection=prepared.protected.record,
        again=again,
        rotate=rotate,
        submitted=series.held.all,
        head=head,
    )
    if approval is not None and waiting is not None and not isinstance(decision, Waiting):
        raise ReleaseRefused(
            f"nothing was published: {_moved_on(waiting, head)} since version {waiting.version} was held, so that it "
            "cannot be judged again; run funnel release, and approve of what that holds"
        )
    if isinstance(decision, Unchanged | Rejected) or (
        isinstance(decision, Waiting) and spec.approval.required and approval is None
    ):
        told = nothing_to_do(spec, series, decision, cached)
        if not isinstance(decision, Rejected):
            commit_answer(spec, workspace, series, run.snapshot.source_sha256, fingerprint)
        return told, None
    if isinstance(decision, Waiting):
        decision = decision.release
    if isinstance(decision, Draw):
        require_others()
    keep_keys(series.records.folder, decision.version, spec, taken)
    warnings = _doubtful(run, prepared)
    told, done, late = _release(run, prepared, decision)
    if waiting is not None and waiting.version != decision.version:
        warnings.append(superseded(waiting.version))
    _tidy(workspace, taken, secret if done is not None else None)
    if late is None:
        commit_answer(spec, workspace, series, run.snapshot.source_sha256, fingerprint)
    else:
        # A run that finds this settled would not look into the ledger.
        warnings.append(late)
    placed = held(series, decision.version) if done is None else _placed(done.published, approval)
    told = {
        **placed,
        **told,
        "fresh": decision.fresh,
        "drawn": isinstance(decision, Draw),
        "cached": cached,
        "warnings": [*told["warnings"], *warnings],
        # Of the columns as the spec asks for them; what is kept is of what this left.
        **({} if (left := taken.read_codings().grouping_kept) == 1 else {"grouping_kept": left}),
    }
    return told, done


@dataclass(frozen=True, eq=False)
class _Prepared:
    """What is there before it is decided what to do."""

    protected: Protected
    optimised: Optimised
    useful: Utility


def _prepare(run: Run) -> _Prepared:
    """Protect the counts, and make the protocol."""
    # From here on only what draws, follows or judges sees the counted joint distribution; all else sees the public one.
    spec, snapshot, series, workspace = run.spec, run.snapshot, run.series, run.workspace
    protected = protect(run)
    if not series.earlier and not series.held.all:
        # Nothing can be unchanged: refuse before the optimisation, which may take long.
        disclose(spec, protected.frequencies, workspace)
    settled = snapshot.read_codings().settled(spec)
    if not spec.is_by_class and not spec.publishes_secret:
        # Before the optimisation, and to whoever runs this alone: where counts are exact it is about few people.
        rare = rare_secrets(settled, protected.frequencies.joint, parse_guarantee(spec.guarantee.canonical))
        if rare is not None:
            tell(f"{WARNING}{rare}")
    useful = utility_for(settled, protected.frequencies.joint.over_published(spec.publish))
    return _Prepared(protected, optimise(spec, protected.frequencies, workspace, useful), useful)


def _doubtful(run: Run, prepared: _Prepared) -> list[str]:
    """What is doubtful about the estimate, and which versions were withdrawn; the publisher is told at once."""
    guarantee, protocol = parse_guarantee(run.spec.guarantee.canonical), prepared.optimised.protocol
    warnings = list(doubts(prepared.protected.frequencies.joint, guarantee))
    if protocol.is_sparse and (found := in_population(run.estimated.joint, protocol, guarantee)):
        # Only counts without noise make so wide a table.
        warnings.append(found.sentence)
    beside = (warning_of_withdrawn(run.earlier), warning_of_other_series(run.spec, run.snapshot))
    warnings += [one for one in beside if one is not None]
    for warning in warnings:
        tell(f"{WARNING}{warning}")
    return warnings


def _release(
    run: Run, prepared: _Prepared, decision: Draw | TakeOver
) -> tuple[dict[str, Any], Done | None, str | None]:
    """Draw or take over rows, describe, judge, and publish or hold them; what is told, and what the ledger missed."""
    spec, series, snapshot = run.spec, run.series, run.snapshot
    protected, optimised = prepared.protected, prepared.optimised
    if run.earlier or series.held.all:
        disclose(spec, protected.frequencies, run.workspace)
    holding = spec.approval.required and run.approval is None
    published = late = None
    people = look_up(run, decision)
    protected = protect_changes(run, decision, protected, people)
    followed = follow(run, decision, protected, optimised.protocol, people, prepared.useful)
    protected = protected if followed.protected is None else followed.protected
    drawn, estimated = followed.drawn, run.estimated
    with series.incoming() as folder:
        rows = sanitise(run, decision, drawn, folder)
        settled = snapshot.read_codings().settled(spec)
        findings, audited = audit(
            settled, estimated.joint, protected.frequencies, followed, rows, folder, snapshot, estimated.composition
        )
        created = datetime.now(UTC).isoformat(timespec="seconds")
        draft = Draft(decision, created, folder, protected, optimised, people, followed, rows, findings, audited)
        content = describe(run, draft)
        # Before anything is published: what cannot be told is not found out afterwards.
        told = answer_of(run, draft, content)
        # From here on no public file is touched: what is judged is what is published.
        entry = entry_of(run, draft)
        with pending(run.register, entry, keep=not holding):
            verdict = validate(run, draft, entry)
            require_passed(verdict)
            explain(run, draft, content, verdict)
            if holding:
                hold(run, draft, verdict)
        if not holding:
            # What fails from here on may have been published: the next run finds out, and settles or removes the entry.
            published = publish(run, draft, verdict, entry)
            late = run.account.published()
    if published is None:
        return told, None, late
    return told, Done(published, snapshot, protected, optimised, drawn.channel, audited), late


def _tidy(workspace: Path, snapshot: Snapshot, secret: ReleaseSecret | None) -> None:
    """Keep what the next version needs, and nothing of earlier sources."""
    if secret is not None:
        commit_secret(secret)
    forget_rows(workspace)
    forget_followed(workspace)
    forget_other_snapshots(snapshot)


def _moved_on(waiting: Submitted, head: str | None) -> str:
    """What has changed since a version was held."""
    history = waiting.held.record.history
    if history is not None and history.given != head:
        return "another version about the same people was published, or one of them forgotten,"
    return "the source, the spec or funnel has changed"


def _placed(published: Published, approval: Approval | None) -> dict[str, Any]:
    told = {"status": "published", **vars(published)}
    return told if approval is None else {**told, "approved_by": approval.by, "approved_at": approval.at}
