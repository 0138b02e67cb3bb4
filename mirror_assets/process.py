"""The process: how often it searches for garbage, and the user's folder for what can be made again."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

# New objects between two searches while loading, and the thresholds of this process before.
_LOADING = 100_000
_BEFORE: list[tuple[int, int, int]] = []


@cache
def search_rarely() -> None:
    """Let Python search for garbage rarely until Spark starts, and not when the process ends; once in a process.

    Loading Dagster and the definitions creates a million objects, which live to the end. With Python's default, a
    quarter of the time of loading them is spent on visiting them again and again.
    """
    _BEFORE.append(gc.get_threshold())
    gc.set_threshold(_LOADING)
    atexit.register(gc.freeze)


def search_as_usual() -> None:
    """Let Python search as before again, for objects that are made from now on.

    Each object of Spark's that Python has called refers to itself by way of Py4J. Only a search releases it, and with
    it what the driver has broadcast: a megabyte for the smallest join. Between two rare searches, a hundred slices
    land.
    """
    try:
        before = _BEFORE.pop()
    except IndexError:  # this process does not search rarely, or another thread was faster
        return
    if gc.get_threshold()[0] == _LOADING:
        gc.set_threshold(*before)
    gc.collect()  # garbage that is frozen stays until the process ends
    gc.freeze()
    # Python searches all objects when a quarter are new since the last such search. Now nothing is left to search.
    gc.collect()


def user_cache(environment: Mapping[str, str] = os.environ) -> Path:
    """Return `mirror_assets` in the user's cache folder: `$XDG_CACHE_HOME`, else `~/.cache`.

    Raises RuntimeError for a user without a home folder.
    """
    named = Path(environment.get("XDG_CACHE_HOME", ""))
    # The specification has a relative path be ignored.
    root = named if named.is_absolute() else Path.home() / ".cache"
    return root / "mirror_assets"
