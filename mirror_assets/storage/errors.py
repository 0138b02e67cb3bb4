"""Errors of stores: of the landing zone, and of the stores of source tables."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, ErrorRow, RetryError, SettingError, StopError, UnknownOutcome


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
    "mirror-assets plan    # validates mirror.yaml",
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
    "The store refused access.",
    "no permission for {path} ({why}).",
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


class RequestUnknown(UnknownOutcome):
    """A write's reply was lost: it may have taken effect."""


REQUEST_UNKNOWN = ErrorRow(
    ErrorCode.OUTCOME_UNKNOWN,
    RequestUnknown,
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


CREDENTIAL_INCOMPLETE = ErrorRow(
    ErrorCode.CREDENTIAL_UNFIT,
    SettingError,
    "The environment variables of a credential are not set.",
    "credential {kind} needs {missing} in the environment.",
    "set them, or choose another credential.",
    "mirror-assets doctor --no-spark",
)


CREDENTIAL_UNFIT = ErrorRow(
    ErrorCode.CREDENTIAL_UNFIT,
    SettingError,
    "Environment variables that azure-identity refuses.",
    "credential {kind} can't be used: {why}",
    "correct the AZURE_ variables in the environment, or choose another credential.",
    "mirror-assets doctor --no-spark",
)


PACKAGE_MISSING = ErrorRow(
    ErrorCode.CREDENTIAL_UNFIT,
    SettingError,
    "A credential that needs a package of an extra.",
    "the package {package} is needed for this credential, and is not installed.",
    "run `pip install 'mirror-assets[{extra}]'`, or choose another credential.",
    "mirror-assets doctor --no-spark",
)


AWS_IDENTITY_UNFIT = ErrorRow(
    ErrorCode.CREDENTIAL_UNFIT,
    SettingError,
    "AWS's SDK doesn't find a credential, or AWS refuses it.",
    "the AWS credential {kind}{assumed} can't be used: {why}.",
    "correct the profile, the variables or the role's trust policy, or choose another credential.",
    "mirror-assets doctor --no-spark",
)


def aws_identity_unfit(kind: str, role: str | None, why: str) -> SettingError:
    """Return AWS_IDENTITY_UNFIT for a credential that assumes `role`, if any."""
    return AWS_IDENTITY_UNFIT(kind=kind, assumed=f", to assume {role}" if role else "", why=why)


SPARK_CANNOT_SIGN_IN = ErrorRow(
    ErrorCode.CREDENTIAL_UNFIT,
    SettingError,
    "Executors of a cluster, which can't request tokens from this process.",
    "executors of {master} can't use the credentials `default` and `certificate` of an Azure store.",
    "choose another in `stores`: client_secret, managed_identity, workload_identity or sas.",
    "mirror-assets doctor --no-spark",
)


STORES_COLLIDE = ErrorRow(
    ErrorCode.CREDENTIAL_UNFIT,
    SettingError,
    "Two stores that need two values of one setting of Hadoop.",
    "Spark can't read {root} in addition to another store: both set {setting}, which has one value.",
    "give stores of one bucket, or of one account, the same kind of credential; or mirror them with two mirror.yaml.",
    "mirror-assets doctor --no-spark",
)


CERTIFICATE_REFUSED = ErrorRow(
    ErrorCode.CERTIFICATE_REFUSED,
    SettingError,
    "The server's certificate is signed by an unknown authority.",
    "the certificate of {where} is refused: {why}.",
    "set ca_bundle to a PEM file with the authority that signed it; verification can't be disabled.",
    "mirror-assets doctor --no-spark",
)


TOKEN_REFUSED = ErrorRow(
    ErrorCode.TOKEN_REFUSED,
    SettingError,
    "No token was issued, or the store did not accept it.",
    "{root} could not be reached as this identity: {why}.",
    "check the credential, the tenant and the authority, and the variables in the environment (for a source, "
    "`credential` in `stores`); run `mirror-assets doctor`.",
    "mirror-assets doctor",
)


def token_refused(root: str, why: str) -> SettingError:
    """Return TOKEN_REFUSED with the first 300 characters of the authority's text."""
    return TOKEN_REFUSED(root=root, why=" ".join(why.split())[:300].rstrip("."))


ITEM_MISSING = ErrorRow(
    ErrorCode.ITEM_MISSING,
    SettingError,
    "OneLake does not find the workspace or the item: the mirrored database was deleted, the URL is wrong, or "
    "this identity may not see it. Nothing is planned, and each table's checks report this error.",
    "the mirrored database of {root} was deleted, or never existed ({code}).",
    "restore it, or copy the landing zone's URL from the page of the new one in the portal into "
    "landing_zone.onelake.url (both GUIDs must be right); then `mirror-assets run` loads all tables again.",
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
