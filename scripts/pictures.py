"""Pictures of the plan of the embedded sample, of reports of it and the wide one, of an unprepared table and a panel.

`make pictures` takes them. The panel is the one that FUNNEL_PANEL names; without it, one drawn like it
(``tests/waves.py``).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from PIL import Image, ImageChops

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.unprepared_tables import survey  # noqa: E402
from funnel.release.layout import find_release  # noqa: E402
from tests.waves import WAVES, wave  # noqa: E402

CHROMIUM = "/usr/bin/chromium"
DARK = "--blink-settings=preferredColorScheme=0"
DESK, PHONE = (1100, 1500), (390, 1500)
# Name, page, size of the window, dark, the one section that is shown besides the head.
SAMPLE = (
    ("public-desktop", "report.html", DESK, False, None),
    ("public-phone", "report.html", PHONE, False, None),
    ("public-dark", "report.html", PHONE, True, None),
    ("annex-desktop", "annex.html", (1100, 2400), False, None),
    ("annex-standards", "annex.html", (1100, 3600), False, "frameworks"),
    ("annex-phone", "annex.html", PHONE, False, None),
    ("internal-desktop", "internal", DESK, False, None),
    ("internal-phone", "internal", PHONE, False, None),
)
WIDE = (
    ("wide-desktop", "report.html", DESK, False, None),
    ("wide-phone", "report.html", PHONE, False, None),
    ("annex-wide", "annex.html", (1100, 2400), False, None),
)
UNPREPARED = (
    ("unprepared-desktop", "report.html", DESK, False, None),
    ("unprepared-phone", "report.html", PHONE, False, None),
)
PLAN = (("plan", "plan.html", (1100, 2900), False, None),)
PANEL = (
    ("panel-public", "report.html", DESK, False, "history"),
    ("panel-internal", "internal", (1100, 2600), False, "history"),
)
SPEC = """
name = "panel"
title = "Income and children, five waves of a panel"
secret = ["outwork"]
publish = ["income", "kids"]
record_key = ["id"]
guarantee = "lip:1.0"
frequencies.protection = "none"

[source]
path = "panel.parquet"

[history]
people = "same"

[output]
folder = "releases"
workspace = ".funnel"

[metadata]
licence = "CC-BY-4.0"
"""
_ONE = "<style>main > section:not(#{section}), nav {{ display: none }}</style></head>"
_COLOURS = 256


def make(target: Path) -> None:
    """Release the samples, the other tables, and the panel wave by wave, and take every picture."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        spec, page = _sample("adult", Path(name)), Path(name) / "plan.html"
        subprocess.run([str(_command()), "plan", str(spec), "--page", str(page)], check=True)
        _take(PLAN, page.parent, page.parent, target)
        _release(spec)
        _take(SAMPLE, (page.parent / "releases" / "adult-income" / "latest").resolve(), page.parent, target)
    with tempfile.TemporaryDirectory() as name:
        _release(_sample("adult-wide", Path(name)))
        _take(WIDE, (Path(name) / "releases" / "adult-wide" / "latest").resolve(), Path(name), target)
    unprepared(target)
    panel(target)


def unprepared(target: Path) -> None:
    """The pictures of a survey that nobody prepared, released by the spec that `funnel init` writes for it."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        survey().to_csv(place / "survey.csv", index=False)
        asked = ["--secret", "party", "--publish", "age_group,region,number_of_children"]
        subprocess.run([str(_command()), "init", "survey.csv", *asked], check=True, cwd=place)
        _release(place / "survey.toml")
        _take(UNPREPARED, (place / "releases" / "survey" / "latest").resolve(), place, target)


def _sample(name: str, place: Path) -> Path:
    """The spec of a sample, which writes into a folder."""
    text = (ROOT / "data" / f"{name}.toml").read_text(encoding="utf-8")
    for before, after in (
        ('"adult.parquet"', f'"{ROOT / "data" / "adult.parquet"}"'),
        ('"../releases"', '"releases"'),
        ('"../.funnel"', '".funnel"'),
    ):
        text = text.replace(before, after)
    spec = place / f"{name}.toml"
    spec.write_text(text, encoding="utf-8")
    return spec


def panel(target: Path) -> None:
    """The pictures of the fifth version of a panel: what all five tell together."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        spec = place / "panel.toml"
        spec.write_text(SPEC, encoding="utf-8")
        for year in WAVES:
            pq.write_table(wave(year), place / "panel.parquet")
            _release(spec)
        _take(PANEL, (place / "releases" / "panel" / "latest").resolve(), place, target)


def _release(spec: Path) -> None:
    subprocess.run([str(_command()), "release", str(spec)], check=True)


def _command() -> Path:
    return Path(sys.executable).with_name("funnel")


def _take(
    pictures: tuple[tuple[str, str, tuple[int, int], bool, str | None], ...], release: Path, place: Path, target: Path
) -> None:
    for title, name, (width, height), dark, section in pictures:
        taken = place / "taken.png"
        page = find_release(release).internal_report if name == "internal" else release / name
        if section is not None:
            text = page.read_text(encoding="utf-8").replace("</head>", _ONE.format(section=section))
            page = place / "page.html"
            page.write_text(text, encoding="utf-8")
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [DARK] if dark else []
        command += [f"--user-data-dir={place / 'profile'}", f"--window-size={width},{height}"]
        command += [f"--screenshot={taken}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True)
        with Image.open(taken) as picture:
            whole = picture.convert("RGB")
            small = (whole if section is None else _without_empty_end(whole)).quantize(_COLOURS)
            small.save(target / f"{title}.png", optimize=True)
        print(f"{title}.png: {(target / f'{title}.png').stat().st_size / 1024:.0f} KB")


def _without_empty_end(picture: Image.Image) -> Image.Image:
    """A picture up to the last line that is not all of the colour of its corner, and a little more."""
    paper = Image.new("RGB", picture.size, picture.getpixel((0, 0)))
    box = ImageChops.difference(picture, paper).getbbox()
    return picture if box is None else picture.crop((0, 0, picture.width, min(picture.height, box[3] + 40)))


if __name__ == "__main__":
    make(ROOT / "docs" / "pictures")
