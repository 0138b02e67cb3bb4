"""The sections of mirror.yaml that are not about tables: automation, metrics, Spark and the mirrored tables."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from typing_extensions import Self

from mirror_assets.config.setting_values import SparkName, SparkValue
from mirror_assets.feature import features
from mirror_assets.settings import Count, Folder, Seconds, Section, with_settings

# A poll costs one request per table. A resident run may poll often; a sensor that has to start a run needn't.
_RESIDENT_SECONDS, _BATCH_SECONDS = 2.0, 15.0
# Checking a hundred tables takes five seconds of a core: at this interval, checks use 2 % of one at most.
_CHECKS_MINUTES, _CHECKS_TABLES = 5, 100
# A problem that a retry may resolve is reported after the second checks: within an hour.
_LONGEST_MINUTES = 30


def divisors(whole: int) -> list[int]:
    """Return the divisors of a number, ascending: other intervals would leave gaps of two lengths in a schedule."""
    return [number for number in range(1, whole + 1) if whole % number == 0]


def _divisor_of(whole: int, *others: str | None) -> BeforeValidator:
    """Return a validator for the divisors and these values; for a union, pydantic would report each member."""

    def check(value: object) -> object:
        value = int(value) if isinstance(value, str) and value.isdecimal() else value  # from the environment
        if value not in (*others, *divisors(whole)) or isinstance(value, bool):
            names = ", ".join("null" if other is None else other for other in others)
            raise ValueError(f"expected {names} or one of {', '.join(map(str, divisors(whole)))}")
        return value

    return BeforeValidator(check)


class Mode(str, Enum):
    """The kind of run that the sensor `mirror` starts."""

    RESIDENT = "resident"
    BATCH = "batch"


class AutomationConfig(Section):
    """The runs that the sensor `mirror` starts, and the intervals of schedules."""

    mode: Mode = Field(default=Mode.RESIDENT, description="A resident run with a warm Spark, or runs that end.")
    batches: Count = Field(default=1, description="Runs at the same time; the tables are divided among them.")
    every_seconds: Seconds | None = Field(
        default=None, description="Interval between polls for commits; null: 2, and 15 with `mode: batch`."
    )
    checks_every_minutes: Annotated[int | Literal["auto"] | None, _divisor_of(60, "auto", None)] = Field(
        default="auto",
        description="Interval of the checks that need no Spark; auto: 5 for each hundred tables; null: off.",
    )
    reconcile_every_hours: Annotated[int | None, _divisor_of(24, None)] = Field(
        default=24, description="Interval at which mirrors are compared with their sources; null: off."
    )
    reconcile_all_within_days: Count = Field(
        default=7, description="Days in which scheduled comparisons read all columns of each table at least once."
    )
    keep_runs_days: Count | None = Field(
        default=30, description="Age in days at which Dagster's records of runs are deleted; null: never."
    )

    def checks_minutes(self, tables: int) -> int | None:
        """Return the minutes between two runs of the checks of this many tables; None: off."""
        if self.checks_every_minutes != "auto":
            return self.checks_every_minutes
        wanted = _CHECKS_MINUTES * tables / _CHECKS_TABLES
        fitting = (fit for fit in divisors(60) if max(wanted, _CHECKS_MINUTES) <= fit <= _LONGEST_MINUTES)
        return min(fitting, default=_LONGEST_MINUTES)

    @property
    def every(self) -> float:
        """Seconds between polls of the sources."""
        if self.every_seconds is not None:
            return float(self.every_seconds)
        return _RESIDENT_SECONDS if self.mode is Mode.RESIDENT else _BATCH_SECONDS


def _collector(text: str) -> str:
    """Return a collector's address. Raises ValueError for another text, and for one that contains a secret."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("expected an address such as http://localhost:4318")
    if "@" in parts.netloc or parts.query:
        raise ValueError("it must not contain a user, a password or a token: set them in OTEL_EXPORTER_OTLP_HEADERS")
    return text


class PrometheusConfig(Section):
    """The port that resident runs serve for Prometheus."""

    port: Annotated[int, Field(ge=1, le=65_535)] | None = Field(
        default=None, description="Port to scrape; null: none. Batch n (from 0) has port + n."
    )


class OtlpConfig(Section):
    """The collector that every run sends metrics and traces to."""

    endpoint: Annotated[str, AfterValidator(_collector)] | None = Field(
        default=None, description="Its address, for OTLP over HTTP; null: none."
    )


class MetricsConfig(Section):
    """The export of metrics and traces."""

    prometheus: PrometheusConfig = Field(default_factory=PrometheusConfig, description="Port to scrape.")
    otlp: OtlpConfig = Field(default_factory=OtlpConfig, description="Collector of metrics and traces.")


class SparkConfig(Section):
    """Additions to the Spark session. `${NAME}` is preserved, and resolved when a session opens."""

    settings: dict[SparkName, SparkValue] = Field(default_factory=dict, description="Spark settings by name.")
    jars_folder: Folder | None = Field(
        default=None, description="Folder with the JARs of all packages; null: Spark downloads them once."
    )
    remote: SparkValue | None = Field(
        default=None, description="Address of a Spark Connect server, sc://host:15002; null: Spark runs here."
    )

    @model_validator(mode="after")
    def _one_spark(self) -> Self:
        if "spark.remote" in self.settings:
            raise ValueError("name the server in `spark.remote`, not in `settings`")
        if self.remote is not None and (self.jars_folder or "spark.master" in self.settings):
            raise ValueError("a Spark Connect server has its own JARs and master: remove jars_folder and spark.master")
        return self

    @property
    def all_settings(self) -> dict[str, str]:
        """The settings, with the address of the server under Spark's own name."""
        return self.settings if self.remote is None else {**self.settings, "spark.remote": self.remote}


MIRROR_PATH = "./mirror"


class CoreMirror(Section):
    """The mirrored tables: those of the local stand-in for Fabric's replicator, or of a feature's mirror."""

    path: Folder = Field(
        default=Path(MIRROR_PATH), validate_default=True, description="Folder of the stand-in's Delta tables."
    )

    @model_validator(mode="after")
    def _one_mirror(self) -> Self:
        others = [name for name in sorted(self.model_fields_set - {"path"}) if getattr(self, name) is not None]
        if others and "path" in self.model_fields_set:
            raise ValueError(f"set either `path` or `{others[0]}`")
        return self


if TYPE_CHECKING:

    class MirrorConfig(CoreMirror):
        """The mirrored tables, with the mirrors of features."""
else:
    MirrorConfig = with_settings(CoreMirror, [feature.mirror_settings() for feature in features()])
