"""How often Python searches for garbage in processes that load Dagster: each search visits all its objects."""

from __future__ import annotations

import atexit
import gc

# New objects between two searches; Python's default is 700.
_NEW_OBJECTS = 100_000


def search_rarely() -> None:
    """Let Python search for garbage rarely, and not when the process ends.

    Loading Dagster and the definitions creates a million objects, which live to the end. With Python's default, a
    quarter of the time of loading them is spent on visiting them again and again.
    """
    gc.set_threshold(_NEW_OBJECTS)
    atexit.register(gc.freeze)
