"""Linux calls of a local store that Python lacks.

Rename without overwriting, a folder's creation time, and deleting a folder by identity while other publishers may also
delete it and create it again. A folder is checked and emptied through one descriptor, and its path is removed only
while it is empty, so a folder that is created again at the path keeps its files. (Moving the folder aside before
checking it would also move a new one aside, and a crash could prevent its return.)
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from contextlib import suppress
from pathlib import Path

_AT_FDCWD = -100
_AT_EMPTY_PATH = 0x1000
_RENAME_NOREPLACE = 1
_STATX_BTIME = 0x800
_STATX_SIZE = 256
_MASK_OFFSET, _BTIME_OFFSET = 0, 80  # of struct statx

_libc = ctypes.CDLL(None, use_errno=True)


def rename_noreplace(source: Path, target: Path) -> None:
    """Rename `source`. Raises FileExistsError if `target` exists, OSError (EINVAL, ENOSYS) if the disk can't."""
    call = getattr(_libc, "renameat2", None)
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), str(target))
    if call(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), _RENAME_NOREPLACE) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(source), None, str(target))


def birth_time(place: Path | int) -> tuple[int, int]:
    """Return when a path or descriptor was created, in seconds and nanoseconds; (0, 0) if unknown."""
    if isinstance(place, int):
        descriptor, path, flags = place, b"", _AT_EMPTY_PATH
    else:
        descriptor, path, flags = _AT_FDCWD, os.fsencode(place), 0
    buffer = ctypes.create_string_buffer(_STATX_SIZE)
    call = getattr(_libc, "statx", None)
    if call is None or call(descriptor, path, flags, _STATX_BTIME, buffer) != 0:
        return (0, 0)
    mask = struct.unpack_from("=I", buffer.raw, _MASK_OFFSET)[0]
    if not mask & _STATX_BTIME:
        return (0, 0)
    seconds, nanoseconds = struct.unpack_from("=qI", buffer.raw, _BTIME_OFFSET)
    return (seconds, nanoseconds)


def identity_of(folder: Path) -> str:
    """Identify the folder by device, inode and time of birth, as inodes alone are reused at once. Raises OSError."""
    return _identity(folder.stat(), birth_time(folder))


def delete_folder(folder: Path, identity: str | None) -> None:
    """Delete the folder if it has the identity; None: any. Raises OSError, also when there is no folder."""
    while True:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if identity not in (None, _identity(os.fstat(descriptor), birth_time(descriptor))):
                return
            with suppress(FileNotFoundError):  # another publisher was faster
                _empty(descriptor)
            if os.path.samestat(os.fstat(descriptor), folder.stat()):
                try:
                    folder.rmdir()
                except OSError as error:
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                        raise
                    continue  # another publisher writes to it
                return
        finally:
            os.close(descriptor)


def _identity(folder: os.stat_result, born: tuple[int, int]) -> str:
    return f"{folder.st_dev:x}-{folder.st_ino:x}-{born[0]:x}.{born[1]:x}"


def _empty(descriptor: int) -> None:
    """Delete the content of an open folder, even if its path is another folder's now."""
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
