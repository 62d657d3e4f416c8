"""What public frequencies state, held against the recount, the text of the spec, rules, and earlier versions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from funnel.audit.evidence import stored_counts
from funnel.audit.files import read_json
from funnel.pipeline.expectations.claims import Claim, all_of, claim, same
from funnel.pipeline.expectations.keyed_answers import values_of_first_rows
from funnel.pipeline.expectations.spec_text import SpecText
from funnel.recount.balance import is_invariant
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.grouping import (
    declared_values,
    learned_columns,
    learning_cost,
    selected_columns,
    special_values,
)
from funnel.recount.named_values import named_values
from funnel.recount.noise import NoiseMaterial
from funnel.recount.noisy_moves import split_complaints
from funnel.recount.part_beliefs import counts_of_classes
from funnel.recount.source import Recount
from funnel.release.layout import ReleaseFolder
from funnel.spec import ReleaseSpec

if TYPE_CHECKING:
    from funnel.pipeline.expectations.finished_folder import FinishedFolder

Symbol = tuple[str, ...]


@dataclass(frozen=True)
class Before:
    """Public frequencies of an earlier version of the series, with its exact counts.

    Attributes
    ----------
    public : PublicFrequencies
    counts : mapping of (secret, input) to int
        As its internal evidence has them.
    source, snapshot : str
        SHA-256 (hex) of the source that it was made of, and of its recoded records, as its record says.
    """

    public: PublicFrequencies
    counts: Mapping[tuple[tuple[str, ...], tuple[str, ...]], int]
    source: str = ""
    snapshot: str = ""


def frequency_claims(finished: FinishedFolder) -> list[Claim]:
    """The public counts are the recounted ones with noise as the spec asks, for values that disclose nothing.

    Raises
    ------
    DataError
        If records have values that no count is of.
    """
    public, spec, said = finished.frequencies, finished.spec.whole, finished.spec_text
    if public is None:
        return [Claim("frequencies", "cannot be judged: no noise is declared")]
    before = [_before(one) for one in finished.before if one.frequencies.is_file() and one.joint.is_file()]
    counted, whole, first = finished.recount, finished.public_values, finished.version == "1.0.0"
    if public.rows is not None:
        counted = replace(counted, counts=finished.first_rows)
    labels = public.labels if whole is None else whole
    return [
        all_of("settings", _settings(public, spec, said)),
        all_of("changes and rows", _moves(public, said)),
        all_of("combinations", _combinations(public, said)),
        all_of("values", _values(labels, counted, spec)),
        all_of("named values", _named(finished, labels, counted, before)),
        _derived(public, counted, before, finished.noise_material),
        all_of("noise of other versions", _drawn_once(public, counted, before)),
        all_of("spent", _spent(public, said, before, (counted.sha256, finished.snapshot.content_sha256), first)),
    ]


def _before(folder: ReleaseFolder) -> Before:
    """The public frequencies of an earlier version, and what it counted."""
    public = PublicFrequencies.parse(folder.frequencies.read_bytes())
    counts = stored_counts(folder.joint if public.rows is None else folder.first_rows)
    record = read_json(folder.record) if folder.record.is_file() else {}
    origin = record.get("origin", {})
    return Before(public, counts, str(origin.get("source", "")), str(origin.get("snapshot", "")))


def _settings(public: PublicFrequencies, spec: ReleaseSpec, said: SpecText) -> Iterator[Claim]:
    settings = said.frequencies
    yield same("beta", public.beta, settings.beta)
    # Only values that nobody declared can be those of one person alone.
    delta = settings.delta if selected_columns(spec) else 0.0
    told = math.isclose(public.delta, delta, rel_tol=1e-9) and public.delta <= settings.delta
    yield claim("delta", told, f"is {public.delta!r} instead of {delta!r}")
    declared, learning = Fraction(settings.epsilon), learning_cost(spec)
    wrong = next(split_complaints(declared, learning, public.epsilon, *public.parts), None)
    yield claim("epsilon", wrong is None, f"is not split as it is said: {wrong}")


def _moves(public: PublicFrequencies, said: SpecText) -> Iterator[Claim]:
    """That tables of changes and rows are there alone where they belong."""
    alone = public.changes is None or said.people == "same"
    yield claim("changes", alone, "are told of people who are others in every version")
    several = "unit" in said.settings and said.people == "same"
    yield claim("rows", (public.rows is not None) == several, "are told where people have one each, or the other way")
    is_counted = is_invariant({"mechanism": said.mechanism})
    whole = public.changes is not None and is_counted
    yield claim(
        "means", (public.means is not None) == whole, "are told where no answers are put right, or the other way"
    )
    predicted = not is_counted and (public.changes is not None or public.rows is not None)
    wrong = "are told where nobody is predicted, or the other way"
    yield claim("departures", (public.departures is not None) == predicted, wrong)


def _combinations(public: PublicFrequencies, said: SpecText) -> Iterator[Claim]:
    yield same("secret", public.secret_columns, said.secret)
    yield same("published", public.published_columns, said.inputs)
    # Of classes none is a combination of values.
    listed = said.settings.get("impossible", ()) if said.class_column is None else ()
    declared = [(tuple(one), tuple(map(tuple, one.values()))) for one in listed]
    yield same("impossible", [(one.columns, one.values) for one in public.impossible or ()], declared)


def _values(public: Mapping[str, Sequence[str]], counted: Recount, spec: ReleaseSpec) -> Iterator[Claim]:
    """That the values of columns are those that the spec declares, or else some that occur."""
    for column, labels in public.items():
        other, missing = special_values(spec, column)
        recode = spec.recode.get(column)
        declared = declared_values(spec, column)
        named = {label for label in labels if label not in (other, missing)}
        whole = recode is None or recode.minimum_count is None
        if declared is not None:
            expected = declared - {other, missing}
            yield claim(column, named <= expected, "has values that the spec does not declare")
            yield claim(column, not whole or named == expected, "lacks values that the spec declares")
        else:
            groups = {} if recode is None or recode.groups is None else recode.groups
            unknown = named - set(counted.values.get(column, {})) - set(groups)
            yield claim(column, not unknown, "has values that no record has, and nobody declared")
        if column in spec.complete:
            made = set(labels) - declared if declared is not None and whole else set()
            yield claim(column, not made, "is declared complete, and has a category for other or missing values")
            continue
        if column in spec.inputs and whole and not spec.has_bins(column):
            yield claim(column, other in labels, "has no category of other values, which tells that no record has one")
        if column in spec.inputs and whole and spec.source.on_missing == "category":
            yield claim(column, missing in labels, "has no category of missing values, which tells that none is")


def _named(
    finished: FinishedFolder, labels: Mapping[str, Sequence[str]], counted: Recount, before: Sequence[Before]
) -> Iterator[Claim]:
    """That values have a name which the secret of the series gives them, or which was published of this source before.

    Where units have several rows those that come first count.
    """
    spec, material, key = finished.spec.whole, finished.noise_material, finished.key
    columns, chosen = learned_columns(spec), selected_columns(spec)
    published = [one.public.labels for one in before if one.source == counted.sha256]
    new = [name for name in columns if not any({*one.get(name, ())} == {*labels[name]} for one in published)]
    values, missing = counted.values, counted.missing
    if new and finished.spec.follows_units and key is not None:
        values, missing = values_of_first_rows(spec, key, finished.snapshot.key_kinds or ())
    for column in new:
        if material is None or (finished.spec.follows_units and key is None):
            yield Claim(column, "cannot be derived: the secret of the series is gone")
            continue
        wrong = {*labels[column]} ^ named_values(spec, column, values[column], missing.get(column, 0), material)
        yield claim(
            column,
            not wrong,
            f"has {len(wrong):,} names that are not what its counts and the secret of the series give; if an older "
            "funnel learned them, remove the folder values from the series' folder in the workspace and run it again",
        )
    yield same("learned columns", {*chosen} <= {*columns}, True)


def table_of(public: PublicFrequencies, since: Sequence[str] = ()) -> list[object]:
    """What the tables of a version are of."""
    alphabets = ((public.secret_columns, public.secret), (public.published_columns, public.inputs))
    return [alphabets, list(since)]


def _derived(
    public: PublicFrequencies, counted: Recount, before: Sequence[Before], material: NoiseMaterial | None
) -> Claim:
    """That the noise is what the secret of the series gives these counts; or was published with them before."""
    known = [one for one in before if one.source == counted.sha256]
    if any(told.noisy == public.noisy for told in _published_of(public, counted, known)):
        return Claim("derived noise")
    if material is None:
        return Claim("derived noise", "cannot be derived: the secret of the series' noise is gone")
    noise = [count for row in public.noise(counted) for count in row]
    exact = [count for row in counted.table(public.secret, public.inputs) for count in row]
    wrong = material.wrong("counts", public.epsilon_counts, public.scale, table_of(public), noise, exact)
    words = f"of {wrong:,} counts is not what their table and the secret of the series give"
    return claim("derived noise", not wrong, words)


def _published_of(public: PublicFrequencies, counted: Recount, before: Sequence[Before]) -> Iterator[PublicFrequencies]:
    """What earlier versions told of the same exact counts, of the same values; where known, of the same source."""
    exact = {cell: count for cell, count in counted.counts.items() if count}
    for one in before:
        of_these = (one.public.secret, one.public.inputs) == (public.secret, public.inputs)
        same_source = one.source in ("", counted.sha256)
        if of_these and same_source and exact == {cell: count for cell, count in one.counts.items() if count}:
            yield one.public


def _drawn_once(public: PublicFrequencies, counted: Recount, before: Sequence[Before]) -> Iterator[Claim]:
    """That the same counts of one source have the same noise: on other counts a key of their own gives other noise."""
    settings = ("epsilon", "epsilon_counts", "delta", "beta")
    for told in _published_of(public, counted, before):
        alike = all(getattr(told, name) == getattr(public, name) for name in settings)
        words = "was drawn again for the same counts, which tells more of them"
        yield claim("noise", not alike or told.noisy == public.noisy, words)


def _spent(
    public: PublicFrequencies, said: SpecText, before: Sequence[Before], made_of: tuple[str, str], first: bool
) -> Iterator[Claim]:
    most, (source, snapshot) = said.frequencies.max_epsilon, made_of
    yield claim(
        "spent", most is None or public.spent <= most, f"is {public.spent!r}, beyond the max_epsilon of {most!r}"
    )
    # One source, or the same records in another file, is one and the same people, whoever says that they are others.
    alike = [
        (told.source, told.public)
        for told in before
        if said.people == "same" or told.source == source or told.snapshot == snapshot
    ]
    if first and not before and said.people != "same":
        yield same("epsilon", public.spent, public.epsilon)
        return
    # Noise that is used again is spent once: that of one source. Versions that are gone, or of other series, may have
    # spent more.
    draws: dict[Any, float] = {}
    for of, one in (*alike, (source, public)):
        draws |= {(of, drawn): cost for drawn, cost in one.draws.items()}
    least = math.fsum(draws.values())
    words = f"is {public.spent!r}, and the versions that are there have spent {least!r}"
    yield claim("epsilon", public.spent >= least * (1 - 1e-12), words)


def disclosure_claims(finished: FinishedFolder) -> list[Claim]:
    """The frequencies keep the rules of disclosure control, unless the spec asks only for a report."""
    counted = finished.public
    # Nothing is published of the secrets of a part but what those of its class are.
    return rule_claims(counts_of_classes(counted.counts) if counted.having else counted.counts, finished.spec_text)


def rule_claims(counts: Mapping[tuple[Symbol, Symbol], int], said: SpecText) -> list[Claim]:
    """Whether counts by (secret, published combination) keep the rules; where they are only told of, they hold.

    Parameters
    ----------
    counts : mapping
        Public counts of the cells that are not empty.
    said : SpecText
    """
    asked = said.section("disclosure")
    if said.threshold is None and not _refuses(asked, said):
        return []
    # What is grouped for a threshold keeps it, whatever is only reported.
    least = max(int(asked.get("minimum_cell", 10)), said.threshold or 1)
    share = _fraction(asked.get("dominance", _dominance(said)))
    alone = _fraction(asked.get("unique_share", 0.0))
    of_secret: Counter[Symbol] = Counter()
    of_published: Counter[Symbol] = Counter()
    for (s, x), number in counts.items():
        of_secret[s] += number
        of_published[x] += number
    records = of_secret.total()
    small = sum(0 < number < least for number in counts.values())
    most = {s: _most(share, Fraction(number, records), said) for s, number in of_secret.items()}
    dominated = sum(Fraction(number, of_published[x]) > most[s] for (s, x), number in counts.items() if number)
    lone = sum(number == 1 for number in of_published.values())
    return [
        claim("minimum cell", small == 0, f"is below {least:,} records in {small:,} cells"),
        claim("dominance", dominated == 0, f"of one secret value is above the rule in {dominated:,} combinations"),
        claim("uniqueness", lone <= alone * records, f"is above the rule: {lone:,} records are alone"),
    ]


def _most(share: Fraction, of_all: Fraction, said: SpecText) -> Fraction:
    """The largest share of a secret in a combination, given that of all records."""
    if said.class_column is None:
        # A secret that so many records have anyway is no news of one combination.
        return Fraction(1) if of_all > share else share
    # A class may take away this share of the doubt.
    return Fraction(math.floor(10_000 * (of_all + share * (1 - of_all))), 10_000)


def _dominance(said: SpecText) -> float:
    """What holds where the text says nothing: more in classes of records whose secret is published."""
    return 0.995 if said.class_column is not None and said.released[:-1] != said.whole else 0.95


def expected_rules(said: SpecText) -> dict[str, Any]:
    """What the data package has to say of the rules."""
    asked = said.section("disclosure")
    return {
        "minimumCell": int(asked.get("minimum_cell", 10)),
        "dominance": float(asked.get("dominance", _dominance(said))),
        "uniqueShare": float(asked.get("unique_share", 0.0)),
        "onBreach": "refuse" if _refuses(asked, said) else "report",
    }


def _refuses(asked: Mapping[str, Any], said: SpecText) -> bool:
    """Whether a breach refuses the release: as it says, and if it does not, unless there is noise."""
    stated = asked.get("on_breach")
    return not said.has_noise if stated is None else stated == "refuse"


def _fraction(share: float) -> Fraction:
    return Fraction(Decimal(str(share)))
