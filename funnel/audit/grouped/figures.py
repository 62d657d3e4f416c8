"""The figures of a grouped release, computed again: those of its protocol, its effective channels and its findings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from funnel.audit.arithmetic import share_step
from funnel.audit.grouped.law import Effective, PublishedLaw
from funnel.recount.grouped import GroupedLevel
from funnel.tables import open_paged

# Of figures that several sums in floating point lead to.
_NOISE = 1e-9
# Inputs of fewer records are one in the table of effective channels, or none.
_FEWEST = 500
_TEXTS = ("first", "second", "true_first", "true_second", "published_first", "published_second")
_NUMBERS = ("share", "probability")

_Texts = tuple[str | None, ...]
_Symbol = tuple[str, ...]


def is_told(stated: object, exact: float, step: float) -> bool:
    """Whether a figure is the exact one to the nearest step; what is not nothing may be told as one step."""
    if isinstance(stated, bool) or not isinstance(stated, (int, float)) or not math.isfinite(stated):
        return False
    least = step if 0 < exact < step else exact
    near = abs(stated - exact) <= step / 2 + _NOISE or (exact > 0 and abs(stated - least) <= _NOISE)
    return near and abs(stated / step - round(stated / step)) <= 1e-6


def step_of(n: int) -> float:
    """The step of public shares of so many records."""
    return float(share_step(n))


def level_complaints(name: str, stated: object, level: GroupedLevel, budget: float) -> Iterator[str]:
    """Whether a public level is the bound where that holds: neither less nor more is told."""
    if not isinstance(stated, float) or not math.isfinite(stated):
        yield f"{name} is no number"
    elif stated < level.nats * (1 - _NOISE):
        yield f"{name} is {stated!r}, which is less than the protocol leaks"
    elif level.holds and stated != budget and not stated == level.nats == 0:
        yield f"{name} is {stated!r}, and the bound of {budget!r} holds"


def told_complaints(content: Mapping[str, Any], law: PublishedLaw) -> Iterator[str]:
    """Whether utility, plain shares and what is kept of columns, as ``protocol.json`` has them, follow from it."""
    step = step_of(int(law.people.sum()))
    utility = content["utility"]
    share = min(1.0, law.information / law.entropy) if law.entropy > 0 else 0.0
    for name, exact in (
        ("mutual_information_nats", law.information),
        ("entropy_nats", law.entropy),
        ("share", share),
    ):
        if not is_told(utility[name], exact, step):
            yield f"utility.{name} is {utility[name]!r}, which is not what follows from weights and counts"
    if tuple(utility["columns"]) != law.columns or tuple(one["column"] for one in content["told"]) != law.columns:
        yield "what is told is not about the published columns"
        return
    yield from column_complaints(content["told"], law, step)


def column_complaints(told: Sequence[Mapping[str, Any]], law: PublishedLaw, step: float) -> Iterator[str]:
    """Whether what is told of each column, in their order, follows."""
    for one, column in zip(told, law.columns, strict=True):
        group = next(k for k, stage in enumerate(law.followed.text.stages, 1) if column in stage.columns)
        if one["column"] != column or one["group"] != group:
            yield f"{column} is not told of with the group that it is in"
        for name, exact in (("plain", law.plain[column]), ("kept", law.effective[column,].kept)):
            if not is_told(one[name], exact, step):
                yield f"{name} of {column} is told as {one[name]!r}, which is not what follows from weights and counts"


def channel_complaints(path: Path, law: PublishedLaw, people: int) -> Iterator[str]:
    """Whether ``channels.parquet`` has the effective channel of every column and pair, and nothing else."""
    n = int(law.people.sum())
    try:
        told = read_channels(path)
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        yield f"channels.parquet cannot be read as channels ({type(error).__name__})"
        return
    wanted = [columns if len(columns) == 2 else (columns[0], None) for columns in law.effective]
    if list(dict.fromkeys(some for some, *_ in told)) != wanted:
        yield "channels.parquet is not about every column and then every pair, in their order"
        return
    of_columns: dict[_Texts, list[tuple[_Texts, _Texts, float, float]]] = {}
    for some, true, shown, share, probability in told:
        of_columns.setdefault(some, []).append((true, shown, share, probability))
    for some, channel in zip(wanted, law.effective.values(), strict=True):
        named = ", ".join(channel.columns)
        yield from (f"the channel of {named} {said}" for said in _one_channel(of_columns[some], channel, n, people))


def read_channels(path: Path) -> list[tuple[_Texts, _Texts, _Texts, float, float]]:
    """The rows of ``channels.parquet``: columns, true values, published texts, share of the input, probability.

    Raises
    ------
    OSError, KeyError, ValueError, pyarrow.ArrowException
        If it is no such table.
    """
    with open_paged(path) as file:
        table = file.read()
    if table.column_names != [*_TEXTS, *_NUMBERS]:
        raise KeyError("columns")
    kinds = [table.schema.field(name).type for name in _TEXTS]
    if any(not pa.types.is_dictionary(kind) or not pa.types.is_string(kind.value_type) for kind in kinds):
        raise ValueError("texts")
    if any(not pa.types.is_float64(table.schema.field(name).type) for name in _NUMBERS):
        raise ValueError("numbers")
    # What a dictionary names and no row has would be told all the same.
    for name in _TEXTS:
        for chunk in table.column(name).chunks:
            if len(chunk.dictionary) != len(chunk.drop_null().unique()):
                raise ValueError("a text that no row has")
    columns = [table.column(name).to_pylist() for name in (*_TEXTS, *_NUMBERS)]
    return [((a, b), (c, d), (e, f), s, p) for a, b, c, d, e, f, s, p in zip(*columns, strict=True)]


def _one_channel(
    told: Sequence[tuple[_Texts, _Texts, float, float]], channel: Effective, n: int, people: int
) -> Iterator[str]:
    """Of one column or pair."""
    fewest, step = max(_FEWEST, people), step_of(n)
    law: dict[_Texts, dict[_Texts, float]] = {}
    sizes: dict[_Texts, int] = {}
    few: list[int] = []
    for x, (symbol, size) in enumerate(zip(channel.inputs, channel.people.tolist(), strict=True)):
        if size >= fewest:
            sizes[_padded(symbol)] = size
        else:
            few.append(x)
    together = int(channel.people[few].sum()) if few else 0
    if together >= fewest:
        sizes[None, None] = together
    as_few = np.zeros(len(channel.inputs), dtype=np.bool_)
    as_few[few] = True
    for x, y, mass in zip(
        channel.inputs_of.tolist(), channel.outputs_of.tolist(), channel.masses.tolist(), strict=True
    ):
        true = (None, None) if as_few[x] else _padded(channel.inputs[x])
        if true in sizes:
            of_input = law.setdefault(true, {})
            shown = _padded(channel.outputs[y])
            of_input[shown] = of_input.get(shown, 0.0) + mass / sizes[true]
    stated: dict[_Texts, dict[_Texts, float]] = {}
    for true, shown, share, probability in told:
        if shown in stated.setdefault(true, {}):
            yield "tells an output of an input twice"
        stated[true][shown] = probability
        if true not in sizes:
            yield "is about an input that nobody, or too few people, have"
            return
        if not is_told(share, sizes[true] / n, step):
            yield "tells the share of an input otherwise than it is"
    if set(stated) != set(sizes):
        yield "lacks an input"
        return
    for true, of_input in stated.items():
        rest = of_input.pop((None, None), 0.0)
        size_step = step_of(sizes[true])
        if abs(sum(of_input.values()) + rest - 1) > 1e-6:
            yield "has probabilities of an input that do not add up to one"
        # Where nearest steps add up to more than one, some that were rounded up are lowered by a step.
        excess = max(0, _multiples(law[true].values(), size_step) - round(1 / size_step))
        for shown in {*of_input, *law[true]}:
            exact, said = law[true].get(shown, 0.0), of_input.get(shown, 0.0)
            lowered = size_step / 2 if excess else 0.0
            if not -size_step / 2 - _NOISE <= exact - said <= size_step / 2 + _NOISE + lowered:
                yield f"tells a probability as {said!r}, which is not the one that follows"
        if any(abs(p / size_step - round(p / size_step)) > 1e-6 for p in of_input.values()):
            yield "tells a probability more precisely than so many people allow"


def _multiples(law: Iterable[float], step: float) -> int:
    """How many steps the nearest multiples of probabilities are at most together; ties may go up."""
    return sum(math.floor(share / step + 0.5 + _NOISE / step) for share in law)


def _padded(symbol: _Symbol) -> _Texts:
    return symbol if len(symbol) == 2 else (symbol[0], None)


def finding_complaints(
    found: Mapping[str, Any],
    law: PublishedLaw,
    declared: str,
    rows: int,
    dropped: int,
    released: int,
    expected_people: int,
) -> Iterator[str]:
    """Whether the exact figures that are kept beside a release are those that are found now.

    Parameters
    ----------
    found : mapping
        Content of ``findings.json``.
    law : PublishedLaw
    declared : str
        The bound.
    rows, dropped : int
        Records released and left out.
    released : int
        Distinct published records.
    expected_people : int
    """
    followed = law.followed
    groups = [list(stage.columns) for stage in followed.text.stages]
    same = {
        "guarantee": declared,
        "holds": followed.outputs.holds,
        "decided": followed.decided,
        "rows": rows,
        "dropped": dropped,
        "records": len(followed.sources),
        "published": released,
        "people": expected_people,
        "groups": groups,
        "choice": followed.text.content.get("choice"),
        "prefixes": list(followed.prefixes),
    }
    for name, exact in same.items():
        if found.get(name) != exact:
            yield f"{name} is stated as {found.get(name)!r}, and it is {exact!r}"
    share = min(1.0, law.information / law.entropy) if law.entropy > 0 else 0.0
    figures = {"level": followed.outputs.nats, "utility": law.information, "entropy": law.entropy, "share": share}
    for name, nats in figures.items():
        if not _is_close(found.get(name), nats):
            yield f"{name} is stated as {found.get(name)!r}, and it is {nats!r}"
    if len(found["told"]) != len(followed.told) or not all(map(_is_close, found["told"], followed.told)):
        yield "what stages tell is not what is found now"
    if found.get("shared") is not None and not (
        len(found["shared"]) == len(followed.shared) and all(map(_is_close, found["shared"], followed.shared))
    ):
        yield "how many share weights is not what is found now"
    for one, column in zip(found["columns"], law.columns, strict=True):
        channel = law.effective[column,]
        exact_of = {
            "plain": law.plain[column],
            "kept": channel.kept,
            "entropy": channel.entropy,
            "information": channel.information,
        }
        wrong = [name for name, value in exact_of.items() if not _is_close(one.get(name), value)]
        if one["column"] != column or wrong:
            yield f"{', '.join(wrong) or 'the name'} of {column} is not what is found now"
    if found["consistency"]["impossible"]:
        yield "they say that records drew what the protocol never gives"


def _is_close(stated: object, exact: float) -> bool:
    return isinstance(stated, (int, float)) and abs(stated - exact) <= 1e-7 * max(1.0, abs(exact))
