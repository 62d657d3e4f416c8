"""A double of a Dataverse on this machine: the requests of its documented native API that datasets are made with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from werkzeug.wrappers import Request, Response

TOKEN = "dataverse-key"
_ASKED_FOR = {"title", "author", "datasetContact", "dsDescription", "subject"}


class Refused(Exception):
    """An error of the API: its status and what it says."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class DataverseDouble:
    """One collection, ``office``, with datasets by persistent identifier, and what was asked for, in order."""

    address: str = ""
    checksum: str = "MD5"
    datasets: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[int, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    # What happens before a request is answered, such as a cable that is pulled.
    before: Callable[[str], None] = lambda action: None

    def visible(self) -> dict[str, dict[str, bytes]]:
        """What everybody sees: files of published datasets, by path."""
        return {
            name: {
                "/".join(filter(None, (one.get("directoryLabel"), one["label"]))): self.files[one["dataFile"]["id"]]
                for one in dataset["files"]
            }
            for name, dataset in self.datasets.items()
            if dataset["versionState"] == "RELEASED"
        }

    def answer(self, request: Request) -> Response:
        """Answer a request as a Dataverse does."""
        path = request.path.removeprefix("/api/")
        action = f"{request.method} {path}"
        try:
            self.asked.append(action)
            self.before(action)
            if request.headers.get("X-Dataverse-key") != TOKEN:
                raise Refused(401, "Bad API key")
            status, content = 200, {"status": "OK", "data": self._done(action, request)}
        except Refused as refused:
            status, content = refused.status, {"status": "ERROR", "message": str(refused)}
        return Response(json.dumps(content), status, content_type="application/json")

    def _done(self, action: str, request: Request) -> Any:
        name = request.args.get("persistentId", "")
        if action == "GET dataverses/office/contents":
            return [
                {"type": "dataverse", "id": 1, "title": "a collection within"},
                *({"type": "dataset", **self._parts(one)} for one in self.datasets),
            ]
        if action == "POST dataverses/office/datasets":
            return self._made(json.loads(request.get_data()))
        if action.startswith("DELETE files/"):
            number = int(action.rpartition("/")[2])
            for dataset in self.datasets.values():
                dataset["files"] = [one for one in dataset["files"] if one["dataFile"]["id"] != number]
            return {"message": "deleted"}
        if name not in self.datasets:
            raise Refused(404, f"{request.path} is not found")
        if action == "GET datasets/:persistentId/":
            return {"persistentUrl": f"https://doi.example/{name}", "latestVersion": self.datasets[name]}
        if action == "POST datasets/:persistentId/add":
            return self._added(self.datasets[name], request)
        if action == "POST datasets/:persistentId/actions/:publish":
            if request.args.get("type") != "major":
                raise Refused(400, "a first version is a major one")
            self.datasets[name]["versionState"] = "RELEASED"
            return {}
        raise Refused(404, f"{request.path} is not found")

    @staticmethod
    def _parts(name: str) -> dict[str, str]:
        protocol, _, rest = name.partition(":")
        authority, _, identifier = rest.partition("/")
        return {"protocol": protocol, "authority": authority, "identifier": identifier}

    def _made(self, told: dict[str, Any]) -> dict[str, str]:
        version = told["datasetVersion"]
        there = {one["typeName"] for one in version["metadataBlocks"]["citation"]["fields"]}
        if missing := _ASKED_FOR - there:
            raise Refused(400, f"Validation Failed: {sorted(missing)} is required.")
        name = f"doi:10.5072/FK2/N{len(self.datasets)}"
        self.datasets[name] = {**version, "versionState": "DRAFT", "files": []}
        return {"persistentId": name}

    def _added(self, dataset: dict[str, Any], request: Request) -> dict[str, Any]:
        told, upload = json.loads(request.form["jsonData"]), request.files["file"]
        content = upload.read()
        if told.get("tabIngest") != "false":
            content = b"taken apart " + content
        made = hashlib.new(self.checksum.replace("-", ""), content).hexdigest()
        number = len(self.files)
        self.files[number] = content
        data = {"id": number, "filesize": len(content), "checksum": {"type": self.checksum, "value": made}}
        folder = {"directoryLabel": told["directoryLabel"]} if "directoryLabel" in told else {}
        dataset["files"].append({"label": upload.filename, **folder, "dataFile": data})
        return {"files": dataset["files"][-1:]}
