"""The page of the command: what --help says, of it and of every command below it."""

from __future__ import annotations

from collections.abc import Iterator

import click

from funnel.cli import main

HEAD = """# The `funnel` command

Every command with its options, as `--help` prints them. With `--json` what a command prints is one JSON object, also
where it is an error; [every exit status](../architecture.md#errors-and-exit-status) has its own meaning.
"""
WIDTH = 100


def context_of(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    """Where a command is called, on a terminal of the same width everywhere."""
    return click.Context(command, parent, info_name=name, max_content_width=WIDTH, terminal_width=WIDTH)


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    """A command and all below it, in the order in which help lists them."""
    yield command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from commands(below, context_of(below, name, context))


def page() -> str:
    """All of it."""
    lines = [HEAD]
    for command, context in commands(main, context_of(main, "funnel")):
        lines += [f"## {context.command_path}", "", "```text", command.get_help(context), "```", ""]
    return "\n".join(lines)
