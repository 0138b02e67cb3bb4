"""The variable that starts sensors and schedules."""

from __future__ import annotations

import os

SENSORS_VARIABLE = "MIRROR_SENSORS"


def is_on() -> bool:
    """Whether MIRROR_SENSORS is `on` (as `make dev` sets it); sensors and schedules are off without."""
    return os.environ.get(SENSORS_VARIABLE, "off").lower() == "on"
