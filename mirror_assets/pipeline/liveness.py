"""Detects whether the process that holds a lease still runs.

On the machine that knows its process id, the process table decides, however late a renewal is. The lease's end decides
only for processes of other machines and containers.
"""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

from mirror_assets.landing.lease import Lease, Process

# A request to a store is retried for up to two minutes, and a lease is renewed every thirty seconds.
VALID_SECONDS = 300.0
# A living process that has not renewed a lease for this long has released it: its store refused the deletion.
_FORGOTTEN_SECONDS = 3600.0
_PROC = Path("/proc")
_ENDED = ("Z", "X")


def this_process() -> Process:
    """Return this process, with the kernel and the namespace that know its id."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = (_PROC / "self/ns/pid").readlink().name
        started = _started(os.getpid()) or 0
    except OSError:
        boot, namespace, started = "", "", 0
    return Process(host=platform.node(), boot=boot, namespace=namespace, pid=os.getpid(), started=started)


def new_lease(subject: str, run: str, since_ms: int, code: str = "", tables: tuple[str, ...] = ()) -> Lease:
    """Return the lease of a run of this process, from now on valid for `VALID_SECONDS`."""
    return Lease(
        subject=subject,
        run=run,
        process=this_process(),
        since_ms=since_ms,
        until_ms=now_ms() + int(VALID_SECONDS * 1000),
        code=code,
        tables=tables,
    )


def now_ms() -> int:
    """Return the time in ms since 1970."""
    return time.time_ns() // 1_000_000


def has_ended(process: Process) -> bool | None:
    """Return whether the process has ended; None if it is on another machine or in another container."""
    here = this_process()
    if not process.boot or (process.boot, process.namespace) != (here.boot, here.namespace):
        return None
    try:
        return _started(process.pid) != process.started
    except OSError:
        return False  # it is there, and belongs to a user whose processes are hidden


def is_gone(lease: Lease) -> bool:
    """Return whether the run has released the lease, its process has ended, or the lease has expired."""
    ended = has_ended(lease.process) if lease.until_ms else True
    over = time.time() - lease.until_ms / 1000
    return bool(ended) or over >= (0 if ended is None else _FORGOTTEN_SECONDS)


def _started(pid: int) -> int | None:
    """Return when the process began, in clock ticks; None if there is no such process. Raises OSError."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return None
        raise
    # The second field is the program's name in brackets, which may hold blanks and brackets of its own.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in _ENDED else int(fields[19])
