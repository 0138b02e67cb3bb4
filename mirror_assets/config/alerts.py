"""Who is told when something is wrong, about what, and when."""

from __future__ import annotations

import re
from datetime import datetime, time
from email.utils import getaddresses
from enum import Enum
from typing import Annotated
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator
from typing_extensions import Self

from mirror_assets.config.setting_values import Count, Seconds, Section, Text

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+")
_MAIL_PORT = 587
_WEBHOOKS = ("webhook", "slack", "teams")


class ReceiverType(str, Enum):
    """The kinds of receivers."""

    WEBHOOK = "webhook"
    SLACK = "slack"
    TEAMS = "teams"
    PAGERDUTY = "pagerduty"
    EMAIL = "email"


class Severity(str, Enum):
    """How bad something is, as receivers choose by it; the order is that of `rank`."""

    INFO = "info"
    WARN = "warn"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """A number that grows with the severity."""
        return list(Severity).index(self)


class Topic(str, Enum):
    """What an alert is about, as receivers choose by it."""

    CHECK = "check"
    """A check fails."""
    TABLE = "table"
    """A table can't be mirrored."""
    HELD = "held"
    """A table waits for a person to have it rebuilt."""
    REBUILD = "rebuild"
    """A table is rebuilt."""
    RUN = "run"
    """A run has failed."""
    TICK = "tick"
    """A sensor or schedule fails, is off or is silent."""
    DOCTOR = "doctor"
    """An answer of the doctor is no."""
    TEST = "test"
    """`mirror-assets alerts test`, which every receiver gets."""


class MailSecurity(str, Enum):
    """How the connection to a mail server is encrypted."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


def _variable(value: object) -> object:
    if isinstance(value, str) and not _VARIABLE.fullmatch(value):
        raise ValueError("expected the name of an environment variable, such as SLACK_URL, and not the secret itself")
    return value


def _web_address(value: object) -> object:
    parts = urlsplit(value) if isinstance(value, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise ValueError("expected an address such as https://dagster.acme.example, without credentials")
    return value


def _time_of_day(value: object) -> object:
    # YAML reads 22:00 as a number to the base 60.
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 24 * 60:
        return f"{value // 60:02d}:{value % 60:02d}"
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise ValueError('expected a time of day such as "22:00"')
    return f"{int(value.partition(':')[0]):02d}:{value.partition(':')[2]}"


def _zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: a folder such as Europe
        raise ValueError(f"{value!r} is no time zone; write one such as Europe/Berlin or UTC") from None
    return value


def _mail_address(value: object) -> object:
    found = getaddresses([value]) if isinstance(value, str) and value.isprintable() else []
    if len(found) != 1 or not _ADDRESS.fullmatch(found[0][1]):
        raise ValueError("expected one address, such as data@acme.example or Mirror <mirror@acme.example>")
    return value


Variable = Annotated[Text, BeforeValidator(_variable)]
WebAddress = Annotated[Text, BeforeValidator(_web_address)]
TimeOfDay = Annotated[Text, BeforeValidator(_time_of_day)]
MailAddress = Annotated[Text, BeforeValidator(_mail_address)]
Zone = Annotated[Text, AfterValidator(_zone)]


class QuietHours(Section):
    """Hours in which messages wait until their end."""

    model_config = ConfigDict(populate_by_name=True)

    begin: TimeOfDay = Field(alias="from", description="When they begin each day.")
    end: TimeOfDay = Field(alias="to", description="When they end, on the next day if that is not later.")
    zone: Zone = Field(default="UTC", description="The time zone of both.")
    unless: Severity | None = Field(default=None, description="What is as bad as this does not wait.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.begin == self.end:
            raise ValueError("`from` and `to` are the same: nothing would ever be told")
        return self

    def cover(self, at_ms: int) -> bool:
        """Return whether the time, in milliseconds since 1970, lies in them."""
        here = datetime.fromtimestamp(at_ms / 1000, ZoneInfo(self.zone)).time()
        begin, end = time.fromisoformat(self.begin), time.fromisoformat(self.end)
        return begin <= here < end if begin < end else here >= begin or here < end


class ReceiverConfig(Section):
    """One receiver of alerts. What is secret is in the environment; settings name the variables."""

    type: ReceiverType = Field(description="Which kind of messages it takes.")
    severity: Severity = Field(default=Severity.WARN, description="It is told what is at least as bad.")
    topics: tuple[Topic, ...] | None = Field(default=None, description="What it is told about; null: all.")
    quiet_hours: QuietHours | None = Field(default=None, description="Hours in which its messages wait.")
    timeout_seconds: Seconds = Field(default=20, description="How long an attempt waits for an answer.")
    url_variable: Variable | None = Field(default=None, description="webhook, slack, teams: variable of the address.")
    token_variable: Variable | None = Field(default=None, description="webhook: variable of a bearer token.")
    key_variable: Variable | None = Field(default=None, description="pagerduty: variable of the integration key.")
    url: WebAddress | None = Field(default=None, description="pagerduty: another address of its Events API.")
    host: Text | None = Field(default=None, description="email: the mail server.")
    port: Count = Field(default=_MAIL_PORT, description="email: its port.")
    security: MailSecurity = Field(default=MailSecurity.STARTTLS, description="email: starttls, tls or none.")
    user: Text | None = Field(default=None, description="email: who signs in; null: nobody.")
    password_variable: Variable | None = Field(default=None, description="email: variable of the password.")
    sender: MailAddress | None = Field(default=None, description="email: the address in From.")
    to: tuple[MailAddress, ...] = Field(default=(), description="email: the addresses of those who are told.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        kind = self.type.value
        if kind in _WEBHOOKS and self.url_variable is None:
            raise ValueError(f"`type: {kind}` needs `url_variable`, the environment variable that has its address")
        if self.type is ReceiverType.PAGERDUTY and self.key_variable is None:
            raise ValueError("`type: pagerduty` needs `key_variable`, the environment variable of its integration key")
        if self.type is ReceiverType.EMAIL:
            self._check_mail()
        elif self.host or self.to or self.sender or self.user or self.password_variable:
            raise ValueError(f"`host`, `user`, `sender` and `to` are settings of `type: email`, not of `type: {kind}`")
        return self

    def _check_mail(self) -> None:
        if not (self.host and self.sender and self.to):
            raise ValueError("`type: email` needs `host`, `sender` and `to`")
        if (self.user is None) is not (self.password_variable is None):
            raise ValueError("`user` and `password_variable` go together")
        if self.user and self.security is MailSecurity.NONE:
            raise ValueError(
                "a password is sent over an encrypted connection only; write `security: starttls` or `tls`"
            )


class AlertsConfig(Section):
    """Who is told when something is wrong, and how often."""

    receivers: dict[Text, ReceiverConfig] = Field(default_factory=dict, description="Who is told, by name.")
    dagster_url: WebAddress | None = Field(default=None, description="Address of Dagster's UI, for links.")
    docs_url: WebAddress | None = Field(default=None, description="Address of the folder docs/, for links.")
    every_seconds: Seconds = Field(default=15, description="How often the sensor `alerts` looks.")
    gather_seconds: Seconds = Field(default=30, description="How long a message waits for others of its cause.")
    settle_seconds: Seconds = Field(default=60, description="How long a fault must be gone before it has ended.")
    remind_hours: Seconds | None = Field(default=6, description="When what lasts is told again; null: never.")
    silent_minutes: Count = Field(default=10, description="A sensor without a tick for so long is silent.")
    overdue_minutes: Count | None = Field(
        default=30, description="How late the runs of the schedule `checks` may be; null: nobody is told."
    )
