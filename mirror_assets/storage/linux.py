"""Two Linux calls that Python lacks: rename without overwriting, and a folder's time of birth."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from pathlib import Path

_AT_FDCWD = -100
_AT_EMPTY_PATH = 0x1000
_RENAME_NOREPLACE = 1
_STATX_BTIME = 0x800
_STATX_SIZE = 256
_MASK_OFFSET, _BTIME_OFFSET = 0, 80  # of struct statx

_libc = ctypes.CDLL(None, use_errno=True)


def rename_noreplace(source: Path, target: Path) -> None:
    """Rename `source`. Raises FileExistsError when `target` exists, OSError (EINVAL or ENOSYS) if the disk can't."""
    call = getattr(_libc, "renameat2", None)
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), str(target))
    if call(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), _RENAME_NOREPLACE) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(source), None, str(target))


def birth_time(place: Path | int) -> tuple[int, int]:
    """Seconds and nanoseconds of the creation of a path or descriptor; (0, 0) where the file system keeps none."""
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
