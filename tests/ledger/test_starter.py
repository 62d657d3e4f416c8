"""Who started a run: a user of a machine, or a run of the orchestrator."""

from __future__ import annotations

import getpass
import socket
import sys
from types import SimpleNamespace

import pytest

from funnel.pipeline.ledger.account import started_by


def test_a_user_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    monkeypatch.setattr(socket, "gethostname", lambda: "host")
    monkeypatch.delitem(sys.modules, "prefect", raising=False)
    assert started_by() == "ada@host"


@pytest.mark.parametrize("error", [OSError("no user"), KeyError("uid not found: 1234")])
def test_a_user_without_a_name(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def unknown() -> str:
        raise error

    monkeypatch.setattr(getpass, "getuser", unknown)
    monkeypatch.setattr(socket, "gethostname", lambda: "host")
    assert started_by() == "unknown@host"


def test_a_run_of_the_orchestrator(monkeypatch: pytest.MonkeyPatch) -> None:
    from prefect.context import FlowRunContext

    run = SimpleNamespace(flow_run=SimpleNamespace(name="swinging-bumblebee"))
    monkeypatch.setattr(FlowRunContext, "get", classmethod(lambda cls: run))
    assert started_by() == "prefect run swinging-bumblebee"
    run.flow_run = None
    assert "@" in started_by()
