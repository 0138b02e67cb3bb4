"""Workspaces and items, and what a URL's path names among them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from urllib.parse import unquote

from mirror_assets_tests.worlds.onelake.refusals import ITEM_MISSING, NAMES_MIXED, WORKSPACE_MISSING, Refused
from mirror_assets_tests.worlds.onelake.tree import Folder, Tree

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
