"""The folder in which this project keeps, for one user, what it can make again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def user_cache(environment: Mapping[str, str] = os.environ) -> Path:
    """Return `mirror_assets` in the user's cache folder: `$XDG_CACHE_HOME`, else `~/.cache`.

    Raises RuntimeError for a user without a home folder.
    """
    named = Path(environment.get("XDG_CACHE_HOME", ""))
    # The specification has a relative path be ignored.
    root = named if named.is_absolute() else Path.home() / ".cache"
    return root / "mirror_assets"
