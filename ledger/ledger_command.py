"""The command ``funnel ledger``: what was released, refused and withdrawn, and whether the chain of it is whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console as RichConsole
from rich.table import Table
from rich.text import Text

from funnel.cli import json_option, spec_argument
from funnel.console import Console
from funnel.errors import LedgerError
from funnel.pipeline import check_installed
from funnel.spec import ReleaseSpec
from funnel.wording import printable

if TYPE_CHECKING:
    from funnel.pipeline.ledger.entry import Entry

# A terminal too narrow breaks lines; rich itself would cut columns off.
_WIDE = 200


@click.group("ledger")
def ledger() -> None:
    """Show and check the ledger of SPEC: every release, refused ones too, in the order of their entry."""


@ledger.command("show")
@spec_argument
@click.option("--series", metavar="NAME", help="Only entries of this series.")
@click.option("--register", metavar="NAME", help="Only entries about the people of this register.")
@json_option
def show(spec: Path, series: str | None, register: str | None, as_json: bool) -> None:
    """Show what is entered in the ledger of SPEC; nothing is written.

    Exit status 9 if there is no ledger yet, or it cannot be read.
    """
    check_installed()
    from funnel.pipeline.ledger.account import ledger_of

    with Console(as_json) as console, ledger_of(ReleaseSpec.load(spec), read_only=True) as opened:
        entries = list(opened.entries(series, register))
        head, place = opened.head, opened.place
    if as_json:
        # Each entry is a document of its own.
        console.print_json({"ledger": place, "head": head, "entries": [entry.content() for entry in entries]})
        return
    out = RichConsole()
    out.print(Text(printable(place)), soft_wrap=True)
    RichConsole(width=max(out.width, _WIDE)).print(table_of(entries))
    for entry in entries:
        for said in remarks(entry):
            out.print(Text(printable(f"entry {entry.serial}: {said}")), soft_wrap=True)
    out.print(Text(f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}; head {head}"), soft_wrap=True)


@ledger.command("verify")
@spec_argument
@json_option
def verify(spec: Path, as_json: bool) -> None:
    """Walk the chain of the ledger of SPEC from its first entry; nothing is written.

    Every entry holds the SHA-256 of its content and of the entry before it, so that one that was changed, removed or
    put in between is found. The head that it prints, kept elsewhere, shows whether entries are missing at the end.

    Exit status 9 if an entry does not fit, which the message names, or if a version that is published has none.
    """
    check_installed()
    from funnel.pipeline.ledger.account import is_remembered, ledger_of
    from funnel.release.series import Series

    described = ReleaseSpec.load(spec)
    with Console(as_json) as console, ledger_of(described, read_only=True) as opened:
        walked = opened.verify()
        if not is_remembered(opened, Series.of(described)):
            raise LedgerError(
                f"the ledger {opened.place} lacks published versions of {described.name}, so it is an old copy or was "
                "begun after them: restore a newer one, or run funnel release, which enters what it may"
            )
        head, place = opened.head, opened.place
    if as_json:
        console.print_json({"ledger": place, "status": "whole", "entries": walked, "head": head})
        return
    click.echo(printable(f"The ledger {place} is whole: {walked} {'entry' if walked == 1 else 'entries'}."))
    click.echo(f"Head: {head}")


def table_of(entries: list[Entry]) -> Table:
    """Entries as rows; what an entry does not say is a dash."""
    table = Table(box=None, pad_edge=False)
    table.add_column("entry", justify="right", no_wrap=True)
    for title in ("time (UTC)", "what", "series", "version", "register", "guarantee"):
        table.add_column(title, no_wrap=True)
    for title in ("level", "all versions", "histories", "moved", "outside"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("started by", no_wrap=True)
    for entry in entries:
        event = entry.event
        figures = (_level(event.level), _level(event.joint_level), event.histories, event.moved, event.outside)
        table.add_row(
            str(entry.serial),
            entry.at.removesuffix("+00:00").replace("T", " "),
            Text(event.kind, style="" if event.verdict.passed else "red"),
            *(_shown(text) for text in (event.series, event.version, event.register_name, event.guarantee)),
            *(_shown(figure) for figure in figures),
            _shown(event.started_by),
        )
    return table


def remarks(entry: Entry) -> list[str]:
    """What there is to read about an entry besides its row: why it is there, where that is no matter of course."""
    event = entry.event
    usual = event.verdict.passed and event.kind in ("publishing", "published")
    return [*([] if usual else [event.verdict.sentence]), *([] if entry.note is None else [entry.note])]


def _level(level: float | None) -> str | None:
    return None if level is None else f"{level:.6g}"


def _shown(value: Any) -> Text:
    return Text("-" if value is None else printable(f"{value:,}" if isinstance(value, int) else str(value)))
