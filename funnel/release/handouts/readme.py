"""README.md: what a release is, what is promised, how to read its values, and how to estimate from them by hand."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from funnel.certificate import Certificate
from funnel.release.handouts.channel_tables import likely_pairs
from funnel.release.handouts.citation import publisher
from funnel.release.privacy_block import KEY
from funnel.release.public.rounding import rounded_up
from funnel.release.published_values import published_values
from funnel.settings.count_protection import PROTECTIONS

if TYPE_CHECKING:
    from jinja2 import Template

# What Markdown, or the HTML in it, would take for more than a letter.
_MARKS = re.compile(r"([\\`*_\[\]<>#|~&!])")
# Blocks of code, and what blank lines leave apart.
_PARTS = re.compile(r"```.+?```|\S.*?(?=\n{2,}|\s*\Z)", re.DOTALL)
# So many records of one true value are followed in the example.
_EXAMPLE = 10_000
CHANNEL, ESTIMATOR = "protocol.csv", "estimator.csv"
_KEPT_OF = {
    "information": "the information in the published columns",
    "variance": "the variance of the numbers that published values stand for",
    "estimation": "what the unchanged records would tell estimates",
}
# Of epsilon, where a part went into learning which values there are: what counts are left with.
_AFTER_LEARNING = 0.75
_DIGITS = 2
# So much rounding moves shares and r.
_ALMOST = 1e-9
# The parts of epsilon that counts and means of a later version have.
_COUNTS_PART, _MEANS_PART = 1 / 2, 1 / 4


def readme(package: Mapping[str, Any], protocol: Mapping[str, Any]) -> str:
    """README.md, from the data package and the protocol; a function of these two documents alone.

    Parameters
    ----------
    package, protocol : JSON objects
        ``datapackage.json`` and ``protocol.json``.
    """
    privacy, (licence, *_) = package[KEY], package["licenses"]
    behind = privacy["frequencies"]
    kind, later = PROTECTIONS[behind["protection"]], (privacy["versions"] or 1) > 1
    reads_sets = published_values(protocol["mechanism"]).estimator
    text = _template().render(
        package=package,
        protocol=protocol,
        privacy=privacy,
        licence=licence,
        contact=_contact(publisher(package)),
        is_random=any(before == x for (before, *_), (x, *_) in pairwise(likely_pairs(protocol))),
        alike=_alike(protocol["outputs"], privacy["published"]),
        meaning=plain(privacy["meaning"]),
        near_best=_near_best(privacy["certificate"]),
        kind=kind,
        kind_meaning=behind["meaning"],
        later=later,
        left=None if reads_sets or not kind.is_noisy else _left(behind, protocol, later),
        by_class=not reads_sets and protocol["outputs"]["columns"] != privacy["published"],
        example=_example(protocol) if reads_sets else None,
        ratios=() if reads_sets else tuple(_ratios(protocol)),
        csv=has_csv(package),
        paths=[resource["path"] for resource in package["resources"]],
    )
    return "\n\n".join(map(_joined, _PARTS.findall(text))) + "\n"


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("funnel.release", "handouts"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    filters: dict[str, Any] = {
        "plain": plain,
        "names": _listed,
        "texts": lambda symbol: ", ".join(f'"{plain(value)}"' for value in symbol),
        "address": lambda path: None if path is None else f"<{path.replace('<', '%3C').replace('>', '%3E')}>",
        "in_brackets": _in_brackets,
    }
    environment.filters.update(filters)
    return environment.get_template("readme.md.jinja")


def _joined(part: str) -> str:
    """A paragraph of the template as one line; rows of tables, numbered steps and code keep theirs."""
    return part if part.startswith("```") else re.sub(r"\n(?!\||[0-9]+\. )", " ", part)


def has_csv(package: Mapping[str, Any]) -> bool:
    """Whether the release has its records for spreadsheets, too."""
    return any(resource["path"] == "data/records.csv" for resource in package["resources"])


def plain(text: str) -> str:
    """Text of a publisher as Markdown that shows it as it is, on one line."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def _listed(columns: Sequence[str]) -> str:
    *rest, last = [f'"{plain(column)}"' for column in columns]
    return f"{', '.join(rest)} and {last}" if rest else last


def _in_brackets(text: str | None) -> str:
    return f" ({text})" if text else ""


def _contact(contact: Mapping[str, str]) -> str:
    name, address = contact.get("title"), plain(contact["email"]) if "email" in contact else None
    who = f"{plain(name)}{_in_brackets(address)}" if name else address
    return f" Contact: {who}." if contact else ""


def _alike(outputs: Mapping[str, Any], published: Sequence[str]) -> list[tuple[str, str]]:
    """Published columns with one value in all records, and the value; none where outputs are classes of records."""
    values = zip(outputs["columns"], zip(*outputs["symbols"], strict=True), strict=True)
    return [(column, of[0]) for column, of in values if column in published and len(set(of)) == 1]


def _near_best(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "By how much another protocol could be better is not known."
    sentence = Certificate(found["of"], found["gap"], found["weights"]).sentence(found["share"])
    if found["of"] != "kept":
        return f"Under the same promise, {sentence}."
    kept = f"Of {_KEPT_OF[found['utility']]} the protocol keeps {100 * found['share']:.1f}%"
    return f"{kept}: under the same promise, {sentence}."


def _example(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """The commonest true value, and what is published most often for it."""
    shares = protocol["prior"]["probabilities"]
    common = protocol["prior"]["symbols"][shares.index(max(shares))]
    places = [protocol["inputs"]["columns"].index(column) for column in protocol["prior"]["columns"]]
    symbols = protocol["inputs"]["symbols"]
    x = next(x for x, symbol in enumerate(symbols) if [symbol[place] for place in places] == list(common))
    y, probability = max(
        ((y, probability) for one, y, probability in likely_pairs(protocol) if one == x),
        key=lambda pair: (pair[1], -pair[0]),
    )
    about = round(probability * _EXAMPLE)
    return {"true": symbols[x], "about": about, "published": protocol["outputs"]["symbols"][y]}


def _ratios(protocol: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Columns of published values, with the least and the largest r of the share of one value by random changes alone.

    Of a column with one value, which has none, both are 0.
    """
    published, pairs = protocol["outputs"], list(likely_pairs(protocol))
    shares = np.array(protocol["prior"]["probabilities"])
    for j, column in enumerate(published["columns"]):
        place = {value: k for k, value in enumerate(dict.fromkeys(symbol[j] for symbol in published["symbols"]))}
        of_output = [place[symbol[j]] for symbol in published["symbols"]]
        becomes = np.zeros((len(shares), len(place)))
        for x, y, probability in pairs:
            becomes[x, of_output[y]] += probability
        common, changes = (shares @ part / shares.sum() for part in (becomes, becomes * (1 - becomes)))
        there = (common > _ALMOST) & (common < 1 - _ALMOST)
        found = changes[there] / (common * (1 - common))[there] if there.any() else np.zeros(1)
        yield column, *(f"{round(float(r) + _ALMOST, 2):.2f}" for r in (found.min(), found.max()))


def _left(behind: Mapping[str, Any], protocol: Mapping[str, Any], later: bool) -> dict[str, float]:
    """What is left of the noise, in records: by the mean and by each count of a later version, or by a count."""
    left = behind["epsilon"] * (_AFTER_LEARNING if behind["delta"] else 1.0)
    if later:
        found = {"mean": math.sqrt(2) / (left * _MEANS_PART), "count": _deviation(left * _COUNTS_PART)}
    else:
        squares = [0.0] * len(protocol["outputs"]["symbols"])
        for _, y, probability in likely_pairs(protocol):
            squares[y] += probability**2
        found = {"records": _deviation(left) * math.sqrt(max(squares))}
    return {name: rounded_up(records, _DIGITS) for name, records in found.items()}


def _deviation(epsilon: float) -> float:
    """Standard deviation of the noise of a count that has this part of epsilon."""
    return math.sqrt(2 * math.exp(-epsilon)) / -math.expm1(-epsilon)
