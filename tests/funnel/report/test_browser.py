"""The report of the real data in a real browser: offline, every section, print on A4, and an empty console."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from funnel import LIP, Joint, plan
from funnel.audit import audit_release
from funnel.planning import choose
from funnel.report import MechanismNote, PlanLine, ReportContent, SourceNote, public_report, render_public
from funnel.sampling.draw import ChannelSampler
from funnel.sampling.words import WordStream

CHROMIUM = Path("/usr/bin/chromium")
ADULT = Path(__file__).parents[3] / "data" / "adult.parquet"
SIZE = (1200, 2400)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
)


@dataclass(frozen=True)
class Visit:
    """What the browser made of a page: its document, its console, and where its picture and its print are."""

    document: str
    console: list[str]
    picture: Path
    printed: Path


def _visit(page: Path, folder: Path) -> Visit:
    if not CHROMIUM.exists():
        pytest.fail(f"there is no browser {CHROMIUM}: run scripts/install-system-packages.sh, which installs it")
    picture, printed = folder / "page.png", folder / "page.pdf"
    command = [
        str(CHROMIUM),
        *FLAGS,
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={SIZE[0]},{SIZE[1]}",
        f"--screenshot={picture}",
        f"--print-to-pdf={printed}",
        "--no-pdf-header-footer",
        "--dump-dom",
        page.as_uri(),
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    console = [line for line in result.stderr.splitlines() if ":CONSOLE" in line or "net_error" in line]
    return Visit(result.stdout, console, picture, printed)


@pytest.fixture(scope="module")
def adult(make_content: Callable[..., ReportContent]) -> ReportContent:
    """The report of the real data, drawn by the real sampler."""
    joint = Joint.from_table(ADULT, secret=["marital-status"], inputs=["education"])
    guarantee = LIP(1.0)
    rows = plan(joint, guarantee, mechanisms=["optimal", "grr", "identity"])
    protocol = choose(rows).protocol
    assert protocol is not None
    codes = np.repeat(np.arange(len(joint.inputs)), joint.counts.sum(axis=0))
    words = WordStream.with_known_key_for_tests(bytes(range(32)), bytes(16)).words(len(codes))
    pairs = np.zeros((len(joint.inputs) + 1, len(protocol.outputs)), dtype=np.int64)
    np.add.at(pairs, (codes, ChannelSampler.from_protocol(protocol).draw(codes, words)), 1)
    return make_content(
        joint,
        protocol,
        guarantee,
        findings=audit_release(joint, protocol, guarantee, pairs),
        title="Education of adults in the United States, 1994",
        source=SourceNote("adult.parquet"),
        mechanism=MechanismNote.of("optimal"),
        plan=tuple(PlanLine.of(row) for row in rows),
    )


@pytest.fixture(scope="module")
def visit(adult: ReportContent, tmp_path_factory: pytest.TempPathFactory) -> Visit:
    folder = tmp_path_factory.mktemp("report")
    page = folder / "report.html"
    page.write_text(render_public(public_report(adult)), encoding="utf-8")
    return _visit(page, folder)


def test_the_browser_shows_every_section_and_complains_of_nothing(visit: Visit, adult: ReportContent) -> None:
    sections = re.findall(r'<section id="(\w+)"', visit.document)
    assert sections == ["summary", "person", "utility", "protocol", "leakage", "draws", "verdict", "provenance"]
    assert visit.document.count("</svg>") == 3
    for label in (*adult.joint.secret.labels, *adult.protocol.outputs.labels):
        assert f">{label}</bdi>" in visit.document
    assert "48,842 records" in visit.document
    assert visit.console == []


def test_the_picture_is_of_a_page_and_not_of_nothing(visit: Visit) -> None:
    with Image.open(visit.picture) as opened:
        picture = np.asarray(opened.convert("RGB")).astype(int)
    assert picture.shape[:2] == (SIZE[1], SIZE[0])
    shades = picture.sum(axis=2)
    paper, dark = (shades > 720).mean(), (shades < 250).mean()
    assert 0.5 < paper < 0.99
    assert dark > 0.005
    # From the title at the top to the end of the first screen, there is writing at every height.
    for band in np.array_split(shades, 8):
        assert (band < 400).any()
    # The verdict's green and the figures' blue have come through the style sheet.
    red, green, blue = (picture[..., channel] for channel in range(3))
    assert ((green > red + 40) & (green > blue + 20) & (green < 150)).sum() > 500
    assert ((blue > red + 60) & (blue < 200)).sum() > 5000


def test_it_prints_on_a4(visit: Visit) -> None:
    printed = visit.printed.read_bytes()
    assert printed.startswith(b"%PDF-")
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", printed))
    sizes = {tuple(float(v) for v in box.split()[2:]) for box in re.findall(rb"/MediaBox\s*\[([^\]]+)\]", printed)}
    assert 4 <= pages <= 12
    for width, height in sizes:
        assert (width, height) == pytest.approx((595.28, 841.89), abs=1)


def test_the_policy_of_the_page_stops_whatever_is_smuggled_in(adult: ReportContent, tmp_path: Path) -> None:
    smuggled = '<img src="https://example.org/pixel.png"><script>document.title = "owned"</script></header>'
    page = tmp_path / "smuggled.html"
    page.write_text(render_public(public_report(adult)).replace("</header>", smuggled), encoding="utf-8")
    found = _visit(page, tmp_path)
    assert len([line for line in found.console if "Content Security Policy" in line]) == 2
    assert "<title>owned" not in found.document
