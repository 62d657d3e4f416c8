"""What the settings of a spec have to agree on: each function refuses, in one sentence, what contradicts itself."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from funnel.protocol import INVARIANT
from funnel.settings.numbers import NumberSettings, drawn_name
from funnel.wording import did_you_mean, nearest, same_name, toml_key, toml_text

if TYPE_CHECKING:
    from funnel.spec import ReleaseSpec


# Guarantees that are kept by classes of records, and those that are where classes follow from other people's.
_BY_CLASS = ("lip", "alip", "ldp", "pml", "attribute")
_BY_GIVEN_CLASS = ("rlip", "ralip", "rldp", "rpml", "rattribute")


def keys_agree(spec: ReleaseSpec) -> None:
    """Refuse a record key or a unit that is data, and people that nothing tells apart."""
    if spec.record_key is None and "record_secret" in spec.model_fields_set:
        raise ValueError(
            "says where a record_secret is, but names no record_key, so that nothing would be drawn with it"
        )
    for what, columns in (("record key", spec.record_key), ("unit", spec.unit)):
        for column in columns or ():
            if any(same_name(column, other) for other in spec.columns):
                raise ValueError(
                    f"the column {column!r} is a {what}, and secret or published as well; a {what.split()[-1]} "
                    "identifies a person, so it is neither"
                )
    if spec.history is not None and spec.history.people == "same" and spec.record_key is None:
        raise ValueError(
            '[history] people = "same" needs a record_key, by which a person is known again in a later version; '
            "name the columns that identify a person"
        )
    if spec.is_robust_over_versions and (spec.frequencies.protection != "noise" or spec.unit is not None):
        what = "rows of a unit" if spec.unit is not None else "frequencies without noise"
        raise ValueError(
            f"[history] robust is about what noise leaves open of how people changed, and there is nothing of that "
            f"kind for {what}; take robust out"
        )
    if spec.register is not None and spec.unit is not None and set(spec.unit) != set(spec.record_key or ()):
        raise ValueError(
            'the unit is not the record_key, and with [history] people = "same" a person is known again by the '
            "record_key; name the same columns in both"
        )


def columns_agree(spec: ReleaseSpec) -> None:
    """Refuse columns that are secret and published where nothing bounds that, and categories of one name."""
    if spec.publishes_secret:
        _require_publishable(spec)
    for column in spec.inputs:
        # Names that differ only in case, spaces or dashes are one column to everybody who reads them.
        alike = next((secret for secret in spec.secret if same_name(column, secret)), None)
        if alike is not None:
            raise ValueError(
                f"secret names {alike!r} and publish {column!r}, which readers would take for one column; take one of "
                "them out, or give one another name in the source"
            )
    for column, recode in spec.recode.items():
        require_listed(spec, "recode", column)
        if _names_other(spec, column):
            if recode.other in recode.bin_labels and recode.other not in recode.group_of:
                raise ValueError(f"[recode] {column!r} has a bin named {recode.other!r}; set other to another text")
        elif "other" in recode.model_fields_set:
            raise ValueError(
                f"[recode.{toml_key(column)}] names other, the category of rarer values, but gives no minimum_count"
            )
        group_of, groups = recode.group_of, recode.groups or {}
        names = {*recode.bin_labels, *([recode.other] if _names_other(spec, column) else [])}
        if recode.bins is not None:
            # What no bin is called, nothing else can be either.
            known = (*recode.bin_labels, spec.source.missing_label, recode.other)
            for value in group_of:
                if value not in known:
                    raise ValueError(
                        f"[recode] {column!r} puts {value!r} into a group, which is none of its bins"
                        f"{did_you_mean(value, known)}"
                    )
        for name in groups:
            if name in names and name not in group_of:
                raise ValueError(
                    f"[recode] {column!r} has a group named {name!r}, as another category is; give the group "
                    "another name"
                )
        names.update(groups)
        names.difference_update(value for value in (spec.source.missing_label,) if value in group_of)
        if spec.source.on_missing == "category" and spec.source.missing_label in names:
            raise ValueError(
                f"[source] missing_label {spec.source.missing_label!r} is also a category made by the recoding of "
                f"{column!r}; set missing_label to another text"
            )
    for column in spec.categories:
        require_listed(spec, "categories", column)
        if spec.has_bins(column):
            raise ValueError(
                f"[categories] {column!r} lists values of a column that [recode] puts into bins, which name all of "
                "them; take one of the two out"
            )

    for column in spec.complete:
        require_listed(spec, "complete", column)
        if column not in spec.categories and not spec.has_bins(column):
            raise ValueError(
                f"complete names {column!r}, and nothing says which values it has; list them in [categories], or give "
                f"bins in [recode.{toml_key(column)}]"
            )


def _require_publishable(spec: ReleaseSpec) -> None:
    """Refuse to publish the secret in any way but that which a bound is made for."""
    # Imported here: settings are read where no guarantee is.
    from funnel.guarantees import parse_guarantee, protects_published_secret

    column = next(column for column in spec.publish if column in spec.secret)
    protected = protects_published_secret(parse_guarantee(spec.guarantee.canonical))
    if not protected or spec.mechanism.name != INVARIANT:
        raise ValueError(
            f"the column {column!r} is both secret and published, and under {spec.guarantee.canonical} with mechanism "
            f"{spec.mechanism.name} an observer who finds a record by its other columns would learn its secret; write "
            f'guarantee = "attribute:1.0" and mechanism = "{INVARIANT}", or take it out of publish'
        )
    if spec.publish[: len(spec.secret)] != spec.secret or not spec.inputs:
        columns = ", ".join(map(toml_text, (*spec.secret, *spec.inputs)))
        more = "" if spec.inputs else ", and at least one column more"
        raise ValueError(
            f"publish names the secret column {column!r}, and the secret columns are published together, before all "
            f"others; write publish = [{columns}]{more}"
        )


def invariant_agrees(spec: ReleaseSpec) -> None:
    """Refuse what an invariant release cannot be about yet."""
    if spec.mechanism.name == INVARIANT and spec.register is not None:
        raise ValueError(
            f'mechanism = "{INVARIANT}" is not there yet for versions about the same people: what a record shows '
            'given earlier versions would not be right on average; write mechanism = "optimal", or [history] people = '
            '"different" if no person is in two versions'
        )


def why_not_by_class(spec: ReleaseSpec) -> str | None:
    """Why the records of a spec cannot be counted and drawn by classes, in one sentence; None if they can."""
    # Imported here: settings are read where no guarantee is.
    from funnel.guarantees import parse_guarantee

    guarantee, given = spec.guarantee.canonical, spec.groups.classes is not None
    if spec.frequencies.protection == "noise" and not given:
        return (
            "which questions tell most of the secret is read off exact counts, which noise would not protect; make "
            'them from other people with funnel classes and write classes = "classes.json" in [groups], or '
            'protection = "threshold" in [frequencies]'
        )
    if parse_guarantee(guarantee).significance is not None and not given:
        return (
            f"{guarantee} is about a population, and questions that are chosen by the same records make them look more "
            "certain than they are; make them from other people with funnel classes and write "
            'classes = "classes.json" in [groups], or guarantee = "lip:1.0"'
        )
    if spec.guarantee.kind not in (*_BY_CLASS, *(_BY_GIVEN_CLASS if given else ())):
        return (
            f'{guarantee} is no bound on what a class of records tells; write guarantee = "lip:1.0", or publish fewer '
            "columns"
        )
    if spec.register is not None:
        return (
            'versions about the same people would have other classes; write [history] people = "different" if no '
            "person is in two versions, or publish fewer columns"
        )
    if spec.utility != "information" or spec.weight is not None or spec.drawn_columns:
        return (
            "utility, weight and numbers that are drawn within intervals are of values that are drawn one by one; take "
            "them out, or publish fewer columns"
        )
    return None


def classes_agree(spec: ReleaseSpec) -> None:
    """Refuse a file of classes where nothing is drawn by classes."""
    if spec.groups.classes is not None and (
        spec.mechanism.name not in (INVARIANT, "auto") or spec.mechanism.reads_secret
    ):
        raise ValueError(
            f"[groups] classes is about records that are drawn by their class, and mechanism {spec.mechanism.name} "
            f'draws values; write mechanism = "{INVARIANT}", or take classes out'
        )


def require_listed(spec: ReleaseSpec, section: str, column: str) -> None:
    """Refuse a section of a column that is not released.

    Whichever of two similar names is misspelt: without the source nobody can tell, so the one in the list, which
    all else follows, is named first.
    """
    if column in spec.columns or (spec.groups.auto and not spec.publish):
        return
    near = nearest(column, spec.columns)
    if near is None:
        raise ValueError(
            f"[{section}] {column!r} is neither secret nor published; add it to publish, or leave the section out"
        )
    listing = "secret" if near in spec.secret else "publish"
    raise ValueError(
        f"{listing} names {near!r} and [{section}] {column!r}, which is neither secret nor published; if they are "
        "one column, write its name in the source in both"
    )


def require_drawable(spec: ReleaseSpec, column: str) -> None:
    """Refuse numbers within intervals where there are none, or where nothing says how they are drawn."""
    what = f'[numbers] draw = "within" of {column!r}'
    if column in spec.secret:
        raise ValueError(f"{what} draws from what is published, and that column is secret; take draw out")
    if not spec.has_bins(column):
        raise ValueError(
            f"{what} draws within the bins of a column, and it has none; give bins under "
            f"[recode.{toml_key(column)}], or take draw out"
        )
    name = drawn_name(column)
    if any(same_name(name, other) for other in spec.columns):
        raise ValueError(f"{what} makes a column {name!r}, and there is one already; publish one of the two")


def _require_means(spec: ReleaseSpec, column: str, numbers: NumberSettings) -> None:
    """Refuse means that are not one for each bin, inside it."""
    edges, means = spec.recode[column].edges if column in spec.recode else (), numbers.means or ()
    if not edges or numbers.range is None:
        raise ValueError(
            f"[numbers] {column!r} has means, which are of bins that are listed under [recode.{toml_key(column)}], "
            "within a range; give both, or take means out"
        )
    ends = (numbers.range[0], *edges, numbers.range[1])
    if len(means) != len(ends) - 1:
        raise ValueError(f"[numbers] {column!r} has {len(means)} means and {len(ends) - 1} bins; give one for each")
    under = float(numbers.step or 0)
    for (low, high), mean in zip(pairwise(ends), means, strict=True):
        if not low <= mean <= (high if high == ends[-1] else high - under):
            raise ValueError(f"[numbers] {column!r} has a mean of {mean} for its bin from {low} to {high}")


def require_weighable(spec: ReleaseSpec) -> None:
    """Refuse weights that are not published, or with nothing beside them."""
    if spec.weight not in spec.publish:
        raise ValueError(
            f"weight names the column {spec.weight!r}, which is not published: weights are one more column under "
            f"the bound, in classes; add it to publish{did_you_mean(str(spec.weight), spec.publish)}"
        )
    if len(spec.publish) < 2:
        raise ValueError("weight names the only published column; publish what is to be weighted, too")


def weight_agrees(spec: ReleaseSpec) -> None:
    """Refuse weights that are not classes of a declared range."""
    if spec.weight is None:
        return
    column, key = spec.weight, toml_key(spec.weight)
    if spec.publish or not spec.groups.auto:
        require_weighable(spec)
    numbers = spec.numbers.get(column)
    if not spec.has_bins(column) or numbers is None or numbers.range is None:
        raise ValueError(
            f"weight is published as classes, and next to a record a weight that is nearly unique is a name; give "
            f"bins under [recode.{key}], and range = [least, largest] under [numbers.{key}]"
        )
    if numbers.range[0] < 0:
        raise ValueError(f"[numbers] {column!r} is a weight, and its range begins below 0")
    if spec.recode[column].groups or spec.recode[column].minimum_count is not None:
        raise ValueError(
            f"[recode.{key}] joins classes of weights, and what is joined stands for no one weight; give fewer bins"
        )


def numbers_agree(spec: ReleaseSpec) -> None:
    """Refuse numbers that do not fit their bins, and a utility that does not fit what is published."""
    for column, numbers in spec.numbers.items():
        require_listed(spec, "numbers", column)
        edges = spec.recode[column].edges if column in spec.recode else ()
        if numbers.range is not None and edges:
            low, high = numbers.range
            if not low < edges[0] or not edges[-1] < high:
                raise ValueError(
                    f"[numbers] {column!r} has a range from {low} to {high}, and [recode] an edge that is not "
                    "inside; change one of the two"
                )
        if numbers.draw is not None:
            require_drawable(spec, column)
        if numbers.means is not None:
            _require_means(spec, column, numbers)
    if spec.utility == "estimation" and spec.register is not None:
        raise ValueError(
            'utility = "estimation" is not there yet for versions about the same people; take utility out, or set '
            '[history] people = "different" if no person is in two versions'
        )
    for column in spec.automatic:
        if column in spec.secret:
            raise ValueError(f'[recode] {column!r} is secret, and bins = "auto" finds what to publish; list its edges')
        ranged = column in spec.numbers and spec.numbers[column].range is not None
        if spec.frequencies.protection == "noise" and not ranged:
            raise ValueError(
                f'[recode] bins = "auto" of {column!r} is made of its range alone where noise protects the '
                f"frequencies; give range = [least, largest] under [numbers.{toml_key(column)}], or list the edges"
            )
    if spec.utility != "variance":
        return
    if len(spec.publish) != 1:
        raise ValueError(
            'utility = "variance" is for one published column of numbers; publish one column, or take utility out'
        )
    if spec.register is not None:
        raise ValueError(
            'utility = "variance" is not there yet for versions about the same people; take utility out, or set '
            '[history] people = "different" if no person is in two versions'
        )
    for column in spec.publish:
        if spec.has_bins(column) and (column not in spec.numbers or spec.numbers[column].range is None):
            raise ValueError(
                f'utility = "variance" needs the range of {column!r}, to know what its first and last bin stand '
                f"for; give range = [least, largest] under [numbers.{toml_key(column)}]"
            )


def disclosure_agrees(spec: ReleaseSpec) -> None:
    """Refuse rules that cannot be asked for."""
    if spec.frequencies.protection == "noise" and spec.disclosure.on_breach == "refuse":
        raise ValueError(
            '[disclosure] on_breach = "refuse" is for frequencies without noise: whether noisy ones break a rule '
            "is chance, and drawing them again until they do not would spend epsilon each time; take on_breach out"
        )
    for column in spec.disclosure.ordered:
        if column not in spec.categories:
            raise ValueError(
                f"[disclosure] ordered names {column!r}, whose values [categories] does not list in their order"
                f"{did_you_mean(column, tuple(spec.categories))}"
            )


def _names_other(spec: ReleaseSpec, column: str) -> bool:
    """Whether there can be such a category."""
    if column in spec.categories or spec.recode[column].minimum_count is not None:
        return True
    return spec.frequencies.protection == "noise" and not spec.has_bins(column)
