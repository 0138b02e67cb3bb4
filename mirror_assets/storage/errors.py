"""Errors of a store: what it can answer other than success."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, RetryError, SettingError, StopError, UnknownOutcome


class PathMissing(StopError):
    """The path has no file."""

    code = ErrorCode.PATH_MISSING

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path} does not exist.", "check that nothing else deletes files in the landing zone.")


class PathExists(StopError):
    """The path exists, and the request needed it free."""

    code = ErrorCode.PATH_EXISTS

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path} exists already.", "read it back before writing again.")


class PathChanged(StopError):
    """The file's ETag is not the one in the request's condition; `found` is the file's, where the store returns it."""

    code = ErrorCode.PATH_CHANGED

    def __init__(self, path: str, wanted: str, found: str | None = None) -> None:
        self.path, self.wanted, self.found = path, wanted, found
        super().__init__(f"{path} has ETag {found or 'unknown'}, not {wanted}.", "read it back before writing again.")


class PathRefused(SettingError):
    """The path leads out of the store's root, or no store can hold it."""

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


def root_unusable(root: str, why: str) -> SettingError:
    """The landing zone's path is not a folder."""
    return SettingError(
        f"the landing zone {root} can't be used: {why}.",
        "set landing_zone.path to a folder that this account may write to, or move away what is there.",
        code=ErrorCode.STORE_DENIED,
    )


class FileTooLarge(StopError):
    """A control file is larger than any that this program writes."""

    code = ErrorCode.FILE_TOO_LARGE

    def __init__(self, path: str, size: int, limit: int) -> None:
        self.path, self.size, self.limit = path, size, limit
        super().__init__(
            f"{path} has {size} bytes, more than the {limit} that it may have.",
            "it was not written by this program: move it away, then run again.",
        )


class StoreUnavailable(RetryError):
    """The store failed for now; the request had no effect."""

    code = ErrorCode.STORE_UNAVAILABLE

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        super().__init__(f"the store failed at {path}: {why}.", "run again; nothing was lost.")


class RequestUnknown(UnknownOutcome):
    """A write's reply was lost: it may have taken effect."""

    code = ErrorCode.OUTCOME_UNKNOWN

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        super().__init__(f"whether the write of {path} took effect is unknown: {why}.", "read it back, then repeat it.")


def file_system_unfit(root: str) -> SettingError:
    """The file system can't rename without overwriting, which publishing exactly once needs."""
    return SettingError(
        f"the file system of {root} has no rename that refuses to overwrite (renameat2 RENAME_NOREPLACE).",
        "put landing_zone.path on a local Linux file system such as ext4, xfs, btrfs or tmpfs.",
        code=ErrorCode.FILE_SYSTEM_UNFIT,
    )


def credential_incomplete(kind: str, missing: tuple[str, ...]) -> SettingError:
    """A credential needs environment variables that are not set."""
    return SettingError(
        f"credential {kind} needs {', '.join(missing)} in the environment.",
        "set them, or choose another credential.",
        code=ErrorCode.CREDENTIAL_INCOMPLETE,
    )


def credential_unfit(kind: str, why: str) -> SettingError:
    """azure-identity refuses the credential's environment variables."""
    return SettingError(
        f"credential {kind} can't be used: {why}",
        "correct the AZURE_ variables in the environment, or choose another credential.",
        code=ErrorCode.CREDENTIAL_UNFIT,
    )


def certificate_refused(where: str, why: str) -> SettingError:
    """A server's certificate has no trusted authority, or `ca_bundle` can't be read."""
    return SettingError(
        f"the certificate of {where} is refused: {why}.",
        "set ca_bundle to a PEM file with the authority that signed it; verification can't be switched off.",
        code=ErrorCode.CERTIFICATE_REFUSED,
    )


def token_refused(root: str, why: str) -> SettingError:
    """The authority issued no token, or the store refused it."""
    return SettingError(
        f"{root} could not be reached as this identity: {why}.",
        "check the credential, the tenant and the authority; run `mirror-assets doctor`.",
        code=ErrorCode.TOKEN_REFUSED,
    )


def item_missing(root: str, code: str) -> SettingError:
    """The landing zone's workspace or item does not exist, or this identity may not see it."""
    return SettingError(
        f"OneLake knows no such workspace or item: {root} ({code}).",
        "copy the landing zone's URL from the mirrored database's page in the portal; both GUIDs must be right.",
        code=ErrorCode.ITEM_MISSING,
    )


def store_throttled(path: str, why: str, seconds: float) -> RetryError:
    """The capacity is overloaded or paused; the request had no effect."""
    return RetryError(
        f"OneLake refused {path} for {seconds:.0f} s: {why}.",
        "see in the portal whether the capacity is paused or overloaded; run again; nothing was lost.",
        code=ErrorCode.STORE_THROTTLED,
    )


def store_refused(path: str, answer: str) -> StopError:
    """The store gave an answer that this program has no meaning for."""
    return StopError(
        f"OneLake refused the request for {path}: {answer}.",
        "run `mirror-assets doctor`, and report what it prints; nothing was lost.",
        code=ErrorCode.STORE_REFUSED,
    )


def api_version_refused(version: str, why: str) -> SettingError:
    """The SDK or OneLake does not support this version of the storage interface."""
    first_line = why.partition("\n")[0]
    return SettingError(
        f"api_version {version!r} can't be used: {first_line}.",
        "leave landing_zone.onelake.api_version out, or set it to one that both know, such as 2021-06-08.",
        code=ErrorCode.API_VERSION_REFUSED,
    )
