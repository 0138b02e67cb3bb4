"""Detects the faults of stores and tables in error messages of deltalake, obstore and Spark, and returns our errors.

These libraries wrap a store's answer in messages of their own. The store's error code, a class of Hadoop's or AWS's, an
error of the operating system or an HTTP status in the message identifies the fault.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from mirror_assets.errors import RetryError
from mirror_assets.lakes.errors import SOURCE_UNAVAILABLE, SOURCE_UNREADABLE, SourceUnreadable

_TRUST = (
    "add the CA to both readers: for the log's reader, set SSL_CERT_FILE in the environment to a PEM file; for Spark, "
    "set a trust store with -Djavax.net.ssl.trustStore=<file> in spark.driver.extraJavaOptions in `spark.settings` "
    "(and in the executors'). Verification can't be disabled."
)
_KEYS = "check `credential` and `env_prefix` of the store in `stores`, and in the environment {variables}."
_HOST = (
    "run again. If the error persists, correct `endpoint` of the store in `stores`{endpoint}, or the host in its "
    "`root`."
)
_WAIT = "run again. If the error persists, mirror fewer tables at once (`automation.batches`), or less often."


def _status(codes: str) -> str:
    """Return the pattern of an HTTP status as deltalake, AWS's SDK and Hadoop's file system for Azure write it."""
    return rf"\b(?:{codes})(?= [A-Z])|(?<=Status Code: )(?:{codes})\b|(?<=, )(?:{codes})(?=,)"


@dataclass(frozen=True)
class StoreFault:
    """A fault of a store: its description, the next step, and patterns of its signs in messages, specific ones first.

    `passes`: the fault may pass without a change. `{region}`, `{variables}` and `{endpoint}` are filled in.
    """

    says: str
    next_step: str
    signs: tuple[str, ...]
    passes: bool = False


_DENIED = StoreFault(
    "denies access",
    "allow this identity to list and read the table's folder and all files below it (S3: s3:ListBucket and "
    "s3:GetObject, and kms:Decrypt for encrypted files), or set another `credential` in `stores`. With vended "
    "credentials, give the catalog's storage credential access to the folder.",
    (
        r"AccessDenied\b|AllAccessDisabled|AuthorizationPermissionMismatch|InsufficientAccountPermissions",
        r"does not have storage\.\w+",
        _status("403"),
        "lacked the necessary privileges",
    ),
)
_TENANT_SETTINGS = (
    "`Users can access data stored in OneLake with apps external to Fabric` and, for a service principal, `Service "
    "principals can call Fabric public APIs`."
)
# The refusals of OneLake and of Fabric's REST API, by error code: the client of landing zones and that of mirrored
# databases share them. Microsoft publishes no code for the tenant settings, so their names in the message are signs.
CAPACITY_PAUSED = StoreFault(
    "rejects all requests while the capacity of the workspace is paused",
    "resume the capacity in the Azure portal, or assign the workspace to an active one, then run again; nothing was "
    "lost. Then check with `mirror-assets fabric status` whether mirroring has to be resumed as well.",
    ("CapacityNotActive|CapacityPaused|CapacitySuspended",),
    passes=True,
)
GUIDS_NEEDED = StoreFault(
    "does not resolve the names of workspace and item in the URL",
    "use the GUIDs of workspace and item in the URL; the address of the item's page in the portal has both.",
    ("FriendlyNameSupportDisabled",),
)
_INBOUND_POLICY = StoreFault(
    "accepts no requests to this workspace from this network: its inbound policy admits a private link or listed "
    "addresses only",
    "run in the network of the workspace's private link, with the workspace's own host in the URL: "
    "https://<workspace GUID without dashes>.z<its first two characters>.dfs.fabric.microsoft.com; or let an admin of "
    "the workspace admit this network in the workspace settings, under Inbound networking.",
    ("RequestDeniedByInboundPolicy",),
)
ROLE_MISSING = StoreFault(
    "gives this identity too few permissions",
    "this identity needs the role Contributor in the workspace (Viewer, or Read on the item, is not enough). If it has "
    f"the role, let a Fabric administrator check the tenant settings {_TENANT_SETTINGS}",
    (r"^(?:403:? )?Forbidden\b|AuthorizationPermissionMismatch|InsufficientPrivileges|InsufficientAccountPermissions",),
)
_OF_FABRIC = (
    CAPACITY_PAUSED,
    GUIDS_NEEDED,
    _INBOUND_POLICY,
    StoreFault(
        "admits no requests from this network: a firewall, or the tenant's block of public access, refuses them",
        "run in a network that the tenant's private link or the workspace's IP firewall admits, or let a Fabric "
        "administrator admit this one.",
        ("AuthorizationFailure|PublicAccessNotPermitted",),
    ),
    StoreFault(
        "is closed to this identity by a tenant setting",
        f"let a Fabric administrator enable these tenant settings for this identity: {_TENANT_SETTINGS}",
        (r"PrincipalTypeNotSupported|external to Fabric|[Tt]enant (?:admin|setting)",),
    ),
    ROLE_MISSING,
)


def fabric_fault(answer: str) -> StoreFault | None:
    """Return the fault for an answer of OneLake or Fabric, `403 Forbidden` with a message; None if unknown."""
    return next((fault for fault in _OF_FABRIC if any(re.search(sign, answer) for sign in fault.signs)), None)


# The first fault with a sign in the message counts, so specific ones come first.
FAULTS = (
    CAPACITY_PAUSED,
    GUIDS_NEEDED,
    _INBOUND_POLICY,
    StoreFault(
        "shows a certificate that no known authority has signed",
        _TRUST,
        (
            "UnknownIssuer|invalid peer certificate|PKIX path [a-z]+ failed",
            "SSLHandshakeException|CertificateException|certificate verify failed",
        ),
    ),
    StoreFault(
        "refuses keys whose time is over",
        "run again: issued keys are fetched again. For keys in the environment, set new values of {variables} and "
        "restart the process.",
        (
            r"ExpiredToken\w*|RequestExpired|TokenExpired|ExpiredAuthenticationToken",
            "token included in the request is expired|Lifetime validation failed|[Tt]oken (?:is|has) expired",
            "Signature not valid in the specified time frame",
        ),
        passes=True,
    ),
    StoreFault(
        "refuses the time of this machine",
        "set this machine's clock right, then run again.",
        ("RequestTimeTooSkewed|RequestInTheFuture",),
    ),
    StoreFault(
        "does not accept the keys",
        _KEYS,
        (
            "SignatureDoesNotMatch|InvalidAccessKeyId|InvalidToken|InvalidClientTokenId|UnrecognizedClientException",
            "AuthenticationFailed|InvalidAuthenticationInfo|NoAuthenticationInformation",
            "invalid_client|invalid_grant|Invalid Credentials",
            _status("401"),
        ),
    ),
    StoreFault(
        "has its bucket in another region than the one that was asked{region}",
        "set `region` of the store in `stores`, or AWS_REGION in the environment, to the bucket's region.",
        (
            r"PermanentRedirect|AuthorizationHeaderMalformed|IllegalLocationConstraint\w*",
            "redirect without LOCATION|AWSRedirectException",
            _status("301"),
        ),
    ),
    StoreFault(
        "takes no requests from this network",
        "run where the store's private endpoint is reachable, set `endpoint` of the store in `stores` to it, or let "
        "the store's firewall or endpoint policy admit this network.",
        (
            r"AuthorizationFailure|PublicAccessNotPermitted|vpcServiceControls\w*",
            r"VPC endpoint policy|vpce-\w+|[Pp]rivate [Ll]ink|organization's policy",
        ),
    ),
    StoreFault(
        "does not exist",
        "correct the name in `root` of the store in `stores`, or in the table's `source`; or create it.",
        (
            "NoSuchBucket|UnknownStoreException|ContainerNotFound|FilesystemNotFound",
            "WorkspaceNotFound|ArtifactNotFound|ItemNotFound",
            "(?:[Bb]ucket|container|filesystem) does not exist",
        ),
    ),
    StoreFault(
        "can't be asked: no credentials were found for it",
        _KEYS,
        (
            r"loading credentials|NoAuthWithAWS\w*|CredentialInitialization\w*|InvalidConfigurationValueException",
            "No AWS Credentials|Unable to load credentials|Your default credentials were not found",
        ),
    ),
    StoreFault(
        "takes no more requests for now",
        _WAIT,
        (
            r"SlowDown|Too ?Many ?Requests|ThrottlingException|RequestLimitExceeded|AWSServiceThrottled\w*",
            "ServerBusy|CapacityLimitExceeded",
            _status("429|430|503"),
        ),
        passes=True,
    ),
    _DENIED,
    StoreFault(
        "has a host whose name is not found",
        _HOST,
        (r"dns error|failed to lookup address|UnknownHost\w*|Name or service not known|Temporary failure in name",),
        passes=True,
    ),
    StoreFault(
        "gives no answer",
        _HOST,
        (
            "Connection refused|Connection reset|No route to host|Network is unreachable|operation timed out",
            r"ConnectException|SocketException|(?:Connect|Connection|Socket|ApiCall)Timeout\w*|NoHttpResponse\w*",
            "[Cc]onnection closed|Premature end of|tcp connect error",
            _status("408"),
        ),
        passes=True,
    ),
    StoreFault(
        "failed",
        _WAIT,
        (r"InternalError|InternalServerError|OperationTimedOut|AWSStatus500\w*", _status("500|502|504")),
        passes=True,
    ),
    # The answer to a HEAD request has no body. Nearly all of S3's refusals with this status are of expired keys.
    StoreFault(
        "refuses a request, and does not say why",
        "run again. If the error persists, run `mirror-assets doctor` to get the store's full error response.",
        (_status("400"),),
        passes=True,
    ),
)

_REGION = re.compile(r"(?:expecting|to region|in region) ['\[]?([a-z]{2}(?:-[a-z]+)+-\d)")
# How each reader names the object that it requested: deltalake, object_store, Hadoop.
_OBJECTS = (
    re.compile(r"for path (\S+)"),
    re.compile(r"Error performing GET \S+[?&]prefix=([^&\s]+)"),
    re.compile(r"Error performing \w+ https?://[^/\s]+/([^\s?]+)"),
    re.compile(r"\b(?:s3a?|abfss?|gs|hdfs)://[^/\s]+/([^\s:,]+)"),
)
_VARIABLES = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN",
    "abfss": "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or AZURE_STORAGE_SAS_TOKEN",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
}
_ENDPOINTS = {"s3": " (by default AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL)"}


def store_error(subject: str, store: str | None, text: str) -> SourceUnreadable | RetryError | None:
    """Return the error for the fault of a store in a reader's message; None when the message has none.

    `subject` names the table, and `store` is the store's address, if it is known.
    """
    signs = ((fault, re.search(sign, text)) for fault in FAULTS for sign in fault.signs)
    fault, sign = next(((fault, found[0]) for fault, found in signs if found), (None, ""))
    if fault is None:
        return None
    region = _REGION.search(text)
    if fault is _DENIED and (path := next((found[1] for one in _OBJECTS if (found := one.search(text))), None)):
        sign = f"{sign}: {unquote(path).rstrip('.:')}"
    scheme, named = (store.partition("://")[0], f"the store {store}") if store else ("", "its store")
    why = f"{named} {fault.says.format(region=f', {region[1]}' if region else '')} ({sign})"
    next_step = fault.next_step.format(
        variables=_VARIABLES.get(scheme, "its variables"), endpoint=_ENDPOINTS.get(scheme, "")
    )
    return (SOURCE_UNAVAILABLE if fault.passes else SOURCE_UNREADABLE)(uri=subject, why=why, next_step=next_step)


_STORE = re.compile(r"\b(s3|s3a|s3n|abfss?|wasbs?|gs|hdfs)://([^/\s'\"`,?()]+)")
# Hadoop's errors of Azure have the URL of the request in place of the file's address.
_ACCOUNT = re.compile(r"https?://([^/\s'\",?]+\.(?:dfs|blob)\.[^/\s'\",?]+)/([^/\s'\",?]+)")
_ONE_SCHEME = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "wasb": "abfss", "wasbs": "abfss"}


def store_named(text: str) -> str | None:
    """Return the address of the first store in the text, in the spelling of mirror.yaml; None without one."""
    if found := _STORE.search(text):
        return f"{_ONE_SCHEME.get(found[1], found[1])}://{found[2]}"
    if account := _ACCOUNT.search(text):
        return f"abfss://{account[2]}@{account[1].replace('.blob.', '.dfs.', 1)}"
    return None
