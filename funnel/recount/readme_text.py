"""The README of a release, written a second time from its two public documents.

Nothing of `funnel.release.handouts` is used here: where both write the same bytes, no line of one is wrong alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

Json = Mapping[str, Any]

# The sentences of a README by their names, each after a line with an @; a backslash at the end of a line joins it.
_WRITTEN = Path(__file__).with_name("readme.txt").read_text(encoding="utf-8").replace("\\\n", "").removesuffix("\n")
_TEXTS = dict(part.split("\n", 1) for part in re.split(r"(?:^|\n)@ ", _WRITTEN)[1:])

_BEST_READS = {
    "unchanged": "keeps values as they are and tables right on average",
    "classes": "moves whole records by their class alone and keeps tables right on average",
}
_BEST_WEIGHTED = {
    "root": "rare values count for more than their share of the records",
    "share": "every record counts alike",
    "uniform": "every value counts alike, however rare",
}
_BEST_OF = {
    "information": "the information in the published columns",
    "variance": "the variance of the numbers that published values stand for",
    "estimation": "what the unchanged records would tell estimates",
}
_R_ALONE = {"most": ", at most 1.41", "in_r": "", "few": "", "alone": "it is"}
_R_WITH_NOISE = {
    "most": "",
    "in_r": "; what is left of the noise is in it, so that it can be above 1 for values of few records",
    "few": " where r is not above 1",
    "alone": "the changes alone make it",
}
_NUMBERS = ("data/numbers.parquet", "data/numbers.csv")


def is_in_csv(package: Json) -> bool:
    return "data/records.csv" in [resource["path"] for resource in package["resources"]]


def _shown_text(text: str) -> str:
    """A text on one line of Markdown, in which nothing acts."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>#|~&!" else letter for letter in " ".join(text.split()))


def _quoted_names(values: Any) -> str:
    """Texts in quotation marks, as a list of a sentence."""
    *rest, last = [f'"{_shown_text(value)}"' for value in values]
    return f"{', '.join(rest)} and {last}" if rest else last


def readme_again(package: Json, protocol: Json, cells: dict[int, dict[int, Fraction]]) -> str:
    is_counted = protocol["mechanism"] == "invariant"
    work, files = (_counted if is_counted else _work)(package, protocol, cells)
    drawn = any(len(row) > 1 for row in cells.values())
    block, licence = package["funnel:privacy"], package["licenses"][0]
    name, email = (None if said is None else _shown_text(said) for said in contact_of(package))
    who = f"{name} ({email})" if name and email else name or email
    link = re.sub("[<>]", lambda found: f"%{ord(found[0]):X}", licence.get("path", ""))
    paths = [resource["path"] for resource in package["resources"]]
    return _TEXTS["counted" if is_counted else "readme"].format(
        title=_shown_text(package["title"]),
        description=_shown_text(package["description"]) + "\n\n" if package.get("description") else "",
        version=package["version"],
        day=package["created"][:10],
        records=block["records"],
        licence=_shown_text(licence["name"]) + (f" (<{link}>)" if link else ""),
        contact=f" Contact: {who}." if who else "",
        drawn=(_TEXTS["drawn"] if drawn else _TEXTS["not_drawn"]).format(
            published=_quoted_names(block["published"]), secret=_quoted_names(block["secret"])
        )
        + "".join(_without_differences(protocol["outputs"], block["published"])),
        meaning=_shown_text(block["meaning"]),
        scope=block["scope"],
        best=_near_best(block["certificate"]),
        frequencies=(
            f"Of the frequencies behind it, {block['frequencies']['meaning']}."
            if block["frequencies"]["protection"] == "threshold"
            else f"The frequencies behind it are {block['frequencies']['meaning']}."
        ),
        work=work,
        csv=_TEXTS["csv_line"] if "data/records.csv" in paths else "",
        numbers="".join(_TEXTS[path] for path in _NUMBERS if path in paths),
        files=files,
    )


def _without_differences(outputs: Json, published: Any) -> Iterator[str]:
    """A sentence for each published column of which all records have one value."""
    for place, column in enumerate(outputs["columns"]):
        value = outputs["symbols"][0][place]
        if column in published and all(symbol[place] == value for symbol in outputs["symbols"]):
            yield _TEXTS["same_value"].format(column=_shown_text(column), value=_shown_text(value))


def _near_best(found: Json | None) -> str:
    if found is None:
        return _TEXTS["best_unknown"]
    share, gap = (100 * Fraction(str(found[part])) for part in ("share", "gap"))
    if found["of"] in _BEST_READS:
        reads, weighted = _BEST_READS[found["of"]], _BEST_WEIGHTED[found["weights"]]
        return _TEXTS["best_unchanged"].format(reads=reads, gap=_decimals_above(gap, 2), weighted=weighted)
    most, more = _decimals_above(share + gap, 1), _decimals_above(gap, 1)
    return _TEXTS["best_kept"].format(what=_BEST_OF[found["utility"]], share=f"{float(share):.1f}", most=most, gap=more)


def _decimals_above(value: Fraction, digits: int) -> str:
    """The least number of so many decimals that is not below."""
    return f"{math.ceil(value * 10**digits) / 10**digits:.{digits}f}"


def _counted(package: Json, protocol: Json, cells: dict[int, dict[int, Fraction]]) -> tuple[str, str]:
    """How to count values as they are, and which files there are."""
    behind = package["funnel:privacy"]["frequencies"]
    noisy = behind["protection"] == "noise"
    later = (package["funnel:privacy"]["versions"] or 1) > 1
    if noisy and later:
        # A quarter of what learning values leaves is for changes, a quarter for means, and half for counts.
        left = behind["epsilon"] * (3 / 4 if behind["delta"] else 1)
        up_to = _TEXTS["up_to_later"].format(
            mean=_two_digits(math.sqrt(32) / left), count=_two_digits(_spread(left / 2))
        )
    else:
        up_to = _TEXTS["up_to"].format(records=_left(behind, cells)) if noisy else ""
    by_class = package["funnel:privacy"]["published"][-1:] == protocol["outputs"]["columns"][-1:] == ["record_class"]
    paths = [resource["path"] for resource in package["resources"]]
    numbers = [f"`{path}`" for path in _NUMBERS if path in paths]
    files = _TEXTS["counted_files"].format(
        csv=_TEXTS["counted_csv"] if "data/records.csv" in paths else "",
        numbers=_TEXTS["counted_numbers"].format(paths=" and ".join(numbers)) if numbers else "",
        classes=_TEXTS["counted_classes"] if by_class else "",
        noisy=_TEXTS["counted_noise"] if noisy else "",
    )
    secret = _TEXTS["or_secret"] if protocol["outputs"]["columns"][0] in package["funnel:privacy"]["secret"] else ""
    changing = (_TEXTS["changing"] if noisy else _TEXTS["changing_exactly"]) if later else ""
    if package["funnel:privacy"].get("rowsOf"):
        changing = _TEXTS["rows"]
    ratios = "\n".join(f"| {' | '.join(row)} |" for row in zip(*_ratios(protocol, cells), strict=True))
    if by_class and package["funnel:privacy"]["people"] == "same":
        goes_on = _TEXTS["followed_rows" if package["funnel:privacy"].get("rowsOf") else "followed_versions"]
        return _TEXTS["followed"].format(goes_on=goes_on, ratios=ratios), files
    return _TEXTS["as_usual"].format(
        up_to=up_to,
        changing=changing,
        instead=_TEXTS["donors"].format(secret=secret) if by_class else _TEXTS["instead"],
        ratios=ratios,
        **(_R_WITH_NOISE if noisy else _R_ALONE),
    ), files


def _ratios(protocol: Json, cells: dict[int, dict[int, Fraction]]) -> Iterator[tuple[str, str, str]]:
    """Of the table of r the first column, and that of every column of published values."""
    yield "column", "---", "r"
    n = math.fsum(protocol["prior"]["probabilities"])
    for place, column in enumerate(protocol["outputs"]["columns"]):
        values = [symbol[place] for symbol in protocol["outputs"]["symbols"]]
        found = []
        for value in sorted(set(values)):
            inside = [float(sum(p for y, p in cells[x].items() if values[y] == value)) for x in cells]
            weighed = list(zip(protocol["prior"]["probabilities"], inside, strict=True))
            mean = math.fsum(share * p for share, p in weighed) / n
            if 1e-9 < mean < 1 - 1e-9:
                found.append(math.fsum(share * p * (1 - p) for share, p in weighed) / n / mean / (1 - mean))
        ends = [f"{round(r + 1e-9, 2):.2f}" for r in (min(found, default=0), max(found, default=0))]
        yield _shown_text(column), "---", " to ".join(dict.fromkeys(ends))


def _work(package: Json, protocol: Json, cells: dict[int, dict[int, Fraction]]) -> tuple[str, str]:
    """How to estimate from values that stand for sets, and lines about files."""
    noisy = _TEXTS["noisy_line"] if package["funnel:privacy"]["frequencies"]["protection"] == "noise" else ""
    x = _commonest(protocol)
    (y, probability) = min(cells[x].items(), key=lambda cell: (-cell[1], cell[0]))
    csv, privacy = is_in_csv(package), package["funnel:privacy"]
    departed = bool(noisy) and (bool(privacy.get("rowsOf")) or (privacy["versions"] or 1) > 1)
    one_step = _TEXTS["in_one_step"].replace("{code}", _TEXTS["code_departed"] + " " if departed else "")
    estimating = _TEXTS["estimating"].format(
        where=_TEXTS["as_lines"] if csv else _TEXTS["as_weights"],
        true=", ".join(f'"{_shown_text(value)}"' for value in protocol["inputs"]["symbols"][x]),
        shown=", ".join(f'"{_shown_text(value)}"' for value in protocol["outputs"]["symbols"][y]),
        about=round(float(probability) * 10_000),
        steps=_TEXTS["steps"],
        first=_TEXTS["first_departed" if departed else "first"],
        end=_TEXTS["end_departed" if departed else "end_noisy" if noisy else "end"],
    )
    files = _TEXTS["files"].format(noisy=noisy, tables=_TEXTS["channel_line"] + _TEXTS["estimator_line"] if csv else "")
    return _TEXTS["of_sets"].format(reading=_TEXTS["reading"], estimating=estimating + (one_step if csv else "")), files


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


def contact_of(package: Json) -> tuple[str | None, str | None]:
    listed = package.get("contributors", [])
    return (listed[0].get("title"), listed[0].get("email")) if listed else (None, None)
