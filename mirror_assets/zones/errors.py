"""Errors of the stores of landing zones."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, ErrorRow, RetryError, SettingError, StopError, UnknownOutcome
from mirror_assets.lakes.store_faults import CAPACITY_PAUSED, GUIDS_NEEDED


class PathMissing(StopError):
    """No file exists at the path."""


PATH_MISSING = ErrorRow(
    ErrorCode.FOREIGN_CHANGE,
    PathMissing,
    "No file exists at the path.",
    "{path} does not exist.",
    "check that nothing else deletes files in the landing zone.",
    "mirror-assets check --table TABLE --only file_continuity",
)


class PathExists(StopError):
    """The path exists, and the request requires a free one."""


PATH_EXISTS = ErrorRow(
    ErrorCode.FOREIGN_CHANGE,
    PathExists,
    "The path exists, and the request requires a free one.",
    "{path} already exists.",
    "read it back before writing again.",
    "mirror-assets check --table TABLE --only file_continuity",
)


class PathChanged(StopError):
    """The file's ETag is not the one in the request's condition."""


PATH_CHANGED = ErrorRow(
    ErrorCode.FOREIGN_CHANGE,
    PathChanged,
    "The file's ETag is not the one in the request's condition.",
    "{path} has ETag {found}, not {wanted}.",
    "read it back before writing again.",
    "mirror-assets check --table TABLE --only file_continuity",
)
PATH_REFUSED = ErrorRow(
    ErrorCode.PATH_REFUSED,
    SettingError,
    "The path leaves the store's root, or is not valid in a store.",
    "path {path!r} is refused: {why}.",
    "use a relative path of plain names.",
    "mirror-assets validate",
)
STORE_FULL = ErrorRow(
    ErrorCode.STORE_FULL,
    RetryError,
    "No space was left, in the landing zone or in Spark's folders. Nothing was published.",
    "no space left while writing {path}.",
    "free space and run again; nothing was lost.",
    "df -h\nmirror-assets run",
)
STORE_DENIED = ErrorRow(
    ErrorCode.STORE_DENIED,
    SettingError,
    "The store refused access. On OneLake, the message says whether a network rule, a tenant setting or a missing role "
    "is the reason.",
    "access to {path} is refused: {why}.",
    "grant read and write on the landing zone, then run again.",
    "mirror-assets doctor --table TABLE    # as this process and as Spark",
)
ROOT_UNUSABLE = ErrorRow(
    ErrorCode.STORE_DENIED,
    SettingError,
    "A landing zone whose path is not a folder.",
    "the landing zone {root} can't be used: {why}.",
    "set landing_zone.path to a folder that this account may write to, or move the file.",
    "mirror-assets doctor --table TABLE    # as this process and as Spark",
)


class FileTooLarge(StopError):
    """A control file is larger than any that this program writes."""

    size: int


FILE_TOO_LARGE = ErrorRow(
    ErrorCode.FOREIGN_CHANGE,
    FileTooLarge,
    "A control file is larger than any that this program writes.",
    "{path} has {size} bytes, more than the {limit} that are allowed.",
    "it was not written by this program: move it, then run again.",
    "mirror-assets check --table TABLE --only file_continuity",
)
STORE_UNAVAILABLE = ErrorRow(
    ErrorCode.STORE_UNAVAILABLE,
    RetryError,
    "The store failed temporarily; the request had no effect.",
    "the store failed at {path}: {why}.",
    "run again; nothing was lost.",
    "mirror-assets doctor --no-spark    # tests the landing zone\nmirror-assets run",
)


REQUEST_UNKNOWN = ErrorRow(
    ErrorCode.OUTCOME_UNKNOWN,
    UnknownOutcome,
    "The response to a write was lost, so it may or may not have taken effect.",
    "whether the write of {path} took effect is unknown: {why}.",
    "read it back, then repeat it.",
    "mirror-assets run",
)
FILE_SYSTEM_UNFIT = ErrorRow(
    ErrorCode.FILE_SYSTEM_UNFIT,
    SettingError,
    "The disk can't rename without overwriting.",
    "the file system of {root} has no rename that refuses to overwrite (renameat2 RENAME_NOREPLACE).",
    "put landing_zone.path on a local Linux file system such as ext4, xfs, btrfs or tmpfs.",
    "stat --file-system --format %T ./landing\nmirror-assets doctor --no-spark",
)
ITEM_MISSING = ErrorRow(
    ErrorCode.ITEM_MISSING,
    SettingError,
    "OneLake does not find the workspace or the item: the mirrored database was deleted, the URL is wrong, or "
    "this identity may not see it. Nothing is planned, and each table's checks report this error.",
    "the mirrored database of {root} was deleted, or never existed ({code}).",
    "restore it. A re-created one has another GUID and an empty landing zone: copy the landing zone's URL from its "
    "page in the portal into landing_zone.onelake.url (both GUIDs must be right); then `mirror-assets run` loads all "
    "tables again.",
    "mirror-assets doctor --no-spark",
)
STORE_THROTTLED = ErrorRow(
    ErrorCode.STORE_THROTTLED,
    RetryError,
    "OneLake throttles requests, because the capacity is overloaded or paused.",
    "OneLake refused {path} for {seconds:.0f} s: {why}.",
    "check in the portal whether the capacity is paused or overloaded; run again; nothing was lost.",
    "mirror-assets run",
)
STORE_PAUSED = ErrorRow(
    ErrorCode.STORE_THROTTLED,
    RetryError,
    "The capacity of the workspace is paused. OneLake rejects all requests, so none is repeated.",
    f"OneLake {CAPACITY_PAUSED.says} ({{code}}): {{root}}.",
    CAPACITY_PAUSED.next_step,
    "mirror-assets fabric status",
)
ADDRESS_REFUSED = ErrorRow(
    ErrorCode.STORE_REFUSED,
    SettingError,
    "OneLake does not find the workspace or the item by the text in the URL.",
    f"OneLake {GUIDS_NEEDED.says} ({{code}}): {{root}}.",
    GUIDS_NEEDED.next_step,
    "mirror-assets doctor --no-spark",
)
STORE_REFUSED = ErrorRow(
    ErrorCode.STORE_REFUSED,
    StopError,
    "OneLake returned an unexpected response.",
    "OneLake refused the request for {path}: {answer}.",
    "run `mirror-assets doctor`, and report its output; nothing was lost.",
    "mirror-assets doctor",
)
API_VERSION_REFUSED = ErrorRow(
    ErrorCode.STORE_REFUSED,
    SettingError,
    "The SDK or OneLake does not support `api_version`.",
    "api_version {version!r} can't be used: {why}.",
    "remove landing_zone.onelake.api_version, or set it to a version that both support, such as 2021-06-08.",
    "mirror-assets doctor",
)
