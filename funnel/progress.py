"""How anything that takes long tells how far it has come: one shape of callback for the whole project."""

from __future__ import annotations

from typing import Protocol

# How what is told begins where it is to be read, and not only seen passing by.
# How a warning goes on that is about records which a release leaves out or merges: it names columns, and no values.
LOSS = "left out or merged: "
WARNING = "warning: "


class Progress(Protocol):
    """Told of every step: what is done, in words for people; how much of it; and of how much, where that is known.

    ``progress("counting", 20_000, 48_842)``, ``progress("fitting optimal: 0.611 nats, at most 0.613", 0, None)``. What
    is told may come as often as it likes; who shows it decides how often to show it.
    """

    def __call__(self, what: str, done: int, total: int | None, /) -> None: ...


def quiet(what: str, done: int, total: int | None, /) -> None:
    """Nobody asked."""
