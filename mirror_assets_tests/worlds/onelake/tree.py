"""One item's files and folders, in memory."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

# Ticks of 100 ns from 1601, the time that OneLake's listings give, to 1970.
_TICKS_BEFORE_1970 = 116_444_736_000_000_000


class _Clock:
    """Ticks that grow with every look, so that what is deleted and made again has another time of creation."""

    def __init__(self) -> None:
        self._lock, self._last = threading.Lock(), 0

    def ticks(self) -> int:
        with self._lock:
            self._last = max(self._last + 1, time.time_ns() // 100 + _TICKS_BEFORE_1970)
            return self._last


_clock = _Clock()
_etags = itertools.count(0x8DE_2900_0000_0000)


def unix_seconds(ticks: int) -> float:
    """The seconds since 1970 of a time in ticks."""
    return (ticks - _TICKS_BEFORE_1970) / 10_000_000


def _fresh_etag() -> str:
    return f'"0x{next(_etags):X}"'


@dataclass(frozen=True)
class Folder:
    """A folder; what happens in it changes neither its ETag nor its times."""

    etag: str = field(default_factory=_fresh_etag)
    created: int = field(default_factory=_clock.ticks)
    modified: int = field(default_factory=_clock.ticks)

    @property
    def data(self) -> bytes:
        """Nothing: a folder reads like an empty file."""
        return b""


@dataclass(frozen=True)
class File:
    """A file as it can be read, and what was appended to it but not flushed, by position."""

    data: bytes = b""
    appended: Mapping[int, bytes] = field(default_factory=dict)
    etag: str = field(default_factory=_fresh_etag)
    created: int = field(default_factory=_clock.ticks)
    modified: int = field(default_factory=_clock.ticks)

    def with_appended(self, position: int, data: bytes) -> File:
        """The file after an append, which nobody can read yet; the same position again replaces, as a retry does."""
        return replace(self, appended={**self.appended, position: data})

    def with_data(self, data: bytes) -> File:
        """The file with another content, and so with another ETag; what was appended further behind is kept."""
        behind = {position: kept for position, kept in self.appended.items() if position >= len(data)}
        return replace(self, data=data, appended=behind, etag=_fresh_etag(), modified=_clock.ticks())


Node = File | Folder


class Tree:
    """Files and folders by their path below the item, such as `Files/LandingZone/orders`; "" is the item itself."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {"": Folder()}

    def nodes(self) -> Mapping[str, Node]:
        """Everything by its path; what happens later does not change it."""
        return dict(self._nodes)

    def reset(self, nodes: Mapping[str, Node]) -> None:
        self._nodes = dict(nodes)

    def get(self, path: str) -> Node | None:
        return self._nodes.get(path)

    def put(self, path: str, node: Node) -> None:
        """Set what is at the path, and make the folders above it that are missing."""
        for folder in folders_above(path):
            self._nodes.setdefault(folder, Folder())
        self._nodes[path] = node

    def below(self, folder: str) -> list[str]:
        prefix = f"{folder}/" if folder else ""
        return sorted(path for path in self._nodes if path and path.startswith(prefix))

    def children(self, folder: str) -> list[str]:
        """The paths of what is directly in the folder, sorted."""
        return [path for path in self.below(folder) if path.rpartition("/")[0] == folder]

    def remove(self, path: str) -> None:
        """Take away what is at the path, with all that is below it."""
        for gone in (*self.below(path), path):
            del self._nodes[gone]

    def move(self, source: str, target: str) -> None:
        """Give what is at `source`, and all below it, a new path: same ETags, same times."""
        for path in (source, *self.below(source)):
            self._nodes[target + path.removeprefix(source)] = self._nodes.pop(path)


def folders_above(path: str) -> Iterator[str]:
    """The folders above a path, the outermost first, without the item itself."""
    parts = path.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts)))
