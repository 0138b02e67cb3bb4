"""Whether a file is there, by a definite answer: what can't be looked for is not gone."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FileState:
    """`is_gone`: the store says that there is no such file. `hindrance`: why it can't be read or looked for, if so."""

    is_gone: bool = False
    hindrance: str | None = None


def look_for(path: str, root: Path) -> FileState:
    """The state of a file of this machine at `path` below the folder `root`.

    A file is gone if a folder that is there does not hold it. A folder that is not there, such as a disk that is not
    mounted, one that may not be searched, and a link that leads nowhere say nothing about the file.
    """
    if not root.is_dir():
        return FileState(hindrance=f"the folder {root} is not there")
    place = root
    for name in Path(path).parts:
        place = place / name
        try:
            mode = os.lstat(place).st_mode
        except FileNotFoundError:
            return FileState(is_gone=True)
        except OSError as error:
            return FileState(hindrance=f"{place}: {error.strerror}")
        if stat.S_ISLNK(mode) and not place.exists():
            return FileState(hindrance=f"{place} is a link to {place.readlink()}, which is not there")
    return FileState(hindrance=_unreadable(place))


def table_root(path: Path) -> Path | None:
    """The Delta table's folder that holds the file, or None where there is none."""
    return next((folder for folder in path.parents if (folder / "_delta_log").is_dir()), None)


def _unreadable(path: Path) -> str | None:
    if not path.is_file():
        return f"{path} is a folder"
    try:
        path.open("rb").close()
    except OSError as error:
        return f"{path}: {error.strerror}"
    return None
