"""Suite: the expectations that a release is declared to meet, built in code from its evidence."""

from __future__ import annotations

from collections.abc import Collection

from funnel.findings.false_alarms import SHARES
from funnel.pipeline.expectations.checks import declared_checks
from funnel.pipeline.expectations.custom.base import ReleaseExpectation
from funnel.pipeline.expectations.custom.checks import ExpectCheckToPass
from funnel.pipeline.expectations.custom.drawn_inputs import ExpectDrawnInputsToEqualSnapshot
from funnel.pipeline.expectations.custom.draws import ExpectDrawsToFollowProtocol
from funnel.pipeline.expectations.custom.independence import ExpectDrawsToIgnoreTheSecret
from funnel.pipeline.expectations.custom.order import ExpectRowOrderToTellNothing, ExpectRowsInSourceOrder
from funnel.pipeline.expectations.custom.released_table import (
    ExpectNoSecretOrUndeclaredColumn,
    ExpectReleasedCategoriesToEqualDeclared,
    ExpectReleasedColumnsToBeCategories,
    ExpectReleasedColumnsToEqualDeclared,
    ExpectReleasedColumnsToHoldNoNulls,
    ExpectReleasedCountsToEqualDrawn,
    ExpectReleasedFileToCarryNoMetadata,
    ExpectReleasedRowsToEqualSnapshot,
    ExpectReleasedSymbolsToBeOutputs,
)
from funnel.pipeline.expectations.custom.thresholds import ExpectSamplerToMeetThresholds
from funnel.pipeline.expectations.custom.words import ExpectRandomWordsNeverToRepeat, ExpectRandomWordsToBeUniform
from funnel.pipeline.expectations.drawing import Drawing
from funnel.pipeline.expectations.evidence import Evidence
from funnel.pipeline.expectations.ordering import LABELS
from funnel.wording import listed


def declare(evidence: Evidence) -> list[ReleaseExpectation]:
    """All expectations on a release, each with a description in plain words.

    The suite is never loaded from a file: a loader that does not know a class would leave its expectation out.

    Parameters
    ----------
    evidence : Evidence
        Only what is declared is read here; the released file is not.
    """
    drawing = [] if evidence.drawing is None else _on_the_drawing(evidence, evidence.drawing)
    return [*_on_the_file(evidence), *_on_the_categories(evidence), *_on_the_channel(evidence), *drawing]


def declare_checks(has: Collection[str]) -> list[ReleaseExpectation]:
    """One expectation for each check that a release of these traits is judged by, in the order of the tables."""
    return [ExpectCheckToPass(check=one.name, description=one.says) for one in declared_checks(has)]


def _on_the_columns(evidence: Evidence) -> list[ReleaseExpectation]:
    published = list(evidence.declared_categories)
    return [
        ExpectReleasedColumnsToEqualDeclared(
            columns=published, description=f"The file has exactly the columns {listed(published)}, in this order."
        ),
        ExpectReleasedColumnsToBeCategories(
            columns=published, description="Every published column is stored as categories."
        ),
        ExpectReleasedFileToCarryNoMetadata(
            allowed=[], description="The file carries no metadata that came along from the source."
        ),
        ExpectReleasedColumnsToHoldNoNulls(allowed=0, description="Every record has a value in every column."),
    ]


def _on_the_file(evidence: Evidence) -> list[ReleaseExpectation]:
    published = list(evidence.declared_categories)
    secret = [column for column in evidence.secret if column not in published]
    hidden = f"Neither a secret column ({listed(secret)}) nor an undeclared one is in the file."
    return [
        *_on_the_columns(evidence),
        ExpectNoSecretOrUndeclaredColumn(
            published=published,
            secret=secret,
            description=hidden if secret else "No undeclared column is in the file.",
        ),
        ExpectReleasedRowsToEqualSnapshot(
            rows=evidence.snapshot_rows,
            description=f"The file has one record for each of the {evidence.snapshot_rows:,} in the snapshot.",
        ),
    ]


def _on_the_categories(evidence: Evidence) -> list[ReleaseExpectation]:
    outputs = evidence.protocol.outputs
    by_column: list[ReleaseExpectation] = []
    for column, categories in evidence.declared_categories.items():
        by_column.append(
            ExpectReleasedCategoriesToEqualDeclared(
                column=column,
                categories=categories,
                description=f"Column {column} has exactly its {len(categories):,} declared categories, used or not.",
            )
        )
    return [
        *by_column,
        ExpectReleasedSymbolsToBeOutputs(
            outputs=len(outputs),
            description=f"Every record is one of the {len(outputs):,} outputs of the protocol.",
        ),
    ]


def _on_the_channel(evidence: Evidence) -> list[ReleaseExpectation]:
    digest, outputs = evidence.sampled.digest, evidence.protocol.outputs
    return [
        ExpectReleasedCountsToEqualDrawn(
            labels=list(outputs.labels),
            drawn=evidence.pair_counts.by_output.tolist(),
            description="The file holds every output exactly as often as it was drawn.",
        ),
        ExpectDrawnInputsToEqualSnapshot(
            rows=evidence.snapshot_rows,
            description="Every record of the snapshot drew once: draws and records agree for every input.",
        ),
        ExpectDrawsToFollowProtocol(
            significance=evidence.significance,
            protocol_digest=digest,
            description="For every input, the outputs drawn look like draws from the protocol.",
        ),
    ]


def _on_the_drawing(evidence: Evidence, drawing: Drawing) -> list[ReleaseExpectation]:
    digest, rows = evidence.sampled.digest, evidence.snapshot_rows
    order: ReleaseExpectation = ExpectRowsInSourceOrder(
        rows=rows,
        description="Rows are not shuffled, as the spec asks: they stand in the order of the source.",
    )
    if drawing.shuffled:
        order = ExpectRowOrderToTellNothing(
            significance=SHARES["order"],
            labels=list(LABELS),
            description="The order of the rows looks random: it follows neither the source nor inputs or secrets.",
        )
    return [
        ExpectDrawsToIgnoreTheSecret(
            significance=SHARES["independence"],
            protocol_digest=digest,
            description="Among records with the same input, outputs look drawn without regard to the secret.",
        ),
        order,
        ExpectRandomWordsToBeUniform(
            significance=SHARES["words"],
            rows=rows,
            purposes=["draw", "order"] if drawing.shuffled else ["draw"],
            description="The random words that rows were drawn with and ordered by look uniform.",
        ),
        ExpectRandomWordsNeverToRepeat(
            allowed=0,
            description="No random words were used twice, in this release or in an earlier version.",
        ),
        ExpectSamplerToMeetThresholds(
            protocol_digest=digest,
            description="The sampler gives every output exactly the share of words that its weight says.",
        ),
    ]
