"""Leases: they name the run that works on a table or on a batch of tables, so that no other run does the same work.

A run renews no lease. It writes one heartbeat file while it holds leases, and deletes the file when it has released the
last one. Safety does not depend on them: a run that misses a lease repeats work, but the manifest decides what lands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field

from mirror_assets.landing.control_file import read_control_file, write_control_file
from mirror_assets.landing.format import Count, Record
from mirror_assets.landing.names import heartbeat_path
from mirror_assets.landing.steps import drive
from mirror_assets.zones import Store


class Process(Record):
    """A process: its id, and its start in clock ticks of the kernel with this boot id and PID namespace.

    Without `/proc`, `boot` and `namespace` are empty.
    """

    host: str
    boot: str
    namespace: str
    pid: Annotated[int, Field(ge=1)]
    started: int


class Lease(Record):
    """`_leases/<table>.json`, or the lease of a batch of tables: a run, its process, and when it acquired the lease.

    For a batch, `code` is the mark of the definitions that the run was started for, and `tables` has its tables.
    `next_code` is the mark of newer definitions: the sensor sets it, and the run ends. Times are in ms since 1970.
    """

    format: Literal[2] = 2
    subject: str
    run: str
    process: Process
    since_ms: int
    code: str = ""
    next_code: str = ""
    tables: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Name the run, its subject and its process."""
        return f"run {self.run} works on {self.subject}, in process {self.process.pid} on {self.process.host}"


class Heartbeat(Record):
    """`_leases/_run-<id>.json`: the run holds leases. `beats` counts the writes, so that each changes the ETag."""

    format: Literal[1] = 1
    run: str
    process: Process
    beats: Count


def read_lease(store: Store, path: str) -> Lease | None:
    """Read the lease, also of a run that has ended; None if it is missing or unreadable."""
    return drive(read_control_file(Lease, path, is_hint=True), store).record


def take_lease(store: Store, path: str, lease: Lease, may_replace: Callable[[Lease], bool]) -> Lease | None:
    """Acquire the lease, unless it is held by another and may not be replaced; return the lease in force.

    Returns None if another process acquires it at the same time.
    """
    found = drive(read_control_file(Lease, path, is_hint=True), store)
    if found.record is not None and not may_replace(found.record):
        return found.record
    return lease if drive(write_control_file(found, lease), store) else None


def write_heartbeat(store: Store, run: str, process: Process) -> None:
    """Write the run's heartbeat file again. Raises what the store raises."""
    found = drive(read_control_file(Heartbeat, heartbeat_path(run), is_hint=True), store)
    beats = found.record.beats + 1 if found.record else 0
    drive(write_control_file(found, Heartbeat(run=run, process=process, beats=beats)), store)
