"""The page under every guarantee: its numbers, its words, its limits in the chart, and its strongest case."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from funnel import Alphabet, Guarantee, Joint, Protocol, parse_guarantee
from funnel.guarantees import Several, names
from funnel.report import number_texts
from funnel.report.public import public_report
from funnel.report.public.report_tables import promised_by
from funnel.wording import at_most
from tests.funnel.report.contents import make_content, make_protocol, public_page

JOINT = Joint.from_counts(
    [[400, 100, 50, 20], [100, 300, 250, 90], [30, 60, 20, 10]],
    Alphabet(("status",), (("single",), ("married",), ("widowed",))),
    Alphabet(("city", "work"), (("north", "yes"), ("north", "no"), ("south", "yes"), ("south", "no"))),
)
MATRIX = 0.7 * np.eye(4) + 0.3 / 4
# Under these every protocol is far from telling nothing, so each is given as much as the protocol needs.
KINDS = [
    "lip:1",
    "ldp:1",
    "pml:1",
    "rlip:1",
    "ralip:1.3,0.7,0.1",
    "rldp:1",
    "rldp:1,0.05,chi2",
    "rpml:1",
    "srlip:1",
    "rsrlip:1",
    "attribute:1",
    "rattribute:1",
    "lip:1 & srlip:1.5",
    "alip:1.3,0.7",
    "alip:inf,0.7",
    "alip:0.7,inf",
    "l1-lift:1,1",
    "chi2-lift:inf,1",
    "alpha-lift:1,1,3",
    "mi:0.1",
]


@pytest.fixture(scope="module")
def protocol() -> Protocol:
    """One protocol for all of them: the record as it is with probability 0.775."""
    outputs = [symbol for symbol in JOINT.inputs.symbols]
    return make_protocol(JOINT, MATRIX, outputs, parse_guarantee("lip:1"))


def declared(text: str, protocol: Protocol, share: float = 1.05) -> Guarantee:
    """The guarantee that the protocol meets with this much to spare, to three digits."""
    guarantee = parse_guarantee(text)
    return guarantee.with_budget(round(share * guarantee.level(JOINT, protocol).value, 3))


def numbers_of(guarantee: Guarantee) -> list[str]:
    """Words are told where they are not the usual ones."""
    told = [value for value in guarantee.settings.values() if value != "boxes"]
    return [value if isinstance(value, str) else f"{value:.15g}" for value in told]


def test_every_kind_is_rendered_here() -> None:
    assert {parse_guarantee(text).name for text in KINDS} | {"perfect"} == set(names())


@pytest.mark.parametrize("text", KINDS)
def test_the_page_of_every_guarantee(text: str, protocol: Protocol) -> None:
    guarantee = declared(text, protocol)
    content = make_content(JOINT, protocol, guarantee)
    page = public_page(content)
    summary, person, leakage = (page.sections[name] for name in ("summary", "person", "leakage"))
    assert summary.startswith("Bound holds")
    assert guarantee.title in summary
    several = isinstance(guarantee, Several)
    for number in [str(guarantee)] if several else [f"= {number}" for number in numbers_of(guarantee)]:
        assert number in summary
        assert number in leakage
    assert f"{guarantee} holds." in leakage
    assert (
        f"{number_texts.level(content.public().findings.figures.level)} nats; the exact number is internal" in leakage
    )
    assert "Level at most" in summary
    assert "xact level" not in page.text
    assert repr(content.findings.level) not in page.text
    assert "infinite" not in page.text
    assert not re.search(r"\b(nan|None|undefined|Fraction)\b", page.text)
    if guarantee.name not in ("lip", "ldp"):
        assert guarantee.meaning in summary
        assert guarantee.meaning in person
    promised = promised_by(guarantee)
    assert ("Limit, at most" in person) == (guarantee.posterior_limits(JOINT.p_secret) is not None)
    limited = promised.lift_limits is not None or promised.ratio_limit is not None
    assert ("limits of the guarantee" in page.text or "limit of the guarantee" in page.text) == limited
    # Which value comes closest to the bound is internal.
    assert public_report(content).strongest is None
    assert "stands in the publisher's internal report alone" in person
    assert "Attained by" not in leakage


def test_the_page_of_perfect_privacy() -> None:
    perfect = parse_guarantee("perfect")
    silent = make_protocol(JOINT, np.full((4, 4), 0.25), list(JOINT.inputs.symbols), perfect)
    page = public_page(make_content(JOINT, silent, perfect))
    assert perfect.meaning in page.sections["summary"]
    assert "perfect holds." in page.sections["leakage"]
    assert "every lift is 1" in page.sections["leakage"]
    assert "no published value changes any belief at all" in page.sections["person"]
    assert page.text.count("limit ×\u00a01") == 1


def test_the_page_of_an_observer_who_rules_a_value_out() -> None:
    """Nobody alone is ruled out by an output, but one whose other column is known is."""
    joint = Joint.from_counts([[400, 100, 50, 0], [100, 300, 250, 90]], JOINT.secret.symbols[:2], JOINT.inputs)
    guarantee = parse_guarantee("srlip:1")
    exact = make_protocol(joint, [[1, 0, 1, 0], [0, 1, 0, 1]], [("any", "yes"), ("any", "no")], guarantee)
    content = make_content(joint, exact, guarantee)
    assert content.findings.level == math.inf
    page = public_page(content)
    assert page.sections["summary"].startswith("Bound broken")
    assert "Nobody whose S is “single” whose city is “south” can have the published value" in page.sections["person"]
    assert "infinite: a published value rules out a value" in page.sections["leakage"]


@pytest.mark.parametrize("text", ["alip:0,1", "l1-lift:0,1"])
def test_a_budget_of_zero_that_is_exceeded_rules_nothing_out(text: str, protocol: Protocol) -> None:
    """The level is infinite, because no scale of the two budgets would do, but every belief stays possible."""
    content = make_content(JOINT, protocol, parse_guarantee(text))
    assert content.findings.level == math.inf
    page = public_page(content)
    assert page.sections["summary"].startswith("Bound broken")
    assert "rule" not in page.sections["person"]
    assert "rules out" not in page.sections["leakage"]


@pytest.mark.parametrize(
    ("text", "words", "limits"),
    [
        ("alip:1.3,0.7", "every lift lies between 0.272 and 2.02 (alip:1.3,0.7)", ["limit ÷ 3.67", "limit × 2.01"]),
        ("alip:inf,0.7", "every lift is at most 2.02 (alip:inf,0.7)", ["limit × 2.01"]),
        ("alip:1.3,inf", "every lift is at least 0.272 (alip:1.3,inf)", ["limit ÷ 3.67"]),
    ],
)
def test_both_sides_of_a_bound_are_named(text: str, words: str, limits: list[str], protocol: Protocol) -> None:
    guarantee = parse_guarantee(text)
    content = make_content(JOINT, protocol, guarantee)
    page = public_page(content)
    assert words in page.sections["leakage"]
    assert [text.replace("\u00a0", " ") for text in re.findall(r"limit [÷×]\u00a0[0-9.]+", page.text)] == limits


@pytest.mark.parametrize("budget", [0.1, 0.7, 1.3, 2.0, math.pi])
def test_factors_in_words_are_never_below_the_bound(budget: float) -> None:
    for text in (
        f"lip:{budget!r}",
        f"ldp:{budget!r}",
        f"alip:inf,{budget!r}",
        f"alip:{budget!r},inf",
        f"srlip:{budget!r}",
        f"rldp:{budget!r}",
    ):
        found = re.search(r"factor ([0-9.]+[0-9])", parse_guarantee(text).meaning)
        assert math.exp(budget) <= float(found[1]) <= math.exp(budget) * 1.01
    assert f"at most {at_most(budget)} nats" in parse_guarantee(f"mi:{budget!r}").meaning


# The one who does not start from the estimated shares: whom the bound holds for whatever they believed before.
WHATEVER = {"ldp", "rldp", "perfect"}


def limits_of(joint: Joint, protocol: Protocol, guarantee: Guarantee) -> str:
    section: str = public_page(make_content(joint, protocol, guarantee)).sections["limits"]
    return section


@pytest.mark.parametrize("text", [*KINDS, "perfect"])
def test_what_an_observer_may_believe_before(text: str, protocol: Protocol) -> None:
    guarantee = parse_guarantee(text)
    if text == "perfect":
        protocol = make_protocol(JOINT, np.full((4, 4), 0.25), list(JOINT.inputs.symbols), guarantee)
    else:
        guarantee = declared(text, protocol)
    told = limits_of(JOINT, protocol, guarantee)
    assert ("The bound starts from" in told) == (guarantee.name not in WHATEVER)
    assert ("The bound holds whatever an observer believed" in told) == (guarantee.name in WHATEVER)
    assert ("The bound is proven for the shares counted in these" in told) == (guarantee.significance is None)
    assert ("The bound is about every distribution that the" in told) == (guarantee.significance is not None)


# No record of the first status is in the last city: an observer who sees that one rules the status out.
EXCLUDING = Joint.from_counts([[400, 100, 50, 0], [100, 300, 250, 90], [30, 60, 20, 10]], JOINT.secret, JOINT.inputs)


@pytest.mark.parametrize(
    "text", ["alip:inf,3", "l1-lift:inf,3", "chi2-lift:inf,3", "alpha-lift:inf,3,2", "alpha-lift:inf,3,100", "mi:2"]
)
def test_what_rules_a_value_out_and_is_within_the_bound_is_said(text: str) -> None:
    guarantee = parse_guarantee(text)
    exact = make_protocol(EXCLUDING, np.eye(4), list(JOINT.inputs.symbols), guarantee)
    content = make_content(EXCLUDING, exact, guarantee)
    assert content.findings.holds
    assert math.isinf(content.findings.plain_level)
    told = public_page(content).sections["limits"]
    assert "some published value rules a value of status out" in told
    assert "infinite" not in told
    assert "apart" not in told


@pytest.mark.parametrize("text", ["lip:1", "alip:1,1"])
def test_the_level_of_the_worst_distribution_is_rounded_up(text: str, protocol: Protocol) -> None:
    content = make_content(JOINT, protocol, declared(text, protocol))
    told = public_page(content).sections["limits"]
    said = told.replace("\u00a0", " ")
    found = re.search(
        r"With confidence 95 %, over random samples of these people, it is at most ([0-9.]*[0-9]) nats", said
    )
    robust = content.findings.robust_lift_level
    assert robust is not None
    assert robust <= float(found[1]) <= robust * 1.11


def test_a_wide_limit_of_the_worst_distribution_is_explained() -> None:
    """A combination that hardly occurs leaves nearly everything open: that is no news about the release."""
    guarantee = parse_guarantee("lip:1")
    joint = Joint.from_counts([[400, 100, 50, 20], [100, 300, 250, 90], [3, 6, 2, 1]], JOINT.secret, JOINT.inputs)
    nearly_nothing = make_protocol(joint, 0.2 * np.eye(4) + 0.2, list(joint.inputs.symbols), guarantee)
    content = make_content(joint, nearly_nothing, guarantee)
    assert content.findings.robust_lift_level is not None
    told = public_page(content).sections["limits"]
    wide = content.findings.robust_lift_level > 2
    assert ("wide because some combinations are rare" in told) == wide
    # Boxes hold the true distribution with their confidence however few the records are.
    assert "doubtful" not in told


def test_a_robust_bound_is_claimed_for_its_own_set_of_distributions_only(protocol: Protocol) -> None:
    """The confidence set of the findings is that of .05; a guarantee names its own."""
    for alpha, share in ((0.01, "99 %"), (0.2, "80 %")):
        guarantee = declared(f"rldp:1,{alpha}", protocol)
        content = make_content(JOINT, protocol, guarantee)
        assert content.findings.confidence.alpha == 0.05
        page = public_page(content)
        assert f"do not rule out (with confidence {share})" in page.sections["limits"]
        assert "exact level" not in page.text.lower()
        assert "exact fraction" not in page.text


def test_a_budget_beyond_the_floats_makes_a_factor_that_no_protocol_reaches() -> None:
    assert promised_by(parse_guarantee("lip:100")).factor == pytest.approx(math.exp(100))
    assert math.isfinite(promised_by(parse_guarantee("lip:5000")).factor)
