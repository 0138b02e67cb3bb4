"""The errors of alerts."""

from __future__ import annotations

from mirror_assets.errors import Code, ErrorRow, RetryError, SettingError
from mirror_assets.redaction import redacted

_LONGEST_ANSWER = 300


class AlertsCode(Code):
    """The codes of this feature."""

    RECEIVER_REFUSED = "receiver_refused"


RECEIVER_UNUSABLE = ErrorRow(
    AlertsCode.RECEIVER_REFUSED,
    SettingError,
    "A receiver of alerts, or its variable, is not valid.",
    "alerts: the receiver {name} can't be used: {why}.",
    "correct alerts.receivers.{name} or its variable, then run `mirror-assets alerts test`.",
    "mirror-assets alerts test",
)
RECEIVER_FAILED = ErrorRow(
    AlertsCode.RECEIVER_REFUSED,
    RetryError,
    "A receiver did not take an alert.",
    "alerts: the receiver {name} did not take the message: {why}",
    "nothing: it is sent again. If the error persists, check the receiver's URL and the network.",
    "mirror-assets alerts test",
)


def receiver_failed(name: str, why: str) -> RetryError:
    """Return RECEIVER_FAILED for the answer of a service, without secrets."""
    return RECEIVER_FAILED(name=name, why=redacted(why)[:_LONGEST_ANSWER])
