"""How Dagster mirrors by itself: by a run that stays, or by runs that end when nothing is pending."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from pydantic import AfterValidator, Field

from mirror_assets.config.setting_values import Count, Seconds, Section

# A look costs a request per table. A run that waits may look often; a sensor that has to start one need not.
_RESIDENT_SECONDS, _BATCH_SECONDS = 2.0, 15.0


def _divisor(whole: int) -> AfterValidator:
    """Return the check that a period fits into a whole: else its schedule would have gaps of two lengths."""
    fitting = [number for number in range(1, whole + 1) if whole % number == 0]

    def fits(number: int) -> int:
        if number not in fitting:
            raise ValueError(f"expected one of {', '.join(map(str, fitting))}")
        return number

    return AfterValidator(fits)


DivisorOfHour = Annotated[Count, _divisor(60)]
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
    resident_minutes: Count = Field(default=240, description="Age at which a run that stays is replaced by the next.")
    every_seconds: Seconds | None = Field(
        default=None, description="How often commits are looked for; null: 2, and 15 in mode batch."
    )

    checks_every_minutes: DivisorOfHour | None = Field(
        default=5, description="How often the checks without Spark run, for all tables; null: never by themselves."
    )
    reconcile_every_hours: DivisorOfDay | None = Field(
        default=24, description="How often mirrors are compared with their sources; null: never by themselves."
    )
    discover_every_seconds: Seconds = Field(default=60, description="How often the rules of `discover` look again.")

    @property
    def every(self) -> float:
        """Seconds from one look at the sources to the next."""
        if self.every_seconds is not None:
            return float(self.every_seconds)
        return _RESIDENT_SECONDS if self.mode is Mode.RESIDENT else _BATCH_SECONDS
