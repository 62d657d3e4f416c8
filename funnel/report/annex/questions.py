"""What three frameworks ask of a publication, and how a release answers: by a figure, not at all, or by its publisher.

The frameworks are ISO/IEC 27559:2022 (by its clauses), NIST SP 800-226 of 2025 (by its topics) and the Anonymisation
Decision-Making Framework of the UK Anonymisation Network (the ten components of the edition of 2016).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from funnel.guarantees import parse_guarantee
from funnel.release.public_report import PublicReport

Status = Literal["met", "not applicable", "left to the publisher"]
MET: Status = "met"
NOT_APPLICABLE: Status = "not applicable"
PUBLISHER: Status = "left to the publisher"


@dataclass(frozen=True)
class Question:
    """One question of a framework.

    Attributes
    ----------
    key : str
        Short and unique on the page.
    place : str
        The clause, topic or component.
    asks : str
    """

    key: str
    place: str
    asks: str


@dataclass(frozen=True)
class Framework:
    """A framework: its name, and its questions in its order."""

    name: str
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Answer:
    """How a release answers a question, and where that is found."""

    status: Status
    text: str


FRAMEWORKS = (
    Framework(
        "ISO/IEC 27559:2022, privacy enhancing data de-identification framework",
        (
            Question("iso-6.2", "6.2 Threat modelling", "Who may attack, with which motives, capacity and safeguards?"),
            Question("iso-6.3-actions", "6.3 Transparency", "Is it told what was done to the data?"),
            Question("iso-6.3-harms", "6.3 Impact assessment", "Which harms could follow, and who was consulted?"),
            Question("iso-7.2", "7.2 Data features", "Whose data are they, of which type, and what is sensitive?"),
            Question("iso-7.3-risk", "7.3 Attack modelling", "Is the risk a maximum or an average?"),
            Question("iso-7.3-sample", "7.3 Attack modelling", "Is the population attacked, or the sample?"),
            Question("iso-7.3-model", "7.3 Attack modelling", "Which data privacy model is used?"),
            Question("iso-8.2-quantify", "8.2 Assessing identifiability", "How identifiable are people, as a number?"),
            Question("iso-8.2-testing", "8.2 Assessing identifiability", "Were attacks tried?"),
            Question("iso-8.3-environment", "8.3 Mitigation", "Is the environment of the data changed?"),
            Question("iso-8.3-data", "8.3 Mitigation", "How are the data transformed?"),
            Question("iso-8.3-again", "8.3 Mitigation", "Is the result evaluated again?"),
            Question("iso-9-before", "9 Governance", "Who is responsible before data are made available?"),
            Question("iso-9-after", "9 Governance", "Who watches, and who acts on incidents, afterwards?"),
        ),
    ),
    Framework(
        "NIST SP 800-226 (2025), guidelines for evaluating differential privacy guarantees",
        (
            Question("nist-epsilon", "Privacy parameter", "What is ε, and what is δ?"),
            Question("nist-unit", "Unit of privacy", "Who or what is hidden: a record, a person, a household?"),
            Question("nist-composition", "Composition", "What do several releases come to together?"),
            Question("nist-trust", "Trust model", "Who holds the true data?"),
            Question("nist-utility", "Utility and accuracy", "How exact are results?"),
            Question("nist-statistical", "Bias", "Are results of some groups less exact?"),
            Question("nist-systemic", "Bias", "Are the source or its use biased (systemic and human bias)?"),
            Question("nist-correct", "Implementation", "Are mechanism and arithmetic (floating point) correct?"),
            Question("nist-access", "Security and access control", "Who can reach the true data?"),
            Question("nist-collection", "Data collection exposure", "Are data exposed when they are collected?"),
        ),
    ),
    Framework(
        "UK Anonymisation Decision-Making Framework (2016)",
        (
            Question("adf-1", "Component 1", "Describe your data situation."),
            Question("adf-2", "Component 2", "Understand your legal responsibilities."),
            Question("adf-3", "Component 3", "Know your data."),
            Question("adf-4", "Component 4", "Understand the use case."),
            Question("adf-5", "Component 5", "Meet your ethical obligations."),
            Question("adf-6", "Component 6", "Identify the processes that assess disclosure risk."),
            Question("adf-7", "Component 7", "Identify the relevant disclosure control processes."),
            Question("adf-8", "Component 8", "Identify stakeholders, and plan how to communicate with them."),
            Question("adf-9", "Component 9", "Plan what happens next, once data are shared or released."),
            Question("adf-10", "Component 10", "Plan what you will do if things go wrong."),
        ),
    ),
)


def answers(report: PublicReport) -> dict[str, Answer]:
    """The answer of a release to every question, by its key."""
    return _always() | _identified(report) | _noise(report) | _governed(report)


def _always() -> dict[str, Answer]:
    described = "the columns, their values and the secret: datapackage.json and report.html"
    return {
        "iso-6.2": Answer(MET, "no motive, capacity or safeguard is assumed: the scenarios above"),
        "iso-6.3-actions": Answer(MET, "every probability of a change is in protocol.json; README.md explains it"),
        "iso-6.3-harms": Answer(PUBLISHER, "the impact assessment"),
        "iso-7.2": Answer(MET, f"{described}; the publisher declares which columns are sensitive"),
        "iso-7.3-risk": Answer(MET, "the bound is a maximum over all records; chances of guesses are averages"),
        "iso-7.3-model": Answer(MET, "the declared bound, decided in exact arithmetic: report.html and protocol.json"),
        "iso-8.2-testing": Answer(MET, "the best attacks are computed in the internal report, which is not public"),
        "iso-8.3-environment": Answer(NOT_APPLICABLE, "the bound rests on no agreement and no access control"),
        "iso-8.3-data": Answer(MET, "every record is drawn by the protocol: protocol.json"),
        "iso-8.3-again": Answer(MET, "funnel audit decides the bound again, from the files, at any time"),
        "iso-9-after": Answer(PUBLISHER, "funnel audit and funnel ledger show the state of every version"),
        "nist-trust": Answer(MET, "the publisher holds the true data and draws every record (central model)"),
        "nist-systemic": Answer(PUBLISHER, "the source is published as it is on average, with its bias"),
        "nist-correct": Answer(MET, "whole numbers out of 2^63, proven as they are drawn; a second computation agrees"),
        "nist-access": Answer(PUBLISHER, "the source and the private workspace of funnel"),
        "nist-collection": Answer(PUBLISHER, "funnel begins with the collected table"),
        "adf-1": Answer(PUBLISHER, "report.html has the source and the published columns"),
        "adf-2": Answer(PUBLISHER, "the legal basis"),
        "adf-3": Answer(MET, described),
        "adf-4": Answer(PUBLISHER, "the declared purpose"),
        "adf-5": Answer(PUBLISHER, "consent, consultation and review"),
        "adf-6": Answer(MET, "this page; the attacks of the internal report"),
        "adf-7": Answer(MET, "the protocol and the bound: report.html and protocol.json"),
        "adf-8": Answer(PUBLISHER, "README.md and report.html are written for readers of the data"),
        "adf-10": Answer(PUBLISHER, "withdraw the version; the ledger and the signed list of versions show it"),
    }


def _identified(report: PublicReport) -> dict[str, Answer]:
    robust = parse_guarantee(report.guarantee).significance is not None
    sample = (
        "all populations that the sample does not rule out are attacked, with the stated confidence"
        if robust
        else "the observer knows the frequencies of the sample itself"
    )
    exact = Answer(MET, "standard errors of shares: report.html, and the groups above")
    known = report.accuracy is not None or bool(report.estimated)
    too_many = Answer(PUBLISHER, "there are too many values to compute errors")
    return {
        "iso-7.3-sample": Answer(MET, sample),
        "iso-8.2-quantify": Answer(MET, "singling out, linking and inference above"),
        "nist-utility": exact if known else too_many,
        "nist-statistical": Answer(MET, "errors by group above") if report.estimated else too_many,
    }


def _noise(report: PublicReport) -> dict[str, Answer]:
    frequencies, unit = report.frequencies, " or ".join(report.unit)
    if frequencies.protection != "noise":
        none = "frequencies are published without differential privacy; the bound is about single records"
        epsilon, hidden = Answer(NOT_APPLICABLE, none), Answer(NOT_APPLICABLE, none)
    else:
        delta = f", δ = {frequencies.delta:g}" if frequencies.delta else ""
        epsilon = Answer(MET, f"ε = {frequencies.epsilon:.15g}{delta} for all that is published beside the records")
        hidden = Answer(MET, f"a unit by {unit}, as report.html says" if unit else "one record more or less")
    together = report.people == "same"
    return {
        "nist-epsilon": epsilon,
        "nist-unit": hidden,
        "nist-composition": Answer(MET, "one bound on all versions about the same people: report.html")
        if together
        else Answer(PUBLISHER, "each version is bounded alone; who publishes about the same people declares it"),
    }


def _governed(report: PublicReport) -> dict[str, Answer]:
    approval, together = report.approval, report.people == "same"
    return {
        "iso-9-before": Answer(PUBLISHER, "no approval by a person was asked for")
        if approval is None
        else Answer(MET, f"approved by {approval.by}"),
        "adf-9": Answer(MET, "later versions about the same people share one bound: the register of funnel")
        if together
        else Answer(PUBLISHER, "later versions, and other publications about the same people"),
    }
