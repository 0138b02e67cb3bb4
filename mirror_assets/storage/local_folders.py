"""Folders of a local disk that are deleted by identity, while others may delete them too and make them anew.

A folder is checked and emptied through one descriptor, and its path is removed only while nothing is in it. So a folder
that is made anew at the path meanwhile keeps its files. (Moving the folder aside before it is checked would move a new
one aside, too, and a crash or another publisher could keep it from coming back.)
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from mirror_assets.storage.linux import birth_time


def identity_of(folder: Path) -> str:
    """Which of the folders that had this path is there: inodes alone are used again at once. Raises OSError."""
    return _identity(folder.stat(), birth_time(folder))


def delete_folder(folder: Path, identity: str | None) -> None:
    """Delete the folder, if it has the identity, or whichever it is for None. Raises OSError, also if there is none."""
    while not _deleted(folder, identity):
        continue  # another publisher deletes it too, or has put something back


def _deleted(folder: Path, identity: str | None) -> bool:
    """Delete the folder, if it is the one; False when that has to be tried again."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if identity not in (None, _identity(os.fstat(descriptor), birth_time(descriptor))):
            return True
        with suppress(FileNotFoundError):  # another publisher is quicker: go on with the rest
            _empty(descriptor)
        return os.path.samestat(os.fstat(descriptor), folder.stat()) and _removed(folder)
    finally:
        os.close(descriptor)


def _identity(folder: os.stat_result, born: tuple[int, int]) -> str:
    return f"{folder.st_dev:x}-{folder.st_ino:x}-{born[0]:x}.{born[1]:x}"


def _empty(descriptor: int) -> None:
    """Delete all that is in an open folder; whatever has its path by now is not touched."""
    for _, folders, files, above in os.fwalk(".", topdown=False, onerror=_raise, dir_fd=descriptor):
        for name in files:
            os.unlink(name, dir_fd=above)
        for name in folders:
            try:
                os.rmdir(name, dir_fd=above)
            except NotADirectoryError:  # a link to a folder
                os.unlink(name, dir_fd=above)


def _raise(error: OSError) -> None:
    raise error


def _removed(folder: Path) -> bool:
    """Delete the path's folder; False when something is in it: filled again, or made anew, it stays."""
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True
