"""Pictures of both reports of the embedded sample, on a desk and on a phone, for docs/pictures: `make pictures`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = "/usr/bin/chromium"
DARK = "--blink-settings=preferredColorScheme=0"
# Name, page, size of the window, dark.
PICTURES = (
    ("public-desktop", "report.html", (1100, 1500), False),
    ("public-phone", "report.html", (390, 1500), False),
    ("public-dark", "report.html", (390, 1500), True),
    ("internal-desktop", "audit/report.html", (1100, 1500), False),
    ("internal-phone", "audit/report.html", (390, 1500), False),
)
_COLOURS = 64


def make(target: Path) -> None:
    """Release the sample into a temporary folder and take every picture."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        text = (ROOT / "data" / "adult.toml").read_text(encoding="utf-8")
        for before, after in (
            ('"adult.parquet"', f'"{ROOT / "data" / "adult.parquet"}"'),
            ('"../releases"', '"releases"'),
            ('"../.funnel"', '"work"'),
        ):
            text = text.replace(before, after)
        spec = place / "adult.toml"
        spec.write_text(text, encoding="utf-8")
        subprocess.run([str(Path(sys.executable).with_name("funnel")), "release", str(spec)], check=True)
        release = (place / "releases" / "adult-education" / "latest").resolve()
        for title, page, (width, height), dark in PICTURES:
            taken = place / "taken.png"
            command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            command += [DARK] if dark else []
            command += [f"--user-data-dir={place / 'profile'}", f"--window-size={width},{height}"]
            command += [f"--screenshot={taken}", (release / page).as_uri()]
            subprocess.run(command, check=True, capture_output=True)
            with Image.open(taken) as picture:
                small = picture.convert("RGB").quantize(_COLOURS)
                small.save(target / f"{title}.png", optimize=True)
            print(f"{title}.png: {(target / f'{title}.png').stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    make(ROOT / "docs" / "pictures")
