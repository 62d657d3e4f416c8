"""A double of a CKAN portal on this machine: the actions of its documented API that datasets are made with."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

TOKEN = "a-token"


class Refused(Exception):
    """An error of the API: its status, its kind and what it says."""

    def __init__(self, status: int, kind: str, **said: Any) -> None:
        super().__init__(kind)
        self.status, self.error = status, {"__type": kind, **said}


@dataclass
class PortalDouble:
    """Datasets by name, files by the identifier of their resource, and what was asked for, in order."""

    address: str = ""
    datasets: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    # What happens before an action is done, such as a cable that is pulled.
    before: Callable[[str, dict[str, Any]], None] = lambda action, told: None

    def visible(self) -> dict[str, dict[str, bytes]]:
        """What everybody sees: files of active datasets, by path."""
        return {
            name: {one["name"]: self.files[one["id"]] for one in dataset["resources"]}
            for name, dataset in self.datasets.items()
            if dataset["state"] == "active"
        }

    def answer(self, request: Request) -> Response:
        """Answer a request as CKAN does."""
        action = request.path.removeprefix("/api/action/")
        try:
            if request.headers.get("Authorization") != TOKEN:
                raise Refused(403, "Authorization Error", message="Access denied")
            told = dict(request.form) if request.files else json.loads(request.get_data() or b"{}")
            self.asked.append(action)
            self.before(action, told)
            result = getattr(self, f"do_{action}")(told, request)
            status, content = 200, {"success": True, "result": result}
        except Refused as refused:
            status, content = refused.status, {"success": False, "error": refused.error}
        return Response(json.dumps(content), status, content_type="application/json")

    def do_package_show(self, told: dict[str, Any], request: Request) -> Any:
        if told["id"] not in self.datasets:
            raise Refused(404, "Not Found Error", message="Not found")
        return self.datasets[told["id"]]

    def do_package_create(self, told: dict[str, Any], request: Request) -> Any:
        if told["name"] in self.datasets:
            raise Refused(409, "Validation Error", name=["That URL is already in use."])
        if "owner_org" not in told:
            raise Refused(409, "Validation Error", owner_org=["An organization must be provided"])
        self.datasets[told["name"]] = {**told, "resources": []}
        return self.datasets[told["name"]]

    def do_resource_create(self, told: dict[str, Any], request: Request) -> Any:
        (upload,) = request.files.values()
        content = upload.read()
        made = {**told, "id": f"r{len(self.files)}", "url_type": "upload", "size": len(content)}
        self.files[made["id"]] = content
        self.datasets[told["package_id"]]["resources"].append(made)
        return made

    def do_resource_delete(self, told: dict[str, Any], request: Request) -> Any:
        for dataset in self.datasets.values():
            dataset["resources"] = [one for one in dataset["resources"] if one["id"] != told["id"]]

    def do_package_patch(self, told: dict[str, Any], request: Request) -> Any:
        return self.do_package_show(told, request).update(told)


class Double(Protocol):
    """What answers in the place of a portal."""

    address: str

    def answer(self, request: Request) -> Response: ...


D = TypeVar("D", bound=Double)


@contextmanager
def running(double: D) -> Iterator[D]:
    """A double that answers at an address of this machine."""
    server = make_server("127.0.0.1", 0, Request.application(double.answer))
    double.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield double
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
