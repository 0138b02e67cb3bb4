"""Sends a message to a receiver: through Apprise, or through PagerDuty's own client, which also resolves incidents.

And calls the heartbeat URL: a service that misses the calls notifies people that nothing checks the mirror.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import urllib.request
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from mirror_assets.features.alerts.alert_settings import ReceiverConfig
from mirror_assets.features.alerts.errors import RECEIVER_UNUSABLE, receiver_failed
from mirror_assets.features.alerts.messages import Message
from mirror_assets.landing.problems import MessageKind, Severity
from mirror_assets.redaction import hide, redacted

if TYPE_CHECKING:  # it takes time to import, and only processes that send need it
    import apprise

_PAGERDUTY, _PAGERDUTY_HOST = "pagerduty://", "events.pagerduty.com"
_SECONDS, _HEARTBEAT_SECONDS = 15, 10.0
_PAGERDUTY_SEVERITIES = {Severity.INFO: "info", Severity.WARN: "warning", Severity.ERROR: "error"}
_APPRISE_TYPES = {Severity.INFO: "info", Severity.WARN: "warning", Severity.ERROR: "failure"}
_LOG = logging.getLogger(__name__)


def send(name: str, receiver: ReceiverConfig, message: Message, environment: Mapping[str, str] = os.environ) -> None:
    """Send the message. Raises RetryError, and SettingError if the receiver's URL can't be used."""
    variable = receiver.url_variable
    url = environment.get(variable, "").strip()
    if not url:
        raise RECEIVER_UNUSABLE(name=name, why=f"the environment variable {variable} is not set")
    hide(variable, url)
    if url.startswith(_PAGERDUTY):
        key, _, host = url.removeprefix(_PAGERDUTY).rstrip("/").partition("@")
        hide(variable, key)
        _send_to_pagerduty(name, key, host or _PAGERDUTY_HOST, message)
    else:
        _send_by_apprise(name, url, message)


def _send_by_apprise(name: str, url: str, message: Message) -> None:
    import apprise

    # A redirect could lead the message and its token to any host.
    asset = apprise.AppriseAsset(app_id="mirror_assets", app_desc="mirror_assets", http_redirects=False)
    service = apprise.Apprise.instantiate(url, asset=asset)
    if service is None:
        raise RECEIVER_UNUSABLE(name=name, why="Apprise doesn't know this kind of URL, or a part of it is missing")
    if _is_unencrypted(service, url):
        raise RECEIVER_UNUSABLE(
            name=name, why="its URL is not encrypted; use the form with TLS, such as jsons:// for json://"
        )
    kind = "success" if message.kind is MessageKind.ENDED else _APPRISE_TYPES[message.severity]
    result = apprise.Apprise([service]).notify(
        body=message.body,
        title=message.title,
        notify_type=apprise.NotifyType(kind),
        body_format=apprise.NotifyFormat.TEXT,
        timeout=_SECONDS,
    )
    if not result:
        raise receiver_failed(name, " ".join(entry.message for entry in result.logs()) or result.status.name.lower())


def _is_unencrypted(service: apprise.NotifyBase, url: str) -> bool:
    """Return whether the URL sends a message, and the token in it, to another machine without TLS."""
    plain, encrypted = cast("tuple[str | tuple[str, ...] | None, ...]", (service.protocol, service.secure_protocol))
    schemas = (plain,) if isinstance(plain, str) else plain or ()
    if not encrypted or url.partition("://")[0].lower() not in schemas:
        return False
    return not is_loopback(str(service.host or ""))


def is_loopback(host: str) -> bool:
    """Return whether the host is this machine, to which a URL needs no TLS."""
    name = host.strip("[]").lower()
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _send_to_pagerduty(name: str, key: str, host: str, message: Message) -> None:
    """Trigger or resolve the incident; the host is another one for the EU, events.eu.pagerduty.com."""
    import pagerduty

    with pagerduty.EventsApiV2Client(key, base_url=f"https://{host}") as client:
        # What is due is sent again; without this, the client waits and repeats within the call, without end for a 429.
        client.timeout, client.max_network_attempts, client.max_http_attempts, client.retry[429] = _SECONDS, 0, -1, 1
        try:
            if message.kind is not MessageKind.ENDED:
                client.trigger(
                    message.title,
                    "mirror_assets",
                    dedup_key=message.incident,
                    severity=_PAGERDUTY_SEVERITIES[message.severity],
                    custom_details={"message": message.body},
                    links=[{"href": link, "text": label} for label, link in message.links],
                )
            if message.is_last:
                client.resolve(message.incident)
        except pagerduty.Error as error:
            raise receiver_failed(name, str(error)) from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: the URL is a secret, and could be led to any host."""

    def redirect_request(self, *_: object) -> None:
        return None


def call_heartbeat(variable: str, environment: Mapping[str, str] = os.environ) -> None:
    """Call the URL in the variable. A failure is logged: the service reports a call that is missing."""
    url = environment.get(variable, "").strip()
    hide(variable, url)
    try:
        address = urlsplit(url)
        if address.scheme != "https" and not (address.scheme == "http" and is_loopback(address.hostname or "")):
            _LOG.warning("alerts.heartbeat_url_variable: the variable %s has no https:// address", variable)
            return
        with urllib.request.build_opener(_NoRedirect).open(url, timeout=_HEARTBEAT_SECONDS):
            pass
    except (OSError, ValueError) as error:  # urllib's errors are OSErrors
        _LOG.warning("the heartbeat URL in %s could not be called: %s", variable, redacted(str(error)))
