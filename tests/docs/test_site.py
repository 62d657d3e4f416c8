"""The site of the documentation: built without a warning, whole, and read from a folder without asking anybody."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

import funnel
from funnel.cli import main
from tests.browser import Browser, browser

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as ``make docs`` builds it: mkdocs.yml makes errors of warnings."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    # No package index and no other place could be reached: a proxy that nobody answers at.
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "--quiet", "build", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, **nowhere, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return folder


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def navigation(site: Path) -> set[Path]:
    """Every page that is reached from the first one by links of the navigation, page after page."""
    first = str((site / "index.html").resolve())
    found, waiting = {first}, [first]
    while waiting:
        page = waiting.pop()
        # Of the tabs above and the list beside, which shows what is below the tab that is open.
        for link in set(re.findall(r'<a href="([^"#]+\.html)" class="md-(?:nav|tabs)__link', text_of(Path(page)))):
            # Tens of thousands of links: as texts, without asking the disk of each.
            target = os.path.normpath(f"{page.rpartition('/')[0]}/{unquote(link)}")
            if target not in found:
                found.add(target)
                waiting.append(target)
    return set(map(Path, found))


def test_every_page_is_in_the_navigation(site: Path) -> None:
    pages = {path.resolve() for path in site.rglob("*.html")} - {(site / "404.html").resolve()}
    assert navigation(site) == pages
    for page in (ROOT / "docs").rglob("*.md"):
        assert site / page.relative_to(ROOT / "docs").with_suffix(".html") in pages


def test_every_public_name_has_its_place_in_the_reference(site: Path) -> None:
    reference = "".join(text_of(page) for page in (site / "reference" / "python").glob("*.html"))
    for name in funnel._HOMES:
        assert f'id="funnel.{funnel._HOMES[name]}.{name}"' in reference, name
    for name in (*(f"measures.{name}" for name in funnel.measures.__all__), "mechanisms.names", "errors.SpecError"):
        assert re.search(rf'id="funnel\.{name}"|id="funnel\.measures\.\w+\.{name.partition(".")[2]}"', reference), name


def test_every_command_and_every_setting_is_in_the_reference(site: Path) -> None:
    commands = text_of(site / "reference" / "command.html")
    for name in main.list_commands(None):  # type: ignore[arg-type]
        assert f'id="funnel-{name}"' in commands, name
    settings = text_of(site / "reference" / "spec.html")
    for name in (
        "record_secret",
        "missing_label",
        "time_limit",
        "weights",
        "minimum_cell",
        "budget_fraction",
        "contact_email",
        "one_of",
    ):
        assert f"<td><code>{name}</code></td>" in settings, name
    # No setting without a word on what it does.
    assert "<td></td>\n</tr>" not in settings


def test_every_figure_is_in_the_gallery() -> None:
    gallery = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    figures = [*(ROOT / "docs").glob("*.svg"), *(ROOT / "docs" / "pictures").glob("*.*")]
    assert len(figures) > 10
    for figure in figures:
        assert f"]({figure.relative_to(ROOT / 'docs')})" in gallery, figure.name


def test_nothing_is_asked_of_anybody_while_it_is_read(site: Path, reader: Browser) -> None:
    """Search and navigation work from the folder, and every address that was asked for is a file of it."""
    reader.asked.clear()
    reader.open((site / "index.html").as_uri())
    reader.run("document.querySelector('[data-md-component=search-query]').focus()")
    reader.run(
        "(() => { const box = document.querySelector('[data-md-component=search-query]');"
        "box.value = 'pointwise maximal leakage'; box.dispatchEvent(new Event('keyup')); })()"
    )
    found = reader.until(
        "document.querySelectorAll('.md-search-result__link').length > 3 &&"
        "[...document.querySelectorAll('.md-search-result__link')].map(link => link.href)"
    )
    assert any("/guarantees.html" in link for link in found), found
    assert all(
        Path(unquote(link.removeprefix("file://").partition("?")[0].partition("#")[0])).is_file() for link in found
    )
    reader.run("document.querySelector('.md-search-result__link').click()")
    reader.until("!location.pathname.endsWith('/index.html') && document.readyState === 'complete'")
    for name in ("Method", "Reference", "Guides"):
        reader.run(
            f"[...document.querySelectorAll('.md-tabs__link')].find(tab => tab.textContent.trim() === '{name}').click()"
        )
        reader.until(
            f"document.querySelector('.md-tabs__item--active')?.textContent.trim() === '{name}' "
            "&& document.readyState === 'complete'"
        )
    assert len(reader.asked) > 10
    strangers = [address for address in reader.asked if not address.startswith((site.as_uri(), "data:", "about:"))]
    assert strangers == []


def test_what_a_page_asks_of_strangers_is_seen(tmp_path: Path, reader: Browser) -> None:
    """So that an empty list says something."""
    page = tmp_path / "page.html"
    page.write_text('<img src="https://funnel.invalid/pixel.png"><p>here</p>', encoding="utf-8")
    reader.asked.clear()
    reader.open(page.as_uri())
    assert "https://funnel.invalid/pixel.png" in reader.asked


def test_no_page_is_wider_than_a_phone(site: Path, reader: Browser) -> None:
    reader.order("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    for name in (
        "index",
        "tutorial",
        "method",
        "gallery",
        "guides/steward",
        "reference/spec",
        "reference/python/joint",
    ):
        reader.open((site / f"{name}.html").as_uri())
        assert reader.run("document.scrollingElement.scrollWidth") <= 390, name
    reader.order("Emulation.clearDeviceMetricsOverride")
