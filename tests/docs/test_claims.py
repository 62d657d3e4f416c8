"""A sentence that promises everything names the observer it holds for, on pages, in reports and in what bounds mean."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import funnel
from funnel.guarantees import parse_guarantee
from tests.funnel.report.test_guarantees import KINDS

ROOT = Path(__file__).parents[2]
PAGES = (
    *("README.md", "docs/index.md", "docs/how-it-works.md", "docs/limitations.md", "docs/limitations-figures.md"),
    *("docs/method.md", "docs/invariant.md", "docs/columns.md", "docs/robustness.md", "docs/history.md"),
    *("docs/tutorial.md", "docs/report.md", "docs/side-channels.md", "docs/glossary.md"),
    *(f"docs/guides/{name}.md" for name in ("data-user", "officer", "researcher", "steward")),
)
TEMPLATES = sorted(
    path
    for folder in ("funnel/report/templates", "funnel/release/handouts")
    for path in (ROOT / folder).rglob("*.jinja")
)
# What may be said of an observer who is named, and of no other.
ABSOLUTE = re.compile(
    r"""\b(?:
    (?:nobody|no[ ]one|no[ ]person|no[ ]attack(?:er)?s?)[ ](?:
        (?:can|could|will)[ ](?:learn|find|tell|say|know|infer|identify|conclude|guess|reconstruct|see|single)
        | passe[sd]|learns|knows)\b
    | cannot[ ](?:be[ ])?(?:learn(?:t|ed)?|inferr?(?:ed)?|(?:re-)?identif\w+|reconstruct(?:ed)?)\b
    | cannot[ ](?:be[ ]told|tell)[ ]wh(?:o|ose|ich)\b
    | (?:guarantees?|ensures?|proves?)[ ]that[ ]no\b
    | (?:tells?|reveals?|discloses?|learns?)[ ](?:nothing|little)(?:[ ]at[ ]all)?[ ]about\b
    | nothing[ ](?:at[ ]all[ ])?(?:is|can[ ]be)[ ](?:learn(?:t|ed)|inferred|disclosed)\b
    | whatever[ ](?:they|he|she|it|an[ ]observer|the[ ]observer)[ ](?:believed|believes|knows?|knew)\b
    | bound[ ]holds[ ]for[ ](?:everybody|everyone)\b
    | (?:belief|odds|probability)\b[^.:;]*?\bby[ ](?:at[ ]most|no[ ]more[ ]than)[ ](?:a|the)[ ](?:stated[ ])?factor
    )""",
    re.IGNORECASE | re.VERBOSE,
)
OBSERVER = re.compile(
    r"\bobservers?\b|\battackers?\b|\breaders? (?:of|who)\b|\b(?:who|whoever)\b[^.]*?\b(?:knows?|keeps)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.)\s)")
# Comments and macros: what a macro says stands where it is used, in a line that has the observer.
_APART = re.compile(r"\{#.*?#\}|\{% macro .*?\{% endmacro %\}", re.DOTALL)
_TAG_LINE = re.compile(r"^[ \t]*\{%.*?%\}[ \t]*\n", re.MULTILINE)
_TAG = re.compile(r"\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
# A row of a table is one block, and so is a term with what is said of it.
_ELEMENT = re.compile(r"<(?:p|li|tr|dt|h[1-6]|caption|figcaption)\b[^>]*>")
_INLINE = re.compile(r"<[^>]*>")


def paragraphs(text: str) -> Iterator[str]:
    """Paragraphs, list items and rows of a Markdown page, each on one line; a row with what introduces its table."""
    introduction = ""
    for block in map(" ".join, map(str.split, _BLOCK.split(_CODE.sub("\n\n", text)))):
        if block.startswith("|"):
            yield f"{introduction} {block}"
        else:
            introduction = block
            yield block


def elements(template: str) -> Iterator[str]:
    """What stands in one element of a page, or in one paragraph of a Markdown template, on one line."""
    text = _TAG.sub(" ", _TAG_LINE.sub("", _APART.sub("", template)))
    for element in _ELEMENT.split(text):
        yield from paragraphs(_INLINE.sub("", element))


def unobserved(blocks: Iterator[str]) -> list[str]:
    """The blocks with a claim for which no observer is named."""
    return [block for block in blocks if ABSOLUTE.search(block) and not OBSERVER.search(block)]


@pytest.mark.parametrize("page", PAGES)
def test_every_absolute_claim_of_a_page_names_its_observer(page: str) -> None:
    assert unobserved(paragraphs((ROOT / page).read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_absolute_claim_of_a_report_names_its_observer(template: Path) -> None:
    assert unobserved(elements(template.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("text", [*KINDS, "perfect"])
def test_what_a_guarantee_means_is_said_for_an_observer_and_what_they_know(text: str) -> None:
    assert re.search(r"\bobserver who knows\b", parse_guarantee(text).meaning)


@pytest.mark.parametrize(
    "claim",
    [
        "A published record tells little about income.",
        "It reveals nothing about the secret.",
        "Nobody can find out who it is.",
        "It cannot be told whose record it is.",
        "A record changes the belief in an income by at most a factor 2.72.",
        "The odds change by no more than a stated factor.",
        "funnel guarantees that no income is learnt.",
        "Nothing is learnt about the secret.",
        "The bound holds for everybody.",
        "The odds change little, whatever they believed about that person before.",
        "No attack passes the proven limit.",
    ],
)
def test_a_claim_without_an_observer_is_found(claim: str) -> None:
    assert unobserved(paragraphs(f"# A page\n\nAn observer sees it.\n\n{claim}\n")) == [claim]
    assert unobserved(elements(f"<p>An observer sees it.</p><p>So: <strong>{claim}</strong></p>")) == [f"So: {claim}"]
    assert unobserved(paragraphs(f"For an observer who knows the frequencies: {claim}")) == []


def furthest(channel: np.ndarray, belief: np.ndarray) -> float:
    """By how much an output changes the log odds of two secrets at most, for beliefs (2, a) about secret and input."""
    after = channel @ belief.T
    low, high = after[after.any(axis=1)].T
    before = belief.sum(axis=1)
    with np.errstate(divide="ignore"):
        return float(np.abs(np.log(high) - np.log(low) - np.log(before[1] / before[0])).max())


def test_ldp_is_for_any_prior_of_the_secret_and_not_for_one_who_knows_how_a_group_differs() -> None:
    # In one group the secret goes with the input, in the other against it; in both together hardly at all.
    groups = [[[90, 10], [10, 90]], [[20, 80], [80, 20]]]
    joint = funnel.Joint.from_counts(np.sum(groups, axis=0).tolist())
    channel = funnel.optimal(joint, funnel.LDP(0.5)).protocol.matrix
    given = joint.p / joint.p.sum(axis=1, keepdims=True)
    for prior in (0.01, 0.3, 0.5, 0.9):
        assert furthest(channel, given * np.array([[1 - prior], [prior]])) <= 0.5 + 1e-9
    assert furthest(channel, np.array(groups[0]) / 200) > 1.0


def test_who_knows_all_other_columns_may_know_anything_else_under_attribute() -> None:
    people = pd.DataFrame(
        [(income, school) for income in ("low", "high") for school in ("a", "b") for _ in range(250)],
        columns=["income", "school"],
    )
    joint = funnel.Joint.from_table(people, secret=["income"], inputs=["income", "school"])
    protocol = funnel.optimal(joint, funnel.Attribute(0.5), utility="unchanged", weights="share", gap=1e-3).protocol

    def believed(low: dict[str, float], high: dict[str, float]) -> np.ndarray:
        """The belief in each secret and input of an observer who gives each school these chances."""
        chances = {"low": low, "high": high}
        symbols = protocol.inputs.symbols
        return np.array([[chances[s].get(u, 0.0) * (s == one) for s, u in symbols] for one in ("low", "high")])

    # School and job are known: whatever the job says of the income, the odds change by the bound at most.
    for school in ("a", "b"):
        for prior in (0.01, 0.5, 0.97):
            assert furthest(protocol.matrix, believed({school: 1 - prior}, {school: prior})) <= 0.5 + 1e-9
    # The job alone is known, and in it schools go with incomes.
    assert furthest(protocol.matrix, believed({"a": 0.5}, {"b": 0.5})) > 1.0
