"""The listings of both endpoints, in pages: deltalake lists a table's folder by the one for blobs."""

from __future__ import annotations

import base64
from email.utils import formatdate
from xml.sax.saxutils import escape

from mirror_assets_tests.worlds.onelake.account import Account, Folder, Item, Node, Workspace, unix_seconds
from mirror_assets_tests.worlds.onelake.messages import PATH_MISSING, WRONG_QUERY, Answer, Refused, Request


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


def list_blobs(workspace: Workspace, request: Request, page_size: int) -> Answer:
    """One page of the names that begin with a prefix, up to the delimiter behind it if there is one."""
    prefix, delimiter = request.query.get("prefix", ""), request.query.get("delimiter", "")
    found: dict[str, str] = {}
    for name, node in _blobs(workspace).items():
        if name.startswith(prefix):
            head, cut, _ = name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "")
            at = f"{prefix}{head}{cut}" if cut else name
            found[at] = f"<BlobPrefix><Name>{escape(at)}</Name></BlobPrefix>" if cut else _blob(name, node)
    names = [name for name in sorted(found) if name > request.query.get("marker", "")]
    limit = min(int(request.query.get("maxresults", page_size)), page_size)
    marker = escape(names[limit - 1]) if len(names) > limit else ""
    blobs = "".join(found[name] for name in names[:limit])
    text = f"<EnumerationResults><Blobs>{blobs}</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>"
    body = f'<?xml version="1.0" encoding="utf-8"?>{text}'.encode()
    return Answer(200, {"Content-Type": "application/xml"}, body)


def _blobs(workspace: Workspace) -> dict[str, Node]:
    items = workspace.items.values()
    found = {f"{item.guid}/{path}": item.tree.get(path) for item in items for path in item.tree.below("")}
    return {name: node for name, node in found.items() if node is not None}


def _blob(name: str, node: Node) -> str:
    kind = "directory" if isinstance(node, Folder) else "file"
    return (
        f"<Blob><Name>{escape(name)}</Name><Properties>"
        f"<Last-Modified>{formatdate(unix_seconds(node.modified), usegmt=True)}</Last-Modified>"
        f"<Etag>{escape(node.etag)}</Etag><Content-Length>{len(node.data)}</Content-Length>"
        "<Content-Type>application/octet-stream</Content-Type>"
        f"<ResourceType>{kind}</ResourceType><BlobType>BlockBlob</BlobType></Properties></Blob>"
    )
