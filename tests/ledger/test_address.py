"""Where a ledger is: what a spec may say of it, and what people are told of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from funnel.errors import PipelineError, SpecError
from funnel.pipeline.ledger.address import address_of
from tests.projects import spec_of

WORK = Path("/srv/work")


def test_by_default_it_is_in_the_workspace() -> None:
    address = address_of(None, WORK, {})
    assert address.file == WORK / "ledger.sqlite"
    assert not address.is_server
    assert str(address) == "/srv/work/ledger.sqlite"


@pytest.mark.parametrize("given", ["sqlite:////srv/ledger.sqlite", "sqlite+pysqlite:////srv/ledger.sqlite"])
def test_a_file_elsewhere(given: str) -> None:
    assert address_of(given, WORK, {}).file == Path("/srv/ledger.sqlite")


def test_a_server() -> None:
    for given in ("postgresql://ada@db.example:5433/funnel", "environment:L"):
        address = address_of(
            given, WORK, {"L": "postgresql+psycopg://ada:Zebediah@db.example:5433/funnel?sslmode=require"}
        )
        assert address.is_server
        assert address.file is None
        assert str(address) == "postgresql://db.example:5433/funnel"
        assert address.url.drivername == "postgresql+psycopg"
        assert "Zebediah" not in repr(address)
        assert address.url.username == "ada"


def test_what_a_driver_says_is_cleaned() -> None:
    address = address_of("postgresql://ada:p%40ss+w%2Fd@h/d?sslpassword=o%20ther", WORK, {})
    said = address.cleaned("failed for p@ss+w/d\n and  p%40ss%2Bw%2Fd, o ther, o+ther and o%20ther")
    assert said == "failed for *** and ***, ***, *** and ***"
    assert len(address.cleaned("x" * 1000)) <= 240


@pytest.mark.parametrize(
    "given",
    [
        "mysql://Zebediah@h/d",
        "Zebediah",
        "://Zebediah",
        "postgresql://ada:Zebediah@h",
        "postgresql+asyncpg://ada:Zebediah@h/d",
        "postgresql://ada:Zebediah@h:port/d",
        "sqlite:///Zebediah.sqlite",
        "sqlite://",
        "sqlite:////srv/Zebediah?mode=memory",
        "sqlite+aiosqlite:////srv/Zebediah",
    ],
)
def test_what_is_no_ledger_is_refused_and_never_quoted(given: str) -> None:
    for where, environment in (("[ledger] url", {}), ("the environment variable LEDGER", {"LEDGER": given})):
        with pytest.raises(SpecError) as caught:
            address_of("environment:LEDGER" if environment else given, WORK, environment)
        assert str(caught.value).startswith(where)
        assert "Zebediah" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_a_variable_that_is_not_set() -> None:
    for environment in ({}, {"LEDGER": ""}):
        with pytest.raises(SpecError, match=r"environment variable LEDGER, which .* is not set; set it to the URL"):
            address_of("environment:LEDGER", WORK, environment)


def test_without_the_client_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(PipelineError, match=r"pip install 'funnel\[postgres\]'"):
        address_of("postgresql://ada@h/d", WORK, {})


@pytest.mark.parametrize("url", ["postgresql://ada:Zebediah@h/d", "postgresql://ada@h/d?password=Zebediah"])
def test_a_password_has_no_place_in_a_spec(url: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="holds a password") as caught:
        spec_of("x.parquet", tmp_path, ledger={"url": url})
    assert "Zebediah" not in str(caught.value)
