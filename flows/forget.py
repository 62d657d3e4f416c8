"""Forget: people erased from the register of a series, at their request, and the command for it."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from funnel.commands import json_option, renamed_option, spec_argument
from funnel.console import Console
from funnel.errors import DataError, SpecError
from funnel.pipeline import check_installed
from funnel.spec import ReleaseSpec


def forget(spec: ReleaseSpec, people: Sequence[Mapping[str, str]], entirely: bool = False) -> dict[str, Any]:
    """Erase people from the register that the people of a series are in.

    Parameters
    ----------
    spec : ReleaseSpec
    people : sequence of mapping of str to str
        For every person the value of each column of the record key.
    entirely : bool
        Whether to erase the digests of their keys too: then they would be taken for new people in a later version.

    Returns
    -------
    dict
        ``people``, ``unknown``, ``rows``, ``versions``, ``entirely``, ``register``, ``head`` and the ``sentence``.

    Raises
    ------
    FunnelError
        With one clear sentence; nothing is then erased.
    """
    from funnel.pipeline.flows.look import release_secret
    from funnel.pipeline.flows.register_of_run import open_people
    from funnel.pipeline.ledger.account import accounting
    from funnel.pipeline.tasks.secret_blocks import record_key_of
    from funnel.pipeline.tasks.step import plain_errors, tell
    from funnel.register.forget import digests_of
    from funnel.register.forget import forget as erase
    from funnel.release.series import open_series

    @plain_errors
    def erased() -> dict[str, Any]:
        with (
            open_series(spec) as series,
            accounting(spec, series, progress=tell, releases=False) as account,
            open_people(spec, series) as register,
        ):
            secret = release_secret(spec, series, False)
            key = record_key_of(spec, secret)
            if register is None or key is None:
                raise SpecError(
                    'nobody is known in this series: its spec does not say [history] people = "same", so that nothing '
                    "is kept of anybody"
                )
            found = erase(register, digests_of(people, register, key), entirely=entirely)
            if found.people:
                account.forgotten(found.people, found.head_sha256)
            return {
                "register": register.name,
                "people": found.people,
                "unknown": found.unknown,
                "rows": found.rows,
                "versions": list(found.versions),
                "entirely": found.entirely,
                "head": found.head_sha256,
                "sentence": found.sentence(),
            }

    return dict(erased())


def read_keys(path: Path) -> list[dict[str, str]]:
    """The people in a csv file whose first line names the columns of the record key.

    Raises
    ------
    DataError
        If it cannot be read, or a line has another number of values.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = list(csv.reader(file, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"the file of keys {path} cannot be read ({type(error).__name__})") from error
    if len(lines) < 2 or any(len(line) != len(lines[0]) for line in lines):
        raise DataError(
            f"the file of keys {path} needs a first line with the columns of the record key, and then one line of as "
            "many values for every person"
        )
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def _keys(keys: Sequence[str], file: Path | None) -> list[dict[str, str]]:
    if (file is None) == (not keys):
        raise SpecError(
            "say who is to be forgotten: --id 'COLUMN=VALUE' for each column of the record key, or --ids FILE"
        )
    if file is not None:
        return read_keys(file)
    pairs = [key.partition("=") for key in keys]
    if not all(separator for _, separator, _ in pairs):
        raise SpecError("a person is named as --id 'COLUMN=VALUE'")
    return [{column: value for column, _, value in pairs}]


@click.command("forget")
@spec_argument
@click.option(
    "--id", "keys", multiple=True, metavar="COLUMN=VALUE", help="Who; once for each column of the record key."
)
@renamed_option("--key", "--id")
@renamed_option("--keys", "--ids")
@click.option("--ids", "file", type=click.Path(path_type=Path), help="A csv file with a line for every person.")
@click.option(
    "--entirely",
    is_flag=True,
    help="Erase the digests of the keys too: a later version would take them for new people.",
)
@click.option("--yes", is_flag=True, help="Do not ask; what is erased cannot be brought back.")
@json_option
def command(spec: Path, keys: tuple[str, ...], file: Path | None, entirely: bool, yes: bool, as_json: bool) -> None:
    """Erase a person from the register of SPEC, as a data subject may ask for.

    Everything that was published about them is erased from the register; the digest of their key alone is kept, so that
    later versions give them an answer that depends on nothing and the bound still holds. What was published stays
    published, and the source is not touched: take the person out of it too.
    """
    check_installed()
    described = ReleaseSpec.load(spec)
    people = _keys(keys, file)
    if not yes and not as_json:
        click.confirm("What is erased cannot be brought back. Erase?", abort=True)
    with Console(as_json) as console:
        told = forget(described, people, entirely)
        if as_json:
            console.print_json(told)
        else:
            click.echo(f"{told['sentence'][:1].upper()}{told['sentence'][1:]}.")
            if told["unknown"]:
                click.echo(f"Not in the register: {told['unknown']:,} of those asked for.")
