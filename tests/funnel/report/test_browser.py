"""The reports of the real data in a real browser: offline, accessible, on a phone, on A4, with an empty console."""

from __future__ import annotations

import html
import json
import re
import subprocess
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from funnel import LIP, Attribute, Joint, fit, plan
from funnel.mechanisms import mechanism
from funnel.planning import choose
from funnel.readers.formats import open_source
from funnel.release.comparison import comparison_document
from funnel.release.provenance import software
from funnel.release.public_report import Mechanism
from funnel.release.verdict import Judgement, Verdict
from funnel.report.annex import render_annex
from funnel.report.content import ReportContent, SourceNote
from funnel.report.internal import attacks, internal_report, render_internal
from funnel.report.internal.history import drift_figures
from funnel.report.public import public_report, render_public
from funnel.sampling.draw import ChannelSampler
from funnel.sampling.random_words import WordStream
from funnel.settings.protection_settings import FrequencySettings
from funnel.source.learning import learn_codings
from funnel.source.side_columns import read_side_columns
from funnel.spec import ReleaseSpec
from tests.funnel.report.contents import make_content
from tests.funnel.report.test_annex import documents_of, table_of
from tests.funnel.report.test_history import internal_of, of_the_same_people
from tests.funnel.report.test_html import SECTIONS

CHROMIUM = Path("/usr/bin/chromium")
DATA = Path(__file__).parents[3] / "data"
ADULT = DATA / "adult.parquet"
SIZE = (1200, 2400)
PHONE = (390, 844)
DARK = "--blink-settings=preferredColorScheme=0"
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
# Tables with a last cell that cannot be seen: beyond the edge of the window or of the box that scrolls it, scrolled to
# its end, or below the first cell, which stays.
LOST = """
const lost = [...document.querySelectorAll("table")].filter(table => {
  let box = table.parentElement;
  while (box && !["auto", "scroll"].includes(getComputedStyle(box).overflowX)) box = box.parentElement;
  if (box) box.scrollLeft = box.scrollWidth;
  const edge = box ? Math.min(innerWidth, box.getBoundingClientRect().right) : innerWidth;
  const cut = [...table.rows].some(row => {
    const first = row.cells[0], last = row.cells[row.cells.length - 1];
    const at = last.getBoundingClientRect(), stays = first.getBoundingClientRect();
    const below = first !== last && getComputedStyle(first).position === "sticky" && at.left < stays.right - 1;
    return at.width > 1 && (at.right > edge + 1 || below);
  });
  if (box) box.scrollLeft = 0;
  return cut;
}).map(table => table.outerHTML.slice(0, 80));
"""
# Everything that axe knows, best practices included; the result becomes the text of an element.
RULES = """
<script>%s</script>
<script>
%s
axe.run(document, {resultTypes: ["violations"]}).then(found => {
  const told = {
    violations: found.violations.map(rule => [rule.id, ...rule.nodes.map(node => node.html.slice(0, 200))]),
    passed: found.passes.length,
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    scrolled: document.scrollingElement.scrollWidth,
    width: innerWidth,
    lost: lost,
    cut: [...document.querySelectorAll("figure, .scroll:has(table.plan), .scroll:has(table.checks)")]
      .filter(box => box.scrollWidth > box.clientWidth).map(box => box.outerHTML.slice(0, 80)),
  };
  parent.postMessage(JSON.stringify(told), "*");
});
</script>
"""
TOLD = """
<script>
addEventListener("message", event => {
  const place = document.createElement("pre");
  place.id = "axe-found";
  place.textContent = event.data;
  document.body.append(place);
});
</script>
"""
# No window of the browser is as narrow as a phone, but a frame is.
FRAME = """<!DOCTYPE html><html lang="en"><head><meta name="color-scheme" content="light dark"></head><body>
%s<iframe src="judged.html" style="border: 0; color-scheme: light dark" width="%d" height="%d"></iframe>
</body></html>"""
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
def adult() -> ReportContent:
    """The report of the real data, drawn by the real sampler."""
    joint = Joint.from_table(ADULT, secret=["marital-status"], inputs=["education"])
    guarantee = LIP(1.0)
    rows = plan(joint, guarantee, mechanisms=["optimal", "grr", "identity"])
    protocol = choose(rows).protocol
    codes = np.repeat(np.arange(len(joint.inputs)), joint.counts.sum(axis=0))
    words = WordStream.with_known_key_for_tests(bytes(range(32)), bytes(16)).words(len(codes))
    pairs = np.zeros((len(joint.inputs) + 1, len(protocol.outputs)), dtype=np.int64)
    np.add.at(pairs, (codes, ChannelSampler.from_protocol(protocol).draw(codes, words)), 1)
    return make_content(
        joint,
        protocol,
        guarantee,
        pairs=pairs,
        title="Education of adults in the United States, 1994",
        source=SourceNote("adult.parquet"),
        mechanism=Mechanism.like(mechanism("optimal")),
        plan=comparison_document(rows).rows,
    )


@pytest.fixture(scope="module")
def visit(adult: ReportContent, tmp_path_factory: pytest.TempPathFactory) -> Visit:
    folder = tmp_path_factory.mktemp("report")
    page = folder / "report.html"
    page.write_text(render_public(public_report(adult)), encoding="utf-8")
    return _visit(page, folder)


@pytest.fixture(scope="module")
def internal(adult: ReportContent) -> str:
    """The internal page of the same release, with the attacks on it."""
    # The page is that of exact frequencies, of values as they are.
    as_they_are = {"categories": {}, "recode": {}, "frequencies": FrequencySettings(protection="none")}
    spec = ReleaseSpec.load(DATA / "adult-education.toml").model_copy(update=as_they_are)
    codings = learn_codings(spec, open_source(spec), lambda *told: None)
    known = read_side_columns(spec, adult.joint, codings)
    judged = Judgement(name="expect_rows", description="Every record is there.", passed=True, observed={"rows": 48842})
    document = internal_report(
        adult,
        Verdict.of((judged,)),
        comparison_document(plan(adult.joint, LIP(1.0), mechanisms=["agglomeration", "identity"])).rows,
        attacks.Attacks(
            attacks.alone(adult.joint, adult.protocol),
            attacks.with_side_columns(adult.joint, adult.protocol, known),
            (attacks.alone(adult.joint, adult.protocol),),
            attacks.learned(known, adult.joint, adult.protocol),
        ),
        software=software(),
    )
    return render_internal(document)


@pytest.fixture(scope="module")
def pages(adult: ReportContent, internal: str) -> dict[str, str]:
    """The pages that are looked at by rule, by name: also one of a protocol too large to be shown in full."""
    joint = Joint.from_counts(np.random.default_rng(3).integers(1, 50, size=(12, 60)))
    large = make_content(joint, fit("grr", joint, LIP(0.5)), LIP(0.5))
    joint = Joint.from_counts([[4000, 1000, 10, 200], [1000, 3000, 2500, 0], [300, 600, 200, 90]])
    secret_too = table_of(True)
    usual = make_content(secret_too, fit("invariant", secret_too, Attribute(1.0)), Attribute(1.0))
    same, figures = of_the_same_people(make_content(joint, fit("grr", joint, LIP(0.5)), LIP(0.5)))
    return {
        "public": render_public(public_report(adult)),
        "internal": internal,
        "large": render_public(public_report(large)),
        "together": render_public(public_report(same)),
        "annex": render_annex(*documents_of(usual)),
        "internal-together": render_internal(internal_of(same, history=figures, drift=drift_figures(same.findings))),
    }


def _judged(page: str, folder: Path, size: tuple[int, int], dark: bool) -> dict[str, Any]:
    """What the rules of accessible pages find in a page, and how wide it is."""
    script = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    assert POLICY.search(page)
    place, frame = folder / "judged.html", folder / "frame.html"
    narrow = size == PHONE
    scripts = (RULES if narrow else TOLD + RULES) % (script, LOST)
    # The policy of the page would stop the script that looks at it.
    place.write_text(POLICY.sub("", page).replace("</body>", scripts + "</body>"), encoding="utf-8")
    frame.write_text(FRAME % (TOLD, *size), encoding="utf-8")
    shade = [DARK] if dark else []
    size_flag = f"--window-size={size[0]},{size[1]}"
    command = [str(CHROMIUM), *FLAGS, *shade, size_flag, f"--user-data-dir={folder / 'profile'}"]
    # Virtual time: the page has as long as it needs, whatever the machine.
    command += ["--virtual-time-budget=60000", "--dump-dom", (frame if narrow else place).as_uri()]
    document = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r'<pre id="axe-found">(.*?)</pre>', document, flags=re.DOTALL)
    assert found is not None, "the rules did not come to an end"
    told: dict[str, Any] = json.loads(html.unescape(found[1]))
    return told


@pytest.mark.parametrize(
    ("name", "size", "dark"),
    [
        ("public", SIZE, False),
        ("internal", SIZE, True),
        ("internal", PHONE, False),
        ("large", PHONE, True),
        ("annex", SIZE, False),
        ("annex", PHONE, False),
        ("together", PHONE, True),
        ("internal-together", PHONE, False),
    ],
)
def test_no_rule_of_accessible_pages_is_broken_and_no_page_is_wider_than_its_window(
    name: str, size: tuple[int, int], dark: bool, pages: dict[str, str], tmp_path: Path
) -> None:
    told = _judged(pages[name], tmp_path, size, dark)
    assert told["violations"] == []
    assert told["passed"] > 20
    assert told["dark"] is dark
    assert told["width"] == size[0]
    assert told["scrolled"] <= told["width"]
    # Charts, and tables of words, are there in full without scrolling in their own box either.
    assert told["cut"] == []
    # All tables have their last column in the window, or scroll until it is.
    assert told["lost"] == []


def test_the_rules_find_what_is_wrong(pages: dict[str, str], tmp_path: Path) -> None:
    """So that an empty list says something: grey on grey, a picture without a text, and a line that does not fit."""
    wrong = '<p style="color:#999;background:#aaa;width:900px">pale</p><img src="data:,"></main>'
    wide = '<table><tr><th style="min-width:350px">first</th><td style="min-width:350px">last</td></tr></table>'
    covered = wide.replace('min-width:350px">first', 'min-width:350px;position:sticky;left:0">first')
    wrong = f'{wide}<div style="overflow-x:auto">{wide}</div><div style="overflow-x:auto">{covered}</div>{wrong}'
    told = _judged(pages["public"].replace("</main>", wrong), tmp_path, PHONE, False)
    assert {rule for rule, *_ in told["violations"]} >= {"color-contrast", "image-alt"}
    assert told["scrolled"] > told["width"]
    assert len(told["lost"]) == 2


def test_the_browser_shows_every_section_and_complains_of_nothing(visit: Visit, adult: ReportContent) -> None:
    sections = re.findall(r'<section id="(\w+)"', visit.document)
    assert sections == SECTIONS
    assert visit.document.count('class="chart"') == 1
    for label in (*adult.joint.secret.labels, *adult.protocol.outputs.labels):
        assert f">{label}</bdi>" in visit.document
    assert "48,842&nbsp;records" in visit.document
    assert visit.console == []


def test_the_internal_page_prints_on_a4_with_room_to_sign(internal: str, tmp_path: Path) -> None:
    page = tmp_path / "internal.html"
    page.write_text(internal, encoding="utf-8")
    found = _visit(page, tmp_path)
    assert found.console == []
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b(?!s)", found.printed.read_bytes())) <= 10
    for line in ("Name", "Date", "Signature"):
        assert f"<dt>{line}</dt><dd></dd>" in found.document


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
