"""Steps of a grouped release: its protocol, its rows, what they reveal, and its public documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from funnel.disclosure.groups import rules_given_prefixes
from funnel.groups import GroupedProtocol, Shown
from funnel.groups.drawn_by_weights import groups_consistency
from funnel.groups.purposes import values_of
from funnel.guarantees import parse_guarantee
from funnel.joint import Joint
from funnel.numbers import numbers_for
from funnel.pipeline.tasks.step import step, tell
from funnel.pipeline.tasks.vault import read_from_vault
from funnel.release.cache import Cache
from funnel.release.counted_records import records_file
from funnel.release.decision import Draw, TakeOver
from funnel.release.effective_channels import channels_table
from funnel.release.evidence import write_spec
from funnel.release.files import private_folder, write_whole
from funnel.release.grouped_findings import (
    FoundConsistency,
    GroupedFindings,
    GroupedSolved,
)
from funnel.release.grouped_proof import GroupedProof
from funnel.release.grouped_public import GroupedPublic
from funnel.release.grouped_publication import write_grouped_documents
from funnel.release.grouped_rows import GroupedRows, draw_grouped_rows, take_over_grouped
from funnel.release.grouping import choice_of, found_columns, make_groups, seconds_for_groups, share
from funnel.release.layout import ReleaseFolder
from funnel.release.protection import Protection
from funnel.release.secret import ReleaseSecret
from funnel.release.snapshot import Snapshot
from funnel.spec import ReleaseSpec

PROTOCOL, SOLVED, PROOF = "protocol.json", "solved.json", "proof.json"


@dataclass(frozen=True, eq=False)
class OptimisedGroups:
    """The protocol of groups, and what was found when it was made.

    Attributes
    ----------
    protocol : GroupedProtocol
    solved : GroupedSolved
    cached : bool
        Whether an earlier run made them.
    proof : GroupedProof or None
        What a bound in the population rests on.
    """

    protocol: GroupedProtocol
    solved: GroupedSolved
    cached: bool
    proof: GroupedProof | None = None

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The groups in the order in which they are published."""
        return tuple(stage.columns for stage in self.protocol.stages)


@step
def optimise_groups(spec: ReleaseSpec, joint: Joint, snapshot: Snapshot, workspace: Path) -> OptimisedGroups:
    """Make the protocol of groups that serves the utility of the spec best under the bound, or find it; cached.

    Raises
    ------
    SpecError
        If fewer people are in the table than a channel is made for.
    SolverError
        If its bound is not proven, which is a defect.
    """
    cache = Cache(workspace / "protocols")
    # Bins stand for numbers by the edges that were found, and groups by what they are of.
    spec = snapshot.read_codings().settled(spec)
    rules = rules_given_prefixes(spec)
    key = cache.key(
        snapshot.content_sha256,
        spec.secret,
        spec.publish,
        spec.groups.of,
        spec.groups.people,
        spec.guarantee.canonical,
        spec.name,
        seconds_for_groups(spec),
        "no rules" if rules is None else ["rules given prefixes", *astuple(rules)],
        [spec.utility, numbers_for(spec, values_of(joint.inputs))],
    )
    found = cache.find(key)
    if found is None:
        made = make_groups(spec, joint, parse_guarantee(spec.guarantee.canonical), tell)
        # Made again from what is kept, so that a first run and a later one have the same.
        kept = {PROTOCOL: made.protocol.to_json().encode(), SOLVED: GroupedSolved.of(made).to_bytes()}
        if made.proven is not None:
            kept[PROOF] = GroupedProof.of(made.proven).to_bytes()
        cache.keep(key, kept)
    else:
        kept = found
    tell("done" if found is None else "taken from the cache")
    protocol, solved = GroupedProtocol.from_json(kept[PROTOCOL]), GroupedSolved.from_json(kept[SOLVED])
    proof = GroupedProof.from_json(kept[PROOF]) if PROOF in kept else None
    return OptimisedGroups(protocol, solved, found is not None, proof)


@step
def sanitise_groups(
    spec: ReleaseSpec,
    decision: Draw | TakeOver,
    snapshot: Snapshot,
    joint: Joint,
    protocol: GroupedProtocol,
    folder: ReleaseFolder,
    workspace: Path,
    secret: ReleaseSecret | None = None,
) -> GroupedRows:
    """Put the rows of the coming version into its folder, with the evidence of their drawing.

    Raises
    ------
    EntropyError
        If the random source fails; nothing is written from it.
    """
    if isinstance(decision, TakeOver):
        earlier = decision.rows_of
        if earlier.folder is None:
            raise ValueError("rows that are gone are not taken over")
        return take_over_grouped(ReleaseFolder(earlier.folder), earlier.rows_sha256, folder)
    key = None if secret is None or spec.record_key is None else secret.record_key(spec.record_key, read_from_vault)
    return draw_grouped_rows(
        snapshot,
        protocol,
        folder,
        workspace,
        shuffle=spec.output.shuffle,
        record_key=key,
        secret=joint.secret,
        engine=spec.engine,
        progress=tell,
    )


@step
def audit_groups(
    spec: ReleaseSpec,
    snapshot: Snapshot,
    joint: Joint,
    optimised: OptimisedGroups,
    rows: GroupedRows,
    folder: ReleaseFolder,
) -> tuple[GroupedFindings, Shown]:
    """What the release reveals, column by column and in all, and whether it was drawn so; kept as internal evidence.

    The bound was decided for every prefix and output when the protocol was made; here nothing is decided again.
    """
    tell("computing what is shown")
    protocol, solved = optimised.protocol, optimised.solved
    shown = Shown.of(joint, protocol)
    consistency = groups_consistency(rows.draws.cells, rows.draws.records, protocol)
    findings = GroupedFindings(
        guarantee=protocol.guarantee,
        rows=snapshot.rows,
        dropped=snapshot.dropped,
        records=int(joint.counts.any(axis=0).sum()),
        published=_published(folder),
        people=protocol.people,
        groups=optimised.groups,
        choice=choice_of(spec),
        share=share(solved.utility / solved.entropy) if solved.entropy else 1.0,
        columns=found_columns(shown),
        consistency=FoundConsistency(
            p_value=consistency.p_value, tests=consistency.tests, impossible=consistency.impossible
        ),
        **{name: getattr(solved, name) for name in type(solved).model_fields if name != "schema_"},
    )
    write_whole(folder.findings, findings.to_bytes())
    if optimised.proof is not None:
        write_whole(folder.proof, optimised.proof.to_bytes())
    return findings, shown


@step
def describe_groups(
    spec: ReleaseSpec,
    decision: Draw | TakeOver,
    snapshot: Snapshot,
    joint: Joint,
    optimised: OptimisedGroups,
    protection: Protection,
    findings: GroupedFindings,
    shown: Shown,
    rows: GroupedRows,
    folder: ReleaseFolder,
) -> GroupedPublic:
    """Write the protocol, the effective channels, csv and drawn numbers, and the counted records into audit/.

    Of the exact figures nothing enters the public files but as `GroupedPublic` and the table of channels round them.
    """
    tell("writing the documents")
    private_folder(folder.audit)
    write_spec(spec, folder)
    write_whole(folder.counted, records_file(joint))
    guarantee = parse_guarantee(spec.guarantee.canonical)
    public = GroupedPublic.of(findings, guarantee)
    channels = channels_table(shown, findings.people)
    settled = snapshot.read_codings().settled(spec)
    write_grouped_documents(settled, optimised.protocol, guarantee, public, channels, protection, rows.data, folder)
    return public


def _published(folder: ReleaseFolder) -> int:
    """How many different records were published."""
    table = pq.read_table(folder.data)
    codes: Sequence[np.ndarray] = [column.combine_chunks().indices.to_numpy() for column in table.columns]
    return len(np.unique(np.column_stack(codes), axis=0))
