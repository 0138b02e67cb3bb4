"""What a request asks for, told from its method, query and headers."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Operation(Enum):
    """The kinds of request that a log counts and a fault names."""

    CREATE = "create"
    CREATE_FOLDER = "create folder"
    APPEND = "append"
    FLUSH = "flush"
    RENAME = "rename"
    DELETE = "delete"
    LIST = "list"
    LIST_BLOBS = "list blobs"
    HEAD = "head"
    READ = "read"
    PUT_BLOB = "put blob"
    TOKEN = "token"  # noqa: S105 a name
    DISCOVERY = "discovery"
    OTHER = "other"

    @property
    def is_storage(self) -> bool:
        return self not in (Operation.TOKEN, Operation.DISCOVERY)

    @property
    def is_blob(self) -> bool:
        """Whether the SDK sends it to the blob endpoint, which answers errors in XML."""
        return self in _OF_BLOBS


_OF_BLOBS = (Operation.HEAD, Operation.READ, Operation.PUT_BLOB, Operation.LIST_BLOBS)
_BY_END = {
    "/oauth2/v2.0/token": Operation.TOKEN,
    "/oauth2/token": Operation.TOKEN,
    "/.well-known/openid-configuration": Operation.DISCOVERY,
}
_BY_METHOD = {"DELETE": Operation.DELETE, "HEAD": Operation.HEAD, "GET": Operation.READ}
_BY_ACTION = {"append": Operation.APPEND, "flush": Operation.FLUSH}
_BY_RESOURCE = {"file": Operation.CREATE, "directory": Operation.CREATE_FOLDER}


def operation_of(method: str, url_path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> Operation:
    for end, operation in _BY_END.items():
        if url_path.endswith(end):
            return operation
    if method == "PUT":
        return _put(query, headers)
    if method == "PATCH":
        return _BY_ACTION.get(query.get("action", ""), Operation.OTHER)
    if method == "GET" and query.get("resource") == "filesystem":
        return Operation.LIST
    if "comp" in query or query.get("restype") == "container":
        return Operation.LIST_BLOBS if (method, query.get("comp")) == ("GET", "list") else Operation.OTHER
    return _BY_METHOD.get(method, Operation.OTHER)


def _put(query: Mapping[str, str], headers: Mapping[str, str]) -> Operation:
    if "x-ms-rename-source" in headers:
        return Operation.RENAME
    if "x-ms-blob-type" in headers and "comp" not in query:
        return Operation.PUT_BLOB
    return _BY_RESOURCE.get(query.get("resource", ""), Operation.OTHER)
