"""Chromium driven by its own protocol over two pipes: what a page does when somebody uses it, and what it asks for."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1300,900",
    "--remote-debugging-pipe",
)
# Waits for something that a page shows; a page on which it never appears is ended by the limit of the whole test.
WAIT = """new Promise(done => {
  const look = () => { const found = (%s); found ? done(found) : setTimeout(look, 20); };
  look();
})"""


class Left(Exception):
    """The page on which something was to be done has been left."""


class Browser:
    """One page of a browser; every address that it asked for is in ``asked``."""

    def __init__(self, orders: IO[bytes], answers: IO[bytes]) -> None:
        self._orders, self._answers, self._number, self._session = orders, answers, 0, None
        self.asked: list[str] = []
        target = self.order("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.order("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.order("Network.enable")
        self.order("Page.enable")

    def order(self, method: str, **params: Any) -> dict[str, Any]:
        """Send an order of the protocol and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        self._orders.write(json.dumps(message).encode() + b"\0")
        self._orders.flush()
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer and re.search("context|navigated", answer["error"]["message"]):
                    raise Left(answer["error"]["message"])
                assert "error" not in answer, answer
                found: dict[str, Any] = answer["result"]
                return found

    def _read(self) -> dict[str, Any]:
        text = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            assert byte, "the browser ended"
            text += byte
        answer: dict[str, Any] = json.loads(text)
        if answer.get("method") == "Network.requestWillBeSent":
            self.asked.append(answer["params"]["request"]["url"])
        return answer

    def open(self, address: str) -> None:
        """Open a page and wait until all of it is there."""
        self.order("Page.navigate", url=address)
        self.until(f"location.href.startsWith({json.dumps(address)}) && document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """What a script on the page returns, or what it promises."""
        found = self.order("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, condition: str) -> Any:
        """Wait until a condition holds; what it then is. Where a page is left meanwhile, on the next one."""
        while True:
            with contextlib.suppress(Left):
                return self.run(WAIT % condition)


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser whose profile is in this folder."""
    if not CHROMIUM.exists():
        pytest.fail(f"there is no browser {CHROMIUM}: run scripts/install-system-packages.sh, which installs it")
    (their_orders, our_orders), (our_answers, their_answers) = os.pipe(), os.pipe()
    # The protocol wants the third and the fourth file, and Python gives only numbers as they are.
    command = ["bash", "-c", f'exec "$@" 3<&{their_orders} 4>&{their_answers}', "-", str(CHROMIUM), *FLAGS]
    process = subprocess.Popen(
        [*command, f"--user-data-dir={folder}"],
        pass_fds=(their_orders, their_answers),
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    os.close(their_orders)
    os.close(their_answers)
    try:
        with os.fdopen(our_orders, "wb") as orders, os.fdopen(our_answers, "rb") as answers:
            yield Browser(orders, answers)
    finally:
        process.terminate()
        process.wait()
