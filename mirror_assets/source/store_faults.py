"""What can be wrong with a store: each cause with its words, its next step, and the signs by which readers tell it.

Both readers hide a store's answer in sentences of their own. What tells a cause is a code of the store, a class of
Hadoop's or an error of the operating system somewhere in them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TRUST = (
    "let both readers trust the authority that signed it: SSL_CERT_FILE in the environment names a PEM file for the "
    "log's reader; for Spark's, spark.driver.extraJavaOptions in `spark.settings` (of executors, too) names a trust "
    "store, -Djavax.net.ssl.trustStore=<file>. Verification can't be switched off."
)
_KEYS = "check `credential` and `env_prefix` of the store in `stores`, and in the environment {variables}."
_RENEW = (
    "run again: keys that are fetched are fetched anew. Those in the environment need new values of {variables}, and a "
    "new start of the process."
)
_REGION = "set `region` of the store in `stores`, or AWS_REGION in the environment, to the bucket's region."
_NETWORK = (
    "run where the store's private endpoint is reached, set `endpoint` of the store in `stores` to it, or let the "
    "store's firewall or endpoint policy admit this network."
)
_NAME = "correct the name in `root` of the store in `stores`, or in the table's `source`; or create it."
_GRANT = (
    "grant this identity to list and read the table's folder and all files below it (of S3: s3:ListBucket and "
    "s3:GetObject, and kms:Decrypt for encrypted files), or name another `credential` in `stores`. With keys of a "
    "catalog: let its storage credential reach the folder."
)
_HOST = "run again; if it stays so, correct `endpoint` of the store in `stores`{endpoint}, or the host in its `root`."
_WAIT = "run again. If it stays so, mirror fewer tables at once (`automation.batches`), or less often."


def _status(codes: str, words: str) -> str:
    """Return the pattern of a status as deltalake, AWS's SDK and Hadoop's file system for Azure write it."""
    return rf"(?<=\b)(?:{codes})(?= {words})|(?<=Status Code: )(?:{codes})\b|(?<=, )(?:{codes})(?=,)"


@dataclass(frozen=True)
class StoreFault:
    """A cause: what is said of the store, what to do next, and patterns of the words that tell it, exact ones first.

    It `passes` if it may pass without anything being changed. `{region}`, `{variables}` and `{endpoint}` are filled in.
    """

    says: str
    next_step: str
    signs: tuple[str, ...]
    passes: bool = False

    def sign_in(self, text: str) -> str | None:
        """Return the first words of the text that tell this cause, or None."""
        found = next(filter(None, (re.search(sign, text) for sign in self.signs)), None)
        return found[0].strip(", ") if found else None


CERTIFICATE = StoreFault(
    "shows a certificate that no known authority has signed",
    _TRUST,
    (
        "UnknownIssuer|invalid peer certificate",
        "PKIX path [a-z]+ failed|SSLHandshakeException|CertificateException|certificate verify failed",
    ),
)
TOKEN_ENDED = StoreFault(
    "refuses keys whose time is over",
    _RENEW,
    (
        r"ExpiredToken\w*|RequestExpired|token included in the request is expired",
        r"TokenExpired|ExpiredAuthenticationToken|Lifetime validation failed|[Tt]oken (?:is|has) expired",
        "Signature not valid in the specified time frame",
    ),
    passes=True,
)
CLOCK = StoreFault(
    "refuses the time of this machine",
    "set this machine's clock right, then run again.",
    ("RequestTimeTooSkewed|RequestInTheFuture",),
)
KEY_REFUSED = StoreFault(
    "does not accept the keys",
    _KEYS,
    (
        "SignatureDoesNotMatch|InvalidAccessKeyId|InvalidToken|InvalidClientTokenId|UnrecognizedClientException",
        "AuthenticationFailed|InvalidAuthenticationInfo|NoAuthenticationInformation",
        "invalid_client|invalid_grant|Invalid Credentials",
        _status("401", "Unauthorized"),
    ),
)
OTHER_REGION = StoreFault(
    "has its bucket in another region than the one that was asked{region}",
    _REGION,
    (
        r"PermanentRedirect|AuthorizationHeaderMalformed|IllegalLocationConstraint\w*",
        "redirect without LOCATION|AWSRedirectException",
        _status("301", "Moved Permanently"),
    ),
)
NETWORK_REFUSED = StoreFault(
    "takes no requests from this network",
    _NETWORK,
    (
        "AuthorizationFailure|PublicAccessNotPermitted|RequestDeniedByInboundPolicy",
        r"VPC endpoint policy|vpce-\w+|[Pp]rivate [Ll]ink",
        r"vpcServiceControls\w*|organization's policy",
    ),
)
NO_BUCKET = StoreFault(
    "does not exist",
    _NAME,
    (
        "NoSuchBucket|bucket does not exist|Bucket does not exist|UnknownStoreException",
        "ContainerNotFound|FilesystemNotFound|container does not exist|filesystem does not exist|WorkspaceNotFound",
    ),
)
NO_CREDENTIAL = StoreFault(
    "can't be asked: no credentials were found for it",
    _KEYS,
    (
        "loading credentials",
        r"NoAuthWithAWS\w*|CredentialInitialization\w*|No AWS Credentials|Unable to load credentials",
        "Your default credentials were not found|InvalidConfigurationValueException",
    ),
)
THROTTLED = StoreFault(
    "takes no more requests for now",
    _WAIT,
    (
        r"SlowDown|Too ?Many ?Requests|ThrottlingException|RequestLimitExceeded|AWSServiceThrottled\w*",
        "ServerBusy|CapacityLimitExceeded",
        _status("503", "Service Unavailable"),
        _status("429|430", "Too Many Requests"),
    ),
    passes=True,
)
DENIED = StoreFault(
    "denies access",
    _GRANT,
    (
        r"AccessDenied\b|AllAccessDisabled|AuthorizationPermissionMismatch|InsufficientAccountPermissions",
        r"does not have storage\.\w+",
        _status("403", "Forbidden"),
        "lacked the necessary privileges",
    ),
)
NO_HOST = StoreFault(
    "has a host whose name is not found",
    _HOST,
    (r"dns error|failed to lookup address|UnknownHost\w*|Name or service not known|Temporary failure in name",),
    passes=True,
)
NO_ANSWER = StoreFault(
    "gives no answer",
    _HOST,
    (
        "Connection refused|Connection reset|No route to host|Network is unreachable|operation timed out",
        r"ConnectException|SocketException|(?:Connect|Connection|Socket|ApiCall)Timeout\w*|NoHttpResponse\w*",
        "[Cc]onnection closed|Premature end of|tcp connect error|, 408,",
    ),
    passes=True,
)
FAILED = StoreFault(
    "failed",
    _WAIT,
    (
        r"InternalError|InternalServerError|OperationTimedOut|AWSStatus500\w*",
        _status("500|502|504", r"[A-Z]\w+"),
    ),
    passes=True,
)
# The answer to a HEAD request has no words. Of S3's refusals with this status, nearly all are of keys that have ended.
WORDLESS = StoreFault(
    "refuses a request, and does not say why",
    "run again; if it stays so, run `mirror-assets doctor`, whose requests are refused with words.",
    (_status("400", "Bad Request"),),
    passes=True,
)
# The first one that fits is the cause: those that tell more come first.
FAULTS = (
    CERTIFICATE,
    TOKEN_ENDED,
    CLOCK,
    KEY_REFUSED,
    OTHER_REGION,
    NETWORK_REFUSED,
    NO_BUCKET,
    NO_CREDENTIAL,
    THROTTLED,
    DENIED,
    NO_HOST,
    NO_ANSWER,
    FAILED,
    WORDLESS,
)
