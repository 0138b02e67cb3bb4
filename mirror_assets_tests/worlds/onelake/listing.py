"""The DFS endpoint's listing, in pages."""

from __future__ import annotations

import base64
from email.utils import formatdate

from mirror_assets_tests.worlds.onelake.account import Account, Item, Workspace
from mirror_assets_tests.worlds.onelake.messages import Answer, Request
from mirror_assets_tests.worlds.onelake.refusals import PATH_MISSING, WRONG_QUERY, Refused
from mirror_assets_tests.worlds.onelake.tree import Folder, Node, unix_seconds


def list_paths(account: Account, workspace: Workspace, request: Request, page_size: int) -> Answer:
    """One page of what is in a folder, by name; names begin with the item's GUID, however it was addressed."""
    limit = _page_size(request, page_size)
    nodes = _nodes(account, workspace, request)
    after = _after(request.query.get("continuation", ""))
    names = [name for name in sorted(nodes) if name > after]
    headers = {"x-ms-continuation": _continuation(names[limit - 1])} if len(names) > limit else {}
    return Answer.of_json(200, {"paths": [_line(name, nodes[name]) for name in names[:limit]]}, headers)


def _nodes(account: Account, workspace: Workspace, request: Request) -> dict[str, Node]:
    folder, recursive = request.query.get("directory", "").strip("/"), request.query.get("recursive") == "true"
    if folder:
        item = account.place(f"{request.url_path.rstrip('/')}/{folder}").item
        return _below(item, folder.partition("/")[2], recursive=recursive) if item else {}
    items = workspace.items.values()
    nodes = {item.guid: item.tree.get("") for item in items}
    found = {guid: node for guid, node in nodes.items() if node is not None}
    for item in items if recursive else ():
        found |= _below(item, "", recursive=True)
    return found


def _below(item: Item, folder: str, *, recursive: bool) -> dict[str, Node]:
    """What is in the folder. A file gives itself, which abfs relies on when it lists the files it was told to read."""
    found = item.tree.get(folder)
    if found is None:
        raise Refused(PATH_MISSING)
    if not isinstance(found, Folder):
        return {f"{item.guid}/{folder}": found}
    paths = item.tree.below(folder) if recursive else item.tree.children(folder)
    return {f"{item.guid}/{path}": node for path in paths if (node := item.tree.get(path)) is not None}


def _line(name: str, node: Node) -> dict[str, str]:
    folder = {"isDirectory": "true"} if isinstance(node, Folder) else {}
    return folder | {
        "name": name,
        "contentLength": str(len(node.data)),
        "creationTime": str(node.created),
        "etag": node.etag.strip('"'),
        "lastModified": formatdate(unix_seconds(node.modified), usegmt=True),
        "owner": "$superuser",
        "group": "$superuser",
        "permissions": "---------",
    }


def _page_size(request: Request, page_size: int) -> int:
    requested = request.query.get("maxResults", str(page_size))
    if not requested.isdecimal() or int(requested) == 0:
        raise Refused(WRONG_QUERY)
    return min(int(requested), page_size)


def _continuation(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _after(continuation: str) -> str:
    try:
        return base64.urlsafe_b64decode(continuation).decode()
    except ValueError:
        raise Refused(WRONG_QUERY) from None
