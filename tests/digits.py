"""The numbers of a public document, found in its bytes by rules of their own, each with the digits it is told to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import Any

MOST_DIGITS = 4
# Weights of protocols on a grid are multiples of 2^(63-28), see `funnel.release.coarse`.
GRID = 2**35
# A whole number of more digits than this is a weight, not a count of records or bytes.
_LONGEST_COUNT = 9
# No part of an identifier, a version, a digest, a time or an address.
_DECIMAL = re.compile(r"(?<![\w.,:/#%-])[-+−÷×]?(\d[\d,]*\.\d+)(?:e([-+]?\d+))?(?![\w]*\.\d|\w*[-:/])")
_WHOLE = re.compile(r"(?<![\w.#&-])\d{10,}(?![\w.-])")


def too_fine(name: str, content: bytes) -> list[str]:
    """Numbers of a public document that are told to more digits than any public figure has."""
    text = content.decode()
    if name == "estimator.csv":
        # A function of protocol.json, whose digits are counted there; tests/funnel/release/test_estimator_table.py.
        return []
    if name.endswith(".csv"):
        # Of the protocol: probabilities are multiples of 2^-28, as the weights are.
        cells = [line.rpartition(",")[2] for line in text.splitlines()[1:]]
        return [cell for cell in cells if float(cell) * 2**28 % 1]
    if name.endswith((".json", ".jsonld")):
        content = json.loads(text)
        # How far weights are off is in whole steps of their grid.
        rounded = (content.pop("rounded") or 0.0) if isinstance(content, dict) and "rounded" in content else 0.0
        off = [str(rounded)] if rounded * 2**28 % 1 else []
        return off + [found for value in leaves(content) for found in _of_value(value)]
    # Pictures within the page are of the protocol, and their bytes no figures; sizes in the style are no figures.
    text = re.sub(r"base64,[^\"]*", "", re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL))
    return [*_of_text(unescape(text)), *_of_drawings(text)]


def leaves(value: Any) -> Iterator[Any]:
    """Every number and text of a JSON value, names included."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from leaves(part)
    elif isinstance(value, list):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def digits(text: str) -> int:
    """Significant digits of a decimal number, without zeros at either end."""
    return len(text.replace(",", "").replace(".", "").strip("0"))


def _of_value(value: Any) -> list[str]:
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, float):
        return [str(value)] if digits(str(value).partition("e")[0]) > MOST_DIGITS else []
    if isinstance(value, int):
        return [str(value)] if len(str(abs(value))) > _LONGEST_COUNT else []
    return _of_text(value)


def _of_text(text: str) -> list[str]:
    fine = [found[0] for found in _DECIMAL.finditer(text) if digits(found[1]) > MOST_DIGITS]
    return fine + [found[0] for found in _WHOLE.finditer(text) if int(found[0]) % GRID]


def _of_drawings(page: str) -> list[str]:
    """Places in charts that are no whole pixels; shapes that are defined once have tenths."""
    fine = []
    for drawing in re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL):
        shapes = "".join(re.findall(r"<defs>.*?</defs>", drawing, flags=re.DOTALL))
        drawn = re.sub(r"<defs>.*?</defs>", "", drawing, flags=re.DOTALL)
        for part, allowed in ((shapes, r"-?\d+(\.\d)?"), (drawn, r"-?\d+")):
            for places in re.findall(
                r"\s(?:d|x|y|x1|x2|y1|y2|cx|cy|r|width|height|points|transform)=\"([^\"]*)\"", part
            ):
                numbers = re.findall(r"-?\d[\d.]*(?:e-?\d+)?", places)
                fine += [number for number in numbers if not re.fullmatch(allowed, number)]
    return fine
