"""What the public report tells, held against what follows from the recounted records, the weights and the spec."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from funnel.alphabet import SEPARATOR
from funnel.audit.files import read_json
from funnel.pipeline.expectations.accuracy_claims import accuracy_claims, utility_share
from funnel.pipeline.expectations.claims import Claim, all_of, claim, near, near_nats, same
from funnel.pipeline.expectations.spec_text import SpecText
from funnel.recount.balance import is_invariant
from funnel.recount.drawn_numbers import plain_intervals, plain_numbers
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.plain_distributions import NOISE, Distributions, public_level, share_step, step_above
from funnel.recount.promise import Promise
from funnel.spec import ReleaseSpec

if TYPE_CHECKING:
    from funnel.pipeline.expectations.checks import Finished

# Relatively, of a level that is published on a grid.
_TOLERANCE = 1e-9


def report_claims(finished: Finished) -> list[Claim]:
    """Shares, lifts, errors and the comparison in the report follow from the public counts and the spec."""
    numbers, protocol, public = read_json(finished.folder.numbers), finished.protocol, finished.frequencies
    distributions, said, weights = (
        finished.distributions,
        finished.spec_text,
        class_weights(finished.settled, finished.spec_text),
    )
    checks = [(one.check_name, str(one.description)) for one in finished.declared()]
    before = (
        None if finished.taken_over else [read_json(one.numbers) for one in finished.earlier if one.numbers.is_file()]
    )
    figures, compared = numbers["figures"], public is None and finished.versions is None
    drawn = finished.draws_before
    told = [(one["name"], one["description"]) for one in numbers["judged"]]
    return [
        *([] if drawn is None else [same("earlier draws", numbers["earlier_releases"], drawn)]),
        same("unit", numbers["unit"], said.unit),
        *_grouping(numbers, finished),
        same("values of the secret", numbers["secret"]["values"], len(distributions.recount.secret)),
        all_of(
            "figures",
            [
                *_figures(numbers, distributions, said, public),
                # How draws were compared would tell how many histories there are, or of true values.
                same("consistency", figures["consistency"] is None, not compared),
                *_history(figures, finished, said.promise),
                *_kept(numbers, before),
            ],
        ),
        all_of("frequencies", [*_frequencies(numbers, distributions), *_protection(numbers, public, said)]),
        all_of(
            "accuracy",
            accuracy_claims(
                numbers,
                distributions,
                finished.recount.rows,
                is_invariant(protocol),
                None if public is None or public.departures is None else public.departures.scale,
            ),
        ),
        all_of("weighted", _weighted(numbers, distributions, said, weights)),
        all_of("lifts", _lifts(numbers, distributions)),
        all_of("comparison", _chosen(numbers, finished.alone or distributions, said)),
        claim("checks", told == checks, "are not those that the release is judged by"),
    ]


def _grouping(numbers: Mapping[str, Any], finished: Finished) -> Iterator[Claim]:
    """What grouping for a threshold left; nothing is told where it left everything."""
    stated = numbers["grouping_kept"]
    if (left := finished.grouping_kept) is not None:
        step = share_step(finished.distributions.recount.rows)
        yield near("grouping_kept", 1.0 if stated is None else stated, left, step)


def _history(figures: Mapping[str, Any], finished: Finished, promise: Promise) -> Iterator[Claim]:
    """How many versions there are, and shares of people and levels no finer than all others."""
    found = figures["history"]
    yield same("versions", None if found is None else found["versions"], finished.versions)
    if found is not None:
        step, observers = share_step(finished.public.rows), finished.observers
        most = max(one.outside for one in observers if one.bounded)
        yield near("outside_at_most", found["outside_at_most"], _share_above(most, step), NOISE)
        own = finished.stated_history.get("own")
        yield claim("own", (found["own"] is None) == (own is None), "is told where nobody is followed, or not told")
        if own is not None:
            # The claims about the register hold it to what the register tells.
            yield near("own", found["own"], own, step)
        rare = finished.stated_history.get("rare")
        yield claim("rare", (found["rare"] is None) == (rare is None), "is told of one row a person, or not told")
        if rare is not None:
            yield near("rare", found["rare"], rare / finished.public.rows, step)
        yield near("share_alone", found["share_alone"], 0.0 if finished.alone is None else finished.alone.share, step)
        budget = float(promise.budget)
        told = found["observers"]
        exact = [(one.observer, one.secret_of, one.bounded) for one in observers]
        yield same("observers", [(one["observer"], one["secret_of"], one["bounded"]) for one in told], exact)
        for said, one in zip(told, observers, strict=False):
            who = f"of {one.observer}" + ("" if one.secret_of is None else f" of the secret in {one.secret_of}")
            for name, level in (("level", one.level), ("level_of_all", one.of_all)):
                # A level on the grid may be a little above or below it.
                near_by = [None if level is None else level * factor for factor in (1 - _TOLERANCE, 1 + _TOLERANCE)]
                ways = [_level_above(one, budget) for one in near_by]
                wrong = f"is {said[name]!r}, which is not what follows from the register, {ways[-1]!r}"
                yield claim(f"{name} {who}", said[name] in ways, wrong)
            yield near(f"outside_at_most {who}", said["outside_at_most"], _share_above(one.outside, step), NOISE)


def _share_above(share: float, step: float) -> float:
    return min(1.0, max(1, math.ceil(share / step)) * step)


def _level_above(level: float | None, budget: float) -> float | str:
    """The level in nats that is published."""
    return "infinite" if level is None else public_level(level, budget)


def _kept(numbers: Mapping[str, Any], before: Sequence[Mapping[str, Any]] | None) -> Iterator[Claim]:
    """What is told again of earlier versions is what their own reports tell, and of this one its own figures."""
    told = list(numbers["kept"])
    if numbers["figures"]["history"] is None:
        yield same("kept by versions", told, [])
        return
    yield same("kept by this version", told[-1] if told else None, _own_line(numbers))
    if before is not None:
        known = [_own_line(one) for one in before if one["figures"].get("history") is not None]
        other = [one["version"] for one in told[:-1] if one not in known]
        yield claim("kept by earlier versions", not other, f"is not what {', '.join(other)} tells of itself")


def _own_line(numbers: Mapping[str, Any]) -> dict[str, Any]:
    figures = numbers["figures"]
    return {
        "version": numbers["version"],
        "share": figures["share"],
        "share_alone": figures["history"]["share_alone"],
    }


def _weighted(
    numbers: Mapping[str, Any], distributions: Distributions, said: SpecText, weights: Mapping[str, Fraction]
) -> Iterator[Claim]:
    weight = said.settings.get("weight")
    columns: dict[str, dict[tuple[str, str], int]] = {}
    if weight is not None:
        at = said.publish.index(weight)
        for symbol, count in distributions.inputs.items():
            for j, column in enumerate(said.publish):
                if j != at:
                    pairs = columns.setdefault(column, {})
                    pairs[symbol[j], symbol[at]] = pairs.get((symbol[j], symbol[at]), 0) + int(count)
    yield from weighted_claims(numbers.get("weighted"), weight, weights, columns)


def _protection(numbers: Mapping[str, Any], public: PublicFrequencies | None, said: SpecText) -> Iterator[Claim]:
    stated = numbers["frequencies"]
    yield same("covers_noise", stated.get("covers_noise"), None if public is None else said.promise.covers_noise)
    together = None if public is None else said.robust
    yield same("covers_versions", stated.get("covers_versions"), together)
    if public is not None:
        # Counted exactly, they would tell of single people.
        yield same("dropped", numbers["source"]["dropped"], None)


def _figures(
    numbers: Mapping[str, Any], distributions: Distributions, said: SpecText, public: PublicFrequencies | None
) -> Iterator[Claim]:
    figures, estimation, n = numbers["figures"], numbers["estimation"], distributions.recount.rows
    step = share_step(n)
    yield same("outside", figures["outside"], distributions.outside if public is None else None)
    yield same("chosen by", numbers["utility"], said.utility)
    yield near("guess_accuracy", figures["guess_accuracy"], distributions.guess, step)
    yield near("prior_guess_accuracy", figures["prior_guess_accuracy"], distributions.prior_guess, step)
    yield _two_digits("secret_information", figures["secret_information"], distributions.secret_information)
    yield same("records of the estimate", estimation["records"], n)
    yield same("cells", estimation["cells"], distributions.recount.cells)


def _two_digits(name: str, stated: float, exact: float) -> Claim:
    """That a figure is the exact one to two digits, and has no more; below all noise it is as good as nothing."""
    unit = 0.0 if exact <= NOISE else 10.0 ** (math.floor(math.log10(exact)) - 1)
    told = abs(stated - exact) <= unit / 2 + NOISE and (unit == 0 or float(f"{stated:.2g}") == stated)
    return claim(name, told, f"is {stated!r}, which is not what follows from the source")


def _chosen(numbers: Mapping[str, Any], distributions: Distributions, said: SpecText) -> Iterator[Claim]:
    """What is said of the chosen mechanism: the others are not computed again, so none of them may be there."""
    step, told = share_step(distributions.recount.rows), distributions.information
    chosen = numbers["compared"]
    yield same("mechanisms", [row["mechanism"] for row in chosen], [numbers["mechanism"]["name"]])
    for row in chosen:
        # By anything else, what is told of mechanisms is its share, whichever of the two is read.
        counted = is_invariant({"mechanism": row["mechanism"]})
        explained = (
            utility_share(distributions, counted) if numbers["utility"] == "estimation" else distributions.explained
        )
        yield near_nats("utility", row["utility"], told.utility if explained is None else explained, step)
        yield near("share", row["share"], distributions.share if explained is None else explained, step)
        if (certificate := row["certificate"]) is not None:
            by_class = distributions.recount.published_columns[-1:] == ("record_class",)
            kind = ("classes" if by_class else "unchanged") if counted else "kept"
            yield claim("certificate", certificate["of"] == kind, f"is not of records {kind}")
            yield same("weights", certificate["weights"], said.weights if counted else None)
            gap, most = certificate["gap"], round(row["share"] + certificate["gap"], 12)
            digits = near("digits", most, most, step) if kind == "kept" else same("digits", gap, float(f"{gap:.0e}"))
            yield digits


def _frequencies(numbers: Mapping[str, Any], distributions: Distributions) -> Iterator[Claim]:
    n = distributions.recount.rows
    step = share_step(n)
    for kind, rows, share, known in (
        ("secret", numbers["beliefs"]["rows"], "prior", distributions.secrets),
        ("input", (numbers["accuracy"] or {"rows": []})["rows"], "share", distributions.inputs),
    ):
        counts = {SEPARATOR.join(symbol): count for symbol, count in known.items()}
        for row in rows:
            if row["label"] not in counts:
                yield Claim(f"{kind} {row['label']!r}", "does not occur")
            else:
                yield near(f"share of {kind} {row['label']!r}", row[share], counts[row["label"]] / n, step)
    heat = numbers["heat"]
    places = {SEPARATOR.join(symbol): y for y, symbol in enumerate(distributions.released.outputs)}
    columns = {SEPARATOR.join(symbol): column for symbol, column in distributions.weights.items()}
    # The last line may be of all other outputs together.
    for label, shares in zip(heat["outputs"], heat["shares"], strict=False):
        for x, share in zip(heat["inputs"], shares, strict=True):
            exact = columns[x][places[label]] / distributions.released.denominator
            near_enough = abs(share - exact) <= 0.001 + NOISE
            yield claim(f"probability of {label!r} for {x!r}", near_enough, f"is {share!r}, not that of the weights")


def _lifts(numbers: Mapping[str, Any], distributions: Distributions) -> Iterator[Claim]:
    """Every lift that is told, within a step of the exact one, by its place."""
    secrets = {SEPARATOR.join(symbol): symbol for symbol in distributions.recount.secret}
    outputs = {SEPARATOR.join(symbol): y for y, symbol in enumerate(distributions.released.outputs)}
    table = numbers["lifts"]["table"]
    told = [(one["secret"], one["output"], one["cell"]["lift"]) for one in numbers["lifts"]["strongest"]]
    if table is not None:
        told += [
            (s, row["output"], cell["lift"])
            for row in table["rows"]
            for s, cell in zip(table["secrets"], row["cells"], strict=True)
        ]
        yield claim("table", {*table["secrets"]} == {*secrets}, "is not about the secrets that occur")
        yield claim("table", [row["output"] for row in table["rows"]] == [*outputs], "is not about all outputs")
    for s, y, lift in told:
        if s not in secrets or y not in outputs:
            yield Claim(f"lift of {s!r} given {y!r}", "is about nothing that occurs")
        elif lift is not None:
            exact = distributions.lift(secrets[s], outputs[y])
            close = exact is not None and abs(lift - exact) <= _coarseness(exact, distributions, secrets[s], outputs[y])
            # Finer, it would tell counts of people.
            fine = close and float(f"{lift:.3g}") == lift
            yield claim(f"lift of {s!r} given {y!r}", fine, f"is told as {lift!r}, which it is not")


def _coarseness(lift: float, distributions: Distributions, s: tuple[str, ...], y: int) -> float:
    """How far a lift may be from the exact one: two digits, and ten of the records expected with both."""
    if lift == 0:
        return 0.0
    whole = distributions.output_masses[y] / distributions.whole
    expected = distributions.secrets[s] * whole
    digits = 10.0 ** (math.floor(math.log10(lift)) - 1)
    # The step is that of the public frequencies, which may be off by half; what is less than a step is told as one.
    return max(digits, step_above(20 / expected))


# As documented: so many values of each column.
_MOST = 30

Pairs = Mapping[tuple[str, str], int]
"""Records by value of a column and class of weights."""


def class_weights(settled: ReleaseSpec, said: SpecText) -> dict[str, Fraction]:
    """What every class of the weights that the text names stands for; nothing without weights."""
    weight = said.settings.get("weight")
    if weight is None:
        return {}
    labels = [*plain_intervals(settled, weight)]
    told = zip(labels, plain_numbers(settled, weight, labels), strict=True)
    return {label: number for label, number in told if number is not None}


def weighted_claims(
    told: Mapping[str, Any] | None,
    weight: str | None,
    numbers: Mapping[str, Fraction],
    columns: Mapping[str, Pairs],
) -> Iterator[Claim]:
    """What holds of the weighted frequencies of a report.

    Parameters
    ----------
    told : mapping or None
    weight : str or None
        The column of weights that the text of the spec names.
    numbers : mapping of class to Fraction
        What each class stands for.
    columns : mapping of column to mapping of (value, class) to int
        Counts of every other published column, in their order.
    """
    if weight is None or told is None:
        yield same("weighted frequencies", told is None, weight is None)
        return
    yield same("the column of weights", told["weight"], weight)
    yield same("weighted columns", [one["column"] for one in told["columns"]], [*columns])
    for one in told["columns"]:
        if (pairs := columns.get(one["column"])) is not None:
            yield from _column(one, told["step"], pairs, numbers)


def _column(told: Mapping[str, Any], step: object, pairs: Pairs, numbers: Mapping[str, Fraction]) -> Iterator[Claim]:
    people: dict[str, int] = {}
    weighs: dict[str, Fraction] = {}
    for (value, of_class), count in pairs.items():
        people[value] = people.get(value, 0) + count
        weighs[value] = weighs.get(value, Fraction()) + count * numbers.get(of_class, Fraction())
    n, whole, heaviest = sum(people.values()), sum(weighs.values(), Fraction()), max(numbers.values())
    right = share_step(max(1, int(whole / heaviest)) if heaviest > 0 else n)
    yield same("the step of weighted shares", step, right)
    enough = [value for value, count in people.items() if count > 0]
    yield same(f"values of {told['column']!r}", told["total"], len(enough))
    labels = [row["label"] for row in told["rows"]]
    listed = {*labels} <= {*enough} and len({*labels}) == len(labels) == min(_MOST, len(enough))
    yield claim(f"values of {told['column']!r}", listed, "are not those that are common enough")
    yield claim(f"order of {told['column']!r}", _is_falling(told["rows"]), "is not by their shares")
    for row in told["rows"] if listed else ():
        value = row["label"]
        yield near(f"share of {value!r}", row["share"], people[value] / n, share_step(n))
        exact = float(weighs[value] / whole) if whole else 0.0
        yield near(f"weighted share of {value!r}", row["weighted"], exact, right)


def _is_falling(rows: Sequence[Mapping[str, Any]]) -> bool:
    keys = [(-row["share"], row["label"]) for row in rows]
    return keys == sorted(keys)
