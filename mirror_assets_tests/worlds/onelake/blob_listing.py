"""The blob endpoint's listing (Azure's "List Blobs"), in pages: deltalake lists a table's folder by it."""

from __future__ import annotations

from email.utils import formatdate
from xml.sax.saxutils import escape

from mirror_assets_tests.worlds.onelake.account import Workspace
from mirror_assets_tests.worlds.onelake.messages import Answer, Request
from mirror_assets_tests.worlds.onelake.tree import Folder, Node, unix_seconds


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
    """A folder is a blob, too, and told by its type."""
    kind = "directory" if isinstance(node, Folder) else "file"
    return (
        f"<Blob><Name>{escape(name)}</Name><Properties>"
        f"<Last-Modified>{formatdate(unix_seconds(node.modified), usegmt=True)}</Last-Modified>"
        f"<Etag>{escape(node.etag)}</Etag><Content-Length>{len(node.data)}</Content-Length>"
        "<Content-Type>application/octet-stream</Content-Type>"
        f"<ResourceType>{kind}</ResourceType><BlobType>BlockBlob</BlobType></Properties></Blob>"
    )
