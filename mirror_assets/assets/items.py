"""What a metadata value may be before Dagster wraps it."""

from __future__ import annotations

from typing import Any, TypeAlias

import dagster as dg

# MetadataValue is generic in what it wraps, which nobody here asks.
MetadataItem: TypeAlias = str | int | float | dg.MetadataValue[Any] | dg.TableSchema | None
