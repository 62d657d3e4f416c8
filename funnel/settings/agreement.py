"""What goes with what in a spec: one table of rules, all of which are held against it before anything is counted.

A rule yields a sentence for each contradiction: the settings, why they do not go together, and the smallest change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from funnel.protocol import INVARIANT
from funnel.settings.column_agreement import (
    columns_agree,
    impossible_agrees,
    labels_agree,
    numbers_agree,
    replicates_agree,
    utility_agrees,
    weight_agrees,
)
from funnel.settings.count_protection import PROTECTIONS
from funnel.settings.whole_record_agreement import DIFFERENT, FOR_KNOWN, classes_agree, held_out_agrees, known_agrees
from funnel.wording import did_you_mean, same_name, toml_text

if TYPE_CHECKING:
    from funnel.guarantees import Guarantee
    from funnel.spec import ReleaseSpec

ROBUST_OVER_VERSIONS = ("rlip", "ralip", "rldp", "rpml", "rsrlip", "rattribute")
"""Robust guarantees that can be kept over several versions about the same people."""

# Guarantees that can be kept over several versions about the same people.
_OVER_VERSIONS = ("lip", "alip", "ldp", "pml", "perfect", *ROBUST_OVER_VERSIONS, *FOR_KNOWN)
# The settings of [frequencies] that only one protection reads.
_PROTECTION_OF = {name: one for one in reversed([*PROTECTIONS.values()]) for name in one.settings}
# Settings of [history] that are about the same people.
_OF_THE_SAME = ("register", "budget_fraction", "robust", "observers", "secrets")
NO_ROWS = (
    "not there yet for several rows of one person under noise: rows would be right on average only where they follow "
    "one another as the noisy tables say"
)
"""Why rows of one person are not drawn by the invariant mechanism where frequencies have noise."""


@dataclass(frozen=True)
class Rule:
    """Settings that have to go together.

    Attributes
    ----------
    settings : tuple of str
        As a spec names them.
    broken : callable
        From a spec to a sentence for each contradiction.
    """

    settings: tuple[str, ...]
    broken: Callable[[ReleaseSpec], Iterator[str]]


def conflicts(spec: ReleaseSpec) -> tuple[str, ...]:
    """All contradictions of a spec, each in one sentence; none of a spec that can be released."""
    return tuple(dict.fromkeys(sentence for rule in RULES for sentence in rule.broken(spec)))


def together(sentences: tuple[str, ...]) -> str:
    """Several sentences as one message: one as it is, more with their numbers."""
    if len(sentences) == 1:
        return sentences[0]
    return f"{len(sentences)} contradictions: " + " ".join(f"({k}) {one}." for k, one in enumerate(sentences, 1))


def _keys(spec: ReleaseSpec) -> Iterator[str]:
    """A record key or a unit that is data, and people that nothing tells apart."""
    if spec.record_key is None and "record_secret" in spec.model_fields_set:
        yield ("says where a record_secret is, but names no record_key, so that nothing would be drawn with it")
    for what, columns in (("record key", spec.record_key), ("unit", spec.unit)):
        for column in columns or ():
            if any(same_name(column, other) for other in spec.columns):
                yield (
                    f"the column {column!r} is a {what}, and secret or published as well; a {what.split()[-1]} "
                    "identifies a person, so it is neither"
                )
    if spec.history is not None and spec.history.people == "same" and spec.record_key is None:
        yield (
            '[history] people = "same" needs a record_key, by which a person is known again in a later version; '
            "name the columns that identify a person"
        )
    asked = spec.register is not None and spec.history is not None and spec.history.robust
    if asked and (not spec.frequencies.kind.is_noisy or spec.unit is not None):
        what = "rows of a unit" if spec.unit is not None else "frequencies without noise"
        yield (
            f"[history] robust is about what noise leaves open of how people changed, and there is nothing of that "
            f"kind for {what}; take robust out"
        )
    if spec.is_robust_over_versions and spec.history is not None and spec.history.secrets == "all":
        yield (
            '[history] secrets = "all" bounds what later versions tell of the secret of an earlier one, which cannot '
            'be proven yet for all that noise, or a sample, leaves open; write secrets = "current", or take out robust '
            "in [history] and name a guarantee that is not robust"
        )
    if spec.asks_for_movers and (spec.frequencies.kind.is_noisy or spec.unit is not None):
        what = "the rows of a unit" if spec.unit is not None else "frequencies with noise"
        yield (
            f'[history] observers names "mover-stayer", for whom changes have to be counted by whether a person '
            f'changed before, which they are not for {what}; write observers = ["transitions"]'
            + ("" if spec.unit is not None else ', or [frequencies] protection = "none"')
        )
    if spec.register is not None and spec.unit is not None and set(spec.unit) != set(spec.record_key or ()):
        yield (
            'the unit is not the record_key, and with [history] people = "same" a person is known again by the '
            "record_key; name the same columns in both"
        )


def _published_secret(spec: ReleaseSpec) -> Iterator[str]:
    """A secret that is published in any way but that which a bound is made for."""
    if not spec.publishes_secret:
        return
    # Imported here: settings are read where no guarantee is.
    from funnel.guarantees import parse_guarantee, protects_published_secret

    column = next(column for column in spec.publish if column in spec.secret)
    protected = protects_published_secret(parse_guarantee(spec.guarantee.canonical))
    if not protected or spec.mechanism.name != INVARIANT:
        over_rows = spec.register is not None or spec.unit is not None
        write = "" if over_rows else f'write guarantee = "attribute:1.0" and mechanism = "{INVARIANT}", or '
        yield (
            f"the column {column!r} is both secret and published, and under {spec.guarantee.canonical} with mechanism "
            f"{spec.mechanism.name} an observer who finds a record by its other columns would learn its secret; {write}"
            "take it out of publish"
        )
    if spec.publish[: len(spec.secret)] != spec.secret or not spec.inputs:
        columns = ", ".join(map(toml_text, (*spec.secret, *spec.inputs)))
        more = "" if spec.inputs else ", and at least one column more"
        yield (
            f"publish names the secret column {column!r}, and the secret columns are published together, before all "
            f"others; write publish = [{columns}]{more}"
        )


def _over_versions(spec: ReleaseSpec) -> Iterator[str]:
    """What cannot be kept, or drawn, over versions about the same people."""
    if spec.register is None:
        return
    if spec.mechanism.name == INVARIANT and spec.unit is not None and spec.frequencies.kind.is_noisy:
        yield (
            f'mechanism = "{INVARIANT}" is {NO_ROWS}; write mechanism = "optimal", protection = "threshold" in '
            "[frequencies], or take unit out"
        )
    # Imported here: settings are read where no guarantee is.
    from funnel.guarantees import parse_guarantee

    if parse_guarantee(spec.guarantee.canonical).settings.get("set") == "chi2":
        yield (
            f'guarantee = "{spec.guarantee.canonical}" cannot be kept over versions about the same people: how people '
            f'change is bounded in boxes alone; write guarantee = "{_over_boxes(spec)}", or {DIFFERENT}'
        )
    elif spec.guarantee.kind not in _OVER_VERSIONS:
        yield (
            f'guarantee = "{spec.guarantee.canonical}" is not there yet over versions about the same people: one bound '
            "on what is learned of the secret is kept over them, and not several, nor one on averages; write guarantee "
            f'= "{_kept(spec)}", or {DIFFERENT}'
        )
    elif spec.guarantee.kind in FOR_KNOWN:
        if spec.unit is not None and spec.frequencies.kind.is_noisy:
            yield (
                f'guarantee = "{spec.guarantee.canonical}" is not there yet for several rows of one person under '
                "noise: nothing that is published says how many rows a person has, and each is bounded for who knows "
                f'columns of any other; write guarantee = "{_kept(spec)}", protection = "threshold" in [frequencies], '
                "or take unit out"
            )
        yield from _known_over_versions(spec)
    if spec.mechanism.reads_secret:
        yield (
            "reads_secret = true in [mechanism] lets a protocol read the secret, which cannot be drawn given earlier "
            f"versions about the same people; take reads_secret out, or write {DIFFERENT}"
        )


def _known_over_versions(spec: ReleaseSpec) -> Iterator[str]:
    """What observers who know published columns of everybody are not bounded for over versions."""
    if spec.publishes_secret:
        yield (
            f'guarantee = "{spec.guarantee.canonical}" is not there yet for a secret that is published over versions '
            "about the same people: what each version changes of it adds up for an observer who knows the other "
            f"columns; take it out of publish, or write {DIFFERENT}"
        )
    if spec.history is not None and spec.history.robust and spec.guarantee.kind not in ROBUST_OVER_VERSIONS:
        yield (
            f'robust in [history] is not there yet for guarantee = "{spec.guarantee.canonical}": what noise leaves '
            "open is bounded for observers who know none of the published columns; take robust out of [history]"
        )


def _over_boxes(spec: ReleaseSpec) -> str:
    """The same guarantee over boxes around the counts."""
    return ",".join(part for part in spec.guarantee.canonical.split(",") if part != "chi2")


def _kept(spec: ReleaseSpec) -> str:
    """The guarantee nearest to that of a spec which versions about the same people, or rows of one, can keep."""
    from funnel.guarantees import parse_guarantee

    part = spec.guarantee.parts[0] if spec.guarantee.parts else spec.guarantee.canonical
    kind = part.partition(":")[0]
    of_noise = spec.unit is not None and spec.frequencies.kind.is_noisy
    known = not of_noise and not spec.publishes_secret and kind in FOR_KNOWN
    if kind in ROBUST_OVER_VERSIONS and (kind not in FOR_KNOWN or known):
        return part
    return f"lip:{parse_guarantee(part).budget or 1.0!r}"


def _bound(spec: ReleaseSpec) -> Iterator[str]:
    """A guarantee that the mechanism, or the columns, are not for."""
    # Imported here: settings are read where no guarantee is.
    from funnel.guarantees import parse_guarantee
    from funnel.guarantees.by_event import SideChannels
    from funnel.guarantees.several import parts_of
    from funnel.mechanisms import mechanism

    parts, name = parts_of(parse_guarantee(spec.guarantee.canonical)), spec.mechanism.name
    for part in parts:
        if name == INVARIANT and not _is_linear(part):
            yield (
                f'mechanism = "{INVARIANT}" needs a bound that is linear in what one output discloses, and {part} is '
                'not; write guarantee = "lip:1.0", or mechanism = "auto"'
            )
        if isinstance(part, SideChannels) and len(spec.publish) == 1:
            nominal = str(part).replace("srlip", "lip")
            yield (
                f"{part} protects against observers who know some of several published columns, and only "
                f'{spec.publish[0]!r} is published; publish two columns, or write guarantee = "{nominal}"'
            )
    if name not in ("auto", INVARIANT) and mechanism(name).reads_secret and not spec.mechanism.reads_secret:
        yield (
            f"mechanism {name} reads the secret, which nothing allows it; write reads_secret = true in [mechanism], or "
            'name = "auto"'
        )


def _is_linear(part: Guarantee) -> bool:
    """Whether a guarantee asks for half-spaces of every row of a channel alone."""
    from funnel.guarantees import RLDP, ConeGuarantee, Guarantee

    if isinstance(part, RLDP):
        # The χ² set has no finite description by half-spaces that is proven.
        return part.over_boxes
    return isinstance(part, ConeGuarantee) or type(part).over_set is not Guarantee.over_set


def _publishing(spec: ReleaseSpec) -> Iterator[str]:
    """No column, or columns to leave out of a list that does not name them."""
    if not spec.publish and not spec.groups.auto:
        yield "publish must name at least one column"
    if spec.groups.exclude and not spec.groups.auto:
        yield '[groups] exclude names columns to leave out, which is for publish = "auto"; take exclude out'


def _history(spec: ReleaseSpec) -> Iterator[str]:
    """Settings about the same people where they are others."""
    if spec.history is None or spec.history.people == "same":
        return
    for name in _OF_THE_SAME:
        if name in spec.history.model_fields_set:
            yield (
                f'[history] gives a {name}, which is for people = "same"; take it out, or set people if versions are '
                "about the same people"
            )


def _protection(spec: ReleaseSpec) -> Iterator[str]:
    """Settings of another protection than that of the frequencies."""
    for name, kind in _PROTECTION_OF.items():
        if name in spec.frequencies.model_fields_set and spec.frequencies.kind != kind:
            yield (
                f'[frequencies] gives {name}, which is for protection = "{kind.name}"; set protection or take {name} '
                "out"
            )


def _weights_of_values(spec: ReleaseSpec) -> Iterator[str]:
    """Weights of unchanged values where no mechanism leaves any unchanged by them."""
    weights, name = spec.mechanism.weights, spec.mechanism.name
    if weights != "root" and name != INVARIANT:
        yield (
            f'[mechanism] weights = "{weights}" is for records that an invariant protocol leaves unchanged, and name '
            f'is "{name}"; write name = "{INVARIANT}", or take weights out'
        )


def _engine(spec: ReleaseSpec) -> Iterator[str]:
    if spec.engine.scheduler is not None and spec.engine.kind != "dask":
        yield '[engine] names a scheduler, which is for kind = "dask"; set kind or take scheduler out'


def _order(spec: ReleaseSpec) -> Iterator[str]:
    """An order of records that is none."""
    if spec.source.format == "sql" and not spec.output.shuffle:
        yield (
            "[output] shuffle = false is for sources whose rows have an order of their own: those of a database are "
            "read in the order of their values, the secret among them; take shuffle out"
        )


def _disclosure(spec: ReleaseSpec) -> Iterator[str]:
    """Rules that cannot be asked for."""
    if spec.frequencies.kind.is_noisy and spec.disclosure.on_breach == "refuse":
        yield (
            '[disclosure] on_breach = "refuse" is for frequencies without noise: whether noisy ones break a rule '
            "is chance, and drawing them again until they do not would spend epsilon each time; take on_breach out"
        )
    for column in spec.disclosure.ordered:
        if column not in spec.categories:
            yield (
                f"[disclosure] ordered names {column!r}, whose values [categories] does not list in their order"
                f"{did_you_mean(column, tuple(spec.categories))}"
            )


RULES = (
    Rule(
        (
            *("record_key", "record_secret", "unit", "secret", "publish"),
            *("[history] people", "[history] robust", "[history] observers", "[history] secrets"),
            "[frequencies] protection",
        ),
        _keys,
    ),
    Rule(("secret", "publish", "[recode]", "[categories]", "[source] missing_label"), columns_agree),
    Rule(("secret", "publish", "guarantee", "mechanism"), _published_secret),
    Rule(("[history] people", "guarantee", "mechanism", "[mechanism] reads_secret"), _over_versions),
    Rule(("guarantee", "mechanism", "[mechanism] reads_secret", "publish"), _bound),
    Rule(
        (
            "publish",
            "[groups] classes",
            "[groups] known",
            "guarantee",
            "mechanism",
            "[frequencies] protection",
            "utility",
        ),
        classes_agree,
    ),
    Rule(("secret", "publish", "[groups] known", "guarantee"), known_agrees),
    Rule(("[groups] held_out", "[groups] known", "guarantee", "[source]", "[recode]"), held_out_agrees),
    Rule(("publish", "[groups] exclude"), _publishing),
    Rule(("[[impossible]]", "secret", "publish", "[recode]", "[categories]"), impossible_agrees),
    Rule(("secret", "publish", "[groups] exclude"), replicates_agree),
    Rule(("[metadata] labels", "publish"), labels_agree),
    Rule(("weight", "publish", "[recode]", "[numbers]"), weight_agrees),
    Rule(("[numbers]", "[recode]", "publish", "[frequencies] protection"), numbers_agree),
    Rule(("utility", "publish", "[numbers]", "[history] people"), utility_agrees),
    Rule(
        tuple(f"[history] {name}" for name in ("people", *_OF_THE_SAME)),
        _history,
    ),
    Rule(("[frequencies] protection", *(f"[frequencies] {name}" for name in _PROTECTION_OF)), _protection),
    Rule(("[mechanism] weights", "mechanism"), _weights_of_values),
    Rule(("[engine] kind", "[engine] scheduler"), _engine),
    Rule(("[source] format", "[output] shuffle"), _order),
    Rule(("[disclosure] on_breach", "[disclosure] ordered", "[frequencies] protection", "[categories]"), _disclosure),
)
"""What goes with what, in the order in which contradictions are told."""
