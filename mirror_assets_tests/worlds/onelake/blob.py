"""The blob endpoint: properties, reads, and a whole file in one request."""

from __future__ import annotations

import re
from email.utils import formatdate

from mirror_assets_tests.worlds.onelake.account import File, Folder, Item, Node, unix_seconds
from mirror_assets_tests.worlds.onelake.conditions import require, require_unmanaged
from mirror_assets_tests.worlds.onelake.dfs import done, md5_of, require_folders, require_md5
from mirror_assets_tests.worlds.onelake.messages import (
    BLOB_MISSING,
    BLOB_TAKEN,
    BLOCKS_REFUSED,
    LENGTH_MISSING,
    NOT_BUILT,
    NOT_MODIFIED,
    WRONG_HEADER,
    Answer,
    Refusal,
    Refused,
    Request,
)

_RANGE = re.compile(r"bytes=(\d+)-(\d*)")
_MD5_LIMIT = 4 << 20


def head(item: Item, request: Request) -> Answer:
    found = _found(item, request)
    return Answer(200, {**_properties(found), "Content-Length": str(len(found.data))})


def read(item: Item, request: Request) -> Answer:
    """A file's content, or the range of it that a header names."""
    found = _found(item, request)
    requested = request.headers.get("x-ms-range") or request.headers.get("Range")
    if requested is None:
        return Answer(200, _properties(found), found.data)
    first, last = _range(requested, len(found.data))
    part = found.data[first : last + 1]
    headers = {**_properties(found), "Content-Range": f"bytes {first}-{last}/{len(found.data)}"}
    if request.headers.get("x-ms-range-get-content-md5") == "true":
        if len(part) > _MD5_LIMIT:
            raise Refused(WRONG_HEADER)
        headers["Content-MD5"] = md5_of(part)
    return Answer(206, headers, part)


def put_blob(item: Item, request: Request) -> Answer:
    require_unmanaged(request.path)
    if request.headers["x-ms-blob-type"] != "BlockBlob":
        raise Refused(NOT_BUILT)
    if "Content-Length" not in request.headers:
        raise Refused(LENGTH_MISSING)
    found = item.tree.get(request.path)
    require(request.headers, found, BLOB_TAKEN)
    if isinstance(found, Folder):
        raise Refused(BLOCKS_REFUSED)
    require_md5(request)
    require_folders(item.tree, request.path)
    item.tree.put(request.path, written := (found or File()).with_data(request.body))
    return done(201, written)


def _found(item: Item, request: Request) -> Node:
    found = item.tree.get(request.path)
    if found is None:
        raise Refused(BLOB_MISSING)
    require(request.headers, found, NOT_MODIFIED)
    return found


def _properties(node: Node) -> dict[str, str]:
    kind = {"x-ms-resource-type": "file"}
    if isinstance(node, Folder):
        kind = {"x-ms-resource-type": "directory", "x-ms-meta-hdi_isfolder": "true"}
    return kind | {
        "ETag": node.etag,
        "Last-Modified": formatdate(unix_seconds(node.modified), usegmt=True),
        "x-ms-creation-time": formatdate(unix_seconds(node.created), usegmt=True),
        "Accept-Ranges": "bytes",
        "Content-Type": "application/octet-stream",
        "x-ms-blob-type": "BlockBlob",
        "x-ms-lease-state": "available",
        "x-ms-lease-status": "unlocked",
        "x-ms-server-encrypted": "true",
        "x-ms-owner": "$superuser",
        "x-ms-group": "$superuser",
        "x-ms-permissions": "---------",
    }


def _range(requested: str, length: int) -> tuple[int, int]:
    """The first and last byte of a range, cut at the file's end."""
    match = _RANGE.fullmatch(requested)
    if match is None:
        raise Refused(WRONG_HEADER)
    first = int(match[1])
    if first >= length:
        headers = {"Content-Range": f"bytes */{length}"}
        raise Refused(Refusal(416, "InvalidRange", "The range specified is invalid for the file's size.", headers))
    return first, min(int(match[2] or length), length - 1)
