"""The service's errors, each a status, a code and a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from mirror_assets_tests.worlds.onelake.messages import Answer, Request


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
