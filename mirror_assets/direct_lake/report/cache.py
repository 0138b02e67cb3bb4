"""Where facts of footers are kept between reports."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """`mirror_assets/footers` in the user's cache folder: `$XDG_CACHE_HOME`, else `~/.cache` (XDG Base Directory).

    What is in it can be read from the tables again, so it may be deleted at any time.
    """
    told = environment.get("XDG_CACHE_HOME", "")
    # The specification has a relative path be ignored.
    root = Path(told) if Path(told).is_absolute() else Path.home() / ".cache"
    return root / "mirror_assets" / "footers"
