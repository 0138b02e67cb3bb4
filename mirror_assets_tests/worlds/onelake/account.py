"""Workspaces, their items, and the files and folders of these, in memory; and what a URL's path names among them."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

from mirror_assets_tests.worlds.onelake.messages import ITEM_MISSING, NAMES_MIXED, WORKSPACE_MISSING, Refused

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


# What the abfs driver puts before the workspace when an endpoint is set: the account, or what it takes for one.
_ACCOUNTS = ("onelake", "null")
LANDING_ZONE = "Files/LandingZone"


@dataclass(frozen=True)
class Item:
    """A mirrored database: its folder holds what Fabric makes with it."""

    guid: str
    name: str
    tree: Tree = field(default_factory=Tree, compare=False)


@dataclass(frozen=True)
class Workspace:
    """A workspace, which the storage API calls a file system."""

    guid: str
    name: str
    items: dict[str, Item] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Place:
    """What a URL's path names: nothing (the account), a workspace, or a path in one of its items."""

    workspace: Workspace | None
    item: Item | None
    path: str = ""


class Account:
    """All workspaces; Fabric makes them and their items, never the storage API."""

    def __init__(self) -> None:
        self._workspaces: dict[str, Workspace] = {}

    def add_workspace(self, name: str) -> Workspace:
        made = Workspace(str(uuid.uuid4()), name)
        self._workspaces[made.guid] = made
        return made

    def add_item(self, workspace: Workspace, name: str) -> Item:
        """A new item; `name` carries its type, as in `sales.MirroredDatabase`."""
        made = Item(str(uuid.uuid4()), name)
        for folder in ("Files", LANDING_ZONE, "Tables"):
            made.tree.put(folder, Folder())
        workspace.items[made.guid] = made
        return made

    def place(self, url_path: str) -> Place:
        """What the path of a URL names. Raises Refused for an unknown workspace or item, and for mixed names."""
        parts = [unquote(part) for part in url_path.split("/") if part]
        if parts and parts[0] in _ACCOUNTS:
            parts = parts[1:]
        if not parts:
            return Place(None, None)
        workspace = self._workspace(parts[0])
        if len(parts) == 1:
            return Place(workspace, None)
        return Place(workspace, _item(workspace, parts[1], named=not _is_guid(parts[0])), "/".join(parts[2:]))

    def _workspace(self, text: str) -> Workspace:
        for workspace in self._workspaces.values():
            if text.lower() in (workspace.guid, workspace.name.lower()):
                return workspace
        raise Refused(WORKSPACE_MISSING)


def _item(workspace: Workspace, text: str, *, named: bool) -> Item:
    """The item that the text means; it has to be a name where the workspace was named, else a GUID."""
    if named == _is_guid(text):
        raise Refused(NAMES_MIXED)
    for item in workspace.items.values():
        if text.lower() in (item.guid, item.name.lower()):
            return item
    raise Refused(ITEM_MISSING)


def _is_guid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False
