"""The figures of the annex of a release, computed again from its two public documents and compared with its page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from itertools import groupby
from operator import itemgetter
from typing import Any

from funnel.recount.balance import is_invariant
from funnel.recount.channel import weights_of

Json = Mapping[str, Any]
Symbol = tuple[str, ...]

# Half of the last of four digits.
_DIGITS = 5.1e-4
_MET, _NOT_APPLICABLE, _PUBLISHER = "met", "not applicable", "left to the publisher"
# Answers that no release changes.
_ALWAYS = {
    _MET: (
        "iso-6.2 iso-6.3-actions iso-7.2 iso-7.3-risk iso-7.3-sample iso-7.3-model iso-8.2-quantify iso-8.2-testing "
        "iso-8.3-data iso-8.3-again nist-trust nist-correct adf-3 adf-6 adf-7"
    ),
    _NOT_APPLICABLE: "iso-8.3-environment",
    _PUBLISHER: (
        "iso-6.3-harms iso-9-after nist-systemic nist-access nist-collection adf-1 adf-2 adf-4 adf-5 adf-8 adf-10"
    ),
}
# Over what a bound is a maximum, and over what an average; of all that are not here over nothing.
_AVERAGES = {
    "mi": "an average over all records",
    **dict.fromkeys(
        ("l1-lift", "chi2-lift", "alpha-lift"),
        "a maximum over all published values of an average over the values of the secret",
    ),
}
_MAXIMUM = "a maximum over all published values and all values of the secret"


class _Figures(HTMLParser):
    """Every figure of a page: its name, its value and its text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, str, str]] = []
        self._open: tuple[str, str] | None = None
        self._text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where a figure begins."""
        if tag == "data":
            given = dict(attrs)
            self._open, self._text = (given.get("data-figure") or "", given.get("value") or ""), ""

    def handle_data(self, data: str) -> None:
        """Note its text."""
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        """Note where it ends."""
        if tag == "data" and self._open is not None:
            self.found.append((*self._open, self._text.strip()))
            self._open = None


def annex_complaints(page: str, report: Json, protocol: Json, published: Mapping[Symbol, int] | None) -> Iterator[str]:
    """What an annex states that does not follow from the documents beside it.

    Parameters
    ----------
    page : str
        ``annex.html``.
    report, protocol : JSON objects
        ``report.json`` and ``protocol.json``.
    published : mapping of symbol to int, or None
        Published records by their values; None where whole records are published, or the table cannot be read.
    """
    if published is not None:
        alone = sum(n == 1 for n in published.values())
        if report["alone"] != alone:
            yield f"report.json counts {report['alone']!r} records like no other, and there are {alone}"
        if report.get("absent") != (absent := absent_records(protocol, published)):
            yield (
                f"report.json counts {report.get('absent')!r} records with combinations that no record has, and there "
                f"are {absent}"
            )
    figures = _figures(report, protocol)
    expected: dict[str, float | str] = {**figures, **_statuses(report, figures)}
    found = _Figures(page).found
    named = {name for name, _, _ in found}
    yield from (f"it has no figure {name!r}" for name in sorted(expected.keys() - named))
    for name, value, text in found:
        if name not in expected:
            yield f"its figure {name!r} is not one of this release"
        elif isinstance(said := expected[name], str):
            if not value == text == said:
                yield f"its answer {name!r} is {text!r} instead of {said!r}"
        elif not _is_number(value, said):
            yield f"its figure {name!r} is {value!r} instead of {said:.6g}"
        elif not _reads_as(text, said):
            yield f"its figure {name!r} reads {text!r}, and is {said:.6g}"


def absent_records(protocol: Json, published: Mapping[Symbol, int]) -> int | None:
    """Published records with a combination to which the protocol gives no share; None where outputs are sets."""
    if not is_invariant(protocol):
        return None
    prior = protocol["prior"]
    impossible = {*published}
    for symbol, share in zip(prior["symbols"], prior["probabilities"], strict=True):
        if share:
            impossible.discard(tuple(symbol))
    return sum(published[symbol] for symbol in impossible)


def _is_number(text: str, value: float) -> bool:
    try:
        return math.isclose(float(text), value, rel_tol=_DIGITS, abs_tol=1e-12)
    except ValueError:
        return False


def _reads_as(text: str, value: float) -> bool:
    """Whether a text shows a number, rounded by less than one of its last digit, or a hundredth."""
    if math.isinf(value):
        return text == "infinite"
    if text in ("no", "none"):
        return value == 0
    scale = 100.0 if "%" in text or text.startswith(("±", "+")) else 1.0
    found = re.search(r"([0-9][0-9,]*)(?:\.([0-9]+))?(?:\s*×\s*10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?", text)
    if found is None:
        return False
    whole, digits, power = found[1].replace(",", ""), found[2] or "", found[3]
    ten = 1.0 if power is None else 10.0 ** int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
    shown, last, exact = float(f"{whole}.{digits or 0}") * ten, ten * 10.0 ** -len(digits), scale * value
    if text.startswith("<"):
        return 0 < exact < shown + last
    if text.startswith(">"):
        return shown - last < exact < scale
    # A count is shown with all its digits, another number with two or three: 100 may be 102.9, and 120 not.
    counts = scale == 1 and not digits and exact == int(exact)
    if not digits:
        last *= 10.0 ** max(0, min(len(whole) - len(whole.rstrip("0")), len(whole) - 2))
    return abs(shown - exact) <= (0 if counts else max(last * (1 + _DIGITS), exact / 100))


_GUESSED = ("secret", "secret_before", "gain")


def _figures(report: Json, protocol: Json) -> dict[str, float]:
    figures, frequencies, kept = report["figures"], report["frequencies"], report.get("unchanged")
    whole = tuple(report["published"]["columns"]) != tuple(protocol["outputs"]["columns"])
    found: dict[str, float] = {"records": figures["rows"]}
    if figures["level_factor"] is not None:
        found["change"] = figures["level_factor"]
    rises = [b for b in report["beliefs"]["rows"] if b["highest"] is not None and b["prior"] > 0]
    if rises:
        strongest = sorted(rises, key=lambda b: -b["highest"] / b["prior"])[0]
        found |= {"belief_before": strongest["prior"], "belief": strongest["highest"]}
    if frequencies["epsilon"] is not None:
        found |= {"epsilon": frequencies["epsilon"], "insider": math.exp(frequencies["epsilon"]) ** 2}
    if not whole:
        found |= {"guess": figures["guess_accuracy"], "guess_before": figures["prior_guess_accuracy"]}
        found |= _links(report, protocol)
        found["unique"] = report["alone"]
    else:
        # Whole records are linked by other values than their class, of which nothing is told.
        found |= {name: share for name, share in _links(report, protocol).items() if name in _GUESSED}
    if kept is not None:
        found |= _kept(kept, kept["whole"] if whole else kept, figures["rows"])
    own = None if figures["history"] is None else figures["history"]["own"]
    if own is not None:
        # By value of the secret only how many records have the class of their person is told.
        found = {name: value for name, value in found.items() if name not in ("kept_least", "kept_most")}
        found["unchanged"] = own
    of_records = kept["whole"] if kept is not None and whole else None
    for table in report["estimated"] if of_records is None else of_records["estimated"]:
        if len(table["columns"]) == 1 and table["typical"] and table["largest"] is not None:
            column, typical, largest = table["columns"][0], table["typical"], table["largest"]
            found |= {f"median_{column}": typical, f"worst_{column}": largest, f"ratio_{column}": largest / typical}
    return found


def _kept(kept: Json, alone: Json | None, rows: int) -> dict[str, float]:
    found: dict[str, float] = {"unchanged": kept["share"], "exact": kept["exact_records"]}
    if alone is not None:
        unique, true = alone["unique"], alone["unique_unchanged"]
        found |= {"unique": unique} | ({} if true is None else {"unique_true": true, "singled": unique * true / rows})
    # Of classes nothing is told column by column but what stays of the records.
    for one in (alone or {}).get("columns", ()) if alone is not kept else ():
        told = {"true": one["share"], "typical": one["typical"], "least": one["least"]}
        found |= {f"{name}_{one['column']}": share for name, share in told.items() if share is not None}
    shares = sorted(one["share"] for one in kept["secrets"])
    if shares:
        found |= {"kept_least": shares[0], "kept_most": shares[-1]}
    observers = {str(one["known"]): one for one in kept["observers"]}
    if kept["known"]:
        observers["column"] = kept["known"][0]
    for name, one in observers.items():
        found[f"factor_{name}"] = math.inf if one["level"] == "infinite" else math.exp(one["level"])
        found[f"outside_{name}"] = one["outside"]
    return found


def _links(report: Json, protocol: Json) -> dict[str, float]:
    """Records that observers of all other columns link rightly, and secrets that they guess rightly."""
    prior, secret, rows = protocol["prior"], set(report["secret"]["columns"]), report["figures"]["rows"]
    symbols = [tuple(symbol) for symbol in prior["symbols"]]
    total = sum(prior["probabilities"])
    share = {x: p / total for x, p in zip(symbols, prior["probabilities"], strict=True)}
    open_to = [j for j, column in enumerate(prior["columns"]) if column not in secret]
    known = {x: tuple(x[j] for j in open_to) for x in symbols}
    of_known: dict[Symbol, float] = {}
    likeliest: dict[Symbol, float] = {}
    for x, p in share.items():
        of_known[known[x]] = of_known.get(known[x], 0.0) + p
        likeliest[known[x]] = max(likeliest.get(known[x], 0.0), p)
    best, guessed = dict.fromkeys(of_known, 0.0), 0.0
    for pairs in _pairs(protocol, symbols, share):
        mass = sum(pairs.values())
        seen: dict[Symbol, list[float]] = {}
        for x, p in pairs.items():
            seen.setdefault(known[x], []).append(p)
        for k, parts in seen.items():
            best[k] = max(best[k], sum(parts) / mass)
            guessed += max(parts)
    found = {
        "linked": sum(min(p, best[k] / rows) for k, p in of_known.items()),
        "linked_truth": sum(min(p, 1 / rows) for p in of_known.values()),
    }
    if secret <= set(prior["columns"]):
        before = sum(likeliest.values())
        found |= {"secret": guessed, "secret_before": before, "gain": max(0.0, guessed - before)}
    return found


def _pairs(protocol: Json, symbols: list[Symbol], share: Mapping[Symbol, float]) -> Iterator[dict[Symbol, float]]:
    """Of every output the probability of it with each true value, where that is not zero."""
    if protocol["posterior"] is not None:
        for one in protocol["posterior"]:
            total = sum(one["inputs"].values())
            if one["probability"] > 0 and total > 0:
                yield {symbols[int(x)]: one["probability"] * p / total for x, p in one["inputs"].items()}
        return
    inputs, denominator = [tuple(symbol) for symbol in protocol["inputs"]["symbols"]], int(protocol["denominator"])
    for _, row in groupby(weights_of(protocol), key=itemgetter(0)):
        found = {inputs[x]: weight / denominator * share[inputs[x]] for _, x, weight in row if share[inputs[x]] > 0}
        if found:
            yield found


def _statuses(report: Json, figures: Mapping[str, float]) -> dict[str, str]:
    """The answer to each question of the frameworks: met, not applicable, or left to the publisher."""
    found = {key: status for status, keys in _ALWAYS.items() for key in keys.split()}
    noisy, together = report["frequencies"]["protection"] == "noise", report["people"] == "same"
    errors = report["accuracy"] is not None or bool(report["estimated"])
    groups = any(name.startswith("ratio_") for name in figures)
    parts = [part.strip() for part in report["guarantee"].split("&")]
    return found | {
        "extent": "; ".join(f"{part} is {_AVERAGES.get(part.partition(':')[0], _MAXIMUM)}" for part in parts),
        "nist-epsilon": _MET if noisy else _NOT_APPLICABLE,
        "nist-unit": _MET if noisy else _NOT_APPLICABLE,
        "nist-composition": _MET if together else _PUBLISHER,
        "nist-utility": _MET if errors else _PUBLISHER,
        "nist-statistical": _MET if groups else _PUBLISHER,
        "iso-9-before": _PUBLISHER if report["approval"] is None else _MET,
        "adf-9": _MET if together else _PUBLISHER,
    }
