"""Expectations on the claims of a file: every declared claim is there, once, and true."""

from __future__ import annotations

from typing import Any

from funnel.pipeline.expectations.custom.base import Finding, ReleaseExpectation, counted, named

_TOLD = 3


class ClaimsExpectation(ReleaseExpectation):
    """Expect every claim to hold, and no other claims to be there than those declared.

    A claim that was not looked at is not taken for one that holds.
    """

    claims: list[str]

    metric_dependencies = ("evidence.records",)
    success_keys = ("claims",)

    def find(self, value: list[dict[str, Any]]) -> Finding:
        """Count the claims that do not hold, and say why for the first few."""
        present = [line["claim"] for line in value]
        missing = [name for name in self.claims if name not in present]
        further = [name for name in dict.fromkeys(present) if name not in self.claims or present.count(name) > 1]
        # A failure that is missing comes back from the table as a number that is none.
        wrong = [(line["claim"], line["failure"]) for line in value if isinstance(line["failure"], str)]
        parts = [f"{name} {failure}" for name, failure in wrong[:_TOLD]]
        if len(wrong) > _TOLD:
            parts.append(f"{len(wrong) - _TOLD:,} more do not hold")
        if missing:
            parts.append(f"{counted(len(missing), 'claim')} not looked at: {named(missing)}")
        if further:
            parts.append(f"{counted(len(further), 'claim')} not declared: {named(further)}")
        return Finding(len(self.claims) - len(missing) - len(wrong), len(self.claims), "; ".join(parts) or None)


class ExpectPublicFilesToEqualDeclared(ClaimsExpectation):
    """Expect exactly the declared public files, as plain files, and nothing of the internal evidence among them."""

    evidence_table = "public_files"


class ExpectCsvToEqualTable(ClaimsExpectation):
    """Expect the csv, read by another reader than it was written with, to hold the same rows in the same order."""

    evidence_table = "csv"


class ExpectNumbersToFollowRecords(ClaimsExpectation):
    """Expect every number to be the one that the published records and the declared intervals make, made again."""

    evidence_table = "drawn_numbers"


class ExpectRecordsToBeOfTheirClass(ClaimsExpectation):
    """Expect every published record to be a true one of the class that was drawn, each as likely as it has people."""

    evidence_table = "classes"


class ExpectKeysToGiveAnswers(ClaimsExpectation):
    """Expect digests and answers to be those derived once more from the keys in the source and the release secret."""

    evidence_table = "keys"


class ExpectSecondReaderToAgree(ClaimsExpectation):
    """Expect the released table to hold the same number of every output to a reader of another make."""

    evidence_table = "second_reader"


class ExpectSourceToEqualSnapshot(ClaimsExpectation):
    """Expect the snapshot to be of the source as it is now, and the run to be by the text of the spec."""

    evidence_table = "source"


class ExpectCountsToEqualRecount(ClaimsExpectation):
    """Expect the counts of (secret, input), and the alphabets, to be those counted again from the source."""

    evidence_table = "recount"


class ExpectFrequenciesToBeProtected(ClaimsExpectation):
    """Expect the public counts to be the recounted ones with noise as the spec asks, over values that tell nothing."""

    evidence_table = "frequencies"


class ExpectFrequenciesToMeetRules(ClaimsExpectation):
    """Expect no cell that is small, dominated or of one record alone, by the rules in the text of the spec."""

    evidence_table = "disclosure"


class ExpectPlainLevelToMeetBound(ClaimsExpectation):
    """Expect the bound in the text of the spec to hold under the recounted law, decided in plain fractions."""

    evidence_table = "plain_level"


class ExpectProtocolFiguresToFollowRecount(ClaimsExpectation):
    """Expect bound, level, utility, prior, posteriors and marginal to be those that follow from the recount."""

    evidence_table = "protocol_figures"


class ExpectPackageToDescribeRelease(ClaimsExpectation):
    """Expect digests, sizes, texts and figures of the data package to be those of the release and its spec."""

    evidence_table = "package"


class ExpectHandoutsToFollowDocuments(ClaimsExpectation):
    """Expect README.md, CITATION.cff, dcat.jsonld and protocol.csv to be what the public documents make of them."""

    evidence_table = "handouts"


class ExpectHistoriesToMeetBound(ClaimsExpectation):
    """Expect the bound to hold for every history, and the register to say of all people what became of them."""

    evidence_table = "histories"


class ExpectReportToFollowRecount(ClaimsExpectation):
    """Expect the figures of the public report to be those that follow from the recount."""

    evidence_table = "report"
