"""Errors of stores: of the landing zone, and of the stores of source tables."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, RetryError, SettingError, StopError, UnknownOutcome


class PathMissing(StopError):
    """No file exists at the path."""

    code = ErrorCode.FOREIGN_CHANGE

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path} does not exist.", "check that nothing else deletes files in the landing zone.")


class PathExists(StopError):
    """The path exists, and the request requires a free one."""

    code = ErrorCode.FOREIGN_CHANGE

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path} already exists.", "read it back before writing again.")


class PathChanged(StopError):
    """The file's ETag is not the one in the request's condition; `found` is the file's, where the store returns it."""

    code = ErrorCode.FOREIGN_CHANGE

    def __init__(self, path: str, wanted: str, found: str | None = None) -> None:
        self.path, self.wanted, self.found = path, wanted, found
        super().__init__(f"{path} has ETag {found or 'unknown'}, not {wanted}.", "read it back before writing again.")


class PathRefused(SettingError):
    """The path leaves the store's root, or is not valid in a store."""

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
    """Return the error for a landing zone whose path is not a folder."""
    return SettingError(
        f"the landing zone {root} can't be used: {why}.",
        "set landing_zone.path to a folder that this account may write to, or move the file.",
        code=ErrorCode.STORE_DENIED,
    )


class FileTooLarge(StopError):
    """A control file is larger than any that this program writes."""

    code = ErrorCode.FOREIGN_CHANGE

    def __init__(self, path: str, size: int, limit: int) -> None:
        self.path, self.size, self.limit = path, size, limit
        super().__init__(
            f"{path} has {size} bytes, more than the {limit} that are allowed.",
            "it was not written by this program: move it, then run again.",
        )


class StoreUnavailable(RetryError):
    """The store failed temporarily; the request had no effect."""

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
    """Return the error for a file system that can't rename without overwriting, which exactly-once publishing needs."""
    return SettingError(
        f"the file system of {root} has no rename that refuses to overwrite (renameat2 RENAME_NOREPLACE).",
        "put landing_zone.path on a local Linux file system such as ext4, xfs, btrfs or tmpfs.",
        code=ErrorCode.FILE_SYSTEM_UNFIT,
    )


def credential_incomplete(kind: str, missing: tuple[str, ...]) -> SettingError:
    """Return the error for a credential whose environment variables are not set."""
    return SettingError(
        f"credential {kind} needs {', '.join(missing)} in the environment.",
        "set them, or choose another credential.",
        code=ErrorCode.CREDENTIAL_UNFIT,
    )


def credential_unfit(kind: str, why: str) -> SettingError:
    """Return the error for environment variables that azure-identity refuses."""
    return SettingError(
        f"credential {kind} can't be used: {why}",
        "correct the AZURE_ variables in the environment, or choose another credential.",
        code=ErrorCode.CREDENTIAL_UNFIT,
    )


def package_missing(package: str, extra: str) -> SettingError:
    """Return the error for a credential that needs a package of an extra."""
    return SettingError(
        f"the package {package} is needed for this credential, and is not installed.",
        f"run `pip install 'mirror-assets[{extra}]'`, or choose another credential.",
        code=ErrorCode.CREDENTIAL_UNFIT,
    )


def aws_identity_unfit(kind: str, role: str | None, why: str) -> SettingError:
    """Return the error for a credential that AWS's SDK doesn't find, or that AWS refuses."""
    assumed = f", to assume {role}" if role else ""
    return SettingError(
        f"the AWS credential {kind}{assumed} can't be used: {why}.",
        "correct the profile, the variables or the role's trust policy, or choose another credential.",
        code=ErrorCode.CREDENTIAL_UNFIT,
    )


def spark_cannot_sign_in(master: str) -> SettingError:
    """Return the error for executors of a cluster, which can't request tokens from this process."""
    return SettingError(
        f"executors of {master} can't use the credentials `default` and `certificate` of an Azure store.",
        "choose another in `stores`: client_secret, managed_identity, workload_identity or sas.",
        code=ErrorCode.CREDENTIAL_UNFIT,
    )


def stores_collide(root: str, setting: str) -> SettingError:
    """Return the error for two stores that need two values of one setting of Hadoop."""
    return SettingError(
        f"Spark can't read {root} in addition to another store: both set {setting}, which has one value.",
        "give stores of one bucket, or of one account, the same kind of credential; or mirror them with two "
        "mirror.yaml.",
        code=ErrorCode.CREDENTIAL_UNFIT,
    )


def certificate_refused(where: str, why: str) -> SettingError:
    """Return the error for a server's certificate without a trusted authority, or an unreadable `ca_bundle`."""
    return SettingError(
        f"the certificate of {where} is refused: {why}.",
        "set ca_bundle to a PEM file with the authority that signed it; verification can't be disabled.",
        code=ErrorCode.CERTIFICATE_REFUSED,
    )


def token_refused(root: str, why: str) -> SettingError:
    """Return the error for a token that the authority didn't issue, or the store refused."""
    return SettingError(
        f"{root} could not be reached as this identity: {' '.join(why.split())[:300].rstrip('.')}.",
        "check the credential, the tenant and the authority, and the variables in the environment (for a source, "
        "`credential` in `stores`); run `mirror-assets doctor`.",
        code=ErrorCode.TOKEN_REFUSED,
    )


def item_missing(root: str, code: str) -> SettingError:
    """Return the error for a landing zone whose workspace or item doesn't exist, or is hidden from this identity."""
    return SettingError(
        f"the mirrored database of {root} was deleted, or never existed ({code}).",
        "restore it, or copy the landing zone's URL from the page of the new one in the portal into "
        "landing_zone.onelake.url (both GUIDs must be right); then `mirror-assets run` loads all tables again.",
        code=ErrorCode.ITEM_MISSING,
    )


def store_throttled(path: str, why: str, seconds: float) -> RetryError:
    """Return the error for an overloaded or paused capacity; the request had no effect."""
    return RetryError(
        f"OneLake refused {path} for {seconds:.0f} s: {why}.",
        "check in the portal whether the capacity is paused or overloaded; run again; nothing was lost.",
        code=ErrorCode.STORE_THROTTLED,
    )


def store_refused(path: str, answer: str) -> StopError:
    """Return the error for an unexpected answer of the store."""
    return StopError(
        f"OneLake refused the request for {path}: {answer}.",
        "run `mirror-assets doctor`, and report its output; nothing was lost.",
        code=ErrorCode.STORE_REFUSED,
    )


def api_version_refused(version: str, why: str) -> SettingError:
    """Return the error for a version of the storage interface that the SDK or OneLake doesn't support."""
    first_line = why.partition("\n")[0]
    return SettingError(
        f"api_version {version!r} can't be used: {first_line}.",
        "remove landing_zone.onelake.api_version, or set it to a version that both support, such as 2021-06-08.",
        code=ErrorCode.STORE_REFUSED,
    )
