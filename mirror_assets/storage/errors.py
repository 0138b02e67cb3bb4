"""What a store can answer other than success."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, RetryError, SettingError, StopError, UnknownOutcome


class PathMissing(StopError):
    """There is no file at the path."""

    code = ErrorCode.PATH_MISSING

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path} does not exist.", "check that nothing else deletes files in the landing zone.")


class PathExists(StopError):
    """The path is taken, and the request needed it free."""

    code = ErrorCode.PATH_EXISTS

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path} exists already.", "read it back before writing again.")


class PathChanged(StopError):
    """The file at the path is not the one whose ETag the request named."""

    code = ErrorCode.PATH_CHANGED

    def __init__(self, path: str, wanted: str, found: str) -> None:
        self.path, self.wanted, self.found = path, wanted, found
        super().__init__(f"{path} has ETag {found}, not {wanted}.", "read it back before writing again.")


class PathRefused(SettingError):
    """A path that would leave the store's root, or that no store can hold."""

    code = ErrorCode.PATH_REFUSED

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        super().__init__(f"path {path!r} is refused: {why}.", "use a relative path of plain names.")


class StoreFull(RetryError):
    """No space left; nothing was published."""

    code = ErrorCode.STORE_FULL

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"no space left while writing {path}.", "free space and run again; nothing was lost.")


class StoreDenied(SettingError):
    """The store refused access."""

    code = ErrorCode.STORE_DENIED

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        super().__init__(
            f"no permission for {path} ({why}).", "grant read and write on the landing zone, then run again."
        )


class FileTooLarge(StopError):
    """A small control file is larger than anything we write."""

    code = ErrorCode.FILE_TOO_LARGE

    def __init__(self, path: str, size: int, limit: int) -> None:
        self.path, self.size, self.limit = path, size, limit
        super().__init__(
            f"{path} has {size} bytes, more than the {limit} that it may have.",
            "it was not written by this program: move it away, then run again.",
        )


class StoreUnavailable(RetryError):
    """The store could not be read or written just now; the request had no effect."""

    code = ErrorCode.STORE_UNAVAILABLE

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        super().__init__(f"the store failed at {path}: {why}.", "run again; nothing was lost.")


class RequestUnknown(UnknownOutcome):
    """A write's reply was lost."""

    code = ErrorCode.OUTCOME_UNKNOWN

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        super().__init__(f"whether the write of {path} took effect is unknown: {why}.", "read it back, then repeat it.")


class FileSystemUnfit(SettingError):
    """The disk can't rename without overwriting, so exactly once can't be had on it."""

    code = ErrorCode.FILE_SYSTEM_UNFIT

    def __init__(self, root: str) -> None:
        self.root = root
        super().__init__(
            f"the file system of {root} has no rename that refuses to overwrite (renameat2 RENAME_NOREPLACE).",
            "put landing_zone.path on a local Linux file system such as ext4, xfs, btrfs or tmpfs.",
        )
