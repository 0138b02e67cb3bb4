"""The settings of alerts: the receivers, their minimum severity, and links."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from mirror_assets.landing.problems import Severity
from mirror_assets.settings import Seconds, Section, Text, Variable, matching

WebAddress = Annotated[
    Text,
    matching(
        r"https?://[^/@\s][^@\s]*",
        "an address such as https://dagster.acme.example, without credentials",
        is_secret=True,
    ),
]


class ReceiverConfig(Section):
    """One receiver of alerts. Its URL is a secret, so it is in an environment variable."""

    url_variable: Variable = Field(description="Environment variable with the URL: Apprise's, or pagerduty://KEY.")
    severity: Severity = Field(default=Severity.WARN, description="Minimum severity to send.")


class AlertsConfig(Section):
    """The receivers of alerts, and the interval at which open incidents are repeated."""

    receivers: dict[Text, ReceiverConfig] = Field(default_factory=dict, description="Receivers of alerts, by name.")
    heartbeat_url_variable: Variable | None = Field(
        default=None, description="Environment variable with a URL that is called after each run of `checks`."
    )
    dagster_url: WebAddress | None = Field(default=None, description="Address of Dagster's UI, for links.")
    remind_hours: Seconds | None = Field(
        default=6, description="Hours between repeats of an open incident; null: never."
    )


class AlertSettings(Section):
    """The receivers of alerts."""

    alerts: AlertsConfig = Field(default_factory=AlertsConfig, description="Receivers of alerts.")
