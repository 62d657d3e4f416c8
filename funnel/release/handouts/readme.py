"""README.md: what a release is, what is promised, how to read its values, and how to estimate from them by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from funnel.certificate import Certificate
from funnel.release.handouts.channel_tables import likely_pairs
from funnel.release.handouts.citation import publisher
from funnel.release.handouts.plain_readme import counting
from funnel.release.privacy_block import KEY
from funnel.release.published_values import published_values
from funnel.settings.count_protection import PROTECTIONS

# What Markdown, or the HTML in it, would take for more than a letter.
_MARKS = re.compile(r"([\\`*_\[\]<>#|~&!])")
# So many records of one true value are followed in the example.
EXAMPLE = 10_000
CHANNEL, ESTIMATOR, CLASSES = "protocol.csv", "estimator.csv", "classes.json"
FILES = {
    "data/records.parquet": "the records",
    "data/records.csv": "the same for spreadsheets; datapackage.json says which values have an apostrophe before them",
    "data/numbers.parquet": "the records with a number for each, drawn within its interval; it is not the true one",
    "data/numbers.csv": "the same for spreadsheets",
    CHANNEL: "the probability of every published value for every true one",
    ESTIMATOR: "weights by which published shares add up to true ones",
    CLASSES: "the points of values that say which class a record is of",
    "protocol.json": "probabilities of published values as whole numbers, the bound, and what a published value tells",
    "frequencies.json": "the noisy counts that all of this is made from",
    "report.html": "what is promised, what an observer learns, and how well shares can be estimated: for reading",
    "annex.html": "what anonymisation opinions and standards ask, answered for this release: for officers",
    "report.json": "the figures of the report",
    "datapackage.json": "columns, values, digests and the promise, as a Data Package",
    "dcat.jsonld": "the entry of a data catalogue, in DCAT-AP",
    "CITATION.cff": "how to cite this release",
    "signature.json": "the digests of all these files, signed by the publisher",
}


_KEPT_OF = {
    "information": "the information in the published columns",
    "variance": "the variance of the numbers that published values stand for",
    "estimation": "what the unchanged records would tell estimates",
}
NO_SPLIT = (
    "Such a value is no answer that is split evenly: do not count it as the first value that it names, and do not "
    "share it out. Estimate."
)
STEPS = (
    "Give every true value the same share to begin with.",
    "For every published value add up, over the true values, share times probability: its expected share.",
    "For every true value add up, over the published values, published share times probability divided by "
    "expected share; multiply its share by that.",
    "Repeat 3 and 4 until the shares stand still in the digits that you need.",
)

_BY_WEIGHTS = """\
Or in one step: `estimator.csv` has weights for every true value that the records can tell. Its share is the sum, over \
its lines, of the weight times the published share. Such shares are right on average, and those of rare values may \
come out below zero. In Python:"""
_PANDAS = """\
```python
import pandas as pd

records = pd.read_csv("data/records.csv", dtype=str, keep_default_na=False)
weights = pd.read_csv("estimator.csv", dtype=str, keep_default_na=False)
seen = records.add_prefix("published ").value_counts(normalize=True).rename("seen").reset_index()
lines = weights.merge(seen)
true = [name for name in weights if name.startswith("true ")]
print((lines["weight"].astype(float) * lines["seen"]).groupby([lines[name] for name in true]).sum())
```"""
_R = """\
```r
read <- function(file) read.csv(file, check.names = FALSE, colClasses = "character", na.strings = character())
records <- read("data/records.csv")
weights <- read("estimator.csv")
seen <- prop.table(table(do.call(paste, c(unname(records), sep = "\\t"))))
published <- weights[startsWith(names(weights), "published ")]
share <- as.numeric(seen[do.call(paste, c(unname(published), sep = "\\t"))])
share[is.na(share)] <- 0
print(tapply(as.numeric(weights$weight) * share, weights[startsWith(names(weights), "true ")], sum))
```"""


def readme(package: Mapping[str, Any], protocol: Mapping[str, Any]) -> str:
    """The text of the file.

    Parameters
    ----------
    package, protocol : JSON object
        Content of ``datapackage.json`` and of ``protocol.json``.
    """
    parts = [f"# {plain(package['title'])}"]
    if package.get("description"):
        parts.append(plain(package["description"]))
    parts += [imprint(package), "## What this is", *promise(package[KEY], protocol)]
    if published_values(protocol["mechanism"]).estimator:
        parts += ["## How to read a value", *_reading()]
        parts += ["## How to estimate from it", *_estimating(protocol, has_csv(package))]
        left_out = {CLASSES}
    else:
        parts += ["## How to work with it", *counting(package[KEY], protocol)]
        by_class = protocol["outputs"]["columns"] != package[KEY]["published"]
        left_out = {ESTIMATOR} if by_class else {ESTIMATOR, CLASSES}
    if not has_csv(package):
        left_out |= {CHANNEL, ESTIMATOR}
    files = {path: what for path, what in FILES.items() if path not in left_out}
    parts += ["## Files", file_table(package, files)]
    return "\n\n".join(parts) + "\n"


def has_csv(package: Mapping[str, Any]) -> bool:
    """Whether a release has tables as csv too."""
    return any(resource["path"] == "data/records.csv" for resource in package["resources"])


def plain(text: str) -> str:
    """A text on one line of Markdown, in which nothing acts."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def imprint(package: Mapping[str, Any]) -> str:
    """Version, day, records, licence and contact."""
    (licence, *_), contact = package["licenses"], publisher(package)
    said = [
        f"Version {package['version']}, made on {package['created'][:10]}, {package[KEY]['records']:,} records.",
        f"Licence: {plain(licence['name'])}{_in_brackets(_address(licence))}.",
    ]
    if contact:
        name = contact.get("title")
        address = plain(contact["email"]) if "email" in contact else None
        who = f"{plain(name)}{_in_brackets(address)}" if name else address
        said.append(f"Contact: {who}.")
    return " ".join(said)


def _address(licence: Mapping[str, str]) -> str | None:
    """The address of a licence as a link of Markdown, in which no letter means anything else."""
    path = licence.get("path")
    return None if path is None else f"<{path.replace('<', '%3C').replace('>', '%3E')}>"


def _in_brackets(text: str | None) -> str:
    return f" ({text})" if text else ""


def promise(privacy: Mapping[str, Any], protocol: Mapping[str, Any]) -> Iterator[str]:
    """What the records are, what is promised of them, and what protects the frequencies."""
    published, secret = listed(privacy["published"]), listed(privacy["secret"])
    what = (
        f"What stands under {published} need not be true: every record was drawn at random, with known probabilities "
        f"that can leave it as it is, to protect the secret: {secret}."
        if _is_random(protocol)
        else f"What stands under {published} was not changed at random: the same true values are always published "
        f"alike, which is enough to protect the secret: {secret}."
    )
    yield f"Records about people, one a line. {what}"
    yield f"**What is promised.** {plain(privacy['meaning'])} That is meant {privacy['scope']}."
    yield f"**How near to the best.** {_near_best(privacy['certificate'])}"
    behind = privacy["frequencies"]
    yield PROTECTIONS[behind["protection"]].sentence.format(meaning=behind["meaning"])


def _near_best(found: Mapping[str, Any] | None) -> str:
    """By how much another protocol could be better, as far as that is known."""
    if found is None:
        return "By how much another protocol could be better is not known."
    sentence = Certificate(found["of"], found["gap"]).sentence(found["share"])
    if found["of"] != "kept":
        return f"Under the same promise, {sentence}."
    kept = f"Of {_KEPT_OF[found['utility']]} the protocol keeps {100 * found['share']:.1f}%"
    return f"{kept}: under the same promise, {sentence}."


def _is_random(protocol: Mapping[str, Any]) -> bool:
    """Whether any true value can be published in more than one way."""
    pairs = likely_pairs(protocol)
    return any(before == x for (before, *_), (x, *_) in pairwise(pairs))


def _reading() -> Iterator[str]:
    yield (
        'A plain value stands for itself. A value with "or" may come from any of the values it names, and from further '
        'ones if it ends in "or others".'
    )
    yield NO_SPLIT


def _estimating(protocol: Mapping[str, Any], csv: bool) -> Iterator[str]:
    where = (
        f"`{CHANNEL}` has one line for every true value and every published value that it can become, with the "
        "probability of that."
        if csv
        else "`protocol.json` has a weight for every published value and every true value that can become it; divided "
        "by the `denominator` it is the probability of that."
    )
    yield f"{where} {_example(protocol)}"
    yield "The shares of true values follow by arithmetic that any spreadsheet can do:"
    yield steps("Count every published value, and divide by the number of records: its published share.")
    yield (
        "These are the likeliest shares of all; `funnel estimate` gives the same with standard errors. For a part of "
        "the records, such as those of one region that you know from elsewhere, count only these. Where two true "
        "values have the same probabilities, only what both have together can be told. `report.html` says how far "
        "estimates are off."
    )
    if not csv:
        return
    yield _BY_WEIGHTS
    yield _PANDAS
    yield "In R:"
    yield _R


def steps(first: str) -> str:
    """The arithmetic as a numbered list, with another first step."""
    return "\n".join(f"{number}. {step}" for number, step in enumerate((first, *STEPS), 1))


def _example(protocol: Mapping[str, Any]) -> str:
    shares = protocol["prior"]["probabilities"]
    common = protocol["prior"]["symbols"][shares.index(max(shares))]
    places = [protocol["inputs"]["columns"].index(column) for column in protocol["prior"]["columns"]]
    symbols = protocol["inputs"]["symbols"]
    # The first true value with these columns: a protocol that reads the secret has several.
    x = next(x for x, symbol in enumerate(symbols) if [symbol[place] for place in places] == list(common))
    y, probability = max(
        ((y, probability) for one, y, probability in likely_pairs(protocol) if one == x),
        key=lambda pair: (pair[1], -pair[0]),
    )
    return (
        f"Of {EXAMPLE:,} records that are truly {named(symbols[x])}, about {round(probability * EXAMPLE):,} are "
        f"published as {named(protocol['outputs']['symbols'][y])}."
    )


def named(symbol: Sequence[str]) -> str:
    """The values of a symbol, in quotation marks."""
    return ", ".join(f'"{plain(value)}"' for value in symbol)


def file_table(package: Mapping[str, Any], files: Mapping[str, str]) -> str:
    """What every file holds, of those that are there."""
    there = {resource["path"] for resource in package["resources"]}
    if package[KEY]["frequencies"]["path"] is not None:
        there.add("frequencies.json")
    optional = {path for path in files if path.startswith("data/")} | {"frequencies.json"}
    lines = [f"| {path} | {what} |" for path, what in files.items() if path in there or path not in optional]
    return "\n".join(("| file | what it holds |", "| --- | --- |", *lines))


def listed(columns: Sequence[str]) -> str:
    """Names of columns, in quotation marks."""
    names = [f'"{plain(column)}"' for column in columns]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
