"""What settings of columns have to agree on: names, categories, bins, numbers and weights; rules of `agreement`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from funnel.alphabet import CLASS_COLUMN
from funnel.settings.numbers import NumberSettings, drawn_name
from funnel.settings.recode import Recode
from funnel.settings.replicate_weights import replicate_weights, why_refused
from funnel.wording import did_you_mean, nearest, same_name, toml_key

if TYPE_CHECKING:
    from funnel.spec import ReleaseSpec


def columns_agree(spec: ReleaseSpec) -> Iterator[str]:
    """Names of columns that are alike or funnel's own, and categories of one name."""
    for name, columns in (("secret", spec.secret), ("publish", spec.publish)):
        if CLASS_COLUMN in columns:
            yield (
                f"{name} names {CLASS_COLUMN!r}, as funnel names the classes of whole records; give the column another "
                "name in the source"
            )
    for column in spec.inputs:
        # Names that differ only in case, spaces or dashes are one column to everybody who reads them.
        alike = next((secret for secret in spec.secret if same_name(column, secret)), None)
        if alike is not None:
            yield (
                f"secret names {alike!r} and publish {column!r}, which readers would take for one column; take one of "
                "them out, or give one another name in the source"
            )
    # A column that is misspelt is told of once, whatever sections it has.
    sections: dict[str, str] = {}
    for section in ("recode", "categories", "numbers"):
        for column in getattr(spec, section):
            sections.setdefault(column, section)
    for column, section in sections.items():
        yield from _released(spec, section, column)
    for column, recode in spec.recode.items():
        yield from _recoding_agrees(spec, column, recode)
    for column in spec.categories:
        if spec.has_bins(column):
            yield (
                f"[categories] {column!r} lists values of a column that [recode] puts into bins, which name all of "
                "them; take one of the two out"
            )
    for column in spec.complete:
        if column not in spec.columns and (spec.publish or not spec.groups.auto):
            yield (
                f"complete names {column!r}, which is neither secret nor published; add it to publish, or take it out "
                "of complete"
            )
        elif column not in spec.categories and not spec.has_bins(column):
            yield (
                f"complete names {column!r}, and nothing says which values it has; list them in [categories], or give "
                f"bins in [recode.{toml_key(column)}]"
            )


def _recoding_agrees(spec: ReleaseSpec, column: str, recode: Recode) -> Iterator[str]:
    """Categories of a recoded column that have the same name, or are none."""
    if _names_other(spec, column):
        if recode.other in recode.bin_labels and recode.other not in recode.group_of:
            yield f"[recode] {column!r} has a bin named {recode.other!r}; set other to another text"
    elif "other" in recode.model_fields_set:
        yield (f"[recode.{toml_key(column)}] names other, the category of rarer values, but gives no minimum_count")
    group_of, groups = recode.group_of, recode.groups or {}
    names = {*recode.bin_labels, *([recode.other] if _names_other(spec, column) else [])}
    if recode.bins is not None:
        # What no bin is called, nothing else can be either.
        known = (*recode.bin_labels, spec.source.missing_label, recode.other)
        for value in group_of:
            if value not in known:
                yield (
                    f"[recode] {column!r} puts {value!r} into a group, which is none of its bins"
                    f"{did_you_mean(value, known)}"
                )
    for name in groups:
        if name in names and name not in group_of:
            yield (
                f"[recode] {column!r} has a group named {name!r}, as another category is; give the group another name"
            )
    names.update(groups)
    names.difference_update(value for value in (spec.source.missing_label,) if value in group_of)
    if spec.source.on_missing == "category" and spec.source.missing_label in names:
        yield (
            f"[source] missing_label {spec.source.missing_label!r} is also a category made by the recoding of "
            f"{column!r}; set missing_label to another text"
        )


def impossible_agrees(spec: ReleaseSpec) -> Iterator[str]:
    """Combinations of values that are not those of published columns, or of which nobody says which there are."""
    for column in dict.fromkeys(column for listed in spec.impossible for column in listed):
        if column in spec.secret:
            yield (
                f"[[impossible]] names {column!r}, which is secret, and lists published values that do not go "
                "together; take it out"
            )
        elif column not in spec.publish and (spec.publish or not spec.groups.auto):
            yield (
                f"[[impossible]] names {column!r}, which is not published; add it to publish, or leave it "
                f"out{did_you_mean(column, spec.publish)}"
            )
        elif known := _known_labels(spec, column):
            for value in dict.fromkeys(value for listed in spec.impossible for value in listed.get(column, ())):
                if value not in known:
                    yield (
                        f"[[impossible]] lists {value!r} of {column!r}, which is none of its values after "
                        f"recoding{did_you_mean(value, known)}"
                    )
        elif spec.frequencies.kind.is_noisy:
            yield (
                f"[[impossible]] names {column!r}, and nothing says which values it has; list them in [categories], or "
                f"give edges of bins in [recode.{toml_key(column)}]"
            )


def _known_labels(spec: ReleaseSpec, column: str) -> tuple[str, ...]:
    """The values that the spec says a column has, after recoding; none where it does not say which."""
    recode = spec.recode.get(column)
    listed = spec.categories.get(column, () if recode is None else recode.bin_labels)
    if not listed:
        return ()
    groups = {} if recode is None else recode.group_of
    every = (*listed, *groups, spec.other_label(column), spec.source.missing_label)
    return tuple(dict.fromkeys(groups.get(one, one) for one in every))


def numbers_agree(spec: ReleaseSpec) -> Iterator[str]:
    """Numbers that do not fit their bins."""
    for column, numbers in spec.numbers.items():
        edges = spec.recode[column].edges if column in spec.recode else ()
        if numbers.range is not None and edges:
            low, high = numbers.range
            if not low < edges[0] or not edges[-1] < high:
                yield (
                    f"[numbers] {column!r} has a range from {low} to {high}, and [recode] an edge that is not "
                    "inside; change one of the two"
                )
        if numbers.draw is not None:
            yield from _drawable(spec, column)
        if numbers.means is not None:
            yield from _means(spec, column, numbers)
    for column in spec.automatic:
        if column in spec.secret:
            yield f'[recode] {column!r} is secret, and bins = "auto" finds what to publish; list its edges'
        ranged = column in spec.numbers and spec.numbers[column].range is not None
        if spec.frequencies.kind.is_noisy and not ranged:
            yield (
                f'[recode] bins = "auto" of {column!r} is made of its range alone where noise protects the '
                f"frequencies; give range = [least, largest] under [numbers.{toml_key(column)}], or list the edges"
            )


def utility_agrees(spec: ReleaseSpec) -> Iterator[str]:
    """A utility that does not fit what is published."""
    if spec.utility != "variance":
        return
    if len(spec.publish) != 1:
        yield ('utility = "variance" is for one published column of numbers; publish one column, or take utility out')
    for column in spec.publish:
        if spec.has_bins(column) and (column not in spec.numbers or spec.numbers[column].range is None):
            yield (
                f'utility = "variance" needs the range of {column!r}, to know what its first and last bin stand '
                f"for; give range = [least, largest] under [numbers.{toml_key(column)}]"
            )


def labels_agree(spec: ReleaseSpec) -> Iterator[str]:
    """Labels of what is not published."""
    for column in spec.metadata.labels:
        if spec.publish and column not in spec.publish:
            yield (
                f"[metadata] labels names {column!r}, which is no published column{did_you_mean(column, spec.publish)}"
            )


def replicates_agree(spec: ReleaseSpec) -> Iterator[str]:
    """Replicate weights among the columns that are released."""
    if found := replicate_weights(spec.columns):
        yield why_refused(found)


def weight_agrees(spec: ReleaseSpec) -> Iterator[str]:
    """Weights that are not classes of a declared range."""
    if spec.weight is None:
        return
    column, key = spec.weight, toml_key(spec.weight)
    if spec.publish or not spec.groups.auto:
        yield from _weighable(spec)
    numbers = spec.numbers.get(column)
    if not spec.has_bins(column) or numbers is None or numbers.range is None:
        yield (
            f"weight is published as classes, and next to a record a weight that is nearly unique is a name; give "
            f"bins under [recode.{key}], and range = [least, largest] under [numbers.{key}]"
        )
        return
    if numbers.range[0] < 0:
        yield f"[numbers] {column!r} is a weight, and its range begins below 0"
    if spec.recode[column].groups or spec.recode[column].minimum_count is not None:
        yield (f"[recode.{key}] joins classes of weights, and what is joined stands for no one weight; give fewer bins")


def _weighable(spec: ReleaseSpec) -> Iterator[str]:
    """Weights that are not published, or with nothing beside them."""
    if spec.weight not in spec.publish:
        yield (
            f"weight names the column {spec.weight!r}, which is not published: weights are one more column under "
            f"the bound, in classes; add it to publish{did_you_mean(str(spec.weight), spec.publish)}"
        )
    if len(spec.publish) < 2:
        yield "weight names the only published column; publish what is to be weighted, too"


def _released(spec: ReleaseSpec, section: str, column: str) -> Iterator[str]:
    """A section of a column that is not released.

    Whichever of two similar names is misspelt: without the source nobody can tell, so the one in the list, which
    all else follows, is named first.
    """
    if column in spec.columns or (spec.groups.auto and not spec.publish):
        return
    near = nearest(column, spec.columns)
    if near is None:
        yield (f"[{section}] {column!r} is neither secret nor published; add it to publish, or leave the section out")
        return
    listing = "secret" if near in spec.secret else "publish"
    yield (
        f"{listing} names {near!r} and [{section}] {column!r}, which is neither secret nor published; if they are "
        "one column, write its name in the source in both"
    )


def _drawable(spec: ReleaseSpec, column: str) -> Iterator[str]:
    """Numbers within intervals where there are none, or where nothing says how they are drawn."""
    what = f'[numbers] draw = "within" of {column!r}'
    if column in spec.secret:
        yield f"{what} draws from what is published, and that column is secret; take draw out"
    if not spec.has_bins(column):
        yield (
            f"{what} draws within the bins of a column, and it has none; give bins under "
            f"[recode.{toml_key(column)}], or take draw out"
        )
    name = drawn_name(column)
    if any(same_name(name, other) for other in spec.columns):
        yield f"{what} makes a column {name!r}, and there is one already; publish one of the two"


def _means(spec: ReleaseSpec, column: str, numbers: NumberSettings) -> Iterator[str]:
    """Means that are not one for each bin, inside it."""
    edges, means = spec.recode[column].edges if column in spec.recode else (), numbers.means or ()
    if not edges or numbers.range is None:
        yield (
            f"[numbers] {column!r} has means, which are of bins that are listed under [recode.{toml_key(column)}], "
            "within a range; give both, or take means out"
        )
        return
    ends = (numbers.range[0], *edges, numbers.range[1])
    if len(means) != len(ends) - 1:
        yield f"[numbers] {column!r} has {len(means)} means and {len(ends) - 1} bins; give one for each"
        return
    under = float(numbers.step or 0)
    for (low, high), mean in zip(pairwise(ends), means, strict=True):
        if not low <= mean <= (high if high == ends[-1] else high - under):
            yield f"[numbers] {column!r} has a mean of {mean} for its bin from {low} to {high}"


def _names_other(spec: ReleaseSpec, column: str) -> bool:
    """Whether there can be such a category."""
    if column in spec.complete and spec.recode[column].minimum_count is None:
        listed = spec.categories.get(column, ())
        return spec.recode[column].other in (*listed, *spec.recode[column].group_of)
    if column in spec.categories or spec.recode[column].minimum_count is not None:
        return True
    return spec.frequencies.kind.is_noisy and not spec.has_bins(column)
