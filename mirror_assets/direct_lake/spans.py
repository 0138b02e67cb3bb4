"""Spans of time in words."""

from __future__ import annotations

import math

# What is shown: a tenth of an hour.
_STEP_SECONDS = 360


def hours(seconds: float) -> str:
    """A span."""
    return f"{seconds / 3600:,.1f} hours"


def hours_at_least(seconds: float) -> str:
    """A span that something is needed for, rounded up: less would not be safe."""
    return hours(math.ceil(seconds / _STEP_SECONDS) * _STEP_SECONDS)
