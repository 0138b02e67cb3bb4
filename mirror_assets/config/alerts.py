"""Settings of alerts: the receivers, their minimum severity, and links."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from pydantic import Field

from mirror_assets.config.setting_values import Seconds, Section, Text, Variable, matching


class Severity(str, Enum):
    """How severe a problem is, from the least to the most."""

    INFO = "info"
    WARN = "warn"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """A number that grows with the severity."""
        return list(Severity).index(self)


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
    dagster_url: WebAddress | None = Field(default=None, description="Address of Dagster's UI, for links.")
    remind_hours: Seconds | None = Field(
        default=6, description="Hours between repeats of an open incident; null: never."
    )
