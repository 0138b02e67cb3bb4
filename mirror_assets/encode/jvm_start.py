"""Starts the JVM of a Spark session, passes on what it prints, and keeps its last lines for the error message."""

from __future__ import annotations

import fcntl
import os
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from mirror_assets.process import user_cache

_STANDARD_ERROR = 2


def start_jvm(settings: Mapping[str, str], last_lines: deque[str]) -> None:
    """Start the JVM that Spark's context in this process will use, unless there is one.

    Adds the lines that the JVM prints to standard error, without stack traces. Raises PySparkException.
    """
    if SparkContext._gateway is not None:  # noqa: SLF001 pyspark has no public way to ask
        return
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    read, write = os.pipe()

    def pass_on() -> None:
        with os.fdopen(read, "rb") as printed:
            for line in printed:
                os.write(_STANDARD_ERROR, line)
                text = line.decode(errors="replace").strip()
                if text.strip(":=-") and not text.startswith(("at ", "... ")):
                    last_lines.append(text)

    reader = threading.Thread(target=pass_on, name="jvm-output", daemon=True)
    reader.start()
    try:
        # A reader of this process's output need not wait for the JVM, which ends later.
        gateway = launch_gateway(conf, {"stdout": write, "stderr": write})
    except BaseException:
        os.close(write)
        # A JVM that has exited closed its end: the reader ends with its last line.
        reader.join(timeout=5)
        raise
    os.close(write)
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 as above


@contextmanager
def resolving_alone() -> Iterator[None]:
    """Let no other process of this user resolve packages at the same time: Ivy's folder is not safe for two."""
    try:
        folder = user_cache()
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(Path(folder, "resolving.lock"), os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    except (OSError, RuntimeError):
        yield  # without a folder of the user's own, Ivy fails in its own way
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
