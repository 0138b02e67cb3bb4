"""A stream's checkpoint, which is used only where it is known to stand where the history does."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from mirror_assets.history.record import Kept

_STANDS = "stands.json"
_SPARK = "spark"


@dataclass(frozen=True)
class Checkpoint:
    """Spark's checkpoint of a history's stream, and a note beside it: which slice it stands behind.

    It knows nothing that the history's log does not. So it can be thrown away at any time, and it is, unless the note,
    written when a stream has ended well, names the history's newest slice.
    """

    folder: Path

    @property
    def location(self) -> str:
        """Where Spark keeps it."""
        return str(self.folder / _SPARK)

    def stands_behind(self, newest: Kept | None) -> bool:
        """Whether the stream would go on behind the history's newest slice."""
        try:
            return newest is not None and json.loads((self.folder / _STANDS).read_text()) == asdict(newest)
        except (OSError, ValueError):
            return False

    def mark(self, newest: Kept) -> None:
        """Note that the stream has ended behind this slice."""
        (self.folder / _STANDS).write_text(json.dumps(asdict(newest)))

    def discard(self) -> None:
        """Throw it away: the next stream begins anew."""
        if self.folder.exists():
            shutil.rmtree(self.folder)
