"""Groups suite: what is expected of a release whose columns are published in groups."""

from __future__ import annotations

from funnel.guarantees import Guarantee
from funnel.pipeline.expectations import (
    disclosure_claims,
    finished_groups,
    grouped_answers,
    grouped_claims,
    grouped_package_claims,
    grouped_report_claims,
    public_files,
)
from funnel.pipeline.expectations.custom.base import ReleaseExpectation
from funnel.pipeline.expectations.custom.csv_copy import ExpectCsvToEqualTable
from funnel.pipeline.expectations.custom.disclosure import ExpectFrequenciesToMeetRules
from funnel.pipeline.expectations.custom.groups import (
    ExpectChannelsToFollowProtocol,
    ExpectFileToHoldTexts,
    ExpectGroupsToBeWellFormed,
    ExpectOrderToBeAsDeclared,
    ExpectRowsToFollowProtocol,
    ExpectStagesToBeDrawnByWeights,
    ExpectWordsOfStagesToBeRandom,
)
from funnel.pipeline.expectations.custom.handouts import ExpectHandoutsToFollowDocuments
from funnel.pipeline.expectations.custom.keyed import ExpectKeysToGiveAnswers
from funnel.pipeline.expectations.custom.package import ExpectPackageToDescribeRelease
from funnel.pipeline.expectations.custom.plain_level import ExpectPlainLevelToMeetBound
from funnel.pipeline.expectations.custom.protocol_figures import ExpectProtocolFiguresToFollowRecount
from funnel.pipeline.expectations.custom.public_files import ExpectPublicFilesToEqualDeclared
from funnel.pipeline.expectations.custom.recounted import ExpectCountsToEqualRecount
from funnel.pipeline.expectations.custom.report import ExpectReportToFollowRecount
from funnel.pipeline.expectations.custom.second_reader import ExpectSecondReaderToAgree
from funnel.pipeline.expectations.custom.source import ExpectSourceToEqualSnapshot
from funnel.pipeline.expectations.number_claims import expect_numbers


def declare_groups(
    csv: bool, keyed: bool, shuffled: bool, guarantee: Guarantee, drawn: bool = False
) -> list[ReleaseExpectation]:
    """All expectations on a finished folder of groups, each with a description in plain words.

    Parameters
    ----------
    csv : bool
        Whether the spec asks for a csv.
    keyed : bool
        Whether records have keys.
    shuffled : bool
        Whether rows are in random order.
    guarantee : Guarantee
        The declared bound.
    drawn : bool
        Whether numbers are drawn within published intervals.
    """
    copies: list[ReleaseExpectation] = [
        ExpectCsvToEqualTable(
            claims=list(finished_groups.CSV_CLAIMS),
            description="The csv holds the rows of the parquet file, in their order, and nothing else.",
        )
    ]
    keys: list[ReleaseExpectation] = [
        ExpectKeysToGiveAnswers(
            claims=list(grouped_answers.CLAIMS),
            description="Every record has the answers that its key and the release secret give it, derived again.",
        )
    ]
    order = (
        "The order of the rows looks random: it follows neither the source nor values or secrets."
        if shuffled
        else "Rows are not shuffled, as the spec asks: they stand in the order of the source."
    )
    return [
        ExpectPublicFilesToEqualDeclared(
            claims=list(public_files.CLAIMS),
            description="The folder holds exactly the declared public files, as plain files, and a closed audit/.",
        ),
        ExpectFileToHoldTexts(
            claims=list(finished_groups.FILE_CLAIMS),
            description=(
                "The file has the published columns, the texts of the protocol as categories, one record for each of "
                "the source, and nothing else."
            ),
        ),
        *(copies if csv else []),
        *([expect_numbers()] if drawn else []),
        *(keys if keyed else []),
        ExpectSecondReaderToAgree(
            claims=list(finished_groups.READER_CLAIMS),
            description="Another reader finds every published record in the parquet file as often.",
        ),
        ExpectSourceToEqualSnapshot(
            claims=list(finished_groups.SOURCE_CLAIMS),
            description="The release was made from the source as it is now, by what the text of its spec says.",
        ),
        ExpectCountsToEqualRecount(
            claims=list(finished_groups.RECOUNT_CLAIMS),
            description="The counts that it was made from are those counted again from the source by another reader.",
        ),
        ExpectFrequenciesToMeetRules(
            claims=list(disclosure_claims.GROUPED),
            description=(
                "The frequencies of each group keep the rules of disclosure control, and so does what the weights of "
                "every channel are about, unless the spec asks to report only."
            ),
        ),
        ExpectGroupsToBeWellFormed(
            claims=list(grouped_claims.FORM),
            description=(
                "Groups are those of the spec; weights add up; every text is the set of values that it may stand for, "
                "with the true one; channels are made for as many people as the spec asks for."
            ),
        ),
        ExpectPlainLevelToMeetBound(
            claims=list(grouped_claims.LEVEL),
            description=(
                f"Whole records keep {guarantee}, decided again in whole numbers for every prefix and output, every "
                "record that could be published, and every one that is."
            ),
        ),
        ExpectStagesToBeDrawnByWeights(
            claims=list(grouped_claims.DRAWS),
            description=(
                "At every stage each record drew by the weights of the class that it was led to, without regard to its "
                "secret."
            ),
        ),
        ExpectRowsToFollowProtocol(
            claims=list(grouped_claims.TABLE),
            description="Every text, every pair of texts and every record is about as often there as the law gives it.",
        ),
        ExpectOrderToBeAsDeclared(claims=list(grouped_claims.ORDER), description=order),
        ExpectWordsOfStagesToBeRandom(
            claims=list(grouped_claims.WORDS),
            description="The random words that rows were drawn with and ordered by look uniform, and are new.",
        ),
        ExpectProtocolFiguresToFollowRecount(
            claims=list(grouped_claims.FIGURES),
            description="Bound, level, utility and what is told of columns in protocol.json follow from the recount.",
        ),
        ExpectChannelsToFollowProtocol(
            claims=list(finished_groups.CHANNEL_CLAIMS),
            description="The effective channels of columns and pairs follow from weights and recount, rounded.",
        ),
        ExpectPackageToDescribeRelease(
            claims=list(grouped_package_claims.CLAIMS),
            description="The data package names the files that are there, and tells what the spec and the recount say.",
        ),
        ExpectHandoutsToFollowDocuments(
            claims=sorted(public_files.HANDOUTS),
            description="What is told to people and portals follows from the data package and the effective channels.",
        ),
        ExpectReportToFollowRecount(
            claims=list(grouped_report_claims.CLAIMS),
            description="The figures of the report follow from the recount, and its page is made of them alone.",
        ),
    ]


def announced_groups(
    csv: bool, keyed: bool, shuffled: bool, guarantee: Guarantee, drawn: bool = False
) -> tuple[tuple[str, str], ...]:
    """Names and descriptions of what such a release will be judged by, in their order."""
    declared = declare_groups(csv, keyed, shuffled, guarantee, drawn)
    return tuple((str(one.configuration.type), str(one.description)) for one in declared)
