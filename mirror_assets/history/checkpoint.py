"""The checkpoints of a history's streams: one is used only if it is known to stand where the history does."""

from __future__ import annotations

import json
import shutil
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

from mirror_assets.history.record import Kept

_STANDS = "stands.json"
_SPARK = "spark"


@dataclass(frozen=True)
class Checkpoint:
    """Spark's checkpoint of one stream, in a folder that no other stream uses; `goes_on`: an earlier one left it."""

    folder: Path
    goes_on: bool

    @property
    def location(self) -> str:
        """Where Spark keeps it."""
        return str(self.folder / _SPARK)

    def leave(self, newest: Kept) -> None:
        """Note that the stream has ended behind this slice, for the next one, and clear away what others left."""
        (self.folder / _STANDS).write_text(json.dumps(asdict(newest)))
        for other in self.folder.parent.iterdir():
            if other != self.folder:
                shutil.rmtree(other, ignore_errors=True)

    def discard(self) -> None:
        """Throw it away."""
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True)
class Checkpoints:
    """The folder with the checkpoints of a history's streams.

    They know nothing that the history's log does not, so that any of them can be thrown away at any time. One is gone
    on with only if a note in it, written when its stream had ended well, names the history's newest slice.
    """

    folder: Path

    def take(self, newest: Kept | None) -> Checkpoint:
        """The checkpoint that was left behind the newest slice, or a new one; for the caller alone."""
        own = self.folder / uuid.uuid4().hex
        for note in self.folder.glob(f"*/{_STANDS}"):
            if newest is not None and _stands_behind(note, newest) and _moved(note.parent, own):
                (own / _STANDS).unlink()
                return Checkpoint(own, goes_on=True)
        return Checkpoint(own, goes_on=False)


def _stands_behind(note: Path, newest: Kept) -> bool:
    try:
        return bool(json.loads(note.read_text()) == asdict(newest))
    except (OSError, ValueError):
        return False


def _moved(folder: Path, own: Path) -> bool:
    """Whether the folder is the caller's now: of several that want it, one can rename it."""
    try:
        folder.rename(own)
    except OSError:
        return False
    return True
