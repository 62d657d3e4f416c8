"""What a mutant is: one changed line, where it runs, what must refuse the release, and why it must be refused."""

from __future__ import annotations

from dataclasses import dataclass

from tests.sabotage.patching import Patch
from tests.sabotage.scenes import PLAIN, Scene

# The saboteur's functions, as a changed line names them.
TOOLS = '__import__("tests.sabotage.tools", fromlist=["tools"])'


@dataclass(frozen=True)
class Mutant:
    """A sabotage of the pipeline.

    Attributes
    ----------
    name : str
        A short name, different from all others.
    breaks : str
        What would be published, or said, if nothing noticed.
    module, old, new : str
        The changed line, as in `Patch`.
    caught_by : str
        The expectation that fails, or the function that refuses, as ``module.function``.
    scene : Scene
        The release that is made with the changed line.
    """

    name: str
    breaks: str
    module: str
    old: str
    new: str
    caught_by: str
    scene: Scene = PLAIN

    @property
    def patch(self) -> Patch:
        """The change."""
        return Patch(self.module, self.old, self.new)
