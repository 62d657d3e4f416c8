"""Whether the names of outputs say what the weights say: which values an output may come from, readiest first."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from funnel.audit.arithmetic import WHOLE, grid_of
from funnel.audit.check import Found, check
from funnel.protocol import SPARSE_FORMAT
from funnel.recount.balance import alphabet_complaints, is_invariant
from funnel.release.protocol_document import ProtocolDocument

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext

_OR, _OTHERS = " or ", "others"
_NUMBERED = re.compile(r"( \([0-9]+\)| \(mixed\))+$")
# Names were made before weights were put on their grid, which moves them by a few steps or by a thousandth.
_STEPS, _MIXED = 6, 0.003
_COARSEST = 8
# What mixing with the marginal adds to every weight at most, and no name tells.
_FAINT = 0.0011
_SHOWN = 3


@check("labels", "public")
def check_labels(known: AuditContext) -> Found:
    """The name of every published value lists the true values that it comes from."""
    document, content = known.document, known.document.content()
    if is_invariant(content):
        yield from alphabet_complaints(content)
        return "every output is an input, and has its name"
    yield from _complaints(document)
    return "every name lists the values that its output comes from"


def _complaints(document: ProtocolDocument) -> Iterator[str]:
    weights = [[(x, weight / WHOLE) for x, weight in row] for row in document.entries]
    # The step of the grid that the weights are on; nothing where they are on none.
    grid = grid_of(document) / WHOLE
    slack = _STEPS * (min(grid, 2.0**-_COARSEST) if grid >= 2.0**-28 else 2.0**-50)
    for j, column in enumerate(document.outputs.columns):
        if column not in document.inputs.columns:
            yield "a published column is not one that the protocol reads"
            return
        position = document.inputs.columns.index(column)
        values = [symbol[position] for symbol in document.inputs.symbols]
        nothing = dict.fromkeys(values, 0.0)
        for y, (symbol, row, marginal) in enumerate(
            zip(document.outputs.symbols, weights, document.marginal, strict=True), 1
        ):
            if not row:
                # Nobody can get it, so that no value is named.
                if _NUMBERED.sub("", symbol[j]):
                    yield f"output {y} has a name, and comes from no value"
                continue
            faint = _FAINT * int(marginal) / WHOLE
            strength = dict(nothing)
            for x, weight in row:
                strength[values[x]] = max(strength[values[x]], weight if weight > faint else 0.0)
            if not _says(symbol[j], strength, slack, document.format == SPARSE_FORMAT):
                yield f"the name of output {y} is not that of the values it comes from"


def _says(name: str, strength: dict[str, float], slack: float, as_listed: bool = False) -> bool:
    possible = {value for value, weight in strength.items() if weight > 0}
    plain = _NUMBERED.sub("", name)
    for candidate in dict.fromkeys((name, plain)):
        if candidate in strength and possible == {candidate}:
            return True
        if (members := _set(candidate)) is not None and set(members) <= set(strength):
            return _is_readiest(members, strength, slack)
        if any(_fits(parts, strength, possible, slack, as_listed) for parts in _parts(candidate, list(strength))):
            return True
    return False


def _is_readiest(members: Sequence[str], strength: dict[str, float], slack: float) -> bool:
    """Whether no value outside a set produces it more readily than one inside."""
    inside = [strength[value] for value in members]
    outside = [weight for value, weight in strength.items() if value not in members]
    return not inside or not outside or min(inside) * (1 + _MIXED) + slack >= max(outside)


def _fits(
    parts: list[str], strength: dict[str, float], possible: set[str], slack: float, as_listed: bool = False
) -> bool:
    """Whether these are the values an output comes from, or the readiest of them: in that order, or as listed."""
    others = parts[-1] == _OTHERS and _OTHERS not in possible
    named = parts[:-1] if others else parts
    if len(set(named)) < len(named) or not named:
        return False
    if as_listed:
        if named != [value for value in strength if value in named]:
            return False
        named = sorted(named, key=lambda value: -strength[value])
    margin = slack + _MIXED * max(strength.values())
    in_order = [strength[value] for value in named]
    if any(later > earlier + margin for earlier, later in itertools.pairwise(in_order)):
        return False
    rest = sorted((w for value, w in strength.items() if value not in named), reverse=True)
    most = rest[0] if rest else 0.0
    if not others:
        # Everything it may come from is named; a value named may have lost its last weight to the grid.
        return len(named) > 1 and most == 0 and in_order[0] > 0
    # The readiest are named: those of at least half the weight of the first, up to three.
    enough = len(named) == _SHOWN or most <= in_order[0] / 2 + margin
    return enough and most <= in_order[-1] + margin and in_order[-1] >= in_order[0] / 2 - margin


def _parts(name: str, values: list[str]) -> Iterator[list[str]]:
    """All ways to read a name as values joined by "or"; a value may itself hold that word."""
    for value in [*values, _OTHERS]:
        if name == value:
            yield [value]
        elif name.startswith(value + _OR):
            for rest in _parts(name[len(value) + len(_OR) :], values):
                yield [value, *rest]


def _set(name: str) -> list[str] | None:
    """The values of a set such as ``{Black, White}``; None if it is none."""
    if not (name.startswith("{") and name.endswith("}")):
        return None
    inner, values, at = name[1:-1], [], 0
    while at < len(inner):
        if inner[at] == '"':
            try:
                value, at = json.JSONDecoder().raw_decode(inner, at)
            except ValueError:
                return None
        else:
            end = inner.find(", ", at)
            end = len(inner) if end < 0 else end
            value, at = inner[at:end], end
        values.append(str(value))
        if at < len(inner) and not inner.startswith(", ", at):
            return None
        at += 2
    return values
