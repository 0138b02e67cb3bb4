"""How Dagster mirrors by itself: by a run that stays, or by runs that end when nothing is pending."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from mirror_assets.config.setting_values import Count, Seconds, Section

# A look costs a request per table. A run that waits may look often; a sensor that has to start one need not.
_RESIDENT_SECONDS, _BATCH_SECONDS = 2.0, 15.0
# A hundred tables take five seconds of a processor: at this pace, checks cost two per cent of one at most.
_CHECKS_MINUTES, _CHECKS_TABLES = 5, 100


def divisors(whole: int) -> list[int]:
    """Return the divisors of a number, from the least."""
    return [number for number in range(1, whole + 1) if whole % number == 0]


def _divisor(whole: int) -> AfterValidator:
    """Return the check that a period fits into a whole: else its schedule would have gaps of two lengths."""
    fitting = divisors(whole)

    def fits(number: int) -> int:
        if number not in fitting:
            raise ValueError(f"expected one of {', '.join(map(str, fitting))}")
        return number

    return AfterValidator(fits)


def _minutes(value: object) -> object:
    # Before the type is checked: for a union, pydantic would report a mistake for each of its members.
    if value not in (None, "auto", *divisors(60)) or isinstance(value, bool):
        raise ValueError(f"expected auto, null or one of {', '.join(map(str, divisors(60)))}")
    return value


Minutes = Annotated[int | Literal["auto"] | None, BeforeValidator(_minutes)]
DivisorOfDay = Annotated[Count, _divisor(24)]


class Mode(str, Enum):
    """What the sensor keeps going."""

    RESIDENT = "resident"
    BATCH = "batch"


class AutomationConfig(Section):
    """The runs that the sensor `mirror` requests."""

    mode: Mode = Field(
        default=Mode.RESIDENT, description="One run that stays and holds a warm Spark, or runs that end when idle."
    )
    batches: Count = Field(default=1, description="Runs at once; tables are divided among them.")
    every_seconds: Seconds | None = Field(
        default=None, description="How often commits are looked for; null: 2, and 15 in mode batch."
    )

    checks_every_minutes: Minutes = Field(
        default="auto",
        description="How often the checks without Spark run; auto: 5 a hundred tables; null: never by themselves.",
    )
    reconcile_every_hours: DivisorOfDay | None = Field(
        default=24, description="How often mirrors are compared with their sources; null: never by themselves."
    )
    keep_runs_days: Count | None = Field(
        default=30, description="Days after which Dagster's runs, events and logs are deleted; null: never."
    )
    discover_every_seconds: Seconds = Field(default=60, description="How often the rules of `discover` look again.")

    def checks_minutes(self, tables: int) -> int | None:
        """Return the minutes between two runs of the checks of this many tables; None: they don't run."""
        if self.checks_every_minutes != "auto":
            return self.checks_every_minutes
        wanted = _CHECKS_MINUTES * tables / _CHECKS_TABLES
        return min((fit for fit in divisors(60) if fit >= max(wanted, _CHECKS_MINUTES)), default=60)

    @property
    def every(self) -> float:
        """Seconds from one look at the sources to the next."""
        if self.every_seconds is not None:
            return float(self.every_seconds)
        return _RESIDENT_SECONDS if self.mode is Mode.RESIDENT else _BATCH_SECONDS
