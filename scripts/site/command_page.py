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


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    """A command and all below it, in the order in which help lists them."""
    yield command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                inner = click.Context(
                    below, parent=context, info_name=name, max_content_width=WIDTH, terminal_width=WIDTH
                )
                yield from commands(below, inner)


def page() -> str:
    """All of it."""
    lines = [HEAD]
    top = click.Context(main, info_name="funnel", max_content_width=WIDTH, terminal_width=WIDTH)
    for command, context in commands(main, top):
        lines += [f"## {context.command_path}", "", "```text", command.get_help(context), "```", ""]
    return "\n".join(lines)
