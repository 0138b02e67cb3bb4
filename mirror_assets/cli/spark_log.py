"""Keeps Spark's own messages out of the terminal: they go to a file, which is named when a command fails."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mirror_assets.cli.json_log import is_json, print_line


@dataclass
class SparkLog:
    """The file that receives what child processes (Spark's JVM) write to the error stream, and whether to keep it."""

    path: Path | None
    keep: bool = True

    def close(self) -> None:
        """Name the file if it is kept and not empty; delete it otherwise."""
        if self.path is None:
            return
        if self.keep and self.path.stat().st_size:
            text = f"messages of Spark and other libraries are in {self.path}"
            if is_json():
                print_line("info", text)
            else:
                print(text, file=sys.stderr)  # noqa: T201 the command line's voice
        else:
            self.path.unlink()


@contextmanager
def spark_log() -> Iterator[SparkLog]:
    """Redirect the error stream of child processes to a file; this process's own messages still reach the terminal.

    The file is kept unless the block sets `keep` to false before it ends.
    """
    if not _is_process_stream():
        yield SparkLog(None)
        return
    handle, name = tempfile.mkstemp(prefix="mirror-assets-spark-", suffix=".log")
    sys.stderr.flush()
    terminal = os.dup(2)
    os.dup2(handle, 2)
    os.close(handle)
    log, before = SparkLog(Path(name)), sys.stderr
    sys.stderr = os.fdopen(terminal, "w", buffering=1, encoding="utf-8", errors="replace")
    try:
        yield log
    finally:
        log.close()
        sys.stderr.flush()
        os.dup2(terminal, 2)
        sys.stderr = before


def _is_process_stream() -> bool:
    try:
        return sys.stderr.fileno() == 2
    except (io.UnsupportedOperation, AttributeError):
        return False
