"""What comes in, what it asks for, and what goes out: answers, and the service's errors. They know no server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from xml.sax.saxutils import escape


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


@dataclass(frozen=True)
class Request:
    """One request, read whole."""

    method: str
    url_path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    operation: Operation
    path: str
    """The path below the item, such as `Files/LandingZone/orders`; empty for what concerns no item."""


@dataclass(frozen=True)
class Answer:
    """What a request is answered with."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @classmethod
    def of_json(cls, status: int, document: object, headers: Mapping[str, str] | None = None) -> Answer:
        return cls(status, {"Content-Type": "application/json", **(headers or {})}, json.dumps(document).encode())


@dataclass(frozen=True)
class Refusal:
    """One error of the service; `headers` come beside its code."""

    status: int
    code: str
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def answer(self, request: Request) -> Answer:
        """The error as it goes over the wire: XML from the blob endpoint, else JSON; a HEAD has only headers."""
        headers = {"x-ms-error-code": self.code, **self.headers}
        if request.method == "HEAD" or self.status == 304:
            return Answer(self.status, headers)
        if request.operation.is_blob:
            text = f"<Error><Code>{self.code}</Code><Message>{escape(self.message)}</Message></Error>"
            body = f'<?xml version="1.0" encoding="utf-8"?>{text}'.encode()
            return Answer(self.status, {"Content-Type": "application/xml", **headers}, body)
        return Answer.of_json(self.status, {"error": {"code": self.code, "message": self.message}}, headers)


class Refused(Exception):
    """The service will not do what was asked."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(f"{refusal.status} {refusal.code}: {refusal.message}")


_NOT_MET = "The condition specified using HTTP conditional header(s) is not met."
CHANGED = Refusal(412, "ConditionNotMet", _NOT_MET)
SOURCE_CHANGED = Refusal(412, "SourceConditionNotMet", _NOT_MET)
NOT_MODIFIED = Refusal(304, "ConditionNotMet", _NOT_MET)

PATH_TAKEN = Refusal(409, "PathAlreadyExists", "The specified path already exists.")
BLOB_TAKEN = Refusal(409, "BlobAlreadyExists", "The specified blob already exists.")
NOT_EMPTY = Refusal(409, "DirectoryNotEmpty", "The recursive query parameter value must be true to delete it.")
WRONG_TYPE = Refusal(409, "ResourceTypeMismatch", "The operation is not for this type of resource.")
BLOCKS_REFUSED = Refusal(409, "BlobOperationNotSupported", "Blob operation is not supported.")

PATH_MISSING = Refusal(404, "PathNotFound", "The specified path does not exist.")
BLOB_MISSING = Refusal(404, "BlobNotFound", "The specified blob does not exist.")
SOURCE_MISSING = Refusal(404, "SourcePathNotFound", "The source path for a rename operation does not exist.")
PARENT_MISSING = Refusal(
    404, "RenameDestinationParentPathNotFound", "The parent directory of the destination path does not exist."
)
WORKSPACE_MISSING = Refusal(404, "FilesystemNotFound", "The specified filesystem does not exist.")
ITEM_MISSING = Refusal(404, "PathNotFound", "The workspace has no such item.")

BODY_REFUSED = Refusal(400, "ContentLengthMustBeZero", "The Content-Length request header must be zero.")
LENGTH_MISSING = Refusal(411, "MissingContentLengthHeader", "The Content-Length header was not specified.")
WRONG_MD5 = Refusal(400, "Md5Mismatch", "The MD5 value specified in the request did not match that of the body.")
WRONG_POSITION = Refusal(400, "InvalidQueryParameterValue", "The position query parameter is inside committed data.")
WRONG_LENGTH = Refusal(
    400, "InvalidFlushPosition", "The uploaded data is not contiguous, or position is not the file's new length."
)
WRONG_QUERY = Refusal(400, "InvalidQueryParameterValue", "A query parameter has a value that is not valid.")
WRONG_HEADER = Refusal(400, "InvalidHeaderValue", "A header has a value that is not valid.")
WRONG_RENAME = Refusal(400, "InvalidRenameSourcePath", "A folder can't be renamed into itself.")
HEADER_REFUSED = Refusal(400, "UnsupportedHeader", "One of the headers specified in the request is not supported.")
NAMES_MIXED = Refusal(
    400, "FriendlyNameSupportDisabled", "Use GUIDs for both workspace and item, or names for both of them."
)

MANAGED = Refusal(403, "OperationNotAllowedOnThePath", "Fabric manages this folder.")
NOT_HERE = Refusal(403, "OperationNotAllowed", "Workspaces and items are managed by Fabric, not by the storage API.")
NO_TOKEN = Refusal(401, "NoAuthenticationInformation", "The request carries no token.")
WRONG_TOKEN = Refusal(401, "InvalidAuthenticationInfo", "The token has expired, or was not issued for OneLake.")
KEY_REFUSED = Refusal(403, "KeyBasedAuthenticationNotPermitted", "OneLake takes Microsoft Entra tokens only.")
SAS_REFUSED = Refusal(403, "AuthenticationFailed", "OneLake takes no shared access signature in this workspace.")

NOT_BUILT = Refusal(501, "NotImplemented", "The loopback OneLake has no such operation.")
