"""Watching a source: emit ``funnel.source.changed`` when its content differs from what was seen last."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from funnel.errors import DataError, PipelineError, SpecError
from funnel.progress import Progress
from funnel.readers.formats import open_source
from funnel.release.document import dump
from funnel.release.files import private_folder, write_whole
from funnel.release.series import Series
from funnel.spec import ReleaseSpec

EVENT = "funnel.source.changed"


def watch_source(spec_path: Path, interval: float, once: bool, progress: Progress) -> Iterator[dict[str, Any]]:
    """Look at the source of a spec every ``interval`` seconds; yield what was seen whenever it is news.

    The digest seen last is replaced only after the event was handed to the server, so a failure repeats the event
    rather than losing it: a release of an unchanged source does nothing. The first look compares with the source of
    the newest release, and only takes note where there is none.

    A source that was there at the first look may be replaced or out of reach for a while, the spec may be edited, and
    the server may be down: that is told, and watched on. Only a look that is asked for alone fails.

    Yields
    ------
    dict
        ``status`` ("noted", "unchanged", "changed", "unreadable" or "undelivered"), ``source``, and ``sha256`` or
        ``message``. A change that could not be delivered is told of again at the next look.

    Raises
    ------
    PipelineError
        If no server is named, or if it does not take the event of a look that is made ``once``.
    SpecError, DataError
        If the spec or, at the first look, the source is wrong.
    """
    if not os.environ.get("PREFECT_API_URL"):
        raise PipelineError(
            "watching needs a server to tell: start one with 'prefect server start' and set PREFECT_API_URL, "
            "for instance to http://127.0.0.1:4200/api"
        )
    look = look_once(spec_path) if once else _look(spec_path)
    complaint = look.get("message", "")
    if look["status"] != "unchanged" or once:
        yield look
    while not once:
        progress(f"watching {look['source']}", 0, None)
        time.sleep(interval)
        try:
            look = _look(spec_path)
        except (DataError, SpecError) as error:
            look = {"status": "unreadable", "source": look["source"], "message": str(error)}
        # That it can be read again, or the server be reached, is news too.
        before, complaint = complaint, look.get("message", "")
        if look["status"] == "changed" or complaint != before:
            yield look


def look_once(spec_path: Path) -> dict[str, Any]:
    """Look at the source of a spec, and tell the server if it has changed.

    Raises
    ------
    PipelineError
        If the server does not take the event; the next look tells of the change again.
    SpecError, DataError
        If the spec or the source is wrong.
    """
    look = _look(spec_path)
    if look["status"] == "undelivered":
        raise PipelineError(look["message"])
    return look


def _look(spec_path: Path) -> dict[str, Any]:
    spec = ReleaseSpec.load(spec_path)
    source = open_source(spec.reading)
    digest = source.digest()
    memory = private_folder(spec.workspace_folder / spec.name) / "watched.json"
    seen = _seen(memory) or _released(spec)
    if seen is None:
        status = "noted"
    elif seen == digest:
        status = "unchanged"
    else:
        try:
            _emit(spec, spec_path, digest)
        except PipelineError as error:
            # What was seen last stays as it is, so that the change is still one at the next look.
            return {"status": "undelivered", "source": source.address, "message": str(error)}
        status = "changed"
    if status != "unchanged" or not memory.is_file():
        write_whole(memory, dump({"sha256": digest}))
    return {"status": status, "source": source.address, "sha256": digest}


def _released(spec: ReleaseSpec) -> str | None:
    """Digest of the source of the newest release: a change since then is news even to the first look."""
    series = Series.of(spec)
    return None if series.newest is None else series.record(series.newest).origin.source


def _seen(memory: Path) -> str | None:
    if not memory.is_file():
        return None
    try:
        return str(json.loads(memory.read_text(encoding="utf-8"))["sha256"])
    except (ValueError, KeyError) as error:
        raise PipelineError(
            f"{memory} is damaged; remove it, and the next look takes note of the source anew"
        ) from error


def _emit(spec: ReleaseSpec, spec_path: Path, digest: str) -> None:
    from prefect.client.orchestration import get_client
    from prefect.events.schemas.events import Event, Resource
    from prefect.exceptions import PrefectHTTPStatusError

    event = Event(
        event=EVENT,
        resource=Resource({"prefect.resource.id": f"funnel.source.{spec.name}", "funnel.spec": str(spec_path)}),
        payload={"spec": str(spec_path), "sha256": digest},
    )
    # Posted directly rather than through the background worker of emit_event, which drops events without an error
    # when the server cannot be reached.
    import httpx

    try:
        with get_client(sync_client=True) as client:
            response = client._client.post("/events", json=[event.model_dump(mode="json")])
            response.raise_for_status()
    except (httpx.HTTPError, PrefectHTTPStatusError) as error:
        raise PipelineError(
            f"the server at {os.environ['PREFECT_API_URL']} did not take the event ({type(error).__name__}); is it up?"
        ) from error
