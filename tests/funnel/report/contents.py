"""Contents to render and a strict reader of the rendered page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, ClassVar, Self

import numpy as np

from funnel import LIP, Alphabet, Guarantee, Joint, Protocol
from funnel.findings import Audited, DrawnRelease, audit_release
from funnel.guarantees.base import Level
from funnel.joint import IntArray
from funnel.mechanisms import mechanism
from funnel.protocol import DENOMINATOR, WeightArray
from funnel.release.public_report import Contact, Judged, Licence, Mechanism, Reference
from funnel.report.content import ReportContent, SourceNote
from funnel.report.public import public_report, render_public
from funnel.rounding import integer_weights, marginal_weights
from tests.public import UNPROTECTED, counted

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


def expected_pairs(joint: Joint, protocol: Protocol, outside: int = 0) -> IntArray:
    """Counts of (input, output) as near as whole numbers come to what the protocol draws on average."""
    totals = [*joint.read_by(protocol.inputs.columns).counts.sum(axis=0).tolist(), outside]
    columns = np.column_stack([protocol.weights, protocol.marginal]).T.tolist()
    pairs = np.zeros((len(totals), len(protocol.outputs)), dtype=np.int64)
    for x, (total, weights) in enumerate(zip(totals, columns, strict=True)):
        pairs[x] = [total * weight // DENOMINATOR for weight in weights]
        pairs[x, int(np.argmax(weights))] += total - pairs[x].sum()
    return pairs


@dataclass(frozen=True)
class Novel(Guarantee):
    """A guarantee that the report has no words for, as one added later would be."""

    name: ClassVar[str] = "novel"
    title: ClassVar[str] = "novel protection"

    epsilon: float

    @property
    def budget(self) -> float:
        return self.epsilon

    def with_budget(self, budget: float) -> Self:
        return type(self)(budget)

    def level_for(self, joint: Joint, weights: WeightArray) -> Level:
        return LIP(self.epsilon).level_for(joint, weights)


NOVEL = Novel(1.0)


def make_protocol(joint: Joint, matrix: Any, outputs: Iterable[Any], guarantee: Guarantee) -> Protocol:
    """The protocol of a float matrix (b, a) over the inputs of a joint distribution."""
    weights = integer_weights(np.asarray(matrix, dtype=np.float64))
    labels = Alphabet.of(outputs, len(weights), "Y")
    return Protocol(weights, marginal_weights(joint, weights), joint.inputs, labels, "optimal", str(guarantee))


def make_content(
    joint: Joint, protocol: Protocol, guarantee: Guarantee, outside: int = 0, **changes: Any
) -> ReportContent:
    """A content around a joint distribution, a protocol and a bound; anything else can be overridden."""
    pairs = changes.pop("pairs", None)
    pairs = expected_pairs(joint, protocol, outside) if pairs is None else pairs
    if "audited" not in changes:
        changes["audited"] = Audited.of(counted(joint), DrawnRelease(protocol, guarantee, pairs))
    if "findings" not in changes:
        # Of counts that are public as they are, both say the same of the distribution: it is audited once.
        changes["findings"] = audit_release(joint, DrawnRelease(protocol, guarantee, pairs), audited=changes["audited"])
    settings: dict[str, Any] = {
        "name": "small-release",
        "title": "A small release",
        "description": "First paragraph.\n\nSecond paragraph.",
        "version": "1.2.0",
        "created": "2025-03-04T05:06:07Z",
        "contact": Contact(name="Open data team", email="data@example.org"),
        "licence": Licence(name="CC-BY-4.0", url="https://creativecommons.org/licenses/by/4.0/"),
        "source": SourceNote("people.csv", 3, (Reference(title="A register", version="2024"),)),
        "mechanism": Mechanism.like(mechanism("optimal")),
        "joint": joint,
        "protocol": protocol,
        "guarantee": guarantee,
        "protection": UNPROTECTED,
        "random_source": "AES-256 in counter mode",
        "software": "funnel 0.1.0",
        "judged": (Judged(name="row_count", description="as many rows as the snapshot"),),
    }
    return ReportContent(**{**settings, **changes})


@dataclass
class Page:
    """What a strict reading of a page found."""

    text: str = ""
    tags: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)
    sections: dict[str, str] = field(default_factory=dict)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()
        self.open: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        assert len(found) == len(attrs), f"an attribute of <{tag}> is given twice"
        self.page.tags.append(tag)
        self.page.attributes += [(tag, name, value or "") for name, value in attrs]
        if "id" in found:
            self.page.ids.append(found["id"] or "")
        if tag not in VOID:
            self.open.append((tag, found.get("id")))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1][0] == tag, f"</{tag}> closes <{self.open[-1][0]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        inside = [tag for tag, _ in self.open]
        if "style" in inside:
            return
        self.page.text += data
        for tag, name in self.open:
            if tag == "section" and name:
                self.page.sections[name] = self.page.sections.get(name, "") + data


def read_page(html: str) -> Page:
    """A page: every tag must be closed by its own end tag, in order, and every identifier be unique."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open, f"left open: {reader.open}"
    assert len(set(reader.page.ids)) == len(reader.page.ids)
    for name, text in reader.page.sections.items():
        reader.page.sections[name] = " ".join(text.split())
    return reader.page


def public_page(content: ReportContent) -> Page:
    """The page of the public report."""
    return read_page(render_public(public_report(content)))
