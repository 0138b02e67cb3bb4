"""The process: how often it searches for garbage, and the user's folder for what can be made again."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Mapping
from pathlib import Path

# New objects between two searches; Python's default is 700.
_NEW_OBJECTS = 100_000


def search_rarely() -> None:
    """Let Python search for garbage rarely, and not when the process ends.

    Loading Dagster and the definitions creates a million objects, which live to the end. With Python's default, a
    quarter of the time of loading them is spent on visiting them again and again.
    """
    gc.set_threshold(_NEW_OBJECTS)
    atexit.register(gc.freeze)


def user_cache(environment: Mapping[str, str] = os.environ) -> Path:
    """Return `mirror_assets` in the user's cache folder: `$XDG_CACHE_HOME`, else `~/.cache`.

    Raises RuntimeError for a user without a home folder.
    """
    named = Path(environment.get("XDG_CACHE_HOME", ""))
    # The specification has a relative path be ignored.
    root = named if named.is_absolute() else Path.home() / ".cache"
    return root / "mirror_assets"
