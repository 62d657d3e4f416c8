"""Commands: the group ``funnel``, how its commands are found, and what each of them ends with."""

from __future__ import annotations

import os
import select
import sys
import traceback
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from typing import Any, NoReturn

import click

from funnel.console import json_line
from funnel.errors import FunnelError, PipelineError, terminable
from funnel.wording import printable

COMMANDS = "funnel.commands"
TRACEBACK = "FUNNEL_TRACEBACK"
INTERRUPTED, UNREAD, TERMINATED = 130, 141, 143
_JSON = "funnel.json"
# What became of the work of a command that was stopped, where it is not what became of a release.
STOPPED = "funnel.stopped"
# Matrices are small and many, and a BLAS that shares such a product out among threads spends most of its time waiting
# for them; with one thread what is computed does not depend on the number of processors either.
_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_THROWN_AWAY = "what was not yet published was thrown away"


@lru_cache(maxsize=1)
def _registered() -> EntryPoints:
    """Commands that packages register; found once, as it takes a look at every package that is installed."""
    return entry_points(group=COMMANDS)


class _Commands(click.Group):
    """Commands of this package and of every package that registers some; a `FunnelError` is one sentence, no more."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *(entry.name for entry in _registered())})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        for entry in _registered().select(name=cmd_name):
            try:
                loaded = entry.load()
            except ImportError as error:
                return _unloadable(entry, error)
            return loaded if isinstance(loaded, click.Command) else None
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from funnel.wording import did_you_mean

            known = self.list_commands(ctx)
            raise click.UsageError(
                f"there is no command {args[0]!r}{did_you_mean(args[0], known) or '; known are ' + ', '.join(known)}",
                ctx,
            )
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        # Before anything is imported that brings matrices: what the user has set stays.
        for name in _THREADS:
            os.environ.setdefault(name, "1")
        return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with terminable() as terminated:
            try:
                done = super().invoke(ctx)
                # What nobody reads is noticed here, and not when the interpreter closes its files.
                sys.stdout.flush()
                return done
            except BaseException as error:
                unread = _unread()
                # Whatever it ended with: workers that the signal reached too, or what a library made of the exception.
                if terminated():
                    click.echo(f"funnel: terminated; {ctx.meta.get(STOPPED, _THROWN_AWAY)}", err=True)
                    ctx.exit(TERMINATED)
                if unread and isinstance(error, (BrokenPipeError, click.exceptions.Exit)):
                    # Such as head, which has read all it wanted.
                    ctx.exit(UNREAD)
                _end(ctx, error)


def _unread() -> bool:
    """Whether nobody reads what is printed any more; what is left to print goes nowhere then."""
    try:
        sys.stdout.flush()
        # What could not be written once may be forgotten by then.
        if not _is_left():
            return False
    except BrokenPipeError:
        pass
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return True


def _is_left() -> bool:
    """Whether standard output is a pipe without a reader."""
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError):
        # It is no file at all.
        return False
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _end(ctx: click.Context, error: BaseException) -> NoReturn:
    """Say what a command ended with, and end with the exit status of that."""
    if isinstance(error, FunnelError):
        _fail(ctx, error)
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        click.echo(f"funnel: interrupted; {ctx.meta.get(STOPPED, _THROWN_AWAY)}", err=True)
        ctx.exit(INTERRUPTED)
    own = isinstance(error, (click.exceptions.Exit, click.ClickException)) or not isinstance(error, Exception)
    if own or os.environ.get(TRACEBACK):
        raise error
    # A message of a library can quote rows of the source, and so can a traceback: name the place alone.
    place = traceback.extract_tb(error.__traceback__)[-1]
    _fail(
        ctx,
        FunnelError(
            f"unexpected {type(error).__name__} in {Path(place.filename).name}, line {place.lineno}; this is a "
            f"defect, and what was published before is untouched; set {TRACEBACK}=1 to see all of it"
        ),
    )


def _unloadable(entry: EntryPoint, error: ImportError) -> click.Command:
    """A command that only says why it cannot run: the others, and --help, work on."""
    why = f"the command {entry.name} cannot be loaded, because of this: {error}; install what it needs to use it"

    def refuse(**_: object) -> None:
        raise PipelineError(why)

    command = click.Command(entry.name, callback=refuse, short_help=f"Not available: {error}.")
    command.ignore_unknown_options = command.allow_extra_args = True
    return command


def _fail(ctx: click.Context, error: FunnelError) -> NoReturn:
    if ctx.meta.get(_JSON):
        content = {
            "status": "failed",
            "error": type(error).__name__,
            "message": str(error),
            "exit_code": error.exit_code,
        }
        click.echo(json_line(content))
    else:
        click.echo(printable(f"funnel: {error}"), err=True)
    ctx.exit(error.exit_code)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="funnel")
def main() -> None:
    """Publish data about people with a proven bound on what each record reveals.

    A release is described by one TOML file, the SPEC: the source, what is secret, what to publish and under which
    bound; data/adult.toml is a commented example. The usual way is

    \b
      funnel init SOURCE      draft a SPEC from what the source holds
      funnel plan SPEC        see what each mechanism would cost in utility
      funnel release SPEC     sanitise, audit, validate and publish
      funnel approve SPEC     publish what waits for approval, where SPEC asks for it
      funnel audit RELEASE    check a published release again
      funnel share RELEASE    put it at a URL or on a portal too
      funnel export RELEASE   write it for SPSS or Stata, or as a DDI codebook
      funnel estimate RELEASE estimate true frequencies from a published release

    Exit status: 0 done; 1 unexpected; 2 wrong usage; 3 the spec, 4 the source, 5 the guarantee cannot be met,
    6 the optimiser failed, 7 leakage above the bound, 8 validation refused, 9 the record of releases, 10 writing
    failed, 11 the random source failed, 12 the orchestrator, 13 an audit could not check everything; 130 interrupted,
    141 nobody read what was printed, 143 terminated.
    """


def renamed_option(old: str, new: str) -> Callable[[Any], Any]:
    """The former name of an option: whoever uses it reads the present one."""

    def refuse(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> None:
        if value:
            raise click.UsageError(f"the option {old} is called {new} now", ctx)

    name = f"former_{old.strip('-')}"
    return click.option(old, name, multiple=True, is_eager=True, expose_value=False, hidden=True, callback=refuse)


spec_argument = click.argument("spec", type=click.Path(path_type=Path))


def _note_json(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    # The group prints errors, and knows in which form only through what the contexts share.
    ctx.meta[_JSON] = value
    return value


json_option = click.option(
    "--json", "as_json", is_flag=True, callback=_note_json, help="Print one JSON object for machines, errors too."
)
