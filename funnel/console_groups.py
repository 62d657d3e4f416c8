"""What the plan of a grouped release shows: the groups, why it is these, and what becomes of every column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from funnel.disclosure.words import breaches_sentence
from funnel.estimation.grouped_errors import grouped_sentence
from funnel.wording import printable

if TYPE_CHECKING:
    from funnel.release.grouping import PlannedGroups
    from funnel.spec import ReleaseSpec


def show_groups(spec: ReleaseSpec, n: int, planned: Sequence[PlannedGroups], line: str, out: Console) -> None:
    """Print it.

    Parameters
    ----------
    spec : ReleaseSpec
    n : int
        Records.
    planned : sequence of PlannedGroups
        One for every guarantee that was asked about.
    line : str
        What protects the frequencies.
    out : rich.console.Console
    """
    columns = len(spec.publish)
    head = f"{printable(spec.title)}: {n:,} records, {columns} columns in groups, one bound for the whole record"
    out.print(Group(Text(head), *(part for one in planned for part in _parts(spec, one)), Text(line, style="bold red")))


def _parts(spec: ReleaseSpec, planned: PlannedGroups) -> Iterator[RenderableType]:
    made = planned.solution
    groups = ", then ".join(" with ".join(group) for group in made.groups)
    yield Text(f"\n{planned.guarantee}: {planned.share:.1%} of H(X) kept, level {made.level:.6g}")
    yield Text(printable(f"Groups: {groups}."))
    if made.explained:
        told = ", ".join(f"{share:.1%} of {column}" for column, share in made.explained.items())
        yield Text(printable(f"Variance explained by whole records: {told}."))
    if made.worth is not None:
        yield Text(f"Worth for estimates of columns and pairs: {made.worth:.1%} of the records.")
    yield Text(made.reason)
    yield _table(planned)
    yield Text(
        f"A prefix that fewer than {made.protocol.people} people are expected to have uses what was made for more, or "
        "says nothing more. Made and proven in "
        f"{planned.seconds:.0f} s; protocol.json takes {planned.size / 1e6:.2f} MB."
    )
    yield Text(printable(grouped_sentence(planned.errors)))
    for one in planned.broken:
        verb = "refused" if spec.disclosure.refuses(spec.frequencies.protection) else "released, and told of"
        group = " with ".join(one.joint.inputs.columns)
        yield Text(printable(f"Of {group}, {breaches_sentence(one)}: {verb}."), style="bold red")


def _table(planned: PlannedGroups) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("column", no_wrap=True)
    for title in ("group", "plain value", "kept of it", "kept (nats)", "left (nats)"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in sorted(planned.columns, key=lambda one: one.group):
        table.add_row(
            Text(printable(one.column)),
            str(one.group),
            f"{one.plain:.1%}",
            f"{one.kept:.1%}",
            f"{one.information:.3f}",
            f"{one.entropy - one.information:.3f}",
        )
    return table
