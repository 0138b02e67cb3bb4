"""The DFS endpoint's writes: create, append, flush, rename and delete."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from email.utils import formatdate
from urllib.parse import urlsplit

from mirror_assets_tests.worlds.onelake.account import (
    Account,
    File,
    Folder,
    Item,
    Node,
    Tree,
    folders_above,
    unix_seconds,
)
from mirror_assets_tests.worlds.onelake.conditions import require, require_source, require_unmanaged
from mirror_assets_tests.worlds.onelake.messages import (
    BODY_REFUSED,
    HEADER_REFUSED,
    LENGTH_MISSING,
    NOT_BUILT,
    NOT_EMPTY,
    PARENT_MISSING,
    PATH_MISSING,
    PATH_TAKEN,
    SOURCE_MISSING,
    WRONG_LENGTH,
    WRONG_MD5,
    WRONG_POSITION,
    WRONG_QUERY,
    WRONG_RENAME,
    WRONG_TYPE,
    Answer,
    Operation,
    Refused,
    Request,
)


def done(status: int, node: Node) -> Answer:
    """The answer to a write, with the ETag that it left."""
    modified = formatdate(unix_seconds(node.modified), usegmt=True)
    return Answer(status, {"ETag": node.etag, "Last-Modified": modified, "x-ms-request-server-encrypted": "true"})


def require_md5(request: Request) -> None:
    """Refuse a body that is not the one whose MD5 was sent."""
    sent = request.headers.get("Content-MD5")
    if sent is not None and sent != md5_of(request.body):
        raise Refused(WRONG_MD5)


def md5_of(data: bytes) -> str:
    """The MD5 of the data as headers carry it."""
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def require_folders(tree: Tree, path: str) -> None:
    if any(isinstance(tree.get(folder), File) for folder in folders_above(path)):
        raise Refused(PATH_TAKEN)


def create(item: Item, request: Request) -> Answer:
    """Make a file or folder, with the folders above it. Without a condition, an existing file is emptied."""
    require_unmanaged(request.path)
    _require_no_body(request)
    tree, found = item.tree, item.tree.get(request.path)
    require(request.headers, found, PATH_TAKEN)
    made: Node = File() if request.operation is Operation.CREATE else Folder()
    if found is not None and type(found) is not type(made):
        raise Refused(PATH_TAKEN)
    require_folders(tree, request.path)
    if isinstance(found, Folder):
        return done(201, found)
    tree.put(request.path, made)
    return done(201, made)


def append(item: Item, request: Request) -> Answer:
    """Keep data for a flush, at its position behind the committed data."""
    file, position = _file(item, request), _position(request.query)
    if "Content-Length" not in request.headers:
        raise Refused(LENGTH_MISSING)
    if position < len(file.data):
        raise Refused(WRONG_POSITION)
    require_md5(request)
    longer = file.with_appended(position, request.body)
    if request.query.get("flush") == "true":
        return done(202, _flush(item, request, longer, position + len(request.body)))
    item.tree.put(request.path, longer)
    return done(202, longer)


def flush(item: Item, request: Request) -> Answer:
    """Make what was appended part of the file; a repeated flush changes nothing, not even the ETag."""
    _require_no_body(request)
    return done(200, _flush(item, request, _file(item, request), _position(request.query)))


def rename(account: Account, item: Item, request: Request) -> Answer:
    """Move a file or folder at once, ETags and all. What is wrong with the source is said before the target's state."""
    if "resource" in request.query:
        raise Refused(HEADER_REFUSED)
    require_unmanaged(request.path)
    path, tree = _source(account, item, request), item.tree
    source, target = tree.get(path), tree.get(request.path)
    if source is None:
        raise Refused(SOURCE_MISSING)
    require_unmanaged(path)
    require_source(request.headers, source)
    require(request.headers, target, PATH_TAKEN)
    if not isinstance(tree.get(request.path.rpartition("/")[0]), Folder):
        raise Refused(PARENT_MISSING)
    if f"{request.path}/".startswith(f"{path}/"):
        raise Refused(WRONG_RENAME)
    if target is not None:
        _require_replaceable(tree, request.path, source, target)
        tree.remove(request.path)
    tree.move(path, request.path)
    return done(201, source)


def delete(item: Item, request: Request, page_size: int) -> Answer:
    """Delete a file, or a folder with all that is in it, at once.

    Pages of a paginated delete only look at the folder's permissions; the last deletes it.
    """
    require_unmanaged(request.path)
    found = item.tree.get(request.path)
    if found is None:
        raise Refused(PATH_MISSING)
    require(request.headers, found)
    below = len(item.tree.below(request.path))
    if below and request.query.get("recursive") != "true":
        raise Refused(NOT_EMPTY)
    seen = int(request.query.get("continuation") or 0) + page_size
    if request.query.get("paginated") == "true" and seen < below:
        return Answer(200, {"x-ms-continuation": str(seen)})
    item.tree.remove(request.path)
    return Answer(202 if _is_blob_delete(request) else 200)


def _is_blob_delete(request: Request) -> bool:
    """Whether the blob SDK sent it, which wants 202 for what the DFS endpoint answers with 200."""
    return "recursive" not in request.query and "xml" in request.headers.get("Accept", "")


def _require_no_body(request: Request) -> None:
    if request.headers.get("Content-Length") != "0":
        raise Refused(BODY_REFUSED)


def _file(item: Item, request: Request) -> File:
    found = item.tree.get(request.path)
    if found is None:
        raise Refused(PATH_MISSING)
    if isinstance(found, Folder):
        raise Refused(WRONG_TYPE)
    return found


def _position(query: Mapping[str, str]) -> int:
    position = query.get("position", "")
    if not position.isdecimal():
        raise Refused(WRONG_QUERY)
    return int(position)


def _flush(item: Item, request: Request, file: File, length: int) -> File:
    require(request.headers, file)
    data = _with_appended(file, length, retain=request.query.get("retainUncommittedData") == "true")
    flushed = file.with_data(data) if file.appended else file
    item.tree.put(request.path, flushed)
    return flushed


def _with_appended(file: File, length: int, *, retain: bool) -> bytes:
    """The file's data with what was appended behind it without a gap, which has to make it `length` long."""
    parts, end = [file.data], len(file.data)
    for position in sorted(file.appended):
        if position == end:
            parts.append(file.appended[position])
            end += len(parts[-1])
    if end != length or (not retain and any(position >= end for position in file.appended)):
        raise Refused(WRONG_LENGTH)
    return b"".join(parts)


def _source(account: Account, item: Item, request: Request) -> str:
    """The path of a rename's source in the same item; renames out of an item are not for us."""
    try:
        place = account.place(urlsplit(request.headers["x-ms-rename-source"]).path)
    except Refused:
        raise Refused(SOURCE_MISSING) from None
    if place.item is None:
        raise Refused(SOURCE_MISSING)
    if place.item is not item:
        raise Refused(NOT_BUILT)
    return place.path


def _require_replaceable(tree: Tree, path: str, source: Node, target: Node) -> None:
    if type(source) is not type(target):
        raise Refused(WRONG_TYPE)
    if tree.below(path):
        raise Refused(PATH_TAKEN)
