"""Handouts, written a second time: README.md, CITATION.cff, dcat.jsonld, protocol.csv, from the two public documents.

Nothing of `funnel.release.handouts` is used here: where both write the same bytes, no line of one is wrong alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from funnel.recount.portal_entries import catalogue_again, citation_again, contact_of
from funnel.recount.published import in_csv

Json = Mapping[str, Any]

_README = """# {title}

{description}Version {version}, made on {day}, {records:,} records. Licence: {licence}.{contact}

## What this is

Records about people, one a line. {drawn}

**What is promised.** {meaning} That is meant {scope}.

**How near to the best.** {best}

{frequencies}

{work}

## Files

| file | what it holds |
| --- | --- |
| data/records.parquet | the records |
{csv}{numbers}{files}| report.json | the figures of the report |
| datapackage.json | columns, values, digests and the promise, as a Data Package |
| dcat.jsonld | the entry of a data catalogue, in DCAT-AP |
| CITATION.cff | how to cite this release |
| signature.json | the digests of all these files, signed by the publisher |
"""
_DRAWN = """What stands under {published} need not be true: every record was drawn at random, with known \
probabilities that can leave it as it is, to protect the secret: {secret}."""
_NOT_DRAWN = """What stands under {published} was not changed at random: the same true values are always published \
alike, which is enough to protect the secret: {secret}."""
_BEST_KEPT = """Of {what} the protocol keeps {share}%: under the same promise, no protocol that reads the same keeps \
more than {most}%, {gap} points more."""
_BEST_UNCHANGED = """Under the same promise, no protocol that {reads} \
leaves more than {gap} points more of the records unchanged, with the weights that it was asked for."""
_BEST_READS = {
    "unchanged": "keeps values as they are and tables right on average",
    "classes": "moves whole records by their class alone and keeps tables right on average",
}
_BEST_UNKNOWN = "By how much another protocol could be better is not known."
_BEST_OF = {
    "information": "the information in the published columns",
    "variance": "the variance of the numbers that published values stand for",
    "estimation": "what the unchanged records would tell estimates",
}
_OF_SETS = """## How to read a value

{reading}

Such a value is no answer that is split evenly: do not count it as the first value that it names, and do not share it \
out. Estimate.

## How to estimate from it

{estimating}"""
_AS_USUAL = """## How to work with it

Count, tabulate and regress as usual. Every value is one of the source, and tables are right on average{up_to}.
{changing}
Standard errors for the population are the usual ones times √(1 + r){most}, and a chi-square statistic is \
divided by 1 + r. r is the variance that the random changes add, as a part of the usual one{in_r}. `funnel estimate` \
prints it for shares, means, odds ratios and tests of independence; for any other statistic, such as a regression, \
`funnel.load_release(…).variance_ratio` gives it. About these records alone usual errors are long enough{few}.

Analyses within records that are selected by something not published, such as records of a register that you link, \
are not right on average: {instead}"""
_R_ALONE = {"most": ", at most 1.41", "in_r": "", "few": ""}
_R_WITH_NOISE = {
    "most": "",
    "in_r": "; what is left of the noise is in it, so that it can be above 1 for values of few records",
    "few": " where r is not above 1",
}
_INSTEAD = "use `funnel.estimate(table, protocol, by=…)` in Python, or the probabilities in `protocol.json`."
_DONORS = """some of them are records of others, as often as `protocol.json` says for their classes.

A record that was changed is, in all columns, that of somebody else{secret}. The last column is its class, which \
follows from the others as `classes.json` says; `protocol.json` has how often records of one class were published as \
one of another."""
_OR_SECRET = """, or its secret is another one, drawn alike for all records of a class: the report says how far \
tables of the secret with another column may be off"""
_CHANGING = """
That is so for the people there are, however they changed since the versions before: how many records each value would \
be published for on average was counted, with noise, as `means` in `frequencies.json`, and answers were changed until \
these agree with the counts.
"""
_CHANGING_EXACTLY = """
That is so for the people there are, however they changed since the versions before: how many records each value would \
be published for on average was counted, and answers were changed until these agree with the counts, to within a \
record each; the probabilities in `protocol.json` are rounded.
"""
_UP_TO_LATER = """ up to the noise of `frequencies.json`: about {mean:g} records for a published value by its mean, \
and about {count:g} by each count of it, and √m times as many for m of these"""
_UP_TO = """ up to what is left of the noise: about {records:g} records for a count of `frequencies.json`, and about \
√m times as many for the sum of m counts"""
_READING = """A plain value stands for itself. A value with "or" may come from any of the values it names, and from \
further ones if it ends in "or others"."""
_STEPS = """2. Give every true value the same share to begin with.
3. For every published value add up, over the true values, share times probability: its expected share.
4. For every true value add up, over the published values, published share times probability divided by expected \
share; multiply its share by that.
5. Repeat 3 and 4 until the shares stand still in the digits that you need."""
_AS_LINES = """`protocol.csv` has one line for every true value and every published value that it can become, with \
the probability of that."""
_AS_WEIGHTS = """`protocol.json` has a weight for every published value and every true value that can become it; \
divided by the `denominator` it is the probability of that."""
_ESTIMATING = """{where} Of 10,000 records that are truly {true}, about {about:,} are published as {shown}.

The shares of true values follow by arithmetic that any spreadsheet can do:

1. Count every published value, and divide by the number of records: its published share.
{steps}

These are the likeliest shares of all; `funnel estimate` gives the same with standard errors. For a part of the \
records, such as those of one region that you know from elsewhere, count only these. Where two true values have the \
same probabilities, only what both have together can be told. `report.html` says how far estimates are off."""
_IN_ONE_STEP = """

Or in one step: `estimator.csv` has weights for every true value that the records can tell. Its share is the sum, over \
its lines, of the weight times the published share. Such shares are right on average, and those of rare values may \
come out below zero. In Python:

```python
import pandas as pd

records = pd.read_csv("data/records.csv", dtype=str, keep_default_na=False)
weights = pd.read_csv("estimator.csv", dtype=str, keep_default_na=False)
seen = records.add_prefix("published ").value_counts(normalize=True).rename("seen").reset_index()
lines = weights.merge(seen)
true = [name for name in weights if name.startswith("true ")]
print((lines["weight"].astype(float) * lines["seen"]).groupby([lines[name] for name in true]).sum())
```

In R:

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
_FILES = """{tables}{classes}| protocol.json | probabilities of published values as whole numbers, the bound, and \
what a published value tells |
{noisy}| report.html | what is promised, what an observer learns, and how well shares can be estimated: for reading |
| annex.html | what anonymisation opinions and standards ask, answered for this release: for officers |
"""
_CSV_LINE = (
    "| data/records.csv | the same for spreadsheets; datapackage.json says which values have an apostrophe before "
    "them |\n"
)
_NUMBER_LINES = {
    "data/numbers.parquet": (
        "| data/numbers.parquet | the records with a number for each, drawn within its interval; it is not the true "
        "one |\n"
    ),
    "data/numbers.csv": "| data/numbers.csv | the same for spreadsheets |\n",
}
_CHANNEL_LINE = "| protocol.csv | the probability of every published value for every true one |\n"
_ESTIMATOR_LINE = "| estimator.csv | weights by which published shares add up to true ones |\n"
_CLASSES_LINE = "| classes.json | the points of values that say which class a record is of |\n"
_NOISY_LINE = "| frequencies.json | the noisy counts that all of this is made from |\n"


def documentation_again(package: Json, protocol: Json, previous: str | None) -> dict[str, bytes]:
    """What the handouts of a release have to be, by path.

    Parameters
    ----------
    package, protocol : JSON object
        Content of ``datapackage.json`` and of ``protocol.json``, both of them judged.
    previous : str or None
        The version before this one that is there.

    Raises
    ------
    KeyError, TypeError, ValueError, IndexError
        If these are no documents of a release.
    """
    cells = _cells(protocol)
    return {
        "CITATION.cff": citation_again(package).encode(),
        "README.md": _readme(package, protocol, cells).encode(),
        "dcat.jsonld": catalogue_again(package, previous).encode(),
        **({"protocol.csv": _table(protocol, cells).encode()} if _is_in_csv(package) else {}),
    }


def _is_in_csv(package: Json) -> bool:
    return "data/records.csv" in [resource["path"] for resource in package["resources"]]


def _cells(protocol: Json) -> dict[int, dict[int, Fraction]]:
    """Probabilities that are not zero, by positions of the true and of the published value."""
    whole = int(protocol["denominator"])
    found: dict[int, dict[int, Fraction]] = {x: {} for x in range(len(protocol["inputs"]["symbols"]))}
    for y, row in enumerate(protocol["weights"]):
        for x, weight in row.items() if isinstance(row, dict) else enumerate(row):
            if int(weight) > 0:
                found[int(x)][y] = Fraction(int(weight), whole)
    return found


def _table(protocol: Json, cells: dict[int, dict[int, Fraction]]) -> str:
    inputs, outputs = protocol["inputs"], protocol["outputs"]
    head = [f"true {column}" for column in inputs["columns"]] + [f"published {c}" for c in outputs["columns"]]
    lines = [",".join(map(_cell, [*head, "probability"]))]
    true, published = (
        [",".join(_cell(in_csv(value)) for value in symbol) for symbol in part["symbols"]] for part in (inputs, outputs)
    )
    # The nearest double of a fraction, as the shortest text that it is read back from.
    lines += [f"{true[x]},{published[y]},{float(p)!r}" for x in cells for y, p in cells[x].items()]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _shown_text(text: str) -> str:
    """A text on one line of Markdown, in which nothing acts."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>#|~&!" else letter for letter in " ".join(text.split()))


def _quoted_names(values: Any) -> str:
    """Texts in quotation marks, as a list of a sentence."""
    *rest, last = [f'"{_shown_text(value)}"' for value in values]
    return f"{', '.join(rest)} and {last}" if rest else last


def _readme(package: Json, protocol: Json, cells: dict[int, dict[int, Fraction]]) -> str:
    work, files = _work(package, protocol, cells)
    drawn = any(len(row) > 1 for row in cells.values())
    block, licence = package["funnel:privacy"], package["licenses"][0]
    name, email = (None if said is None else _shown_text(said) for said in contact_of(package))
    who = f"{name} ({email})" if name and email else name or email
    link = re.sub("[<>]", lambda found: f"%{ord(found[0]):X}", licence.get("path", ""))
    paths = [resource["path"] for resource in package["resources"]]
    return _README.format(
        title=_shown_text(package["title"]),
        description=_shown_text(package["description"]) + "\n\n" if package.get("description") else "",
        version=package["version"],
        day=package["created"][:10],
        records=block["records"],
        licence=_shown_text(licence["name"]) + (f" (<{link}>)" if link else ""),
        contact=f" Contact: {who}." if who else "",
        drawn=(_DRAWN if drawn else _NOT_DRAWN).format(
            published=_quoted_names(block["published"]), secret=_quoted_names(block["secret"])
        ),
        meaning=_shown_text(block["meaning"]),
        scope=block["scope"],
        best=_near_best(block["certificate"]),
        frequencies=(
            f"Of the frequencies behind it, {block['frequencies']['meaning']}."
            if block["frequencies"]["protection"] == "threshold"
            else f"The frequencies behind it are {block['frequencies']['meaning']}."
        ),
        work=work,
        csv=_CSV_LINE if "data/records.csv" in paths else "",
        numbers="".join(line for path, line in _NUMBER_LINES.items() if path in paths),
        files=files,
    )


def _near_best(found: Json | None) -> str:
    if found is None:
        return _BEST_UNKNOWN
    share, gap = (100 * Fraction(str(found[part])) for part in ("share", "gap"))
    if found["of"] in _BEST_READS:
        return _BEST_UNCHANGED.format(reads=_BEST_READS[found["of"]], gap=_decimals_above(gap, 2))
    most, more = _decimals_above(share + gap, 1), _decimals_above(gap, 1)
    return _BEST_KEPT.format(what=_BEST_OF[found["utility"]], share=f"{float(share):.1f}", most=most, gap=more)


def _decimals_above(value: Fraction, digits: int) -> str:
    """The least number of so many decimals that is not below."""
    return f"{math.ceil(value * 10**digits) / 10**digits:.{digits}f}"


def _work(package: Json, protocol: Json, cells: dict[int, dict[int, Fraction]]) -> tuple[str, str]:
    """What is special to a release: chapters on its use, and lines about files."""
    behind = package["funnel:privacy"]["frequencies"]
    noisy = _NOISY_LINE if behind["protection"] == "noise" else ""
    if protocol["mechanism"] == "invariant":
        later = (package["funnel:privacy"]["versions"] or 1) > 1
        if noisy and later:
            # A quarter of what learning values leaves is for changes, a quarter for means, and half for counts.
            left = behind["epsilon"] * (3 / 4 if behind["delta"] else 1)
            up_to = _UP_TO_LATER.format(mean=_two_digits(math.sqrt(32) / left), count=_two_digits(_spread(left / 2)))
        else:
            up_to = _UP_TO.format(records=_left(behind, cells)) if noisy else ""
        by_class = (
            package["funnel:privacy"]["published"][-1:] == protocol["outputs"]["columns"][-1:] == ["record_class"]
        )
        tables = _CHANNEL_LINE if _is_in_csv(package) else ""
        files = _FILES.format(noisy=noisy, tables=tables, classes=_CLASSES_LINE if by_class else "")
        secret = _OR_SECRET if protocol["outputs"]["columns"][0] in package["funnel:privacy"]["secret"] else ""
        donors = _DONORS.format(secret=secret) if by_class else _INSTEAD
        changing = (_CHANGING if noisy else _CHANGING_EXACTLY) if later else ""
        ratio = _R_WITH_NOISE if noisy else _R_ALONE
        work = _AS_USUAL.format(up_to=up_to, changing=changing, instead=donors, **ratio)
        return work, files
    x = _commonest(protocol)
    (y, probability) = min(cells[x].items(), key=lambda cell: (-cell[1], cell[0]))
    csv = _is_in_csv(package)
    estimating = _ESTIMATING.format(
        where=_AS_LINES if csv else _AS_WEIGHTS,
        true=", ".join(f'"{_shown_text(value)}"' for value in protocol["inputs"]["symbols"][x]),
        shown=", ".join(f'"{_shown_text(value)}"' for value in protocol["outputs"]["symbols"][y]),
        about=round(float(probability) * 10_000),
        steps=_STEPS,
    )
    files = _FILES.format(noisy=noisy, tables=_CHANNEL_LINE + _ESTIMATOR_LINE if csv else "", classes="")
    return _OF_SETS.format(reading=_READING, estimating=estimating + (_IN_ONE_STEP if csv else "")), files


def _left(behind: Json, cells: dict[int, dict[int, Fraction]]) -> float:
    """How many records noise moves the expected count of an output by, at most: one standard deviation, rounded up."""
    most: dict[int, Fraction] = {}
    for row in cells.values():
        for y, probability in row.items():
            most[y] = most.get(y, Fraction(0)) + probability**2
    # Three quarters of epsilon are for counts where the rest went into learning values.
    return _two_digits(_spread(behind["epsilon"] * (3 / 4 if behind["delta"] else 1)) * math.sqrt(max(most.values())))


def _spread(epsilon: float) -> float:
    """The standard deviation of discrete Laplace noise of scale 1 / epsilon."""
    kept = math.exp(-epsilon)
    return math.sqrt(2 * kept) / (1 - kept)


def _two_digits(exact: float) -> float:
    """Rounded up."""
    places = 1 - math.floor(math.log10(exact))
    return float(math.ceil(exact * 10**places - 1e-9) / 10**places)


def _commonest(protocol: Json) -> int:
    """Position of the first input with the published values that are the commonest."""
    prior, inputs = protocol["prior"], protocol["inputs"]
    best = max(range(len(prior["probabilities"])), key=lambda i: (prior["probabilities"][i], -i))
    wanted = dict(zip(prior["columns"], prior["symbols"][best], strict=True))
    for x, symbol in enumerate(inputs["symbols"]):
        named = dict(zip(inputs["columns"], symbol, strict=True))
        if all(named[column] == value for column, value in wanted.items()):
            return x
    raise ValueError("the commonest value is none that the protocol reads")
