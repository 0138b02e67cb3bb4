"""Calls the heartbeat URL: a service that misses the calls notifies people that nothing checks the mirror."""

from __future__ import annotations

import logging
import os
import urllib.request
from collections.abc import Mapping
from urllib.parse import urlsplit

from mirror_assets.features.alerts.alert_settings import AlertsConfig
from mirror_assets.features.alerts.receivers import is_loopback
from mirror_assets.redaction import hide, redacted

_SECONDS = 10.0
_LOG = logging.getLogger(__name__)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: the URL is a secret, and could be led to any host."""

    def redirect_request(self, *_: object) -> None:
        return None


def call_heartbeat(settings: AlertsConfig, environment: Mapping[str, str] = os.environ) -> None:
    """Call the URL, if there is one. A failure is logged: the service reports a call that is missing."""
    variable = settings.heartbeat_url_variable
    if variable is None:
        return
    url = environment.get(variable, "").strip()
    hide(variable, url)
    try:
        address = urlsplit(url)
        if address.scheme != "https" and not (address.scheme == "http" and is_loopback(address.hostname or "")):
            _LOG.warning("alerts.heartbeat_url_variable: the variable %s has no https:// address", variable)
            return
        with urllib.request.build_opener(_NoRedirect).open(url, timeout=_SECONDS):
            pass
    except (OSError, ValueError) as error:  # urllib's errors are OSErrors
        _LOG.warning("the heartbeat URL in %s could not be called: %s", variable, redacted(str(error)))
