"""Past: everything published about the people of a register, version by version, as a tree of histories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from funnel.errors import DataError
from funnel.history.changes import Changes, MoveLimits
from funnel.history.decisions import EMPTY, History, extended_digest
from funnel.joint import IntArray, Joint
from funnel.protocol import DENOMINATOR, Protocol, WeightArray


@dataclass(frozen=True, eq=False)
class Chapter:
    """One published version, as the book keeps it.

    Attributes
    ----------
    version : str
        Its name, distinct in the register.
    guarantee : str
        The declared bound, as ``funnel.parse_guarantee`` reads it.
    joint : Joint
        Counts (c, a).
    changes : mapping of int to Changes
        From earlier versions, by ordinal.
    channel : Protocol
        W, the effective channel; its outputs are those of all rows of the library.
    library : ndarray of uint64, shape (m, b, a)
        Distinct channels, every column summing to 2^63.
    followed, drawn_from : ndarray of int64, shape (h,)
        The histories that people had before it, sorted, and which channel of the library each was drawn from.
    first : int
        The first of its nodes.
    parents, outputs : ndarray of int64, shape (k,)
        Of the nodes ``first``, ``first + 1``, …: the history before it, and what was published. Distinct pairs.
    row : int
        1; from 2 on, the version is the one before it, and this is about the second, third, … row of its units.
    of_units : bool
        Whether people may have several rows in the version.
    limits : mapping of int to MoveLimits, optional
        What noise leaves open of the moves since earlier versions, by ordinal, where the bound holds for all of that.
        Of rows of units, from first rows to second ones; these are exact where there is no noise.
    by_class : mapping of int to Changes, optional
        Changes over cells of secret and (class, input), as `funnel.history.mover_stayer` has them; where they were
        counted.
    """

    version: str
    guarantee: str
    joint: Joint
    changes: Mapping[int, Changes]
    channel: Protocol
    library: WeightArray
    followed: IntArray
    drawn_from: IntArray
    first: int
    parents: IntArray
    outputs: IntArray
    row: int = 1
    of_units: bool = False
    limits: Mapping[int, MoveLimits] | None = None
    by_class: Mapping[int, Changes] | None = None

    @property
    def begins_secret(self) -> bool:
        """Whether it is about a secret that its people did not have before: further rows of a unit may share that."""
        inputs = len(self.joint.inputs)
        return self.row == 1 or any(not changes.keep_secrets(inputs) for changes in self.changes.values())

    def channels_of(self, nodes: IntArray) -> IntArray:
        """Which channel of the library each of these histories was drawn from; shape (k,).

        Raises
        ------
        DataError
            If nobody had such a history.
        """
        places = np.minimum(np.searchsorted(self.followed, nodes), max(0, len(self.followed) - 1))
        if len(nodes) and (not len(self.followed) or (self.followed[places] != nodes).any()):
            raise DataError(f"nobody had such a history before version {self.version!r}")
        return np.asarray(self.drawn_from[places])


@dataclass(frozen=True, eq=False)
class Past:
    """Everything published about the people of a register; chapters in the order of publication.

    Histories are nodes of a tree with whole numbers: node 0 is the empty history, the nodes of a chapter follow those
    of the chapter before.

    Raises
    ------
    DataError
        If the numbers of nodes do not fit, or a version is there twice.
    """

    chapters: tuple[Chapter, ...] = ()
    _children: list[dict[tuple[int, int], int] | None] = field(default_factory=list, repr=False, init=False)
    _digests: dict[int, bytes] = field(default_factory=lambda: {0: EMPTY}, repr=False)

    def __post_init__(self) -> None:
        following = 1
        for chapter in self.chapters:
            if chapter.first != following or (chapter.parents < 0).any() or (chapter.parents >= chapter.first).any():
                raise DataError(f"the histories of version {chapter.version!r} are not numbered as they should be")
            following += len(chapter.parents)
        if len({chapter.version for chapter in self.chapters}) != len(self.chapters):
            raise DataError("two versions of a register have the same name")
        self._children.extend(None for _ in self.chapters)

    def __len__(self) -> int:
        """Number of versions."""
        return len(self.chapters)

    @property
    def size(self) -> int:
        """Number of histories, the empty one included: the next node."""
        return 1 + sum(len(chapter.parents) for chapter in self.chapters)

    @property
    def has_classes(self) -> bool:
        """Whether changes to all versions were counted by class."""
        return all(chapter.by_class is not None for chapter in self.chapters)

    def ordinal(self, version: str) -> int:
        """The number of a version.

        Raises
        ------
        DataError
            If there is none of that name.
        """
        for number, chapter in enumerate(self.chapters):
            if chapter.version == version:
                return number
        names = ", ".join(repr(chapter.version) for chapter in self.chapters) or "none yet"
        raise DataError(f"no version is named {version!r}; there are: {names}")

    def versions_of(self, nodes: IntArray) -> IntArray:
        """The last version of each history, by ordinal; -1 for the empty history. Shape (k,)."""
        firsts = np.array([chapter.first for chapter in self.chapters], dtype=np.int64)
        return np.asarray(np.searchsorted(firsts, nodes, side="right") - 1, dtype=np.int64)

    def heads_of(self, versions: IntArray) -> IntArray:
        """The chapter of the first row of each version, by the ordinal of any of its chapters; -1 stays. Shape (k,)."""
        back = np.array([chapter.row - 1 for chapter in self.chapters] + [0], dtype=np.int64)
        return np.asarray(versions - back[versions])

    def last_answers(self, nodes: IntArray, most: int) -> IntArray:
        """What was published last of each history, as numbers from 0, at most so many; (k,).

        By version and output, or by output alone where that is too many; and some outputs alike where it is still.
        """
        last = np.full((len(nodes), 2), -1, dtype=np.int64)
        last[:, 0] = self.versions_of(nodes)
        for number in np.unique(last[:, 0][last[:, 0] >= 0]).tolist():
            here, chapter = last[:, 0] == number, self.chapters[number]
            last[here, 1] = chapter.outputs[nodes[here] - chapter.first]
        if len(np.unique(last, axis=0)) > most:
            last = np.stack([last[:, 0] >= 0, last[:, 1] % (most - 1)], axis=1)
        return np.asarray(np.unique(last, axis=0, return_inverse=True)[1].reshape(-1), dtype=np.int64)

    def until(self, nodes: IntArray, number: int) -> IntArray:
        """What these histories were once a chapter was published: themselves without all that came later; (k,)."""
        nodes = nodes.copy()
        for chapter in reversed(self.chapters[number + 1 :]):
            here = nodes >= chapter.first
            nodes[here] = chapter.parents[nodes[here] - chapter.first]
        return nodes

    def before_rows(self, nodes: IntArray, rows: int) -> IntArray:
        """What these histories were so many rows of the newest version ago; shape (k,)."""
        for chapter in reversed(self.chapters[len(self.chapters) - rows :]):
            nodes = chapter.parents[nodes - chapter.first]
        return nodes

    def history(self, node: int) -> History:
        """The history of a node as (name of the version, output index) pairs."""
        pairs = []
        while node:
            chapter = self.chapters[int(self.versions_of(np.array([node]))[0])]
            place = node - chapter.first
            pairs.append((chapter.version, int(chapter.outputs[place])))
            node = int(chapter.parents[place])
        return tuple(reversed(pairs))

    def node(self, history: Iterable[tuple[str, int]]) -> int | None:
        """The node of a history; None where nobody has it.

        Raises
        ------
        DataError
            If a version is unknown, out of order, or has no such output.
        """
        node: int | None = 0
        last = -1
        for version, output in history:
            number = self.ordinal(version)
            chapter = self.chapters[number]
            if number <= last:
                raise DataError(f"the versions of a history must be in the order of publication, not {version!r} here")
            if not 0 <= output < len(chapter.channel.outputs):
                raise DataError(
                    f"version {version!r} has outputs 0 to {len(chapter.channel.outputs) - 1}, and no output {output}"
                )
            last = number
            node = None if node is None else self._children_of(number).get((node, int(output)))
        return node

    def digest(self, node: int) -> bytes:
        """The digest of a history; see `funnel.history.decisions`. What histories begin with is kept."""
        found = self._digests.get(node)
        if found is None:
            chapter = self.chapters[int(self.versions_of(np.array([node]))[0])]
            place = node - chapter.first
            before = self.digest(int(chapter.parents[place]))
            found = self._digests[node] = extended_digest(before, chapter.version, int(chapter.outputs[place]))
        return found

    def _children_of(self, number: int) -> dict[tuple[int, int], int]:
        known = self._children[number]
        if known is None:
            chapter = self.chapters[number]
            pairs = zip(chapter.parents.tolist(), chapter.outputs.tolist(), strict=True)
            known = self._children[number] = {pair: chapter.first + place for place, pair in enumerate(pairs)}
        return known

    def followed_by(self, chapter: Chapter) -> Past:
        """With one more version."""
        # Nodes keep their numbers, so what is known of them stays true.
        return Past((*self.chapters, chapter), self._digests)


def silent_rows(channel: Protocol) -> WeightArray:
    """Rows (b, a) that always publish the likeliest output of a channel."""
    weights = np.zeros_like(channel.weights)
    weights[int(channel.marginal.argmax())] = DENOMINATOR
    return weights


def wave_name(version: str, row: int) -> str:
    """How histories name the rows of a version: by the version, and from the second row on by its number too."""
    return version if row == 1 else f"{version}#{row}"
