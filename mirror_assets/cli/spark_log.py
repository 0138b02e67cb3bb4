"""Keeps Spark's own messages out of the terminal: they go to a file that is named when a command fails."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def spark_log() -> Iterator[Path | None]:
    """The file that gets what child processes (Spark's JVM) write to the error stream; None where there is no stream.

    Our own messages still reach the terminal. Who is done deletes the file, or names it.
    """
    if not _is_process_stream():
        yield None
        return
    handle, name = tempfile.mkstemp(prefix="mirror-assets-spark-", suffix=".log")
    sys.stderr.flush()
    terminal = os.dup(2)
    os.dup2(handle, 2)
    os.close(handle)
    before, sys.stderr = sys.stderr, os.fdopen(terminal, "w", buffering=1, encoding="utf-8", errors="replace")
    try:
        yield Path(name)
    finally:
        sys.stderr.flush()
        os.dup2(terminal, 2)
        sys.stderr = before


def _is_process_stream() -> bool:
    try:
        return sys.stderr.fileno() == 2
    except (io.UnsupportedOperation, AttributeError):
        return False
