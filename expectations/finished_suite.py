"""Finished suite: what is expected of the finished folder of a release, beside its table."""

from __future__ import annotations

from funnel.guarantees import Guarantee
from funnel.pipeline.expectations import (
    class_claims,
    disclosure_claims,
    frequency_claims,
    history_claims,
    keyed_answers,
    package_claims,
    protocol_claims,
    public_files,
    report_claims,
)
from funnel.pipeline.expectations.custom.base import ReleaseExpectation
from funnel.pipeline.expectations.custom.claims import (
    ExpectCountsToEqualRecount,
    ExpectCsvToEqualTable,
    ExpectFrequenciesToBeProtected,
    ExpectFrequenciesToMeetRules,
    ExpectHandoutsToFollowDocuments,
    ExpectHistoriesToMeetBound,
    ExpectKeysToGiveAnswers,
    ExpectNumbersToFollowRecords,
    ExpectPackageToDescribeRelease,
    ExpectPlainLevelToMeetBound,
    ExpectProtocolFiguresToFollowRecount,
    ExpectPublicFilesToEqualDeclared,
    ExpectRecordsToBeOfTheirClass,
    ExpectReportToFollowRecount,
    ExpectSecondReaderToAgree,
    ExpectSourceToEqualSnapshot,
)

CSV_CLAIMS = ("rows",)
NUMBER_CLAIMS = ("numbers",)
READER_CLAIMS = ("records",)
SOURCE_CLAIMS = (
    "digest",
    "records",
    "records left out",
    "secret",
    "published",
    "bound",
    "csv",
    "order of rows",
    "record key",
    "bins",
)
RECOUNT_CLAIMS = ("secret", "inputs", "counts", "hierarchies", "draws")
LEVEL_CLAIMS = ("bound", "findings")


def declare_finished(
    csv: bool,
    keyed: bool,
    guarantee: Guarantee,
    followed: bool = False,
    noise: bool = False,
    drawn: bool = False,
    by_class: bool = False,
) -> list[ReleaseExpectation]:
    """All expectations on a finished folder, each with a description in plain words.

    Parameters
    ----------
    csv : bool
        Whether the spec asks for a csv.
    keyed : bool
        Whether records have keys.
    guarantee : Guarantee
        The declared bound.
    followed : bool
        Whether rows are drawn given everything published about the same people before.
    noise : bool
        Whether noise protects the frequencies, so that everything public follows from noisy counts.
    drawn : bool
        Whether numbers are drawn within published intervals.
    by_class : bool
        Whether whole records are published, which the protocol draws by their class.
    """
    law = "public counts" if noise else "recount"
    copies: list[ReleaseExpectation] = [
        ExpectCsvToEqualTable(
            claims=list(CSV_CLAIMS),
            description="The csv holds the rows of the parquet file, in their order, and nothing else.",
        )
    ]
    classes: list[ReleaseExpectation] = [
        ExpectRecordsToBeOfTheirClass(
            claims=list(class_claims.CLAIMS),
            description=(
                "Every published record is one of the source and of its class, and in every class records are as in "
                "the source."
            ),
        )
    ]
    numbers: list[ReleaseExpectation] = [
        ExpectNumbersToFollowRecords(
            claims=list(NUMBER_CLAIMS),
            description=(
                "Every drawn number is the one that the published records and the declared intervals make, made again "
                "without the source."
            ),
        )
    ]
    keys: list[ReleaseExpectation] = [
        ExpectKeysToGiveAnswers(
            claims=list(keyed_answers.CLAIMS),
            description="Every record has the answer that its key and the release secret give it, derived again.",
        )
    ]
    histories: list[ReleaseExpectation] = [
        ExpectHistoriesToMeetBound(
            claims=list(history_claims.CLAIMS),
            description=(
                f"Everything published about a person, in all versions together, keeps {guarantee}, decided again from "
                "the register in whole numbers."
            ),
        )
    ]
    noisy: list[ReleaseExpectation] = [
        ExpectFrequenciesToBeProtected(
            claims=list(frequency_claims.CLAIMS),
            description=(
                "The public counts are the recounted ones with noise as the spec asks for it, over values that tell "
                "nothing."
            ),
        )
    ]
    return [
        ExpectPublicFilesToEqualDeclared(
            claims=list(public_files.CLAIMS),
            description="The folder holds exactly the declared public files, as plain files, and a closed audit/.",
        ),
        *(copies if csv else []),
        *(numbers if drawn else []),
        *(classes if by_class else []),
        *(keys if keyed else []),
        ExpectSecondReaderToAgree(
            claims=list(READER_CLAIMS),
            description="Another reader finds every output in the parquet file exactly as often as it was drawn.",
        ),
        ExpectSourceToEqualSnapshot(
            claims=list(SOURCE_CLAIMS),
            description="The release was made from the source as it is now, by what the text of its spec says.",
        ),
        ExpectCountsToEqualRecount(
            claims=list(RECOUNT_CLAIMS),
            description="The counts that it was made from are those counted again from the source by another reader.",
        ),
        *(noisy if noise else []),
        ExpectFrequenciesToMeetRules(
            claims=list(disclosure_claims.CLAIMS),
            description="The frequencies keep the rules of disclosure control, unless the spec asks to report only.",
        ),
        ExpectPlainLevelToMeetBound(
            claims=list(LEVEL_CLAIMS),
            description=f"The protocol keeps {guarantee} {_under(guarantee, noise)}, decided again in plain fractions.",
        ),
        ExpectProtocolFiguresToFollowRecount(
            claims=list(protocol_claims.CLAIMS),
            description=f"Bound, level, utility, frequencies and posteriors in protocol.json follow from the {law}.",
        ),
        ExpectPackageToDescribeRelease(
            claims=list(package_claims.CLAIMS),
            description=f"The data package names the files that are there, and tells what the spec and the {law} say.",
        ),
        ExpectHandoutsToFollowDocuments(
            claims=[*sorted(public_files.HANDOUTS), public_files.CHANNEL, public_files.ESTIMATOR],
            description="README, citation, catalogue entry and the csv of the protocol say what these documents say.",
        ),
        *(histories if followed else []),
        _on_the_report(law),
    ]


def _under(guarantee: Guarantee, noise: bool) -> str:
    if not noise:
        return "under the recounted law"
    if guarantee.covers_noise:
        return "under every law that the noise of the public counts leaves possible"
    return "under the public counts"


def _on_the_report(law: str) -> ReleaseExpectation:
    return ExpectReportToFollowRecount(
        claims=list(report_claims.CLAIMS),
        description=f"The figures of the report follow from the {law}, and its page is made of them alone.",
    )
