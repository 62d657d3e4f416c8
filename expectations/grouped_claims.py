"""Grouped claims: what a finished folder of groups of columns states, held against the source and the spec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from funnel.audit.false_alarms import SHARES
from funnel.audit.grouped.bounds import (
    bound_complaints,
    form_complaints,
    groups_complaints,
    name_complaints,
    people_complaints,
    truth_complaints,
)
from funnel.audit.grouped.draws import Cells, draw_test, path_complaints, table_complaints
from funnel.audit.grouped.figures import level_complaints, told_complaints
from funnel.audit.grouped.law import PublishedLaw
from funnel.audit.grouped.order import order_test, source_order_complaints
from funnel.audit.grouped.probe import expected_probe
from funnel.audit.grouped.rows import Rows
from funnel.audit.grouped.table import table_test, text_complaints
from funnel.audit.words import judge_words, runs_in_common, runs_of_before
from funnel.pipeline.expectations.claims import Claim, claim
from funnel.pipeline.expectations.protocol_claims import guarantee_claim
from funnel.pipeline.expectations.said import Said
from funnel.recount.grouped import RecordLevel
from funnel.word_statistics import WordStatistics

Symbol = tuple[str, ...]
Counts = Mapping[tuple[Symbol, Symbol], int]

FORM = ("form", "groups", "names", "true values", "people")
LEVEL = ("every prefix and output", "whole records", "published records", "findings")
DRAWS = ("one for each record", "as published", "weights", "secret", "thresholds")
TABLE = ("texts", "law")
ORDER = ("order",)
WORDS = ("uniform", "never again")
FIGURES = ("canonical text", "guarantee", "level", "figures", "frequencies")


def of(name: str, complaints: Iterable[str]) -> Claim:
    """A claim that nobody complains about; the first complaint is told, with how many there are."""
    said = list(complaints)
    more = f" (and {len(said) - 1:,} more)" if len(said) > 1 else ""
    return Claim(name, f"does not hold: {said[0]}{more}" if said else None)


def form_claims(law: PublishedLaw, columns: tuple[str, ...], said: Said, choice: str) -> list[Claim]:
    """That the protocol is one, of these groups, whose outputs are called what they are, for enough people."""
    text = law.followed.text
    return [
        of("form", form_complaints(text)),
        of("groups", groups_complaints(text, columns, said.groups, choice)),
        of("names", name_complaints(text)),
        of("true values", truth_complaints(law)),
        of("people", people_complaints(law.followed, said.expected_people)),
    ]


def level_claims(law: PublishedLaw, released: RecordLevel, findings: Iterable[str], said: Said) -> list[Claim]:
    """That the bound holds for everything that can be shown, and for all that is."""
    followed, budget = law.followed, said.promise.budget
    return [
        of(LEVEL[0], bound_complaints("a prefix and output", followed.outputs, budget)),
        of(LEVEL[1], bound_complaints("a record that could be published", followed.records, budget)),
        of(LEVEL[2], [*bound_complaints("a published record", released, budget), *_unheard(released)]),
        of(LEVEL[3], findings),
    ]


def _unheard(released: RecordLevel) -> Iterator[str]:
    if released.missing:
        yield f"{released.missing:,} published records are such that nobody of the source can be published as them"


def draw_claims(
    law: PublishedLaw, draws: Cells, probe: str, counts: Counts, counted: Mapping[Symbol, int]
) -> list[Claim]:
    """That records drew by the weights of the classes that they were led to, whatever their secret."""
    text = law.followed.text
    paths = list(path_complaints(text, draws, counts))
    if paths:
        # What is tested of draws that fit no protocol says nothing.
        untold = "cannot be told where draws do not fit the records"
        return [of(DRAWS[0], paths), *(Claim(name, untold) for name in DRAWS[1:4]), _thresholds(law, probe)]
    by_weights, by_secret = draw_test(text, draws), draw_test(text, draws, by_secret=True)
    return [
        of(DRAWS[0], paths),
        of(DRAWS[1], table_complaints(text, draws, counted)),
        _by_chance("weights", by_weights.p_value, SHARES["draws"], by_weights.impossible),
        _by_chance("secret", by_secret.p_value, SHARES["independence"], by_secret.impossible),
        _thresholds(law, probe),
    ]


def _thresholds(law: PublishedLaw, probe: str) -> Claim:
    same = probe == expected_probe(law.followed.text)
    return claim(DRAWS[4], same, "of the sampler are not where the weights say")


def _by_chance(name: str, p_value: float, significance: float, impossible: int = 0) -> Claim:
    if impossible:
        return Claim(name, f"were not drawn by: {impossible:,} records have what the protocol never gives them")
    why = f"would be so by chance with a probability of {p_value:.2g}, which is below {significance:.2g}"
    return claim(name, p_value >= significance, why)


def table_claims(law: PublishedLaw, counted: Mapping[Symbol, int]) -> list[Claim]:
    """That the rows are such as the protocol draws: text by text, pair by pair, and as whole records."""
    found = table_test(law, counted)
    return [
        of("texts", text_complaints(law.followed.text, counted)),
        _by_chance("law", found.p_value, SHARES["frequencies"], found.impossible),
    ]


def order_claims(law: PublishedLaw, released: Rows, source: Rows, said: Said, draws: Cells) -> list[Claim]:
    """That the order of the rows tells nothing; or is that of the source, where the spec asks for that."""
    text = law.followed.text
    if not said.shuffled:
        return [of("order", source_order_complaints(text, released, source, draws))]
    found = order_test(text, released, source, said.secret)
    why = f"of the rows goes with the source ({found.what}): by chance with a probability of {found.p_value:.2g}"
    return [claim("order", found.p_value >= SHARES["order"], why)]


def word_claims(
    words: Mapping[str, WordStatistics], earlier: Iterable[Mapping[str, WordStatistics]], expected: Mapping[str, int]
) -> list[Claim]:
    """That there was a random word for every row and stage, and one to order each, and none was used before."""
    numbers = {purpose: stream.words for purpose, stream in words.items()}
    if numbers != dict(expected):
        return [Claim("uniform", f"are {numbers} and not {dict(expected)}"), Claim("never again", "cannot be told")]
    found = {purpose: judge_words(stream) for purpose, stream in words.items()}
    p_value = min(1.0, len(found) * min(one.p_value for one in found.values()))
    before = list(earlier)
    again = runs_in_common(words) + sum(one.repeated_runs for one in found.values())
    again += sum(runs_of_before(stream, before) for stream in words.values())
    return [
        _by_chance("uniform", p_value, SHARES["words"]),
        claim("never again", not again, f"does not hold: {again:,} runs of words were used before"),
    ]


def figure_claims(content: Mapping[str, Any], canonical: bool, law: PublishedLaw, said: Said) -> list[Claim]:
    """That what ``protocol.json`` tells beside its weights follows from them."""
    followed, stated = law.followed, content["guarantee"]
    budget = float(said.promise.budget)
    guarantee = said.guarantee
    declared = {
        "kind": guarantee.name,
        "title": guarantee.title,
        "declared": str(guarantee),
        "unit": "nats",
        "secret": list(said.secret),
    }
    wrong = [f"{key} is {stated.get(key)!r}" for key, value in declared.items() if stated.get(key) != value]
    holds = guarantee_claim("guarantee", stated["declared"], said)
    protected = {"protection": said.frequencies.protection}
    told = {key: value for key, value in content["frequencies"].items() if value not in (None, 0, 0.0, False)}
    return [
        claim("canonical text", canonical, "holds more than its content"),
        holds if holds.failure else of("guarantee", wrong),
        of("level", level_complaints("the level", stated["level"], followed.outputs, budget)),
        of("figures", told_complaints(content, law)),
        claim("frequencies", told == protected, "are not said to be protected as the spec asks"),
    ]
